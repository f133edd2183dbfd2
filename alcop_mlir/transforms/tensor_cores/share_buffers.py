"""Let workgroup buffers that a kernel uses in turn share memory.

Before:  %a = memref.alloc() ; %b = memref.alloc()        // of one size
         scf.for ... { use(%a) } ; copy to %b ; scf.for ... { use(%b) }
After:   %a = memref.alloc() {alcop.shares = 0}
         %b = memref.alloc() {alcop.shares = 0}
         scf.for ... { use(%a) }
         nvvm.cp.async.wait.group 0 ; gpu.barrier
         copy to %b ; scf.for ... { use(%b) }

Two loops in turn, as causal attention has them, each have slots of their own; the
second ones take the memory of the first. Before they are filled all copies into the
first have landed, those of a tail too, and all threads have read them.

Left unchanged are buffers that are used at the same time, or in ways that are not
known; those that no asynchronous copy fills, as the few words that warps exchange: a
barrier costs more; and those of launches with several blocks of ops.

Runs after alcop-place-waits and the passes that lower copies and vectors, so that each
access is there, and before alcop-outline-kernels, which reads `alcop.shares`: buffers
with equal numbers begin at the same address.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.buffer_spans import Shared, shared_in_turn
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.staging import OVERLAID, SHARES
from alcop_mlir.bindings import gpu, ir, nvvm
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_COPY = "nvgpu.device_async_copy"


@frozen
class ShareBuffers(Pass):
    name = "alcop-share-buffers"

    def run(self, op: ir.Operation) -> None:
        for launch in walk(op, "gpu.launch"):
            if len(list(launch.regions[0].blocks)) == 1:
                _share(launch.regions[0].blocks[0])


def _share(body: ir.Block) -> None:
    copies = [copy for op in body.operations for copy in walk(op, _COPY)]
    filled = {root(copy.opview.dst) for copy in copies}
    allocs = [
        op.operation
        for op in body.operations
        if op.operation.name == "memref.alloc"
        and op.operation.results[0] in filled
        and OVERLAID not in op.operation.attributes
    ]
    groups = shared_in_turn(body, allocs)
    ops = [op.operation for op in body.operations]
    for number, group in enumerate(groups):
        for alloc in group.allocs:
            alloc.attributes[SHARES] = ir.IntegerAttr.get(build.integer(64), number)
    for place in _meetings(groups):
        with ops[place].location, ir.InsertionPoint(ops[place]):
            nvvm.cp_async_wait_group(0)
            gpu.barrier()


def _meetings(groups: list[Shared]) -> list[int]:
    """Where threads meet: once for all buffers that are filled at one place."""
    gaps = [gap for group in groups for gap in group.gaps]
    found: list[int] = []
    for last, first in sorted(gaps, key=lambda gap: gap[1]):
        if not found or found[-1] <= last:
            found.append(first)
    return found
