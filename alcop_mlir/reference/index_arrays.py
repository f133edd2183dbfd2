"""Which arrays hold indices into others, and what may stand in them.

A function that reads rows of a table is undefined where an index is none of the
table's. What a `Gather` says of indices tells which numbers an array may hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from alcop_mlir.reference.evaluation import evaluate
from alcop_mlir.reference.expressions import Argument, Expression, arguments
from alcop_mlir.reference.steps import Gather, Map, Reshape, Slice, Step, operand_maps

_Array = np.ndarray[Any, Any]
_Shape = tuple[int, ...]


def origins(steps: Iterable[Step]) -> dict[str, str]:
    """The array whose elements an array has, by the names of both.

    Of arrays that steps reshape, cut, or copy; others have their own.
    """
    found: dict[str, str] = {}
    for step in steps:
        match step:
            case Reshape(source=source) | Slice(source=source):
                found[step.out] = found.get(source, source)
            case Map(inputs=(source,), expression=Argument()):
                found[step.out] = found.get(source, source)
            case _:
                found.pop(step.out, None)
    return found


def index_values(
    steps: Iterable[Step], shapes: Mapping[str, _Shape]
) -> dict[str, _Array]:
    """Numbers that an array may hold where it has indices, by name.

    Each leads to another index, and together to all that any leads to.
    shapes: of all arrays, with those that steps make
    """
    steps = tuple(steps)
    names, found = origins(steps), dict[str, _Array]()
    for step in steps:
        if not isinstance(step, Gather):
            continue
        for expression, extent in zip(step.indices, shapes[step.source], strict=True):
            for number in arguments(expression):
                if number >= len(step.inputs):
                    continue
                read = step.inputs[number]
                allowed = _allowed(step, expression, number, extent, shapes[step.out])
                name = names.get(read, read)
                found[name] = np.intersect1d(found.get(name, allowed), allowed)
    return {name: allowed for name, allowed in found.items() if allowed.size}


def draw(
    generator: np.random.Generator, allowed: _Array, shape: _Shape, kind: Any
) -> _Array:
    """Random ones of `allowed`, each as often as any other, or once more."""
    order = generator.permutation(allowed)
    return np.resize(order, shape).astype(kind)


def _allowed(
    step: Gather, expression: Expression, number: int, extent: int, shape: _Shape
) -> _Array:
    """The values of input `number` for which `expression` is an index.

    Of those that give the same index, the one closest to 0: where negative numbers
    count from the end, half of the indices are such. Loops are at their ends; other
    inputs are 0.
    """
    _, loops = operand_maps(step)
    values = np.arange(-extent, 2 * extent)
    given: list[Any] = [0] * (len(step.inputs) + len(loops))
    given[number] = values
    first = evaluate(expression, given)
    given[len(step.inputs) :] = [max(0, size - 1) for size in shape]
    last = evaluate(expression, given)
    is_index = (first >= 0) & (first < extent) & (last >= 0) & (last < extent)
    is_index = np.broadcast_to(is_index, values.shape)
    values, places = values[is_index], np.broadcast_to(first, is_index.shape)[is_index]
    order = np.argsort(np.abs(values), kind="stable")
    _, kept = np.unique(places[order], return_index=True)
    return values[order][kept]
