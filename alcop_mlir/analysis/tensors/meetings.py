"""Where the results of several contractions of one input meet: in an element-wise op.

    %g = contraction of %x, %wg ; %u = contraction of %x, %wu
    %a = f(%g) ; %b = h(%u) ; %y = element-wise op on %a, %b     // the meeting

`find_meetings` looks for ops that alone read, through other element-wise ops, what some
of the contractions make. All that lies between is computed element by element, so that
one contraction with the columns of all, interleaved, can compute the meeting itself.
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.elementwise import is_scalar_code
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_LONGEST = 64  # ops in the bodies of all that is computed between


@frozen
class Meeting:
    """An op in which results meet.

    op:       the last one, which alone others read
    between:  the ops that compute what it reads, in order
    numbers:  of the contractions, in the order that was given
    """

    op: Any
    between: tuple[Any, ...]
    numbers: tuple[int, ...]


def find_meetings(
    contractions: Sequence[ir.Operation], wanted: Container[int]
) -> Iterator[Meeting]:
    """Meetings of two contractions or more, none of which is in two of them.

    wanted: of how many, if there are such; then the largest in a row of these
    """
    left = dict(enumerate(contractions))
    while len(left) > 1:
        found = list(_meetings(left))
        if not found:
            return
        best = [one for one in found if len(one.numbers) in wanted] or found
        yield best[-1]
        for number in best[-1].numbers:
            del left[number]


def is_element_wise(view: LinalgView) -> bool:
    """Whether it writes a new tensor, an element in each iteration."""
    if len(view.outputs) != 1 or view.reductions or walk(view.op, "linalg.index"):
        return False
    output = view.outputs[0]
    is_new = made_by(output.value, "tensor.empty") is not None
    return is_new and not output.is_read and output.loops == tuple(range(view.rank))


def _meetings(contractions: dict[int, ir.Operation]) -> Iterator[Meeting]:
    """The ops that end all ways from some of the contractions, in order."""
    sources: dict[Any, frozenset[int]] = {
        op.results[0]: frozenset([number]) for number, op in contractions.items()
    }
    for op in _ops_from(next(iter(contractions.values()))):
        read = [sources[one] for one in op.operands if one in sources]
        if not read or not _computes_elements(op, sources):
            continue
        numbers = frozenset[int]().union(*read)
        sources[op.results[0]] = numbers
        ops = [one for one, known in sources.items() if known & numbers]
        between = [one.owner.operation for one in ops[:-1]]
        joins = all(one != numbers for one in read)
        if joins and _is_only_way(between, op, sources, numbers):
            ways = [one for one in between if one not in contractions.values()]
            *ways, last = _with_tail([*ways, op])
            if _length([*ways, last]) <= _LONGEST:
                yield Meeting(last, tuple(ways), tuple(sorted(numbers)))


def _with_tail(ops: list[Any]) -> list[Any]:
    """The ops, and the element-wise ones that alone read each other's results then.

    What else these read are arguments of the function, which no kernel computes.
    """
    result = ops[-1].results[0]
    users = {use.owner.operation for use in result.uses}
    if len(users) != 1:
        return ops
    (user,) = users
    given = {one for one in user.operands if isinstance(one.owner, ir.Block)}
    known = {result: frozenset[int]()}
    if not _computes_elements(user, known):
        return ops
    if any(one.value not in {*given, result} for one in view_of(user).inputs):
        return ops
    return _with_tail([*ops, user])


def _ops_from(first: ir.Operation) -> Iterator[Any]:
    every = iter(one.operation for one in first.block.operations)
    for op in every:
        if op == first:
            yield from every


def _computes_elements(op: ir.Operation, sources: dict[Any, frozenset[int]]) -> bool:
    """Whether it computes elements of those at the same indices of what it reads.

    By arithmetic alone, as an epilogue: nothing is asserted, or looked up.
    """
    view = linalg_view(op)
    if view is None or len(op.results) != 1 or not is_element_wise(view):
        return False
    if view.block is None or not is_scalar_code(view.block):
        return False
    return all(
        one.loops == tuple(range(view.rank))
        for one in view.inputs
        if one.value in sources
    )


def _is_only_way(
    between: Sequence[Any],
    last: ir.Operation,
    sources: dict[Any, frozenset[int]],
    numbers: frozenset[int],
) -> bool:
    """Whether nothing else reads what lies between, or computes with others."""
    inside = {*between, last}
    return all(
        use.owner.operation in inside
        for op in between
        for result in op.results
        for use in result.uses
    ) and all(sources[op.results[0]] <= numbers for op in between)


def _length(ops: Sequence[Any]) -> int:
    return sum(len(op.regions[0].blocks[0].operations) for op in ops)
