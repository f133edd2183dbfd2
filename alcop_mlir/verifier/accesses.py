"""Which ops access which slot of the buffers that asynchronous copies fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.bindings import ir

COPY, STORE, READ = "copy", "store", "read"
_UNKNOWN = "unknown"  # how an op accesses that is not understood
# Beginnings of names: ops that may wait for asynchronous copies besides nvgpu's wait.
_OTHER_WAITS = ("nvvm.", "nvgpu.mbarrier.", "llvm.inline_asm", "llvm.call", "func.call")
ASYNC_COPIES = ("alcop.async_copy", "alcop.async_gather", "nvgpu.device_async_copy")
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
    "alcop.async_gather": {0: READ, 1: COPY},
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
    "alcop.gather": {0: READ, 1: STORE},
    "vector.maskedload": {0: READ},
    "vector.maskedstore": {0: STORE},
    "vector.gather": {0: READ},
    "vector.scatter": {0: STORE},
    "affine.load": {0: READ},
    "affine.store": {1: STORE},
    "memref.atomic_rmw": {1: STORE},
    "memref.generic_atomic_rmw": {0: STORE},
    "gpu.subgroup_mma_load_matrix": {0: READ},
    "gpu.subgroup_mma_store_matrix": {1: STORE},
    "memref.prefetch": {},
    "memref.dim": {},
    "memref.view": {},
    "memref.extract_strided_metadata": {},
    "memref.extract_aligned_pointer_as_index": {},
    "memref.distinct_objects": {},
    "builtin.unrealized_conversion_cast": {},
    "linalg.yield": {},
}
# Dialects whose ops touch no memory but that of their operands.
_KNOWN_DIALECTS = tuple(
    f"{dialect}."
    for dialect in "affine alcop arith builtin cf complex gpu index math memref nvgpu "
    "nvvm scf ub vector".split()
)
_WHOLE = (
    "alcop.async_copy",
    "alcop.async_gather",
    "memref.copy",
    "linalg.copy",
    "linalg.fill",
)
_LDMATRIX_RANK = 2  # it reads rows and columns of a matrix


@dataclass(frozen=True)
class SlotAccess:
    """`op` accesses a slot of `buffer`.

    slot: an integer, or a value; None where the buffer has no slots that are known
    """

    op: Any
    kind: str
    buffer: Any
    slot: Any

    @property
    def slots(self) -> int:
        """The number of slots of the buffer; 1 where none are known."""
        return 1 if self.slot is None else self.buffer.type.shape[0]

    def __str__(self) -> str:
        return f"'{self.buffer.type}'"


def find_accesses(kernel: ir.Operation) -> list[SlotAccess]:
    """All accesses to the buffers that asynchronous copies of `kernel` fill.

    Of a buffer with an access whose slot is not known, no access has one. Buffers with
    an access that is not understood are left out; so are those without known slots
    where the kernel may wait for copies by other ops than nvgpu's.
    """
    found = [access for op in inside(kernel.operation) for access in slot_accesses(op)]
    filled = {access.buffer for access in found if access.kind == COPY}
    vague = {access.buffer for access in found if access.slot is None}
    filled -= {access.buffer for access in found if access.kind == _UNKNOWN}
    if any(op.name.startswith(_OTHER_WAITS) for op in inside(kernel)):
        filled -= vague
    return [
        replace(access, slot=None) if access.buffer in vague else access
        for access in found
        if access.buffer in filled
    ]


def slot_accesses(op: Any) -> list[SlotAccess]:
    """The accesses of `op` itself to buffers in shared memory."""
    if op.name in VIEWS:
        return []
    return [
        access
        for number, operand in enumerate(op.operands)
        if is_workgroup(operand.type)
        for access in _accesses(op, number)
    ]


def inside(op: Any) -> Iterator[Any]:
    """The ops in the regions of `op`, at any depth, outer ops first."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from inside(inner.operation)


def touched(op: Any) -> list[tuple[Any, str]]:
    """The workgroup buffers that `op` itself accesses, and how; whatever the slot."""
    return [
        (root(memref), kind)
        for memref, kind in accessed(op) or ()
        if is_workgroup(memref.type)
    ]


def accessed(op: Any) -> list[tuple[Any, str]] | None:
    """The memrefs that `op` itself accesses, and how; None where that is not known.

    Not what ops in its regions do.
    """
    touches = _touches(op)
    if touches is not None:
        return [(op.operands[number], kind) for number, kind in touches.items()]
    is_known = op.name in VIEWS or op.name.startswith(("arith.", "scf."))
    if is_known or not any(_is_address(value.type) for value in op.operands):
        return [] if op.name.startswith(_KNOWN_DIALECTS) else None
    return None


def root(memref: ir.Value) -> Any:
    """What `memref` is a view of."""
    return _origin(memref)[0]


def _touches(op: Any) -> dict[int, str] | None:
    """How `op` accesses the operand of each number; None where it is not listed."""
    if op.name == "linalg.generic":
        inputs, outputs = op.attributes["operandSegmentSizes"]
        written = dict.fromkeys(range(inputs, inputs + outputs), STORE)
        return dict.fromkeys(range(inputs), READ) | written
    if op.name == "nvgpu.device_async_copy":
        indices = op.attributes["operandSegmentSizes"][1]
        return {0: COPY, 1 + indices: READ}
    return _TOUCHES.get(op.name, _TOUCHES_BEFORE.get(op.name))


def _is_address(kind: ir.Type) -> bool:
    return str(kind).startswith(("memref<", "!llvm.ptr"))


def _accesses(op: ir.Operation, number: int) -> list[SlotAccess]:
    buffer, views = _origin(op.operands[number])
    touches = _TOUCHES.get(op.name)
    if touches is None:
        return [SlotAccess(op, _UNKNOWN, buffer, None)]
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


def is_workgroup(kind: ir.Type) -> bool:
    """Whether a type is a memref in shared memory."""
    if not isinstance(kind, ir.MemRefType) or kind.memory_space is None:
        return False
    space = kind.memory_space
    return "workgroup" in str(space) or str(space).startswith("3")
