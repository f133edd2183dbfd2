"""Registers are used again where no value is lost."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from alcop_mlir.runtime.ptx_registers import reuse

REGISTER = re.compile(r"%[a-z]+\d+\b")
STEPS = 400  # of a walk through a program


def kernel(*lines: str) -> str:
    """A kernel of these lines."""
    declared = "\t.reg .pred \t%p<90>;\n\t.reg .b32 \t%r<90>;\n"
    body = "".join(f"\t{line}\n" for line in lines)
    return f".visible .entry f()\n{{\n{declared}\n{body}}}\n"


def lines(ptx: str) -> list[str]:
    """What stands in the kernel, without declarations."""
    body = ptx.partition("{\n")[2].rpartition("}")[0]
    return [line.strip() for line in body.splitlines() if line and ".reg" not in line]


def test_what_is_dead_is_used_again() -> None:
    found = reuse(
        kernel(
            "mov.u32 %r1, %tid.x; // which",
            "add.s32 %r2, %r1, 1;",
            "ld.global.v2.b32 {%r3, %r4}, [%r2];",
            "mma.sync.aligned",
            "\t{%r5, %r6},",
            "\t{%r3, %r4};",
            "st.global.b32 [%r1], %r6;",
            "ret;",
        )
    )
    assert lines(found) == [
        "mov.u32 %r1, %tid.x;",
        "add.s32 %r2, %r1, 1;",
        "ld.global.v2.b32 {%r2, %r3}, [%r2];",
        "mma.sync.aligned",
        "{%r2, %r3},",
        "{%r2, %r3};",
        "st.global.b32 [%r1], %r3;",
        "ret;",
    ]
    assert ".reg .b32 \t%r<4>;" in found
    assert ".reg .pred \t%p<1>;" in found


def test_what_a_guard_may_leave_is_kept() -> None:
    text = kernel(
        "mov.b32 %r1, 0;",
        "setp.eq.s32 %p1, %r1, 1;",
        "mov.b32 %r2, 7;",
        "@%p1 ld.global.b32 %r2, [%r1];",
        "st.global.b32 [%r1], %r2;",
        "ret;",
    )
    assert lines(reuse(text)) == lines(text)


@pytest.mark.parametrize(
    "line",
    [
        "{ .reg .b32 t; mov.b32 t, %r2; }",
        "call.uni vprintf, (%r2);",
        "@%p1 brx.idx %r2, $table;",
        "wgmma.fence.sync.aligned;",
    ],
)
def test_what_is_not_known_stays(line: str) -> None:
    text = kernel("mov.b32 %r7, 0;", line, "ret;")
    assert reuse(text) == text


def test_other_instructions_read_all_that_they_name() -> None:
    text = kernel("mov.b32 %r1, 0;", "odd.b32 %r2, %r1;", "odd.b32 %r2, %r2;", "ret;")
    assert lines(reuse(text)) == [
        one.replace("%r1", "%r3").replace("%r2", "%r1").replace("%r3", "%r2")
        for one in lines(text)
    ]


@dataclass(frozen=True)
class Line:
    """A statement of a random program; to: the line that it may jump to."""

    text: str
    written: int = 0  # so many registers come first
    to: int | None = None


def program(draw: random.Random, count: int) -> list[Line]:
    """Statements that write, read and jump anywhere."""
    found: list[Line] = []
    for number in range(count):
        near = range(1 + number // 3, 7 + number // 3)
        a, b, c = (f"%r{one}" for one in draw.sample(near, 3))
        p = f"%p{1 + number // 8}"
        to = draw.randrange(max(0, number - 20), min(count, number + 20))
        some = [
            Line(f"mov.b32 {a}, {number};", 1),
            Line(f"add.s32 {a}, {b}, {c};", 1),
            Line(f"@{p} add.s32 {a}, {b}, {c};", 1),
            Line(f"ld.global.v2.b32 {{{a}, {b}}}, [{c}];", 2),
            Line(f"st.global.b32 [{a}], {b};"),
            Line(f"setp.eq.s32 {p}, {a}, {b};", 1),
            Line(f"@{p} bra $L{to};", to=to),
        ]
        found.append(draw.choice(some))
    return found


Write = tuple[int, int]  # the step, and which of the registers it writes


def walked(
    texts: Sequence[str], like: Sequence[Line], path: Sequence[int]
) -> list[Write | None]:
    """The writes that what the statements of a path read come from."""
    held: dict[str, Write] = {}
    found: list[Write | None] = []
    for step, number in enumerate(path):
        names = REGISTER.findall(texts[number])
        guards = int(texts[number].startswith("@"))
        written = names[guards : guards + like[number].written]
        read = names if guards else names[len(written) :]
        found += [held.get(name) for name in read]
        held |= {name: (step, i) for i, name in enumerate(written)}
    return found


def a_path(draw: random.Random, statements: Sequence[Line]) -> list[int]:
    """Numbers of statements, with each jump taken or not by chance."""
    found: list[int] = []
    at = 0
    while at < len(statements) and len(found) < STEPS:
        found.append(at)
        to = statements[at].to
        at = to if to is not None and draw.random() < 0.5 else at + 1
    return found


@pytest.mark.parametrize("seed", range(40))
def test_each_value_comes_from_where_it_came(seed: int) -> None:
    draw = random.Random(seed)
    statements = program(draw, 60)
    targets = {one.to for one in statements}
    text = kernel(
        *(
            f"$L{number}:\n\t{one.text}" if number in targets else one.text
            for number, one in enumerate(statements)
        )
    )
    before, after = (
        [line for line in lines(each) if not line.endswith(":")]
        for each in (text, reuse(text))
    )
    assert len(before) == len(after) == len(statements)
    for _ in range(10):
        path = a_path(draw, statements)
        was, now = (walked(each, statements, path) for each in (before, after))
        # What nothing has written may be anything.
        assert [b if a else a for a, b in zip(was, now, strict=True)] == was
