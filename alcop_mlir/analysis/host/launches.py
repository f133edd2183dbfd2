"""What a `gpu.launch` needs to become a kernel: its arguments, buffers and sizes.

`read` returns a frozen `KernelLaunch` or a `Rejected`, and changes nothing. The offsets
of the workgroup buffers in shared memory are decided here: buffers lie in the order of
their allocations, each at a multiple of `resources.SHARED_ALIGNMENT` bytes, or of its
own alignment if that is larger.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from alcop_mlir import resources
from alcop_mlir.analysis.ir.clusters import (
    CLUSTER_ARGUMENTS,
    LAUNCH_ARGUMENTS,
    cluster_sizes,
    has_clusters,
)
from alcop_mlir.analysis.ir.loops import constant, defining_op, made_by
from alcop_mlir.analysis.ir.memory import (
    NOALIAS,
    VIEW_OPS,
    has_noalias,
    is_own_allocation,
    is_workgroup,
)
from alcop_mlir.analysis.ir.memref_layouts import is_strided
from alcop_mlir.analysis.ir.promises import (
    ALIGNMENT,
    ROW_ALIGNMENT,
    of_argument,
    row_alignment,
)
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import captured, captured_by_regions, is_pure
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.staging import OVERLAID, SHARES
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import element_bytes
from alcop_mlir.frozen import frozen

_DIMENSIONS = 3
# Operand that an op reads through, where it does not write through it.
_READ_OPERAND = {
    "memref.copy": 0,
    "memref.dim": 0,
    "memref.load": 0,
    "vector.load": 0,
    "vector.transfer_read": 0,
}
# The same for writing.
_WRITTEN_OPERAND = {
    "memref.copy": 1,
    "memref.dim": 0,
    "memref.store": 1,
    "vector.store": 1,
    "vector.transfer_write": 1,
}
_TENSOR_MAP = "nvgpu.tma.create.descriptor"
_ASYNC_COPY = "nvgpu.device_async_copy"  # operand 0 is written, and shared memory


@frozen
class WorkgroupBuffer:
    """A workgroup buffer: the op that allocates it, its offset in shared memory."""

    alloc: Any
    offset: int  # bytes


@frozen
class KernelLaunch:
    """A launch that can become a kernel.

    grid:         number of blocks along x, y, z: index values
    block:        number of threads along x, y, z
    memrefs:      of the host function, used by the body; arguments of the function
                  come first, in their order
    scalars:      other values of the host function that the body uses
    maps:         tensor maps (`nvgpu.tma.create.descriptor`) that the body uses
    sunk:         pure ops of the host function that the body uses: the kernel computes
                  them itself
    buffers:      workgroup buffers
    shared_bytes: of all buffers
    cluster:      number of blocks of a cluster along x, y, z; None without clusters
    """

    op: Any
    grid: tuple[Any, ...]
    block: tuple[int, ...]
    memrefs: tuple[Any, ...]
    scalars: tuple[Any, ...]
    sunk: tuple[Any, ...]
    buffers: tuple[WorkgroupBuffer, ...]
    shared_bytes: int
    maps: tuple[Any, ...] = ()
    cluster: tuple[int, ...] | None = None

    @property
    def static_grid(self) -> tuple[int, ...] | None:
        """The grid where all its sizes are constants, else None."""
        sizes = tuple(constant(value) for value in self.grid)
        return None if None in sizes else sizes  # type: ignore[return-value]

    @property
    def shared_size(self) -> Any | None:
        """The bytes that the launch itself asks for, a value, or None."""
        return self.op.opview.dynamicSharedMemorySize


@frozen
class Needs:
    """What a launch uses of the host function; see `KernelLaunch`."""

    memrefs: tuple[Any, ...]
    scalars: tuple[Any, ...]
    sunk: tuple[Any, ...]
    maps: tuple[Any, ...] = ()


class _Refused(Exception):
    def __init__(self, op: ir.Operation, reason: str):
        super().__init__(reason)
        self.op = op


def read(launch: ir.Operation, stored: Collection[str] = ()) -> KernelLaunch | Rejected:
    """What the launch needs, or why it cannot become a kernel.

    stored: names of the `memref.global`s that kernels take as arguments
    """
    try:
        return _read(launch.operation, stored)
    except _Refused as refused:
        return Rejected(refused.op, str(refused))


def needs(launch: ir.Operation) -> Needs | Rejected:
    """What the launch itself and its body use; or why it cannot become a kernel."""
    try:
        _check_form(launch)
        found = _captures([*launch.operands, *captured_by_regions(launch)], launch)
        for memref in found.memrefs:
            _check_memref(launch, memref)
        return found
    except _Refused as refused:
        return Rejected(refused.op, str(refused))


def known_of(value: ir.Value) -> dict[str, Any]:
    """What passes see of a value of the host function, as attributes of an argument.

    Of an allocation, that nothing else is it; and what is promised of alignment.
    """
    if not isinstance(value.type, ir.MemRefType):
        return {}
    found: dict[str, Any] = {}
    if is_own_allocation(value) or has_noalias(value):
        found[NOALIAS] = ir.UnitAttr.get()
    if defining_op(value) is None and (begin := of_argument(value, ALIGNMENT)):
        found[ALIGNMENT] = begin
    if (rows := row_alignment(value)) > 1:
        found[ROW_ALIGNMENT] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rows)
    return found


def is_only_read(memref: ir.Value) -> bool:
    """Whether no op writes through `memref`, as far as the ops are known."""
    return _is_used_only(memref, _READ_OPERAND)


def is_only_written(memref: ir.Value) -> bool:
    """Whether no op reads through `memref`, as far as the ops are known."""
    return _is_used_only(memref, _WRITTEN_OPERAND)


def _is_used_only(memref: ir.Value, operands: Mapping[str, int]) -> bool:
    """Whether all uses are such operands of such ops, views looked through."""
    for use in memref.uses:
        op = use.owner.operation
        if op.name in VIEW_OPS:
            if not all(_is_used_only(result, operands) for result in op.results):
                return False
        elif op.name == _ASYNC_COPY:
            if operands is not _READ_OPERAND or use.operand_number == 0:
                return False
        elif use.operand_number != operands.get(op.name):
            return False
    return True


def _read(launch: ir.Operation, stored: Collection[str]) -> KernelLaunch:
    _check_form(launch)
    operands = list(launch.operands)
    used = captured_by_regions(launch)
    inside = set(used)
    sizes = [size for size in operands if size in inside]
    found = _captures([*sizes, *used], launch, stored)
    for memref in found.memrefs:
        _check_memref(launch, memref)
    buffers, shared_bytes = _layout(launch)
    block = [constant(size) for size in operands[_DIMENSIONS : 2 * _DIMENSIONS]]
    if None in block:
        raise _Refused(launch, "has a block size that is not constant")
    return KernelLaunch(
        op=launch,
        grid=tuple(operands[:_DIMENSIONS]),
        block=tuple(size for size in block if size is not None),
        memrefs=found.memrefs,
        scalars=found.scalars,
        sunk=found.sunk,
        buffers=buffers,
        shared_bytes=shared_bytes,
        maps=found.maps,
        cluster=_cluster(launch),
    )


def _cluster(launch: ir.Operation) -> tuple[int, ...] | None:
    if not has_clusters(launch):
        return None
    sizes = cluster_sizes(launch)
    if sizes is None:
        raise _Refused(launch, "has clusters of a size that is not constant")
    return sizes


def _check_form(launch: ir.Operation) -> None:
    segments = list(launch.attributes["operandSegmentSizes"])
    if segments[0] or list(launch.results):
        raise _Refused(launch, "is asynchronous, expected a launch that waits")
    expected = LAUNCH_ARGUMENTS + has_clusters(launch) * CLUSTER_ARGUMENTS
    if len(launch.regions[0].blocks[0].arguments) != expected:
        reason = "has private attributions, expected values or shared memory"
        raise _Refused(launch, reason)


def _captures(
    values: list[Any], launch: ir.Operation, stored: Collection[str] = ()
) -> Needs:
    """Memrefs, scalars and pure ops of the host function behind `values`."""
    found: dict[Any, None] = {}
    sunk: dict[Any, None] = {}
    for value in values:
        _follow(value, found, sunk, stored)
    memrefs = [v for v in found if isinstance(v.type, ir.MemRefType)]
    memrefs.sort(key=_argument_number)  # stable: the others keep their order
    maps = [v for v in found if made_by(v, _TENSOR_MAP) is not None]
    others = found.keys() - {*memrefs, *maps}
    scalars = [v for v in found if v in others]
    for kind in (value.type for value in scalars):
        if not isinstance(kind, ir.IndexType | ir.IntegerType | ir.FloatType):
            reason = f"uses a value of type {kind}, expected memrefs and scalars"
            raise _Refused(launch, reason)
    return Needs(tuple(memrefs), tuple(scalars), tuple(sunk), tuple(maps))


def _follow(
    value: ir.Value,
    found: dict[Any, None],
    sunk: dict[Any, None],
    stored: Collection[str],
) -> None:
    """Add what `value` is computed from: pure ops to `sunk`, in order, else `found`."""
    owner = defining_op(value)
    get = made_by(value, "memref.get_global")
    is_stored = get is not None and get.attributes["name"].value in stored
    if owner is None or not is_pure(owner) or is_stored:
        found[value] = None
    elif owner not in sunk:
        for operand in captured(owner):
            _follow(operand, found, sunk, stored)
        sunk[owner] = None


def _argument_number(value: ir.Value) -> float:
    return value.arg_number if defining_op(value) is None else float("inf")


def _check_memref(launch: ir.Operation, memref: ir.Value) -> None:
    """A kernel gets a pointer to the first element, sizes and strides: no offset."""
    kind = memref.type
    if kind.memory_space is not None:
        raise _Refused(launch, f"uses {kind}, expected no memory space")
    if not is_strided(kind):
        raise _Refused(launch, f"uses {kind}, expected a strided layout")
    _, offset = kind.get_strides_and_offset()
    if offset != 0:
        raise _Refused(
            launch,
            f"uses {kind}, expected no offset: alcop-drop-offsets drops that of an "
            "argument",
        )


def _layout(launch: ir.Operation) -> tuple[tuple[WorkgroupBuffer, ...], int]:
    """All workgroup buffers, overlaid ones over the others; bytes of shared memory."""
    allocations = _allocations(launch)
    apart = [alloc for alloc in allocations if OVERLAID not in alloc.attributes]
    over = [alloc for alloc in allocations if OVERLAID in alloc.attributes]
    buffers, end = _one_after_the_other(apart)
    overlaid, end_of_overlaid = _one_after_the_other(over)
    if allocations and walk(launch, "gpu.dynamic_shared_memory"):
        raise _Refused(
            launch,
            "uses dynamic shared memory and allocates workgroup buffers, expected one "
            "of them, as after alcop-separate-views",
        )
    return (*buffers, *overlaid), max(end, end_of_overlaid)


def _one_after_the_other(
    allocations: list[ir.Operation],
) -> tuple[list[WorkgroupBuffer], int]:
    """The buffers, the first one at offset 0, and where the last one ends."""
    buffers: list[WorkgroupBuffer] = []
    end = 0
    shared: dict[int, int] = {}  # the offset of each group that shares memory
    for alloc in allocations:
        group = alloc.attributes[SHARES].value if SHARES in alloc.attributes else None
        if group in shared:
            buffers.append(WorkgroupBuffer(alloc, shared[group]))
            continue
        given = alloc.attributes.get("alignment")
        alignment = 1 if given is None else given.value
        offset = -(-end // alignment) * alignment
        buffers.append(WorkgroupBuffer(alloc, offset))
        if group is not None:
            shared[group] = offset
        end = offset + resources.align(_bytes(alloc.results[0].type))
    return buffers, end


def _allocations(launch: ir.Operation) -> list[Any]:
    """The allocations in the body, checked."""
    found = walk(launch, "memref.alloc", "memref.alloca")
    for op in found:
        kind = op.results[0].type
        if not is_workgroup(kind):
            raise _Refused(
                op, f"allocates {kind} in a kernel, expected workgroup memory"
            )
        if op.parent.operation != launch:
            raise _Refused(
                op,
                f"workgroup buffer allocated inside '{op.parent.operation.name}', "
                "expected at the top level of the launch",
            )
        contiguous = ir.MemRefType.get(kind.shape, kind.element_type).layout
        if not kind.has_static_shape or kind.layout != contiguous:
            raise _Refused(
                op, f"workgroup buffer is {kind}, expected static sizes without gaps"
            )
    return found


def _bytes(memref: ir.Type) -> int:
    elements = math.prod(memref.shape)
    kind = memref.element_type
    if isinstance(kind, ir.VectorType):
        elements *= math.prod(kind.shape)
        kind = kind.element_type
    return elements * element_bytes(str(kind))
