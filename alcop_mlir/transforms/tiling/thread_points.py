"""A `gpu.launch` with one thread per point of a space, at the insertion point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from alcop_mlir.bindings import arith, gpu, ir
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE

KERNEL = "alcop.kernel"
THREADS = 256  # of a block: all GPUs hold several such blocks per SM
_THREAD_ID = 3  # of the block arguments of a launch: after the block ids


def launch_over(
    sizes: Sequence[ir.Value | int],
    name: str,
    body: Callable[[list[Any]], None],
    why: str = "",
    threads: int = THREADS,
) -> None:
    """Launch `body` once for each point below `sizes`, which are ints or index values.

    Neighbouring threads have neighbouring last coordinates. Nothing is built for a
    space known to be empty. The kernel is named after `name`; `why` says why it is a
    SIMT fallback, where anything else was tried; a block has at most so many `threads`.
    """
    total = product(sizes)
    if total == 0:
        return
    if isinstance(total, int):
        threads = min(threads, -(-total // WARP_SIZE) * WARP_SIZE)

    def run(block: ir.Value, thread: ir.Value) -> None:
        number = build.add(build.mul(block, threads), thread)
        if any(isinstance(n, int) and n % threads == 0 for n in (total, *sizes)):
            body(build.coordinates(number, sizes))
        else:
            is_point = arith.cmpi(arith.CmpIPredicate.ult, number, build.value(total))
            build.branch(is_point, lambda: body(build.coordinates(number, sizes)))

    _launch(_blocks(total, threads), threads, name, run, why)


def launch_tiles(
    count: ir.Value | int,
    warps: int,
    name: str,
    body: Callable[[ir.Value, ir.Value, ir.Value], None],
    why: str = "",
) -> None:
    """Launch blocks of so many warps, each for 32 of `count` points, at least 1.

    body: of the number of a point, which the last block may not have, and of the
          thread's warp and lane; the lane has the number's remainder by 32
    """

    def run(block: ir.Value, thread: ir.Value) -> None:
        lane = build.rem(thread, WARP_SIZE)
        number = build.add(build.mul(block, WARP_SIZE), lane)
        body(number, build.div(thread, WARP_SIZE), lane)

    _launch(_blocks(count, WARP_SIZE), warps * WARP_SIZE, name, run, why)


def _blocks(count: ir.Value | int, each: int) -> ir.Value:
    if isinstance(count, int):
        return build.index(-(-count // each))
    return build.ceil_div(count, each)


def _launch(
    blocks: ir.Value,
    threads: int,
    name: str,
    body: Callable[[ir.Value, ir.Value], None],
    why: str,
) -> None:
    """Launch `body`, of the numbers of the block and of the thread."""
    one = build.index(1)
    launch = gpu.LaunchOp((blocks, one, one), (build.index(threads), one, one))
    launch.operation.attributes[KERNEL] = ir.StringAttr.get(name)
    launch.operation.attributes[alcop.FALLBACK] = ir.StringAttr.get(why)
    inside = launch.regions[0].blocks[0]
    with ir.InsertionPoint(inside):
        body(inside.arguments[0], inside.arguments[_THREAD_ID])
        gpu.TerminatorOp()


def product(sizes: Sequence[ir.Value | int]) -> Any:
    """The product of sizes: an int if all are ints or one is 0, else a value."""
    known = math.prod(size for size in sizes if isinstance(size, int))
    values = [size for size in sizes if not isinstance(size, int)]
    if not values or known == 0:
        return known
    total = values[0]
    for size in values[1:]:
        total = build.mul(total, size)
    return total if known == 1 else build.mul(total, known)
