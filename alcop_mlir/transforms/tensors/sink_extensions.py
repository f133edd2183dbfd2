"""Widen elements of tensors in the ops that read them, not in tensors of their own.

Before:  %x = linalg.generic ins(%A : tensor<32x64xf16>) outs(..xf32) { arith.extf }
         %y = linalg.generic ins(%B : tensor<64x128xf16>) outs(..xf32) { arith.extf }
         linalg.matmul ins(%x, %y : ..xf32) outs(%C : tensor<32x128xf32>)
After:   linalg.generic ins(%A, %B : ..xf16, ..xf16) outs(%C) {
         ^bb0(%a: f16, %b: f16, %c: f32):
           %x = arith.extf %a : f16 to f32
           %y = arith.extf %b : f16 to f32
           ... }                               // as linalg.matmul had it

An op that only widens (`arith.extf`, `arith.extsi`, `arith.extui`, or several of them)
is exact, so that it may as well run later, and often: what reads its result reads its
source, half the memory, and widens elements in its own body. A named op becomes a
`linalg.generic` for that. Reshapes, slices and transposes of the wide tensor become
those of the narrow one. What the function returns, and what other ops read, is still
made.

A contraction of extended 16-bit tensors is then one that tensor cores compute.

Runs before bufferization, and before alcop-fold-transposes, which folds what then
reaches a contraction. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import linalg_view
from alcop_mlir.analysis.tensors.extensions import Extension, find_extension
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import (
    empty_like,
    generalized,
    generic_on_tensors,
)

_TRANSPOSE = "linalg.transpose"
# Ops whose result has the elements of their first operand, in another order or shape.
_MOVES = (
    _TRANSPOSE,
    "tensor.cast",
    "tensor.collapse_shape",
    "tensor.expand_shape",
    "tensor.extract_slice",
)
# Their only work is to write, or they are moves.
_NO_READERS = ("linalg.broadcast", "linalg.copy", "linalg.fill", _TRANSPOSE)


@frozen
class SinkExtensions(Pass):
    name = "alcop-sink-extensions"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        widening: list[Any] = []
        top = walk(op, enter=lambda one: not one.name.startswith("linalg."))
        for one in top:
            if one.name in _MOVES:
                widening += _sink_below(one)
            elif one.name.startswith("linalg.") and one.name not in _NO_READERS:
                widening += _read_through(one)
        edit.erase_unused(reversed(list(dict.fromkeys(widening))))


def _sink_below(move: ir.Operation) -> list[Any]:
    """Move the elements before they are widened; the extension, if there is one."""
    found = find_extension(move.operands[0])
    if found is None or not found.is_pointwise:
        return []
    wide = move.results[0]
    with move.location, ir.InsertionPoint(move):
        moved = _moved(move, found.source)
        rank = wide.type.rank
        maps = [ir.AffineMap.get_identity(rank)] * 2
        empty = empty_like(moved, wide.type.element_type)
        made = generic_on_tensors([moved], [empty], maps)
        kinds = [found.source.type.element_type, wide.type.element_type]
        here = ir.Location.current
        block = made.regions[0].blocks.append(*kinds, arg_locs=[here] * 2)
        with ir.InsertionPoint(block):
            known = {found.argument: block.arguments[0]}
            for cast in found.casts:
                edit.clone(cast, known)
            linalg.YieldOp([known[found.casts[-1].results[0]]])
    wide.replace_all_uses_with(made.results[0])
    move.erase()
    return [found.op]


def _moved(move: ir.Operation, source: ir.Value) -> Any:
    """The result of `move` for another source."""
    element = source.type.element_type
    kind = ir.RankedTensorType.get(move.results[0].type.shape, element)
    if move.name == _TRANSPOSE:
        empty = empty_like(move.operands[1], element)
        order = list(move.attributes["permutation"])
        made = linalg.transpose(source, outs=[empty], permutation=order)
        return made.operation.results[0]
    return edit.like(move, [kind], [source, *list(move.operands)[1:]]).results[0]


def _read_through(op: ir.Operation) -> list[Any]:
    """Let `op` widen what it reads itself; the extensions that it read before."""
    view = linalg_view(op)
    inputs = () if view is None else view.inputs
    found = {
        number: extension
        for number, one in enumerate(inputs)
        if (extension := find_extension(one.value)) is not None
    }
    if view is None or not found:
        return []
    made = generalized(view)
    (block,) = made.regions[0].blocks
    maps = view.maps
    for number, extension in reversed(found.items()):
        made.operands[number] = extension.source
        maps[number] = _composed(extension.index, maps[number])
        _widen(block, number, extension)
    made.attributes["indexing_maps"] = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(one) for one in maps]
    )
    return [extension.op for extension in found.values()]


def _composed(outer: ir.AffineMap, inner: ir.AffineMap) -> ir.AffineMap:
    """The map that applies `inner` first."""
    results = [one.compose(inner) for one in outer.results]
    return ir.AffineMap.get(inner.n_dims, inner.n_symbols, results)


def _widen(block: ir.Block, number: int, extension: Extension) -> None:
    """Widen an argument of a body at its begin, where the op reads the source."""
    argument = block.arguments[number]
    argument.set_type(extension.argument.type)
    known = {extension.argument: argument}
    with ir.InsertionPoint.at_block_begin(block):
        casts = [edit.clone(cast, known) for cast in extension.casts]
    argument.replace_all_uses_except(casts[-1].results[0], casts[0].operation)
