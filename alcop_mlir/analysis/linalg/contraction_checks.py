"""What tile code asks of the operands of a contraction: types, layouts, filling up.

Each check raises NoContraction, with the reason. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.analysis.ir.gathered_rows import MAX_POSITIONS, gathered_rows
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.memref_layouts import has_negative_strides
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    OperandTransform,
)
from alcop_mlir.analysis.linalg.zero_fill import LONGEST_STEP_BYTES, why_fill_disturbs
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import EIGHT_BIT_FLOATS, OUTPUT_TYPES, STORED_TYPES


def filled(memrefs: Sequence[ir.Value], k: int | None) -> int | None:
    """The number of neighbouring elements along K that tiles fill up: K, or a tap's."""
    runs = [one.run for one in map(gathered_rows, memrefs[:2]) if one is not None]
    return runs[0] if runs else k


def check_fill(
    block: ir.Block, transforms: Sequence[OperandTransform], k: int | None
) -> None:
    """Where tiles may be filled up with zeros, these must add nothing."""
    step = 8 * LONGEST_STEP_BYTES // transforms[0].kind.width
    is_whole = k is not None and k % step == 0
    why = None if is_whole else why_fill_disturbs(block, transforms)
    if why is not None:
        raise NoContraction(why)


def check_stored(transform: OperandTransform, stored: ir.Value, loops: str) -> None:
    """The type in memory of an operand that has an operand transform."""
    if not transform.is_computed or stored == transform.kind:
        return
    if str(stored) not in STORED_TYPES:
        raise NoContraction(
            f"has an operand transform of {stored}, expected {', '.join(STORED_TYPES)}"
        )
    if transform.kind.width == 8 and not loops.endswith("k"):
        raise NoContraction(
            f"has an operand transform of {stored} to {transform.kind} stored across "
            "K, expected along K"
        )


def check_types(
    left: OperandTransform, right: OperandTransform, out: str, allow_tf32: bool
) -> None:
    lhs, rhs = str(left.kind), str(right.kind)
    if lhs != rhs and not {lhs, rhs} <= {*EIGHT_BIT_FLOATS}:
        raise NoContraction(f"multiplies {lhs} by {rhs}, expected inputs of one type")
    is_computed = left.is_computed or right.is_computed
    what = f"multiplies {lhs}" if is_computed else f"has {lhs} inputs"
    if lhs not in OUTPUT_TYPES:
        raise NoContraction(f"{what}, expected {', '.join(OUTPUT_TYPES)}")
    if lhs == "f32" and not allow_tf32:
        raise NoContraction(
            f"{what}, which tensor cores round to tf32 (10 bits of mantissa): done "
            "with the option 'allow-tf32' only"
        )
    if out not in OUTPUT_TYPES[lhs]:
        raise NoContraction(
            f"{what} and has {out} output, expected output of "
            f"{' or '.join(OUTPUT_TYPES[lhs])}"
        )


def check_gathered(value: ir.Value, loops: str) -> None:
    """Of a matrix that is never made, tiles must have rows along K.

    Of a batch of them that indices name, the batch is their first dimension.
    """
    is_taken = made_by(value, "alcop.take") is not None
    if is_taken and not {*BATCHES}.isdisjoint(loops[1:]):
        raise NoContraction("has a batch of rows of tables, expected it outermost")
    rows = gathered_rows(value)
    if rows is None:
        return
    if not loops.endswith("k"):
        raise NoContraction(f"reduces the rows of '{rows.op.name}', expected them kept")
    positions = 0 if rows.window is None else sum(rows.window.size)
    if positions > MAX_POSITIONS:
        raise NoContraction(
            f"has a window of {positions} positions, all dimensions together, expected "
            f"{MAX_POSITIONS} at most"
        )


def check_memref(value: ir.Value) -> None:
    """Rows without gaps, in global memory."""
    memref = value.type
    strides, offset = memref.get_strides_and_offset()
    if has_negative_strides(memref):
        raise NoContraction(f"has an operand {memref} with a negative stride")
    if strides[-1] != 1:
        raise NoContraction(f"has the layout of {memref}, expected rows without gaps")
    if root(value) == value and offset != 0:
        raise NoContraction(
            f"has an operand {memref}, expected no offset: alcop-drop-offsets drops "
            "that of an argument"
        )
    if memref.memory_space is not None:
        raise NoContraction(f"has {memref} in a memory space of its own, expected none")
