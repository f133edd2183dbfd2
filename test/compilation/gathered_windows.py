"""Convolutions as tile code: a gather of each window's places, tap by tap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gathered_kernels import Carried, Code, Rows, Tile, kernel

WORD_BITS = 31


@dataclass(frozen=True)
class Window:
    """A convolution: images N x H x W x C, filters K x R x S x C."""

    image: tuple[int, int, int, int] = (1, 14, 14, 64)
    filters: int = 64
    size: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (1, 1)
    high: tuple[int, int] = (1, 1)

    @property
    def places(self) -> tuple[int, int]:
        """Rows and columns of the output image."""
        spatial = zip(
            self.image[1:3],
            self.size,
            self.stride,
            self.dilation,
            self.low,
            self.high,
            strict=True,
        )
        height, width = (
            (size + low + high - dilation * (taps - 1) - 1) // stride + 1
            for size, taps, stride, dilation, low, high in spatial
        )
        return height, width

    @property
    def rows(self) -> int:
        """Rows of A and of C."""
        return self.image[0] * self.places[0] * self.places[1]

    @property
    def columns(self) -> int:
        """Columns of A."""
        return self.size[0] * self.size[1] * self.image[3]

    def reference(
        self, x: np.ndarray, weights: np.ndarray, kind: str = "f4"
    ) -> np.ndarray:
        """rows x filters, in f32; what a window's tap does not read counts as zero."""
        images, height, width, channels = self.image
        (p, q), (r, s) = self.places, self.size
        bordered = np.zeros(
            (
                images,
                height + self.low[0] + self.high[0],
                width + self.low[1] + self.high[1],
                channels,
            ),
            kind,
        )
        top, left = self.low
        bordered[:, top : top + height, left : left + width] = x
        taps = weights.reshape(self.filters, r, s, channels).astype(kind)
        y = np.zeros((images, p, q, self.filters), kind)
        for i in range(r):
            for j in range(s):
                down, across = i * self.dilation[0], j * self.dilation[1]
                part = bordered[
                    :,
                    down : down + (p - 1) * self.stride[0] + 1 : self.stride[0],
                    across : across + (q - 1) * self.stride[1] + 1 : self.stride[1],
                ]
                y += part @ taps[:, i, j].T
        return y.reshape(self.rows, self.filters)


def convolution(
    window: Window,
    tile: Tile,
    masks: str = "word",
    kind: str = "f16",
    has_bits: bool = False,
) -> str:
    """A kernel of (%x flat, %b, %c); B is filters x columns.

    masks: "word", a bit per tap, or "sides", a bit per row and per column of the window
    has_bits: whether an argument %bits has the bits that masks may have, an i32
    """
    return kernel(
        _rows_of_window(window, tile, masks, has_bits),
        tile,
        source=int(np.prod(window.image)),
        shape=(window.rows, window.filters, window.columns),
        kind=kind,
        more=", %bits: memref<1xi32>" if has_bits else "",
    )


