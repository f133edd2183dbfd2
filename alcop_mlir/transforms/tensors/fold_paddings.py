"""Let reductions of windows read an image that is padded, and know what is around it.

Before:  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] { yield %v }
             : tensor<1x32x32x64xf16> to tensor<1x34x34x64xf16>
         %y = linalg.generic {indexing_maps = [(n, h, w, c, i, j) ->
                  (n, 2 h + i, 2 w + j, c), ..]} ins(%p, %window) outs(%init) {
              ^bb0(%element, ..): arith.maximumf ... }
After:   %y = linalg.generic ins(%window) outs(%init) {
              %h = ...                            // 2 h + i - 1, and so on
              %inside = ...                       // %h < 32 and %w < 32, unsigned
              %read = tensor.extract %x[%n, %h0, %w0, %c]   // 0 if not
              %element = arith.select %inside, %read, %v
              arith.maximumf ... }

What makes %x writes it as it lies, a contraction as its epilogue, and nothing copies
it into a larger buffer. Only ops that read nothing else are changed: pools, whose
window is a tensor for its shape. Convolutions know zeros around an image by
themselves (alcop-raise-convolutions). A pad is left unchanged where other ops read it
too, where a size that it changes is not known, or where what is around the image is
computed.

Runs before bufferization, after alcop-propagate-layouts. Reads and writes no `alcop`
attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, keep_marks

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@frozen
class FoldPaddings(Pass):
    name = "alcop-fold-paddings"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for pad in walk(op, "tensor.pad"):
            readers = [_reader(use) for use in pad.results[0].uses]
            found = _padding(pad)
            if found is None or not readers or None in readers:
                continue
            for view in (one for one in readers if one is not None):
                with view.op.location, ir.InsertionPoint(view.op):
                    _replace(view, found)
            pad.erase()


@frozen
class _Padding:
    """An image, and `around` it one value, before and after it in each dimension.

    low: how far the image begins behind where the padded one does, per dimension that
         is padded
    """

    padded: Any
    image: Any
    around: Any
    low: dict[int, int]


def _padding(pad: ir.Operation) -> _Padding | None:
    """What `pad` does; None where sizes are not known, or the value is computed."""
    image, result = pad.operands[0], pad.results[0]
    low, high = (list(pad.attributes[f"static_{one}"]) for one in ("low", "high"))
    (block,) = pad.regions[0].blocks
    (around,) = block.operations[-1].operation.operands
    if _DYNAMIC in (*low, *high) or around.owner == block or _is_in(around, block):
        return None
    pairs = zip(low, high, strict=True)
    changed = [number for number, pair in enumerate(pairs) if any(pair)]
    kind = image.type
    if any(kind.is_dynamic_dim(n) or not kind.shape[n] for n in changed):
        return None
    return _Padding(result, image, around, {number: low[number] for number in changed})


def _is_in(value: ir.Value, block: ir.Block) -> bool:
    """Whether a value is made in a block."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.block == block


def _reader(use: Any) -> LinalgView | None:
    """The op of a use if it reduces windows of what it reads there, and of no more."""
    view = linalg_view(use.owner.operation)
    if view is None or use.operand_number >= len(view.inputs):
        return None
    operand = view.inputs[use.operand_number]
    others = [one for one in view.inputs if one is not operand]
    sized = {loop for one in (*others, *view.outputs) for loop in one.loops}
    is_alone = bool(view.reductions) and not any(one.is_read for one in others)
    is_linear = all(index.coefficients is not None for index in operand.indices)
    has_sizes = {*range(view.rank)} <= sized
    return view if is_alone and is_linear and has_sizes else None


def _replace(view: LinalgView, padding: _Padding) -> None:
    """Replace the op by one that reads the image."""
    (operand,) = (one for one in view.inputs if one.value == padding.padded)
    kept = [one for one in view.operands if one is not operand]
    inputs = [one.value for one in kept[: len(view.inputs) - 1]]
    outputs = [one.value for one in view.outputs]
    maps = [one.map for one in kept]
    made = generic_on_tensors(inputs, outputs, maps, view.reductions)
    keep_marks(view.op, made)
    types = [one.value.type.element_type for one in kept]
    places = [ir.Location.current] * len(types)
    block = made.regions[0].blocks.append(*types, arg_locs=places)
    with ir.InsertionPoint(block):
        elements = dict(
            zip((one.argument for one in kept), block.arguments, strict=True)
        )
        elements[operand.argument] = _element(operand, padding)
        linalg.YieldOp(edit.inline(view.block, elements))
    for old, new in zip(view.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    view.op.erase()


def _element(operand: Operand, padding: _Padding) -> Any:
    """What the padded image has at the operand's indices."""
    inside, places = None, []
    for number, index in enumerate(operand.indices):
        place = build.value(index.offset - padding.low.get(number, 0))
        for loop, factor in zip(index.loops, index.coefficients or (), strict=True):
            place = build.add(build.mul(linalg.IndexOp(loop).result, factor), place)
        if number in padding.low:
            size = build.value(padding.image.type.shape[number])
            fits = arith.cmpi(arith.CmpIPredicate.ult, place, size)
            place = build.select(fits, place, 0)
            inside = build.both(inside, fits)
        places.append(place)
    read = tensor.extract(padding.image, places)
    return read if inside is None else arith.select(inside, read, padding.around)
