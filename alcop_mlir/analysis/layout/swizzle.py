"""Which workgroup buffers can be swizzled, and how.

Shared memory has 32 banks of 4 bytes: 128 consecutive bytes are read at once. Three
ways of reading across rows are known, each in units of its own:

  ldmatrix      eight lanes read 16 bytes of the same column in eight rows
  single words  a warp reads eight words side by side (32 bytes) in four rows, as
                fragments of elements that ldmatrix cannot transpose
  word pairs    half a warp reads four pairs side by side (32 bytes) in four rows

W units (8, 4) must have W different offsets modulo 128 bytes. With rows of c units,
rows W / gcd(c, W) apart begin at the same offset; XOR of the unit's number with
row / (W / gcd(c, W)) % gcd(c, W) makes these offsets differ, and stays within the row
because gcd(c, W) divides c. Sixteen-byte accesses along a row stay free of conflicts,
and so do those of eight lanes that write four chunks each of two rows, four apart: for
units of 32 bytes, one more bit of the row sends these to the two halves of 128 bytes.

Single words may be read in every other row: where two words that lie across rows become
one of 16-bit elements. Units of 16 bytes give eight rows different offsets, and map two
neighbouring units of one of every other row to neighbours, so that these fit here.

A buffer with tiles that TMA copies (`alcop.boxes`) is swizzled by TMA, in units of 16
bytes: in rows of one pattern those that XOR gives here. What threads read of it has to
follow; copies by TMA, and descriptors of wgmma, do without.

A buffer of bytes may have several whole views: views of all of it, as elements of
different sizes. Rows must be equally long in all of them, to be permuted alike.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.alignment import divisor, element_bytes, has_whole_bytes
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.memref_layouts import is_contiguous
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.target import SHARED_BANK_BYTES, SHARED_BANKS

CHUNK_BYTES = 16  # the widest access of one lane, and a row of ldmatrix; [PTX]
_WORD_ROW_BYTES = 32  # of a row, that a warp reads by single words
_WAVE_BYTES = SHARED_BANKS * SHARED_BANK_BYTES  # served at once
_RANKS = (2, 3)  # rows and columns, perhaps of several slots
# Operand number of the memref in each op that may touch a swizzled buffer; its indices
# follow it.
_ACCESSES = {
    "nvgpu.ldmatrix": 0,
    "nvgpu.device_async_copy": 0,
    "memref.load": 0,
    "memref.store": 1,
    "vector.load": 0,
    "vector.store": 1,
}
_HARMLESS = frozenset(["memref.dealloc"])
# These are of boxes: copies are of parts of a buffer, or of all of it.
_BY_TMA = frozenset(
    [
        "memref.reinterpret_cast",
        "memref.extract_aligned_pointer_as_index",
        "nvgpu.tma.async.load",
        "nvgpu.tma.async.store",
    ]
)


@frozen
class Swizzle:
    """Element column `c` of row `r` lies at `c ^ (phase * elements)`.

    The phase is r / rows % phases; if `folds`, its highest bit is flipped by the bit
    above it.

    elements: in a unit
    """

    rows: int
    phases: int
    elements: int
    folds: bool = False


@frozen
class SwizzledAccess:
    """An access of a buffer: operand numbers of its row and column indices."""

    op: Any
    row: int
    column: int
    swizzle: Swizzle


@frozen
class SwizzlePlan:
    """A buffer that can be swizzled, and all accesses of it."""

    buffer: Any
    accesses: tuple[SwizzledAccess, ...]


def buffers(root: ir.Operation) -> list[Any]:
    """The workgroup allocations in `root`."""
    allocated = [one.results[0] for one in walk(root, "memref.alloc")]
    return [buffer for buffer in allocated if is_workgroup(buffer.type)]


def is_of_boxes(buffer: ir.Value) -> bool:
    """Whether TMA fills or stores it, so that accesses have to be swizzled."""
    is_argument = isinstance(buffer.owner, ir.Block)
    return not is_argument and alcop.BOXES in buffer.owner.attributes


def plan(buffer: ir.Value) -> SwizzlePlan | Rejected | None:
    """How to swizzle `buffer`; None where its rows have no conflicts to avoid.

    `Rejected` where they have, but one of its accesses cannot be swizzled.
    """
    if is_of_boxes(buffer):
        return _plan_boxes(buffer)
    views = _whole_views(buffer)
    unit = _unit_bytes(views)
    swizzles = [find_swizzle(view.type, unit) for view in views]
    if None in swizzles or len({_row_bytes(view.type) for view in views}) > 1:
        return None
    found: list[SwizzledAccess] = []
    for view, swizzle in zip(views, swizzles, strict=True):
        assert swizzle is not None
        for use in _uses(view):
            access = _access(use, view, swizzle)
            if isinstance(access, Rejected):
                return access
            found.append(access)
    return SwizzlePlan(buffer, tuple(found))


def _plan_boxes(buffer: ir.Value) -> SwizzlePlan | Rejected | None:
    """How to swizzle what threads read of tiles that TMA has swizzled."""
    uses = [use for use in _uses(buffer) if use.owner.operation.name not in _BY_TMA]
    swizzle = find_swizzle(buffer.type)
    found: list[SwizzledAccess] = []
    for use in uses:
        width = alcop.get_plain(buffer.owner, alcop.BOXES)["swizzle"]
        if swizzle is None or _row_bytes(buffer.type) != width:
            return Rejected(use.owner.operation, "reads rows of several boxes")
        access = _access(use, buffer, swizzle)
        if isinstance(access, Rejected):
            return access
        found.append(access)
    return SwizzlePlan(buffer, tuple(found)) if found else None


def find_swizzle(kind: ir.Type, unit: int = CHUNK_BYTES) -> Swizzle | None:
    """The swizzle for a static row-major memref type that is read in units of bytes.

    None where the rows have no bank conflicts.
    """
    if kind.rank not in _RANKS or not kind.has_static_shape:
        return None
    if not is_contiguous(kind) or not has_whole_bytes(kind.element_type):
        return None
    if _row_bytes(kind) % unit or CHUNK_BYTES % element_bytes(kind):
        return None
    wave = _WAVE_BYTES // unit
    phases = math.gcd(_row_bytes(kind) // unit, wave)
    if phases == 1:
        return None
    folds = unit == _WORD_ROW_BYTES and phases == wave
    return Swizzle(wave // phases, phases, unit // element_bytes(kind), folds)


def _whole_views(buffer: ir.Value) -> list[Any]:
    """The buffer; its whole views, if it is only used through these."""
    views = [use.owner.operation for use in _uses(buffer)]
    are_whole = all(
        op.name == "memref.view"
        and op.results[0].type.has_static_shape
        and constant(op.operands[1]) == 0
        for op in views
    )
    return [op.results[0] for op in views] if views and are_whole else [buffer]


def _uses(view: ir.Value) -> list[Any]:
    return [use for use in view.uses if use.owner.operation.name not in _HARMLESS]


def _unit_bytes(views: list[ir.Value]) -> int:
    """Bytes of the units that the buffer is read in."""
    users = [use.owner.operation for view in views for use in _uses(view)]
    readers = [op for op in users if _reads_words(op)]
    is_by_matrix = any(op.name == "nvgpu.ldmatrix" for op in users)
    if not readers or is_by_matrix or any(map(_skips_rows, readers)):
        return CHUNK_BYTES
    return _WORD_ROW_BYTES


def _reads_words(op: ir.Operation) -> bool:
    """Whether each lane loads one word, or two consecutive ones."""
    if op.name == "memref.load":
        return element_bytes(op.operands[0].type) == SHARED_BANK_BYTES
    if op.name != "vector.load":
        return False
    kind = op.results[0].type
    return math.prod(kind.shape) * element_bytes(kind) == 2 * SHARED_BANK_BYTES


def _skips_rows(op: ir.Operation) -> bool:
    """Whether lanes load single words of every other row only."""
    memory = op.operands[0].type
    if op.name != "memref.load" or memory.rank not in _RANKS:
        return False
    return divisor(op.operands[memory.rank - 1]) % 2 == 0


def _access(
    use: ir.OpOperand, view: ir.Value, swizzle: Swizzle
) -> SwizzledAccess | Rejected:
    op, number = use.owner.operation, use.operand_number
    if _ACCESSES.get(op.name) != number:
        return Rejected(op, f"it is used by '{op.name}'")
    column = number + view.type.rank
    if not _stays_in_chunk(op, column, element_bytes(view.type)):
        return Rejected(op, f"'{op.name}' may cross a chunk of {CHUNK_BYTES} bytes")
    return SwizzledAccess(op, column - 1, column, swizzle)


def _row_bytes(kind: ir.Type) -> int:
    return kind.shape[-1] * element_bytes(kind)


def _stays_in_chunk(op: ir.Operation, column: int, size: int) -> bool:
    """Whether the elements, of `size` bytes, that one lane touches lie in one chunk."""
    if op.name == "nvgpu.ldmatrix" or op.name.startswith("memref."):
        return True  # ldmatrix takes addresses of whole chunks only
    if op.name == "nvgpu.device_async_copy":  # takes multiples of its size
        return CHUNK_BYTES // size % op.attributes["dstElements"].value == 0
    value = op.results[0] if op.name == "vector.load" else op.operands[0]
    if value.type.rank != 1 or CHUNK_BYTES // size % value.type.shape[0]:
        return False
    elements, given = value.type.shape[0], op.attributes.get("alignment")
    is_aligned = given is not None and given.value % (elements * size) == 0
    return is_aligned or divisor(op.operands[column]) % elements == 0
