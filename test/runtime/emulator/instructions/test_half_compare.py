"""set and setp of 16-bit floats, one or two in a register, against Python floats."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from exact_floats import BF16, F16, Format, decode
from hypothesis import given
from kernel_text import run_lanes
from operand_values import COUNT, FIXED, array, check_lanes, operands, seeds

FORMATS = {"f16": F16, "bf16": BF16}
ONE = {"f16": 0x3C00, "bf16": 0x3F80, "u16": 0xFFFF, "s32": 0xFFFFFFFF}
ORDERED: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a < b or a > b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "xor": lambda x, y: x != y,
}


def holds(name: str, fmt: Format, a: int, b: int, flushes: bool = False) -> bool:
    x, y = decode(fmt, a), decode(fmt, b)
    if flushes:
        small = float(fmt.smallest_normal)
        x, y = (0.0 if abs(value) < small else value for value in (x, y))
    unordered = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if name in ORDERED:
        return not unordered and ORDERED[name](x, y)
    return unordered or ORDERED[name.removesuffix("u")](x, y)


def halves(word: int) -> tuple[int, int]:
    return word & 0xFFFF, word >> 16


def columns_of(seed: int, kind: str) -> list[list[int]]:
    """Two columns of 16-bit operands, often equal."""
    columns = operands(seed, kind, kind)
    for lane in range(0, COUNT, 3):
        columns[1][lane] = columns[0][lane]
    return columns


def packed_columns(seed: int, kind: str) -> list[list[int]]:
    low, high = columns_of(seed, kind), columns_of(seed + 1, kind)
    for column in high:
        column.reverse()
    return [
        [x | y << 16 for x, y in zip(*pair, strict=True)]
        for pair in zip(low, high, strict=True)
    ]


NAMES = [*ORDERED, *(f"{name}u" for name in ORDERED), "num", "nan"]


SET_FORMS = [
    (kind, result)
    for kind in FORMATS
    for result in ("f16", "bf16", "u16", "s32")
    if (kind, result) != ("bf16", "f16")  # which ptxas refuses
]


@pytest.mark.parametrize(("kind", "result"), SET_FORMS)
@FIXED
@given(seed=seeds)
def test_set(kind: str, result: str, seed: int) -> None:
    columns = columns_of(seed, kind)
    inputs = {n: ("b16", array(c, 16)) for n, c in zip("ab", columns, strict=True)}
    register = "b32" if result == "s32" else "b16"
    for name in NAMES[seed % 3 :: 3]:
        body = f"set.{name}.{result}.{kind} %d, %a, %b;"
        got = run_lanes(body, inputs, {"d": register}, target="sm_90")["d"]
        wanted: list[int | None] = [
            ONE[result] * holds(name, FORMATS[kind], a, b)
            for a, b in zip(*columns, strict=True)
        ]
        check_lanes(got, wanted, columns)


@pytest.mark.parametrize("ftz", [False, True])
@FIXED
@given(seed=seeds)
def test_flushed_halves_are_zeros(ftz: bool, seed: int) -> None:
    columns = columns_of(seed, "f16")
    inputs = {n: ("b16", array(c, 16)) for n, c in zip("ab", columns, strict=True)}
    end = ".ftz" if ftz else ""
    body = f"setp.gt{end}.f16 %q0, %a, %b; selp.b32 %d, 1, 0, %q0;"
    got = run_lanes(body, inputs, {"d": "b32"})["d"]
    wanted: list[int | None] = [
        int(holds("gt", F16, a, b, ftz)) for a, b in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns)


@pytest.mark.parametrize("result", ["packed", "u32"])
@pytest.mark.parametrize("kind", FORMATS)
@FIXED
@given(seed=seeds)
def test_set_packed(kind: str, result: str, seed: int) -> None:
    columns = packed_columns(seed, kind)
    inputs = {n: ("b32", array(c, 32)) for n, c in zip("ab", columns, strict=True)}
    to = f"{kind}x2" if result == "packed" else result
    one = ONE[kind] if result == "packed" else 0xFFFF
    body = f"set.leu.{to}.{kind}x2 %d, %a, %b;"
    got = run_lanes(body, inputs, {"d": "b32"}, target="sm_90")["d"]
    wanted: list[int | None] = []
    for a, b in zip(*columns, strict=True):
        pairs = zip(halves(a), halves(b), strict=True)
        low, high = (one * holds("leu", FORMATS[kind], x, y) for x, y in pairs)
        wanted.append(low | high << 16)
    check_lanes(got, wanted, columns)


@pytest.mark.parametrize("operator", COMBINE)
@pytest.mark.parametrize("negated", ["", "!"])
@FIXED
@given(seed=seeds)
def test_packed_with_a_predicate(operator: str, negated: str, seed: int) -> None:
    """Both halves are combined with the one predicate."""
    columns = [*packed_columns(seed, "f16"), [i // 7 & 1 for i in range(COUNT)]]
    kinds = ("b32", "b32", "pred")
    inputs = {
        name: (kind, array(column, 32))
        for name, kind, column in zip("abc", kinds, columns, strict=True)
    }
    body = f"""
    setp.ge.{operator}.f16x2 %q0|%q1, %a, %b, {negated}%c;
    selp.u32 %d, 1, 0, %q0; @%q1 add.u32 %d, %d, 2;
    set.ge.{operator}.f16x2.f16x2 %e, %a, %b, {negated}%c;
    """
    got = run_lanes(body, inputs, {"d": "b32", "e": "b32"})
    bits: list[int | None] = []
    words: list[int | None] = []
    for a, b, c in zip(*columns, strict=True):
        pairs = zip(halves(a), halves(b), strict=True)
        given_bit = bool(c) != bool(negated)
        low, high = (
            COMBINE[operator](holds("ge", F16, x, y), given_bit) for x, y in pairs
        )
        bits.append(low + 2 * high)
        words.append(0x3C00 * low | 0x3C000000 * high)
    check_lanes(got["d"], bits, columns)
    check_lanes(got["e"], words, columns)
