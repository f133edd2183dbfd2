"""Arrays that windows are moved over, as one operand of a contraction sees them.

A view has a loop for each position of a window and one for each offset in it; around
the array there may be zeros. Loops that all other operands have side by side are one,
as rows of a matrix: the window says which part of it is which loop.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import pairwise
from string import ascii_letters
from typing import Any

from alcop_mlir.manifest.held_values import Held, Operand, Values
from alcop_mlir.manifest.indices import Linear, loops_of
from alcop_mlir.manifest.stated_arrays import Unstated, known, sizes_of, strides_of
from alcop_mlir.reference.steps import Pad, WindowViews


def windowed(
    held: Held, name: str, loops: str, arrays: Collection[str], guesses: bool
) -> Operand | None:
    """The array of which a value is a view; None where it is no such view.

    loops: of each dimension of the value
    """
    shape = held.values.shapes.get(name)
    if shape is None or len(shape) != len(loops):
        return None
    found = _source(held.values, name, [*loops_of(loops)])
    if found is None:
        return None
    source, indices = found
    array = held.holder(source, arrays, guesses)
    own = held.values.shapes.get(source, ())
    names = ascii_letters[: len(own)]
    plain = None if array is None else held.viewed(array, own, names)
    if plain is None:
        return None
    ordered = tuple(indices[names.index(name)] for name in plain.loops)
    own = {"own": plain.shape, "indices": ordered}
    return Operand(plain.array, shape, loops, **own)


def _source(
    values: Values, name: str, indices: list[Linear]
) -> tuple[str, list[Linear]] | None:
    """The value that windows are moved over, and its indices; 0 outside of it."""
    step, is_moved = values.steps.get(name), False
    while isinstance(step, WindowViews):
        at, is_moved = step.dimension, True
        index = indices[at].times(step.stride, step.first)
        if step.taps is not None:
            index = index.plus(indices[at + 1].times(step.dilation, 0))
        indices[at : at + 1 + (step.taps is not None)] = [index]
        name, step = step.source, values.steps.get(step.source)
    while isinstance(step, Pad):
        if step.value.value or not all(isinstance(n, int) for n in step.low):
            return None
        indices = [i.times(1, -int(n)) for i, n in zip(indices, step.low, strict=True)]  # type: ignore[arg-type]
        name, step = step.source, values.steps.get(step.source)
    return (name, indices) if is_moved else None


def fused(
    operands: Mapping[str, Operand], order: str, arrays: Mapping[str, Any]
) -> tuple[dict[str, Operand], str, dict[str, Any]]:
    """Operands and the order of results with fewer loops, and the windows as JSON
    values; Unstated where what windows see is no matrix.
    """
    apart = [
        name
        for name, one in operands.items()
        if one.strides or getattr(arrays[name], "strides", None) is not None
    ]
    sizes = {n: known(one) for n, one in sizes_of(operands.values()).items()}
    operands = {name: _plain(one, sizes) for name, one in operands.items()}
    moved = {name: one for name, one in operands.items() if one.indices}
    plain = [_kept(o.loops, sizes) for o in operands.values() if not o.indices]
    groups = _groups(plain, [one.loops for one in moved.values()])
    found: dict[str, Operand] = {}
    for name, one in operands.items():
        mine = [group for group in groups if group[0] in one.loops]
        if any(not {*group} <= {*one.loops} for group in mine):
            raise Unstated("what windows see is no matrix")
        if name in apart and not one.indices:
            raise Unstated("rows with steps of their own, beside windows")
        if one.indices:  # its columns last
            mine.sort(key=lambda group: group[0] not in order)
        else:
            mine.sort(key=lambda group: one.loops.index(group[0]))
        shape = tuple(math.prod(sizes[n] for n in g) for g in mine)
        found[name] = Operand(name, shape, "".join(g[0] for g in mine))
    windows = {n: _window(one, groups, sizes, arrays[n]) for n, one in moved.items()}
    left = [group[0] for group in groups]
    return found, "".join(loop for loop in order if loop in left), windows


def _plain(one: Operand, sizes: Mapping[str, int]) -> Operand:
    """An array of which windows are single elements as the matrix that it is."""
    loops = ""
    for extent, index in zip(one.own, one.indices, strict=True):
        kept = [(n, by) for n, by in index.factors if sizes[n] > 1] or [
            *index.factors[:1]
        ]
        ((loop, by), *others) = kept
        if others or index.first or by != 1 or sizes[loop] != extent:
            return one
        loops += loop
    return Operand(one.array, one.own, loops) if loops else one


def _kept(loops: str, sizes: Mapping[str, int]) -> str:
    return "".join(loop for loop in loops if sizes[loop] > 1)


def _groups(every: list[str], seen: list[str]) -> list[str]:
    """Loops that are side by side wherever one of them is.

    seen: loops of windows, in no order
    """
    follows: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {}
    for loops in every:
        for loop, other in pairwise(f" {loops} "):
            follows.setdefault(loop, set()).add(other)
            before.setdefault(other, set()).add(loop)
    found: list[str] = []
    for loop in dict.fromkeys("".join(every)):
        last = found[-1][-1] if found else ""
        is_apart = any((loop in one) != (last in one) for one in seen)
        if before[loop] == {last} and follows[last] == {loop} and not is_apart:
            found[-1] += loop
        else:
            found.append(loop)
    return found


def _window(
    one: Operand, groups: list[str], sizes: Mapping[str, int], array: Any
) -> list[Any]:
    """As JSON values: extent, stride, first index, and parts of loops, by dimension."""
    places = {n: (g, i) for g in groups for i, n in enumerate(g)}
    found = []
    strides = strides_of(array, one.own)
    for extent, stride, index in zip(one.own, strides, one.indices, strict=True):
        parts = []
        for loop, by in index.factors:
            if sizes[loop] > 1:
                group, at = places[loop]
                inner = math.prod(sizes[n] for n in group[at + 1 :])
                parts.append([group[0], inner, sizes[loop], by])
        found.append([known(extent), stride, index.first, parts])
    return found
