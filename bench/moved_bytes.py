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
from alcop_mlir.dialects import alcop
from alcop_mlir.element_types import element_bytes
from alcop_mlir.errors import CompileError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import AlcopCompile
from alcop_mlir.schedule import Schedule

# The step before which all kernels are one op each, of threads or of tile code.
_LAUNCHED = ",alcop-sink-loads"
# An element or a vector by each thread, and a tile, their second operand, by a block.
_BY_THREADS = ("memref.load", "memref.store")
_VECTORS = ("vector.load", "vector.store")
_BY_BLOCKS = ("memref.copy", "alcop.gather")
Bytes = dict[Any, int]  # by array, a memref on the host
_SIZES = 6  # operands of a launch: blocks and threads along x, y, z


@dataclass(frozen=True)
class Moved:
    """What one kernel moves.

    blocks:        how many, or 0 if that is known at run time only
    read, written: bytes
    least:         of those, the first reads of what the function is given, and first
                   writes of its results; others are between kernels, or done again
    schedule:      of a contraction, else ""
    """

    name: str
    blocks: int
    read: int
    written: int
    least: int
    schedule: str

    @property
    def bytes(self) -> int:
        """Read and written."""
        return self.read + self.written


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
    given = [*function.regions[0].blocks[0].arguments]
    given += [one.results[0] for one in walk(function, "memref.get_global")]
    with module.context:
        unread: Bytes = {one: _size(one.type) * _bytes(one.type) for one in given}
        unwritten = dict(unread)
        launches = walk(function, "gpu.launch")
        return tuple(_moved(one, unread, unwritten) for one in launches)


def _moved(launch: ir.Operation, unread: Bytes, unwritten: Bytes) -> Moved:
    """Of one launch; what it is the first to move is taken from what none has moved."""
    blocks = [constant(one) or 0 for one in list(launch.operands)[:3]]
    read, written = _arrays(launch, writes=False), _arrays(launch, writes=True)
    least = _first(read, unread) + _first(written, unwritten)
    for array in written:
        unread.pop(array, None)  # what is read from now on is a result
    schedule = alcop.get(launch, alcop.ScheduleAttr)
    return Moved(
        ir.StringAttr(launch.attributes["alcop.kernel"]).value,
        math.prod(blocks),
        sum(read.values()),
        sum(written.values()),
        least,
        "" if schedule is None else str(Schedule.from_dict(schedule)),
    )


def _first(moved: Bytes, left: Bytes) -> int:
    """Bytes of `left` that are moved now, which then are no longer left."""
    first = {one: min(count, left.get(one, 0)) for one, count in moved.items()}
    left.update({one: left[one] - count for one, count in first.items() if count})
    return sum(first.values())


def _until_launched(options: Options) -> str:
    """The pipeline of alcop-compile up to where it has launches."""
    named = AlcopCompile(target=options.target.name, allow_tf32=options.allow_tf32)
    steps = ",".join(named.steps())
    return f"builtin.module({steps[: steps.index(_LAUNCHED)]}))"


def _arrays(launch: ir.Operation, writes: bool) -> Bytes:
    """Of one `gpu.launch`: what it reads, or what it writes, by array."""
    every = [one for op in body(launch).operations for one in touches_in(op)]
    touched = [one for one in every if _is_global(launch, one)]
    return _distinct(launch, [one for one in touched if one.writes == writes])


def _is_global(launch: Any, touch: Touch) -> bool:
    """Whether it is of an array that the launch is given; CompileError if unknown."""
    if touch.memref is None:
        raise CompileError(f"{touch.op.name}: what it accesses is not known")
    return not _is_inside(launch, root(touch.memref))


def _is_inside(launch: Any, value: Any) -> bool:
    owner = block_of(value).owner.operation
    return launch in (owner, *around(owner))


def _distinct(launch: Any, touched: Iterable[Touch]) -> Bytes:
    """Bytes of arrays that are touched in one way, none more than all of it has."""
    elements: dict[Any, int] = defaultdict(int)  # by what the launch is given
    for one in touched:
        elements[_given(launch, one.memref)] += _accessed(launch, one)
    moved: dict[Any, int] = defaultdict(int)
    for view, count in elements.items():
        moved[root(view)] += min(count, _size(view.type)) * _bytes(view.type)
    return {
        array: min(count, _size(array.type) * _bytes(array.type))
        for array, count in moved.items()
    }


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
