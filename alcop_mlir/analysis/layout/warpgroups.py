"""What a warpgroup multiplies by `wgmma`: which contractions of tile code are one.

Four neighbouring warps, each with the same columns and 16*R rows that follow those of
the warp before, have what R wgmma of 64 rows make: of these a lane has the
accumulators that it has of mma.sync's. Instruction i of R takes of each warp the 8-row
groups i and R + i, which is a distance of R groups in its descriptor (PTX ISA,
"wgmma.mma_async", fragments of D and "Matrix descriptor format").

Elements of 16 bits may lie along K or across it; others only along K, as wgmma has bits
to transpose an operand for f16 and bf16 alone (PTX ISA, "wgmma.mma_async",
imm-trans-a). Floats of eight bits are multiplied as they are, also of two types. What
is rounded to tf32 is read as f32: the copy engine rounds it on the way into shared
memory (`tensor_boxes.py`), since wgmma itself would ignore the last bits.

Accumulators of floats of eight bits are less exact than f32: the tensor cores of an
H100 keep some 14 bits of each while they add a step's terms to it (DeepSeek-V3
technical report, arXiv 2412.19437, section 3.3.2: up to 2 % of error with K = 4096). It
is what torch._scaled_mm calls `use_fast_accum`. Who needs more asks for `engine=mma`,
which multiplies them as f16.

A may also be computed, element by element, of a tile in memory: its fragments, which
are those of mma.sync, are then in registers, of any type and order in memory. Piece i
of a warp's rows is that of instruction i then. B is read from memory always.

`warpgroup_product` answers for a `vector.contract`; nothing is changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.index_terms import Terms, terms
from alcop_mlir.analysis.ir.kernels import is_thread_x
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout, transfer_dims
from alcop_mlir.analysis.layout.fragments import (
    READ,
    contraction_layouts,
    is_elementwise,
    is_uniform,
    multiplied,
)
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ACCUMULATORS, ELEMENT_TYPES
from alcop_mlir.frozen import frozen
from alcop_mlir.target import MAX_WGMMA_N, MMA_F16_SHAPE, WARP_SIZE, WARPGROUP

# Columns: PTX ISA, wgmma.mma_async, ".shape"; of integers beyond 32.
_STEP_N, _INTEGER_STEP_N = 8, 16
_ACROSS_K = ("f16", "bf16")  # that wgmma transposes
_CASTS = ("arith.truncf", "arith.extf")


@frozen
class WarpgroupOperand:
    """A or B of a contraction: the read of shared memory that gives it.

    along_k: whether its rows are along K (K-major), else across it (MN-major)
    element: the type that is multiplied, by MLIR's name
    in_registers: whether it is computed of what is read: A only
    """

    read: Any
    along_k: bool
    element: str
    in_registers: bool = False


@frozen
class WarpgroupProduct:
    """A contraction that a warpgroup computes.

    rows:    of a warp; 16 for each wgmma
    columns: of a wgmma
    threads: that compute a tile; others compute others. 0 for all of a block
    """

    a: WarpgroupOperand
    b: WarpgroupOperand
    rows: int
    columns: int
    threads: int = 0

    @property
    def accumulators(self) -> str:
        """Their type, by MLIR's name."""
        return ACCUMULATORS[self.a.element]

    @property
    def instructions(self) -> int:
        """How many wgmma have the rows of a warp."""
        return self.rows // MMA_F16_SHAPE[0]


def warpgroup_product(contract: ir.Operation) -> WarpgroupProduct | str:
    """What a warpgroup multiplies where its warps run `contract`; or why it is none."""
    accumulators = contract.operands[2]
    layouts = contraction_layouts(contract)
    left, right = multiplied(contract)
    a, b = _operand(left, layouts[0]), _operand(right, layouts[1])
    if isinstance(b, str):
        is_computed = tile_reads(right) is not None and operand_read(right) is None
        return "B is computed, which wgmma takes of A alone" if is_computed else b
    if isinstance(a, str):
        a = _computed(left, layouts[0]) or a
    if isinstance(a, str):
        return a
    if layouts[2].dims != "mn":
        return "accumulators are transposed"
    rows, columns = accumulators.type.shape
    is_integer = isinstance(accumulators.type.element_type, ir.IntegerType)
    step = _INTEGER_STEP_N if is_integer else _STEP_N
    if columns % step or columns > MAX_WGMMA_N:
        return (
            f"a warp has {columns} columns, expected a multiple of {step} up to "
            f"{MAX_WGMMA_N}"
        )
    if rows > MMA_F16_SHAPE[0] and not (a.along_k or a.in_registers):
        return (
            f"a warp has {rows} rows of an A that is stored across K, expected "
            f"{MMA_F16_SHAPE[0]}"
        )
    threads = _threads(a, rows)
    if threads is None:
        return f"rows of a warp are not {rows} times the number of the warp"
    return _not_shared(b) or WarpgroupProduct(a, b, rows, columns, threads)


