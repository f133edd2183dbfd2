"""Which ops access which slot of the buffers that asynchronous copies fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir

COPY, STORE, READ = "copy", "store", "read"
ASYNC_COPIES = ("alcop.async_copy", "nvgpu.device_async_copy")
VIEWS = frozenset(
    """
    memref.subview memref.cast memref.collapse_shape memref.expand_shape
    memref.reinterpret_cast memref.transpose memref.memory_space_cast
    memref.assume_alignment
    """.split()
)
# How an op accesses the operand of each number.
_TOUCHES: dict[str, dict[int, str]] = {
    "alcop.async_copy": {0: READ, 1: COPY},
    "nvgpu.device_async_copy": {0: COPY},
    "memref.load": {0: READ},
    "vector.load": {0: READ},
    "vector.transfer_read": {0: READ},
    "nvgpu.ldmatrix": {0: READ},
    "memref.store": {1: STORE},
    "vector.store": {1: STORE},
    "vector.transfer_write": {1: STORE},
    "memref.copy": {0: READ, 1: STORE},
    "linalg.copy": {0: READ, 1: STORE},
    "linalg.fill": {1: STORE},
    "memref.dealloc": {},
}
# Of programs whose pipelines are not expanded yet.
_TOUCHES_BEFORE = {
    "alcop.copy": {0: READ, 1: STORE},
    "linalg.generic": {0: READ, 1: STORE},
    "vector.maskedload": {0: READ},
    "vector.maskedstore": {0: STORE},
}
_WHOLE = ("alcop.async_copy", "memref.copy", "linalg.copy", "linalg.fill")
_LDMATRIX_RANK = 2  # it reads rows and columns of a matrix


@dataclass(frozen=True)
class SlotAccess:
    """`op` accesses a slot of `buffer`.

    slot: an integer, or a value; None where the slot is not known
    """

    op: Any
    kind: str
    buffer: Any
    slot: Any

    @property
    def slots(self) -> int:
        """The number of slots of the buffer."""
        return self.buffer.type.shape[0]

    def __str__(self) -> str:
        return f"'{self.buffer.type}'"


def find_accesses(kernel: ir.Operation) -> list[SlotAccess]:
    """All accesses to the buffers that asynchronous copies of `kernel` fill.

    Buffers with an access whose slot is not known are left out.
    """
    found = [
        access
        for op in inside(kernel.operation)
        for number, operand in enumerate(op.operands)
        if _is_workgroup(operand.type) and op.name not in VIEWS
        for access in _accesses(op, number)
    ]
    filled = {access.buffer for access in found if access.kind == COPY}
    vague = {access.buffer for access in found if access.slot is None}
    return [access for access in found if access.buffer in filled - vague]


def inside(op: Any) -> Iterator[Any]:
    """The ops in the regions of `op`, at any depth, outer ops first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from inside(inner.operation)


def touched(op: Any) -> list[tuple[Any, str]]:
    """The workgroup buffers that `op` itself accesses, and how; whatever the slot."""
    touches = _TOUCHES.get(op.name) or _TOUCHES_BEFORE.get(op.name, {})
    return [
        (_origin(op.operands[number])[0], kind)
        for number, kind in touches.items()
        if number < len(op.operands) and _is_workgroup(op.operands[number].type)
    ]


def _accesses(op: ir.Operation, number: int) -> list[SlotAccess]:
    buffer, views = _origin(op.operands[number])
    touches = _TOUCHES.get(op.name)
    if touches is None:  # not understood: its buffer is not followed
        return [SlotAccess(op, READ, buffer, None)]
    if number not in touches:
        return []
    slot = _slot_of_view(views) if views else _slot_of_op(op, number, buffer)
    return [SlotAccess(op, touches[number], buffer, slot)]


def _origin(memref: ir.Value) -> tuple[Any, list[Any]]:
    """The buffer that `memref` is a view of, and the views, the buffer's own first."""
    views: list[Any] = []
    owner = memref.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in VIEWS:
        views.insert(0, owner.operation)
        memref = owner.operation.operands[0]
        owner = memref.owner
    return memref, views


def _slot_of_view(views: list[Any]) -> Any:
    """The index along the first dimension that the views select, or None."""
    first = next((view for view in views if view.name != "memref.cast"), None)
    if first is None or first.name != "memref.subview":
        return None
    if first.attributes["static_sizes"][0] != 1:
        return None
    offset = first.attributes["static_offsets"][0]
    return first.operands[1] if offset == ir.ShapedType.get_dynamic_size() else offset


def _slot_of_op(op: ir.Operation, number: int, buffer: ir.Value) -> Any:
    """The first index of an access to the buffer itself, where it is a slot."""
    rank = buffer.type.rank
    return op.operands[number + 1] if rank > _rank(op, rank) else None


def _rank(op: ir.Operation, whole: int) -> int:
    """The number of the buffer's last dimensions that `op` accesses."""
    if op.name in _WHOLE:
        return whole
    if op.name == "nvgpu.ldmatrix":
        return _LDMATRIX_RANK
    if op.name == "nvgpu.device_async_copy":
        return 1
    moved = op.results[0] if len(list(op.results)) else op.operands[0]
    return moved.type.rank if isinstance(moved.type, ir.VectorType) else 0


def _is_workgroup(kind: ir.Type) -> bool:
    if not isinstance(kind, ir.MemRefType) or kind.memory_space is None:
        return False
    space = kind.memory_space
    return "workgroup" in str(space) or str(space).startswith("3")
