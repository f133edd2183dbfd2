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
    total = _product(sizes)
    if total == 0:
        return
    one = build.index(1)
    if isinstance(total, int):
        threads = min(threads, -(-total // WARP_SIZE) * WARP_SIZE)
        blocks = build.index(-(-total // threads))
    else:
        blocks = build.ceil_div(total, threads)
    launch = gpu.LaunchOp((blocks, one, one), (build.index(threads), one, one))
    launch.operation.attributes[KERNEL] = ir.StringAttr.get(name)
    launch.operation.attributes[alcop.FALLBACK] = ir.StringAttr.get(why)
    inside = launch.regions[0].blocks[0]
    with ir.InsertionPoint(inside):
        block, thread = inside.arguments[0], inside.arguments[_THREAD_ID]
        number = build.add(build.mul(block, threads), thread)
        if any(isinstance(n, int) and n % threads == 0 for n in (total, *sizes)):
            body(build.coordinates(number, sizes))
        else:
            is_point = arith.cmpi(arith.CmpIPredicate.ult, number, build.value(total))
            build.branch(is_point, lambda: body(build.coordinates(number, sizes)))
        gpu.TerminatorOp()


def _product(sizes: Sequence[ir.Value | int]) -> Any:
    """The product of sizes: an int if all are ints or one is 0, else a value."""
    known = math.prod(size for size in sizes if isinstance(size, int))
    values = [size for size in sizes if not isinstance(size, int)]
    if not values or known == 0:
        return known
    total = values[0]
    for size in values[1:]:
        total = build.mul(total, size)
    return total if known == 1 else build.mul(total, known)
