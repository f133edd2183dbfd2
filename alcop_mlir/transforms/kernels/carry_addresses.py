"""Let loops carry the addresses that they copy from.

Before:  scf.for %k = %c0 to %n step %c32 {
           nvgpu.device_async_copy %A[%row, %k + 8], %slot[...], 8
           nvgpu.device_async_copy %A[%row, %k + 40], %slot[...], 8 }
After:   %start = address of %A[%row, %c8]
         scf.for %k = %c0 to %n step %c32 iter_args(%at = %start) {
           nvgpu.device_async_copy (memory at %at)[%c0], %slot[...], 8
           nvgpu.device_async_copy (memory at %at + 64)[%c0], %slot[...], 8
           yield opaque(%at + 64) }

LLVM would keep what addresses are computed from in registers as well: it takes what
the loop changes and what it does not apart, adds them up in each iteration, and
computes addresses again, from the start, for the loop that follows. Here, an address is
one value from the first loop to the last one that copies there, and `opaque` is what
hides from LLVM how it was made: inline assembly that is a move, which ptxas removes.
One address serves all rows at distances that are constants, as these are in the
instructions, and what is copied after a loop that runs a constant number of times.
Where copies of one iteration are rows apart whose distance is known at run time only,
the address goes from one to the next, and on to the next iteration.

So do loads of single elements in loops with barriers, as alcop-stage-copies makes them,
where an address goes from row to row. Copies whose indices are not linear in the loop's
are left unchanged.

Runs after alcop-unroll-steady-state and alcop-outline-kernels, and before
alcop-lower-to-nvvm, which makes pointers of addresses. Reads and writes no attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir.alignment import divisor, element_bytes
from alcop_mlir.analysis.ir.copy_addresses import (
    LOAD,
    AddressedCopy,
    CopyGroup,
    Distance,
    copies_after,
    copy_groups,
    difference,
    read_by,
)
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    bounds,
    constant,
    defining_op,
    is_inside,
    loops_in,
)
from alcop_mlir.bindings import arith, ir, llvm, memref, nvgpu
from alcop_mlir.element_types import EIGHT_BIT_FLOATS
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass

_POINTER, _GLOBAL_POINTER = "!llvm.ptr", "!llvm.ptr<1>"
# What upstream's conversions make of a memref of rank 1: allocated and aligned pointer,
# offset, size, stride.
_DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"


@frozen
class CarryAddresses(Pass):
    name = "alcop-carry-addresses"

    def run(self, op: ir.Operation) -> None:
        ended: list[_Ended] = []
        for loop in loops_in(op):
            groups = copy_groups(loop)
            if groups:
                ended += _carry(loop, groups, ended)


@frozen
class _Ended:
    """An address after the loop that carries it, which serves `group`."""

    group: CopyGroup
    loop: Any
    address: Any


@frozen
class _Route:
    """How an address goes through an iteration.

    stops: copies that read at constant distances from it
    hops:  the bytes from each stop to the next one, the last to the next iteration
    """

    source: Any
    stops: list[list[AddressedCopy]]
    hops: list[Any]


def _carry(
    loop: ir.Operation, groups: Sequence[CopyGroup], ended: Sequence[_Ended]
) -> list[_Ended]:
    """Let `loop` carry an address for each group; what they are after it."""
    count = len(loop.results)
    with loop.location:
        with ir.InsertionPoint(loop):
            starts = [_start(group, loop, ended) for group in groups]
            routes = [_route(group) for group in groups]
        wider = edit.with_carried(
            loop,
            starts,
            lambda carried: [
                _follow(route, address)
                for route, address in zip(routes, carried, strict=True)
            ],
        )
    addresses = list(wider.results)[count:]
    for group, address in zip(groups, addresses, strict=True):
        for copy in copies_after(group, wider):
            left = difference(copy.offset, group.copies[0].offset)
            with copy.op.location, ir.InsertionPoint(copy.op):
                _read_from(build.add(address, _bytes(group.source, left)), copy.op)
    return [
        _Ended(group, wider, address)
        for group, address in zip(groups, addresses, strict=True)
    ]


def _start(group: CopyGroup, loop: ir.Operation, ended: Sequence[_Ended]) -> Any:
    """The address that the group's first copy reads from in the first iteration."""
    for before in ended:
        if before.group.key == group.key and _goes_on(loop, before.loop):
            left = difference(group.copies[0].offset, before.group.copies[0].offset)
            return build.add(before.address, _bytes(group.source, left))
    _, indices = read_by(group.copies[0].op)
    known = {body(loop).arguments[0]: bounds(loop)[0]}
    at = [_outside(index, loop, known) for index in indices]
    return build.opaque(_address(group.source, at))


