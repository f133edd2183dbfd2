"""What is stored of a proof, as JSON: enough to check it again without a search.

Of each state at the head of a loop, or behind one: the registers that hold a term, the
hash of those that hold a number in each thread, the hash of the cells of shared memory,
and the facts about symbols; and the registers that hold a number of each thread plus
symbols, with what each turn adds to them: their numbers are those of the first state
that is covered. A checker goes from each once through the loop, and finds all states
that it meets there among them. Symbols are parameters (`.name`, or `.name/8` for an
eighth of one), special registers, `nPC` for the turn of the loop whose head is
instruction PC, `uPC` for an unknown that instruction PC makes, `hPC.register` for what
a register holds at a head, and those of the table `symbols`: quotients, and choices.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from alcop_mlir.certificate.digests import exact_digest
from alcop_mlir.certificate.heads import HeadState, turn_symbol
from alcop_mlir.certificate.linear import Clause, Division, Linear, Quotient, Symbols
from alcop_mlir.certificate.proof import Proof
from alcop_mlir.certificate.values import Exact, Spread, Truth, Uniform

SCHEMA = 6


def certificate(
    ptx: str,
    proof: Proof,
    bases: dict[str, int],
    dynamic_shared: int,
    requirements: list[dict[str, Any]],
    is_fresh: bool,
) -> dict[str, Any]:
    """The certificate of a proof as JSON values; of global memory it says nothing.

    requirements: of parameters, each with `parameter`, `low`, `high`, `multiple`
    """
    machine = proof.machine
    heads = [_head(one) for one in proof.heads]
    used = _used(proof, machine.symbols)
    return sealed(
        {
            "schema": SCHEMA,
            "ptx_sha256": hashlib.sha256(ptx.encode()).hexdigest(),
            "entry": machine.code.kernel.name,
            "threads": machine.threads,
            "shared_bytes": machine.shared_bytes,
            "dynamic_bytes": dynamic_shared,
            "variables": dict(sorted(bases.items())),
            "cell_bytes": machine.grain,
            "requires": requirements,
            "assumes": sorted(machine.notes),
            "fresh": is_fresh,
            "ends": not proof.unending,
            "steady": _steady(proof),
            "bounds": None,
            "placed": None,
            "skips": sorted(proof.hints),
            "symbols": {name: _made(machine.symbols, name) for name in sorted(used)},
            "heads": heads,
            "answers": {
                "proofs": [],
                "asked": [],
                "places": [],
                "turns": {},
                "gathers": {},
                "way": 0,
            },
        }
    )


def sealed(members: dict[str, Any]) -> dict[str, Any]:
    """The members, and the hash of all of them."""
    rest = {name: value for name, value in members.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True)
    return {**rest, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def stored(certificates: list[dict[str, Any]]) -> bytes:
    """The bytes of a file with these."""
    return (json.dumps(certificates, sort_keys=True) + "\n").encode()


def _steady(proof: Proof) -> dict[str, dict[str, int]] | None:
    if proof.steady is None:
        return None
    return {
        str(pc): {name[1:]: step for name, step in sorted(steps.items())}
        for pc, steps in sorted(proof.steady.items())
    }


def _head(one: HeadState) -> dict[str, Any]:
    registers = one.state.registers
    terms = {n: v for n, v in sorted(registers.items()) if isinstance(v, Uniform)}
    truths = {n: v for n, v in sorted(registers.items()) if isinstance(v, Truth)}
    return {
        "pc": one.head,
        "turns": {str(h): t for h, t in sorted(one.state.turns.items())},
        "terms": {n: [linear(v.term), v.low, v.high] for n, v in terms.items()},
        "truths": {n: clause(v.condition.true) for n, v in truths.items()},
        "spreads": {
            n: _step(v, one.head)
            for n, v in sorted(registers.items())
            if isinstance(v, Spread)
        },
        "numbers": sorted(n for n, v in registers.items() if isinstance(v, Exact)),
        "numbers_sha256": exact_digest(one.state),
        "cells_sha256": one.state.shared.digest(),
        "sources_sha256": one.state.shared.sources_digest(),
        "facts": [linear(f) for f in one.state.facts],
    }


def _step(value: Spread, head: int) -> list[int]:
    """What each turn adds, and the range."""
    step = value.terms.get(turn_symbol(head))
    return [0 if step is None else int(step[0]), value.low, value.high]


def linear(term: Linear) -> list[Any]:
    """`[constant, [symbol, factor], ...]`."""
    return [term.constant, *([s, c] for s, c in sorted(term.terms.items()))]


def clause(alternatives: Clause) -> list[Any]:
    """A list of alternatives, each a list of terms that are not negative."""
    return [[linear(f) for f in one] for one in alternatives]


def _used(proof: Proof, symbols: Symbols) -> set[str]:
    """The symbols that stand for something and that any head names."""
    found: set[str] = set()
    for head in proof.heads:
        for value in head.state.registers.values():
            found |= proof.machine.symbols_of(value)
        for fact in head.state.facts:
            found |= symbols.symbols(fact)
    return found & symbols.made.keys()


def _made(symbols: Symbols, name: str) -> dict[str, Any]:
    made = symbols.made[name]
    if isinstance(made, Quotient):
        return {"dividend": linear(made.dividend), "divisor": made.divisor}
    if isinstance(made, Division):
        parts = {"dividend": linear(made.dividend), "by": linear(made.by)}
        return {**parts, "is_rest": made.is_rest}
    return {
        "if": clause(made.condition.true),
        "unless": clause(made.condition.false),
        "then": linear(made.first),
        "else": linear(made.second),
    }
