"""The steps of an `alcop.im2col`: what each window sees, as a row of a matrix."""

from __future__ import annotations

from alcop_mlir.analysis.ir.gathered_rows import gathered_rows
from alcop_mlir.analysis.reference.buffer_values import BufferValues, NotUnderstood
from alcop_mlir.bindings import ir
from alcop_mlir.reference.expressions import Argument, Constant
from alcop_mlir.reference.steps import Map, Pad, Reshape, WindowViews

_LETTERS = "ijklpqrstuvw"


def run_im2col(op: ir.Operation, values: BufferValues) -> None:
    """Add the steps.

    Raises NotUnderstood where sizes are known at run time only, or where windows see a
    part of the image.
    """
    rows = gathered_rows(op.results[0])
    window = None if rows is None else rows.window
    if rows is None or window is None or not rows.source.type.has_static_shape:
        raise NotUnderstood
    if min((*window.low, *window.high)) < 0:
        raise NotUnderstood
    batch, *pixels, channels = rows.source.type.shape
    low, high = (0, *window.low, 0), (0, *window.high, 0)
    name = values.add(Pad(values.name(rows.source), "", low, high, Constant(0.0)))
    shape, places, taps = [batch], [], []
    for number, extent in enumerate(pixels):
        count, size = window.places(number, extent), window.size[number]
        steps = (window.strides[number], size, window.dilations[number])
        name = values.add(WindowViews(name, "", len(shape), count, *steps))
        places.append(len(shape))
        taps.append(len(shape) + 1)
        shape += [count, size]
    # Images, places, groups, taps, channels: those are the rows of the matrix.
    group, channel = len(shape), len(shape) + 1
    shape += [window.groups, channels // window.groups]
    name = values.add(Reshape(name, "", tuple(shape)))
    order = [0, *places, group, *taps, channel]
    own = _LETTERS[: len(shape)]
    out = "".join(own[number] for number in order)
    sizes = tuple(shape[number] for number in order)
    name = values.add(Map((name,), f"{own}->{out}", "", Argument(0), sizes))
    matrix = op.results[0]
    values.write(matrix, values.add(Reshape(name, "", values.shape(matrix))))
