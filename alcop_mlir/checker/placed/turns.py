"""What a listed state knows of the turns of a loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.arithmetic import Same, Unknown, Value
from alcop_mlir.checker.machine.mixed import mixed, replaced, total
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.addresses import is_stable
from alcop_mlir.checker.placed.told import numbered

if TYPE_CHECKING:
    from alcop_mlir.checker.machine.machine import Machine

_MOST_TURNS = 1 << 12
_ANY = 1 << 100  # of a counter: its number counts modulo the width of its register


def counted(
    machine: Machine, state: State, counters: Mapping[str, int], is_back: bool
) -> dict[str, Value]:
    """Counters of a loop, as their number in the first turn, and what turns add.

    Nothing is assumed: what comes back has to be the same.
    """
    turn = f"n{state.pc}"
    back: dict[Any, Term] = {turn: {turn: 1, "": -1}}
    found: dict[str, Value] = {}
    for name, step in counters.items():
        width, threads = machine.kernel.width(name), machine.threads
        try:
            value = mixed(state.registers.get(name), width, threads)
            if is_back:
                value = replaced(value, back)
            else:
                more = mixed(Same({turn: step, "": 0}, 0, 0), width, threads)
                value = total(value, more, 1, width)
        except Unknown:
            continue
        value = replace(value, low=-_ANY, high=_ANY)
        if all(s == turn or is_stable(s) for s in value.parts):
            found[name] = value
    return found


def bounds(state: State) -> list[Term]:
    """Facts about the turn alone, of the one that begins."""
    name = f"n{state.pc}"
    back: dict[str, Term] = {name: {name: 1, "": -1}}
    return [
        terms.replaced(fact, back)
        for fact in state.facts
        if _names(fact) == {name} and fact[name] < 0
        if not any(fact is one for one in state.data.given)
    ]


def around(state: State, loops: Mapping[int, set[int]]) -> set[str]:
    """Turns of loops around this place of which numbers are told."""
    inside = (h for h, body in loops.items() if state.pc in body and state.pc != h)
    return {f"n{head}" for head in inside} & state.data.told.keys()


def known(state: State, loops: Mapping[int, set[int]]) -> dict[str, Term]:
    """Turns whose number is known, or is the only one that is told."""
    found = {f"n{head}": terms.number(turn) for head, turn in state.turns.items()}
    for head in loops:
        numbers = state.data.told.get(f"n{head}")
        if numbers is not None and numbers.size == 1:
            found[f"n{head}"] = terms.number(int(numbers.flat[0]))
    return found


def pin(state: State, loops: Mapping[int, set[int]]) -> None:
    """A listed state knows its turn, those of loops around, and bounds of these; of one
    loop several numbers may be told, as arrays have one axis for turns.
    """
    told = state.data.told
    for head, turn in state.turns.items():
        equal: Term = {f"n{head}": 1, "": -turn}
        state.facts += [equal, terms.negative(equal)]
        told[f"n{head}"] = numbered([turn])
    for name in around(state, loops) - {f"n{head}" for head in state.turns}:
        low, high = int(told[name].min()), int(told[name].max())
        state.facts += [{name: 1, "": -low}, {name: -1, "": high}]
    state.facts += state.data.bounds
    first, last = limits(f"n{state.pc}", state.facts)
    is_free = all(told[name].shape[3] == 1 for name in around(state, loops))
    may_be = last is not None and (first == last or is_free) and last < _MOST_TURNS
    if last is not None and may_be and state.pc not in state.turns:
        told[f"n{state.pc}"] = numbered(range(first, max(first, last) + 1))
    state.data.given = list(state.facts)
    told.update({f"h{state.pc}.{name}": a for name, a in [*told.items()]})


def _names(fact: Term) -> set[str]:
    return {s for s, c in fact.items() if s and c}


def turn_of(name: str, known: int | None, facts: list[Term]) -> int | None:
    """The number of a turn, where facts tell."""
    low, high = limits(name, facts)
    return known if known is not None else low if low == high else None


def limits(name: str, facts: list[Term]) -> tuple[int, int | None]:
    """The least and the largest number of a turn, as facts about it alone say."""
    low, high = 0, None
    for fact in facts:
        if _names(fact) != {name}:
            continue
        factor, rest = fact[name], fact.get("", 0)
        if factor > 0:
            low = max(low, -(rest // factor))
        else:
            most = rest // -factor
            high = most if high is None else min(high, most)
    return low, high
