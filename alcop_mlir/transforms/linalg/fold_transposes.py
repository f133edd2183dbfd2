"""Fold transposes of tensors into the indexing maps of the ops that read them.

Before:  %t = linalg.transpose ins(%A : tensor<32x64xf16>) outs(%e) permutation = [1, 0]
         linalg.matmul ins(%t, %B) outs(%C)
After:   linalg.matmul indexing_maps = [(m, n, k) -> (k, m), ...] ins(%A, %B) outs(%C)

So are slices of transposes that only such ops read: they become slices of the source.
A transpose that nothing else uses is erased. Ops that move windows over an input read
what is transposed: they would copy it, each for itself. Memrefs are left unchanged: ops
between the two may write them, while the value of a tensor never changes.

Runs before bufferization, which would allocate a buffer for the result of each
transpose. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import Operand, view_of
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_TRANSPOSE = "linalg.transpose"
_SLICE = "tensor.extract_slice"
_PLACES = ("offsets", "sizes", "strides")  # of a slice
# Ops that may have any maps. Named batched ops have fixed maps so far.
_USERS = ("linalg.contract", "linalg.generic", "linalg.matmul")


@dataclass(frozen=True)
class FoldTransposes(Pass):
    name = "alcop-fold-transposes"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for part in walk(op, _SLICE):
            _slice_first(part)
        transposes = walk(op, _TRANSPOSE)
        for user in walk(op, *_USERS):
            if not _folds(user):
                continue
            for number in range(len(view_of(user).inputs)):
                _read_through(user, number)
        build.erase_unused(t for t in reversed(transposes) if len(t.results))


def _slice_first(part: ir.Operation) -> None:
    """Transpose a slice instead of slicing a transpose, where its readers fold that."""
    transpose = _transpose_of(part.operands[0])
    result = part.results[0]
    users = [use.owner.operation for use in result.uses]
    if transpose is None or len(part.operands) > 1 or not users:
        return
    source, order = transpose.operands[0], list(transpose.attributes["permutation"])
    if result.type.rank != len(order) or not all(map(_folds, users)):
        return
    of_result = [list(part.attributes[f"static_{one}"]) for one in _PLACES]
    of_source = [[0] * len(order) for _ in _PLACES]
    for number, dimension in enumerate(order):
        for before, after in zip(of_result, of_source, strict=True):
            after[dimension] = before[number]
    element = result.type.element_type
    kind = ir.RankedTensorType.get(of_source[1], element)
    with part.location, ir.InsertionPoint(part):
        taken = tensor.extract_slice(kind, source, [], [], [], *of_source)
        init = tensor.empty(list(result.type.shape), element)
        turned = linalg.transpose(taken, outs=[init], permutation=order)
    result.replace_all_uses_with(turned.results[0])
    part.erase()


def _folds(user: ir.Operation) -> bool:
    """Whether an op takes transposes of its inputs into its maps."""
    return user.name in _USERS and not any(map(_has_window, view_of(user).inputs))


def _has_window(operand: Operand) -> bool:
    """Whether an index is computed, so that the op would copy what lies otherwise."""
    return any(index.loops and index.loop is None for index in operand.indices)


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
