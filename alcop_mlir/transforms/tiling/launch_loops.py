"""Launch each remaining linalg op as a SIMT fallback, one thread per element.

Before:  linalg.generic ... ins(%A : memref<96x64xf32>) outs(%v : memref<64xf32>)
After:   gpu.launch blocks(1, 1, 1) threads(64, 1, 1) {
           %start = memref.load %v[%tx]
           %sum = scf.for %k = 0 to 96 iter_args(%s = %start) { %s + %A[%k, %tx] }
           memref.store %sum, %v[%tx] } {alcop.fallback = "", alcop.kernel = "reduce"}

The threads of a one-dimensional grid compute the elements of the output, the last
dimension fastest, so that neighbouring threads access neighbouring bytes; a block has
256 threads. The loops of a reduction run inside a thread, outer ones first, with the
accumulator in registers; a `linalg.fill` just above becomes the accumulator
initialisation. Where the terms of a reduction are contiguous in memory, and the
elements are not, a warp computes an element by a warp reduction: each lane takes every
32nd term, and shuffles combine the lanes' results in a fixed order.

An element-wise op that keeps elements of its output under a condition stores the others
only; where the condition asks for one index of a loop, no other is looked at:

Before:  linalg.generic ins(%row, %place) outs(%cache : memref<32x64xf16>) {
           yield (linalg.index 0) == %place ? row : cache }
After:   gpu.launch blocks(1, 1, 1) threads(64, 1, 1) {
           scf.if 0 <= %place < 32 { memref.store %row[%tx], %cache[%place, %tx] } }

A fill, a `memref.copy` and an `scf.parallel` become kernels too. Sizes may be known at
run time only: where they could contradict each other, the host asserts that no memref
is too small. No kernel is launched over an empty iteration space.

Parallel iterations are taken to be independent, and an argument that is written not to
overlap another: the launcher refuses overlapping ones. Unsupported ops are left
unchanged, with a remark that says why.

Upstream's passes are not used. convert-linalg-to-parallel-loops makes a reduction loop
the outermost one where the op has it there, and keeps accumulators in memory;
convert-parallel-loops-to-gpu runs one thread per block unless loops are tiled, and the
bounds that tiling makes are not sizes that can be read back from a launch.

Runs after alcop-tile-to-blocks, which takes the contractions. Reads `alcop.reason`.
Writes `alcop.kernel`, which the kernel is named after, and `alcop.fallback`: why the op
is no contraction, "" where it never could be one; alcop-outline-kernels erases both.
Writes `alcop.reason` on ops that are left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import host_blocks, walk
from alcop_mlir.analysis.linalg import kept_elements, loop_nests
from alcop_mlir.analysis.linalg.accumulator_init import fill_before
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.rows.warp_reductions import NEUTRAL, combining_op
from alcop_mlir.bindings import arith, ir, memref
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tiling.nest_elements import (
    SomeElements,
    combined,
    combined_by_warp,
    element_of,
    indices_of,
    loop_sizes,
)
from alcop_mlir.transforms.tiling.size_checks import assert_sizes
from alcop_mlir.transforms.tiling.thread_points import launch_over


@frozen
class LaunchLoops(Pass):
    name = "alcop-launch-loops"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        work = [
            answer
            for block in host_blocks(op)
            for inner in block.operations
            if (answer := _work(inner.operation)) is not None
        ]
        taken = [fill for one in work if isinstance(one, _Work) for fill in one.fills]
        for one in work:
            if isinstance(one, Rejected):
                alcop.give_reason(one.op, one.reason)
                reason = f"'{one.op.name}' is left unchanged: {one.reason}"
                diagnostics.remark(one.op, reason)
            elif one.op not in taken:
                with one.op.location, ir.InsertionPoint(one.op):
                    one.launch()
        for one in work:
            if isinstance(one, _Work):
                one.op.erase()


@frozen
class _Work:
    """An op to replace by a launch, and the fills above it that become part of it."""

    op: Any
    launch: Callable[[], None]
    fills: tuple[Any, ...] = ()


def _work(op: ir.Operation) -> _Work | Rejected | None:
    """How `op` is launched, or why it cannot be; None if another pass handles it."""
    if op.name == "scf.parallel":
        reason = _unsupported_parallel(op)
        return reason or _Work(op, partial(_launch_parallel, op))
    if not op.name.startswith("linalg.") and op.name != "memref.copy":
        return None
    nest = loop_nests.read(op)
    if isinstance(nest, Rejected):
        return nest
    fills = [
        fill_before(op, out.value) if nest.reductions else None for out in nest.outputs
    ]
    found = tuple(fill for fill in fills if fill is not None)
    return _Work(op, partial(_launch_nest, nest, fills), found)


def _launch_nest(nest: Nest, fills: list[ir.Operation | None]) -> None:
    sizes = loop_sizes(nest)
    assert_sizes(nest, sizes)
    code = _NestCode(nest, fills, sizes)
    points = [sizes[loop] for loop in nest.points]
    element: Callable[[list[Any]], None] = code.element
    combine, kept = combining_op(nest), kept_elements.read(nest)
    if kept is not None:
        changes = SomeElements(nest, kept, sizes)
        points, element = changes.points, changes.element
    elif combine is not None:
        points.append(WARP_SIZE)
        element = partial(code.element_by_warp, combine)
    launch_over(points, _kernel_name(nest), element, alcop.reason(nest.op))


@frozen
class _NestCode:
    """Builds what a thread does of a nest; `index_of` are the loops' indices there.

    fills: of each output, the op that becomes the accumulator initialisation
    sizes: of all loops
    """

    nest: Nest
    fills: list[Any]
    sizes: list[Any]

    def element(self, point: list[ir.Value]) -> None:
        """Compute the elements of the outputs at a point."""
        index_of = dict(zip(self.nest.points, point, strict=True))
        initial = self._initial(index_of)
        results = self._run(self.nest.reductions, index_of, initial)
        self._store(results, index_of)

    def element_by_warp(self, combine: ir.Operation, point: list[ir.Value]) -> None:
        """A warp for each element: each lane takes every 32nd term of the reduction."""
        *where, lane = point
        index_of = dict(zip(self.nest.points, where, strict=True))
        neutral = arith.constant(combine.results[0].type, NEUTRAL[combine.name])
        every = (lane, WARP_SIZE)
        (total,) = self._run(self.nest.reductions, index_of, [neutral], every)
        total = combined_by_warp(combine, total)

        def store() -> None:
            (initial,) = self._initial(index_of)
            self._store([combined(combine, initial, total)], index_of)

        is_first = arith.cmpi(arith.CmpIPredicate.eq, lane, build.index(0))
        build.branch(is_first, store)

    def _initial(self, index_of: dict[int, ir.Value]) -> list[Any]:
        """The values that elements of the outputs start from; None where unused."""
        return [
            fill.operands[0]
            if fill is not None
            else element_of(output, index_of)
            if self.nest.reductions or (output.argument is not None and output.is_read)
            else None
            for output, fill in zip(self.nest.outputs, self.fills, strict=True)
        ]

    def _store(self, values: list[ir.Value], index_of: dict[int, ir.Value]) -> None:
        for output, value in zip(self.nest.outputs, values, strict=True):
            memref.store(value, output.value, indices_of(output, index_of))

    def _run(
        self,
        inner: tuple[int, ...],
        index_of: dict[int, ir.Value],
        accumulators: list[ir.Value],
        strided: tuple[Any, int] = (0, 1),
    ) -> list[Any]:
        """Accumulators of the outputs after the loops `inner`.

        accumulators: what the loops start from
        strided:      first iteration of the innermost loop, and the step to the next
        """
        if not inner:
            return self._body(index_of, accumulators)

        def iteration(number: ir.Value, carried: list[ir.Value]) -> list[Any]:
            return self._run(inner[1:], index_of | {inner[0]: number}, carried, strided)

        first, step = strided if len(inner) == 1 else (0, 1)
        bounds = (first, self.sizes[inner[0]], step)
        return list(build.for_loop(bounds, accumulators, iteration).results)

    def _body(
        self, index_of: dict[int, ir.Value], accumulators: list[ir.Value]
    ) -> list[Any]:
        """Copy the op's body for one iteration; what it yields. A copy has no body."""
        if self.nest.block is None:
            return [element_of(operand, index_of) for operand in self.nest.inputs]
        arguments = [output.argument for output in self.nest.outputs]
        mapping = dict(zip(arguments, accumulators, strict=True))
        for operand in self.nest.inputs:
            if operand.is_read:
                mapping[operand.argument] = element_of(operand, index_of)
        for op in walk(self.nest.op, "linalg.index"):
            mapping[op.results[0]] = index_of[op.attributes["dim"].value]
        return edit.inline(self.nest.block, mapping)


