"""Element-wise ops that read several columns of a contraction for each of their own.

    %y = contraction of %x and a weight                     // tensor<MxNxf16>
    %l, %r = the halves of each of some blocks of columns of %y, as of a head
    %z = element-wise op on %l, %r             // rows, blocks, parts, columns

Rotary embeddings are such a *rotation*: each half of a result is made of both halves of
a head. Where the weight's columns are put in another order once, with the parts of a
block in turn, the rotation can be computed by the contraction's kernel. Columns that no
rotation reads pass through. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.elementwise import is_scalar_code
from alcop_mlir.analysis.linalg.interleaved_columns import GROUP
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.analysis.tensors.concats import is_element_wise
from alcop_mlir.analysis.tensors.linear_indices import (
    VIEWS,
    Linear,
    extents_of,
    indices_in,
    operand_indices,
)
from alcop_mlir.analysis.tensors.side_by_side import same_bodies
from alcop_mlir.analysis.tensors.weights import values_of_weights
from alcop_mlir.bindings import ir

PARTS = (2, 4)  # that warps with 32 or 64 columns have in turn


@dataclass(frozen=True)
class Rotation:
    """An op that reads all parts of blocks of columns.

    reads: which part each input reads of the contraction's columns, by number: that of
           its own iteration for None
    rows:  loops along rows: the dimension of the contraction's output, the step in it
    block, part, column: its other loops; no block where it reads one
    first, blocks: the first block that it reads, and how many
    parts, length: of a block, and columns of a part
    """

    view: LinalgView
    extents: Mapping[int, int]
    reads: Mapping[int, int | None]
    rows: Mapping[int, tuple[int, int]]
    block: int | None
    part: int
    column: int
    first: int
    blocks: int
    parts: int
    length: int

    @property
    def columns(self) -> tuple[int, int]:
        """The first column that it reads, and the one after the last."""
        step = self.parts * self.length
        return self.first * step, (self.first + self.blocks) * step


@dataclass(frozen=True)
class Level:
    """An op on columns of the contraction: that itself, or an element-wise one.

    along:  dimensions of columns of its operands, by the numbers of these
    weights: whether these operands are computed of weights alone
    """

    view: LinalgView
    along: Mapping[int, int]
    weights: bool


@dataclass(frozen=True)
class Pairing:
    """A contraction, the element-wise ops on all of its columns, and rotations.

    columns: what the last of these makes
    passes:  whether there are columns that no rotation reads
    needed:  ops that compute what else the rotations read, in order
    """

    levels: tuple[Level, ...]
    columns: Any
    rotations: tuple[Rotation, ...]
    passes: bool
    needed: tuple[Any, ...]


def find_pairings(function: ir.Operation) -> Iterator[Pairing | Rejected]:
    """Contractions whose columns can be in turn, and rotations that stay kernels."""
    if len(function.regions[0].blocks) != 1:
        return
    weights = values_of_weights(function)
    for op in (one.operation for one in function.regions[0].blocks[0].operations):
        levels = _levels(op, weights)
        if levels:
            columns = levels[-1].view.op.results[0]
            leaves = list(_leaves(columns))
            rotations = [one for one in leaves if isinstance(one, Rotation)]
            if rotations:
                yield _pairing(levels, columns, rotations, leaves)


def _pairing(
    levels: Sequence[Level],
    columns: Any,
    rotations: Sequence[Rotation],
    leaves: Sequence[Any],
) -> Pairing | Rejected:
    others = [one for one in leaves if not isinstance(one, Rotation)]
    first = rotations[0]
    size, step = columns.type.shape[-1], first.parts * first.length
    read = sum(one.blocks for one in rotations) * step
    inputs = enumerate(first.view.inputs)
    values = [one.value for number, one in inputs if number not in first.reads]
    needed, _ = backward_slice(values, first.view.op.block)
    found = Pairing(
        tuple(levels), columns, tuple(rotations), read < size, tuple(needed)
    )
    why_not = _why_not(found, others)
    return found if why_not is None else Rejected(first.view.op, why_not)


def _why_not(found: Pairing, others: Sequence[Any]) -> str | None:
    first, *rest = found.rotations
    size, step = found.columns.type.shape[-1], first.parts * first.length
    if not all(one.weights for one in found.levels):
        return (
            "what has its columns is no weight ('alcop.weight'), so that another order "
            "would cost a copy in each call"
        )
    if first.parts not in PARTS or first.length % GROUP or size % step:
        return (
            f"it reads {first.parts} parts of {first.length} columns, expected 2 or 4 "
            f"of a multiple of {GROUP}, in blocks of {size} columns"
        )
    if found.columns.owner.operation in found.needed:
        return "it reads what is computed of the columns, too"
    if not all(_alike(first, one) for one in rest):
        return "other columns of the contraction are computed otherwise"
    if found.passes or rest:
        if first.view.op.results[0].type.element_type != (
            found.columns.type.element_type
        ):
            return "other columns of the contraction have another type of elements"
        if _depends_on_block(first):
            return "it computes with numbers of blocks, and there are others"
    ranges = [one.columns for one in found.rotations]
    taken = sorted(ranges)
    overlap = any(a[1] > b[0] for a, b in pairwise(taken))
    if overlap or None in others:
        return "what it reads is read otherwise, too"
    if any(a < end and begin < b for a, b in others for begin, end in ranges):
        return "what it reads is read otherwise, too"
    return None


def _alike(one: Rotation, other: Rotation) -> bool:
    """Whether two compute the same of their blocks, but for how many these are.

    There is no loop over blocks where there is one, as of a single head of keys.
    """
    a, b = (
        replace(this, view=one.view, extents={}, block=None, first=0, blocks=0)
        for this in (one, other)
    )
    inputs = zip(one.view.inputs, other.view.inputs, strict=False)
    return (
        a == b
        and same_bodies(one.view, other.view)
        and all(
            number in one.reads or here.value == there.value
            for number, (here, there) in enumerate(inputs)
        )
    )


def _depends_on_block(one: Rotation) -> bool:
    return any(
        one.block in index.loops
        for number, operand in enumerate(one.view.inputs)
        if number not in one.reads
        for index in operand.indices
    )


# -- the contraction, and what follows it ----------------------------------------------


def _levels(op: ir.Operation, weights: Mapping[Any, Any]) -> list[Level]:
    """A contraction, and element-wise ops on all of its columns; [] for another op."""
    view = linalg_view(op)
    if view is None or view.block is None or len(view.outputs) != 1:
        return []
    if len(view.inputs) != 2 or len(view.reductions) != 1 or not len(op.results):
        return []
    letters = loop_letters(view.maps)
    if letters is None or not letters[2].endswith("n") or extents_of(view) is None:
        return []
    along = {
        number: letters[number].index("n")
        for number, one in enumerate(view.inputs)
        if "n" in letters[number]
    }
    levels = [Level(view, along, _all_in(weights, view, along))]
    while (level := _next(levels[-1].view.op.results[0], weights)) is not None:
        levels.append(level)
    return levels


def _next(value: Any, weights: Mapping[Any, Any]) -> Level | None:
    """The element-wise op that alone reads a value, element by element."""
    users = {use.owner.operation for use in value.uses}
    if len(users) != 1:
        return None
    view = linalg_view(users.pop())
    if view is None or view.block is None or not is_element_wise(view):
        return None
    columns = view.rank - 1
    if not is_scalar_code(view.block):
        return None
    along: dict[int, int] = {}
    for number, operand in enumerate(view.inputs):
        if operand.value == value:
            if operand.loops != tuple(range(view.rank)):
                return None
        elif any(columns in index.loops for index in operand.indices):
            if columns not in operand.loops:
                return None
            along[number] = operand.loops.index(columns)
    return Level(view, along, _all_in(weights, view, along))


def _all_in(
    weights: Mapping[Any, Any], view: LinalgView, numbers: Mapping[int, int]
) -> bool:
    return all(view.inputs[number].value in weights for number in numbers)


# -- who reads columns -----------------------------------------------------------------


def _leaves(columns: Any) -> Iterator[Any]:
    """Rotations; of other ops that read columns, through views, the first and last.

    None for what is not known to read some columns alone.
    """
    seen: set[Any] = set()
    found = [columns]
    while found:
        value = found.pop()
        for use in value.uses:
            op = use.owner.operation
            if op.name in VIEWS:
                found.append(op.results[0])
            elif op not in seen:
                view = linalg_view(op)
                rotation = None if view is None else _rotation(view, columns)
                if rotation is not None:
                    seen.add(op)
                    yield rotation
                else:
                    yield _span(value, columns)


def _span(value: Any, columns: Any) -> tuple[int, int] | None:
    """The columns that a value has, as if all of it were read."""
    shape = value.type.shape
    extents = dict(enumerate(shape))
    at = tuple(
        Linear(0, ((number, 1),) if size > 1 else ())
        for number, size in enumerate(shape)
    )
    indices = indices_in(value, at, columns, extents)
    if indices is None:
        return None
    return indices[-1].offset, indices[-1].most(extents) + 1


def _rotation(view: LinalgView, columns: Any) -> Rotation | None:
    """The op, where it reads several parts of blocks of columns."""
    extents = extents_of(view)
    if extents is None or view.block is None or not is_element_wise(view):
        return None
    if not is_scalar_code(view.block, with_index=True):
        return None
    found: dict[int, tuple[Linear, ...]] = {}
    for number, operand in enumerate(view.inputs):
        indices = operand_indices(operand, extents) if operand.is_tensor else None
        at = indices and indices_in(operand.value, indices, columns, extents)
        if at:
            found[number] = at
    if len({at[:-1] for at in found.values()}) != 1:
        return None
    rows = _rows(next(iter(found.values()))[:-1], columns, extents)
    lasts = {number: at[-1] for number, at in found.items()}
    return None if rows is None else _with_parts(view, extents, rows, lasts)


def _rows(
    indices: Sequence[Linear], columns: Any, extents: Mapping[int, int]
) -> dict[int, tuple[int, int]] | None:
    """The loops along rows, all of which they go over, each with its step."""
    found: dict[int, tuple[int, int]] = {}
    for dimension, index in enumerate(indices):
        step = 1
        for loop, coefficient in sorted(index.terms, key=lambda one: one[1]):
            if coefficient != step or loop in found:
                return None
            found[loop] = dimension, step
            step *= extents[loop]
        if index.offset or step != columns.type.shape[dimension]:
            return None
    return found


def _with_parts(
    view: LinalgView,
    extents: Mapping[int, int],
    rows: Mapping[int, tuple[int, int]],
    lasts: Mapping[int, Linear],
) -> Rotation | None:
    """The rotation that reads these columns; None where they are no parts of blocks."""
    steps = [dict(one.terms) for one in lasts.values()]
    inner = {loop for one in steps for loop, step in one.items() if step == 1}
    if len(inner) != 1 or any(1 not in one.values() for one in steps):
        return None
    (column,) = inner
    length = extents[column]
    others = {loop for loop in extents if extents[loop] > 1} - {*rows, column}
    blocks = {
        loop for loop in others if all(one.get(loop, 0) > length for one in steps)
    }
    parts = others - blocks
    if len(blocks) > 1 or len(parts) != 1:
        return None
    (part,), block = parts, next(iter(blocks), None)
    step = extents[part] * length
    reads: dict[int, int | None] = {}
    firsts: set[int] = set()
    for number, one in lasts.items():
        terms = dict(one.terms)
        own = terms.pop(part, None)
        wanted = {column: 1} | ({} if block is None else {block: step})
        if terms != wanted or own not in (None, length) or one.offset % length:
            return None
        if own is not None and one.offset % step:
            return None
        reads[number] = None if own else one.offset % step // length
        firsts.add(one.offset // step)
    if len(firsts) > 1 or len({one for one in reads.values() if one is not None}) < 2:
        return None
    if any(
        one.attributes["dim"].value != part for one in walk(view.op, "linalg.index")
    ):
        return None
    return Rotation(
        view, extents, reads, rows, block, part, column, firsts.pop(),
        1 if block is None else extents[block], extents[part], length,
    )  # fmt: skip
