"""Logic, shifts, bit fields, permutes and moves against Python integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from integer_lanes import Model, check
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

LOGIC: dict[str, tuple[int, Model]] = {
    "and": (2, lambda a, b: a & b),
    "or": (2, lambda a, b: a | b),
    "xor": (2, lambda a, b: a ^ b),
    "not": (1, lambda a: ~a),
    "cnot": (1, lambda a: int(a == 0)),
}


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@pytest.mark.parametrize("name", LOGIC)
@FIXED
@given(seed=seeds)
def test_logic(name: str, kind: str, seed: int) -> None:
    arity, model = LOGIC[name]
    check(f"{name}.{kind} %d, {sources(arity)};", (kind,) * arity, kind, model, seed)


@pytest.mark.parametrize("kind", ["u16", "u32", "u64", "s16", "s32", "s64", "b32"])
@FIXED
@given(seed=seeds)
def test_shr_clamps_its_amount(kind: str, seed: int) -> None:
    def model(a: int, b: int) -> int:
        return read(a, kind) >> min(b, bits_of(kind))

    check(f"shr.{kind} %d, %a, %b;", (kind, "u32"), kind, model, seed)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@FIXED
@given(seed=seeds)
def test_shl_clamps_its_amount(kind: str, seed: int) -> None:
    def model(a: int, b: int) -> int:
        return a << min(b, bits_of(kind))

    check(f"shl.{kind} %d, %a, %b;", (kind, "u32"), kind, model, seed)


def funnel(direction: str, mode: str) -> Model:
    def model(low: int, high: int, amount: int) -> int:
        n = min(amount, 32) if mode == "clamp" else amount & 31
        both = high << 32 | low
        return (both << n) >> 32 if direction == "l" else both >> n

    return model


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("direction", ["l", "r"])
@FIXED
@given(seed=seeds)
def test_shf(direction: str, mode: str, seed: int) -> None:
    check(
        f"shf.{direction}.{mode}.b32 %d, %a, %b, %c;",
        ("b32", "b32", "u32"),
        "b32",
        funnel(direction, mode),
        seed,
    )


@pytest.mark.parametrize("table", [0x00, 0xFF, 0x80, 0xFE, 0x96, 0x1A, 0xCA, 0x6A])
@FIXED
@given(seed=seeds)
def test_lop3(table: int, seed: int) -> None:
    def model(a: int, b: int, c: int) -> int:
        result = 0
        for bit in range(32):
            index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)
            result |= (table >> index & 1) << bit
        return result

    check(f"lop3.b32 %d, %a, %b, %c, {table:#x};", ("b32",) * 3, "b32", model, seed)


def test_lop3_every_table() -> None:
    """All 256 look-up tables in one kernel; a, b, c hold every bit combination."""
    body = "mov.b32 %d, 0;\n"
    for table in range(256):
        body += f"lop3.b32 %t0, %a, %b, %c, {table};\n"
        # fold the eight result bits of this table in, so that none can be swapped
        body += "and.b32 %t0, %t0, 255;\nmad.lo.u32 %d, %d, 2654435761, %t0;\n"
    truth = {"a": 0xF0, "b": 0xCC, "c": 0xAA}
    inputs = {
        name: ("b32", np.full(32, value, np.uint32)) for name, value in truth.items()
    }
    got = run_lanes(body, inputs, {"d": "b32"}, block=32)["d"]
    wanted = 0
    for table in range(256):
        wanted = wrap(wanted * 2654435761 + table, 32)
    assert got.tolist() == [wanted] * 32


@pytest.mark.parametrize("bound", [127, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@FIXED
@given(seed=seeds)
def test_bfe(kind: str, bound: int, seed: int) -> None:
    """Fields inside and across the end of the word, then any bounds at all."""
    width = bits_of(kind)

    def model(a: int, b: int, c: int) -> int:
        position, length = b & bound & 255, c & bound & 255
        sign = 0
        if kind[0] == "s" and length:
            sign = a >> min(position + length - 1, width - 1) & 1
        bits = [
            a >> (position + i) & 1 if i < length and position + i < width else sign
            for i in range(width)
        ]
        return sum(bit << i for i, bit in enumerate(bits))

    text = f"and.b32 %t0, %b, {bound}; and.b32 %t1, %c, {bound};"
    check(
        f"{text} bfe.{kind} %d, %a, %t0, %t1;", (kind, "u32", "u32"), kind, model, seed
    )


@pytest.mark.parametrize("kind", ["b32", "b64"])
@FIXED
@given(seed=seeds)
def test_bfi(kind: str, seed: int) -> None:
    width = bits_of(kind)

    def model(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 127, length & 127
        result = b
        for i in range(length):
            if position + i < width:
                bit = 1 << (position + i)
                result = result & ~bit | (bit if a >> i & 1 else 0)
        return result

    text = "and.b32 %t0, %c, 127; and.b32 %t1, %e, 127;"
    check(
        f"{text} bfi.{kind} %d, %a, %b, %t0, %t1;",
        (kind, kind, "u32", "u32"),
        kind,
        model,
        seed,
    )


@FIXED
@given(seed=seeds)
def test_bfi_uses_the_low_byte_of_its_bounds(seed: int) -> None:
    def model(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        mask = ((1 << length) - 1) << position
        return b & ~mask | (a << position) & mask

    check(
        "bfi.b32 %d, %a, %b, %c, %e;", ("b32", "b32", "u32", "u32"), "b32", model, seed
    )


def most_significant(value: int, kind: str) -> int:
    """bfind: the highest bit that differs from the sign, else all ones."""
    bits = bits_of(kind)
    number = read(value, kind)
    if number < 0:
        number = ~number
    return number.bit_length() - 1 if number else wrap(-1, bits)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
@FIXED
@given(seed=seeds)
def test_bfind(kind: str, seed: int) -> None:
    def place(a: int) -> int:
        return wrap(most_significant(a, kind), 32)

    def shift(a: int) -> int:
        found = place(a)
        return found if found == 0xFFFFFFFF else bits_of(kind) - 1 - found

    check(f"bfind.{kind} %d, %a;", (kind,), "u32", place, seed)
    check(f"bfind.shiftamt.{kind} %d, %a;", (kind,), "u32", shift, seed)


@pytest.mark.parametrize("kind", ["b32", "b64"])
@FIXED
@given(seed=seeds)
def test_popc_clz_brev(kind: str, seed: int) -> None:
    bits = bits_of(kind)
    check(f"popc.{kind} %d, %a;", (kind,), "u32", lambda a: a.bit_count(), seed)
    check(f"clz.{kind} %d, %a;", (kind,), "u32", lambda a: bits - a.bit_length(), seed)
    check(
        f"brev.{kind} %d, %a;",
        (kind,),
        kind,
        lambda a: int(f"{a:0{bits}b}"[::-1], 2),
        seed,
    )


def picked_byte(pair: int, selector: int) -> int:
    byte = pair >> 8 * (selector & 7) & 0xFF
    return (0xFF if byte & 0x80 else 0) if selector & 8 else byte


def permute_default(a: int, b: int, c: int) -> int:
    pair = b << 32 | a
    return sum(picked_byte(pair, c >> 4 * i & 15) << 8 * i for i in range(4))


# Table of PTX ISA, prmt: the source byte of result bytes 0 to 3 for each value of c.
PERMUTE_MODES = {
    "f4e": lambda c: [c, c + 1, c + 2, c + 3],
    "b4e": lambda c: [c, c + 7, c + 6, c + 5],
    "rc8": lambda c: [c, c, c, c],
    "ecl": lambda c: [max(i, c) for i in range(4)],
    "ecr": lambda c: [min(i, c) for i in range(4)],
    "rc16": lambda c: [(c & 1) * 2, (c & 1) * 2 + 1] * 2,
}


@FIXED
@given(seed=seeds)
def test_prmt(seed: int) -> None:
    check(
        "prmt.b32 %d, %a, %b, %c;", ("b32", "b32", "u32"), "b32", permute_default, seed
    )


@pytest.mark.parametrize("mode", PERMUTE_MODES)
@FIXED
@given(seed=seeds)
def test_prmt_modes(mode: str, seed: int) -> None:
    def model(a: int, b: int, c: int) -> int:
        pair = b << 32 | a
        places = PERMUTE_MODES[mode](c & 3)
        return sum((pair >> 8 * (p & 7) & 0xFF) << 8 * i for i, p in enumerate(places))

    check(f"prmt.b32.{mode} %d, %a, %b, %c;", ("b32", "b32", "u32"), "b32", model, seed)


@FIXED
@given(seed=seeds)
def test_packing_moves(seed: int) -> None:
    """mov between a wide register and the vector of its parts."""
    check(
        "mov.b64 {%t0, %t1}, %a; mov.b64 %d, {%t1, %t0};",
        ("b64",),
        "b64",
        lambda a: a >> 32 | a << 32,
        seed,
    )
    check(
        ".reg .b16 %h<2>; mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};",
        ("b32",),
        "b32",
        lambda a: a >> 16 | a << 16,
        seed,
    )
    check(
        ".reg .b16 %h<4>; mov.b64 {%h0, %h1, %h2, %h3}, %a; "
        "mov.b64 %d, {%h3, %h2, %h1, %h0};",
        ("b64",),
        "b64",
        lambda a: sum((a >> 16 * i & 0xFFFF) << 16 * (3 - i) for i in range(4)),
        seed,
    )


@pytest.mark.parametrize("kind", ["u32", "s32"])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@FIXED
@given(seed=seeds)
def test_bmsk_and_szext(mode: str, kind: str, seed: int) -> None:
    def mask(a: int, b: int) -> int:
        if mode == "wrap":
            return ((1 << (b & 31)) - 1) << (a & 31)
        return ((1 << min(b, 32)) - 1) << min(a, 32)

    def extend(a: int, b: int) -> int:
        width = b & 31 if mode == "wrap" else min(b, 32)
        low = a & ((1 << width) - 1)
        return signed(low, width) if kind[0] == "s" and width else low

    check(f"bmsk.{mode}.b32 %d, %a, %b;", ("u32", "u32"), "b32", mask, seed)
    check(f"szext.{mode}.{kind} %d, %a, %b;", ("b32", "u32"), "b32", extend, seed)


@pytest.mark.parametrize("operator", ["and", "or"])
@FIXED
@given(seed=seeds)
def test_lop3_with_a_predicate(operator: str, seed: int) -> None:
    """lop3.op.b32 d|p: p says whether d is not zero, combined with q."""
    columns = operands(seed, "b32", "b32", "b32")
    columns.append([lane % 2 for lane in range(len(columns[0]))])
    for lane in range(0, len(columns[0]), 3):
        columns[1][lane] = columns[0][lane]
        columns[2][lane] = 0
    inputs = {
        name: ("pred" if name == "e" else "b32", array(column, 32))
        for name, column in zip("abce", columns, strict=True)
    }
    body = f"""
    lop3.{operator}.b32 %d|%q0, %a, %b, %c, 0x96, %e;
    lop3.{operator}.b32 _|%q1, %a, %b, %c, 0x96, !%e;
    selp.u32 %f, 1, 0, %q0; @%q1 add.u32 %f, %f, 2;
    """
    got = run_lanes(body, inputs, {"d": "b32", "f": "b32"})
    words: list[int | None] = []
    flags: list[int | None] = []
    for a, b, c, e in zip(*columns, strict=True):
        word = a ^ b ^ c
        some = word != 0
        both = (some and e, some and not e)
        either = (some or e, some or not e)
        one, other = both if operator == "and" else either
        words.append(word)
        flags.append(int(bool(one)) + 2 * int(bool(other)))
    check_lanes(got["d"], words, columns)
    check_lanes(got["f"], flags, columns)


@FIXED
@given(seed=seeds)
def test_fns(seed: int) -> None:
    """The nth set bit from a bit on, upwards or downwards."""

    def model(mask: int, base: int, offset: int) -> int | None:
        base, count = base % 32, signed(offset, 32) % 9 - 4
        places = [i for i in range(32) if mask >> i & 1]
        if count == 0:
            return base if base in places else 0xFFFFFFFF
        upwards = [i for i in places if i >= base]
        downwards = [i for i in reversed(places) if i <= base]
        found = (upwards if count > 0 else downwards)[abs(count) - 1 :]
        return found[0] if found else 0xFFFFFFFF

    text = """
    and.b32 %t0, %b, 31; rem.s32 %t1, %c, 9; setp.lt.s32 %q0, %t1, 0;
    @%q0 add.s32 %t1, %t1, 9; sub.s32 %t1, %t1, 4;
    fns.b32 %d, %a, %t0, %t1;
    """
    check(text, ("b32", "u32", "s32"), "b32", model, seed)
