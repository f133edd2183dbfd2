"""Make `tensor.gather` of rows of a table an op of linalg, which bufferization knows.

Before:  %rows = tensor.gather %table[%indices] gather_dims([0])
             : (tensor<100x64xf16>, tensor<40x1xindex>) -> tensor<40x64xf16>
After:   %i = tensor.collapse_shape %indices [[0, 1]]
         %rows = linalg.generic ins(%i : tensor<40xindex>) outs(%empty) {
           tensor.extract %table[%index, %k] }      // loops m, k

Other gathers are left unchanged: of columns or of single elements, of tables that are
no matrices, with results that keep the gathered dimension, or of unknown size.

Runs before bufferization, of which alcop-raise-gathers reads the result. Reads and
writes no `alcop` attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@dataclass(frozen=True)
class GeneralizeGathers(Pass):
    name = "alcop-generalize-gathers"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for gather in walk(op, "tensor.gather"):
            if _takes_rows(gather):
                with gather.location, ir.InsertionPoint(gather):
                    _replace(gather)


def _takes_rows(gather: ir.Operation) -> bool:
    """Whether the result has whole rows of a matrix, one for each index."""
    table, indices, rows = (
        *(one.type for one in gather.operands),
        gather.results[0].type,
    )
    return (
        list(gather.attributes["gather_dims"]) == [0]
        and table.rank == 2
        and all(kind.has_static_shape for kind in (table, indices, rows))
        and indices.rank > 1
        and list(rows.shape) == [*indices.shape[:-1], table.shape[1]]
    )


def _replace(gather: ir.Operation) -> None:
    (table, indices), kind = gather.operands, gather.results[0].type
    rank = kind.rank
    *outer, last = indices.type.shape
    assert last == 1, gather  # as MLIR verifies
    single = ir.RankedTensorType.get(outer, indices.type.element_type)
    groups = [[number] for number in range(rank - 2)] + [[rank - 2, rank - 1]]
    numbers = tensor.collapse_shape(single, indices, groups)
    empty = tensor.empty(kind.shape, kind.element_type)
    maps = [build.loop_map(rank, range(count)) for count in (rank - 1, rank)]
    parallel = [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * rank
    op = linalg.GenericOp(
        [kind], [numbers], [empty], ir.ArrayAttr.get(maps), ir.ArrayAttr.get(parallel)
    )
    types = [single.element_type, kind.element_type]
    here = ir.Location.current
    block = op.regions[0].blocks.append(*types, arg_locs=[here] * len(types))
    with ir.InsertionPoint(block):
        row = block.arguments[0]
        if not isinstance(row.type, ir.IndexType):
            row = arith.index_cast(ir.IndexType.get(), row)
        column = linalg.IndexOp(rank - 1).result
        linalg.YieldOp([tensor.extract(table, [row, column])])
    gather.results[0].replace_all_uses_with(op.results[0])
    gather.erase()
