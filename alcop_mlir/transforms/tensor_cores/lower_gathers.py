"""Lower gathers to plain loops: what they mean, for flows that do not distribute them.

Before:  "alcop.gather"(%source, %target, %rows, %valid, %width)
After:   scf.for %i = %thread to 64 step %threads {
           %row = vector.extract %rows[%i]
           %is_valid = vector.extract %valid[%i]
           scf.for %j = %c0 to 32 step %c1 {
             %inside = %is_valid and %j < %width
             %v = scf.if %inside { memref.load %source[%row + %j] } else { 0 }
             memref.store %v, %target[%i, %j]
           }
         }

The threads of a block share the rows; on the host one loop has them all. No vector of
rows is too unusual, and no alignment is needed. An async_gather lands where it stands,
which is before any wait.

alcop-compile does not need it, as alcop-distribute-copies makes faster code. Reads,
writes and erases no attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.kernels import ThreadBlock, enclosing
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.distribution import GATHERS, row_width
from alcop_mlir.bindings import gpu, ir, memref, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_AXES = (gpu.Dimension.z, gpu.Dimension.y, gpu.Dimension.x)


@frozen
class LowerGathers(Pass):
    name = "alcop-lower-gathers"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for gather in walk(op, *GATHERS):
            with gather.location, ir.InsertionPoint(gather):
                _lower(gather)
            gather.erase()


def _lower(gather: ir.Operation) -> None:
    _, target, rows, valid, *_ = gather.operands
    first, step = _share(enclosing(gather))

    def copy_row(number: ir.Value, _: list[ir.Value]) -> None:
        row, is_valid = (
            vector.extract(one, [number], [ir.ShapedType.get_dynamic_size()])
            for one in (rows, valid)
        )
        build.for_loop(
            (0, target.type.shape[1], 1),
            [],
            lambda column, _: _copy_element(gather, (number, column), row, is_valid),
        )

    build.for_loop((first, target.type.shape[0], step), [], copy_row)


def _share(block: ThreadBlock | None) -> tuple[Any, Any]:
    """The first row of a thread, and the distance to its next one."""
    thread, threads = 0, 1
    if block is None:
        return thread, threads
    for axis in _AXES:
        size = gpu.block_dim(axis)
        thread = build.add(build.mul(size, thread), gpu.thread_id(axis))
        threads = build.mul(size, threads)
    return thread, threads


def _copy_element(
    gather: ir.Operation,
    at: tuple[ir.Value, ir.Value],
    row: ir.Value,
    is_valid: ir.Value,
) -> None:
    """Store an element of the tile: of the source, or zero."""
    source, target, *_ = gather.operands
    column, width = at[1], row_width(gather)
    if width is not None:
        is_valid = build.both(is_valid, build.less(column, width))
    (element,) = build.branch(
        is_valid,
        lambda: [build.load(source, [build.add(row, column)])],
        lambda: [build.zero(source.type.element_type)],
        [source.type.element_type],
    )
    memref.store(element, target, at)
