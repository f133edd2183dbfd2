"""Rules that choose one of several columns for each row of a table of losses.

A rule has a column, and limits on the levels of a row. The first rule decides within
whose limits the row is, and whose column is there for it; the last has no limits, and a
column for all rows.

Lists are built rule by rule. Each is the best one there, given the others; then each
is replaced by a better one, here or at another place, until none is. That does not find
the best list for certain, but the same one in each run, in about a second.

Columns cost something, each once. Where a list is too costly, its rules are replaced
for a higher and a higher price, until it is not. The best list is taken of those that
each of these becomes where only what there is room for replaces rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alcop_mlir.tuning.candidates import BoolArray, FloatArray, IntArray

_SWEEPS = 8
_LEAST = 1e-9  # of a loss that is worth a change
_MOST_COST = 1 + 1e-9  # of a list: costs are shares of what it may be
# Of all that a list may cost, as a loss: so much at first, then so many times more.
_FIRST_PRICE, _DEARER, _PRICES = 0.1, 2.0, 8
Limit = tuple[int, int]  # the number of a level, and the most that it may be


@dataclass(frozen=True)
class Rule:
    """The column that it chooses, and the limits within which it does."""

    column: int
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    """What there is to choose from.

    losses: of each column in each row, infinite where it is not for the row
    for_all: columns that are for all rows that there may be; one at least
    levels: some integers of each row
    weights: of rows
    costs: of each column, as a share of what a list may cost
    price: of all that a list may cost; infinite where it may cost no more, and less is
        worth nothing
    """

    losses: FloatArray
    for_all: BoolArray
    levels: IntArray
    weights: FloatArray
    costs: FloatArray
    price: float = math.inf

    def decided(self, rules: Sequence[Rule]) -> IntArray:
        """The number of the rule that decides for each row."""
        decided = np.full(len(self.losses), len(rules), np.int64)
        for number in range(len(rules) - 1, -1, -1):
            decided[self._holds(rules[number])] = number
        return decided

    def loss(self, rules: Sequence[Rule]) -> FloatArray:
        """Of each row, infinite where no rule decides."""
        loss = np.full(len(self.losses), np.inf)
        for rule in reversed(rules):
            loss = np.where(self._holds(rule), self.losses[:, rule.column], loss)
        return loss

    def mean(self, rules: Sequence[Rule]) -> float:
        """The weighted mean of the losses."""
        return float(np.average(self.loss(rules), weights=self.weights))

    def cost(self, rules: Iterable[Rule]) -> float:
        """Of all their columns."""
        return float(sum(self.costs[column] for column in _columns(rules)))

    def value(self, rules: Sequence[Rule]) -> float:
        """The mean loss and what the list costs, which is better the less it is."""
        cost = self.cost(rules)
        if math.isfinite(self.price):
            return self.mean(rules) + self.price * cost
        return self.mean(rules) if cost <= _MOST_COST else math.inf

    def dues(self, others: Sequence[Rule]) -> FloatArray:
        """What each column costs beside others, as a weighted sum of losses."""
        is_there = np.isin(np.arange(len(self.costs)), _columns(others))
        more = np.where(is_there, 0.0, self.costs)
        if math.isfinite(self.price):
            return more * self.price * self.weights.sum()
        is_too_much = (more > 0.0) & (self.cost(others) + more > _MOST_COST)
        return np.where(is_too_much, math.inf, 0.0)

    def within(self, limits: Sequence[Limit]) -> BoolArray:
        """Whether each row is within the limits."""
        inside = np.ones(len(self.losses), np.bool_)
        for level, most in limits:
            inside &= self.levels[:, level] <= most
        return inside

    @cached_property
    def is_there(self) -> BoolArray:
        """Whether each column is for each row."""
        return np.isfinite(self.losses)

    def best(self, values: FloatArray, dues: FloatArray) -> tuple[float, Limit, int]:
        """The limit and the column whose sum within it is the largest; the sum first.

        values: of each row and column
        dues: of each column, that are taken off
        """
        found = [(0.0, (0, 0), 0)]  # nothing
        for level, (order, starts, limits) in enumerate(self._sorted):
            sums = np.cumsum(np.add.reduceat(values[order], starts), axis=0)[:-1] - dues
            if sums.size:
                row, column = divmod(int(sums.argmax()), sums.shape[1])
                found.append((float(sums[row, column]), (level, limits[row]), column))
        return max(found, key=lambda one: one[0])

    @cached_property
    def _sorted(self) -> list[tuple[IntArray, IntArray, list[int]]]:
        """By level: the rows in its order, where its values start there, its values."""
        made: list[tuple[IntArray, IntArray, list[int]]] = []
        for number in range(self.levels.shape[1]):
            level: IntArray = self.levels[:, number]
            order = np.argsort(level, kind="stable")
            values, starts = np.unique(level[order], return_index=True)
            made.append((order, starts, values.tolist()))
        return made

    def _holds(self, rule: Rule) -> BoolArray:
        return self.within(rule.limits) & self.is_there[:, rule.column]


def choose(table: Table, most: int, worth: float = 0.0) -> list[Rule]:
    """At most `most` rules with little loss; each lessens the mean by `worth`.

    Together they cost 1 at most, where that is possible.
    """
    rules = _chosen(replace(table, price=0.0), most, worth)
    if table.cost(rules) <= _MOST_COST:
        return rules
    found = [_settled(table, rules)]
    for number in range(_PRICES):
        priced = replace(table, price=_FIRST_PRICE * _DEARER**number)
        rules = _settled(priced, rules)
        found.append(_settled(table, rules))
        if table.cost(rules) <= _MOST_COST:
            break
    rules = min(found, key=lambda one: (table.value(one), table.cost(one)))
    return min(rules, _exchanged(table, rules), key=table.value)


def needed(table: Table, rules: Sequence[Rule]) -> list[Rule]:
    """`rules` without those of which nothing is lost."""
    left = [*rules]
    for rule in rules[:-1]:
        others = [one for one in left if one is not rule]
        if table.mean(others) <= table.mean(left):
            left = others
    return left


def _chosen(table: Table, most: int, worth: float) -> list[Rule]:
    rules = [_last(table, [])]
    while len(rules) < most:
        more = _settled(table, _with_one_more(table, rules))
        if table.value(more) > table.value(rules) - max(worth, _LEAST):
            return rules
        rules = more
    return min(rules, _exchanged(table, rules), key=table.value)


def _exchanged(table: Table, rules: list[Rule]) -> list[Rule]:
    """`rules` after one more has come, and the one that is missed least has gone."""
    more = _settled(table, _with_one_more(table, rules))
    fewer: list[list[Rule]] = []
    for place in range(len(more) - 1):
        others = more[:place] + more[place + 1 : -1]
        fewer.append([*others, _last(table, others)])
    return _settled(table, min(fewer, key=table.value))


def _settled(table: Table, rules: list[Rule]) -> list[Rule]:
    """`rules`, each replaced by better ones until that changes nothing."""
    for _ in range(_SWEEPS):
        before = table.value(rules)
        for place in range(len(rules) - 1):
            others = rules[:place] + rules[place + 1 :]
            rules = min(rules, _with_one_more(table, others), key=table.value)
        ended = [*rules[:-1], _last(table, rules[:-1])]
        rules = min(rules, ended, key=table.value)
        if table.value(rules) > before - _LEAST:
            break
    return rules


def _with_one_more(table: Table, rules: list[Rule]) -> list[Rule]:
    """`rules` and the best one more, at its best place."""
    found = [
        [*rules[:place], _best(table, rules[:place], rules[place:]), *rules[place:]]
        for place in range(len(rules))
    ]
    return min(found, key=table.value)


def _last(table: Table, before: Sequence[Rule]) -> Rule:
    """The best rule without limits, after others."""
    left = ~np.isfinite(table.loss(before))
    losses = np.where(table.is_there, table.losses, 0.0) * table.weights[:, None]
    totals = losses[left].sum(axis=0) + table.dues(before)
    columns = np.flatnonzero(table.for_all)
    return Rule(int(columns[totals[columns].argmin()]))


def _best(table: Table, before: Sequence[Rule], after: Sequence[Rule]) -> Rule:
    """The rule between others that lessens the loss most, with two limits at most."""
    reached = ~np.isfinite(table.loss(before))
    here = table.is_there & reached[:, None]
    otherwise = table.loss(after)[:, None]
    saved = np.where(here, otherwise - np.where(here, table.losses, 0.0), 0.0)
    saved *= table.weights[:, None]
    dues = table.dues([*before, *after])
    totals = saved.sum(axis=0) - dues
    rule, best = Rule(int(totals.argmax())), float(totals.max())
    for _ in range(_SWEEPS):
        # One limit is kept, and the best one added to it; then that one is kept.
        kept = rule.limits[-1:]
        held = table.within(kept)
        total, limit, column = table.best(np.where(held[:, None], saved, 0.0), dues)
        if total <= best + _LEAST:
            break
        rule, best = Rule(column, (*kept, limit)), total
    return rule


def _columns(rules: Iterable[Rule]) -> list[int]:
    """Those of all rules, each once."""
    return [*dict.fromkeys(rule.column for rule in rules)]
