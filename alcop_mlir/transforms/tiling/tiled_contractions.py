"""The contractions that alcop-tile-to-blocks tiles, and their tiles.

`TiledContraction` is what the attributes `alcop.contraction` and `alcop.schedule` and
the operands of an op say together; nothing here changes IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alcop_mlir.analysis.ir.code_motion import ops_after
from alcop_mlir.analysis.ir.gathered_rows import never_made
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.accumulator_init import marked_init
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES, matrix_loops
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.epilogue_fusion import (
    epilogue_op,
    is_stored,
    operand_loops,
)
from alcop_mlir.analysis.linalg.interleaved_columns import Interleaved
from alcop_mlir.analysis.linalg.nibbles import PER_BYTE, group_of
from alcop_mlir.analysis.linalg.operand_transforms import (
    OperandTransform,
    find_operand_transforms,
    in_type,
)
from alcop_mlir.analysis.linalg.view import Operand, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.schedule import MMA, Schedule
from alcop_mlir.target import mma_shape
from alcop_mlir.transforms.linalg.matrices import Size


@frozen
class TiledOperand:
    """A or B of a contraction; `transform` is what is multiplied of its elements.

    loops: which one indexes each dimension, "mk" or "bkn"; those of its matrices, with
           those of the batch
    """

    value: Any
    loops: str
    transform: OperandTransform

    @property
    def matrix_loops(self) -> str:
        """The loops that index one matrix of the operand."""
        return matrix_loops(self.loops)

    @property
    def per_element(self) -> int:
        """Elements along K that share one in memory: two where bytes hold nibbles."""
        return 1 if self.transform.nibble is None else PER_BYTE

    def in_memory(self, extents: Mapping[str, Any]) -> list[Any]:
        """Extents or offsets along each dimension of a matrix, as memory holds it."""
        return [
            _divided(extents[loop], self.per_element if loop == "k" else 1)
            for loop in self.matrix_loops
        ]


@frozen
class TiledGroups:
    """What the transform of B reads for each column and group along K.

    number: of the operand
    length: elements along K of a group
    """

    number: int
    value: Any
    length: int


@frozen
class TiledContraction:
    """A contraction to tile: op, operands, their loops, schedule."""

    op: Any
    operands: tuple[TiledOperand, TiledOperand]  # A and B
    out: Any
    out_loops: str  # "mn", "bmn"
    init: str  # "zero", "read", or "copy": read from another buffer
    init_copy: Any  # the op that copies or broadcasts that buffer, or None
    schedule: Schedule
    precision: str | None  # "tf32", or None: the operands' own
    epilogue: tuple[Elementwise, ...]  # ops to compute on the accumulators
    parts_of_k: int  # that are a batch of C, but not of A and B

    @property
    def buffers(self) -> list[tuple[Any, str]]:
        """All memref operands, each with the loops that index its dimensions.

        But A or B where it is never made, and its sizes are known at run time only.
        """
        return [
            *(
                (one.value, own_loops(one.value, one.loops))
                for one in self.operands
                if one.per_element == 1
                if never_made(one.value) is None or one.value.type.has_static_shape
            ),
            (self.out, own_loops(self.out, self.out_loops)),
            *(
                (operand.value, self.loops_of(element, operand))
                for element in self.epilogue
                if not isinstance(element, Interleaved)  # has columns of its own
                for operand in (*element.inputs, element.output)
                if operand.is_memref
            ),
        ]

    @property
    def groups(self) -> list[TiledGroups]:
        """What operand transforms read by groups along K."""
        inputs, numbers = view_of(self.op).inputs, self.operands[1].transform.others
        found = [(number, group_of(inputs[number])) for number in numbers]
        return [
            TiledGroups(number, inputs[number].value, group[1])
            for number, group in found
            if group is not None
        ]

    @property
    def fragment_extents(self) -> dict[str, int]:
        """Extents of what a warp multiplies in a step of the fragment loop."""
        rows, columns = self.schedule.warp
        element_bytes = self.operands[0].transform.kind.width // 8
        return {"m": rows, "n": columns, "k": mma_shape(element_bytes)[2]}

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
        return operand_loops(element, operand, own_loops(self.out, self.out_loops))

    @property
    def batches(self) -> str:
        """The loops of the batch that index the output, outer ones first."""
        return "".join(loop for loop in BATCHES if loop in self.out_loops)

    @property
    def reduced_batch(self) -> str:
        """The loop of the batch that is reduced, too; "" where none is."""
        used = self.operands[0].loops
        found = [one for one in BATCHES if one in used and one not in self.out_loops]
        return found[0] if found else ""

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


@frozen
class BlockTile:
    """The tile of C that a block computes; offsets are index values.

    sizes: of the loops of the contraction
    block: first row and column of the block's tile
    warp:  first row and column of the warp's part, within the tile
    batch: the iteration of the loops of the batch
    rectangles: the order of the rows of A and C; None where that is their own. Sizes
           and offsets then count the numbers of this order
    """

    contraction: TiledContraction
    sizes: dict[str, Size]
    block: dict[str, Any]
    warp: dict[str, Any]
    batch: Mapping[str, Any]
    rectangles: Rectangles | None = None


def _divided(extent: Any, by: int) -> Any:
    return extent // by if isinstance(extent, int) else build.div(extent, by)


def accumulator_type(element: ir.Type) -> Any:
    """The accumulator type of a contraction with such output elements."""
    is_integer = isinstance(element, ir.IntegerType)
    return build.integer(32) if is_integer else ir.F32Type.get()


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
    return TiledContraction(
        op=op,
        operands=_operands(op, contraction, schedule.engine),
        out=list(op.operands)[-1],
        out_loops=_matrix_loops(contraction.get("out", "mn")),
        init=contraction["init"],
        init_copy=_init_copy(op) if contraction["init"] == "copy" else None,
        schedule=schedule,
        precision=contraction.get("precision"),
        epilogue=tuple(_epilogue(op)),
        parts_of_k=contraction.get("parts_of_k", 1),
    )


def input_buffers(op: ir.Operation) -> list[tuple[Any, str]]:
    """A and B of a marked contraction, each with the loops that index it."""
    contraction = alcop.get(op, alcop.ContractionAttr)
    assert contraction is not None
    operands = _operands(op, contraction)
    return [(one.value, own_loops(one.value, one.loops)) for one in operands]


def _operands(
    op: ir.Operation, contraction: dict[str, Any], engine: str = MMA
) -> tuple[TiledOperand, TiledOperand]:
    found = find_operand_transforms(view_of(op))
    # wgmma multiplies what mma.sync does not.
    if "multiplied" in contraction and engine == MMA:
        found = in_type(found, contraction["multiplied"])
    first, second = found
    lhs, rhs = (second, first) if contraction.get("swapped") else (first, second)
    lhs_loops = _matrix_loops(contraction["lhs"])
    return (
        TiledOperand(op.operands[lhs.operand], lhs_loops, lhs),
        TiledOperand(op.operands[rhs.operand], contraction["rhs"], rhs),
    )


def _epilogue(op: ir.Operation) -> Iterator[Elementwise]:
    """The ops just after the contraction that are marked as its epilogue."""
    for below in ops_after(op):
        mark = alcop.get(below, alcop.ContractionAttr)
        if mark is None or mark.get("role") != "epilogue":
            return
        element = epilogue_op(below)
        if element is None:
            raise PassError(below, "is marked as epilogue, but is not element-wise")
        yield element


def _matrix_loops(loops: str) -> str:
    """`loops` with "m": a vector is a matrix of one row."""
    return loops if "m" in loops else f"{loops[:-1]}m{loops[-1]}"


def own_loops(buffer: ir.Value, loops: str) -> str:
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
