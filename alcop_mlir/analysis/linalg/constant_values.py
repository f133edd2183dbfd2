"""What ops leave in a buffer that fill it, or copy elements of constants to it.

Elements are kept as bits, so that a NaN stays the same one. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alcop_mlir.analysis.ir.alignment import element_bytes, given, kept_dimensions
from alcop_mlir.analysis.ir.constant_arrays import ConstantArray
from alcop_mlir.analysis.ir.loops import defining_op, made_by, splat
from alcop_mlir.analysis.linalg.elementwise import filled_with
from alcop_mlir.analysis.linalg.view import Index, LinalgView, Operand
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ELEMENT_TYPES

Array = np.ndarray[Any, Any]
_Known = Mapping[Any, Array]
_RESHAPES = ("memref.collapse_shape", "memref.expand_shape", "memref.cast")


def constant_bits(array: ConstantArray) -> Array:
    """The elements of a constant, as unsigned integers of their size."""
    kind = f"u{ELEMENT_TYPES[array.dtype].bytes}"
    return np.frombuffer(array.data, kind).reshape(array.shape)


def elements_attribute(bits: Array, kind: Any) -> Any:
    """The attribute that holds these elements, for a memref type of their shape."""
    tensor = ir.RankedTensorType.get(kind.shape, kind.element_type)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(bits), type=tensor)


def written_bits(
    buffer: ir.Value, writers: Sequence[LinalgView], known: _Known
) -> Array | None:
    """The elements of the buffer after these ops; None where not all are known.

    known: the elements of other buffers, by their values, and of constants, by the
           names of their symbols
    """
    kind = buffer.type
    if str(kind.element_type) not in ELEMENT_TYPES:
        return None
    bits = np.zeros(kind.shape, f"u{element_bytes(kind)}")
    is_known = np.zeros(kind.shape, bool)
    for view in writers:
        values = _copied(view, known)
        target = view.outputs[0].value
        part = _all(buffer) if target == buffer else _part(target, buffer)
        if values is None or part is None:
            return None
        bits[part], is_known[part] = values, True
    return bits if is_known.all() else None


def _all(buffer: ir.Value) -> tuple[slice, ...]:
    return (slice(None),) * buffer.type.rank


def _part(view: ir.Value, buffer: ir.Value) -> tuple[slice, ...] | None:
    """The elements of the buffer that a subview of it has, none of its dimensions less.

    None where they are not known.
    """
    op = made_by(view, "memref.subview")
    if op is None or op.operands[0] != buffer or view.type.rank != buffer.type.rank:
        return None
    return _slices(op)


def _slices(subview: ir.Operation) -> tuple[slice, ...] | None:
    lists = [given(subview, name) for name in ("offsets", "sizes", "strides")]
    if not all(isinstance(number, int) for one in lists for number in one):
        return None
    return tuple(
        slice(offset, offset + size * step, step)
        for offset, size, step in zip(*lists, strict=True)
    )


def _copied(view: LinalgView, known: _Known) -> Array | None:
    """What an op writes that fills with 0, or copies elements of a constant."""
    if len(view.outputs) != 1 or not view.outputs[0].is_permutation:
        return None
    (out,) = view.outputs
    value = filled_with(view)
    if value is not None:
        number = splat(value)
        is_zero = number == 0 and math.copysign(1.0, number) > 0
        return np.zeros((), np.uint8) if is_zero else None
    source = _copied_operand(view)
    values = None if source is None else _values(source.value, known)
    if source is None or values is None:
        return None
    if any(index.coefficients is None for index in source.indices):
        return None
    shape = [out.static_size(out.loops.index(loop)) or 0 for loop in range(view.rank)]
    found = values[tuple(_numbers(index, shape) for index in source.indices)]
    order = [loop for loop in out.loops if loop is not None]
    return np.broadcast_to(found, shape).transpose(order)


def _copied_operand(view: LinalgView) -> Operand | None:
    """The one operand whose elements an op copies as they are."""
    if len(view.inputs) != 1:
        return None
    (source,) = view.inputs
    if view.block is None:
        return source
    *body, end = view.block.operations
    is_copied = not body and list(end.operation.operands) == [source.argument]
    return source if is_copied else None


def _numbers(index: Index, shape: Sequence[int]) -> Array:
    """The values of an index in all iterations, one dimension per loop."""
    total = np.full((1,) * len(shape), index.offset)
    for loop, step in zip(index.loops, index.coefficients or (), strict=True):
        along = [-1 if number == loop else 1 for number in range(len(shape))]
        total = total + (np.arange(shape[loop]) * step).reshape(along)
    return total


def _values(memref: ir.Value, known: _Known) -> Array | None:
    """The elements of a constant, or of a view of one; None where not known."""
    op = defining_op(memref)
    if memref in known or op is None:
        return known.get(memref)
    if op.name == "memref.get_global":
        return known.get(op.attributes["name"].value)
    if op.name not in (*_RESHAPES, "memref.subview"):
        return None
    values = _values(op.operands[0], known)
    if values is None or not memref.type.has_static_shape:
        return None
    if op.name in _RESHAPES:
        return values.reshape(memref.type.shape)
    slices = _slices(op)
    if slices is None:
        return None
    kept = kept_dimensions(op)
    dropped = tuple(number for number in range(values.ndim) if number not in kept)
    return values[slices].squeeze(dropped)
