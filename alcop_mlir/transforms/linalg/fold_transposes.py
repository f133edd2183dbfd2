"""Fold transposes of tensors into the indexing maps of the ops that read them.

Before:  %t = linalg.transpose ins(%A : tensor<32x64xf16>) outs(%e) permutation = [1, 0]
         linalg.matmul ins(%t, %B) outs(%C)
After:   linalg.matmul indexing_maps = [(m, n, k) -> (k, m), ...] ins(%A, %B) outs(%C)

A transpose that nothing else uses is erased. Ops that move windows over an input read
what is transposed: they would copy it, each for itself. Memrefs are left unchanged: ops
between the two may write them, while the value of a tensor never changes.

Runs before bufferization, which would allocate a buffer for the result of each
transpose. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import view_of
from alcop_mlir.analysis.tensors.row_orders import ANY_MAPS, folds
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass

_TRANSPOSE = "linalg.transpose"


@frozen
class FoldTransposes(Pass):
    name = "alcop-fold-transposes"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        transposes = walk(op, _TRANSPOSE)
        for user in walk(op, *ANY_MAPS):
            if not folds(user):
                continue
            for number in range(len(view_of(user).inputs)):
                _read_through(user, number)
        edit.erase_unused(t for t in reversed(transposes) if len(t.results))


def _read_through(user: ir.Operation, number: int) -> None:
    """Replace input `number` by the source of the transposes that make it."""
    while (transpose := _transpose_of(user.operands[number])) is not None:
        maps = list(user.attributes["indexing_maps"])
        affine_map = maps[number].value
        results = list(affine_map.results)
        for dimension, result in zip(
            transpose.attributes["permutation"], affine_map.results, strict=True
        ):
            results[dimension] = result
        changed = ir.AffineMap.get(affine_map.n_dims, affine_map.n_symbols, results)
        maps[number] = ir.AffineMapAttr.get(changed)
        user.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
        user.operands[number] = transpose.operands[0]


def _transpose_of(value: ir.Value) -> Any | None:
    is_tensor = isinstance(value.type, ir.RankedTensorType)
    return made_by(value, _TRANSPOSE) if is_tensor else None
