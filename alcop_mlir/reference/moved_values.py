"""Values of steps that move elements, and compute nothing of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from alcop_mlir.extents import Extent, number
from alcop_mlir.reference.evaluation import (
    Array,
    Bounded,
    bounded,
)
from alcop_mlir.reference.steps import (
    Concat,
    Fold,
    Gather,
    Insert,
    Map,
    Pad,
    Reduction,
    ScatteredViews,
    Slice,
    WindowViews,
    operand_maps,
)


def concatenated(step: Concat, inputs: Sequence[Bounded]) -> Bounded:
    """Arrays side by side."""
    values = np.concatenate([one.values for one in inputs], step.dimension)
    if not any(np.any(one.error) for one in inputs):
        return Bounded(values)
    return Bounded(values, np.concatenate(list(map(errors_of, inputs)), step.dimension))


def insert(
    step: Insert, target: Bounded, source: Bounded, sizes: Mapping[str, int]
) -> Bounded:
    """An array with part of it from another one."""
    values, errors = target.values.astype(np.float64), errors_of(target).copy()
    selected, shape = selection(step, sizes), numbers(step.sizes, sizes)
    values[selected] = source.values.reshape(shape)
    errors[selected] = errors_of(source).reshape(shape)
    if all(stride == 1 for stride in step.strides):
        return Bounded(values, errors)
    # Where zeros of the target stay, between what is inserted and around it.
    absent = target.values == 0
    absent[selected] = False
    return Bounded(values, errors, absent)


def _places(step: WindowViews, sizes: Mapping[str, int], stride: int = 1) -> Array:
    """Of each position and tap, with so many elements from a position to the next."""
    (positions,) = numbers((step.positions,), sizes)
    places = np.arange(positions) * stride
    if step.taps is None:
        return places
    (taps,) = numbers((step.taps,), sizes)
    return np.add.outer(places, np.arange(taps) * step.dilation)


def scattered(
    step: ScatteredViews, source: Bounded, sizes: Mapping[str, int]
) -> Bounded:
    """Zeros between elements need not be multiplied, nor those around them."""
    turned = replace(step, dilation=-step.dilation)
    places, parts = np.divmod(_places(turned, sizes) - step.first, step.stride)
    axis, extent = step.dimension, source.values.shape[step.dimension]
    is_there = (parts == 0) & (places >= 0) & (places < extent)
    after = (1,) * (source.values.ndim - axis - 1)
    is_there = is_there.reshape(*is_there.shape, *after)

    def moved(array: Array) -> Array:
        ended = np.pad(array, [(0, int(n == axis)) for n in range(array.ndim)])
        found = np.take(ended, places.clip(0, extent), axis)
        return np.where(is_there, found, np.zeros((), array.dtype))

    found = each(moved, source)
    absent = False if found.absent is None else found.absent
    return replace(found, absent=absent | ~is_there & np.ones(found.values.shape, bool))


def windows(step: WindowViews, array: Array, sizes: Mapping[str, int]) -> Array:
    """Each window of an array."""
    places = _places(step, sizes, step.stride) + step.first
    if np.any(places < 0):
        raise IndexError(f"windows begin at {places.min()}")
    return np.take(array, places, axis=step.dimension)


def padded(step: Pad, source: Bounded, sizes: Mapping[str, int]) -> Bounded:
    """An array with a border."""
    low, high = numbers(step.low, sizes), numbers(step.high, sizes)
    width = list(zip(low, high, strict=True))
    values = np.pad(source.values, width, constant_values=step.value.value)
    errors = np.pad(errors_of(source), width) if np.any(source.error) else source.error
    absent = None if source.absent is None else np.pad(source.absent, width)
    return Bounded(values, errors, absent)


def gathered(
    step: Gather, known: Mapping[str, Bounded], shape: tuple[int, ...]
) -> Bounded:
    """Raises IndexError where an index is not one of the source's.

    Of an element whose index is inexact, nothing is known.
    """
    _, out = operand_maps(step)
    loops = [Bounded(loop) for loop in np.indices(shape, sparse=True)]
    given = [*arranged(step, out, known), *loops]
    source, places = known[step.source], []
    unknown = np.zeros(shape, bool)
    for dimension, expression in enumerate(step.indices):
        index = bounded(expression, given)
        extent = source.values.shape[dimension]
        is_inexact = np.broadcast_to(index.error, index.values.shape) > 0
        values = np.where(is_inexact, 0, index.values)
        unknown = unknown | is_inexact
        low, high = values.min(initial=0), values.max(initial=0)
        if low < 0 or (high >= extent and math.prod(shape)):
            raise IndexError(
                f"an index of dimension {dimension} is {low if low < 0 else high:.0f}, "
                f"expected 0 to {extent - 1}"
            )
        places.append(np.broadcast_to(values.astype(np.int64), shape))
    found = each(lambda array: array[tuple(places)], source)
    if not np.any(unknown):
        return found
    return Bounded(found.values, np.where(unknown, np.inf, found.error))


def selection(step: Slice | Insert, sizes: Mapping[str, int]) -> tuple[slice, ...]:
    """Which elements are taken or put."""
    offsets, lengths = numbers(step.offsets, sizes), numbers(step.sizes, sizes)
    return tuple(
        slice(offset, offset + max(0, (size - 1) * stride + 1), max(1, stride))
        for offset, size, stride in zip(offsets, lengths, step.strides, strict=True)
    )


def arranged(
    step: Map | Reduction | Fold | Gather, loops: str, known: Mapping[str, Bounded]
) -> list[Bounded]:
    """The inputs with one dimension per loop, of size 1 where they do not have it."""

    def arrange(array: Array, own: str) -> Array:
        picked = array[tuple(0 if loop == "." else slice(None) for loop in own)]
        own = own.replace(".", "")
        order = sorted(range(len(own)), key=lambda number: loops.index(own[number]))
        places = tuple(slice(None) if loop in own else None for loop in loops)
        return picked.transpose(order)[places]

    return [
        each(lambda array, own=own: arrange(array, own), known[name])
        for name, own in zip(step.inputs, operand_maps(step)[0], strict=True)
    ]


def each(function: Any, given: Bounded) -> Bounded:
    """`function` of the values, and of their errors if each value has its own."""
    error = function(given.error) if np.ndim(given.error) else given.error
    absent = None if given.absent is None else function(given.absent)
    return Bounded(function(given.values), error, absent)


def errors_of(given: Bounded) -> Array:
    """The error of each value."""
    return np.broadcast_to(given.error, given.values.shape)


def numbers(shape: Sequence[Extent], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Raises ValueError where a polynomial is negative for these sizes."""
    found = tuple(number(size, sizes) for size in shape)
    if min(found, default=0) < 0:
        raise ValueError(f"sizes or offsets are {list(found)}")
    return found
