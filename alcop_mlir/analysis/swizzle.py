"""Which workgroup buffers can be swizzled, and how.

Shared memory has 32 banks of 4 bytes: 128 bytes side by side are read at once. Eight
lanes that each read 16 bytes of the same column in eight rows (an ldmatrix phase) must
find them in eight different places modulo 128 bytes. With rows of c chunks of 16 bytes,
rows 8 / gcd(c, 8) apart begin at the same place; XOR of the chunk number with
row / (8 / gcd(c, 8)) % gcd(c, 8) tells those apart, and stays within the row because
gcd(c, 8) divides c. Sixteen-byte accesses along a row stay free of conflicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import divisor, element_bytes, has_whole_bytes
from alcop_mlir.analysis.memory import is_workgroup
from alcop_mlir.bindings import ir
from alcop_mlir.target import SHARED_BANK_BYTES, SHARED_BANKS

CHUNK_BYTES = 16  # the widest access of one lane, and a row of ldmatrix; [PTX]
_WAVE_CHUNKS = SHARED_BANKS * SHARED_BANK_BYTES // CHUNK_BYTES  # served at once
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


@dataclass(frozen=True)
class Swizzle:
    """Element column `c` of row `r` lies at `c ^ (r / rows % phases * elements)`.

    elements: in a chunk
    """

    rows: int
    phases: int
    elements: int


@dataclass(frozen=True)
class Access:
    """An access of a buffer: operand numbers of its row and column indices."""

    op: Any
    row: int
    column: int


@dataclass(frozen=True)
class Plan:
    """A buffer that can be swizzled."""

    buffer: Any
    swizzle: Swizzle
    accesses: tuple[Access, ...]


@dataclass(frozen=True)
class Rejected:
    """A buffer that would gain, and the op that stands in the way."""

    op: Any
    reason: str


def buffers(root: Any) -> Iterator[Any]:
    """The workgroup allocations in `root`."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "memref.alloc" and is_workgroup(op.results[0].type):
            found.append(op.results[0])
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(found)


def plan(buffer: Any) -> Plan | Rejected | None:
    """How to swizzle `buffer`; None where its rows have no conflicts to avoid."""
    swizzle = find_swizzle(buffer.type)
    if swizzle is None:
        return None
    found: list[Access] = []
    for use in buffer.uses:
        op, number = use.owner.operation, use.operand_number
        if op.name in _HARMLESS:
            continue
        if _ACCESSES.get(op.name) != number:
            return Rejected(op, f"it is used by '{op.name}'")
        column = number + buffer.type.rank
        if not _stays_in_chunk(op, column, swizzle):
            return Rejected(op, f"'{op.name}' may cross a chunk of {CHUNK_BYTES} bytes")
        found.append(Access(op, column - 1, column))
    return Plan(buffer, swizzle, tuple(found))


def find_swizzle(kind: Any) -> Swizzle | None:
    """For a static row-major memref type; None where rows do not collide."""
    if kind.rank not in _RANKS or not kind.has_static_shape:
        return None
    if not _has_no_gaps(kind) or not has_whole_bytes(kind.element_type):
        return None
    size = element_bytes(kind)
    row_bytes = kind.shape[-1] * size
    if row_bytes % CHUNK_BYTES or CHUNK_BYTES % size:
        return None
    phases = math.gcd(row_bytes // CHUNK_BYTES, _WAVE_CHUNKS)
    if phases == 1:
        return None
    return Swizzle(_WAVE_CHUNKS // phases, phases, CHUNK_BYTES // size)


def _has_no_gaps(kind: Any) -> bool:
    """Whether rows follow each other from the start, and slots too."""
    strides = [math.prod(kind.shape[dim + 1 :]) for dim in range(kind.rank)]
    return kind.get_strides_and_offset() == (strides, 0)


def _stays_in_chunk(op: Any, column: int, swizzle: Swizzle) -> bool:
    """Whether the elements that one lane touches lie in one chunk."""
    elements = _elements(op, swizzle)
    if elements is None or swizzle.elements % elements:
        return False
    if op.name == "nvgpu.ldmatrix" or elements == 1:
        return True  # ldmatrix takes addresses of whole chunks only
    attributes = op.attributes
    if op.name == "nvgpu.device_async_copy":
        return True  # cp.async takes addresses that are multiples of its size
    aligned = attributes["alignment"].value if "alignment" in attributes else 1
    bytes_of_one = CHUNK_BYTES // swizzle.elements
    return (
        aligned % (elements * bytes_of_one) == 0
        or divisor(op.operands[column]) % elements == 0
    )


def _elements(op: Any, swizzle: Swizzle) -> int | None:
    """Elements side by side that one lane touches; None if that is not how."""
    if op.name == "nvgpu.ldmatrix":
        return swizzle.elements
    if op.name == "nvgpu.device_async_copy":
        return op.attributes["dstElements"].value
    if op.name.startswith("memref."):
        return 1
    value = op.results[0] if op.name == "vector.load" else op.operands[0]
    return value.type.shape[0] if value.type.rank == 1 else None
