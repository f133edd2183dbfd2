"""Builders of what parts of a chain's columns leave, and of the op that merges these.

Of each row, a part leaves its accumulators, of weights times values. Where rows are
reduced, it leaves the maximum that weights are relative to, and their total, too. A
part that has no column for a row leaves zeros and the least maximum. The merge is one
op, in which parts are corrected to the maximum of all as a tile is to that of the next
one, so that rows of -inf and NaN are as without parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import arith, ir, linalg, memref, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.chains.row_powers import row_powers, splat
from alcop_mlir.transforms.chains.tiled_chain import TiledChain
from alcop_mlir.transforms.linalg.matrices import view

_OF_ROWS = ("maximum", "total")


@frozen
class Partials:
    """What parts leave, by name: a buffer of f32 with a dimension of parts first.

    Then one for each loop of the batch, one of rows, and of accumulators one of their
    columns. Of chains that reduce no rows there are accumulators alone.
    """

    buffers: Mapping[str, Any]

    def write(
        self, name: str, made: ir.Value, at: Sequence[Any], row: ir.Value, inside: bool
    ) -> None:
        """Write a warp's rows, of the part and batch `at`, from a row on.

        inside: whether all of the rows exist
        """
        buffer = self.buffers[name]
        rank = buffer.type.rank - len(at)
        zero = build.index(0)
        shape = [1] * len(at) + list(buffer.type.shape)[len(at) :]
        memory = view(buffer, [*at, *[zero] * rank], shape, list(range(len(at))))
        where, bounds = [row, zero][:rank], [inside, True][:rank]
        by = build.loop_map(rank, range(rank))
        vector.transfer_write(None, made, memory, where, by, bounds)


def allocated(chain: TiledChain) -> Partials:
    """Buffers for all parts of a chain."""
    rows = [chain.tiles.parts, *chain.batch_sizes, chain.sizes.m]
    shapes = {"accumulators": [*rows, chain.d]}
    if chain.scale is not None:
        shapes |= dict.fromkeys(_OF_ROWS, rows)
    wide = ir.F32Type.get()
    made = {
        name: build.alloc(ir.MemRefType.get(shape, wide))
        for name, shape in shapes.items()
    }
    return Partials(made)


def merge(
    chain: TiledChain, partials: Partials, views: Mapping[ir.Value, ir.Value]
) -> None:
    """Compute the chain's result of what the parts have left.

    views: of the result and what else it reads, made in front of the region
    """
    step, parts = chain.steps["result"], chain.tiles.parts
    loops = chain.batch + 2
    inputs: list[Any] = []
    maps: list[Any] = []
    for buffer in partials.buffers.values():
        inputs += [_part(buffer, number) for number in range(parts)]
        maps += [build.loop_map(loops, range(buffer.type.rank - 1))] * parts
    others = [
        one
        for one, role in zip(step.view.inputs, step.sources, strict=True)
        if not role
    ]
    for operand in (*others, step.output):
        value = views.get(operand.value, operand.value)
        inputs.append(_without_single(value, operand))
        kept = [loop for loop in operand.loops if loop is not None]
        maps.append(build.loop_map(loops, kept))
    op = build.generic(inputs[:-1], inputs[-1], maps)
    (block,) = op.regions[0].blocks
    *arguments, old = block.arguments
    left = iter(arguments)
    with ir.InsertionPoint(block):
        split = {name: [next(left) for _ in range(parts)] for name in partials.buffers}
        known = _merged(chain, split)
        known = {
            operand.argument: known[role] if role else next(left)
            for operand, role in zip(step.view.inputs, step.sources, strict=True)
        }
        known[step.output.argument] = old
        _copy_constants(step.view.block, known)
        linalg.YieldOp(edit.inline(step.view.block, known))


def _part(buffer: ir.Value, number: int) -> Any:
    """What one part has left."""
    shape = list(buffer.type.shape)
    strides, _ = buffer.type.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(strides[0] * number, strides[1:])
    kind = build.memref_like(buffer.type, shape[1:], layout=layout if number else None)
    return _subview(buffer, [number, *[0] * (len(shape) - 1)], [1, *shape[1:]], kind)


def _without_single(buffer: ir.Value, operand: Operand) -> Any:
    """A view without the dimensions of one element, which no loop indexes."""
    kept = [number for number, loop in enumerate(operand.loops) if loop is not None]
    shape = list(buffer.type.shape)
    if len(kept) == len(shape):
        return buffer
    strides, offset = buffer.type.get_strides_and_offset()
    layout = ir.StridedLayoutAttr.get(offset, [strides[number] for number in kept])
    left = [shape[number] for number in kept]
    kind = build.memref_like(buffer.type, left, layout=layout)
    return _subview(buffer, [0] * len(shape), shape, kind)


def _subview(
    buffer: ir.Value, first: Sequence[int], shape: Sequence[int], kind: ir.Type
) -> Any:
    steps = [1] * len(shape)
    return memref.subview(buffer, first, shape, steps, result_type=kind)


def _copy_constants(block: ir.Block, known: dict[ir.Value, ir.Value]) -> None:
    """Copy those that a body takes from around it: its region is erased."""
    for op in block.operations:
        for operand in op.operands:
            constant = made_by(operand, "arith.constant")
            if constant is not None and constant.operation.block != block:
                edit.clone(constant.operation, known)


def _merged(
    chain: TiledChain, split: Mapping[str, Sequence[ir.Value]]
) -> dict[str, Any]:
    """What the row has of all parts, by the role that makes it, in one element."""
    accumulators = split["accumulators"]
    if chain.scale is None:
        return {"contracted": reduce(arith.addf, accumulators)}

    def larger(one: ir.Value, other: ir.Value) -> Any:
        return ir.Operation.create(chain.combine, [one.type], [one, other]).result

    maxima, totals = (split[name] for name in _OF_ROWS)
    maximum = reduce(larger, maxima)
    powers = row_powers(chain.scale, maximum)
    less = [powers.corrected(row_powers(chain.scale, one).offset) for one in maxima]
    total, contracted = (
        reduce(arith.addf, map(arith.mulf, parts, less))
        for parts in (totals, accumulators)
    )
    if chain.start == -math.inf:
        maximum = hidden(chain, maximum, total)
        total, contracted = spoiled(chain, total, contracted, lambda one: one)
    return {"contracted": contracted, "maximum": maximum, "total": total}


def hidden(chain: TiledChain, maximum: ir.Value, total: ir.Value) -> Any:
    """The maximum of a row, which is -inf where all its weights are 0.

    Rows start from the least float, see `row_powers.py`.
    """
    if "maximum" not in chain.steps["result"].sources:
        return maximum
    nothing = arith.cmpf(arith.CmpFPredicate.OEQ, total, splat(total.type, 0.0))
    return arith.select(nothing, splat(maximum.type, -math.inf), maximum)


def spoiled(
    chain: TiledChain, total: ir.Value, contracted: ir.Value, along: Any
) -> tuple[Any, Any]:
    """Total and contracted of a row, of which one is NaN for a row of -inf.

    along: gives rows' numbers the columns of contracted
    """
    # 1, or NaN, as all weights are 0.
    one = arith.divf(total, total)
    if "total" in chain.steps:
        return arith.mulf(total, one), contracted
    return total, arith.mulf(contracted, along(one))
