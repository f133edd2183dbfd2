"""A certificate as it is stored, read strictly: what is missing or odd is refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.checker.form.open_statement import is_open, read_open_statement
from alcop_mlir.checker.form.reading import require, whole
from alcop_mlir.checker.form.statement import Statement, read_statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers, Facts
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.errors import CertificateError

SCHEMA = 6
_SYMBOL = re.compile(r"[\w$%@&.*/]+")
_AXES = {"%ctaid.x", "%ctaid.y", "%ctaid.z"}
_MOST_THREADS = 1024
_MOST_SHARED = 1 << 18
_MOST_DEPTH = 32  # symbols inside of symbols
Polynomial = list[tuple[int, tuple[str, ...]]]  # numbers, and sizes by name
_Read = Callable[[Any], Any]


@dataclass(frozen=True)
class Head:
    """One listed state at the head of a loop."""

    pc: int
    turns: dict[int, int]
    terms: dict[str, tuple[Term, int, int]]
    truths: dict[str, Clause]
    spreads: dict[str, tuple[int, int, int]]
    numbers: list[str]
    numbers_sha256: str
    cells_sha256: str
    sources_sha256: str
    facts: list[Term]

    @property
    def registers(self) -> Iterable[str]:
        """Those of which it says something."""
        return (*self.terms, *self.truths, *self.spreads, *self.numbers)

    def of_any_facts(self) -> Head:
        """A state of which nothing but what it holds is known."""
        return replace(self, facts=[])

    def of_later_turns(self) -> Head:
        """A state of some turn but the first, as one of any of which its facts hold."""
        return replace(self, turns={h: 0 for h, n in self.turns.items() if not n})


@dataclass(frozen=True)
class Promises:
    """What callers promise, by names of parameters, sizes and axes of the grid.

    arrays: bytes behind a pointer, and lengths of which none is 0 where there are any
    sizes:  low, high and what divides them
    grid:   numbers that are multiplied, each with what it is divided by, rounded up
    facts:  numbers that are not negative

    by_numbers: whether accesses are looked at in each thread, as no size is unknown
    """

    arrays: dict[str, tuple[Polynomial, list[Polynomial]]]
    values: dict[str, Polynomial]
    sizes: dict[str, tuple[int, int, int]]
    grid: dict[str, list[tuple[Polynomial, int]]]
    facts: list[Polynomial]
    by_numbers: bool


@dataclass(frozen=True)
class Turn:
    """What each turn of a loop adds to registers or leaves there, and facts of which
    each way back to the head leaves those of one list, where one thread stands for all.

    left: numbers that do not depend on the turn; 0 and 1 for predicates
    """

    steps: dict[str, Term]
    left: dict[str, int]
    facts: list[list[Term]]


@dataclass(frozen=True)
class Certificate:
    """All of it; `requires`: of parameters, low, high and what divides them."""

    ptx_sha256: str
    entry: str
    threads: int
    shared_bytes: int
    dynamic_bytes: int
    variables: dict[str, int]
    cell_bytes: int
    requires: dict[str, tuple[int, int, int]]
    assumes: list[str]
    fresh: bool
    ends: bool
    steady: dict[int, dict[int, int]] | None
    bounds: Promises | None
    placed: Statement | None
    skips: list[int]
    heads: list[Head]
    answers: Answers


def read_certificate(value: Any, answers: Answers | None = None) -> Certificate:
    """The certificate that JSON values are; CertificateError where they are none.

    answers: instead of those that it has
    """
    return _strictly(lambda: _read(value, answers))


def read_turn(value: Any, facts: Facts) -> Turn:
    """What is said of a loop, with symbols of its own."""

    def read() -> Turn:
        rest = dict(value)
        reader = _Terms(rest.pop("symbols"), Facts(facts.answers))
        reads = {
            "steps": _named(str, reader.term),
            "left": _named(str, whole),
            "facts": _list(_list(reader.term)),
        }
        return _record(Turn, reads)(rest)

    return _strictly(read)


def _strictly(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ) as error:
        raise CertificateError(f"this is no certificate: {error}") from None


def _read(value: dict[str, Any], answers: Answers | None) -> Certificate:
    rest = {name: member for name, member in value.items() if name != "sha256"}
    if value["schema"] != SCHEMA:
        raise CertificateError("this is no certificate of a known schema")
    text = json.dumps(rest, sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != value["sha256"]:
        raise CertificateError("the certificate is not what its sha256 says")
    found = answers or _record(Answers, _ANSWERS)(rest["answers"])
    reader = _Terms(rest.pop("symbols"), Facts(found))
    head = {**_HEAD, "facts": _list(reader.term)}
    head["terms"] = _named(str, _tuple(reader.term, whole, whole))
    head["truths"] = _named(str, reader.clause)
    del rest["schema"]
    others: dict[str, _Read] = {
        "heads": _list(_record(Head, head)),
        "answers": lambda _: found,
    }
    return _record(Certificate, _MEMBERS | others)(rest)


def _range(value: Any) -> tuple[int, int, int]:
    low, high, by = map(whole, value)
    return low, whole(high, low), whole(by, 1)


def _required(value: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    names = "low", "high", "multiple"
    return {str(o["parameter"]): _range([o[n] for n in names]) for o in value}


def _axis(name: str) -> str:
    require(name in _AXES, f"no axis: {name!r:.40}")
    return name


def _list(read: _Read) -> _Read:
    return lambda value: [read(one) for one in value]


def _tuple(*reads: _Read) -> _Read:
    return lambda value: tuple(r(v) for r, v in zip(reads, value, strict=True))


def _named(key: _Read, read: _Read) -> _Read:
    return lambda value: {key(n): read(one) for n, one in sorted(value.items())}


def _optional(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


def _record(kind: Callable[..., Any], reads: dict[str, _Read]) -> _Read:
    def read(value: dict[str, Any]) -> Any:
        expected = f"other members than {', '.join(sorted(reads))}"
        require(set(value) == set(reads), expected)
        return kind(**{name: one(value[name]) for name, one in reads.items()})

    return read


_POLYNOMIAL = _list(_tuple(whole, lambda names: tuple(map(str, names))))
_COUNT = _tuple(_POLYNOMIAL, lambda by: whole(by, 1))
_COLUMNS = _tuple(
    whole,
    whole,
    lambda every: whole(every, 1),
    lambda many: whole(many, 1),
    whole,
    _tuple(whole, whole, whole),
    _named(int, whole),
)
_ANSWERS: dict[str, _Read] = {
    "proofs": list,
    "asked": _list(whole),
    "places": _list(whole),
    "turns": _named(int, dict),
    "gathers": _named(int, _COLUMNS),
    "way": whole,
}
_HEAD: dict[str, _Read] = {
    "pc": whole,
    "turns": _named(int, whole),
    "spreads": _named(str, _tuple(whole, whole, whole)),
    "numbers": _list(str),
    "numbers_sha256": str,
    "cells_sha256": str,
    "sources_sha256": str,
}
_PROMISES: dict[str, _Read] = {
    "arrays": _named(str, _tuple(_POLYNOMIAL, _list(_POLYNOMIAL))),
    "values": _named(str, _POLYNOMIAL),
    "sizes": _named(str, _range),
    "grid": _named(_axis, _list(_COUNT)),
    "facts": _list(_POLYNOMIAL),
    "by_numbers": bool,
}
_MEMBERS: dict[str, _Read] = {
    "ptx_sha256": str,
    "entry": str,
    "threads": lambda value: whole(value, 1, _MOST_THREADS),
    "shared_bytes": lambda value: whole(value, 0, _MOST_SHARED),
    "dynamic_bytes": whole,
    "variables": _named(str, whole),
    "cell_bytes": whole,
    "requires": _required,
    "assumes": _list(str),
    "fresh": bool,
    "ends": bool,
    "steady": _optional(_named(int, _named(int, whole))),
    "bounds": _optional(_record(Promises, _PROMISES)),
    "placed": _optional(
        lambda value: (read_open_statement if is_open(value) else read_statement)(value)
    ),
    "skips": _list(whole),
}


class _Terms:
    """Reads terms; symbols of the table become what they stand for."""

    def __init__(self, symbols: dict[str, Any], facts: Facts):
        self.symbols, self.facts = symbols, facts
        self.known: dict[str, Term] = {}
        self.depth = 0

    def term(self, value: list[Any]) -> Term:
        found = terms.number(whole(value[0]))
        for symbol, factor in value[1:]:
            found = terms.plus(found, self.symbol(str(symbol)), whole(factor))
        return found

    def clause(self, value: list[Any]) -> Clause:
        return [[self.term(fact) for fact in one] for one in value]

    def symbol(self, name: str) -> Term:
        if name not in self.symbols:
            require(bool(_SYMBOL.fullmatch(name)), f"no name: {name!r:.40}")
            return {name: 1}
        if name not in self.known:
            self.depth += 1
            require(self.depth <= _MOST_DEPTH, "symbols that stand for themselves")
            self.known[name] = self._made(self.symbols[name])
            self.depth -= 1
        return self.known[name]

    def _made(self, value: dict[str, Any]) -> Term:
        if "divisor" in value:
            divisor = whole(value["divisor"], 1)
            return terms.quotient(self.term(value["dividend"]), divisor)
        if "factors" in value:
            found = terms.number(1)
            for one in value["factors"]:
                found = terms.product(found, self.symbol(str(one)))
            return found
        if "by" in value:
            parts = self.term(value["dividend"]), self.term(value["by"])
            return {terms.division(*parts)[bool(value["is_rest"])]: 1}
        true, false = self.clause(value["if"]), self.clause(value["unless"])
        self._check_opposite(true, false)
        return terms.choice(
            true, false, self.term(value["then"]), self.term(value["else"])
        )

    def _check_opposite(self, true: Clause, false: Clause) -> None:
        """One of both always holds, and never both: else there is no such choice."""
        both = [[*one, *other] for one in true for other in false]
        require(self.facts.excludes(both, [], []), "a choice whose sides may both hold")
        neither = [[[terms.opposite(f)] for f in one] for one in (*true, *false) if one]
        is_one = not all((*true, *false)) or self.facts.excludes([[]], [], neither)
        require(is_one, "a choice of which no side may hold")
