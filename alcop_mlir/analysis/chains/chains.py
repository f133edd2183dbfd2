"""Which contractions, row reductions and element-wise ops on tensors are one chain.

A chain is a contraction, the *scores*, element-wise ops and reductions of rows of what
it makes, and a contraction of what they make, the *weights*:

    S[m, n] = sum over k of Q[m, k] * K[n, k]
    X[m, n] = f(S[m, n], m, n, other inputs)
    R[m]    = max over n of X[m, n]
    W[m, n] = exp2(c * (X[m, n] - R[m]))
    L[m]    = sum over n of W[m, n]
    O[m, d] = g(sum over n of W[m, n] * V[n, d], L[m], R[m])

for each iteration of loops of a batch, which any operand may lack. It can go over
columns once, in parts: R grows as parts are seen, and what was summed with the R before
is multiplied by W(R before, R now), as W splits into two functions, of X and of R, and
that of R has an inverse (`exponentials.py`).

Or nothing is reduced along rows: weights are any W[m, n] = f(S[m, n], m, n, other
inputs), as of sigmoid attention or with a decay, and nothing is corrected.

`find_chains` returns chains, and for what looks like one but is none the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from alcop_mlir.analysis.chains.candidates import Candidate, candidates
from alcop_mlir.analysis.chains.elements import NARROW_FLOATS, Element
from alcop_mlir.analysis.chains.exponentials import (
    NoChainError,
    Rows,
    commuted,
    found_exponential,
    found_rows,
)
from alcop_mlir.analysis.chains.following import Follower
from alcop_mlir.analysis.chains.indices import (
    OPEN,
    Index,
    Indices,
    NotFollowedError,
    SplitLoop,
)
from alcop_mlir.analysis.chains.operands import Matrix, found_in_memory
from alcop_mlir.analysis.chains.results import Result, found_result
from alcop_mlir.analysis.chains.visible_columns import Columns, visible_columns
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

# What a lane of a warp can hold: a fragment is 16 columns, and accumulators of 256
# columns take half of its registers.
HEAD_STEP, LARGEST_HEAD = 16, 256
FEWEST_COLUMNS = 16


@frozen
class Chain:
    """A chain; loops are numbers, and indices tuples of them.

    first, last: the contractions
    batch, m, n, k, d: loops
    extents:   of the loops; OPEN for one that is known at run time only, which then is
               the size of a dimension of the queries, keys or values
    queries, keys, values: Q, K and V
    scores:    an element of S
    elements:  X, of the scores and inputs
    maximum:   R; None where W is X, and no row is reduced
    weights:   W, of X and R
    scale:     c; None without R
    totals:    reductions whose term is W
    contracted: stands for the sum over n of W times V
    result:    O, and where it is
    columns:   those of a row whose weights may differ from zero
    """

    first: Any
    last: Any
    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    d: int
    extents: Mapping[int, int]
    queries: Matrix
    keys: Matrix
    values: Matrix
    scores: Element
    elements: Element
    maximum: Element | None
    weights: Element
    scale: float | None
    totals: tuple[Element, ...]
    contracted: Element
    result: Result
    columns: Columns


def with_rows(chain: Chain) -> Chain:
    """A chain of single rows with m a loop of its queries and its result.

    Rows of the batch that share keys and values, as the heads of a group do, become
    rows of one matrix.
    """
    shared = [
        loop
        for loop in chain.batch
        if loop not in chain.keys.loops | chain.values.loops
    ]
    if shared:
        m = max(shared, key=lambda loop: chain.extents[loop])
        batch = tuple(loop for loop in chain.batch if loop != m)
        columns = Columns()
        if chain.maximum is not None:
            columns = visible_columns(chain.elements, m, chain.n)
        return replace(chain, batch=batch, m=m, columns=columns)
    queries = _inserted(chain.queries.indices, chain.m, chain.k)
    result = _inserted(chain.result.indices, chain.m, chain.d)
    return replace(
        chain,
        queries=replace(chain.queries, indices=queries),
        result=replace(chain.result, indices=result),
    )


def _inserted(indices: Indices, loop: int, before: int) -> Indices:
    """The indices with another loop, of extent 1, just before a loop."""
    found = []
    for index in indices:
        at = index.index(before) if before in index else None
        found.append(index if at is None else (*index[:at], loop, *index[at:]))
    return tuple(found)


def find_chains(function: ir.Operation) -> Iterator[Chain | Rejected]:
    """Each chain of a function, and each contraction after reductions that ends none.

    Both are of the function as it is when asked: who changes it asks again.
    """
    for candidate in candidates(function):
        reasons = []
        for scores in candidate.scores:
            found = _chain(candidate, scores)
            if isinstance(found, Chain):
                yield found
                break
            reasons.append(found)
        else:
            yield Rejected(candidate.op, reasons[0])


def _chain(candidate: Candidate, scores: ir.Value) -> Chain | str:
    """A chain from these scores, or why there is none."""
    reader = _Reader(candidate, scores)
    while True:
        try:
            return reader.chain()
        except SplitLoop as wanted:
            why = reader.split(wanted)
            if why is not None:
                return why
        except (NotFollowedError, NoChainError) as reason:
            return str(reason)


@dataclass
class _Reader:
    """Reads one candidate, with loops that become finer."""

    candidate: Candidate
    scores: Any
    extents: dict[int, int] = field(default_factory=dict)
    loops: dict[int, Index] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """One loop of the chain for each of the last contraction's."""
        view = self.candidate.view
        for loop in range(view.rank):
            size = view.static_size(loop)
            self.extents[loop] = OPEN if size is None else size
            self.loops[loop] = () if size == 1 else (loop,)
        self.extents.setdefault(self.candidate.m, 1)
        self.k = view.rank + 1

    @property
    def fixed(self) -> tuple[int, int, int, int]:
        """The loops that tiles have: m, n, k, d."""
        return (self.candidate.m, self.candidate.n, self.k, self.candidate.d)

    def split(self, wanted: SplitLoop) -> str | None:
        """Make a loop finer; why not, for one that tiles have."""
        if wanted.loop in self.fixed:
            return "rows or columns are reshaped between the contractions"
        first = max(self.extents) + 1
        made = tuple(range(max(first, self.k + 1), max(first, self.k + 1) + 2))
        for loop, extent in zip(made, wanted.extents, strict=True):
            self.extents[loop] = extent
        for loop, index in self.loops.items():
            self.loops[loop] = tuple(
                new for one in index for new in (made if one == wanted.loop else (one,))
            )
        return None

    def indices(self, operand: Operand) -> Indices:
        """The indices of an operand of the last contraction."""
        return tuple(self.loops[loop] for loop in operand.loops if loop is not None)

    def chain(self) -> Chain:
        """The chain. Raises where there is none."""
        given = self.candidate
        if 0 in self.extents.values():
            raise NoChainError("there are no rows, or no columns")
        m, n, k, d = self.fixed
        reached = given.reached_from(self.scores)
        follower = Follower(self.extents, n, self.scores, reached, kept=self.fixed)
        weight = follower.at(given.weights.value, self.indices(given.weights))
        first, second, self.extents[k] = given.operands_of(self.scores)
        batch = tuple(loop for number in given.batch for loop in self.loops[number])
        at = follower.scores_at or ()
        several = (m,) if self.extents[m] != 1 else ()
        if sorted(loop for one in at for loop in one) != sorted((*batch, *several, n)):
            raise NoChainError("the scores do not have all rows and columns")
        of_scores = given.loops_of_scores(self.scores, at, (k,))
        operands = [
            Matrix(one.value, tuple(of_scores[loop] for loop in one.loops))
            for one in (first, second)
        ]
        queries, keys = self._in_order(operands)
        values = Matrix(given.values.value, self.indices(given.values))
        queries, keys, values = (
            self._in_memory(one, loops)
            for one, loops in ((queries, (m, k)), (keys, (n, k)), (values, (n, d)))
        )
        self._check(queries, keys, values)
        contracted = follower.pool.leaf(
            "contracted", "f32", None, frozenset((*batch, m, d))
        )
        result, rows = self._result(weight, contracted, follower)
        self._check_users(follower)
        scores = follower.at(self.scores, at)
        found = Chain(
            given.producer(self.scores),
            given.op,
            batch,
            m,
            n,
            k,
            d,
            dict(self.extents),
            queries,
            keys,
            values,
            scores,
            rows.elements,
            rows.maximum,
            rows.weights,
            rows.scale,
            rows.totals,
            contracted,
            replace(result, element=rows.result),
            visible_columns(rows.elements, m, n) if weight.needs else Columns(),
        )
        return with_rows(found) if self.extents[m] == 1 else found

    def _result(
        self, weight: Element, contracted: Element, follower: Follower
    ) -> tuple[Result, Rows]:
        """What is made of the last contraction, and what of rows that needs."""
        row, pool = self.candidate.n, follower.pool
        indices = self.indices(self.candidate.view.outputs[0])
        if not weight.needs:
            result = found_result(self.candidate.op, indices, contracted, follower)
            return result, Rows(weight, None, weight, None, (), result.element)
        exponential = found_exponential(weight, row)
        made = commuted(weight, exponential, contracted, row, pool)
        result = found_result(self.candidate.op, indices, made, follower)
        return result, found_rows(exponential, result.element, row, pool)

    def _in_order(self, operands: list[Matrix]) -> list[Matrix]:
        m, n, _, _ = self.fixed
        ordered = sorted(operands, key=lambda one: n in one.loops)
        first, second = ordered
        if n in first.loops or m in second.loops or n not in second.loops:
            raise NoChainError("an operand of the scores has rows and columns")
        return ordered

    def _in_memory(self, matrix: Matrix, inner: tuple[int, int]) -> Matrix:
        """SplitLoop only for loops of the batch."""
        try:
            found = found_in_memory(matrix, self.extents, inner)
        except SplitLoop as wanted:
            if wanted.loop not in self.fixed:
                raise
            found = matrix
        if found.innermost not in inner:
            raise NoChainError("neighbours in memory are of several matrices")
        return found

    def _check(self, queries: Matrix, keys: Matrix, values: Matrix) -> None:
        m, n, k, d = self.fixed
        types = {one.type for one in (queries, keys)}
        weights = str(self.candidate.weights.value.type.element_type)
        if len(types) > 1 or types.isdisjoint(NARROW_FLOATS):
            raise NoChainError(
                f"multiplies {queries.type} by {keys.type}, expected f16 or bf16"
            )
        if {weights, values.type} != {queries.type}:
            raise NoChainError(
                f"multiplies {weights} by {values.type} after {queries.type}, expected "
                "one type"
            )
        for loop in (k, d):
            size = self.extents[loop]
            if size == OPEN:
                raise NoChainError(
                    "rows of a length that is known at run time only are multiplied"
                )
            if size % HEAD_STEP or size > LARGEST_HEAD:
                raise NoChainError(
                    f"rows of {size} elements are multiplied, expected a multiple of "
                    f"{HEAD_STEP} up to {LARGEST_HEAD}"
                )
        rows, columns = self.extents[m], self.extents[n]
        if columns != OPEN and columns < FEWEST_COLUMNS:
            raise NoChainError(
                f"has {rows} rows and {columns} columns of weights, expected "
                f"{FEWEST_COLUMNS} columns at least: fewer move few bytes"
            )

        batch = queries.loops | keys.loops | values.loops
        known = {
            index
            for one in (queries, keys, values)
            for index in one.indices
            if len(index) == 1
        }
        for loop in batch:
            if self.extents[loop] == OPEN and (loop,) not in known:
                raise NoChainError(
                    "a size that is known at run time only is none of an operand's"
                )

    def _check_users(self, follower: Follower) -> None:
        """Nobody else may need what is not written any more."""
        inside = [*follower.passed, self.candidate.producer(self.scores)]
        allowed = {*inside, self.candidate.op}
        for op in inside:
            for result in op.results:
                for use in result.uses:
                    if use.owner.operation not in allowed:
                        raise NoChainError(
                            f"'{use.owner.operation.name}' reads what is between the "
                            "contractions too"
                        )
