"""The steps in which tile code goes along K, as one loop.

Where A or B is made of windows of an image, K is the taps of the window with the
channels of each: the loop goes through the channel steps of all taps. A step does not
reach into the next tap: where steps do not divide the channels, the last of each tap is
shorter. With several sweeps, each goes through all taps, with a part of the channels of
each. What a step needs of its tap is carried by the loop, so that none divides:

    offset   of the tap and the channels, from a row's first element in the image
    word     of the tap (`tap_words.py`), where rows may lack taps or a row of taps ends
    channel  the first one of the step, where k itself does not tell the end of a tap
    first    along K, where that is not k: the last step of a tap is shorter, or there
             are several sweeps
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from alcop_mlir.bindings import arith, ir
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number, plus, times
from alcop_mlir.schedule_checks import check_sweeps
from alcop_mlir.taps import Taps
from alcop_mlir.transforms.linalg.matrices import Size
from alcop_mlir.transforms.tiling.images import Image, image_of
from alcop_mlir.transforms.tiling.tap_words import TapWords
from alcop_mlir.transforms.tiling.tiled_contractions import BlockTile, TiledContraction


@frozen
class KStep:
    """A step along K.

    first:  of the elements of K in it, or of the block's part of K
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


@frozen
class PlainSteps:
    """Steps of equal width through all of K; the last one may exceed it.

    size:  of K, or of the block's part of it
    width: the step, as a value
    begin: the first element of the block's part; None for all of K
    """

    size: Size
    step: int
    width: Any
    begin: Any | None

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
        extent: Any = self.step
        if self.exceed:
            extent = build.least(build.sub(self.size.value, k), self.width)
        return KStep(k, extent, _from(self.begin, k))

    def following(self, k: ir.Value, carried: Sequence[ir.Value]) -> list[Any]:
        del k, carried
        return []


@frozen
class WindowSteps:
    """Steps through the channels of each tap of a window that has several.

    channels: of a tap in a sweep
    sweeps:   over the taps
    step:     elements of K in a step, but perhaps in the last one of a tap
    exceed:   whether a step may be shorter than the tile
    jumps:    per dimension along which the window has several taps, the first one
              first: elements from the last step of a tap to the next tap along it, with
              those after it back at their first position
    back:     elements from the last step of a sweep to the next sweep
    length:   of the loop: that of a tap is its channels, rounded up to whole steps
    begin:    of the block's part of such lengths; None for all of K
    starts:   of what is carried, by name
    """

    words: TapWords
    channels: int
    sweeps: int
    step: int
    exceed: bool
    jumps: dict[int, Number]
    back: Number
    length: int
    begin: Any | None
    starts: Mapping[str, Any]

    @property
    def bounds(self) -> tuple[Any, Any, Any]:
        return 0, build.index(self.length), build.index(self.step)

    @property
    def start(self) -> list[Any]:
        return list(self.starts.values())

    def at(self, k: ir.Value, carried: Sequence[ir.Value]) -> KStep:
        state = dict(zip(self.starts, carried, strict=True))
        extent: Any = self.step
        if self._span > self.channels:
            rest = self.channels - self._span + self.step
            extent = build.select(self._ends_tap(k, state), rest, self.step)
        return KStep(state.get("first", k), extent, state["offset"], state["word"])

    def following(self, k: ir.Value, carried: Sequence[ir.Value]) -> list[Any]:
        state = dict(zip(self.starts, carried, strict=True))
        jump, moved = self._next_tap(state["word"])
        ends: Any = None
        if self._span > self.step:
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
            found["first"] = self._next_first(k, carried)
        return [found[name] for name in self.starts]

    @property
    def _span(self) -> int:
        """The length of a tap."""
        return _span(self.channels, self.step)

    def _next_first(self, k: ir.Value, carried: Sequence[ir.Value]) -> Any:
        state = dict(zip(self.starts, carried, strict=True))
        by = self.at(k, carried).extent
        if self.sweeps > 1:
            pitch, taps = self.sweeps * self.channels, math.prod(self.words.size)
            last = self.words.of_tap([size - 1 for size in self.words.size])
            ends_sweep = arith.cmpi(arith.CmpIPredicate.eq, state["word"], last)
            next_tap = pitch - self._span + self.step
            by = build.select(ends_sweep, self.step - (taps - 1) * pitch, next_tap)
            if self._span > self.step:
                by = build.select(self._ends_tap(k, state), by, self.step)
        return build.add(state["first"], by)

    def _ends_tap(self, k: ir.Value, state: Mapping[str, ir.Value]) -> Any:
        """Whether a step is the last one of its tap, which has several."""
        last = build.index(self._span - self.step)
        at = state.get("channel")
        if at is None:
            at = arith.andi(_from(self.begin, k), build.index(self._span - 1))
        return arith.cmpi(arith.CmpIPredicate.eq, at, last)

    def _next_tap(self, word: ir.Value) -> tuple[Number, Any]:
        """What the next tap adds to the offset and to the word."""
        dimensions = iter(self.jumps)
        first = next(dimensions)
        jump, moved = self.jumps[first], self.words.advance(word, first)
        if self.sweeps > 1:
            is_last = self.words.is_last(word, first)
            jump = build.select(is_last, self.back, jump)
            start = self.words.of_tap([0] * len(self.words.size))
            moved = arith.select(is_last, arith.subi(start, word), moved)
        for inner in dimensions:
            is_last = self.words.is_last(word, inner)
            jump = build.select(is_last, jump, self.jumps[inner])
            moved = arith.select(is_last, moved, self.words.advance(word, inner))
        return jump, moved


