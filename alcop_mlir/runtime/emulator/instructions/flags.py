"""Strong accesses and fences: what their modifiers say, and what they order.

PTX ISA "Memory Consistency Model", "ld", "st", "atom", "membar, fence". An access is
weak unless its opcode says otherwise, but for atomics, which are .relaxed.gpu;
.volatile is as .relaxed.sys. What has been released is in `machine.releases`.
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.releases import CLUSTER, CTA, GPU, Order
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

_SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "gl": GPU, "sys": GPU}
_STRONG = ("relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")


def scope_of(ins: Instruction) -> int:
    """The scope that it names, .gpu without."""
    return next((_SCOPES[part] for part in ins.parts if part in _SCOPES), GPU)


def order_of(ins: Instruction) -> Order | None:
    """That of a load, store or atomic which names one; None if it does not."""
    found = next((part for part in ins.parts[1:] if part in _STRONG), None)
    if found is None:
        return None
    scope = GPU if found in ("volatile", "mmio") else scope_of(ins)
    return Order(
        scope, found in ("acquire", "acq_rel"), found in ("release", "acq_rel")
    )


def fence_order(ins: Instruction) -> Order:
    """That of a membar, or of a fence that is not of a proxy."""
    only = {"acquire", "release"}.intersection(ins.parts)
    return Order(scope_of(ins), only != {"release"}, only != {"acquire"})


def on_read(cohort: Cohort, lanes: Lanes, space: str, order: Order) -> None:
    """After a strong read by these lanes, with an entry for each of them."""
    if cohort.batch.releases is not None:
        cohort.batch.releases.read(lanes, space, order)


def on_write(
    cohort: Cohort,
    lanes: Lanes,
    space: str,
    order: Order | None,
    updates: bool = False,
) -> None:
    """After a write; of an atomic if it `updates`."""
    releases = cohort.batch.releases
    if releases is None:
        return
    if order is None:
        releases.forget(lanes, space)
    else:
        releases.write(lanes, space, order, updates)


def on_order(cohort: Cohort, mask: Mask, order: Order) -> None:
    """Before an access or fence that acquires or releases: beyond the cluster?"""
    if order.scope == GPU and (order.acquires or order.releases):
        cohort.fence(mask)
