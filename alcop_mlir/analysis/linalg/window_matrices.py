"""The operands of a convolution as matrices, and which of them must be transposed.

A row is a window, its columns are taps and channels. The loops of each operand are put
into groups that become one loop each. Where the order of an operand's dimensions does
not allow this, a transposed copy does. Loops of one iteration do not count. Changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.loop_groups import has_dense_parts, loop_groups_of
from alcop_mlir.analysis.linalg.moving_windows import Convolution, loops_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_KINDS = ("batch", "window", "group", "channel")  # as rows of windows have them
_Parts = list[list[int]]  # of dimensions


@frozen
class WindowMatrices:
    """How a convolution becomes a contraction.

    groups:         of loops, each of which becomes one loop
    image:          the loops of the windows; or of the image, if each window is a pixel
    filter, output: their loops, in the order that they have or get
    image_order:    the order that the image's dimensions have or get
    copied:         names of the operands that get another order: "image", "filter",
                    "output"
    window_groups:  of `groups`, those of the windows; None where each is a pixel
    rows_apart:     whether rows of the output have any distances
    """

    groups: list[list[int]]
    image: list[int]
    filter: list[int]
    output: list[int]
    image_order: list[int]
    copied: tuple[str, ...] = ()
    window_groups: tuple[list[int], ...] | None = None
    rows_apart: bool = False

    def transposed(self, found: Convolution) -> list[str]:
        """Of the operands that are copied, those that have another order."""
        orders = {
            "image": (self.image_order, sorted(self.image_order)),
            "filter": (self.filter, loops_of(found.filter)),
            "output": (self.output, loops_of(found.output)),
        }
        moved = [name for name, (new, old) in orders.items() if new != old]
        backwards = ["filter"] if found.backwards else []
        return [name for name in self.copied if name in (*moved, *backwards)]

    def numbers(self, loops: Iterable[int]) -> list[int]:
        """The numbers of the groups that index an operand with these loops."""
        first = {group[0]: number for number, group in enumerate(self.groups)}
        return [first[loop] for loop in loops if loop in first]

    def parts(self, loops: Sequence[int]) -> _Parts:
        """Dimensions, which have these loops, that become one each."""
        first = {group[0] for group in self.groups}
        parts: _Parts = []
        for dimension, loop in enumerate(loops):
            if not parts or (loop in first and first & {loops[n] for n in parts[-1]}):
                parts.append([])
            parts[-1].append(dimension)
        return parts


# A memref and its loops; None for one that is not there yet, in any order.
_Operand = tuple[Any | None, list[int]]


def pixel_matrices(found: Convolution) -> WindowMatrices | None:
    """Of windows that are pixels, in whatever order the dimensions are; or None."""
    if not found.is_pixelwise:
        return None
    places = {axis.dimension: axis.place for axis in found.axes}
    pixels = [places.get(n, loop) for n, loop in enumerate(found.image.loops)]
    image = [loop for loop in pixels if loop is not None]
    operands = [
        (found.source, image),
        (found.filter.value, loops_of(found.filter)),
        (found.output.value, loops_of(found.output)),
    ]
    made = _matrices(found, operands, list(range(len(image))))
    maps = [] if made is None else [_map(found, made, own) for _, own in operands]
    return None if loop_letters(maps) is None else made


def window_matrices(found: Convolution) -> WindowMatrices:
    """Of windows, with as few transposed copies as are needed; filters are small."""
    rows = [*found.loops("batch"), *found.places]
    groups, columns = found.loops("group"), [*found.taps, *found.loops("channel")]
    filters: list[_Operand] = [(None, [*groups, *found.columns, *columns])]
    if not found.backwards:
        filters.insert(0, (found.filter.value, loops_of(found.filter)))
    outputs: list[_Operand] = [
        (found.output.value, loops_of(found.output)),
        (None, [*rows, *groups, *found.columns]),
    ]
    order = _image_order(found)
    image = () if _has_rows_of_channels(found, order) else ("image",)
    needed = [_live(found, loops) for loops in (rows, groups, columns)]
    for output, kernel in product(outputs, filters):
        operands = [(None, [*rows, *groups, *columns]), kernel, output]
        made = _matrices(found, operands, order)
        if made is not None and all(one in made.groups for one in needed if one):
            others = (("filter", kernel), ("output", output))
            copied = [name for name, (value, _) in others if value is None]
            is_apart = "output" in copied and _has_rows(found, made)
            if is_apart:
                copied.remove("output")
            return replace(
                made,
                copied=(*image, *copied),
                window_groups=tuple(one for one in needed if one),
                rows_apart=is_apart,
            )
    raise AssertionError(found)  # copies can have any order


def _matrices(
    found: Convolution, operands: Sequence[_Operand], order: list[int]
) -> WindowMatrices | None:
    """Of image, filter and output; None where one has gaps within a group."""
    orders = image, kernel, output = [loops for _, loops in operands]
    groups = loop_groups_of([(None, tuple(_live(found, loops))) for loops in orders])
    assert groups is not None  # only loops
    made = WindowMatrices(groups, image, kernel, output, order)
    are_dense = all(
        has_dense_parts(value.type, made.parts(loops))
        for value, loops in operands
        if value is not None
    )
    return made if are_dense else None


def _live(found: Convolution, loops: Sequence[int]) -> list[int]:
    """Those of the loops that count: not those of windows and taps that run once.

    Where there is one window, the last loop that moves it counts.
    """
    rows = [*found.loops("batch"), *found.places]
    optional = {*rows, *found.taps, *found.loops("group")}
    if found.size(rows) == 1:
        optional.remove(rows[-1])
    return [loop for loop in loops if loop not in optional or found.size([loop]) != 1]


def _image_order(found: Convolution) -> list[int]:
    """The image's dimensions as rows of windows have them."""
    numbers = range(len(found.kinds))
    return sorted(numbers, key=lambda number: _KINDS.index(found.kinds[number]))


def _has_rows_of_channels(found: Convolution, order: list[int]) -> bool:
    """Whether the image has this order, and neither batch nor channels have gaps."""
    kind = found.source.type
    strides, _ = kind.get_strides_and_offset()
    channels = [*found.dimensions("group"), *found.dimensions("channel")]
    parts = [found.dimensions("batch"), channels]
    is_in_order = order == sorted(order)
    return is_in_order and strides[-1] == 1 and has_dense_parts(kind, parts)


def _has_rows(found: Convolution, made: WindowMatrices) -> bool:
    """Whether the output has the order of a matrix, and no gaps within its rows."""
    loops, kind = loops_of(found.output), found.output.value.type
    strides, _ = kind.get_strides_and_offset()
    return (
        not found.loops("group")
        and loops == made.output
        and loops[-1:] == found.columns
        and strides[-1] == 1
    )


def _map(found: Convolution, made: WindowMatrices, loops: Sequence[int]) -> Any:
    with found.op.context:
        results = [ir.AffineExpr.get_dim(number) for number in made.numbers(loops)]
        return ir.AffineMap.get(len(made.groups), 0, results)
