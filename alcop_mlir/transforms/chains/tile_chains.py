"""Tile chains of contractions and row reductions: each becomes one kernel.

Before:  scf.execute_region {
           linalg.generic {alcop.chain = {role = "scores", batch = 2, start = -inf,
                                          last = 0}} ... }
After:   gpu.launch blocks(%m x %bh, %one, %one) threads(%t, %one, %one) {
           memref.copy %Q[...], %q                        // once
           %o:4 = scf.for %n iter_args(%acc, %max, %from, %sum) {
             memref.copy %K[%n ...], %k ; memref.copy %V[%n ...], %v
             gpu.barrier
             %s = vector.contract %q, %k                  // a warp's scores
             %x = ...                                     // elements of these
             %r = vector.multi_reduction <maximumf>, %x, %max
             %m = arith.mulf %r, %scale
             %w = math.exp2 (math.fma %x, %scale, -%m)
             %c = math.exp2 (%from - %m)                  // what was summed is less
             %sum' = vector.multi_reduction <add>, %w, %sum * %c
             %acc' = vector.contract (truncf %w), %v, %acc * %c
             gpu.barrier }
           // ... another scf.for, for tiles with a mask or a rest
           vector.transfer_write ... , %O } {alcop.kernel = "chain"}

A block has some rows and all columns, in tiles of columns; a warp has 16 rows and holds
its weights in registers. Tiles of columns that the bounds `first` and `last` of columns
leave no weight are not visited, so that what a row has of V there is not multiplied by
zero: NaN in it does not reach the result. Columns that do not exist have an element of
-inf, and rows of V that do not exist are zero.

What an op computes is read from its body; alcop-group-chains has proven that bodies
fit. Tiles that all rows of a block see, and that exist as a whole, come first, in a
loop without masks; with a window, which has a mask at both ends, all tiles have it. The
scale is a part of the multiply-add of the exponents (`row_powers.py`). A row of which
all elements are -inf has weights of zero, and NaN for their total, as in the program.
Where no rows are reduced and the result is f32, its op changes no element, so that
canonicalize has erased it: it is made again.

Blocks have 32 to 128 rows and tiles of up to 128 columns: those of the fastest record
of the chain on the GPU that is compiled for, else those that a model of the time likes
best on the target (`tuning/fused/chain_tiles.py`). `tiles` beside the role of the
scores, or the option, says which instead: rows of a warp, warps, columns. What is not
possible is an error.

Sizes that are known at run time only are numbers of the host function; tiles are chosen
as for 1000, and columns are in one part. Of no columns at all the result is 0.

Where blocks do not fill the target, and each would go over many tiles of columns, as
for one row behind many others, columns are split into parts with blocks of their own,
if that is predicted to be a quarter faster; a remark says so. `parts` beside the role
of the scores, or the option, says how many, of tiles that are so many at least. A
remark also says that mma.sync multiplies on a target that has wgmma.

After:   gpu.launch blocks(%parts x %bh x %m, %one, %one) ... {
           ... scf.for %n = %first_of_part to %end_of_part ...
           vector.transfer_write %acc, %accumulators[%part, ...]
           vector.transfer_write %max, %maxima[%part, ...]
           vector.transfer_write %sum, %totals[%part, ...] }
         linalg.generic ins(%accumulators_of_0, ..., %maxima_of_0, ...) outs(%O)

Runs right after bufferization, as buffers between the ops vanish, and before
alcop-place-results. Reads and erases `alcop.chain`; writes `alcop.kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import defining_op, made_by
from alcop_mlir.analysis.ir.memory import VIEW_OPS
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.passes.sizes import Number, product
from alcop_mlir.target import DEFAULT_TARGET, WARP_SIZE, Target, find_target
from alcop_mlir.transforms.chains.chain_loop import ChainLoop
from alcop_mlir.transforms.chains.chain_parts import allocated, merge
from alcop_mlir.transforms.chains.tiled_chain import TiledChain, complete, read_chain
from alcop_mlir.transforms.schedules.compiler_chooser import compiler_chooser
from alcop_mlir.transforms.tiling.thread_points import KERNEL
from alcop_mlir.tuning.fused.chain_problem import block_count, column_tiles, merge_bytes
from alcop_mlir.tuning.fused.chain_tiles import would_split

_NAME = "chain"
_RESHAPES = ("memref.expand_shape", "memref.collapse_shape")


@frozen
class TileChains(Pass):
    name = "alcop-tile-chains"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU that blocks have to fill and fit")
    tiles: tuple[int, ...] = option((), "rows of a warp, warps, columns; or chosen")
    parts: int = option(0, "of the columns, merged by another kernel; 0: chosen")
    records: bool = option(True, "tiles of the fastest record, where there is one")

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        chooser = cache(partial(compiler_chooser, op, target)) if self.records else None
        for region in walk(op, "scf.execute_region"):
            complete(region)
            chain = read_chain(region, target, self.tiles, self.parts, chooser)
            if chain is not None:
                for said in (_engine(target), _parts(chain, target)):
                    if said is not None:
                        diagnostics.remark(chain.steps["scores"].view.op, said)
                _hoist_results(region)
                with region.location, ir.InsertionPoint(region):
                    _launch(chain)
                _erase(region)


def _engine(target: Target) -> str | None:
    """Why a target that has wgmma does not multiply by it."""
    if not target.has_wgmma:
        return None
    return (
        "multiplied by mma.sync instead of wgmma: rows of weights are computed between "
        "two contractions, in fragments of mma.sync"
    )


def _parts(chain: TiledChain, target: Target) -> str | None:
    """Into which parts columns are split, and why; why not, where they could be."""
    sizes, tiles = chain.sizes, chain.tiles
    if would_split(sizes, tiles, target):
        return (
            "columns are in one part, as a size is known at run time only: few blocks "
            f"may leave SMs of {target.name} without any"
        )
    if tiles.parts == 1:
        return None
    return (
        f"columns are split into {tiles.parts} parts of {chain.part_columns}, which a "
        f"kernel merges: without parts {block_count(sizes, tiles)} blocks go over "
        f"up to {column_tiles(sizes, tiles)} tiles of {tiles.columns} columns, and "
        f"{target.name} has {target.sms} SMs; the merge moves "
        f"{merge_bytes(sizes, tiles.parts)} bytes"
    )


def _hoist_results(region: ir.Operation) -> None:
    """Make what the region yields in front of it, as it is erased.

    Where another op writes the like, alcop-separate-empties gives the result a buffer
    beside its use, and bufferization one instead of that which both write.
    """
    for value in region.regions[0].blocks[0].operations[-1].operands:
        _hoist(value, region)


def _hoist(value: ir.Value, region: ir.Operation) -> None:
    made = made_by(value, "memref.alloc", *_RESHAPES)
    if made is not None and made.operation.parent == region:
        for operand in made.operands:
            _hoist(operand, region)
        made.operation.move_before(region)


def _launch(chain: TiledChain) -> None:
    """The kernel, before the region, with the views that it works on."""
    views = _views(chain)
    parts = chain.tiles.parts
    partials = allocated(chain) if parts > 1 else None
    numbers = chain.numbers(views)
    groups, batch = _groups(numbers.m, chain), product(numbers.batch)
    # All along x, as grids are short along y; those of a matrix after each other, and
    # so of a part.
    blocks = (product((groups, batch, parts)), 1, 1)
    threads = (chain.tiles.warps * WARP_SIZE, 1, 1)
    launch = gpu.LaunchOp(
        tuple(map(build.value, blocks)), tuple(map(build.index, threads))
    )
    launch.operation.attributes[KERNEL] = ir.StringAttr.get(_NAME)
    body = launch.regions[0].blocks[0]
    number, _, _, thread, *_ = body.arguments
    with ir.InsertionPoint(body):
        extents = {"part": parts, "matrix": batch, "block": groups}
        several = [name for name, extent in extents.items() if extent != 1]
        found = build.coordinates(number, [extents[name] for name in several])
        at = dict(zip(several, found, strict=True))
        zero = build.index(0)
        part, matrix, block = (at.get(name, zero) for name in extents)
        ChainLoop(chain, numbers, views, block, matrix, thread, part, partials).build()
        gpu.TerminatorOp()
    if partials is not None:
        merge(chain, partials, views)


def _groups(rows: Number, chain: TiledChain) -> Number:
    """How many blocks cover the rows."""
    tile = chain.tiles.block_rows
    return -(-rows // tile) if isinstance(rows, int) else build.ceil_div(rows, tile)


def _views(chain: TiledChain) -> dict[ir.Value, ir.Value]:
    """Views that are made in the region, made again in front of it."""
    views: dict[ir.Value, ir.Value] = {}
    for op in chain.op.regions[0].blocks[0].operations:
        if op.operation.name in VIEW_OPS and _is_outside(op.operands[0], chain, views):
            edit.clone(op.operation, views)
    return views


def _is_outside(
    value: ir.Value, chain: TiledChain, views: Mapping[ir.Value, ir.Value]
) -> bool:
    """Whether a memref is there in front of the region, or a view made there is."""
    op = defining_op(value)
    return op is None or op.parent != chain.op or value in views


def _erase(region: ir.Operation) -> None:
    """Erase the region, and use the buffers that it yields, which are from outside."""
    if region.results:
        end = region.regions[0].blocks[0].operations[-1].operation
        for old, new in zip(region.results, end.operands, strict=True):
            old.replace_all_uses_with(_viewed(new))
    region.erase()


def _viewed(value: ir.Value) -> ir.Value:
    """The buffer that a collapsed view of its own parts is; else the value."""
    collapsed = made_by(value, "memref.collapse_shape")
    expanded = collapsed and made_by(collapsed.operands[0], "memref.expand_shape")
    return value if expanded is None else expanded.operands[0]