def _goes_on(loop: ir.Operation, before: ir.Operation) -> bool:
    """Whether the index of `loop` starts where that of the loop before it ended."""
    start, end, step = bounds(before)
    width = constant(step)
    return (
        loop.block == before.block
        and bounds(loop)[0] == end
        and constant(start) == 0
        and width is not None
        and divisor(end) % width == 0
    )


def _route(group: CopyGroup) -> _Route:
    stops = group.stops()
    offsets = [stop[0].offset for stop in stops]
    again = tuple(
        first + pace for first, pace in zip(offsets[0], group.pace, strict=True)
    )
    hops = [
        _bytes(group.source, difference(after, before))
        for before, after in pairwise([*offsets, again])
    ]
    return _Route(group.source, stops, hops)


def _follow(route: _Route, address: Any) -> Any:
    """Let the copies of an iteration read from `address`; that of the next one."""
    block = address.owner
    for number, stop in enumerate(route.stops):
        if number:
            before = ancestor_in(stop[0].op, block)
            with ir.InsertionPoint(before):
                address = build.opaque(build.add(address, route.hops[number - 1]))
        for copy in stop:
            left = difference(copy.offset, stop[0].offset)
            with copy.op.location, ir.InsertionPoint(copy.op):
                _read_from(build.add(address, _bytes(route.source, left)), copy.op)
    return build.opaque(build.add(address, route.hops[-1]))


def _read_from(address: Any, copy: ir.Operation) -> None:
    """Replace `copy` by one that reads from `address`."""
    if copy.name == LOAD:
        kind = copy.results[0].type
        # llvm.load has no floats of eight bits.
        is_byte = str(kind) in EIGHT_BIT_FLOATS
        stored = build.integer(8) if is_byte else kind
        loaded = llvm.load(stored, _pointer(address, _GLOBAL_POINTER))
        if is_byte:
            loaded = arith.bitcast(kind, loaded)
        copy.results[0].replace_all_uses_with(loaded)
        copy.erase()
        return
    view = copy.opview
    made = nvgpu.DeviceAsyncCopyOp(
        view.dst,
        list(view.dstIndices),
        _memory_at(address, view.src.type.element_type),
        [build.index(0)],
        view.dstElements.value,
        srcElements=view.srcElements,
        bypassL1=view.bypassL1,
    )
    copy.results[0].replace_all_uses_with(made.asyncToken)
    copy.erase()


def _address(source: ir.Value, at: Sequence[Any]) -> Any:
    """The address of an element of `source`."""
    rank, (base, offset, *numbers) = (
        source.type.rank,
        memref.ExtractStridedMetadataOp(source).results,
    )
    for index, stride in zip(at, numbers[rank:], strict=True):
        offset = build.add(offset, build.mul(index, stride))
    start = memref.extract_aligned_pointer_as_index(base)
    return build.add(start, build.mul(offset, element_bytes(source.type)))


def _bytes(source: ir.Value, distance: Distance) -> Any:
    """A distance between elements of `source` in bytes."""
    kind = source.type
    strides, _ = kind.get_strides_and_offset()
    numbers = memref.ExtractStridedMetadataOp(source).results[2 + kind.rank :]
    total, known = build.index(0), 0
    for number, stride, value in zip(distance, strides, numbers, strict=True):
        if not kind.is_dynamic_stride_or_offset(stride):
            known += number * stride
        elif number:
            total = build.add(total, build.mul(value, number * element_bytes(kind)))
    return build.add(total, known * element_bytes(kind))


def _outside(value: ir.Value, loop: ir.Operation, known: dict[Any, Any]) -> Any:
    """`value`, which depends on no more than the index, built outside of `loop`."""
    op = defining_op(value)
    if value not in known and op is not None and is_inside(op, loop):
        for operand in op.operands:
            known[operand] = _outside(operand, loop, known)
        edit.clone(op, known)
    return known.get(value, value)


def _memory_at(address: ir.Value, element: ir.Type) -> Any:
    """The memory that begins at `address`, as a memref of one element."""
    word = build.integer(64)
    pointer = _pointer(address, _POINTER)
    zero, one = (arith.constant(word, number) for number in range(2))
    descriptor = llvm.mlir_poison(ir.Type.parse(_DESCRIPTOR))
    fields = (((0,), pointer), ((1,), pointer), ((2,), zero), ((3, 0), one))
    for position, value in (*fields, ((4, 0), one)):
        descriptor = llvm.insertvalue(descriptor, value, position)
    return ir.Operation.create(
        "builtin.unrealized_conversion_cast",
        [ir.MemRefType.get([1], element)],
        [descriptor],
    ).result


def _pointer(address: ir.Value, kind: str) -> Any:
    return llvm.inttoptr(
        ir.Type.parse(kind), arith.index_cast(build.integer(64), address)
    )
