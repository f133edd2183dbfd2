"""Make `gpu.barrier` of NVVM's barrier for all threads of a block.

Before:  nvvm.barrier
After:   gpu.barrier

Barriers with a number, for some threads, or for warps whose threads are apart are left
unchanged.

Runs before alcop-plan-pipelines, which knows `gpu.barrier`. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass


@frozen
class RaiseBarriers(Pass):
    name = "alcop-raise-barriers"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for barrier in walk(op, "nvvm.barrier"):
            if _is_for_all(barrier):
                with barrier.location, ir.InsertionPoint(barrier):
                    gpu.barrier()
                barrier.erase()


def _is_for_all(barrier: ir.Operation) -> bool:
    """Whether all threads of a block meet in `barrier`, those of a warp together."""
    aligned = barrier.attributes["aligned"].value
    return aligned and not len(barrier.operands) and not len(barrier.results)
