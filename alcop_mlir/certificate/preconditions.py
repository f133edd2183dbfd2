"""What callers promise of arrays, sizes and grids: what bounds are shown under.

Numbers are polynomials in named sizes: `((2, ("M", "K")), (8, ()))` is 2 * M * K + 8.
Where nothing else is said, a size is a parameter, by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from alcop_mlir.certificate.state import Requirement
from alcop_mlir.certificate.values import PAST_ADDRESSES

_AXES = "xyz"  # of the grid
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

    @property
    def blocks(self) -> int | None:
        """How many a launch has; None where that, or the bytes of an array, is not the
        same of all.
        """
        lengths = [n for one in self.arrays.values() for n in (one.bytes, *one.lengths)]
        counts = [one for axis in self.grid.values() for one in axis]
        is_known = len(self.grid) == len(_AXES) and None not in map(_number, lengths)
        return _blocks(counts) if is_known else None

    def requirements(self) -> dict[str, Requirement]:
        """What that says of what a kernel is given: addresses of arrays, sizes that are
        known, and numbers of blocks along axes whose length is known.
        """
        found = {name: Requirement(0, PAST_ADDRESSES - 1) for name in self.arrays}
        for name, value in self.values.items():
            if (number := _number(value)) is not None:
                found[name] = Requirement(number, number)
        for axis, counts in self.grid.items():
            if (blocks := _blocks(counts)) is not None:
                found[axis] = Requirement(0, max(blocks - 1, 0))
        return found

    def with_numbers(self) -> Preconditions:
        """The same, with the number of each size that may be one only."""
        known = {n: one.low for n, one in self.sizes.items() if one.low == one.high}

        def put(value: Polynomial) -> Polynomial:
            return tuple(
                (
                    factor * prod(known.get(name, 1) for name in names),
                    tuple(name for name in names if name not in known),
                )
                for factor, names in value
            )

        return Preconditions(
            {
                name: Array(put(one.bytes), tuple(map(put, one.lengths)))
                for name, one in self.arrays.items()
            },
            {n: put(((1, (n,)),)) for n in known}
            | {n: put(v) for n, v in self.values.items()},
            {n: one for n, one in self.sizes.items() if n not in known},
            {
                axis: tuple((put(value), by) for value, by in counts)
                for axis, counts in self.grid.items()
            },
            tuple(map(put, self.facts)),
        )

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


def _number(value: Polynomial) -> int | None:
    """The number that it is, if there is no size in it."""
    if any(names for _, names in value):
        return None
    return sum(factor for factor, _ in value)


def _blocks(counts: Iterable[Count]) -> int | None:
    """How many blocks that are, if that is a number."""
    found = 1
    for value, by in counts:
        if (number := _number(value)) is None:
            return None
        found *= -(-number // by)
    return found


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
