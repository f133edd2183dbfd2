"""Tile code whose tile of A is gathered: convolutions, and rows that a table names.

A kernel is a matmul C = A * B of which A is no memref: an `alcop.gather` copies the
tile's rows from where they are. B has rows along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

SPACE = "#gpu.address_space<workgroup>"
WORD_BITS = 31
K_OF_TYPE = {"f16": 16, "bf16": 16, "f32": 8, "i8": 32}


@dataclass(frozen=True)
class Tile:
    """The schedule of a kernel: block and warp tiles, shared and register stages."""

    block: tuple[int, int, int] = (64, 64, 32)
    warp: tuple[int, int] = (32, 32)
    stages: tuple[int, int] = (3, 2)
    unroll: int = 0

    @property
    def warps(self) -> tuple[int, int]:
        return self.block[0] // self.warp[0], self.block[1] // self.warp[1]

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]


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

    def reference(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
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
            np.float32,
        )
        top, left = self.low
        bordered[:, top : top + height, left : left + width] = x
        taps = weights.reshape(self.filters, r, s, channels).astype(np.float32)
        y = np.zeros((images, p, q, self.filters), np.float32)
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


@dataclass
class Code:
    """Lines of MLIR, and names for their results."""

    prefix: str
    lines: list[str] = field(default_factory=list)

    def add(self, expression: str) -> str:
        """The name of what `expression` computes."""
        name = f"%{self.prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def op(self, name: str, left: str, right: str, kind: str) -> str:
        return self.add(f"arith.{name} {left}, {right} : {kind}")

    def splat(self, number: int, kind: str) -> str:
        return self.add(f"arith.constant dense<{number}> : {kind}")

    def all(self, value: str, scalar: str, kind: str) -> str:
        return self.add(f"vector.broadcast {value} : {scalar} to {kind}")


@dataclass(frozen=True)
class Carried:
    """A value that the loop carries."""

    name: str
    kind: str
    first: str
    following: str


@dataclass(frozen=True)
class Rows:
    """What a gather of A is made of: code before the loop, in it, and its operands.

    column: of B, where the iteration's tile begins
    width:  the elements of a row; "" where these fill the tile
    """

    before: Code
    inside: Code
    rows: str
    valid: str
    column: str
    trips: int
    carried: Sequence[Carried] = ()
    width: str = ""


def convolution(
    window: Window, tile: Tile, masks: str = "word", drop: int | None = None
) -> str:
    """A kernel of (%x flat, %b, %c); B is filters x columns.

    masks: "word", a bit per tap, or "sides", a bit per row and per column of the window
    drop:  the bit of the tap that no row has
    """
    rows = _rows_of_window(window, tile, masks, drop)
    return _kernel(
        rows,
        tile,
        source=int(np.prod(window.image)),
        shape=(window.rows, window.filters, window.columns),
    )


def embedding(
    shape: tuple[int, int, int], table: int, tile: Tile, whole: bool = True
) -> str:
    """C[m] = table[indices[m]] * B^T, a kernel of (%x flat, %b, %c, %indices).

    An index below zero is of no row. whole: whether there is an index for each row of
    the last tile too.
    """
    m, _, k = shape
    block = tile.block[0]
    index, word = f"vector<{block}xindex>", f"vector<{block}xi32>"
    count = -(-m // block) * block if whole else m
    before, inside = Code("u"), Code("v")
    none = before.add("arith.constant -1 : i32")
    indices = before.add(
        f"vector.transfer_read %indices[%m0], {none} "
        f"{{in_bounds = [{str(whole).lower()}]}} : memref<{count}xi32>, {word}"
    )
    valid = before.add(f"arith.cmpi sge, {indices}, {before.splat(0, word)} : {word}")
    rows = before.add(f"arith.index_cast {indices} : {word} to {index}")
    base = before.op("muli", rows, before.splat(k, index), index)
    step = inside.add(f"arith.constant {tile.block[2]} : index")
    column = inside.op("muli", "%k", step, "index")
    offsets = inside.op("addi", base, inside.all(column, "index", index), index)
    found = Rows(before, inside, offsets, valid, column, k // tile.block[2])
    return _kernel(
        found, tile, table * k, shape, more=f", %indices: memref<{count}xi32>"
    )


def _rows_of_window(window: Window, tile: Tile, masks: str, drop: int | None) -> Rows:
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
        bits = [before.op("andi", d, a, flag) for d in down for a in across]
    else:
        bits = [*down, *across]
    mask = before.splat(0, word)
    for tap_bit, bit in enumerate(bits):
        if tap_bit == drop:
            continue
        alive_bit = before.op("andi", bit, alive, flag)
        wide = before.add(f"arith.extui {alive_bit} : {flag} to {word}")
        moved = before.op("shli", wide, before.splat(tap_bit, word), word)
        mask = before.op("ori", mask, moved, word)

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


def _kernel(
    found: Rows,
    tile: Tile,
    source: int,
    shape: tuple[int, int, int],
    kind: str = "f16",
    more: str = "",
) -> str:
    """The kernel of (%x, %b, %c, ...); B is n x k. Where rows of A end, so do B's."""
    m, n, k = shape
    (bm, bn, bk), (wm, wn) = tile.block, tile.warp
    assert n % bn == 0
    out = "i32" if kind == "i8" else "f32"
    fragment = K_OF_TYPE[kind]
    acc = f"vector<{wm}x{wn}x{out}>"
    tile_a, tile_b = (f"memref<{rows}x{bk}x{kind}, {SPACE}>" for rows in (bm, bn))
    part_b = f"memref<{bn}x{bk}x{kind}, strided<[{k}, 1], offset: ?>>"
    carried = [Carried("acc", acc, "%none", "%sum"), *found.carried]
    names = ", ".join(f"%{one.name} = {one.first}" for one in carried)
    kinds = ", ".join(one.kind for one in carried)
    following = ", ".join(one.following for one in carried)
    before = "\n".join(found.before.lines)
    inside = "\n".join(found.inside.lines)
    rows_of_a, rows_of_b = (
        f"vector<{rows}xindex>, vector<{rows}xi1>" for rows in (bm, bn)
    )
    width, index = (f", {found.width}", ", index") if found.width else ("", "")
    if found.width:
        vector = f"vector<{bn}xindex>"
        copy_b = f"""
        %column_b = vector.broadcast {found.column} : index to {vector}
        %rows_b = arith.addi %base_b, %column_b : {vector}
        "alcop.gather"(%b, %tile_b, %rows_b, %valid_b{width})
          : (memref<{n * k}x{kind}>, {tile_b}, {rows_of_b}{index}) -> ()"""
        before += f"""
        %step_b = vector.step : {vector}
        %n0_b = vector.broadcast %n0 : index to {vector}
        %n_b = arith.addi %step_b, %n0_b : {vector}
        %k_b = arith.constant dense<{k}> : {vector}
        %base_b = arith.muli %n_b, %k_b : {vector}
        %valid_b = arith.constant dense<true> : vector<{bn}xi1>"""
        kind_b = f"memref<{n * k}x{kind}>"
    else:
        copy_b = f"""
        %part_b = memref.subview %b[%n0, {found.column}] [{bn}, {bk}] [1, 1]
          : memref<{n}x{k}x{kind}> to {part_b}
        memref.copy %part_b, %tile_b : {part_b} to {tile_b}"""
        kind_b = f"memref<{n}x{k}x{kind}>"
    unroll = f", unroll = {tile.unroll}" if tile.unroll else ""
    stages = ", ".join(map(str, tile.stages))
    columns = tile.warps[1]
    return f"""
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#columns = affine_map<(d0, d1, d2) -> (d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @f(%x: memref<{source}x{kind}>, %b: {kind_b},
             %c: memref<{m}x{n}x{out}>{more}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %bm = arith.constant {bm} : index
  %bn = arith.constant {bn} : index
  %bk = arith.constant {bk} : index
  %wm = arith.constant {wm} : index
  %wn = arith.constant {wn} : index
  %fragment = arith.constant {fragment} : index
  %columns = arith.constant {columns} : index
  %gx = arith.constant {n // bn} : index
  %gy = arith.constant {-(-m // bm)} : index
  %threads = arith.constant {tile.threads} : index
  %trips = arith.constant {found.trips} : index
  %nothing = arith.constant {"0" if kind == "i8" else "0.0"} : {kind}
  %none = arith.constant dense<{"0" if kind == "i8" else "0.0"}> : {acc}
  gpu.launch blocks(%bx, %by, %bz) in (%gridx = %gx, %gridy = %gy, %gridz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %c1, %sz = %c1) {{
    %tile_a = memref.alloc() : {tile_a}
    %tile_b = memref.alloc() : {tile_b}
    %warp = arith.divui %tx, %c32 : index
    %m0 = arith.muli %by, %bm : index
    %n0 = arith.muli %bx, %bn : index
    %warp_row = arith.divui %warp, %columns : index
    %warp_column = arith.remui %warp, %columns : index
    %am = arith.muli %warp_row, %wm : index
    %an = arith.muli %warp_column, %wn : index
    {before}
    %result:{len(carried)} = scf.for %k = %c0 to %trips step %c1
        iter_args({names}) -> ({kinds}) {{
      {inside}
      "alcop.gather"(%x, %tile_a, {found.rows}, {found.valid}{width})
        : (memref<{source}x{kind}>, {tile_a}, {rows_of_a}{index}) -> ()
      {copy_b}
      gpu.barrier
      %sum = scf.for %kk = %c0 to %bk step %fragment iter_args(%s = %acc) -> ({acc}) {{
        %fa = vector.transfer_read %tile_a[%am, %kk], %nothing
          {{in_bounds = [true, true]}} : {tile_a}, vector<{wm}x{fragment}x{kind}>
        %fb = vector.transfer_read %tile_b[%an, %kk], %nothing
          {{in_bounds = [true, true]}} : {tile_b}, vector<{wn}x{fragment}x{kind}>
        %p = vector.contract {{indexing_maps = [#rows, #columns, #out],
            iterator_types = ["parallel", "parallel", "reduction"],
            kind = #vector.kind<add>}} %fa, %fb, %s
          : vector<{wm}x{fragment}x{kind}>, vector<{wn}x{fragment}x{kind}> into {acc}
        scf.yield %p : {acc}
      }}
      gpu.barrier
      scf.yield {following} : {kinds}
    }}
    %cm = arith.addi %m0, %am : index
    %cn = arith.addi %n0, %an : index
    vector.transfer_write %result#0, %c[%cm, %cn]
      {{in_bounds = [{str(m % bm == 0).lower()}, true]}} : {acc}, memref<{m}x{n}x{out}>
    gpu.terminator
  }} {{alcop.kernel = "f", alcop.schedule = #alcop.schedule<{{
         block = [{bm}, {bn}, {bk}], stages = [{stages}],
         warp = [{wm}, {wn}]{unroll}}}>}}
  return
}}
"""
