"""Which contractions on tensors read one input, and could be one with joined weights.

`find_joins` looks for contractions that differ in one operand only, a weight of the
function, and in the columns that it gives the result. Element-wise ops behind them that
are equal are joined with them. Where one element-wise op combines their results, their
columns are interleaved. Changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op, filled
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import captured_by_regions
from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.interleaved_columns import GROUP
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.analysis.tensors.meetings import (
    Meeting,
    find_meetings,
    is_element_wise,
)
from alcop_mlir.analysis.tensors.weights import weights_of
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import element_bytes
from alcop_mlir.frozen import frozen

_CONTRACTIONS = ("linalg.generic", "linalg.matmul", "linalg.contract")
_PARTS = (2, 4)  # that warps with 32 or 64 columns have in turn
_ALIGNED = 16  # bytes that rows of an operand begin at multiples of, for cp.async


@frozen
class Level:
    """Ops that are equal, one for each contraction, or the contractions themselves.

    joined: numbers of the operands that are parts of one, by the dimension of columns
    """

    views: tuple[LinalgView, ...]
    joined: dict[int, int]


@frozen
class Join:
    """Contractions that can be one, in the order of the program.

    levels:  the contractions, then the element-wise ops that follow each of them
    columns: how many each has
    """

    levels: tuple[Level, ...]
    columns: tuple[int, ...]


@frozen
class Interleaving:
    """Contractions whose results one element-wise op combines, in the program's order.

    weight:    the number of the operand that differs
    dimension: of columns, in that operand
    """

    views: tuple[LinalgView, ...]
    weight: int
    dimension: int
    meeting: Meeting


@frozen
class _Candidate:
    """A contraction with a matrix of the function as operand number `weight`."""

    view: LinalgView
    weight: int
    dimension: int  # of columns, in the weight


def find_joins(function: ir.Operation) -> Iterator[Join | Interleaving | Rejected]:
    """The joins of a function; contractions that share an input and stay apart."""
    (block, *others) = function.regions[0].blocks
    if others:
        return
    weights = {block.arguments[number] for number in weights_of(function)}
    sharing: dict[Any, list[_Candidate]] = defaultdict(list)
    for op in (one.operation for one in block.operations):
        candidate = _candidate(op) if op.name in _CONTRACTIONS else None
        if candidate is not None:
            sharing[_key(candidate)].append(candidate)
    for found in sharing.values():
        left = list(found)
        for meeting in find_meetings([one.view.op for one in found], _PARTS):
            met = [found[number] for number in meeting.numbers]
            left = [one for one in left if one not in met]
            yield _interleaving(met, meeting, weights)
        if len(left) > 1:
            yield from _joins(left, weights)


def _joins(
    left: Sequence[_Candidate], weights: set[ir.Value]
) -> Iterator[Join | Rejected]:
    """The joins of these: of all, or of those whose results are read alike.

    Without one that the function returns, others may have more ops in common.
    """
    why_not = _why_not_alike(left, weights)
    if why_not is not None:
        yield Rejected(left[-1].view.op, why_not)
        return
    join = _join(left, weights)
    groups: dict[str | None, list[_Candidate]] = defaultdict(list)
    for one, view in zip(left, join.levels[-1].views, strict=True):
        groups[_why_not_read(view.op.results[0])].append(one)
    for reason, group in groups.items():
        if len(group) == len(left) and reason is None:
            yield join
        elif 1 < len(group) < len(left):
            yield from _joins(group, weights)
        elif reason is not None:
            yield Rejected(group[-1].view.op, reason)


def _candidate(op: ir.Operation) -> _Candidate | None:
    """The op if it is a contraction of a tensor with an argument, from zero."""
    view = view_of(op)
    if len(op.results) != 1 or len(view.inputs) != 2 or len(view.reductions) != 1:
        return None
    letters = loop_letters(view.maps)
    is_static = all(
        one.is_tensor and one.value.type.has_static_shape for one in view.operands
    )
    if letters is None or not is_static or filled(view.outputs[0].value) != 0:
        return None
    if not letters[2].endswith("n") or any(
        n.startswith("alcop.") for n in op.attributes
    ):
        return None
    for number, operand in enumerate(view.inputs):
        if sorted(letters[number]) == ["k", "n"] and isinstance(
            operand.value.owner, ir.Block
        ):
            return _Candidate(view, number, letters[number].index("n"))
    return None


def _key(one: _Candidate) -> tuple[Any, ...]:
    """What contractions that are joined have alike, but for their bodies."""
    view = one.view
    shared = view.inputs[1 - one.weight]
    maps = tuple(map(str, view.maps))
    kinds = tuple(str(operand.value.type.element_type) for operand in view.operands)
    return shared.value, one.weight, maps, kinds


def _interleaving(
    found: Sequence[_Candidate], meeting: Meeting, weights: set[ir.Value]
) -> Interleaving | Rejected:
    views = tuple(one.view for one in found)
    columns = sorted({one.outputs[0].value.type.shape[-1] for one in views})
    why_not = _why_not_alike(found, weights)
    if why_not is None and len(found) not in _PARTS:
        many, few = _PARTS[::-1]
        why_not = f"an op combines {len(found)} of them, expected {few} or {many}"
    if why_not is None and (len(columns) > 1 or columns[0] % GROUP):
        numbers = " and ".join(map(str, columns))
        why_not = (
            f"an op combines columns of theirs, and they have {numbers}, expected one "
            f"number, a multiple of {GROUP}"
        )
    if why_not is not None:
        return Rejected(views[-1].op, why_not)
    return Interleaving(views, found[0].weight, found[0].dimension, meeting)


def _why_not_alike(found: Sequence[_Candidate], weights: set[ir.Value]) -> str | None:
    """Why contractions with these weights are not made one."""
    first, *others = (one.view for one in found)
    arguments = [one.view.inputs[one.weight].value for one in found]
    if not {*arguments} <= weights:
        return (
            "their other operands are no weights ('alcop.weight'), so that joining "
            "them would cost a copy in each call"
        )
    if len({*arguments}) < len(arguments) or not all(
        same_bodies(first, one) for one in others
    ):
        return "they do not compute alike"
    return None


def _join(found: Sequence[_Candidate], weights: set[ir.Value]) -> Join:
    """Contractions that compute alike, and what follows all of them."""
    columns = [one.view.outputs[0].value.type.shape[-1] for one in found]
    contractions = Level(
        tuple(one.view for one in found), {found[0].weight: found[0].dimension}
    )
    levels, first = [contractions], found[0].view
    while (level := _next_level(levels[-1], weights, first.op)) is not None:
        levels.append(level)
    return Join(tuple(levels), tuple(columns))


def _next_level(
    level: Level, weights: set[ir.Value], start: ir.Operation
) -> Level | None:
    """The element-wise ops that alone read the results; None if they are not alike."""
    results = [one.op.results[0] for one in level.views]
    users = [[use.owner.operation for use in one.uses] for one in results]
    if any(len(one) != 1 or one[0].name != "linalg.generic" for one in users):
        return None
    views = tuple(view_of(one) for (one,) in users)
    if not all(map(is_element_wise, views)):
        return None
    first = views[0]
    if not all(same_bodies(first, one) for one in views[1:]):
        return None
    if not all(_is_known(value, start) for value in captured_by_regions(first.op)):
        return None
    columns = first.rank - 1
    joined: dict[int, int] = {}
    for number, operand in enumerate(first.inputs):
        values = [one.inputs[number].value for one in views]
        if values == results:
            if operand.loops != tuple(range(first.rank)):
                return None
            joined[number] = columns
        elif {*values} <= weights and operand.loops == (columns,):
            joined[number] = 0
        elif not _is_shared(values, operand, columns):
            return None
    return Level(views, joined) if joined else None


def _is_known(value: ir.Value, start: ir.Operation) -> bool:
    """Whether a value is there when the op `start` runs."""
    op = defining_op(value)
    return op is None or (op.block == start.block and op.is_before_in_block(start))


def _is_shared(values: Sequence[ir.Value], operand: Operand, columns: int) -> bool:
    """Whether all ops read this value alike, which is known before any of them."""
    is_known = isinstance(values[0].owner, ir.Block)
    return is_known and len({*values}) == 1 and columns not in operand.loops


def _why_not_read(result: ir.Value) -> str | None:
    """Why who reads this would not read it as columns of a result of several."""
    kind = result.type
    if kind.shape[-1] * element_bytes(str(kind.element_type)) % _ALIGNED:
        return f"{kind.shape[-1]} columns of {kind.element_type} are no whole 16 bytes"
    if _is_returned(result):
        return (
            "the function returns one of them, in a memref of its own, and columns of "
            "one result would have to be copied there"
        )
    for user in (use.owner.operation for use in result.uses):
        if user.name == "tensor.collapse_shape":
            return "one of them is reshaped to fewer dimensions"
        if user.name == "linalg.generic" and _could_be_epilogue(user, result):
            return f"'{user.name}' reads one of them, and can be its epilogue"
    return None


def _is_returned(value: ir.Value) -> bool:
    """Whether the function returns it, or the same elements in more dimensions."""
    users = [use.owner.operation for use in value.uses]
    return any(
        user.name == "func.return"
        or (user.name == "tensor.expand_shape" and _is_returned(user.results[0]))
        for user in users
    )


def _could_be_epilogue(op: ir.Operation, result: ir.Value) -> bool:
    view = view_of(op)
    reads = [one.loops for one in view.inputs if one.value == result]
    return not view.reductions and reads == [tuple(range(view.rank))]


def same_bodies(one: LinalgView, other: LinalgView) -> bool:
    """Whether two ops have the same maps, types of elements, and bodies."""
    if list(map(str, one.maps)) != list(map(str, other.maps)):
        return False
    known = dict(zip(one.block.arguments, other.block.arguments, strict=False))
    if len(one.block.arguments) != len(other.block.arguments) or any(
        here.type != there.type for here, there in known.items()
    ):
        return False
    ops = [
        [inner.operation for inner in view.block.operations] for view in (one, other)
    ]
    if len(ops[0]) != len(ops[1]):
        return False
    for here, there in zip(*ops, strict=True):
        if not _alike(here, there, known):
            return False
        known.update(zip(here.results, there.results, strict=True))
    return True


def _alike(
    here: ir.Operation, there: ir.Operation, known: dict[ir.Value, ir.Value]
) -> bool:
    """Whether two ops without regions compute the same of what is known to be equal."""
    if here.name != there.name or len(here.regions) or len(there.regions):
        return False
    if {n: here.attributes[n] for n in here.attributes} != {
        n: there.attributes[n] for n in there.attributes
    }:
        return False
    if [one.type for one in here.results] != [one.type for one in there.results]:
        return False
    return [known.get(one, one) for one in here.operands] == list(there.operands)
