"""Lets loops carry, and choices yield, elements of vectors with an element per row.

Before:  scf.for ... iter_args(%rows = %first) {      // a vector<64xindex>
           gather %rows ; %next = arith.addi %rows, %step ; scf.yield %next }
After:   scf.for ... iter_args(%row = %first_row) {   // of each row of a thread
           copy %row ; %next = arith.addi %row, %step_of_row ; scf.yield %next }

In two parts, as elements must be put in before gathers are built, and vectors can only
be dropped when no gather uses them: a vector that nothing else uses carries itself on,
which canonicalize removes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.layout.row_vectors import (
    CHOICE,
    carried_from,
    carrier,
    row_vectors,
    vectors_behind,
)
from alcop_mlir.bindings import ir, scf, ub
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.transforms.tensor_cores.copy_offsets import Index
from alcop_mlir.transforms.tensor_cores.row_elements import RowElements, row_key

_BOUNDS = 3  # operands of an scf.for before the first values that it carries


@frozen
class Carrier:
    """A loop or choice with elements of vectors that it carries or yields.

    wanted: the number of the vector, and the row, of each element
    before: how many values it carried or yielded before these
    """

    op: Any
    wanted: tuple[tuple[int, Index], ...]
    before: int

    def values(self, number: int) -> list[Any]:
        """The values of that number: the result, and that in a loop's body."""
        results = [self.op.results[number]]
        if self.op.name == CHOICE:
            return results
        return [*results, body(self.op).arguments[number + 1]]

    def set(self, number: int, values: Sequence[ir.Value]) -> None:
        """Let the values of that number be these, in the order of `carried_from`."""
        ends = [region.blocks[0].operations[-1] for region in self.op.regions]
        if self.op.name == CHOICE:
            for end, value in zip(ends, values, strict=True):
                end.operands[number] = value
        else:
            self.op.operands[_BOUNDS + number] = values[0]
            ends[0].operands[number] = values[1]


def carry_rows(
    gathers: Iterable[tuple[ir.Operation, Iterable[Index]]], elements: RowElements
) -> list[Carrier]:
    """Let what carries vectors of these gathers carry elements of these rows too."""
    carriers = [_with_elements(*one) for one in _wanted(gathers)]
    for one in carriers:
        for place, (number, row) in enumerate(one.wanted):
            vectors, numbers = one.values(number), one.values(one.before + place)
            for vector, element in zip(vectors, numbers, strict=True):
                elements.put(vector, row, element)
    for one in carriers:
        for place, (number, row) in enumerate(one.wanted):
            behind = carried_from(one.op, number)
            old = carried_from(one.op, one.before + place)
            one.set(one.before + place, [elements.of(value, row) for value in behind])
            edit.erase_unused(value.owner for value in old)
    return carriers


def drop_vectors(carriers: Sequence[Carrier], elements: RowElements) -> None:
    """Erase what made the vectors, and nothing else uses; carried ones too."""
    numbered = [(one, number) for one in carriers for number in _numbers(one)]
    carried = {value for one, number in numbered for value in one.values(number)}
    made = {result for op in elements.made() for result in op.results}
    needed = _needed({*carried, *made})
    for one, number in numbered:
        if needed.isdisjoint(one.values(number)):
            _cut(one, number)
    edit.erase_unused(elements.made())


def _numbers(one: Carrier) -> list[int]:
    return list(dict.fromkeys(number for number, _ in one.wanted))


def _wanted(
    gathers: Iterable[tuple[ir.Operation, Iterable[Index]]],
) -> list[tuple[Any, tuple[tuple[int, Index], ...]]]:
    """The loops and choices behind the gathers, and which elements they need."""
    found: dict[Any, tuple[Any, dict[Any, tuple[int, Index]]]] = {}
    seen: set[Any] = set()
    pending = [
        (vector, row)
        for gather, rows in gathers
        for row in rows
        for vector in row_vectors(gather)
    ]
    while pending:
        vector, row = pending.pop()
        if (vector, row_key(row)) in seen:
            continue
        seen.add((vector, row_key(row)))
        pending += [(one, row) for one in vectors_behind(vector)]
        if (holder := carrier(vector)) is not None:
            op, number = holder
            # By a result: an op's hash changes with its operands.
            _, wanted = found.setdefault(op.results[0], (op, {}))
            wanted[number, row_key(row)] = (number, row)
    return [(op, tuple(wanted.values())) for op, wanted in found.values()]


def _with_elements(op: ir.Operation, wanted: tuple[tuple[int, Index], ...]) -> Carrier:
    """The op with more values, which are poison yet."""
    before = len(list(op.results))
    kinds = [op.results[number].type.element_type for number, _ in wanted]
    if op.name == CHOICE:
        return Carrier(_with_yielded(op, kinds), wanted, before)
    with op.location, ir.InsertionPoint(op):
        first = list(map(ub.poison, kinds))
    wider = edit.with_carried(op, first, lambda _: map(ub.poison, kinds))
    return Carrier(wider, wanted, before)


def _with_yielded(choice: ir.Operation, kinds: Sequence[ir.Type]) -> Any:
    """The `scf.if` with more results of these types, poison."""
    own = [result.type for result in choice.results]
    with choice.location, ir.InsertionPoint(choice):
        wider = scf.IfOp(choice.operands[0], [*own, *kinds], has_else=True).operation
    edit.keep_attributes(choice, wider)
    for old, new in zip(choice.regions, wider.regions, strict=True):
        edit.move_ops(old.blocks[0], new.blocks[0])
        end = new.blocks[0].operations[-1].operation
        with end.location, ir.InsertionPoint(end):
            scf.YieldOp([*end.operands, *map(ub.poison, kinds)])
        end.erase()
    for number, old in enumerate(choice.results):
        old.replace_all_uses_with(wider.results[number])
    choice.erase()
    return wider


def _needed(vectors: set[Any]) -> set[Any]:
    """Of these values those that others use, at once or by others of these."""
    needed: set[Any] = set()
    pending = [
        vector
        for vector in vectors
        if any(_is_other(use, vectors) for use in vector.uses)
    ]
    while pending:
        vector = pending.pop()
        if vector in needed or vector not in vectors:
            continue
        needed.add(vector)
        pending += vectors_behind(vector)
        if (holder := carrier(vector)) is not None:
            pending += Carrier(holder[0], (), 0).values(holder[1])
    return needed


def _is_other(use: Any, vectors: set[Any]) -> bool:
    """Whether a use is not by what makes, carries or yields one of `vectors`."""
    user, number = use.owner.operation, use.operand_number
    if user.name == "scf.yield":
        user = user.parent.operation
    elif user.name == "scf.for":
        number -= _BOUNDS
    else:
        number = 0
    results = list(user.results)
    return number >= len(results) or results[number] not in vectors


def _cut(one: Carrier, number: int) -> None:
    """Let nothing be computed for a vector that nothing uses."""
    with one.op.location, ir.InsertionPoint(one.op):
        none = ub.poison(one.op.results[number].type)
    # A loop carries on what it started from, a choice is between two of these.
    following = none if one.op.name == CHOICE else body(one.op).arguments[number + 1]
    one.set(number, [none, following])
