"""Whether the rows of a block's tile are a rectangle of the positions of a window.

The rows of A are gathered anyway, and C is stored through `alcop.rows`; so is what the
epilogue reads by rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir import diagnostics, schedule_checks
from alcop_mlir.analysis.ir.gathered_rows import places_of
from alcop_mlir.analysis.linalg.contraction_letters import matrix_loops
from alcop_mlir.errors import ConfigError
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.transforms.tiling.tiled_contractions import TiledContraction


def rectangles_of(contraction: TiledContraction) -> Rectangles | None:
    """The order of the rows that the schedule asks for; None where it is their own.

    So it stays, with a remark, where the contraction does not allow another.
    """
    if contraction.schedule.rectangle == 1:
        return None
    places = places_of(contraction.operands[0].value)
    why = _why_not(contraction, places)
    if why or places is None:
        diagnostics.remark(
            contraction.op, f"{why}: blocks compute rows, not rectangles"
        )
        return None
    return Rectangles(places, contraction.schedule.sides)


def _why_not(contraction: TiledContraction, places: tuple[int, int] | None) -> str:
    try:
        schedule_checks.check_rectangle(contraction.schedule, places)
    except ConfigError as error:
        return str(error)
    for buffer, loops in _by_rows(contraction):
        if not buffer.type.has_static_shape:
            return f"{buffer.type} has a size that is known at run time only"
        if matrix_loops(loops) not in ("mn", "m0") or _gaps(buffer):
            return f"{buffer.type} is not read or written by rows of C"
    return ""


def _by_rows(contraction: TiledContraction) -> Iterator[tuple[Any, str]]:
    """The memrefs that the kernel accesses by the rows of C, and by which loops."""
    found = [(contraction.out, contraction.out_loops)]
    if contraction.accumulator_source is not None:
        found.append(contraction.accumulator_source)
    found += [
        (operand.value, contraction.loops_of(element, operand))
        for element in contraction.epilogue
        for operand in (*element.inputs, element.output)
        if operand.is_memref
    ]
    lhs = contraction.operands[0].transform
    found += [(contraction.op.operands[number], "m") for number in lhs.others]
    yield from (one for one in found if one[0].type.rank and "m" in one[1])


def _gaps(buffer: Any) -> bool:
    """Whether the elements of a row are not neighbours."""
    strides, _ = buffer.type.get_strides_and_offset()
    return strides[-1] != 1
