"""Integer comparisons, selections and predicates."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from integer_lanes import check, register
from kernel_text import run_lanes
from operand_values import (
    COUNT,
    FIXED,
    array,
    bits_of,
    check_lanes,
    operands,
    read,
    seeds,
    signed,
)

WORDS = ["u16", "s16", "u32", "s32", "u64", "s64"]


COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
# lo, ls, hi, hs: the unsigned spellings of lt, le, gt, ge
UNSIGNED_COMPARE = dict(
    zip(["lo", "ls", "hi", "hs"], "lt le gt ge".split(), strict=True)
)


@pytest.mark.parametrize("kind", [*WORDS, "b16", "b32", "b64"])
@FIXED
@given(seed=seeds)
def test_setp(kind: str, seed: int) -> None:
    names = ["eq", "ne"] if kind[0] == "b" else list(COMPARE)
    unsigned = list(UNSIGNED_COMPARE) if kind[0] == "u" else []
    body = "mov.u32 %d, 0;\n"
    for place, name in enumerate(names + unsigned):
        body += f"setp.{name}.{kind} %q0, %a, %b;\n@%q0 or.b32 %d, %d, {1 << place};\n"
    columns = operands(seed, kind, kind)
    for lane in range(0, COUNT, 3):
        columns[1][lane] = columns[0][lane]  # equal operands are rare at random
    inputs = {
        name: (register(kind), array(column, bits_of(kind)))
        for name, column in zip("ab", columns, strict=True)
    }
    got = run_lanes(body, inputs, {"d": "b32"})["d"]
    tests = [COMPARE[UNSIGNED_COMPARE.get(name, name)] for name in names + unsigned]
    wanted: list[int | None] = [
        sum(test(read(a, kind), read(b, kind)) << i for i, test in enumerate(tests))
        for a, b in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns)


@pytest.mark.parametrize("operator", ["and", "or", "xor"])
@pytest.mark.parametrize("negated", ["", "!"])
@FIXED
@given(seed=seeds)
def test_setp_with_a_predicate(operator: str, negated: str, seed: int) -> None:
    """`setp.cmp.op p|q, a, b, c`: q takes the comparison's opposite."""
    columns = operands(seed, "s32", "s32", "u32")
    columns[2] = [value & 1 for value in columns[2]]
    inputs = {
        "a": ("b32", array(columns[0], 32)),
        "b": ("b32", array(columns[1], 32)),
        "c": ("pred", array(columns[2], 32)),
    }
    body = f"setp.lt.{operator}.s32 %q0|%q1, %a, %b, {negated}%c;\n"
    body += "selp.u32 %d, 1, 0, %q0; selp.u32 %f, 1, 0, %q1;"
    got = run_lanes(body, inputs, {"d": "b32", "f": "b32"})
    combine: dict[str, Callable[[bool, bool], bool]] = {
        "and": lambda x, y: x and y,
        "or": lambda x, y: x or y,
        "xor": lambda x, y: x != y,
    }
    for name, opposite in (("d", False), ("f", True)):
        wanted: list[int | None] = [
            int(
                combine[operator](
                    (signed(a, 32) < signed(b, 32)) != opposite,
                    bool(c) != bool(negated),
                )
            )
            for a, b, c in zip(*columns, strict=True)
        ]
        check_lanes(got[name], wanted, columns)


@FIXED
@given(seed=seeds)
def test_set_selp_slct(seed: int) -> None:
    check(
        "set.lt.u32.s32 %d, %a, %b;",
        ("s32", "s32"),
        "u32",
        lambda a, b: 0xFFFFFFFF * (signed(a, 32) < signed(b, 32)),
        seed,
    )
    check(
        "setp.gt.u32 %q0, %c, 7; selp.b32 %d, %a, %b, %q0;",
        ("b32", "b32", "u32"),
        "b32",
        lambda a, b, c: a if c > 7 else b,
        seed,
    )
    check(
        "slct.s32.s32 %d, %a, %b, %c;",
        ("s32", "s32", "s32"),
        "s32",
        lambda a, b, c: a if signed(c, 32) >= 0 else b,
        seed,
    )
    check(
        "slct.b64.f32 %d, %a, %b, %c;",
        ("b64", "b64", "f32"),
        "b64",
        lambda a, b, c: a if c <= 0x7F800000 or c == 0x80000000 else b,
        seed,
    )


@FIXED
@given(seed=seeds)
def test_predicate_logic(seed: int) -> None:
    columns = [
        [value & 1 for value in column] for column in operands(seed, "u32", "u32")
    ]
    inputs = {n: ("pred", array(c, 32)) for n, c in zip("ab", columns, strict=True)}
    body = """
    and.pred %q0, %a, %b;  or.pred %q1, %a, %b;  xor.pred %q2, %a, %b;
    not.pred %q3, %a;      mov.pred %q4, %b;
    mov.u32 %d, 0;
    @%q0 add.u32 %d, %d, 1;   @%q1 add.u32 %d, %d, 2;   @%q2 add.u32 %d, %d, 4;
    @%q3 add.u32 %d, %d, 8;   @%q4 add.u32 %d, %d, 16;  @!%q4 add.u32 %d, %d, 32;
    """
    got = run_lanes(body, inputs, {"d": "b32"})["d"]
    wanted: list[int | None] = [
        (a & b) + 2 * (a | b) + 4 * (a ^ b) + 8 * (1 - a) + 16 * b + 32 * (1 - b)
        for a, b in zip(*columns, strict=True)
    ]
    check_lanes(got, wanted, columns)
