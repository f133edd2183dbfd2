"""Which value each memref or tensor of a function has, while its ops are read in order.

A memref has one value after the other, a tensor has one value. A value is a number, if
all elements are that number, or has a name: of a parameter, or of the step that
computes it. Reading or writing through a view is a step of its own.

What is called an array here is a memref or a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.extents import Extent
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.expressions import Constant
from alcop_mlir.reference.steps import Insert, Map, Reshape, Slice, Step

Content = str | Constant
UNWRITTEN = Constant(math.nan)


class NotUnderstood(Exception):
    """An op uses an array in a way that steps cannot express."""


@frozen
class Part:
    """A part of an array: per dimension an offset, a size and a stride."""

    offsets: tuple[Extent, ...]
    sizes: tuple[Extent, ...]
    strides: tuple[int, ...]


class BufferValues:
    """The current values of arrays, and the steps that compute them.

    size: of a dimension of any array, of what it is computed where that is known at
        run time only; None where that is not known
    """

    def __init__(self, size: Callable[[Any, int], Extent | None]):
        self.steps: list[Step] = []
        self.size = size
        self._contents: dict[Any, Content] = {}
        # What a view is of, and which part of it, in another shape.
        self._views: dict[Any, tuple[Any, Part | None]] = {}

    def content(self, array: ir.Value) -> Content:
        """The value of `array`. Raises NotUnderstood where that is not known."""
        content = self._content(array)
        if content is UNWRITTEN:
            raise NotUnderstood
        return content

    def name(self, array: ir.Value) -> str:
        """The name of the value of `array`."""
        return self.named(self.content(array), array)

    def named(self, content: Content, like: Any) -> str:
        """The name of `content`, an array of the shape of `like`."""
        if isinstance(content, str):
            return content
        shape = self.shape(like)
        return self.add(Map((), f"->{loops(len(shape))}", "", content, shape))

    def add(self, step: Step) -> str:
        """Append a step; returns the name of its value."""
        name = f"%{len(self.steps)}"
        self.steps.append(replace(step, out=name))
        return name

    def write(self, array: ir.Value, content: Content) -> None:
        """Set the value of all of `array`."""
        if array not in self._views:
            self._contents[array] = content
            return
        base, part = self._views[array]
        if part is not None:
            content = self.insert(array, content, part, base)
        elif isinstance(content, str):
            content = self.add(Reshape(content, "", self.shape(base)))
        self.write(base, content)

    def view(self, array: ir.Value, base: ir.Value, part: Part | None = None) -> None:
        """Make `array` a view of `base`, or of a part of it, in its own shape."""
        self._views[array] = base, part

    def shape(self, array: ir.Value) -> tuple[Extent, ...]:
        """The shape of an array. Raises NotUnderstood where a size is not known."""
        shape = self.known_shape(array)
        if shape is None:
            raise NotUnderstood
        return shape

    def known_shape(self, array: ir.Value) -> tuple[Extent, ...] | None:
        """The shape of an array; None where a size is not known."""
        sizes = [self.size(array, number) for number in range(len(array.type.shape))]
        known = tuple(one for one in sizes if one is not None)
        return known if len(known) == len(sizes) else None

    def insert(
        self, array: ir.Value, content: Content, part: Part, target: ir.Value
    ) -> str:
        """The value of `target` with `content`, of `array`, instead of a part."""
        source = self.named(content, array)
        whole = self.named(self._content(target), target)
        return self.add(Insert(source, whole, "", **vars(part)))

    def part(self, array: ir.Value, part: Part) -> Content:
        """The value of a part of `array`, in the part's own shape."""
        content = self.content(array)
        if isinstance(content, Constant):
            return content
        return self.add(Slice(content, "", **vars(part)))

    def _content(self, array: ir.Value) -> Content:
        """As `content`, or UNWRITTEN."""
        if array not in self._views:
            return self._contents.get(array, UNWRITTEN)
        base, part = self._views[array]
        if part is not None:
            content, sizes = self.part(base, part), part.sizes
        else:
            content, sizes = self._content(base), self.shape(base)
        if isinstance(content, Constant) or sizes == self.shape(array):
            return content
        return self.add(Reshape(content, "", self.shape(array)))


def loops(rank: int) -> str:
    """As many loops as an array has dimensions, in the order of `steps.maps`."""
    return "ijklpqrstuvwxyz"[:rank]
