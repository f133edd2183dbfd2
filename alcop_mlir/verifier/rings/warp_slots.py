"""Slots of a buffer that each warp has for itself: it writes them, and TMA stores them.

    %slot = memref.reinterpret_cast %buffer to offset: [(%warp * 2 + 1) * 1024] ...
    vector.transfer_write %part, %slot    // or nvvm.stmatrix, or llvm.store of words,
                                          // at an address in the slot
    nvgpu.tma.async.store %slot to %map

Where each access is, is computed for each thread. Where the lanes of a warp have
one slot in each access, warps have the same ones counted from their first, and no two
warps have a slot in common, a slot is named by its warp and this count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import root
from alcop_mlir.verifier.rings.products import POINTER
from alcop_mlir.verifier.rings.threads import WARP, Threads
from alcop_mlir.verifier.values import is_computable

_MATRICES, _STORE = "nvvm.stmatrix", "llvm.store"
_SHARED_POINTER = "!llvm.ptr<3>"
_POINTER_CAST = "llvm.inttoptr"
_REINTERPRET = "memref.reinterpret_cast"


def written_address(op: Any) -> Any | None:
    """The address in shared memory that an op writes to; None of other ops."""
    if op.name == _MATRICES:
        return op.operands[0]
    if op.name == _STORE and str(op.operands[1].type) == _SHARED_POINTER:
        return op.operands[1]
    return None


def addressed(address: Any) -> Any | None:
    """The buffer that an address is in; None where it is not known."""
    cast = _maker(address)
    if cast is None or cast.name != _POINTER_CAST:
        return None
    found, pending, seen = set[Any](), [cast.operands[0]], set[Any]()
    while pending:
        value = pending.pop()
        maker = _maker(value)
        if value in seen or maker is None:
            continue
        seen.add(value)
        if maker.name == POINTER:
            found.add(root(maker.operands[0]))
        elif is_computable(maker):
            pending += list(maker.operands)
    return found.pop() if len(found) == 1 else None


def warp_slots(
    accesses: Sequence[tuple[Any, Any]], buffer: Any, threads: Threads
) -> dict[Any, tuple[int, int]] | None:
    """For each op its slot, counted from the warp's first, and how many a warp has.

    accesses: ops, and the memref or address that each accesses
    buffer:   `events.Buffer`
    Returns None where warps have no slots of their own.
    """
    places = [_slots(op, value, buffer, threads) for op, value in accesses]
    known = [one for one in places if one is not None]
    if not known or len(known) < len(places):
        return None
    first = known[0]
    counted = []
    for one in known:
        apart = {slot - begin for slot, begin in zip(one, first, strict=True)}
        if len(apart) > 1:
            return None
        counted += apart
    taken = [begin + count for begin in first for count in set(counted)]
    if len(set(taken)) < len(taken):
        return None
    least = min(counted)
    count = max(counted) - least + 1
    return {
        op: (one - least, count) for (op, _), one in zip(accesses, counted, strict=True)
    }


def _slots(op: Any, value: Any, buffer: Any, threads: Threads) -> list[int] | None:
    """The slot that each warp accesses; None where that is not one, or not known."""
    unit = buffer.elements
    maker = _maker(value)
    if maker is None:
        return None
    is_address = written_address(op) is not None
    if is_address:
        found = threads.values(maker.operands[0])
        unit = buffer.elements * buffer.bits // 8
    else:
        found = _offsets(maker, buffer, threads)
    if found is None:
        return None
    each = [found] * threads.count if isinstance(found, int) else list(found)
    if not is_address and any(offset % unit for offset in each):
        return None
    slots = [offset // unit for offset in each]
    warps = [slots[n : n + WARP] for n in range(0, threads.count, WARP)]
    return [one[0] for one in warps] if all(len({*w}) == 1 for w in warps) else None


def _offsets(view: Any, buffer: Any, threads: Threads) -> Any:
    """Where a view of one whole slot begins, in elements."""
    if view.name != _REINTERPRET or view.operands[0] != buffer.value:
        return None
    elements, stride = 1, 1
    sizes = list(view.attributes["static_sizes"])
    strides = list(view.attributes["static_strides"])
    for size, distance in zip(reversed(sizes), reversed(strides), strict=True):
        if distance != stride or size < 0:
            return None
        elements, stride = elements * size, stride * size
    if elements != buffer.elements:
        return None
    (offset,) = view.attributes["static_offsets"]
    if offset != ir.ShapedType.get_dynamic_stride_or_offset():
        return offset
    return threads.values(view.operands[1])


def _maker(value: Any) -> Any:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation
