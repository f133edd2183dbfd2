"""Keep unrolled iterations apart where totals of one would be added up in the next.

Before:  scf.for %k = %c0 to %n step %c128 iter_args(%acc, %total, ...) {
           nvgpu.device_async_wait ; gpu.barrier ; ... nvgpu.mma.sync ; ... arith.addf
           nvgpu.device_async_wait ; gpu.barrier ; ... }
After:   scf.for %k = %c0 to %n step %c128 iter_args(%acc, %total, ...) {
           nvgpu.device_async_wait ; gpu.barrier ; ... nvgpu.mma.sync ; ... arith.addf
           scf.if opaque(%k) >= %n { llvm.intr.trap }
           nvgpu.device_async_wait ; gpu.barrier ; ... }

A total of what an iteration computes beside its matrices, as of the weights of
attention, is needed at the end of the loop only. ptxas orders the ops of a block
without branches as it likes, and no barrier orders arithmetic: it adds the elements of
one iteration up beside the matrices of the next one, holds them in registers for so
long, and spills. It moves nothing across a branch. The one made here is never taken, as
%k < %n in each iteration; `opaque` hides that from LLVM. It costs two or three
instructions for an iteration, and saves more moves than that.

A loop is changed if it multiplies matrices and carries a total that it adds up in f32.
Parts begin where tiles do: where it waits for asynchronous copies after the first
matrices. Totals that are used behind a branch pass through a move of inline assembly in
front of it, which ptxas removes: LLVM would compute them where they are used. Other
loops are left unchanged, and so are tiles whose fragments are loaded before they begin:
ptxas then needs what lies on both sides to find registers.

Runs after alcop-unroll-steady-state and alcop-outline-kernels, when nothing orders or
compares iterations any more, and before alcop-lower-to-nvvm. Reads and writes no
attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    bounds,
    constant,
    defining_op,
    loops_in,
)
from alcop_mlir.analysis.ir.loops import terminator as last_op
from alcop_mlir.bindings import arith, ir, llvm
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_MATRIX = "nvgpu.mma.sync"
_WAIT = "nvgpu.device_async_wait"
_SUM = "arith.addf"
_LOADS = ("nvgpu.ldmatrix", "vector.load", "memref.load")
_VECTORS_OF = ("vector.from_elements", "vector.insert", "vector.shape_cast")
_MOST_OF_WORD = 2**31 - 1


@dataclass(frozen=True)
class SeparateIterations(Pass):
    name = "alcop-separate-iterations"

    def run(self, op: ir.Operation) -> None:
        for loop in loops_in(op):
            if any(map(_is_total, last_op(loop).operands)):
                for wait in _begins(loop):
                    if not _is_loaded_early(loop, wait):
                        with wait.location, ir.InsertionPoint(wait):
                            _part(loop, wait)


def _is_total(value: ir.Value) -> bool:
    """Whether a value is a sum in f32, or a vector with elements that are."""
    op = defining_op(value)
    if op is None or op.name not in (_SUM, *_VECTORS_OF):
        return False
    if op.name == _SUM:
        return isinstance(getattr(value.type, "element_type", value.type), ir.F32Type)
    return any(map(_is_total, op.operands))


def _begins(loop: ir.Operation) -> list[Any]:
    """The waits of the loop's own block at which the matrices before them end."""
    found, has_multiplied = [], False
    for op in (one.operation for one in body(loop).operations):
        if op.name == _MATRIX:
            has_multiplied = True
        elif op.name == _WAIT and has_multiplied:
            found.append(op)
            has_multiplied = False
    return found


def _is_loaded_early(loop: ir.Operation, wait: ir.Operation) -> bool:
    """Whether fragments that are loaded before `wait` are used behind it."""
    return any(
        _is_later(use.owner, wait)
        for op in _before(loop, wait)
        if op.name in _LOADS
        for result in op.results
        for use in result.uses
    )


def _before(loop: ir.Operation, wait: ir.Operation) -> list[Any]:
    ops = (one.operation for one in body(loop).operations)
    return list(takewhile(lambda op: op != wait, ops))


def _part(loop: ir.Operation, wait: ir.Operation) -> None:
    """A branch at the insertion point, before `wait`, that is never taken."""
    for total in _totals_at(loop, wait):
        later = [use for use in total.uses if _is_later(use.owner, wait)]
        made = build.each_element(total, _moved)
        for use in later:
            use.owner.operands[use.operand_number] = made
    counter, end = body(loop).arguments[0], bounds(loop)[1]
    most = constant(end)
    if most is not None and 0 <= most <= _MOST_OF_WORD:  # one comparison for two
        counter, end = arith.index_cast(build.integer(32), counter), build.i32(most)
        moved = build.opaque_word(counter)
    else:
        moved = build.opaque(counter)
    build.branch(arith.cmpi(arith.CmpIPredicate.sge, moved, end), _stop)


def _totals_at(loop: ir.Operation, wait: ir.Operation) -> list[Any]:
    """The totals that are made before `wait` and used behind it."""
    return [
        value
        for op in _before(loop, wait)
        for value in op.results
        if _is_total(value) and any(_is_later(use.owner, wait) for use in value.uses)
    ]


def _is_later(user: ir.Operation, wait: ir.Operation) -> bool:
    here = ancestor_in(user, wait.block)
    return here is not None and wait.is_before_in_block(here)


def _moved(number: ir.Value) -> Any:
    """`number`, which is computed here: LLVM would do so in the block that reads it."""
    move = "mov.b32 $0, $1;"  # with an effect, so that it stays where it is
    return llvm.inline_asm(number.type, [number], move, "=f,f", has_side_effects=True)


def _stop() -> None:
    llvm.intr_trap()
