"""Bytes of global memory that the kernels of a program move, from its IR.

Of each launch, the elements that it reads of what it is given, and those that it
writes, each once, as if a cache held all that a kernel uses. Blocks that read a tile
again count nothing, and neither does what stays within a kernel.

Read where all kernels are `gpu.launch` ops, before any is pipelined: of a view, the
elements of its type, but no more than loads and copies access in all their runs: of a
table, so many rows as are looked up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.ir.kernels import nest_in_kernel
from alcop_mlir.analysis.ir.loops import (
    block_of,
    body,
    bounds,
    constant,
    is_loop,
)
from alcop_mlir.analysis.ir.memory import Touch, root, touches_in
from alcop_mlir.analysis.ir.symbols import name_of
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir
from alcop_mlir.compilation.compiler import Options
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.element_types import element_bytes
from alcop_mlir.errors import CompileError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import AlcopCompile

# The step before which all kernels are one op each, of threads or of tile code.
_LAUNCHED = ",alcop-sink-loads"
# An element or a vector by each thread, and a tile, their second operand, by a block.
_BY_THREADS = ("memref.load", "memref.store")
_VECTORS = ("vector.load", "vector.store")
_BY_BLOCKS = ("memref.copy", "alcop.gather")
_SIZES = 6  # operands of a launch: blocks and threads along x, y, z


@dataclass(frozen=True)
class Moved:
    """What one kernel moves.

    blocks: how many, or 0 if that is known at run time only
    """

    name: str
    blocks: int
    bytes: int


def moved_bytes(source: Input, options: Options, name: str) -> int:
    """Of all kernels of function `name` of `source`, of known sizes, in a call.

    The module of `source` is compiled in part.
    """
    return sum(one.bytes for one in moved_by_kernel(source, options, name))


def moved_by_kernel(source: Input, options: Options, name: str) -> tuple[Moved, ...]:
    """As `moved_bytes`, by kernel, in the order of the launches."""
    module = source.module.operation
    run_pipeline(module, _until_launched(options))
    (function,) = (one for one in host_functions(module) if name_of(one) == name)
    with module.context:
        return tuple(map(_moved, walk(function, "gpu.launch")))


def _moved(launch: ir.Operation) -> Moved:
    blocks = [constant(one) or 0 for one in list(launch.operands)[:3]]
    kernel = ir.StringAttr(launch.attributes["alcop.kernel"]).value
    return Moved(kernel, math.prod(blocks), launch_bytes(launch))


def _until_launched(options: Options) -> str:
    """The pipeline of alcop-compile up to where it has launches."""
    named = AlcopCompile(target=options.target.name, allow_tf32=options.allow_tf32)
    steps = ",".join(named.steps())
    return f"builtin.module({steps[: steps.index(_LAUNCHED)]}))"


def launch_bytes(launch: ir.Operation) -> int:
    """Of one `gpu.launch`: what it reads, and what it writes."""
    every = [one for op in body(launch).operations for one in touches_in(op)]
    touched = [one for one in every if _is_global(launch, one)]
    return sum(
        _distinct(launch, [one for one in touched if one.writes == writes])
        for writes in (False, True)
    )


def _is_global(launch: Any, touch: Touch) -> bool:
    """Whether it is of an array that the launch is given; CompileError if unknown."""
    if touch.memref is None:
        raise CompileError(f"{touch.op.name}: what it accesses is not known")
    return not _is_inside(launch, root(touch.memref))


def _is_inside(launch: Any, value: Any) -> bool:
    owner = block_of(value).owner.operation
    return launch in (owner, *around(owner))


def _distinct(launch: Any, touched: Iterable[Touch]) -> int:
    """Bytes of arrays that are touched in one way, none more than all of it has."""
    elements: dict[Any, int] = defaultdict(int)  # by what the launch is given
    for one in touched:
        elements[_given(launch, one.memref)] += _accessed(launch, one)
    moved: dict[Any, int] = defaultdict(int)
    for view, count in elements.items():
        moved[root(view)] += min(count, _size(view.type)) * _bytes(view.type)
    return sum(
        min(count, _size(array.type) * _bytes(array.type))
        for array, count in moved.items()
    )


def _given(launch: Any, memref: Any) -> Any:
    """What the launch is given of which `memref` is a view."""
    while _is_inside(launch, memref):
        memref = memref.owner.operands[0]  # an allocation inside has no such view
    return memref


def _accessed(launch: Any, touch: Touch) -> int:
    """Elements that an op accesses in all its runs: those of the memref, or fewer."""
    whole = _size(_given(launch, touch.memref).type)
    sizes = list(launch.operands)[:_SIZES]
    if touch.op.name in _BY_BLOCKS:
        sizes, each = sizes[: _SIZES // 2], _size(touch.op.operands[1].type)
    elif touch.op.name in _BY_THREADS:
        each = 1
    elif touch.op.name in _VECTORS:
        each = _size([*touch.op.results, *touch.op.operands][0].type)
    else:
        return whole
    runs = [constant(one) for one in sizes]
    runs += [_trips(one) for one in nest_in_kernel(touch.op) if is_loop(one)]
    known = [one for one in runs if one is not None]
    return each * math.prod(known) if len(known) == len(runs) else whole


def _trips(loop: Any) -> int | None:
    """Iterations, at most; None if not known."""
    _, upper, step = map(constant, bounds(loop))
    return None if upper is None or step is None else -(-upper // step)


def _size(kind: Any) -> int:
    """Elements of a memref type, whose sizes are known."""
    return math.prod(kind.shape)


def _bytes(kind: Any) -> int:
    return element_bytes(str(kind.element_type))
