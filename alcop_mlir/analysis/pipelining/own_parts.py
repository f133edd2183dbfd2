"""Flat buffers of which each iteration of a loop uses a part of its own.

    memref<1792xf32, workgroup>: copy to %a[256 * %k + 4 * %t] ; read of %a[256 * %k]

`parts_in` finds those of which each access is known to stay in the part of its
iteration, which reads only what it has written there itself. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.index_terms import Terms, single, terms
from alcop_mlir.analysis.ir.loops import body, bounds, constant, is_inside
from alcop_mlir.analysis.ir.memref_layouts import is_contiguous
from alcop_mlir.analysis.pipelining.copy_forms import copies_in
from alcop_mlir.analysis.pipelining.in_place import is_made_in, reach
from alcop_mlir.analysis.pipelining.moves import is_plain_transfer
from alcop_mlir.analysis.pipelining.own_fills import own_fills
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

# Ops that access elements side by side, from one index on.
_ACCESSES = (
    "memref.load",
    "memref.store",
    "vector.load",
    "vector.store",
    "vector.transfer_read",
    "vector.transfer_write",
    "nvgpu.device_async_copy",
)


@frozen
class Use:
    """`op` accesses a buffer, its operand `number`, at `within` in a part.

    within: parts of a sum: values, each so many times, and a number
    """

    op: Any
    number: int
    within: Terms


@frozen
class OwnParts:
    """The parts of `buffer`, of `size` elements: iteration k uses part k."""

    buffer: Any
    size: int
    uses: tuple[Use, ...]


def parts_in(loop: ir.Operation) -> list[OwnParts]:
    """The buffers whose parts `loop` uses in turn, in the order of its copies."""
    lower, _, step = map(constant, bounds(loop))
    if lower != 0 or step is None:
        return []
    forms = copies_in(loop).values()
    buffers = dict.fromkeys(root for form in forms for root in form.buffers)
    found = (_own_parts(buffer, loop, step) for buffer in buffers)
    return [one for one in found if one is not None]


def _own_parts(buffer: ir.Value, loop: ir.Operation, step: int) -> OwnParts | None:
    kind = buffer.type
    is_flat = kind.rank == 1 and kind.has_static_shape and is_contiguous(kind)
    if not is_flat or not memory.is_own_allocation(buffer) or is_made_in(buffer, loop):
        return None
    ops = [(use.owner.operation, use.operand_number) for use in buffer.uses]
    ops = [(op, number) for op, number in ops if op.name != "memref.dealloc"]
    if not all(_is_access(op) and is_inside(op, loop) for op, _ in ops):
        return None
    index = body(loop).arguments[0]
    known = {index: single(index).times(step)}
    found = [(op, n, terms(op.operands[n + 1], known)) for op, n in ops]
    (size, *others) = {dict(at.multiples).get(index, 0) for _, _, at in found}
    if others or size <= 0 or kind.shape[0] % size or kind.shape[0] == size:
        return None
    uses = [Use(op, number, at.plus(single(index), -size)) for op, number, at in found]
    if not all(_stays_within(use, size, loop) for use in uses):
        return None
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list) or own_fills(loop, accesses, {index}) is None:
        return None
    return OwnParts(buffer, size, tuple(uses))


def _is_access(op: ir.Operation) -> bool:
    return op.name in _ACCESSES and is_plain_transfer(op)


def _stays_within(use: Use, size: int, loop: ir.Operation) -> bool:
    """Whether an access is of one part of `size` elements, and made of given values."""
    parts: Mapping[Any, int] = dict(use.within.multiples)
    if any(isinstance(part, tuple) or is_made_in(part, loop) for part in parts):
        return False
    low, high = reach(use.within, loop)
    return low >= 0 and high + _width(use.op) <= size


def _width(op: ir.Operation) -> int:
    """Elements that `op` accesses, from its index on."""
    if op.name == "nvgpu.device_async_copy":
        return op.attributes["dstElements"].value
    moved = op.results[0] if len(op.results) else op.operands[0]
    return moved.type.shape[0] if isinstance(moved.type, ir.VectorType) else 1
