"""Element-wise ops that read several columns of a contraction for each of their own.

    %y = contraction of %x and a weight                     // tensor<MxNxf16>
    %l, %r = the halves of each of some blocks of columns of %y, as of a head
    %z = element-wise op on %l, %r             // rows, blocks, parts, columns

Rotary embeddings are such a *rotation*: each half of a result is made of both halves of
a head, or each element of both elements of a pair. Where the weight's columns are put
in another order once, with the parts of a block in turn, the rotation can be computed
by the contraction's kernel. Columns that no rotation reads pass through. Changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.elementwise import is_scalar_code
from alcop_mlir.analysis.linalg.interleaved_columns import GROUP
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.analysis.tensors.concats import is_element_wise
from alcop_mlir.analysis.tensors.contracted_orders import are_contracted
from alcop_mlir.analysis.tensors.linear_indices import (
    VIEWS,
    Linear,
    extents_of,
    indices_in,
    operand_indices,
)
from alcop_mlir.analysis.tensors.part_layouts import PartLayout
from alcop_mlir.analysis.tensors.side_by_side import same_bodies
from alcop_mlir.analysis.tensors.weights import values_of_weights
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

PARTS = (2, 4)  # that warps with 32 or 64 columns have in turn


@frozen
class Rotation:
    """An op that reads all parts of blocks of columns.

    reads: which part each input reads of the contraction's columns, by number: that of
           its own iteration for None
    rows:  loops along rows: the dimension of the contraction's output, the step in it
    block, part, column: its other loops; no block where it reads one
    begin, blocks: the first column that it reads, and how many blocks
    pitch: columns from one of these blocks to the next
    parts, length: of a block, and columns of a part
    together: whether the columns of all parts with one number are neighbours
    """

    view: LinalgView
    extents: Mapping[int, int]
    reads: Mapping[int, int | None]
    rows: Mapping[int, tuple[int, int]]
    block: int | None
    part: int
    column: int
    begin: int
    blocks: int
    pitch: int
    parts: int
    length: int
    together: bool

    @property
    def step(self) -> int:
        """Columns of a block."""
        return self.parts * self.length

    @property
    def numbers(self) -> range:
        """Which it reads of blocks of as many columns, where it reads whole ones."""
        first, pitch = self.begin // self.step, self.pitch // self.step
        return range(first, first + self.blocks * pitch, pitch)


@frozen
class Level:
    """An op on columns of the contraction: that itself, or an element-wise one.

    along:  dimensions of columns of its operands, by the numbers of these
    weights: whether these operands are computed of weights alone
    """

    view: LinalgView
    along: Mapping[int, int]
    weights: bool


@frozen
class Pairing:
    """A contraction, the element-wise ops on all of its columns, and rotations.

    columns: what the last of these makes
    passes:  whether there are columns that no rotation reads
    needed:  ops that compute what else the rotations read, in order
    is_free: whether results may have the columns of a block in any order, that of all
    """

    levels: tuple[Level, ...]
    columns: Any
    rotations: tuple[Rotation, ...]
    passes: bool
    needed: tuple[Any, ...]
    is_free: bool = False


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
    leaves: Sequence[Rotation | _Read],
) -> Pairing | Rejected:
    others = [one for one in leaves if not isinstance(one, Rotation)]
    first = rotations[0]
    size = columns.type.shape[-1]
    read = sum(one.blocks for one in rotations) * first.step
    inputs = enumerate(first.view.inputs)
    values = [one.value for number, one in inputs if number not in first.reads]
    needed, _ = backward_slice(values, first.view.op.block)
    is_free = first.together and are_contracted(
        {one.view.op.results[0]: (one.column, one.part) for one in rotations}
    )
    found = Pairing(
        tuple(levels), columns, tuple(rotations), read < size, tuple(needed), is_free
    )
    why_not = _why_not(found, others)
    return found if why_not is None else Rejected(first.view.op, why_not)


def _why_not(found: Pairing, others: Sequence[_Read]) -> str | None:
    first, *rest = found.rotations
    size, step = found.columns.type.shape[-1], first.step
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
    misplaced = next(
        (one for one in found.rotations if not _has_blocks(one, size)), None
    )
    if misplaced is not None:
        return (
            f"it reads blocks of {step} columns from {misplaced.begin} on, every "
            f"{misplaced.pitch}, expected multiples of {step}"
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
    blocks = [number for one in found.rotations for number in one.numbers]
    taken = {*blocks}
    read = {column // step for one in others for column in one.columns}
    if len(taken) < len(blocks) or taken & read:
        return "what it reads is read otherwise, too"
    return None


def _has_blocks(one: Rotation, size: int) -> bool:
    """Whether it reads whole ones, of all those that there are of its pitch."""
    base = one.begin - one.begin % one.pitch
    is_inside = base + one.blocks * one.pitch <= size
    return is_inside and not one.begin % one.step and not one.pitch % one.step


def _alike(one: Rotation, other: Rotation) -> bool:
    """Whether two compute the same of their blocks, but for how many these are.

    There is no loop over blocks where there is one, as of a single head of keys.
    """
    a, b = (
        replace(this, view=one.view, extents={}, block=None, begin=0, blocks=0, pitch=0)
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


def _leaves(columns: Any) -> Iterator[Rotation | _Read]:
    """Rotations, and what is read of the columns by other ops, through views."""
    seen: set[Any] = set()
    found = [(columns, _Read.of(columns, columns))]
    while found:
        value, read = found.pop()
        if read is None:
            continue
        for use in value.uses:
            op = use.owner.operation
            inner = _Read.of(op.results[0], columns) if op.name in VIEWS else None
            if inner is not None:
                found.append((op.results[0], inner))
            elif op not in seen:
                view = linalg_view(op)
                rotation = None if view is None else _rotation(view, columns)
                if rotation is not None:
                    seen.add(op)
                yield rotation or read


@frozen
class _Read:
    """Which columns a view of all has: an index of its dimensions, and their sizes."""

    index: Linear
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, value: Any, columns: Any) -> _Read | None:
        """Those of a value; None for what is no view, or one that is not linear."""
        sizes = tuple(value.type.shape)
        at = tuple(
            Linear(0, ((n, 1),) if size > 1 else ()) for n, size in enumerate(sizes)
        )
        indices = indices_in(value, at, columns, dict(enumerate(sizes)))
        return None if indices is None else cls(indices[-1], sizes)

    @property
    def columns(self) -> set[int]:
        """Their numbers."""
        found = {self.index.offset}
        for loop, step in self.index.terms:
            found = {one + n * step for one in found for n in range(self.sizes[loop])}
        return found


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
    others = [loop for loop in extents if extents[loop] > 1 and loop not in rows]
    if len(others) not in (2, 3):
        return None
    for together, (column, part) in product((False, True), permutations(others, 2)):
        block = next((one for one in others if one not in (column, part)), None)
        layout = PartLayout(extents, block, part, column, together)
        reads = layout.reads(lasts)
        if reads is None or not _chooses_by(view, part):
            continue
        begin = next(iter(lasts.values())).offset // layout.step * layout.step
        blocks = 1 if block is None else extents[block]
        return Rotation(
            view, extents, reads, rows, block, part, column, begin, blocks,
            layout.pitch(lasts), extents[part], extents[column], together,
        )  # fmt: skip
    return None


def _chooses_by(view: LinalgView, part: int) -> bool:
    """Whether no number of another loop is in the body."""
    indices = walk(view.op, "linalg.index")
    return all(one.attributes["dim"].value == part for one in indices)
