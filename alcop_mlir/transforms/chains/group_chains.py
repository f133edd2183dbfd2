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

Where no row is reduced there are no "elements", "maximum" and "total": "weights" are
any element-wise function of the scores, of indices and of inputs. That is one kernel
where the scores have more elements than operands and result together.

What is a chain is found from loops, maps and bodies, and proven there
(`analysis/chains`). What the region holds means the same, but for roundings to 16 bits
on the way: weights are divided by what a whole row shares after they are multiplied.
Operands are read from the tensors that they are copies of, in other orders or repeated
for several heads, and the result is written where the ops after it put it. Where chains
are refused, a remark at the last contraction says why; a contraction on a row of
softmax that it can be, but for its types or sizes, is left unchanged.

Sizes of the batch, of rows and of columns may be known at run time only; they are those
of queries, keys and values.

The region keeps the ops together: bufferization goes through it without copies, and no
pass outlines or inlines it. Runs after alcop-fold-transposes, before bufferization;
alcop-tile-chains makes a kernel of the region. Writes `alcop.chain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.chains.chains import Chain, find_chains
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.bindings import ir, scf, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.chains.chain_ops import (
    ChainOps,
    found_leaves,
    full_sizes,
    loop_sizes,
    with_loops,
    without_loops,
)

# All ops of these dialects work on tensors, before bufferization.
_WITHOUT_EFFECTS = ("linalg.", "tensor.", "arith.")


@frozen
class GroupChains(Pass):
    name = "alcop-group-chains"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        found = list(find_chains(op))
        while _grouped(found):
            found = list(find_chains(op))
        for one in found:
            if not isinstance(one, Chain):
                diagnostics.remark(one.op, _message(one.reason))


def _grouped(found: Sequence[Chain | Rejected]) -> bool:
    """Group the chains that do not replace what others read; whether some do."""
    chains = [one for one in found if isinstance(one, Chain)]
    apart = _apart(chains)
    for chain in apart:
        _group(chain)
    return len(apart) < len(chains)


def _message(reason: str) -> str:
    return f"not one kernel with the contraction that its weights are of: {reason}"


def _apart(chains: list[Chain]) -> list[Chain]:
    """Those that are of the function still when the others of them are grouped."""
    kept: list[Chain] = []
    replaced: set[Any] = set()
    for chain in chains:
        if replaced.isdisjoint(_read(chain)):
            kept.append(chain)
            replaced.update(_replaced(chain))
    return kept


def _read(chain: Chain) -> set[Any]:
    """The tensors that a chain begins with, and its scores."""
    leaves = found_leaves(chain.weights, {}) + found_leaves(chain.result.element, {})
    matrices = (chain.queries, chain.keys, chain.values)
    return {
        chain.first.results[0],
        *(one.value for one in matrices),
        *(leaf.detail[0] for leaf in leaves),
    }


def _replaced(chain: Chain) -> set[Any]:
    """The tensors from the last contraction to the result of the chain."""
    at = chain.last.results[0]
    found = {at}
    while at != chain.result.value:
        user = next(iter(at.uses)).owner.operation
        (at,) = user.results
        found.add(at)
    return found


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
    sizes = loop_sizes(chain)
    target = tensor.empty(full_sizes(where, sizes), kind.element_type)
    region = scf.ExecuteRegionOp([kind], no_inline=True)
    block = region.regions[0].blocks.append()
    with ir.InsertionPoint(block):
        part = with_loops(target, where, sizes)
        made = ChainOps(chain, sizes).build(part)
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
    edit.erase_unused([op for op in order if op in makers])
