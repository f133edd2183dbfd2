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

if TYPE_CHECKING:
    from alcop_mlir.checker.machine.machine import Machine

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
