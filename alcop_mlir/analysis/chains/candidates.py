"""Contractions on tensors of which an operand is computed from another one.

Either that depends on reductions of rows, or there are element-wise ops only between,
and what is not moved any more is most of what was: scores that have more elements than
operands and result together.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cmp_to_key
from typing import Any

from alcop_mlir.analysis.chains.indices import OPEN, Index, Indices
from alcop_mlir.analysis.ir.loops import defining_op, filled
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")
_EXTENSION = "arith.extf"
# The nearest ones: additions around layers lead through a whole network.
_MOST_BETWEEN = 64


@frozen
class Candidate:
    """A contraction, and those that one of its operands is computed from.

    weights, values: its operands
    batch, m, n, d: its loops; n is the one that is reduced, and m is one more, of a
             single row, where all that index the weights are of the batch
    between: the ops between the contractions, last ones first
    scores:  results of contractions that `weights` depends on
    """

    view: LinalgView
    weights: Operand
    values: Operand
    batch: tuple[int, ...]
    m: int
    n: int
    d: int
    between: tuple[Any, ...]
    scores: tuple[Any, ...]

    @property
    def op(self) -> Any:
        """The contraction."""
        return self.view.op

    @property
    def reduces(self) -> bool:
        """Whether something is reduced between the contractions."""
        return any(_reduces(op) for op in self.between)

    def reached_from(self, scores: ir.Value) -> set[Any]:
        """The tensors between that depend on these scores."""
        reached = {scores}
        for op in reversed(self.between):
            if any(one in reached for one in op.operands):
                reached.update(op.results)
        return reached

    def producer(self, scores: ir.Value) -> Any:
        """The contraction that makes the scores."""
        return defining_op(scores)

    def operands_of(self, scores: ir.Value) -> tuple[Operand, Operand, int]:
        """The operands of the contraction that makes scores, and its length along k.

        OPEN where that is known at run time only.
        """
        view = linalg_view(self.producer(scores))
        assert view is not None
        (k,) = view.reductions
        first, second = view.inputs
        length = view.static_size(k)
        return first, second, OPEN if length is None else length

    def loops_of_scores(
        self, scores: ir.Value, at: Indices, k: Index
    ) -> dict[int | None, Index]:
        """The index that each loop of the first contraction is."""
        view = linalg_view(self.producer(scores))
        assert view is not None
        found: dict[int | None, Index] = dict(
            zip(view.outputs[0].loops, at, strict=True)
        )
        found[view.reductions[0]] = k
        return found


def candidates(function: ir.Operation) -> Iterator[Candidate]:
    """Contractions of which an operand depends on reductions after a contraction."""
    contractions = {
        view.op: view for op in walk(function) if (view := contraction_view(op))
    }
    for view in contractions.values():
        for number in (0, 1):
            found = _candidate(view, number, contractions)
            if found is not None:
                yield found
                break


def contraction_view(op: ir.Operation) -> LinalgView | None:
    """The view of a contraction on tensors along one loop; None for other ops."""
    if not op.name.startswith("linalg.") or len(op.results) != 1:
        return None
    view = linalg_view(op)
    if view is None or len(view.inputs) != 2 or len(view.reductions) != 1:
        return None
    if any(not one.is_tensor or None in one.loops for one in view.operands):
        return None
    first, second = view.inputs
    (output,) = view.outputs
    (k,) = view.reductions
    shared = k in first.loops and k in second.loops
    return view if shared and _multiplies(view, output) else None


def _multiplies(view: LinalgView, output: Operand) -> bool:
    """Whether the body adds A times B to the output."""
    (result,) = view.block.operations[-1].operation.operands
    total = defining_op(result)
    if total is None or total.name != "arith.addf":
        return False
    terms = [one for one in total.operands if one != output.argument]
    term = defining_op(terms[0]) if len(terms) == 1 else None
    if term is None or term.name != "arith.mulf":
        return False
    multiplied = {_without_extension(one) for one in term.operands}
    return multiplied == {one.argument for one in view.inputs}


def _without_extension(value: ir.Value) -> Any:
    op = defining_op(value)
    return value if op is None or op.name != _EXTENSION else op.operands[0]


def _candidate(
    view: LinalgView, number: int, contractions: Mapping[ir.Operation, LinalgView]
) -> Candidate | None:
    weights, values = view.inputs[number], view.inputs[1 - number]
    (n,) = view.reductions
    (output,) = view.outputs
    rows = [one for one in output.loops if one not in values.loops]
    columns = [one for one in output.loops if one not in weights.loops]
    if len(columns) != 1 or filled(output.value) != 0:
        return None
    m, d = rows[-1] if rows else view.rank, columns[0]
    batch = [one for one in output.loops if one not in (m, d)]
    assert m is not None
    assert d is not None
    between, scores = _between(view.op, weights.value, contractions)
    if not scores:
        return None
    kept = tuple(one for one in batch if one is not None)
    found = Candidate(view, weights, values, kept, m, n, d, between, scores)
    return found if found.reduces or _are_most(found) else None


def _are_most(candidate: Candidate) -> bool:
    """Whether scores have more elements than operands and results together."""
    for scores in candidate.scores:
        first, second, _ = candidate.operands_of(scores)
        others = (first, second, candidate.values, candidate.view.outputs[0])
        sizes = [_elements(one) for one in (scores, *(each.value for each in others))]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes) or known[0] <= sum(known[1:]):
            return False
    return True


def _elements(value: ir.Value) -> int | None:
    """How many a tensor has; None where that is known at run time only."""
    kind = value.type
    return math.prod(kind.shape) if kind.has_static_shape else None


def _between(
    end: ir.Operation, value: ir.Value, contractions: Mapping[ir.Operation, LinalgView]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The ops that a tensor is computed by after contractions, and these' results.

    An op comes before those that make its operands.
    """
    between: set[Any] = set()
    scores: dict[Any, None] = {}
    pending = deque([value])
    while pending and len(between) < _MOST_BETWEEN:
        one = pending.popleft()
        op = defining_op(one)
        if op is None or op in between or op.block != end.block:
            continue
        if op in contractions:
            scores[one] = None
        elif op.name in _RESHAPES or op.name.startswith("linalg."):
            between.add(op)
            pending.extend(op.operands)
    return tuple(sorted(between, key=cmp_to_key(_last_first))), tuple(scores)


def _last_first(one: Any, other: Any) -> int:
    return 1 if one.is_before_in_block(other) else -1


def _reduces(op: ir.Operation) -> bool:
    view = linalg_view(op)
    return view is not None and bool(view.reductions)
