"""Integer arithmetic against Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from integer_lanes import Model, check, of_kind
from kernel_text import run_lanes
from operand_values import (
    FIXED,
    array,
    bits_of,
    check_lanes,
    operands,
    read,
    seeds,
    signed,
    sources,
    wrap,
)

WORDS = ["u16", "s16", "u32", "s32", "u64", "s64"]


def quotient(a: int, b: int) -> int | None:
    """Division that truncates towards zero; by zero is unspecified in PTX."""
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int | None:
    whole = quotient(a, b)
    return None if whole is None else a - b * whole


ARITHMETIC: dict[str, tuple[int, Callable[..., int | None]]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul.lo": (2, lambda a, b: a * b),
    "div": (2, quotient),
    "rem": (2, remainder),
    "min": (2, min),
    "max": (2, max),
    "mad.lo": (3, lambda a, b, c: a * b + c),
}


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("name", ARITHMETIC)
@FIXED
@given(seed=seeds)
def test_arithmetic(name: str, kind: str, seed: int) -> None:
    arity, model = ARITHMETIC[name]
    check(
        f"{name}.{kind} %d, {sources(arity)};",
        (kind,) * arity,
        kind,
        of_kind(kind, model),
        seed,
    )


@pytest.mark.parametrize("kind", WORDS)
@FIXED
@given(seed=seeds)
def test_mul_hi(kind: str, seed: int) -> None:
    model = of_kind(kind, lambda a, b: (a * b) >> bits_of(kind))
    check(f"mul.hi.{kind} %d, %a, %b;", (kind, kind), kind, model, seed)


@pytest.mark.parametrize("kind", WORDS)
@FIXED
@given(seed=seeds)
def test_mad_hi(kind: str, seed: int) -> None:
    model = of_kind(kind, lambda a, b, c: ((a * b) >> bits_of(kind)) + c)
    check(f"mad.hi.{kind} %d, %a, %b, %c;", (kind,) * 3, kind, model, seed)


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32"])
@FIXED
@given(seed=seeds)
def test_mul_and_mad_wide(kind: str, seed: int) -> None:
    wide = f"{kind[0]}{2 * bits_of(kind)}"
    check(
        f"mul.wide.{kind} %d, %a, %b;",
        (kind, kind),
        wide,
        of_kind(kind, lambda a, b: a * b),
        seed,
    )

    def multiply_add(a: int, b: int, c: int) -> int:
        return read(a, kind) * read(b, kind) + c

    check(
        f"mad.wide.{kind} %d, %a, %b, %c;", (kind, kind, wide), wide, multiply_add, seed
    )


def clamp32(value: int) -> int:
    return min(max(value, -(1 << 31)), (1 << 31) - 1)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("add.sat", lambda a, b: clamp32(a + b)),
        ("sub.sat", lambda a, b: clamp32(a - b)),
    ],
)
@FIXED
@given(seed=seeds)
def test_saturating_s32(name: str, model: Model, seed: int) -> None:
    check(f"{name}.s32 %d, %a, %b;", ("s32", "s32"), "s32", of_kind("s32", model), seed)


@FIXED
@given(seed=seeds)
def test_mad_hi_sat(seed: int) -> None:
    model = of_kind("s32", lambda a, b, c: clamp32(((a * b) >> 32) + c))
    check("mad.hi.sat.s32 %d, %a, %b, %c;", ("s32",) * 3, "s32", model, seed)


def signed24(value: int) -> int:
    return signed(value & 0xFFFFFF, 24)


@pytest.mark.parametrize(
    ("name", "kind", "model"),
    [
        ("mul24.lo", "u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
        ("mul24.lo", "s32", lambda a, b: signed24(a) * signed24(b)),
        ("mul24.hi", "u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16),
        ("mul24.hi", "s32", lambda a, b: signed24(a) * signed24(b) >> 16),
    ],
)
@FIXED
@given(seed=seeds)
def test_mul24(name: str, kind: str, model: Model, seed: int) -> None:
    check(f"{name}.{kind} %d, %a, %b;", (kind, kind), kind, model, seed)


@pytest.mark.parametrize("kind", ["u32", "s32"])
@FIXED
@given(seed=seeds)
def test_mad24_lo(kind: str, seed: int) -> None:
    low = signed24 if kind == "s32" else (lambda value: value & 0xFFFFFF)
    check(
        f"mad24.lo.{kind} %d, %a, %b, %c;",
        (kind,) * 3,
        kind,
        lambda a, b, c: low(a) * low(b) + c,
        seed,
    )


@pytest.mark.parametrize("kind", WORDS)
@FIXED
@given(seed=seeds)
def test_sad(kind: str, seed: int) -> None:
    def model(a: int, b: int, c: int) -> int:
        return c + abs(read(a, kind) - read(b, kind))

    check(f"sad.{kind} %d, %a, %b, %c;", (kind,) * 3, kind, model, seed)


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
@FIXED
@given(seed=seeds)
def test_abs_and_neg(kind: str, seed: int) -> None:
    check(f"abs.{kind} %d, %a;", (kind,), kind, of_kind(kind, lambda a: abs(a)), seed)
    check(f"neg.{kind} %d, %a;", (kind,), kind, of_kind(kind, lambda a: -a), seed)


def bytes_of(value: int, kind: str) -> list[int]:
    parts = [value >> 8 * i & 0xFF for i in range(4)]
    return [signed(part, 8) for part in parts] if kind[0] == "s" else parts


@pytest.mark.parametrize("right", ["u32", "s32"])
@pytest.mark.parametrize("left", ["u32", "s32"])
@FIXED
@given(seed=seeds)
def test_dp4a_and_dp2a(left: str, right: str, seed: int) -> None:
    def four(a: int, b: int, c: int) -> int:
        pairs = zip(bytes_of(a, left), bytes_of(b, right), strict=True)
        return c + sum(x * y for x, y in pairs)

    def halves(a: int) -> list[int]:
        parts = [a & 0xFFFF, a >> 16]
        return [signed(part, 16) for part in parts] if left[0] == "s" else parts

    def two(first: int) -> Model:
        def model(a: int, b: int, c: int) -> int:
            chosen = bytes_of(b, right)[first : first + 2]
            return c + sum(x * y for x, y in zip(halves(a), chosen, strict=True))

        return model

    kinds = ("b32", "b32", "b32")
    check(f"dp4a.{left}.{right} %d, %a, %b, %c;", kinds, "b32", four, seed)
    check(f"dp2a.lo.{left}.{right} %d, %a, %b, %c;", kinds, "b32", two(0), seed)
    check(f"dp2a.hi.{left}.{right} %d, %a, %b, %c;", kinds, "b32", two(2), seed)


@pytest.mark.parametrize("bits", [32, 64])
@FIXED
@given(seed=seeds)
def test_add_carry_chain(bits: int, seed: int) -> None:
    """Two words by two words, and the carry out of the upper ones."""
    kind = f"u{bits}"
    columns = operands(seed, kind, kind, kind, kind)
    inputs = {
        name: (f"b{bits}", array(column, bits))
        for name, column in zip("abce", columns, strict=True)
    }
    outputs = {"d": f"b{bits}", "f": f"b{bits}", "g": f"b{bits}"}
    add = (
        f"add.cc.{kind} %d, %a, %c;\naddc.cc.{kind} %f, %b, %e;\naddc.{kind} %g, 0, 0;"
    )
    sub = (
        f"sub.cc.{kind} %d, %a, %c;\nsubc.cc.{kind} %f, %b, %e;\nsubc.{kind} %g, 0, 0;"
    )
    for text, sign in ((add, 1), (sub, -1)):
        got = run_lanes(text, inputs, outputs)
        totals = [
            (b << bits | a) + sign * (e << bits | c)
            for a, b, c, e in zip(*columns, strict=True)
        ]
        for place, name in enumerate("dfg"):
            wanted = [wrap(total >> place * bits, bits) for total in totals]
            check_lanes(got[name], wanted, columns)


@FIXED
@given(seed=seeds)
def test_additions_and_subtractions_in_one_chain(seed: int) -> None:
    """As ptxas has it: addc takes 1 where nothing was borrowed, subc - 1 + carry."""
    columns = operands(seed, "u32", "u32", "u32")
    inputs = {
        name: ("b32", array(column, 32))
        for name, column in zip("abc", columns, strict=True)
    }
    text = """
    sub.cc.u32 %d, %a, %b;
    addc.u32 %f, %c, 0;
    add.cc.u32 %d, %a, %b;
    subc.u32 %g, %c, 0;
    """
    got = run_lanes(text, inputs, dict.fromkeys("dfg", "b32"))
    rows = list(zip(*columns, strict=True))
    check_lanes(got["f"], [wrap(c + (a >= b), 32) for a, b, c in rows], columns)
    carries = [(a + b) >> 32 for a, b, _ in rows]
    wanted = [
        wrap(c - 1 + carry, 32) for (*_, c), carry in zip(rows, carries, strict=True)
    ]
    check_lanes(got["g"], wanted, columns)


@FIXED
@given(seed=seeds)
def test_mad_carry_chain(seed: int) -> None:
    """64 x 64 -> 128 bits from 32-bit mad.lo.cc / madc.hi.cc steps."""
    columns = operands(seed, "u32", "u32", "u32", "u32")
    inputs = {
        name: ("b32", array(column, 32))
        for name, column in zip("abce", columns, strict=True)
    }
    text = """
    mul.lo.u32     %d, %a, %c;
    mul.hi.u32     %f, %a, %c;
    mad.lo.cc.u32  %f, %a, %e, %f;
    madc.hi.u32    %g, %a, %e, 0;
    mad.lo.cc.u32  %f, %b, %c, %f;
    madc.hi.cc.u32 %g, %b, %c, %g;
    addc.u32       %h, 0, 0;
    mad.lo.cc.u32  %g, %b, %e, %g;
    madc.hi.u32    %h, %b, %e, %h;
    """
    got = run_lanes(text, inputs, dict.fromkeys("dfgh", "b32"))
    totals = [
        (b << 32 | a) * (e << 32 | c) for a, b, c, e in zip(*columns, strict=True)
    ]
    for place, name in enumerate("dfgh"):
        wanted = [wrap(total >> 32 * place, 32) for total in totals]
        check_lanes(got[name], wanted, columns)


def by_halves(operation: Callable[[int, int], int], kind: str) -> Model:
    def model(a: int, b: int) -> int:
        parts = [operation(read(a >> s, kind), read(b >> s, kind)) for s in (0, 16)]
        return wrap(parts[1], 16) << 16 | wrap(parts[0], 16)

    return model


@pytest.mark.parametrize("kind", ["u16", "s16"])
@pytest.mark.parametrize(
    ("name", "operation"), [("add", lambda a, b: a + b), ("min", min), ("max", max)]
)
@FIXED
@given(seed=seeds)
def test_packed_halves_sm90(
    name: str, operation: Callable[[int, int], int], kind: str, seed: int
) -> None:
    check(
        f"{name}.{kind}x2 %d, %a, %b;",
        ("b32", "b32"),
        "b32",
        by_halves(operation, kind),
        seed,
        target="sm_90",
        version="8.0",
    )


def test_immediates() -> None:
    """Every way to write a constant."""
    body = """
    mov.u32 %d, 0x1F;
    add.s32 %d, %d, -7;
    xor.b32 %d, %d, 0b1011;
    add.u32 %d, %d, 017;
    add.u32 %d, %d, 42U;
    mov.f32 %f, 0f3F800000;
    mov.b64 %g, 0xFFFFFFFFFFFFFFFF;
    mov.f64 %h, 0d3FF8000000000000;
    mov.f32 %i, 2.5;
    """
    inputs = {"a": ("b32", np.zeros(32, np.uint32))}
    outputs = {"d": "b32", "f": "f32", "g": "b64", "h": "f64", "i": "f32"}
    got = run_lanes(body, inputs, outputs, block=32)
    assert got["d"].tolist() == [(((0x1F - 7) ^ 0b1011) + 0o17 + 42)] * 32
    assert got["f"].view(np.float32).tolist() == [1.0] * 32
    assert got["g"].tolist() == [2**64 - 1] * 32
    assert got["h"].view(np.float64).tolist() == [1.5] * 32
    assert got["i"].view(np.float32).tolist() == [2.5] * 32
