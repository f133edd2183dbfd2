"""How many threads have a row, and how many rows a block: more and fewer of few rows.

`row_layouts.py` gives a row as few threads as can hold it in registers, and a block
eight rows. Where there are many rows that is best: no barrier, and a GPU is busy. Of
few rows, as of a norm in front of the next token of a text, most of it waits: more
threads load and compute less each, and more blocks are on more SMs. A model of the time
(`tuning/fused/row_model.py`) says what that is worth; of those within 4 % of the best
the one with the fewest threads and the largest blocks is taken. Changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.analysis.rows.row_groups import RowGroup
from alcop_mlir.analysis.rows.row_layouts import (
    BLOCK_THREADS,
    MOST_WARPS,
    RowLayout,
    along,
    most_live,
)
from alcop_mlir.target import WARP_SIZE, Target
from alcop_mlir.tuning.fused.row_model import RowWork, predict

_TIE = 1.04  # of the best time, as of contractions


def spread(group: RowGroup, target: Target) -> RowLayout:
    """The layout of a group, with more threads for each row where that is faster."""
    how, work = group.layout, row_work(group)
    if how.across or not how.is_held or work is None:
        return how
    layouts = _possible(how, work)
    times = [_inside(work, one, target) for one in layouts]
    near = _TIE * min(times)
    return next(one for one, time in zip(layouts, times, strict=True) if time <= near)


def _possible(how: RowLayout, work: RowWork) -> list[RowLayout]:
    """From the fewest threads and the largest blocks on."""
    found = []
    threads = how.threads
    most = min(MOST_WARPS * WARP_SIZE, max(work.columns, threads))
    while threads <= most:
        in_block = BLOCK_THREADS if threads == WARP_SIZE else threads
        while in_block >= threads:
            found.append(along(how.columns, work.live, threads, in_block))
            in_block //= 2
        threads *= 2
    return found


def _inside(work: RowWork, how: RowLayout, target: Target) -> float:
    """Predicted seconds without the launch, which is the same for all layouts."""
    time = predict(work, how.threads, how.in_block, target)
    return time.seconds - time.parts["launch"]


def row_work(group: RowGroup) -> RowWork | None:
    """What a group computes; None where sizes are known at run time only."""
    seed = next(one for one in group.members if one.combine is not None)
    rows = [seed.nest.static_size(loop) for loop in seed.rows]
    columns = group.layout.count
    touched: dict[Any, Operand] = {}
    for member in group.members:
        touched |= {one.value: one for one in member.reads if one.is_memref}
    made = {one.value for member in group.members for one in member.nest.outputs}
    read = [one for value, one in touched.items() if value not in made]
    sizes = [_bytes(one) for one in (*read, *group.stored)]
    if columns is None or None in rows or None in sizes:
        return None
    reductions = sum(1 for one in group.members if one.combine is not None)
    return RowWork(
        math.prod(one or 0 for one in rows),
        columns,
        sum(one or 0 for one in sizes),
        reductions,
        most_live(group.members),
    )


def _bytes(operand: Operand) -> int | None:
    """Of a memref; None where its extents are known at run time only."""
    kind = operand.value.type
    if not kind.has_static_shape:
        return None
    return math.prod(kind.shape) * element_bytes(kind)
