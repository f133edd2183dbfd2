"""Layers of networks that are convolutions, and their MLIR.

The ALCOP paper's (`alcop2d`, `alcop3d`), and those of `shapes/convolutions.txt`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

SHAPES = Path(__file__).parent / "shapes"
PAPER_BATCH = 64
# What a layer that is run is cut to: places along each dimension, and channels.
PLACES = {1: 40, 2: 5, 3: 3}
CHANNELS = 128
BATCH = 2
# Of a convolution's name: channels last. Filters have groups first.
PLAIN = {1: "conv_1d_nwc_wcf", 2: "conv_2d_nhwc_hwcf", 3: "conv_3d_ndhwc_dhwcf"}
GROUPED = "conv_2d_nhwgc_gfhwc"
DEPTHWISE = "depthwise_conv_2d_nhwc_hwc"


@dataclass(frozen=True)
class Layer:
    """A convolution of f16 images with the channels last.

    image, window: pixels and taps along D, H, W, or the last of these
    low, high:     zeros before and after the image
    """

    network: str
    image: tuple[int, ...]
    channels: int
    filters: int
    window: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    groups: int = 1
    batch: int = 1

    @property
    def spans(self) -> tuple[int, ...]:
        """Pixels from the first tap to the last, both included."""
        pairs = zip(self.window, self.dilation, strict=True)
        return tuple((taps - 1) * dilation + 1 for taps, dilation in pairs)

    @property
    def bordered(self) -> tuple[int, ...]:
        """Pixels with the zeros around them."""
        return tuple(map(sum, zip(self.image, self.low, self.high, strict=True)))

    @property
    def places(self) -> tuple[int, ...]:
        """How often the window fits."""
        of = zip(self.bordered, self.spans, self.stride, strict=True)
        return tuple((pixels - span) // stride + 1 for pixels, span, stride in of)

    @property
    def is_depthwise(self) -> bool:
        """Whether each filter sees one channel of its own."""
        return self.groups == self.channels == self.filters

    @property
    def op(self) -> str:
        """The name of linalg's op."""
        if self.is_depthwise:
            return DEPTHWISE
        return GROUPED if self.groups > 1 else PLAIN[len(self.image)]

    def __str__(self) -> str:
        settings = [("s", self.stride, 1), ("d", self.dilation, 1), ("p", self.low, 0)]
        if self.high != self.low:
            settings.append(("to", self.high, 0))
        text = f"{_times(self.image)}x{self.channels} -> {self.filters}"
        text += f", {_times(self.window)}"
        for name, values, usual in settings:
            if set(values) != {usual}:
                text += f" {name}{_times(values[:1] if _alike(values) else values)}"
        return text + (f" g{self.groups}" if self.groups > 1 else "")

    def shapes(self) -> list[tuple[int, ...]]:
        """Of images, images with zeros around them, filters, and outputs."""
        channels, filters = (self.channels,), (self.filters,)
        weights = (*self.window, *channels, *filters)
        if self.is_depthwise:
            weights = (*self.window, *channels)
        elif self.groups > 1:
            channels, filters = (
                (self.groups, count // self.groups)
                for count in (self.channels, self.filters)
            )
            weights = (*filters, *self.window, channels[1])
        n = self.batch
        return [
            (n, *self.image, *channels),
            (n, *self.bordered, *channels),
            weights,
            (n, *self.places, *filters),
        ]

    def text(self) -> str:
        """A function on tensors."""
        shapes = self.shapes()
        x, p, w, y = (f"tensor<{_times(shape)}xf16>" for shape in shapes)
        inner = [0] * (len(shapes[0]) - 1 - len(self.image))
        low, high = ([0, *border, *inner] for border in (self.low, self.high))
        indices = ", ".join(f"%i{number}: index" for number in range(len(shapes[0])))
        steps = f"tensor<{len(self.image)}xi64>"
        return f"""
          func.func @conv(%x: {x}, %w: {w}) -> {y} {{
            %zero = arith.constant 0.0 : f16
            %p = tensor.pad %x low{low} high{high} {{
            ^bb0({indices}):
              tensor.yield %zero : f16
            }} : {x} to {p}
            %e = tensor.empty() : {y}
            %i = linalg.fill ins(%zero : f16) outs(%e : {y}) -> {y}
            %y = linalg.{self.op} {{dilations = dense<{[*self.dilation]}> : {steps},
                                   strides = dense<{[*self.stride]}> : {steps}}}
              ins(%p, %w : {p}, {w}) outs(%i : {y}) -> {y}
            return %y : {y}
          }}"""

    def cut(self) -> Layer:
        """One that the emulator runs in a second or two: fewer places and channels."""
        most = PLACES[len(self.image)]
        needed = (
            max(span, span + (most - 1) * stride - low - high)
            for span, stride, low, high in zip(
                self.spans, self.stride, self.low, self.high, strict=True
            )
        )
        image = tuple(map(min, self.image, needed))
        channels, filters = self.channels, self.filters
        if self.groups == 1:
            channels, filters = min(channels, CHANNELS), min(filters, CHANNELS)
        batch = min(self.batch, BATCH)
        return replace(
            self, image=image, channels=channels, filters=filters, batch=batch
        )


def layers(names: Sequence[str], batches: Sequence[int]) -> Iterator[Layer]:
    """All of the lists named, or of all lists, for each batch."""
    for layer in [*papers(), *listed()]:
        if names and layer.network not in names:
            continue
        is_paper = layer.network.startswith("alcop")
        for batch in [PAPER_BATCH] if is_paper else batches:
            yield replace(layer, batch=batch)


def listed() -> Iterator[Layer]:
    """Those of the table."""
    for line in (SHAPES / "convolutions.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        network, image, filters, window, *settings = line.split()
        *pixels, channels = _numbers(image)
        given = dict(setting.split("=") for setting in settings)
        groups = int(given.pop("groups", "1"))
        if "pad" in given:
            given["low"] = given["high"] = given.pop("pad")
        usual = {"stride": "1", "dilation": "1", "low": "0", "high": "0"}
        steps = {
            name: _spread(_numbers(text), len(pixels))
            for name, text in (usual | given).items()
        }
        sizes = tuple(pixels), channels, int(filters), _numbers(window)
        yield Layer(
            network,
            *sizes,
            stride=steps["stride"],
            dilation=steps["dilation"],
            low=steps["low"],
            high=steps["high"],
            groups=groups,
        )


def papers() -> Iterator[Layer]:
    """Those of the ALCOP paper."""
    stored = json.loads((SHAPES / "alcop_operators.json").read_text())
    for _, h, w, c, f, r, s, stride, padding in stored["conv2d_nhwc"]["rows"]:
        yield _even("alcop2d", (h, w), c, f, (r, s), stride, padding)
    for _, d, h, w, c, f, r, stride, padding in stored["conv3d_ndhwc"]["rows"]:
        yield _even("alcop3d", (d, h, w), c, f, (r, r, r), stride, padding)


def _even(
    network: str,
    image: tuple[int, ...],
    channels: int,
    filters: int,
    window: tuple[int, ...],
    stride: int,
    padding: int,
) -> Layer:
    """One that is the same along all dimensions."""
    rank = len(image)
    strides, ones, border = ((one,) * rank for one in (stride, 1, padding))
    return Layer(
        network, image, channels, filters, window, strides, ones, border, border
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def _times(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _alike(numbers: Sequence[int]) -> bool:
    return len({*numbers}) == 1


def _spread(numbers: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """One number for each dimension."""
    return numbers * rank if len(numbers) == 1 else numbers
