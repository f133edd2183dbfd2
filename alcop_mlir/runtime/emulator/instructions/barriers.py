"""bar, barrier, bar.warp.sync, fences, setmaxnreg: how they are read, what they call.

PTX ISA "Parallel Synchronization and Communication Instructions". The barriers of a
block themselves are in `machine.barriers`.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import BOOL, U32, Array
from alcop_mlir.runtime.emulator.instructions.flags import fence_order, on_order
from alcop_mlir.runtime.emulator.instructions.register_pool import RegisterCall
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator, nothing
from alcop_mlir.runtime.emulator.machine.barriers import BarrierCall
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.releases import Order
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Operand,
    unsupported,
)

# PTX ISA "membar, fence": `.proxykind`; what mbarriers need is checked at their use.
_ASYNC_PROXY = ("async", "async::generic")
_INIT = "mbarrier_init"


def decode_barrier(t: Translator, ins: Instruction) -> BarrierCall:
    """Reads any form of bar and barrier but bar.warp and barrier.cluster."""
    parts = [p for p in ins.parts if p != "cta"]
    kind = parts[1] if len(parts) > 1 else ""
    if kind not in ("sync", "arrive", "red"):
        raise unsupported(ins)
    aligned = parts[0] == "bar" or "aligned" in parts
    operands: list[Operand] = list(ins.operands)
    reduction, predicate, result = None, None, -1
    if kind == "red":
        reduction = parts[2]
        dtype = U32 if reduction == "popc" else BOOL
        result = t.result(operands.pop(0), dtype, ins)[0]
        predicate = t.read(operands.pop(), PRED, ins)
    if not 1 <= len(operands) <= 2 or (kind == "arrive" and len(operands) == 1):
        raise unsupported(ins)
    resource = t.read(operands[0], U32T, ins)
    count = t.read(operands[1], U32T, ins) if len(operands) > 1 else None
    return BarrierCall(
        ins, kind, aligned, resource, count, reduction, predicate, result
    )


def decode_registers(t: Translator, ins: Instruction) -> RegisterCall:
    """Reads setmaxnreg."""
    count = ins.operands[0]
    if ins.parts[1] not in ("inc", "dec") or not isinstance(count, Integer):
        raise unsupported(ins)
    if count.value % 8 or not 24 <= count.value <= 256:
        raise unsupported(ins, "expected a multiple of 8 from 24 to 256")
    return RegisterCall(ins, ins.parts[1] == "inc", count.value)


def new_epoch(cohort: Cohort, mask: Mask) -> None:
    """The op of a warp whose lanes have met in the instruction before."""
    cohort.warp_sync(mask)


def translate_warp_barrier(t: Translator, ins: Instruction) -> Op:
    """bar.warp.sync."""
    read = t.read(ins.operands[0], U32T, ins)
    return lambda cohort, mask: cohort.warp_barrier(mask, read(cohort.R))


def translate_fence(t: Translator, ins: Instruction) -> Op:
    """Fences of memory, of proxies, and of objects.

    fence.proxy.async lets engines see what the warp has written, to the memory that it
    names, fence.mbarrier_init other threads of the cluster its mbarrier.init.
    """
    if _INIT in ins.parts:
        return _fence_init
    if any(part in _ASYNC_PROXY for part in ins.parts):
        return _async_proxy_fence(ins)
    order = memory_order(ins)
    if order is None:
        return nothing

    def run(cohort: Cohort, mask: Mask) -> None:
        on_order(cohort, mask, order)
        if cohort.batch.releases is not None:
            cohort.batch.releases.fence(_active(cohort, mask), order)

    return run


def memory_order(ins: Instruction) -> Order | None:
    """What a membar or fence orders in memory; None if it is of proxies or objects."""
    if _INIT in ins.parts or "proxy" in ins.parts:
        return None
    return fence_order(ins)


def _async_proxy_fence(ins: Instruction) -> Op:
    named = {"global", "shared"}.intersection(
        word for part in ins.parts for word in part.split("::")
    )
    spaces = sorted(named) or ("global", "shared")

    def run(cohort: Cohort, mask: Mask) -> None:
        if cohort.batch.shadow is not None:
            cohort.batch.clocks.fence_proxy(_active(cohort, mask), spaces)
            if "global" in spaces:
                cohort.fence_proxy(mask)

    return run


def _fence_init(cohort: Cohort, mask: Mask) -> None:
    if cohort.batch.shadow is not None:
        cohort.batch.clocks.fence_init(_active(cohort, mask))


def _active(cohort: Cohort, mask: Mask) -> Array:
    """The warps that are on, bool (1|copies of the clocks, warps)."""
    batch = cohort.batch
    active = np.zeros((cohort.blocks, batch.warps), bool)
    active[:, cohort.span] = True if mask is None else mask.any(axis=2)
    if batch.shadow is not None and (active != active[:1]).any():
        batch.shadow.widen(cohort.blocks)
    return active[: batch.clocks.copies]
