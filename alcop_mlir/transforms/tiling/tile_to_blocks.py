"""Tile each scheduled contraction to thread blocks, warps and K steps.

Before:  linalg.matmul {alcop.contraction = ..., alcop.schedule = ...}
             ins(%A, %B) outs(%C)
After:   gpu.launch blocks(...) threads(...) {
           scf.for %k ... iter_args(%acc) {
             memref.copy %A_tile, %a ; memref.copy %B_tile, %b ; gpu.barrier
             scf.for %kk ... { transfer_read %a ; transfer_read %b ; vector.contract }
             gpu.barrier }
           vector.transfer_write %acc, %C }

The body is tile code: a workgroup buffer belongs to the block, a vector to the warp,
and a copy between memrefs is done once by the whole block. Read as SPMD code in which
each thread does all of it, it computes the same. Accumulators are values, never memory.
`linalg` leaves the order of its iterations open, so the output may not alias an input.

Where a tile may exceed its operand, as a size is unknown or not a multiple of the
tile's, an `alcop.copy` copies the remaining extent and fills the rest with zero:
`min(tile, M - m0)` rows, `min(step, K - k)` columns. C is then read and written
`in_bounds = [false, ...]`. A batch is block z, which is divided once by the sizes of
its inner loops; a reduced batch a loop around the K loop, a vector a matrix of one row.
Where the rows of tiles or the batch may be more than a grid has along y and z, all
blocks lie along x. Rows of an operand with a promise (`alcop.row_alignment`) get sizes
that show it to later passes. An empty contraction is not launched; one with an empty K
becomes a copy or a fill. With a `raster`, blocks take the tiles of a group of that many
rows down its rows first.

Of an operand that is never made, an `alcop.im2col` or `alcop.take`, tiles are gathered:

           %rows = ... : vector<128xindex>     // before the loop: where rows begin
           %lacks = ... : vector<128xi32>      // the taps that each has outside
           scf.for %k ... iter_args(%acc, %offset, %tap) {
             %r = arith.addi %rows, %offset ; %v = (%lacks & %tap) == 0
             alcop.gather %x, %a, %r, %v ; memref.copy %B_tile, %b ; ...

One loop goes through the channels of all taps. A step has one tap: where steps do not
divide the channels, the last of each tap is shorter. `%offset`, and the bits of `%tap`,
lead to the next tap by additions and selects; nothing in the loop divides. With several
`sweeps` the loop goes over the taps so often, each time with a part of the channels.
With a `rectangle`, the rows of a block are a rectangle of the positions of a window:
the numbers of rows are computed of those of the rectangle, and C is stored through

           alcop.rows %C {alcop.rectangles = {places = [56, 56], sides = [8, 16]}}

A remark says where C, or what else is read by rows, does not allow this.

Operand transforms, which the op's body computes of an element of A or B before it
multiplies, are computed on the fragments that a warp reads; tiles are copied as memory
holds them. Operands marked `precision = "tf32"` are rounded by `arith.truncf` to that
type. The ops marked as epilogue are computed on the accumulators.

Runs after alcop-select-schedule, alcop-split-k and alcop-fuse-elementwise, and before
alcop-launch-loops, which takes all other ops. Reads and erases `alcop.contraction`;
moves `alcop.schedule` and `alcop.schedule_source` to the `gpu.launch`, where
alcop-plan-pipelines reads the stages. Writes `alcop.kernel`, which the kernel is named
after, and `alcop.other_rows`; alcop-outline-kernels erases them.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.gathered_rows import never_made
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.rectangles import Rectangles
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.linalg.matrices import Size, loop_sizes, product
from alcop_mlir.transforms.tiling.block_rows import rectangles_of
from alcop_mlir.transforms.tiling.thread_points import KERNEL
from alcop_mlir.transforms.tiling.tile_grid import TileGrid
from alcop_mlir.transforms.tiling.tile_loops import contract_tiles
from alcop_mlir.transforms.tiling.tile_outputs import (
    initial_accumulators,
    store_accumulators,
    store_initial,
)
from alcop_mlir.transforms.tiling.tiled_contractions import (
    BlockTile,
    TiledContraction,
    scheduled_contractions,
)


@frozen
class TileToBlocks(Pass):
    name = "alcop-tile-to-blocks"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for contraction in scheduled_contractions(op):
            with contraction.op.location, ir.InsertionPoint(contraction.op):
                _launch(contraction, loop_sizes(contraction.buffers))
            _erase(contraction)


def _erase(contraction: TiledContraction) -> None:
    """Erase the ops that became a kernel, and the buffers that only they used.

    What else uses these asks for their sizes. Also what gave A or B, if no other op
    uses that and it is never made.
    """
    outputs = [
        contraction.out,
        *(element.output.value for element in contraction.epilogue),
    ]
    needed = contraction.results
    ops = [contraction.op, *(element.op for element in contraction.epilogue)]
    for op in [contraction.init_copy, *ops]:
        if op is not None:
            op.operation.erase()
    for buffer in dict.fromkeys(outputs):
        if buffer not in needed:
            whole = root(buffer)  # of which it may be a view
            if whole != buffer:
                edit.erase_unused([buffer.owner])
            edit.erase_deallocs(whole)
            edit.erase_unused([whole.owner])
    found = (never_made(one.value) for one in contraction.operands)
    edit.erase_unused({op for op in found if op is not None})


def _launch(contraction: TiledContraction, sizes: dict[str, Size]) -> None:
    schedule = contraction.schedule
    if any(sizes[loop].known == 0 for loop in contraction.out_loops):
        return
    reduced = ["k", *contraction.reduced_batch]
    is_empty_k = any(sizes[loop].known == 0 for loop in reduced)
    if is_empty_k and contraction.init == "read":
        return
    rectangles = None if is_empty_k else rectangles_of(contraction)
    if rectangles is not None:
        rows = rectangles.numbers(sizes["m"].known or 0)
        sizes = {**sizes, "m": Size(rows, build.index(rows), build.index(rows))}
    grid = _grid(contraction, sizes)
    launch = build.launch(grid.blocks(), schedule.threads, schedule.cluster)
    source = alcop.schedule_source(contraction.op)
    alcop.put_schedule(launch, schedule.to_dict(), source)
    launch.operation.attributes[KERNEL] = ir.StringAttr.get(
        _kernel_name(contraction.op)
    )
    if (alcop.get(contraction.op, alcop.ContractionAttr) or {}).get("other_rows"):
        launch.operation.attributes[alcop.OTHER_ROWS] = ir.UnitAttr.get()
    arguments = list(launch.regions[0].blocks[0].arguments)
    with ir.InsertionPoint(launch.regions[0].blocks[0]):
        place = grid.tile_of(arguments)
        tile = _block_tile(contraction, sizes, place, arguments[3], rectangles)
        if is_empty_k:
            store_initial(tile, arguments[3])
        else:
            initial = initial_accumulators(tile)
            store_accumulators(tile, contract_tiles(tile, initial))
        gpu.TerminatorOp()


def _kernel_name(op: ir.Operation) -> str:
    name = op.operation.name.removeprefix("linalg.").replace("generic", "matmul")
    mark = alcop.get(op, alcop.ContractionAttr) or {}
    return "_".join((name, *filter(None, [mark.get("variant")])))


def _grid(contraction: TiledContraction, sizes: dict[str, Size]) -> TileGrid:
    """The grid, in which a batch that is summed up has no part."""
    schedule = contraction.schedule
    batches = {loop: sizes[loop] for loop in contraction.batches}
    return TileGrid(
        sizes["m"],
        sizes["n"],
        product([*batches.values()]),
        batches,
        tile=schedule.block[:2],
        raster=schedule.raster,
        cluster=schedule.cluster,
    )


def _block_tile(
    contraction: TiledContraction,
    sizes: dict[str, Size],
    place: tuple[Any, Any, dict[str, Any]],
    thread: Any,
    rectangles: Rectangles | None,
) -> BlockTile:
    """The tile of a block, at a row, column and batch, and of its warps.

    Warps run along N first.
    """
    row, column, batch = place
    schedule = contraction.schedule
    warp = build.div(thread, WARP_SIZE)
    warps_n = build.index(schedule.warps[1])
    return BlockTile(
        contraction,
        sizes,
        block={
            "m": _first(sizes["m"], row, schedule.block[0]),
            "n": _first(sizes["n"], column, schedule.block[1]),
        },
        warp={
            "m": build.mul(build.div(warp, warps_n), schedule.warp[0]),
            "n": build.mul(build.rem(warp, warps_n), schedule.warp[1]),
        },
        batch=batch,
        rectangles=rectangles,
    )


def _first(size: Size, block: ir.Value, tile: int) -> Any:
    """First row or column of a block; 0 where there is one block only."""
    if size.known is not None and size.known < tile:
        return build.index(0)
    return build.mul(block, tile)
