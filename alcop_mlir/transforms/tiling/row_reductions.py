"""What a thread carries of a reduction of a row, and how two threads combine it.

Of additions and the like it is the total of each output. Of the largest or smallest
term it is that term, the number of its column, and whether a NaN was met: what the op
makes of such a row depends on the order of its terms, so that it is folded from its
first to its last term, by each thread for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.rows.combinations import Extreme, Terms
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.analysis.rows.warp_reductions import NEUTRAL
from alcop_mlir.bindings import arith, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.tiling.nest_elements import combined

Values = list[Any]
_INFINITY = float("inf")
_NUMBER = 32  # bits of a column's number
MOST_COLUMNS = 2 ** (_NUMBER - 1) - 1


@frozen
class Iteration:
    """Where the body of a reduction is run.

    mapping: its arguments and numbers of iterations, but outputs, to values
    column:  the number of the column
    """

    mapping: dict[Any, Any]
    column: Any


class Reduction(Protocol):
    """What a thread carries of a reduction; all of it are values of 32 bits or less."""

    def neutral(self) -> Values:
        """What is carried before the first term."""
        ...

    def added(self, carried: Sequence[ir.Value], one: Iteration) -> Values:
        """What is carried with one term more."""
        ...

    def joined(self, one: Sequence[ir.Value], other: Sequence[ir.Value]) -> Values:
        """What is carried of the terms of two threads."""
        ...

    def results(
        self,
        starts: Sequence[ir.Value],
        total: Sequence[ir.Value],
        at: Callable[[ir.Value], Iteration],
        fold: Callable[[Sequence[ir.Value]], Values],
    ) -> Values:
        """The outputs, of what they start from and of what is carried of all terms.

        at:   the iteration of a column; inputs are not known there
        fold: the outputs, term by term from these on
        """
        ...


def reduction_of(member: Member) -> Reduction:
    """How threads compute a reduction of a row group."""
    if isinstance(member.combine, Terms):
        return _Totals(member, member.combine)
    assert isinstance(member.combine, Extreme), member
    return _Extremes(member, member.combine)


@frozen
class _Totals:
    member: Member
    combine: Terms

    def neutral(self) -> Values:
        return [
            arith.constant(op.results[0].type, NEUTRAL[op.name])
            for op in self.combine.ops
        ]

    def added(self, carried: Sequence[ir.Value], one: Iteration) -> Values:
        return body(self.member, one, carried)

    def joined(self, one: Sequence[ir.Value], other: Sequence[ir.Value]) -> Values:
        return [
            combined(op, left, right)
            for op, left, right in zip(self.combine.ops, one, other, strict=True)
        ]

    def results(
        self,
        starts: Sequence[ir.Value],
        total: Sequence[ir.Value],
        at: Callable[[ir.Value], Iteration],
        fold: Callable[[Sequence[ir.Value]], Values],
    ) -> Values:
        del at, fold  # of such it makes no difference in which order terms come
        return self.joined(starts, total)


@frozen
class _Extremes:
    member: Member
    combine: Extreme

    def neutral(self) -> Values:
        kind = self._kind
        worst: Any = _INFINITY
        if not self._is_float:
            worst = 2 ** (kind.width - 1) - 1
        if self.combine.largest:
            worst = -worst if self._is_float else -worst - 1
        nowhere = build.i32(-1 if self.combine.last else MOST_COLUMNS)
        nan = [build.zero(build.integer(1))] if self._is_float else []
        return [arith.constant(kind, worst), nowhere, *nan]

    def added(self, carried: Sequence[ir.Value], one: Iteration) -> Values:
        best, place, *nan = carried
        (term,) = inlined(self.member, [self.combine.term], one.mapping)
        # A thread meets its columns in their order.
        wins = self._beats(term, best, self.combine.last)
        number = arith.index_cast(build.integer(_NUMBER), one.column)
        found = [self._value(wins, term, best), arith.select(wins, number, place)]
        return [*found, *(arith.ori(is_nan, _is_nan(term)) for is_nan in nan)]

    def joined(self, one: Sequence[ir.Value], other: Sequence[ir.Value]) -> Values:
        best, place, *nan = one
        term, number, *more = other
        order = (
            arith.CmpIPredicate.sgt if self.combine.last else arith.CmpIPredicate.slt
        )
        equal = arith.andi(self._is_equal(term, best), arith.cmpi(order, number, place))
        wins = arith.ori(self._beats(term, best, False), equal)
        found = [self._value(wins, term, best), arith.select(wins, number, place)]
        return [*found, *map(arith.ori, nan, more)]

    def results(
        self,
        starts: Sequence[ir.Value],
        total: Sequence[ir.Value],
        at: Callable[[ir.Value], Iteration],
        fold: Callable[[Sequence[ir.Value]], Values],
    ) -> Values:
        best, place, *nan = total
        start = starts[self.combine.value]

        def found() -> Values:
            wins = self._beats(best, start, self.combine.last)
            if self.combine.last:  # the worst term is as good as one that starts so
                some = arith.cmpi(arith.CmpIPredicate.sge, place, build.i32(0))
                wins = arith.andi(wins, some)
            column = arith.index_cast(ir.IndexType.get(), place)
            new = self._new(at(column))
            return [
                self._value(wins, best, start)
                if number == self.combine.value
                else arith.select(wins, new[number], one)
                for number, one in enumerate(starts)
            ]

        if not nan:
            return found()
        unordered = arith.ori(nan[0], _is_nan(start))
        kinds = [one.type for one in starts]
        return build.branch(unordered, lambda: fold(starts), found, kinds)

    def _new(self, one: Iteration) -> dict[int, Any]:
        """By output, what the body takes for it where the term of a column wins."""
        outputs = self.member.nest.outputs
        ends = self.member.nest.block.operations[-1].operation.operands
        news = {}
        for number, output in enumerate(outputs):
            if number == self.combine.value:
                continue
            _, left, right = ends[number].owner.operation.operands
            news[number] = right if left == output.argument else left
        made = inlined(self.member, list(news.values()), one.mapping)
        return dict(zip(news, made, strict=True))

    @property
    def _kind(self) -> Any:
        return self.combine.term.type

    @property
    def _is_float(self) -> bool:
        return isinstance(self._kind, ir.FloatType)

    def _value(self, wins: ir.Value, term: ir.Value, best: ir.Value) -> Any:
        if self.combine.op is None:
            return arith.select(wins, term, best)
        return combined(self.combine.op, term, best)

    def _beats(self, term: ir.Value, best: ir.Value, or_equal: bool) -> Any:
        names = ("gt", "ge") if self.combine.largest else ("lt", "le")
        name = names[or_equal]
        if self._is_float:
            return arith.cmpf(arith.CmpFPredicate[f"O{name.upper()}"], term, best)
        return arith.cmpi(arith.CmpIPredicate[f"s{name}"], term, best)

    def _is_equal(self, term: ir.Value, best: ir.Value) -> Any:
        if self._is_float:
            return arith.cmpf(arith.CmpFPredicate.OEQ, term, best)
        return arith.cmpi(arith.CmpIPredicate.eq, term, best)


def _is_nan(value: ir.Value) -> Any:
    return arith.cmpf(arith.CmpFPredicate.UNO, value, value)


def body(member: Member, one: Iteration, accumulators: Sequence[ir.Value]) -> Values:
    """What the body of a member yields, of its outputs so far."""
    arguments = [output.argument for output in member.nest.outputs]
    mapping = one.mapping | dict(zip(arguments, accumulators, strict=True))
    return edit.inline(member.nest.block, mapping)


def inlined(member: Member, values: Values, mapping: dict[Any, Any]) -> Values:
    """Values of the body of a member, computed for themselves."""
    mapping = dict(mapping)
    ops, _ = backward_slice(values, member.nest.block, mapping)
    for op in ops:
        edit.clone(op, mapping)
    return [mapping.get(value, value) for value in values]
