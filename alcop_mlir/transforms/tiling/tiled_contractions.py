"""The contractions that alcop-tile-to-blocks tiles, and the offsets of their tiles.

`TiledContraction` is what the attributes `alcop.contraction` and `alcop.schedule` and
the operands of an op say together; nothing here changes IR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.code_motion import ops_after
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.accumulator_init import marked_init
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.epilogue_fusion import is_stored, operand_loops
from alcop_mlir.analysis.linalg.operand_transforms import (
    OperandTransform,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.view import Operand, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import mma_shape


@dataclass(frozen=True)
class TiledContraction:
    """A contraction to tile: op, operands, their loops, schedule.

    The loops are those of the operands as matrices, with "b" where they have a batch.
    """

    op: Any
    transforms: tuple[OperandTransform, OperandTransform]  # of A and of B
    lhs: Any
    rhs: Any
    out: Any
    lhs_loops: str  # "mk", "bmk": which loop indexes each dimension
    rhs_loops: str  # "kn" or "nk"
    out_loops: str  # "mn"
    init: str  # "zero", "read", or "copy": read from another buffer
    init_copy: Any  # the op that copies or broadcasts that buffer, or None
    schedule: Schedule
    precision: str | None  # "tf32", or None: the operands' own
    epilogue: tuple[Elementwise, ...]  # ops to compute on the accumulators

    @property
    def buffers(self) -> list[tuple[Any, str]]:
        """All memref operands, each with the loops that index its dimensions."""
        operands = [
            (buffer, _own_loops(buffer, loops))
            for buffer, loops in (
                (self.lhs, self.lhs_loops),
                (self.rhs, self.rhs_loops),
                (self.out, self.out_loops),
            )
        ]
        return [
            *operands,
            *(
                (operand.value, self.loops_of(element, operand))
                for element in self.epilogue
                for operand in (*element.inputs, element.output)
                if operand.is_memref
            ),
        ]

    @property
    def element_bytes(self) -> int:
        """Size of the elements that are multiplied."""
        return self.transforms[0].kind.width // 8

    @property
    def fragment_extents(self) -> dict[str, int]:
        """Extents of what a warp multiplies in a step of the fragment loop."""
        rows, columns = self.schedule.warp
        return {"m": rows, "n": columns, "k": mma_shape(self.element_bytes)[2]}

    @property
    def results(self) -> list[Any]:
        """The buffers written here, by contraction or epilogue, and used elsewhere."""
        outputs = [self.out, *(element.output.value for element in self.epilogue)]
        ops = [self.op, *(element.op for element in self.epilogue)]
        return [
            buffer
            for number, buffer in enumerate(outputs)
            if buffer not in outputs[:number] and is_stored(buffer, ops)
        ]

    def loops_of(self, element: Elementwise, operand: Operand) -> str:
        """The loops that index an operand of the epilogue."""
        return operand_loops(element, operand, _own_loops(self.out, self.out_loops))

    @property
    def accumulates_batches(self) -> bool:
        """Whether the batch is reduced, too."""
        return "b" in self.lhs_loops + self.rhs_loops and "b" not in self.out_loops

    @property
    def accumulator_source(self) -> tuple[Any, str] | None:
        """What the accumulators start from, and its loops; None for zero."""
        if self.init == "zero":
            return None
        if self.init_copy is None:
            return self.out, self.out_loops
        copy = elementwise(self.init_copy)
        assert copy is not None, self.init_copy
        return copy.inputs[0].value, self.loops_of(copy, copy.inputs[0])


@dataclass(frozen=True)
class TileOffsets:
    """Base offsets of a block's and of a warp's tile in the output; index values."""

    block: dict[str, Any]  # first row, column of the block's tile
    warp: dict[str, Any]  # first row, column of the warp's part, within the tile
    batch: Any  # number of the matrix


def scheduled_contractions(func: ir.Operation) -> list[TiledContraction]:
    """The marked contractions of `func` that have a schedule, in order."""
    return [
        _tiled_contraction(op)
        for op in walk(func)
        if alcop.get(op, alcop.ScheduleAttr) and alcop.get(op, alcop.ContractionAttr)
    ]


def _tiled_contraction(op: ir.Operation) -> TiledContraction:
    contraction = alcop.get(op, alcop.ContractionAttr)
    schedule = Schedule.from_dict(alcop.get(op, alcop.ScheduleAttr) or {})
    assert contraction is not None
    first, second = find_operand_transforms(view_of(op))
    transforms = (second, first) if contraction.get("swapped") else (first, second)
    lhs, rhs = (op.operands[transform.operand] for transform in transforms)
    out = list(op.operands)[-1]
    return TiledContraction(
        op=op,
        transforms=transforms,
        lhs=lhs,
        rhs=rhs,
        out=out,
        lhs_loops=_matrix_loops(contraction["lhs"]),
        rhs_loops=contraction["rhs"],
        out_loops=_matrix_loops(contraction.get("out", "mn")),
        init=contraction["init"],
        init_copy=_init_copy(op) if contraction["init"] == "copy" else None,
        schedule=schedule,
        precision=contraction.get("precision"),
        epilogue=tuple(_epilogue(op)),
    )


def _epilogue(op: ir.Operation) -> Iterator[Elementwise]:
    """The ops just after the contraction that are marked as its epilogue."""
    for below in ops_after(op):
        mark = alcop.get(below, alcop.ContractionAttr)
        if mark is None or mark.get("role") != "epilogue":
            return
        element = elementwise(below)
        if element is None:
            raise PassError(below, "is marked as epilogue, but is not element-wise")
        yield element


def _matrix_loops(loops: str) -> str:
    """`loops` with "m": a vector is a matrix of one row."""
    return loops if "m" in loops else f"{loops[:-1]}m{loops[-1]}"


def _own_loops(buffer: ir.Value, loops: str) -> str:
    """`loops` without the "m" that a vector does not have."""
    return loops if len(loops) == buffer.type.rank else loops.replace("m", "")


def _init_copy(op: ir.Operation) -> Any:
    """The marked op above that is the accumulator initialisation."""
    found = marked_init(op)
    if found is None:
        raise PassError(
            op, "init is 'copy', but no copy into the output is marked as init"
        )
    return found.op