def _kernel_name(nest: Nest) -> str:
    if nest.is_generic:
        return "reduce" if nest.reductions else "map"
    return nest.op.name.rpartition(".")[2]


def _unsupported_parallel(op: ir.Operation) -> Rejected | None:
    """Why the `scf.parallel` is unsupported; None where it is supported."""
    if len(op.results):
        return Rejected(op, "reduces to values, expected stores to memrefs")
    lower, _, step = _bounds(op)
    if any(constant(value) != 0 for value in lower) or any(
        constant(value) != 1 for value in step
    ):
        return Rejected(op, "has other bounds, expected loops from 0 by steps of 1")
    return None


def _bounds(op: ir.Operation) -> tuple[list[Any], list[Any], list[Any]]:
    """Lower bounds, upper bounds, steps."""
    operands, rank = list(op.operands), len(op.regions[0].blocks[0].arguments)
    return operands[:rank], operands[rank : 2 * rank], operands[2 * rank :]


def _launch_parallel(op: ir.Operation) -> None:
    (block,) = op.regions[0].blocks
    _, upper, _ = _bounds(op)

    def element(point: list[ir.Value]) -> None:
        edit.inline(block, dict(zip(block.arguments, point, strict=True)))

    known = [constant(value) for value in upper]
    sizes = [u if k is None else k for u, k in zip(upper, known, strict=True)]
    launch_over(sizes, "loops", element)
