"""Memrefs: their allocation, their memory space, and which ops read and write them.

What an op reads and writes is asked of one memref, or of an op with all that is in it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.kernels import KERNEL_OPS
from alcop_mlir.analysis.ir.loops import defining_op, made_by, without
from alcop_mlir.analysis.ir.slices import touches_no_memory
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir

WORKGROUP_SPACES = ("#gpu.address_space<workgroup>", "3 : i64", "3 : i32", "3")
# Block arguments of a gpu.launch before its attributions: ids and sizes along x, y, z.
LAUNCH_ARGUMENTS = 12
# Views whose type follows from that of what they view.
DERIVED_VIEWS = frozenset(
    "memref.subview memref.cast memref.collapse_shape memref.expand_shape "
    "memref.transpose".split()
)
# Also views that set offset and strides, or change the memory space.
VIEW_OPS = DERIVED_VIEWS | frozenset(
    "memref.reinterpret_cast memref.view memref.memory_space_cast".split()
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
    "alcop.copy": (0,),
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
    "alcop.copy": (1,),
    "nvgpu.device_async_copy": (0,),
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
# Ops with regions, and what ends these: the ops inside are visited themselves.
_HOLDERS = frozenset(
    "scf.for scf.if scf.while scf.condition scf.execute_region scf.index_switch "
    "affine.for affine.if affine.yield".split()
)


@dataclass(frozen=True)
class Access:
    """One use of a buffer by `op`, which reads or writes it."""

    op: Any
    reads: bool
    writes: bool


def is_workgroup(kind: ir.Type) -> bool:
    """Whether a type is a memref in workgroup memory."""
    space = kind.memory_space if isinstance(kind, ir.MemRefType) else None
    return space is not None and str(space) in WORKGROUP_SPACES


def root(memref: ir.Value) -> Any:
    """The memref that `memref` is a view of: an allocation or a block argument."""
    return without(memref, *VIEW_OPS)


def accesses(buffer: ir.Value) -> list[Access] | Any:
    """All reads and writes of `buffer` and its views, in the order of the uses.

    If a use is not understood, its op is returned instead of a list.
    """
    found: list[Access] = []
    pending = [buffer]
    while pending:
        memref = pending.pop()
        for use in memref.uses:
            op = use.owner.operation
            reads, writes = _access(op, use.operand_number)
            if op.name in DERIVED_VIEWS:
                pending.extend(op.results)
            elif reads or writes:
                found.append(Access(op, reads, writes))
            elif op.name not in _NO_ACCESS:
                return op
    return found


def written_roots(op: ir.Operation) -> list[tuple[Any, Any | None]]:
    """What `op` and its regions may write: (writer, root), root None if unknown."""
    found: list[tuple[Any, Any | None]] = []
    # What a linalg op does to single elements follows from its operands.
    for inner in walk(op, enter=lambda one: not one.name.startswith("linalg.")):
        written = _written_operands(inner)
        found.extend((inner, root(inner.operands[number])) for number in written)
        if not written and not _is_harmless(inner):
            found.append((inner, None))
    return found


def global_reads(op: ir.Operation) -> list[tuple[Any, Any]]:
    """Values that `op` and its regions load from global memory: (value, root)."""
    # Copies into shared memory have no results, and are checked by themselves.
    return [
        (inner.results[0], root(inner.operands[number]))
        for inner in walk(op, *_READS)
        for number in _READS[inner.name]
        if len(inner.results) and not is_workgroup(inner.operands[number].type)
    ]


def shared_roots_in(op: ir.Operation) -> set[Any]:
    """The workgroup buffers that `op` and its regions use."""
    used = {value for inner in walk(op) for value in inner.operands}
    return {root(value) for value in used if is_workgroup(value.type)}


def exchanges_globally(
    op: ir.Operation, copied: Collection[ir.Value], noalias_arguments: bool
) -> bool:
    """Whether `op` reads global memory that it also writes, except by `copied` loads.

    Its barriers may order these accesses, and then cannot be dropped.
    """
    written = [target for _, target in written_roots(op) if target is not None]
    return any(
        may_alias(source, target, noalias_arguments)
        for value, source in global_reads(op)
        if value not in copied
        for target in written
        if not (is_workgroup(target.type) or is_private(target))
    )


def writes_globally(op: ir.Operation) -> bool:
    """Whether `op` or its regions write memory that other thread blocks can see."""
    return any(
        target is None or not (is_workgroup(target.type) or is_private(target))
        for _, target in written_roots(op)
    )


def is_private(memref: ir.Value) -> bool:
    """Whether each thread has a buffer of its own: one on the stack of a kernel."""
    op = made_by(memref, "memref.alloca")
    return op is not None and any(one.name in KERNEL_OPS for one in around(op))


def may_alias(one: ir.Value, other: ir.Value, noalias_arguments: bool) -> bool:
    """Whether two roots may overlap.

    An allocation overlaps nothing else, and shared memory does not overlap global
    memory; arguments may alias each other unless `noalias_arguments` excludes it.
    """
    if one == other:
        return True
    if is_workgroup(one.type) != is_workgroup(other.type):
        return False
    if is_own_allocation(one) or is_own_allocation(other):
        return False
    arguments = defining_op(one) is None and defining_op(other) is None
    return not (noalias_arguments and arguments)


def are_apart(one: ir.Value, other: ir.Value) -> bool:
    """Whether both are static subviews of one memref that have no element in common."""
    first, second = _static_ranges(one), _static_ranges(other)
    if first is None or second is None or first[0] != second[0]:
        return False
    pairs = zip(first[1], second[1], strict=True)
    return any(a.stop <= b.start or b.stop <= a.start for a, b in pairs)


def _static_ranges(view: ir.Value) -> tuple[ir.Value, list[range]] | None:
    """The source of a subview, and the indices that it takes along each dimension."""
    op = defining_op(view)
    if op is None or op.operation.name != "memref.subview" or len(op.operands) > 1:
        return None
    offsets, sizes, strides = (
        list(op.attributes[f"static_{name}"])
        for name in ("offsets", "sizes", "strides")
    )
    ranges = [
        range(offset, offset + (size - 1) * stride + 1)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    ]
    return op.operands[0], ranges


def is_own_allocation(memref: ir.Value) -> bool:
    """Whether only `memref` and its views refer to its memory.

    True for an allocation, and for a workgroup attribution of a `gpu.func` or a
    `gpu.launch`.
    """
    owner = defining_op(memref)
    if owner is not None:
        return owner.name in ("memref.alloc", "memref.alloca")
    kernel = memref.owner.owner.operation
    if kernel.name == "gpu.launch":
        return memref.arg_number >= LAUNCH_ARGUMENTS
    if kernel.name != "gpu.func":
        return False
    inputs = ir.FunctionType(kernel.attributes["function_type"].value).inputs
    return memref.arg_number >= len(inputs)


def _access(op: ir.Operation, number: int) -> tuple[bool, bool]:
    """Whether `op` reads and writes through its operand of that number."""
    if op.name == "linalg.generic":
        inputs, _ = op.attributes["operandSegmentSizes"]
        used = any(True for _ in op.regions[0].blocks[0].arguments[number].uses)
        return used, number >= inputs
    if op.name == "nvgpu.device_async_copy":
        return number != 0, number == 0
    return number in _READS.get(op.name, ()), number in _WRITES.get(op.name, ())


def _written_operands(op: ir.Operation) -> tuple[int, ...]:
    if op.name == "linalg.generic":
        inputs, outputs = op.attributes["operandSegmentSizes"]
        return tuple(range(inputs, inputs + outputs))
    return _WRITES.get(op.name, ())


def _is_harmless(op: ir.Operation) -> bool:
    if op.name in _SYNCHRONISATION or op.name in _READS or op.name in _HOLDERS:
        return True
    return touches_no_memory(op)


def size_in_bytes(kind: ir.Type) -> int | None:
    """Bytes of a static, contiguous memref type; None where they are not known."""
    if not kind.has_static_shape:
        return None
    width = element_bits(kind.element_type)
    return None if width is None else -(-math.prod(kind.shape) * width // 8)


def element_bits(kind: ir.Type) -> int | None:
    """Width of an integer, float or index element type; None for others."""
    if isinstance(kind, ir.IndexType):
        return 64
    return getattr(kind, "width", None)
