"""Which value each array of a function holds, as the ops that change it are read.

A memref holds one value after the other, a tensor one for good. A value is a number, if
all elements are that, or has a name: a parameter's, or that of the step that made it.
What is read through a view is a step of its own, and so is what is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.reference.expressions import Constant
from alcop_mlir.reference.steps import Insert, Map, Reshape, Size, Slice, Step

Content = str | Constant
UNWRITTEN = Constant(math.nan)


class NotUnderstood(Exception):
    """An op uses an array in a way that steps cannot say."""


@dataclass(frozen=True)
class Part:
    """A part of an array: per dimension an offset, a size and a stride."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _View:
    """`base`, or a part of it, in another shape."""

    base: Any
    part: Part | None


class BufferValues:
    """What arrays hold now, and the steps that led there.

    shape: of any array, with names for sizes that only arguments tell; None where a
        size has no name
    """

    def __init__(self, shape: Callable[[Any], tuple[Size, ...] | None]):
        self.steps: list[Step] = []
        self._shape = shape
        self._held: dict[Any, Content] = {}
        self._views: dict[Any, _View] = {}

    def content(self, array: Any) -> Content:
        """What `array` holds. Raises NotUnderstood where that is not known."""
        content = self._content(array)
        if content is UNWRITTEN:
            raise NotUnderstood
        return content

    def name(self, array: Any) -> str:
        """What the value of `array` is called."""
        return self.named(self.content(array), array)

    def named(self, content: Content, like: Any) -> str:
        """The name of `content`, an array of the shape of `like`."""
        if isinstance(content, str):
            return content
        shape = self.shape(like)
        return self.add(Map((), f"->{loops(len(shape))}", "", content, shape))

    def add(self, step: Step) -> str:
        """Take in a step; the name of what it makes."""
        name = f"%{len(self.steps)}"
        self.steps.append(replace(step, out=name))
        return name

    def write(self, array: Any, content: Content) -> None:
        """All of `array` holds `content` from now on."""
        view = self._views.get(array)
        if view is None:
            self._held[array] = content
            return
        if view.part is not None:
            content = self.insert(array, content, view.part, view.base)
        elif isinstance(content, str):
            content = self.add(Reshape(content, "", self.shape(view.base)))
        self.write(view.base, content)

    def view(self, array: Any, base: Any, part: Part | None = None) -> None:
        """Say that `array` shows `base`, or a part of it, in its own shape."""
        self._views[array] = _View(base, part)

    def shape(self, array: Any) -> tuple[Size, ...]:
        """Of an array. Raises NotUnderstood where a size has no name."""
        shape = self._shape(array)
        if shape is None:
            raise NotUnderstood
        return shape

    def insert(self, array: Any, content: Content, part: Part, target: Any) -> str:
        """What `target` holds, with the `content` of `array` in place of a part."""
        source = self.named(content, array)
        whole = self.named(self._content(target), target)
        return self.add(Insert(source, whole, "", **vars(part)))

    def part(self, array: Any, part: Part) -> Content:
        """What a part of `array` holds, in the part's own shape."""
        content = self.content(array)
        if isinstance(content, Constant):
            return content
        return self.add(Slice(content, "", **vars(part)))

    def _content(self, array: Any) -> Content:
        """As `content`, or UNWRITTEN."""
        view = self._views.get(array)
        if view is None:
            return self._held.get(array, UNWRITTEN)
        if view.part is not None:
            content, sizes = self.part(view.base, view.part), view.part.sizes
        else:
            content, sizes = self._content(view.base), self.shape(view.base)
        if isinstance(content, Constant) or sizes == self.shape(array):
            return content
        return self.add(Reshape(content, "", self.shape(array)))


def loops(rank: int) -> str:
    """As many loops as an array has dimensions, in the order of `steps.maps`."""
    return "ijklpqrstuvwxyz"[:rank]
