"""The steps in which tile code goes along K, as one loop.

Where A or B is made of windows of an image, K is the taps of the window with the
channels of each: the loop goes through the channel steps of all taps. A step does not
reach into the next tap: where steps do not divide the channels, the last of each tap is
shorter. What a step needs of its tap is carried by the loop, so that none divides:

    offset   of the tap and the channels, from a row's first element in the image
    word     of the tap (`tap_words.py`), where rows may lack taps or a row of taps ends
    channel  the first one of the step, where k itself does not tell the end of a tap
    first    along K, where the last step of a tap is shorter
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build
from alcop_mlir.transforms.linalg.matrices import Size
from alcop_mlir.transforms.tiling.images import (
    Image,
    Number,
    image_of,
    plus,
    times,
)
from alcop_mlir.transforms.tiling.tap_words import TapWords
from alcop_mlir.transforms.tiling.tiled_contractions import BlockTile


@dataclass(frozen=True)
class KStep:
    """A step along K.

    first:  of the elements of K in it
    extent: how many there are, an int or a value
    offset: of its first element in a row that is gathered
    word:   of its tap; None where none is carried
    """

    first: Any
    extent: Any
    offset: Any
    word: Any | None = None


class KSteps(Protocol):
    """Bounds of the loop, what it carries, and its steps.

    exceed:    whether a step may be shorter than the tile, which zeros fill up
    bounds:    first, end and step of the loop
    start:     of what it carries
    at:        the step at `k`, of what is carried
    following: what is carried to the next step
    """

    @property
    def exceed(self) -> bool: ...
    @property
    def bounds(self) -> tuple[Any, Any, Any]: ...
    @property
    def start(self) -> list[Any]: ...
    def at(self, k: ir.Value, carried: Sequence[ir.Value]) -> KStep: ...
    def following(self, k: ir.Value, carried: Sequence[ir.Value]) -> list[Any]: ...


@dataclass(frozen=True)
class PlainSteps:
    """Steps of equal width through all of K; the last one may exceed it.

    width: the step, as a value
    """

    size: Size
    step: int
    width: Any

    @property
    def exceed(self) -> bool:
        return not self.size.divides(self.step)

    @property
    def bounds(self) -> tuple[Any, Any, Any]:
        return 0, self.size.value, self.width

    @property
    def start(self) -> list[Any]:
        return []

    def at(self, k: ir.Value, carried: Sequence[ir.Value]) -> KStep:
        del carried
        if not self.exceed:
            return KStep(k, self.step, k)
        left = build.sub(self.size.value, k)
        return KStep(k, build.least(left, self.width), k)

    def following(self, k: ir.Value, carried: Sequence[ir.Value]) -> list[Any]:
        del k, carried
        return []


@dataclass(frozen=True)
class WindowSteps:
    """Steps through the channels of each tap of a window that has several.

    channels: of a tap
    step:     elements of K in a step, but perhaps in the last one of a tap
    exceed:   whether a step may be shorter than the tile
    jumps:    per dimension along which the window has several taps, the first one
              first: elements from the last step of a tap to the next tap along it, with
              those after it back at their first position
    """

    words: TapWords
    channels: int
    step: int
    exceed: bool
    jumps: dict[int, Number]

    @property
    def bounds(self) -> tuple[Any, Any, Any]:
        end = math.prod(self.words.size) * self._span
        return 0, build.index(end), build.index(self.step)

    @property
    def start(self) -> list[Any]:
        zero = build.index(0)
        word = self.words.of_tap([0] * len(self.words.size))
        return [zero, word, *[zero] * (len(self._names) - 2)]

    def at(self, k: ir.Value, carried: Sequence[ir.Value]) -> KStep:
        state = dict(zip(self._names, carried, strict=True))
        extent: Any = self.step
        if self._is_ragged:
            rest = self.channels - self._span + self.step
            extent = build.select(self._ends_tap(k, state), rest, self.step)
        return KStep(state.get("first", k), extent, state["offset"], state["word"])

    def following(self, k: ir.Value, carried: Sequence[ir.Value]) -> list[Any]:
        state = dict(zip(self._names, carried, strict=True))
        jump, moved = self._next_tap(state["word"])
        ends: Any = None
        if self._steps > 1:
            ends = self._ends_tap(k, state)
            jump = build.select(ends, jump, self.step)
            moved = arith.select(ends, moved, self.words.constant(0))
        found = {
            "offset": build.add(state["offset"], jump),
            "word": arith.addi(state["word"], moved),
        }
        if "channel" in state:
            following = build.add(state["channel"], self.step)
            found["channel"] = build.select(ends, 0, following)
        if "first" in state:
            found["first"] = build.add(state["first"], self.at(k, carried).extent)
        return [found[name] for name in self._names]

    @property
    def _steps(self) -> int:
        """How many steps a tap has."""
        return -(-self.channels // self.step)

    @property
    def _span(self) -> int:
        """How far `k` gets in a tap: its channels, rounded up to whole steps."""
        return self._steps * self.step

    @property
    def _is_ragged(self) -> bool:
        """Whether the last step of a tap is shorter than the others."""
        return self._span != self.channels

    @property
    def _shows_ends(self) -> bool:
        """Whether the low bits of `k` tell that a tap ends."""
        return self._span & (self._span - 1) == 0

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """What the loop carries, see the module."""
        needed = {
            "offset": True,
            "word": True,
            "channel": self._steps > 1 and not self._shows_ends,
            "first": self._is_ragged,
        }
        return tuple(name for name, is_needed in needed.items() if is_needed)

    def _ends_tap(self, k: ir.Value, state: Mapping[str, ir.Value]) -> Any:
        """Whether a step is the last one of its tap, which has several."""
        last = build.index(self._span - self.step)
        at = state.get("channel")
        if at is None:
            at = arith.andi(k, build.index(self._span - 1))
        return arith.cmpi(arith.CmpIPredicate.eq, at, last)

    def _next_tap(self, word: ir.Value) -> tuple[Number, Any]:
        """What the next tap adds to the offset and to the word."""
        dimensions = iter(self.jumps)
        first = next(dimensions)
        jump, moved = self.jumps[first], self.words.advance(word, first)
        for inner in dimensions:
            is_last = self.words.is_last(word, inner)
            jump = build.select(is_last, jump, self.jumps[inner])
            moved = arith.select(is_last, moved, self.words.advance(word, inner))
        return jump, moved


def k_steps(tile: BlockTile) -> KSteps:
    """The steps of the loop along K of a block, of the tile's extent along K."""
    longest = tile.contraction.schedule.block[2]
    for operand in tile.contraction.operands:
        image = image_of(operand.value)
        if image is not None and image.window.taps > 1:
            return _window_steps(image, longest)
    return PlainSteps(tile.sizes["k"], longest, build.index(longest))


def _window_steps(image: Image, longest: int) -> WindowSteps:
    window, channels = image.window, image.channels
    step = min(longest, channels)
    back: Number = step - -(-channels // step) * step
    jumps: dict[int, Number] = {}
    for number in reversed(image.dimensions):
        if window.size[number] > 1:
            pitch = image.pitches[number + 1]
            jumps[number] = plus(times(pitch, window.dilations[number]), back)
            back = plus(back, times(pitch, -window.reach(number)))
    exceed = channels % longest != 0
    ordered = dict(reversed(jumps.items()))
    return WindowSteps(TapWords(window.size), channels, step, exceed, ordered)
