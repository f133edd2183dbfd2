"""Questions about memrefs: which allocation, which space, who reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.loops import defining_op
from alcop_mlir.analysis.slices import is_pure
from alcop_mlir.bindings import ir

WORKGROUP_SPACES = ("#gpu.address_space<workgroup>", "3 : i64", "3 : i32", "3")
VIEW_OPS = frozenset(
    "memref.subview memref.cast memref.reinterpret_cast memref.collapse_shape "
    "memref.expand_shape memref.view memref.memory_space_cast memref.transpose".split()
)
# Operand numbers that an op reads from and writes to.
_READS = {
    "memref.load": (0,),
    "vector.load": (0,),
    "vector.transfer_read": (0,),
    "vector.maskedload": (0,),
    "nvgpu.ldmatrix": (0,),
    "memref.copy": (0,),
    "linalg.copy": (0,),
    "alcop.async_copy": (0,),
}
_WRITES = {
    "memref.store": (1,),
    "vector.store": (1,),
    "vector.transfer_write": (1,),
    "vector.maskedstore": (0,),
    "memref.copy": (1,),
    "linalg.copy": (1,),
    "linalg.fill": (1,),
    "alcop.async_copy": (1,),
}
# Ops that touch no memory through a memref of theirs.
_NO_ACCESS = frozenset("memref.dealloc memref.assume_alignment".split())
_SYNCHRONISATION = frozenset(
    """
    gpu.barrier gpu.terminator scf.yield memref.alloc memref.alloca
    nvgpu.device_async_create_group nvgpu.device_async_wait
    alcop.producer_commit alcop.consumer_wait alcop.producer_acquire
    alcop.consumer_release
    """.split()
)


@dataclass(frozen=True)
class Access:
    """One use of a buffer: by `op`, which reads, writes or only views it."""

    op: Any
    reads: bool
    writes: bool


def is_workgroup(kind: Any) -> bool:
    """Whether a memref type lies in shared memory."""
    return isinstance(kind, ir.MemRefType) and (
        str(kind.memory_space) in WORKGROUP_SPACES
    )


def root(memref: Any) -> Any:
    """The value that `memref` is a view of: an allocation or an argument."""
    owner = defining_op(memref)
    while owner is not None and owner.operation.name in VIEW_OPS:
        memref = owner.operation.operands[0]
        owner = defining_op(memref)
    return memref


def accesses(buffer: Any) -> list[Access] | Any:
    """All reads and writes of `buffer` and its views, in the order of the uses.

    Instead of the list, the op that does with the buffer what is not understood.
    """
    found: list[Access] = []
    pending = [buffer]
    while pending:
        memref = pending.pop()
        for use in memref.uses:
            op = use.owner.operation
            reads = use.operand_number in _READS.get(op.name, ())
            writes = use.operand_number in _WRITES.get(op.name, ())
            if op.name in VIEW_OPS:
                pending.extend(op.results)
            elif reads or writes:
                found.append(Access(op, reads, writes))
            elif op.name not in _NO_ACCESS:
                return op
    return found


def written_roots(op: Any) -> list[tuple[Any, Any | None]]:
    """What `op` and its regions may write: (writer, root), root None if unknown."""
    found: list[tuple[Any, Any | None]] = []

    def visit(inner: Any) -> Any:
        name = inner.operation.name
        if name in _WRITES:
            found.extend(
                (inner.operation, root(inner.operation.operands[number]))
                for number in _WRITES[name]
            )
        elif not _is_harmless(inner.operation):
            found.append((inner.operation, None))
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def may_alias(one: Any, other: Any, noalias_arguments: bool) -> bool:
    """Whether two roots may share bytes.

    An allocation shares with nothing else, shared memory not with global memory;
    arguments may alias each other unless `noalias_arguments` says no.
    """
    if one == other:
        return True
    if is_workgroup(one.type) != is_workgroup(other.type):
        return False
    if _is_allocation(one) or _is_allocation(other):
        return False
    return not (noalias_arguments and _is_argument(one) and _is_argument(other))


def _is_harmless(op: Any) -> bool:
    if is_pure(op) or op.name in _SYNCHRONISATION or op.name in _READS:
        return True
    return op.name in ("scf.for", "scf.if")  # what they hold is visited by itself


def _is_allocation(memref: Any) -> bool:
    owner = defining_op(memref)
    return owner is not None and owner.operation.name in (
        "memref.alloc",
        "memref.alloca",
    )


def _is_argument(memref: Any) -> bool:
    return defining_op(memref) is None


def size_in_bytes(kind: Any) -> int | None:
    """Bytes of a static, contiguous memref type; None where they are not known."""
    if not kind.has_static_shape:
        return None
    elements = 1
    for extent in kind.shape:
        elements *= extent
    width = element_bits(kind.element_type)
    return None if width is None else -(-elements * width // 8)


def element_bits(kind: Any) -> int | None:
    """Width of an integer, float or index element type; None for others."""
    if isinstance(kind, ir.IndexType):
        return 64
    return getattr(kind, "width", None)
