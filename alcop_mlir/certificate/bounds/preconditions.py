"""What callers promise of arrays, sizes and grids: what bounds are shown under.

Numbers are polynomials in named sizes: `((2, ("M", "K")), (8, ()))` is 2 * M * K + 8.
Where nothing else is said, a size is a parameter, by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from alcop_mlir.certificate.bounds.terms import ProductSymbols
from alcop_mlir.certificate.linear import Linear, constant
from alcop_mlir.certificate.state import Requirement

# Coefficients, and the sizes that each is multiplied by.
Polynomial = tuple[tuple[int, tuple[str, ...]], ...]
# A number, and what it is divided by, rounded up.
Count = tuple[Polynomial, int]


@dataclass(frozen=True)
class Array:
    """How many bytes may be accessed from where a pointer points on; none where one of
    `lengths` is 0.
    """

    bytes: Polynomial
    lengths: tuple[Polynomial, ...] = ()


@dataclass(frozen=True)
class Preconditions:
    """All of a kernel.

    arrays: by the parameter that points there
    values: of parameters that are sizes, or computed of such
    sizes:  what sizes may be
    grid:   by `%ctaid.x` and so on, numbers that are multiplied to that of blocks
    facts:  numbers that are not negative
    """

    arrays: Mapping[str, Array] = field(default_factory=dict)
    values: Mapping[str, Polynomial] = field(default_factory=dict)
    sizes: Mapping[str, Requirement] = field(default_factory=dict)
    grid: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)
    facts: tuple[Polynomial, ...] = ()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def to_json(self) -> dict[str, Any]:
        """As certificates store it."""
        return {
            "arrays": {
                name: [_listed(one.bytes), [_listed(n) for n in one.lengths]]
                for name, one in sorted(self.arrays.items())
            },
            "values": {n: _listed(v) for n, v in sorted(self.values.items())},
            "sizes": {
                name: [one.low, one.high, one.multiple]
                for name, one in sorted(self.sizes.items())
            },
            "grid": {
                name: [[_listed(value), by] for value, by in counts]
                for name, counts in sorted(self.grid.items())
            },
            "facts": [_listed(one) for one in self.facts],
        }


def preconditions(
    given: Mapping[str, Any], sizes: Mapping[str, Requirement]
) -> Preconditions:
    """Those of JSON values, as manifests give them; without sizes."""
    return Preconditions(
        {
            name: Array(_read(bytes_), tuple(map(_read, lengths)))
            for name, (bytes_, lengths) in given["arrays"].items()
        },
        {name: _read(value) for name, value in given["values"].items()},
        sizes,
        {
            name: tuple((_read(value), by) for value, by in counts)
            for name, counts in given["grid"].items()
        },
        tuple(map(_read, given["facts"])),
    )


def _read(value: Iterable[Any]) -> Polynomial:
    return tuple((factor, tuple(names)) for factor, names in value)


def _listed(value: Polynomial) -> list[Any]:
    return [[factor, list(names)] for factor, names in value]


def alone(name: str) -> Polynomial:
    """The polynomial that is one size."""
    return ((1, (name,)),)


def _of_blocks(given: Preconditions) -> dict[str, Requirement]:
    """Sizes as any block has them: it is there, so none that says how many blocks there
    are is 0.
    """
    found = dict(given.sizes)
    for value, _ in (one for counts in given.grid.values() for one in counts):
        if len(value) == 1 and value[0][0] > 0 and len(value[0][1]) == 1:
            ((_, (name,)),) = value
            if name in found:
                found[name] = replace(found[name], low=max(found[name].low, 1))
    return found


class Sizes:
    """Sizes as terms; parameters: bytes of each of a kernel, by name."""

    def __init__(
        self,
        symbols: ProductSymbols,
        given: Preconditions,
        parameters: Mapping[str, int],
    ):
        self.symbols, self.given, self.parameters = symbols, given, parameters
        self.known = _of_blocks(given)

    def size(self, name: str) -> Linear:
        """The term of one size, of what it is a multiple of if that is known."""
        half = 1 << (8 * self.parameters.get(name, 8) - 1)
        known = self.known.get(name, Requirement(-half, half - 1))
        low, high, by = known.low, known.high, known.multiple
        if by == 1:
            return self.symbols.plain(f".{name}", low, high)
        return self.symbols.plain(f".{name}/{by}", -(-low // by), high // by) * by

    def term(self, value: Polynomial) -> Linear:
        """The term of a polynomial in sizes."""
        found = constant(0)
        for factor, names in value:
            product = constant(factor)
            for name in names:
                product = self.symbols.product(product, self.size(name))
            found += product
        return found

    def count(self, value: Count) -> Linear:
        """A number rounded up after a division."""
        dividend, divisor = value
        return self.symbols.quotient(self.term(dividend) + (divisor - 1), divisor)

    def of_grid(self, axis: str) -> tuple[Linear, list[Linear]]:
        """The number of blocks along an axis, and facts about it where a block runs."""
        blocks, facts = constant(1), []
        for one in self.given.grid[axis]:
            number = self.count(one)
            blocks = self.symbols.product(blocks, number)
            facts += [number - 1] if number.terms else []
        return blocks, facts