def operand_read(value: ir.Value) -> Any | None:
    """The read of A or B, also of what it is rounded to tf32 from; None of others."""
    rounding = made_by(value, "arith.truncf")
    if rounding is not None and isinstance(value.type.element_type, ir.FloatTF32Type):
        value = rounding.operands[0]
    return made_by(value, READ)


def is_cast_of_operand(op: ir.Operation) -> bool:
    """Whether wgmma may read what `op` is made of: f32 rounded to tf32, or floats of
    eight bits that are widened for a vector.contract of two types.
    """
    return op.name in _CASTS and isinstance(op.results[0].type, ir.VectorType)


def reads_memory(contract: ir.Operation, number: int) -> bool:
    """Whether wgmma reads an operand from memory itself; else it is in registers."""
    value, layout = multiplied(contract)[number], contraction_layouts(contract)[number]
    return not isinstance(_operand(value, layout), str)


def _computed(value: ir.Value, layout: FragmentLayout) -> WarpgroupOperand | None:
    """A that is computed of a tile; None where it is none, or one of bytes across K,
    whose rows are in another order then.
    """
    reads = tile_reads(value)
    if reads is None or len(reads) != 1:
        return None
    (read,) = reads
    source = read.operands[0].type
    is_paired = element_bytes(source) == 1 and not layout.is_along_k
    if source.rank != 2 or not is_workgroup(source) or is_paired:
        return None
    element = str(value.type.element_type)
    return WarpgroupOperand(read, layout.is_along_k, element, in_registers=True)


def tile_reads(value: ir.Value) -> list[Any] | None:
    """The reads of matrices that a value is computed of, element by element, besides
    rows and columns; None where other ops compute it.
    """
    found, seen, pending = dict[Any, None](), set[Any](), [value]
    while pending:
        one = pending.pop()
        owner = one.owner
        if one in seen or is_uniform(one):
            continue
        seen.add(one)
        if isinstance(owner, ir.Block):
            return None
        maker = owner.operation
        if maker.name == READ:
            if None not in transfer_dims(maker):
                found[maker] = None
        elif is_elementwise(maker):
            vectors = (v for v in maker.operands if isinstance(v.type, ir.VectorType))
            pending += vectors
        else:
            return None
    return list(found)


def _operand(value: ir.Value, layout: Any) -> WarpgroupOperand | str:
    read = operand_read(value)
    if read is None or not is_workgroup(read.operands[0].type):
        return "an operand is computed, expected a read of shared memory"
    element = str(value.type.element_type)
    source = read.operands[0].type
    in_memory = ELEMENT_TYPES[element].stored_as
    if str(source.element_type) != in_memory:
        return f"an operand is {source.element_type} in memory, expected {in_memory}"
    dims = layout.rows_and_columns(transfer_dims(read))
    if source.rank != 2 or None in dims:
        return "what is read is no matrix"
    is_along_k = layout.dims[dims.index(1)] == "k"
    if not is_along_k and element not in _ACROSS_K:
        return (
            f"an operand of {element} is stored across K, expected along K, or "
            f"{' or '.join(_ACROSS_K)}"
        )
    return WarpgroupOperand(read, is_along_k, element)


def _row_index(operand: WarpgroupOperand) -> Any:
    """The index along M or N of what is read."""
    indices = list(operand.read.operands)[1:3]
    return indices[0] if operand.along_k else indices[1]


def _threads(a: WarpgroupOperand, rows: int) -> int | None:
    """How many threads compute a tile, 0 for all of a block; None where the rows of a
    warp are not `rows` times its number among these.

    The number is (thread / 32), or ((thread % 128) / 32), of threads in one line.
    """
    found = _divided(terms(_row_index(a)), rows)
    if found is None or found[:2] != ("div", WARP_SIZE):
        return None
    number = _divided(found[2], 1)
    if number is not None:
        kind, count, threads = number
        if kind != "rem" or count % (WARPGROUP * WARP_SIZE):
            return None
        return count if _is_thread(threads) else None
    return 0 if _is_thread(found[2]) else None


def _divided(found: Terms, times: int) -> tuple[str, int, Terms] | None:
    """The kind, the divisor and what is divided, of so many times a division."""
    if found.constant or len(found.multiples) != 1:
        return None
    ((part, number),) = found.multiples
    if number != times or not isinstance(part, tuple):
        return None
    kind, divided, divisor = part
    return kind, divisor, divided


def _is_thread(found: Terms) -> bool:
    """Whether it is the number of the thread along x."""
    if found.constant or len(found.multiples) != 1:
        return False
    ((part, number),) = found.multiples
    return number == 1 and isinstance(part, ir.Value) and is_thread_x(part)


def _not_shared(b: WarpgroupOperand) -> str | None:
    """None where all warps read the same columns."""
    if terms(_row_index(b)).known is not None:
        return None
    return "warps of a warpgroup have different columns, expected the same"
