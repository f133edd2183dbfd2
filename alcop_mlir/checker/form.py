"""A certificate as it is stored, read strictly: what is missing or odd is refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from alcop_mlir.checker import terms
from alcop_mlir.checker.facts import Facts
from alcop_mlir.checker.terms import Clause, Term
from alcop_mlir.errors import CertificateError

SCHEMA = 3
_MEMBERS = frozenset(
    "schema ptx_sha256 entry threads shared_bytes dynamic_bytes variables cell_bytes "
    "requires assumes fresh ends steady bounds skips symbols heads sha256".split()
)
_OF_HEAD = frozenset(
    "pc turns terms truths spreads numbers numbers_sha256 cells_sha256 "
    "sources_sha256 facts".split()
)
_SYMBOL = re.compile(r"[\w$%@&.*/]+")
_AXES = {"%ctaid.x", "%ctaid.y", "%ctaid.z"}
_MOST_THREADS = 1024
_MOST_SHARED = 1 << 18
_MOST_DEPTH = 32  # symbols inside of symbols


@dataclass(frozen=True)
class Head:
    """One listed state at the head of a loop."""

    pc: int
    turns: dict[int, int]
    terms: dict[str, tuple[Term, int, int]]
    truths: dict[str, Clause]
    spreads: dict[str, tuple[int, int, int]]
    numbers: tuple[str, ...]
    digests: tuple[str, str, str]  # of numbers, cells, sources
    facts: tuple[Term, ...]

    @property
    def registers(self) -> Iterable[str]:
        """Those of which it says something."""
        return (*self.terms, *self.truths, *self.spreads, *self.numbers)


Polynomial = list[tuple[int, tuple[str, ...]]]  # numbers, and sizes by name


@dataclass(frozen=True)
class Promises:
    """What callers promise, by names of parameters, sizes and axes of the grid.

    arrays: bytes behind a pointer, and lengths of which none is 0 where there are any
    sizes:  low, high and what divides them
    grid:   numbers that are multiplied, each with what it is divided by, rounded up
    facts:  numbers that are not negative
    """

    arrays: dict[str, tuple[Polynomial, list[Polynomial]]]
    values: dict[str, Polynomial]
    sizes: dict[str, tuple[int, int, int]]
    grid: dict[str, list[tuple[Polynomial, int]]]
    facts: list[Polynomial]


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
    assumes: set[str]
    fresh: bool
    ends: bool
    steady: dict[int, dict[int, int]] | None
    bounds: Promises | None
    skips: frozenset[int]
    heads: tuple[Head, ...]


def read_certificate(value: Any) -> Certificate:
    """The certificate that JSON values are; CertificateError where they are none."""
    try:
        return _read(value)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CertificateError(f"this is no certificate: {error}") from None


def _read(value: dict[str, Any]) -> Certificate:
    if set(value) != _MEMBERS or value["schema"] != SCHEMA:
        raise CertificateError("this is no certificate of a known schema")
    rest = {name: member for name, member in value.items() if name != "sha256"}
    text = json.dumps(rest, sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != value["sha256"]:
        raise CertificateError("the certificate is not what its sha256 says")
    threads, shared = _whole(value["threads"]), _whole(value["shared_bytes"])
    if not 0 < threads <= _MOST_THREADS or not 0 <= shared <= _MOST_SHARED:
        raise CertificateError(
            "a certificate for more threads or bytes than a block has"
        )
    reader = _Terms(value["symbols"])
    requires = {
        one["parameter"]: (
            _whole(one["low"]),
            _whole(one["high"]),
            _whole(one["multiple"]),
        )
        for one in value["requires"]
    }
    if any(by < 1 or low > high for low, high, by in requires.values()):
        raise CertificateError("a requirement that no number meets")
    return Certificate(
        ptx_sha256=str(value["ptx_sha256"]),
        entry=str(value["entry"]),
        threads=threads,
        shared_bytes=shared,
        dynamic_bytes=_whole(value["dynamic_bytes"]),
        variables={str(n): _whole(at) for n, at in value["variables"].items()},
        cell_bytes=_whole(value["cell_bytes"]),
        requires=requires,
        assumes=set(map(str, value["assumes"])),
        fresh=value["fresh"] is True,
        ends=value["ends"] is True,
        steady=_steady(value["steady"]),
        bounds=_promises(value["bounds"]),
        skips=frozenset(map(_whole, value["skips"])),
        heads=tuple(_head(one, reader) for one in value["heads"]),
    )


def _head(value: dict[str, Any], reader: _Terms) -> Head:
    if set(value) != _OF_HEAD:
        raise CertificateError("this is no certificate: a state with other members")
    return Head(
        pc=_whole(value["pc"]),
        turns=_numbers(value["turns"]),
        terms={
            str(name): (reader.term(term), _whole(low), _whole(high))
            for name, (term, low, high) in value["terms"].items()
        },
        truths={str(n): reader.clause(c) for n, c in value["truths"].items()},
        spreads={
            str(name): (_whole(step), _whole(low), _whole(high))
            for name, (step, low, high) in value["spreads"].items()
        },
        numbers=tuple(map(str, value["numbers"])),
        digests=(
            str(value["numbers_sha256"]),
            str(value["cells_sha256"]),
            str(value["sources_sha256"]),
        ),
        facts=tuple(map(reader.term, value["facts"])),
    )


def _numbers(value: dict[str, Any]) -> dict[int, int]:
    return {int(name): _whole(number) for name, number in value.items()}


def _steady(value: dict[str, Any] | None) -> dict[int, dict[int, int]] | None:
    if value is None:
        return None
    return {int(pc): _numbers(steps) for pc, steps in value.items()}


def _promises(value: dict[str, Any] | None) -> Promises | None:
    if value is None:
        return None
    if set(value) != {"arrays", "values", "sizes", "grid", "facts"}:
        raise CertificateError("this is no certificate: promises with other members")
    arrays = {
        str(name): (_polynomial(bytes_), [_polynomial(one) for one in lengths])
        for name, (bytes_, lengths) in value["arrays"].items()
    }
    values = {str(n): _polynomial(one) for n, one in value["values"].items()}
    sizes = {
        str(n): (_whole(low), _whole(high), _whole(by))
        for n, (low, high, by) in value["sizes"].items()
    }
    grid = {
        str(axis): [(_polynomial(one), _whole(by)) for one, by in counts]
        for axis, counts in value["grid"].items()
    }
    if not {*grid} <= _AXES or any(by < 1 for c in grid.values() for _, by in c):
        raise CertificateError("this is no certificate: no grid of blocks")
    if any(by < 1 or low > high for low, high, by in sizes.values()):
        raise CertificateError("a promise that no number meets")
    facts = [_polynomial(one) for one in value["facts"]]
    return Promises(arrays, values, sizes, grid, facts)


def _polynomial(value: list[Any]) -> Polynomial:
    return [(_whole(factor), tuple(map(str, names))) for factor, names in value]


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise CertificateError(
            f"this is no certificate: no whole number: {value!r:.40}"
        )
    return value


class _Terms:
    """Reads terms; symbols of the table become what they stand for."""

    def __init__(self, symbols: dict[str, Any]):
        self.symbols = symbols
        self.known: dict[str, Term] = {}
        self.depth = 0

    def term(self, value: list[Any]) -> Term:
        found = terms.number(_whole(value[0]))
        for symbol, factor in value[1:]:
            found = terms.plus(found, self.symbol(str(symbol)), _whole(factor))
        return found

    def clause(self, value: list[Any]) -> Clause:
        return [[self.term(fact) for fact in one] for one in value]

    def symbol(self, name: str) -> Term:
        if name not in self.symbols:
            if not _SYMBOL.fullmatch(name):
                raise CertificateError(f"this is no certificate: no name: {name!r:.40}")
            return {name: 1}
        if name not in self.known:
            self.depth += 1
            if self.depth > _MOST_DEPTH:
                raise CertificateError("symbols that stand for themselves")
            self.known[name] = self._made(self.symbols[name])
            self.depth -= 1
        return self.known[name]

    def _made(self, value: dict[str, Any]) -> Term:
        if "divisor" in value:
            divisor = _whole(value["divisor"])
            if divisor < 1:
                raise CertificateError("a division by no positive number")
            return terms.quotient(self.term(value["dividend"]), divisor)
        true, false = self.clause(value["if"]), self.clause(value["unless"])
        _check_opposite(true, false)
        return terms.choice(
            true, false, self.term(value["then"]), self.term(value["else"])
        )


def _check_opposite(true: Clause, false: Clause) -> None:
    """One of both always holds, and never both: else there is no such choice."""
    facts = Facts()
    for one in true:
        for other in false:
            if not facts.contradict([*one, *other], []):
                raise CertificateError("a choice whose sides may both hold")
    neither = [[[terms.opposite(f)] for f in one] for one in (*true, *false) if one]
    if all((*true, *false)) and not facts.contradict([], neither):
        raise CertificateError("a choice of which no side may hold")
