"""Make `tensor.gather` an op of linalg, which bufferization knows.

Before:  %rows = tensor.gather %table[%indices] gather_dims([0])
             : (tensor<100x64xf16>, tensor<40x1xindex>) -> tensor<40x64xf16>
After:   %i = tensor.collapse_shape %indices [[0, 1]]
         %rows = linalg.generic ins(%i : tensor<40xindex>) outs(%empty) {
           tensor.extract %table[%index, %k] }      // loops m, k

Gathers of other elements, along several dimensions too, are such ops as well; where
there are several indices for each, the body reads them.

Runs before bufferization, of which alcop-raise-gathers reads the result. Reads and
writes no `alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@frozen
class GeneralizeGathers(Pass):
    name = "alcop-generalize-gathers"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for gather in walk(op, "tensor.gather"):
            with gather.location, ir.InsertionPoint(gather):
                _replace(gather)


def _replace(gather: ir.Operation) -> None:
    (table, indices), kind = gather.operands, gather.results[0].type
    along = list(gather.attributes["gather_dims"])
    outer = indices.type.rank - 1
    # The loop of each dimension of the table that is not gathered along.
    has_all = kind.rank == outer + table.type.rank
    left = [n for n in range(table.type.rank) if has_all or n not in along]
    loops = {n: outer + place for place, n in enumerate(left) if n not in along}
    sources = [(indices, n) for n in range(outer)] + [(table, n) for n in left]
    op = linalg.GenericOp(
        [kind],
        [_single(indices)] if len(along) == 1 else [],
        [tensor.empty(_sizes(kind, sources), kind.element_type)],
        ir.ArrayAttr.get(
            [build.loop_map(kind.rank, range(outer))] * (len(along) == 1)
            + [build.loop_map(kind.rank, range(kind.rank))]
        ),
        ir.ArrayAttr.get(
            [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * kind.rank
        ),
    )
    types = [one.type.element_type for one in op.operands]
    here = ir.Location.current
    block = op.regions[0].blocks.append(*types, arg_locs=[here] * len(types))
    with ir.InsertionPoint(block):
        places = {n: linalg.IndexOp(loop).result for n, loop in loops.items()}
        for component, n in enumerate(along):
            number = block.arguments[0]
            if len(along) > 1:
                number = _component(indices, component)
            if not isinstance(number.type, ir.IndexType):
                number = arith.index_cast(ir.IndexType.get(), number)
            places[n] = number
        indices_of = [places[n] for n in range(table.type.rank)]
        linalg.YieldOp([tensor.extract(table, indices_of)])
    gather.results[0].replace_all_uses_with(op.results[0])
    gather.erase()


def _sizes(kind: ir.RankedTensorType, sources: list[tuple[Any, int]]) -> list[Any]:
    """The sizes of the result, whose dimensions are those of `sources`."""
    return [
        tensor.dim(value, build.index(number))
        if kind.is_dynamic_dim(n)
        else kind.shape[n]
        for n, (value, number) in enumerate(sources)
    ]


def _single(indices: ir.Value) -> ir.Value:
    """Indices without their last dimension, of size 1."""
    kind = indices.type
    rank = kind.rank - 1
    shape = [
        ir.ShapedType.get_dynamic_size() if kind.is_dynamic_dim(n) else kind.shape[n]
        for n in range(rank)
    ]
    groups = [[n] for n in range(rank - 1)] + [[rank - 1, rank]] * (rank > 0)
    single = ir.RankedTensorType.get(shape, kind.element_type)
    return tensor.collapse_shape(single, indices, groups)


def _component(indices: ir.Value, number: int) -> ir.Value:
    """One of the indices of an element, in the body."""
    outer = [linalg.IndexOp(n).result for n in range(indices.type.rank - 1)]
    return tensor.extract(indices, [*outer, build.index(number)])