def _rows_of_window(window: Window, tile: Tile, masks: str, has_bits: bool) -> Rows:
    _, height, width, channels = window.image
    (p, q), (r, s) = window.places, window.size
    bm, _, bk = tile.block
    index, word, flag = (f"vector<{bm}x{kind}>" for kind in ("index", "i32", "i1"))
    before = Code("u")
    m = before.op(
        "addi",
        before.all("%m0", "index", index),
        before.add(f"vector.step : {index}"),
        index,
    )
    column = before.op("remui", m, before.splat(q, index), index)
    line = before.op("divui", m, before.splat(q, index), index)
    row = before.op("remui", line, before.splat(p, index), index)
    image = before.op("divui", line, before.splat(p, index), index)

    def begin(place: str, number: int) -> str:
        far = before.op(
            "muli", place, before.splat(window.stride[number], index), index
        )
        return before.op("subi", far, before.splat(window.low[number], index), index)

    def inside_of(place: str, tap: int, number: int, extent: int) -> str:
        step = before.splat(tap * window.dilation[number], index)
        at = before.op("addi", place, step, index)
        return before.op("cmpi ult,", at, before.splat(extent, index), index)

    top, left = begin(row, 0), begin(column, 1)
    base = before.op("muli", image, before.splat(height, index), index)
    base = before.op("addi", base, top, index)
    base = before.op("muli", base, before.splat(width, index), index)
    base = before.op("addi", base, left, index)
    base = before.op("muli", base, before.splat(channels, index), index)
    alive = before.op("cmpi ult,", m, before.splat(window.rows, index), index)
    down = [inside_of(top, i, 0, height) for i in range(r)]
    across = [inside_of(left, j, 1, width) for j in range(s)]
    if masks == "word":
        assert r * s <= WORD_BITS
        flags = [before.op("andi", d, a, flag) for d in down for a in across]
    else:
        flags = [*down, *across]
    mask = before.splat(0, word)
    for tap_bit, bit in enumerate(flags):
        alive_bit = before.op("andi", bit, alive, flag)
        wide = before.add(f"arith.extui {alive_bit} : {flag} to {word}")
        moved = before.op("shli", wide, before.splat(tap_bit, word), word)
        mask = before.op("ori", mask, moved, word)
    if has_bits:
        bits = before.add("memref.load %bits[%c0] : memref<1xi32>")
        mask = before.op("andi", mask, before.all(bits, "i32", word), word)

    tiles = -(-channels // bk)  # of a tap
    inside = Code("v")
    offsets = inside.op("addi", base, inside.all("%offset", "index", index), index)
    tap = inside.all("%tap", "i32", word)
    hit = inside.op("andi", mask, tap, word)
    expected = tap if masks == "sides" else inside.splat(0, word)
    relation = "eq" if masks == "sides" else "ne"
    valid = inside.op(f"cmpi {relation},", hit, expected, word)

    def number(value: int, kind: str = "index") -> str:
        return inside.add(f"arith.constant {value} : {kind}")

    def choose(condition: str, one: str, other: str, kind: str = "index") -> str:
        return inside.add(f"arith.select {condition}, {one}, {other} : {kind}")

    of_tap = inside.op("remui", "%k", number(tiles), "index")
    ends_tap = inside.op("cmpi eq,", of_tap, number(tiles - 1), "index")
    last = channels - (tiles - 1) * bk  # columns of a tap's last tile
    along = window.dilation[1] * channels - (tiles - 1) * bk
    back = (window.dilation[0] * width - (s - 1) * window.dilation[1]) * channels
    ends = (
        sum(1 << (i * s + s - 1) for i in range(r))
        if masks == "word"
        else 1 << (r + s - 1)
    )
    at_end = inside.op("andi", "%tap", number(ends, "i32"), "i32")
    ends_row = inside.op("cmpi ne,", at_end, number(0, "i32"), "i32")
    next_tap = choose(ends_row, number(back - (tiles - 1) * bk), number(along))
    step = choose(ends_tap, next_tap, number(bk))
    offset = inside.op("addi", "%offset", step, "index")
    one = number(1, "i32")
    if masks == "word":
        first, moved = 1, inside.op("shli", "%tap", one, "i32")
    else:
        first = 1 | 1 << r
        rows = inside.op("andi", "%tap", number((1 << r) - 1, "i32"), "i32")
        columns = inside.op("xori", "%tap", rows, "i32")
        below = inside.op("shli", rows, one, "i32")
        below = inside.op("ori", below, number(1 << r, "i32"), "i32")
        beside = inside.op("shli", columns, one, "i32")
        beside = inside.op("ori", beside, rows, "i32")
        moved = choose(ends_row, below, beside, "i32")
    tap = choose(ends_tap, moved, "%tap", "i32")
    carried = [
        Carried("offset", "index", "%c0", offset),
        Carried("tap", "i32", before.add(f"arith.constant {first} : i32"), tap),
    ]
    bound = ""
    if last == bk:
        column = inside.op("muli", "%k", number(bk), "index")
    else:
        bound = choose(ends_tap, number(last), number(bk))
        column = "%column"
        following = inside.op("addi", column, bound, "index")
        carried.append(Carried("column", "index", "%c0", following))
    return Rows(before, inside, offsets, valid, column, r * s * tiles, carried, bound)
