"""Buffers of which each iteration of a loop uses a slot that the program has numbered.

    memref<3x64xf32, workgroup>: copy to %a[%slot, ...] ; reads of %a[%slot, ...]

`slots_in` finds those whose slots are not needed: an iteration reads only what it has
written itself, so that all iterations could use one slot. Nothing is changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import block_of, body, is_inside
from alcop_mlir.analysis.ir.uniformity import varies
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.own_fills import own_fills
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_SUBVIEW = "memref.subview"
# Ops that access elements side by side in the last dimensions.
_ROWS = ("vector.load", "vector.store")
_TRANSFERS = ("vector.transfer_read", "vector.transfer_write")
_OTHERS = (
    "memref.load",
    "memref.store",
    "nvgpu.ldmatrix",
    "nvgpu.device_async_copy",
    "gpu.subgroup_mma_load_matrix",
)


@frozen
class OwnSlots:
    """The uses of `buffer` in a loop: ops, and the operand that numbers the slot."""

    buffer: Any
    uses: tuple[tuple[Any, int], ...]

    @property
    def accesses(self) -> list[Any]:
        """The ops that read or write the buffer, in the order of the uses."""
        return [access.op for access in memory.accesses(self.buffer)]


def slots_in(loop: ir.Operation) -> list[OwnSlots]:
    """The buffers whose slots `loop` does not need, in the order of its copies."""
    forms = [form for op in body(loop).operations if (form := copy_form(op))]
    buffers = dict.fromkeys(root for form in forms for root in form.buffers)
    found = (_own_slots(buffer, loop) for buffer in buffers)
    return [one for one in found if one is not None]


def _own_slots(buffer: ir.Value, loop: ir.Operation) -> OwnSlots | None:
    kind = buffer.type
    if not memory.is_own_allocation(buffer) or not kind.has_static_shape:
        return None
    if kind.rank < 2 or kind.shape[0] < 2:
        return None
    uses = [(use.owner.operation, use.operand_number) for use in buffer.uses]
    uses = [use for use in uses if use[0].name != "memref.dealloc"]
    if not all(_takes_slot(op, number) and is_inside(op, loop) for op, number in uses):
        return None
    (slot, *others) = {op.operands[number + 1] for op, number in uses}
    if others or block_of(slot) != body(loop) or varies(slot):
        return None
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list) or own_fills(loop, accesses, {slot}) is None:
        return None
    return OwnSlots(buffer, tuple((op, number + 1) for op, number in uses))


def _takes_slot(op: ir.Operation, number: int) -> bool:
    """Whether `op` uses one slot of its operand `number`, by the operand after that."""
    rank = op.operands[number].type.rank
    if op.name == _SUBVIEW:
        is_dynamic = op.attributes["static_offsets"][0] == _dynamic()
        return is_dynamic and op.attributes["static_sizes"][0] == 1
    if op.name in _TRANSFERS:
        last = op.attributes["permutation_map"].value
        dims = len(last.results)
        return dims < rank and last == ir.AffineMap.get_minor_identity(rank, dims)
    if op.name in _ROWS:
        vector = op.results[0] if len(op.results) else op.operands[0]
        return vector.type.rank < rank
    return op.name in _OTHERS


def _dynamic() -> int:
    return ir.ShapedType.get_dynamic_size()
