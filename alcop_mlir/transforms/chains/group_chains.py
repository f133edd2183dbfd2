"""Group contraction, element-wise ops, row reductions and contraction on tensors.

Before:  %s = linalg.batch_matmul ins(%q, %k) ...       // scores
         ... linalg.generic ...                         // scale, masks, softmax of rows
         %o = linalg.batch_matmul ins(%p, %v) ...
After:   %o = scf.execute_region -> tensor<...> no_inline {
           %s = linalg.generic {alcop.chain = {role = "scores", ...}} ins(%q, %k)
           %x = linalg.generic {alcop.chain = {role = "elements"}} ins(%s, %mask)
           %m = linalg.generic {alcop.chain = {role = "maximum"}} ins(%x)
           %w = linalg.generic {alcop.chain = {role = "weights"}} ins(%x, %m)
           %l = linalg.generic {alcop.chain = {role = "total"}} ins(%w)
           %p = linalg.generic {alcop.chain = {role = "contracted"}} ins(%w, %v)
           %o = linalg.generic {alcop.chain = {role = "result"}} ins(%p, %l)
           scf.yield %o }

What is a chain is found from loops, maps and bodies, and proven there
(`analysis/chains`). What the region holds means the same, but for roundings to 16 bits
on the way: weights are divided by what a whole row shares after they are multiplied.
Operands are read from the tensors that they are copies of, in other orders or repeated
for several heads, and the result is written where the ops after it put it. Where chains
are refused, a remark at the last contraction says why; a contraction on a row of
softmax that it can be, but for its types or sizes, is left unchanged.

The region keeps the ops together: bufferization goes through it without copies, and no
pass outlines or inlines it. Runs after alcop-fold-transposes, before bufferization;
alcop-tile-chains makes a kernel of the region. Writes `alcop.chain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.chains.chains import Chain, find_chains
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.bindings import ir, scf, tensor
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.chains.chain_ops import (
    ChainOps,
    with_loops,
    without_loops,
)

# All ops of these dialects work on tensors, before bufferization.
_WITHOUT_EFFECTS = ("linalg.", "tensor.", "arith.")


@dataclass(frozen=True)
class GroupChains(Pass):
    name = "alcop-group-chains"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for found in list(find_chains(op)):
            if isinstance(found, Chain):
                _group(found)
            else:
                diagnostics.remark(found.op, _message(found.reason))


def _message(reason: str) -> str:
    return f"not one kernel with the contraction before its rows' reductions: {reason}"


def _group(chain: Chain) -> None:
    """Build the chain where its result is made, and use that instead."""
    old = chain.result.value
    place = old.owner.operation
    with place.location, ir.InsertionPoint(place):
        new = _region(chain)
    old.replace_all_uses_with(new)
    _erase(place)


def _region(chain: Chain) -> Any:
    where, kind = chain.result.indices, chain.result.value.type
    target = tensor.empty(list(kind.shape), kind.element_type)
    region = scf.ExecuteRegionOp([kind], no_inline=True)
    block = region.regions[0].blocks.append()
    with ir.InsertionPoint(block):
        part = with_loops(target, where, chain.extents)
        made = ChainOps(chain).build(part)
        scf.YieldOp([without_loops(made, where, kind)])
    return region.results[0]


def _erase(last: ir.Operation) -> None:
    """Erase the ops that the chain replaces: `last`, and what only that needs."""
    makers: set[Any] = set()
    pending = [last]
    while pending:
        op = pending.pop()
        if op not in makers and op.name.startswith(_WITHOUT_EFFECTS):
            makers.add(op)
            pending.extend(one for one in map(defining_op, op.operands) if one)
    block = last.block
    order = reversed(list(block.operations))
    build.erase_unused([op for op in order if op in makers])
