"""In which order the dimensions of tensors should be kept, so that channels are last.

A convolution asks for its image and output with channels last, and for its filter as
rows of taps and channels. Ops that pass elements on, or compute each from those with
the same index, want their other tensors alike:

    conv_2d_nchw_fchw -> linalg.generic -> tensor.pad -> pooling_nchw_max -> ...

A linalg op reads and writes tensors of any order: its maps say where elements are. What
else can do so, `moves_freely` says. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import block_of, defining_op, splat
from alcop_mlir.analysis.linalg.convolutions import FEWEST_CHANNELS
from alcop_mlir.analysis.linalg.view import Index, LinalgView, Operand, linalg_view
from alcop_mlir.bindings import ir

# A tensor's dimensions in the order in which they are kept.
Order = tuple[int, ...]
# A tensor, and those of its dimensions that are kept last.
_Wanted = tuple[Any, list[int]]

_TRANSPOSE = "linalg.transpose"
_MADE_IN_ANY_ORDER = ("linalg.fill", "tensor.empty")


def find_orders(block: ir.Block) -> dict[Any, Order]:
    """The order of each tensor in `block` that should have another than it has.

    Arguments of the block, and results of its ops; not what `is_free`, nor what the
    last convolution or pooling can write as the block's readers want it. None where all
    convolutions are of pixels, each by itself.
    """
    views = [view for op in block.operations if (view := moving_view(op)) is not None]
    if not any(map(_has_windows, views)):
        return {}
    wanted = [one for view in views for one in _image_and_output(view)]
    found: dict[Any, Order] = {}
    while wanted:
        value, last = wanted.pop()
        rank = value.type.rank
        order = (*(n for n in range(rank) if n not in last), *last)
        if value in found or is_free(value) or order == tuple(range(rank)):
            continue
        found[value] = order
        for op in _around(value, block):
            wanted += _alike(op, value, last)
    moved = [one for one in views if _is_moved(one.op, found)]
    for value in list(found):
        for one in _written_at_once(value, found):
            del found[one]
    filters = (one for view in moved for one in _filter(view))
    return {**dict(filters), **found}


def _is_moved(op: Any, found: Mapping[Any, Order]) -> bool:
    return any(one in found for one in tensors_of(op))


def _written_at_once(value: Any, found: Mapping[Any, Order]) -> list[Any]:
    """Values from a reduction to `value` that should be written as they are read.

    Those that nothing reads in another order, if one op after the other makes each of
    the one before alone: they are computed on the accumulators then. Not where an op
    reads a vector of channels, too, which would be along rows of them.
    """
    readers = [use.owner.operation for use in value.uses]
    if any(moving_view(op) or moves_freely(op) for op in readers):
        return []
    if any(op.name == _TRANSPOSE for op in readers):  # might cancel another
        return []
    chain = [value]
    while (op := defining_op(chain[-1])) is not None:
        view = moving_view(op)
        if view is None or len(op.results) != 1:
            return []
        if view.reductions:
            return chain
        read = [one.value for one in view.operands if one.is_tensor and one.is_read]
        if len(read) != 1 or read[0] not in found or sum(1 for _ in read[0].uses) != 1:
            return []
        chain += read
    return []


def moving_view(op: ir.Operation) -> LinalgView | None:
    """The view of a linalg op on tensors that can have its operands in any order.

    Not of a transpose, which is there to change the order.
    """
    operation = op.operation
    if not len(operation.results) or operation.name == _TRANSPOSE:
        return None
    view = linalg_view(operation)
    if view is None or any(one.argument is None for one in view.operands):
        return None  # its body cannot be that of a generic op
    return view


def moves_freely(op: ir.Operation) -> bool:
    """Whether it is no linalg op, and does the same to tensors of any order."""
    if op.name == "tensor.pad":
        (block,) = op.regions[0].blocks
        end = block.operations[-1].operation
        return block_of(end.operands[0]) != block
    return op.name == "tensor.concat"


def is_free(value: ir.Value) -> bool:
    """Whether it costs nothing to make in another order: its elements are equal."""
    op = defining_op(value)
    return op is not None and (
        op.name in _MADE_IN_ANY_ORDER or splat(value) is not None
    )


def tensors_of(op: ir.Operation) -> list[Any]:
    """The operands and results that are tensors."""
    every = [*op.operands, *op.results]
    return [one for one in every if isinstance(one.type, ir.RankedTensorType)]


def _around(value: ir.Value, block: ir.Block) -> Iterator[Any]:
    """The op that makes a value, and those that read it, in `block` itself."""
    maker = defining_op(value)
    ops = [use.owner.operation for use in value.uses]
    yield from (op for op in (maker, *ops) if op is not None and op.block == block)


def _alike(op: Any, value: Any, last: Sequence[int]) -> Iterator[_Wanted]:
    """Tensors of `op` that should have the dimensions last that `value` has."""
    view = moving_view(op)
    if view is None:
        tensors = tensors_of(op) if moves_freely(op) else []
        yield from ((one, list(last)) for one in tensors)
        return
    held = list(_held(view))
    for own in (one for one, tensor in held if tensor == value):
        for other, wanted in held:
            found = _beside(other, own, last)
            if found is not None:
                yield wanted, found


def _held(view: LinalgView) -> Iterator[tuple[Operand, Any]]:
    """The operands with the tensors that they stand for: outputs, for results too."""
    yield from ((operand, operand.value) for operand in view.operands)
    yield from zip(view.outputs, view.op.results, strict=True)


def _beside(other: Operand, own: Operand, last: Sequence[int]) -> list[int] | None:
    """The dimensions of `other` that have the loops of `own` along those that are last.

    None where the dimensions that are left do not go along those of `own`, in order.
    """
    found = _along(other, [own.loops[number] for number in last])
    if found is None or len(other.indices) != len(own.indices):
        return None
    sides = zip(_without(own, last), _without(other, found), strict=True)
    has_equal_loops = all(
        not one.loops or not two.loops or {*one.loops} & {*two.loops}
        for one, two in sides
    )
    return found if has_equal_loops else None


def _along(operand: Operand, loops: Sequence[int | None]) -> list[int] | None:
    """The dimensions that these loops index; None if one does so to none or several."""
    if any(loop is None or operand.loops.count(loop) != 1 for loop in loops):
        return None
    return [operand.loops.index(loop) for loop in loops]


def _without(operand: Operand, dimensions: Sequence[int]) -> list[Index]:
    every = enumerate(operand.indices)
    return [index for number, index in every if number not in dimensions]


def _has_windows(view: LinalgView) -> bool:
    """Whether it is a convolution by more than pixels, which are read in any order."""
    found = _convolution(view)
    return found is not None and (
        any(view.static_size(loop) != 1 for loop in found.filter_loop)
        or any(stride != 1 for stride in found.strides)
    )


def _image_and_output(view: LinalgView) -> Iterator[_Wanted]:
    """What a convolution asks for; an image of few channels is copied anyway."""
    found = _convolution(view)
    if found is None:
        return
    groups, inputs = list(found.depth), list(found.input_channel)
    sizes = [view.static_size(loop) for loop in inputs]
    is_wide = len(sizes) > 1 or sizes[0] is None or sizes[0] >= FEWEST_CHANNELS
    wanted = [(view.outputs[0], view.op.results[0], found.output_channel)]
    if is_wide:
        wanted.append((view.inputs[0], view.inputs[0].value, inputs))
    for operand, tensor, channels in wanted:
        last = _along(operand, [*groups, *channels])
        if last is not None:
            yield tensor, last


def _filter(view: LinalgView) -> Iterator[tuple[Any, Order]]:
    """The order of a filter of several taps: of rows of taps and channels."""
    found = _convolution(view)
    if found is None:
        return
    kernel, taps = view.inputs[1], list(found.filter_loop)
    loops = [*found.depth, *found.output_channel, *taps, *found.input_channel]
    if all(view.static_size(loop) == 1 for loop in taps):
        return
    order = _along(kernel, loops)
    if order is not None and len(order) == len(kernel.loops):
        yield kernel.value, tuple(order)


def _convolution(view: LinalgView) -> Any | None:
    """Upstream's dimensions of a convolution whose channels are added up."""
    found = view.convolution_dimensions if len(view.inputs) == 2 else None
    if found is None or not len(found.output_image):
        return None
    return found if len(found.input_channel) and len(found.output_channel) else None
