"""Builder of views of single slots, for accesses of a slot that many others share.

Before:  nvgpu.ldmatrix %buffer[%c2, %row, %column] : memref<3x128x64xf16, ...>
After:   %slot = memref.view %memory[%offset_of_slot_2][] : memref<1x128x64xf16, ...>
         nvgpu.ldmatrix %slot[%c0, %row, %column]

The offset within a slot is then one value for all slots, and the slot a constant in the
address of each instruction. Otherwise LLVM would compute the sum of both for each slot,
and keep it in a register for each. In a loop that counts its slots, such as the tail,
the view is built where the number of the slot is, and the offset within it is the one
of the steady state.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes, has_whole_bytes
from alcop_mlir.analysis.ir.loops import constant, is_loop
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.bindings import ir, memref
from alcop_mlir.passes import build, edit

# Operand number of the shared buffer; its indices follow.
_ACCESSES = {
    "memref.load": 0,
    "memref.store": 1,
    "nvgpu.device_async_copy": 0,
    "nvgpu.ldmatrix": 0,
    "vector.load": 0,
    "vector.store": 1,
}

# Those of rows of 16 bytes: where elements are loaded one by one, more addresses
# would be held for each slot than registers hold.
_BY_ROWS = ("nvgpu.device_async_copy", "nvgpu.ldmatrix")


def view_slots(buffer: ir.Value, memory: ir.Value, offset: int) -> None:
    """Let accesses of `buffer`, at `offset` bytes of `memory`, use views of slots.

    The views are built at the current insertion point, before all accesses.
    """
    kind = buffer.type
    slots, *within = kind.shape
    if len(within) < 2 or slots < 2 or not has_whole_bytes(kind.element_type):
        return
    one = build.memref_like(kind, [1, *within])
    size = math.prod(within) * element_bytes(kind)
    views: dict[Any, Any] = {}

    def view(first: Any) -> tuple[Any, Any]:
        return memref.view(one, memory, first, []), build.index(0)

    for use in list(buffer.uses):
        access, number = use.owner.operation, use.operand_number
        if _ACCESSES.get(access.name) != number:
            continue
        value = access.operands[number + 1]
        slot = constant(value)
        if slot is None and not (access.name in _BY_ROWS and _is_counted(value)):
            continue
        if slot is None and value not in views:
            with edit.after(value):
                views[value] = view(build.add(build.mul(value, size), offset))
        elif slot is not None and slot not in views:
            views[slot] = view(build.index(offset + slot * size))
        found = views[value if slot is None else slot]
        access.operands[number], access.operands[number + 1] = found


def _is_counted(slot: ir.Value) -> bool:
    """Whether the number of a slot is made in a loop."""
    owner = slot.owner
    holder = owner.owner if isinstance(owner, ir.Block) else owner
    return any(map(is_loop, (holder.operation, *around(holder))))
