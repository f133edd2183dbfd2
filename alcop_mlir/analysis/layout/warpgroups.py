"""What a warpgroup multiplies by `wgmma`: which contractions of tile code are one.

Four neighbouring warps, each with the same columns and 16*R rows that follow those of
the warp before, have what R wgmma of 64 rows make: of these a lane has the
accumulators that it has of mma.sync's. Instruction i of R takes of each warp the 8-row
groups i and R + i, which is a distance of R groups in its descriptor (PTX ISA,
"wgmma.mma_async", fragments of D and "Matrix descriptor format").

`warpgroup_product` answers for a `vector.contract`; nothing is changed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.index_terms import Terms, terms
from alcop_mlir.analysis.ir.kernels import is_thread_x
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.layout.fragment_layout import transfer_dims
from alcop_mlir.analysis.layout.fragments import READ, contraction_layouts
from alcop_mlir.bindings import ir
from alcop_mlir.target import MAX_WGMMA_N, MMA_F16_SHAPE, WARP_SIZE

_STEP_N = 8  # columns: PTX ISA, wgmma.mma_async, ".shape"
_ELEMENTS = ("f16", "bf16")


@dataclass(frozen=True)
class WarpgroupOperand:
    """A or B of a contraction: the read of shared memory that gives it.

    along_k: whether its rows are along K (K-major), else across it (MN-major)
    """

    read: Any
    along_k: bool


@dataclass(frozen=True)
class WarpgroupProduct:
    """A contraction that a warpgroup computes.

    rows:    of a warp; 16 for each wgmma
    columns: of a wgmma
    """

    a: WarpgroupOperand
    b: WarpgroupOperand
    rows: int
    columns: int

    @property
    def instructions(self) -> int:
        """How many wgmma have the rows of a warp."""
        return self.rows // MMA_F16_SHAPE[0]


def warpgroup_product(contract: ir.Operation) -> WarpgroupProduct | str:
    """What a warpgroup multiplies where its warps run `contract`; or why it is none."""
    lhs, rhs, accumulators = contract.operands
    layouts = contraction_layouts(contract)
    if str(accumulators.type.element_type) != "f32":
        return f"accumulators are {accumulators.type.element_type}, expected f32"
    found = []
    for value, layout in zip((lhs, rhs), layouts, strict=False):
        operand = _operand(value, layout)
        if isinstance(operand, str):
            return operand
        found.append(operand)
    a, b = found
    if layouts[2].dims != "mn":
        return "accumulators are transposed"
    rows, columns = accumulators.type.shape
    if columns % _STEP_N or columns > MAX_WGMMA_N:
        return (
            f"a warp has {columns} columns, expected a multiple of {_STEP_N} up to "
            f"{MAX_WGMMA_N}"
        )
    if rows > MMA_F16_SHAPE[0] and not a.along_k:
        return (
            f"a warp has {rows} rows of an A that is stored across K, expected "
            f"{MMA_F16_SHAPE[0]}"
        )
    no = _misplaced(a, rows) or _not_shared(b)
    return no or WarpgroupProduct(a, b, rows, columns)


def _operand(value: ir.Value, layout: Any) -> WarpgroupOperand | str:
    read = made_by(value, READ)
    if read is None or not is_workgroup(read.operands[0].type):
        return "an operand is computed, expected a read of shared memory"
    element = str(value.type.element_type)
    source = read.operands[0].type
    if element not in _ELEMENTS or source.element_type != value.type.element_type:
        return f"an operand is {element}, expected one of {', '.join(_ELEMENTS)}"
    dims = layout.rows_and_columns(transfer_dims(read))
    if source.rank != 2 or None in dims:
        return "an operand is no read of a matrix"
    along_rows = layout.dims[dims.index(1)]
    return WarpgroupOperand(read, along_rows == "k")


def _row_index(operand: WarpgroupOperand) -> Any:
    """The index along M or N of what is read."""
    indices = list(operand.read.operands)[1:3]
    return indices[0] if operand.along_k else indices[1]


def _misplaced(a: WarpgroupOperand, rows: int) -> str | None:
    """None where the rows of a warp are `rows` times its number."""
    found = terms(_row_index(a))
    if _of_warp(found, rows):
        return None
    return f"rows of a warp are not {rows} times the number of the warp"


def _of_warp(found: Terms, rows: int) -> bool:
    """Whether it is `rows` times (thread / 32), of threads in one line."""
    if found.constant or len(found.multiples) != 1:
        return False
    ((part, times),) = found.multiples
    if times != rows or not isinstance(part, tuple):
        return False
    kind, threads, divisor = part
    parts = [one for one, number in threads.multiples if number == 1]
    return (
        (kind, divisor, threads.constant) == ("div", WARP_SIZE, 0)
        and len(parts) == len(threads.multiples) == 1
        and isinstance(parts[0], ir.Value)
        and is_thread_x(parts[0])
    )


def _not_shared(b: WarpgroupOperand) -> str | None:
    """None where all warps read the same columns."""
    if terms(_row_index(b)).known is not None:
        return None
    return "warps of a warpgroup have different columns, expected the same"