def k_steps(tile: BlockTile) -> KSteps:
    """The steps of the loop along K of a block, of the tile's extent along K."""
    longest, parts = tile.contraction.schedule.block[2], tile.contraction.parts_of_k
    for operand in tile.contraction.operands:
        image = image_of(operand.value)
        if image is not None and image.window.taps > 1:
            _check_sweeps(tile.contraction, image)
            sweeps = tile.contraction.schedule.sweeps
            part = tile.batch.get("b")
            return _window_steps(image, longest, sweeps, parts, part)
    size, begin = tile.sizes["k"], None
    if parts > 1:
        length = (size.known or 0) // parts
        size = Size(length, build.index(length), build.index(length))
        begin = build.mul(tile.batch["b"], length)
    return PlainSteps(size, longest, build.index(longest), begin)


def _check_sweeps(contraction: TiledContraction, image: Image) -> None:
    schedule, taps = contraction.schedule, image.window.taps
    try:
        check_sweeps(schedule, taps * image.channels, Taps("A", taps, taps))
    except ConfigError as error:
        raise PassError(contraction.op, str(error)) from error


def _window_steps(
    image: Image, longest: int, sweeps: int, parts: int, part: Any
) -> WindowSteps:
    window, channels = image.window, image.channels // sweeps
    step = min(longest, channels)
    span = _span(channels, step)
    back: Number = step - span
    jumps: dict[int, Number] = {}
    for number in reversed(image.dimensions):
        if window.size[number] > 1:
            pitch = image.pitches[number + 1]
            jumps[number] = plus(times(pitch, window.dilations[number]), back)
            back = plus(back, times(pitch, -window.reach(number)))
    length = sweeps * window.taps * span // parts
    begin = None if parts == 1 else build.mul(part, length)
    return WindowSteps(
        words=TapWords(window.size),
        channels=channels,
        sweeps=sweeps,
        step=step,
        exceed=channels % longest != 0,
        jumps=dict(reversed(jumps.items())),
        back=plus(back, span),
        length=length,
        begin=begin,
        starts=_starts(image, begin, step, sweeps),
    )


def _starts(
    image: Image, begin: ir.Value | None, step: int, sweeps: int
) -> dict[str, Any]:
    """What the loop carries, where it begins so far behind the first tap."""
    window, span = image.window, _span(image.channels // sweeps, step)
    channel: Number = 0
    positions: list[Number] = [0] * len(window.size)
    if begin is not None:
        number, channel = build.div(begin, span), build.rem(begin, span)
        positions = [*build.coordinates(number, window.size)]
    offset = channel
    for position, dilation, pitch in zip(
        positions, window.dilations, image.pitches[1:], strict=True
    ):
        offset = plus(offset, times(times(position, dilation), pitch))
    found: dict[str, Any] = {
        "offset": build.value(offset),
        "word": TapWords(window.size).of_tap(positions),
    }
    if span > step and span.bit_count() > 1:
        found["channel"] = build.value(channel)
    if sweeps > 1 or span > image.channels:
        found["first"] = build.index(0)
    return found


def _span(channels: int, step: int) -> int:
    """The channels of a tap, rounded up to whole steps."""
    return -(-channels // step) * step


def _from(begin: ir.Value | None, k: ir.Value) -> Any:
    return k if begin is None else build.add(begin, k)
