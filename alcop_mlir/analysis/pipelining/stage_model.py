"""How many shared stages a loop gets if the user does not choose them.

With S slots a copy has S - 1 iterations to land. The model takes the smallest S for
which these are as long as a copy from DRAM takes; more slots would only cost shared
memory. An iteration is taken to be as long as the schedulers of an SM need to issue the
instructions of the block's warps, one cycle each. That is a rough estimate: what else
runs on the SM is not known. Loops with an unknown trip count count once.
"""

from __future__ import annotations

import math

from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import body, is_loop, trip_count
from alcop_mlir.bindings import ir
from alcop_mlir.schedule import MAX_SHARED_STAGES
from alcop_mlir.target import WARP_SIZE

# Latency in cycles of a load that misses the caches; A100, arXiv 2402.13499.
COPY_LATENCY = 466
SCHEDULERS = 4  # of an SM, each issues one instruction per cycle; A100 white paper
# Multiply-adds of one scheduler's tensor core per cycle, f16; A100 white paper.
TENSOR_FMAS = 256
DEFAULT_THREADS = 128  # of a block, where they are not known
_FREE = frozenset("arith.constant scf.yield memref.subview memref.cast".split())


def shared_stages(loop: ir.Operation) -> int:
    """The number of slots with which the copies of `loop` land in time; at least 2."""
    per_warp = sum(_cycles(op.operation) for op in body(loop).operations)
    cycles = max(1.0, per_warp * _warps(loop) / SCHEDULERS)
    return min(MAX_SHARED_STAGES, 1 + math.ceil(COPY_LATENCY / cycles))


def _cycles(op: ir.Operation) -> float:
    """Cycles in which a scheduler issues `op` for one warp."""
    if op.name in _FREE:
        return 0
    if op.name == "vector.contract":
        left, right, _ = (math.prod(value.type.shape) for value in op.operands)
        result = math.prod(op.results[0].type.shape)
        return math.sqrt(left * right * result) / TENSOR_FMAS
    inside = sum(
        _cycles(inner.operation)
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )
    times = (trip_count(op) or 1) if is_loop(op) else 1
    return times * inside + max(1, _elements(op) / WARP_SIZE)


def _elements(op: ir.Operation) -> int:
    """Elements of the largest vector that is a result of `op`; 1 without vectors."""
    kinds = [result.type for result in op.results]
    return max(
        (math.prod(k.shape) for k in kinds if isinstance(k, ir.VectorType)), default=1
    )


def _warps(loop: ir.Operation) -> int:
    """Warps of the block that runs `loop`."""
    block = enclosing(loop)
    sizes = [None] if block is None else [*block.shape]
    known = [size for size in sizes if size is not None]
    threads = math.prod(known) if known == sizes else DEFAULT_THREADS
    return max(1, threads // WARP_SIZE)
