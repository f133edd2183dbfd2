"""Tile code whose tile of A is gathered, and such kernels of rows that a table names.

A kernel is a matmul C = A * B of which A is no memref: an `alcop.gather` copies the
tile's rows from where they are. B has rows along K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SPACE = "#gpu.address_space<workgroup>"
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
    return kernel(
        found, tile, table * k, shape, more=f", %indices: memref<{count}xi32>"
    )


def pages(shape: tuple[int, int, int], table: int, tile: Tile) -> str:
    """Each K step of a row is a row of a table of its own, as pages of memory are.

    A kernel of (%x flat, %b, %c, %indices), where A[m, k] is
    x[indices[k / block K][m], k % block K], or 0 for an index below zero. The block's
    rows divide m.
    """
    m, _, k = shape
    block, _, step = tile.block
    index, word = f"vector<{block}xindex>", f"vector<{block}xi32>"
    before, inside = Code("u"), Code("v")
    none = before.splat(0, word)
    size = before.splat(step, index)
    begin = inside.op("muli", "%k", inside.add(f"arith.constant {m} : index"), "index")
    first = inside.op("addi", begin, "%m0", "index")
    zero = inside.add("arith.constant 0 : i32")
    indices = inside.add(
        f"vector.transfer_read %indices[{first}], {zero} {{in_bounds = [true]}} : "
        f"memref<{k // step * m}xi32>, {word}"
    )
    valid = inside.add(f"arith.cmpi sge, {indices}, {none} : {word}")
    rows = inside.add(f"arith.index_cast {indices} : {word} to {index}")
    offsets = inside.op("muli", rows, size, index)
    column = inside.op(
        "muli", "%k", inside.add(f"arith.constant {step} : index"), "index"
    )
    found = Rows(before, inside, offsets, valid, column, k // step)
    more = f", %indices: memref<{k // step * m}xi32>"
    return kernel(found, tile, table * step, shape, more=more)


def sheared(shape: tuple[int, int, int], gap: int, tile: Tile) -> str:
    """Row m moves on by `gap * m` more elements with each K step; one carries all rows.

    A kernel of (%x flat, %b, %c), where A[m, k] is x[k + m * gap * (k / block K)].
    """
    m, _, k = shape
    block, _, step = tile.block
    index = f"vector<{block}xindex>"
    before, inside = Code("u"), Code("v")
    row = before.add(f"vector.step : {index}")
    row = before.op("addi", row, before.all("%m0", "index", index), index)
    far = before.op("muli", row, before.splat(gap, index), index)
    far = before.op("addi", far, before.splat(step, index), index)
    none = before.splat(0, index)
    valid = before.add(f"arith.constant dense<true> : vector<{block}xi1>")
    following = inside.op("addi", "%rows", far, index)
    column = inside.op(
        "muli", "%k", inside.add(f"arith.constant {step} : index"), "index"
    )
    carried = [Carried("rows", index, none, following)]
    found = Rows(before, inside, "%rows", valid, column, k // step, carried)
    return kernel(found, tile, k + m * gap * (k // step), shape)


def kernel(
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
    loaded_a, loaded_b = (f"vector<{rows}x{fragment}x{kind}>" for rows in tile.warp)
    vector_a, vector_b, round_a, round_b, multiplied = loaded_a, loaded_b, "", "", "f"
    if kind == "f32":
        multiplied = "t"
        vector_a, vector_b = (f"vector<{rows}x{fragment}xtf32>" for rows in tile.warp)
        round_a = f"%ta = arith.truncf %fa : {loaded_a} to {vector_a}"
        round_b = f"%tb = arith.truncf %fb : {loaded_b} to {vector_b}"
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
          {{in_bounds = [true, true]}} : {tile_a}, {loaded_a}
        %fb = vector.transfer_read %tile_b[%an, %kk], %nothing
          {{in_bounds = [true, true]}} : {tile_b}, {loaded_b}
        {round_a}
        {round_b}
        %p = vector.contract {{indexing_maps = [#rows, #columns, #out],
            iterator_types = ["parallel", "parallel", "reduction"],
            kind = #vector.kind<add>}} %{multiplied}a, %{multiplied}b, %s
          : {vector_a}, {vector_b} into {acc}
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
