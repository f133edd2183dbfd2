"""Let loops over integers count in index.

Before:  scf.for %k = %lower to %upper step %step : i32 { use of %k }
After:   %l, %u, %s = arith.index_cast %lower, %upper, %step : i32 to index
         scf.for %i = %l to %u step %s {
           %k = arith.index_cast %i : index to i32 ; use of %k }

Bounds keep their sign: those of a loop that compares without sign are extended by
zeros. Such a loop over i64 is left unchanged, as an index has no more bits, and loops
over wider integers are. Indices are taken to have 64 bits, as alcop-lower-to-nvvm has
them.

Runs before alcop-plan-pipelines and canonicalize. Keeps attributes of loops.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.loops import body as body_of
from alcop_mlir.analysis.ir.loops import bounds, init_args, loops_in
from alcop_mlir.bindings import arith, ir, scf
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass

_UNSIGNED = "unsignedCmp"
_INDEX_BITS = 64


@frozen
class NormalizeLoops(Pass):
    name = "alcop-normalize-loops"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for loop in reversed(loops_in(op)):
            if _fits_index(loop):
                _count_in_index(loop)


def _fits_index(loop: ir.Operation) -> bool:
    """Whether the loop counts in integers, all of which an index can be."""
    kind = body_of(loop).arguments[0].type
    if not isinstance(kind, ir.IntegerType):
        return False
    return kind.width + (_UNSIGNED in loop.attributes) <= _INDEX_BITS


def _count_in_index(loop: ir.Operation) -> None:
    index, block = ir.IndexType.get(), body_of(loop)
    counter, *carried = block.arguments
    extend = arith.index_castui if _UNSIGNED in loop.attributes else arith.index_cast
    with loop.location, ir.InsertionPoint(loop):
        limits = [extend(index, bound) for bound in bounds(loop)]
        new = scf.ForOp(*limits, init_args(loop)).operation
    edit.keep_attributes(loop, new)
    if _UNSIGNED in new.attributes:
        del new.attributes[_UNSIGNED]
    with loop.location, ir.InsertionPoint(body_of(new)):
        first = arith.index_cast(counter.type, body_of(new).arguments[0])
    counter.replace_all_uses_with(first)
    for old, value in zip(carried, list(body_of(new).arguments)[1:], strict=True):
        old.replace_all_uses_with(value)
    edit.move_ops(block, body_of(new))
    for old, result in zip(loop.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    loop.erase()
