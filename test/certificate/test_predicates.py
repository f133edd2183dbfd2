"""What a predicate is set to: of a number, whether it is another one than 0."""

from __future__ import annotations

import numpy as np
import pytest
from test_global_bounds import kernel

from alcop_mlir.certificate.linear import Condition
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.bounds.ways import is_same
from alcop_mlir.checker.machine.arithmetic import Holds
from alcop_mlir.checker.machine.exact import of_numbers
from alcop_mlir.checker.ptx.instructions import Instruction
from alcop_mlir.compilation.certification import certified

ONE = Requirement(1, 2**31 - 1)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("first", ["-1", "1", "2", "0"])
@pytest.mark.parametrize("more", ["not.pred %p2, %p1;", "xor.pred %p2, %p1, %p3;"])
def test_predicates_have_one_bit(is_open: bool, first: str, more: str) -> None:
    """An address is behind the array but where `%p2` holds: if `%p1` does not."""
    body = f"""
mov.pred %p1, {first};
mov.pred %p3, 1;
{more}
selp.b64 %d2, 0, 256, %p2;
add.s64 %d3, %a, %d2;
ld.global.f32 %f1, [%d3];
"""
    lengths = (((1, ("n",)),),) if is_open else ()
    words = {"a": Array(((256, ()),), lengths)}
    grid = {f"%ctaid.{axis}": ((((1, ()),), 1),) for axis in "xyz"}
    given = Preconditions(words, {}, {"n": ONE}, grid)
    report = certified(kernel(body, "a n"), "f", None, None, {}, 60, given)
    assert report.is_bounded == (first == "0"), report.loose
    assert ("it may be behind the array of a" in report.loose) == (first != "0")


@pytest.mark.parametrize(
    ("opcode", "values", "expected"),
    [
        ("mov.pred", [[0, 2]], [0, 1]),
        ("not.pred", [[0, 2]], [1, 0]),
        ("and.pred", [[2, 1], [1, 0]], [1, 0]),
        ("xor.pred", [[2, 0], [4, 4]], [0, 1]),
        ("selp.b32", [[5, 6], [7, 8], [0, 2]], [7, 6]),
        ("setp.lt.s32", [[3, 2**32 - 1], [2, 2]], [0, 1]),
        ("setp.hs.s32", [[3, 2**32 - 1], [2, 2]], [1, 1]),
        ("cvt.u16.u32", [[65537, 2]], [1, 2]),
        ("cvt.s16.u32", [[65537, 2]], None),
        ("add.s64", [[1, 2], [2, 2]], None),
    ],
)
def test_what_an_instruction_leaves_of_numbers(
    opcode: str, values: list[list[int]], expected: list[int] | None
) -> None:
    """In two threads, and in a register of 32 bits, or a predicate."""
    is_bit = opcode.startswith("setp") or opcode.endswith("pred")
    names = ("%r1", "%r2", "%r3", "%r4")[: len(values) + 1]
    ins = Instruction("", False, opcode, names)
    lanes = [np.array(one, np.uint64) for one in values]
    found = of_numbers(ins, lanes, 1 if is_bit else 32)
    assert (None if found is None else found.tolist()) == expected


def test_never_is_another_predicate_than_always() -> None:
    """Predicates, and questions, are known by their text."""
    assert not is_same(Holds([], [[]]), Holds([[]], []))
    assert Condition((), ((),)).text != Condition(((),), ()).text
