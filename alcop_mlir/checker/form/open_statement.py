"""What a kernel is said to compute of arrays whose sizes are known at run time only.

Extents and strides are polynomials in sizes. Elements are numbered as if each loop had
`APART` turns: so an index of an element is one number, from which those of its loops
are read again, whatever the sizes are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.checker.form.reading import require, whole
from alcop_mlir.checker.form.statement import (
    NO_SUM,
    Array,
    Statement,
    loop_of_sum,
    outputs_of,
)

APART = 1 << 20
_MOST_LOOPS = 3
_MEMBERS = {"extents", "arrays", "lhs", "rhs", "init", "order", "outputs"}
Polynomial = tuple[tuple[int, tuple[str, ...]], ...]


@dataclass(frozen=True)
class OpenStatement(Statement):
    """Of an array's loops the first one is that of the largest stride.

    sizes: extents; steps: by array, elements between neighbours along each loop
    """

    sizes: dict[str, Polynomial]
    steps: dict[str, dict[str, Polynomial]]


def is_open(value: Any) -> bool:
    """Whether JSON values are such a statement."""
    return isinstance(value, dict) and value.keys() == _MEMBERS


def read_open_statement(value: dict[str, Any]) -> OpenStatement:
    """Of JSON values, strictly."""
    every = {str(n): _polynomial(v) for n, v in value["extents"].items()}
    sizes = {n: v for n, v in every.items() if v != ((1, ()),)}
    steps = {
        str(name): _steps(loops, strides, every, sizes)
        for name, (loops, strides, _) in value["arrays"].items()
    }
    arrays = {
        str(name): Array(_apart([*steps[str(name)]]), _bytes(size))
        for name, (_, _, size) in value["arrays"].items()
    }
    order = _apart([str(n) for n in value["order"] if n in sizes])
    return OpenStatement(
        {**dict.fromkeys(sizes, APART), NO_SUM: 1},
        arrays,
        value["lhs"],
        value["rhs"],
        value["init"],
        loop_of_sum(value, arrays, order),
        order,
        outputs_of(value, arrays, order),
        (1, 1, 1),
        {**sizes, NO_SUM: ((1, ()),)},
        steps,
    )


def _steps(
    loops: str, strides: list[Any], every: dict[str, Polynomial], sizes: Any
) -> dict[str, Polynomial]:
    """Elements lie one behind the other: each stride is all that the next ones span."""
    require(len({*loops}) == len(loops), "a loop that indexes twice")
    span: Polynomial = ((1, ()),)
    found: dict[str, Polynomial] = {}
    for loop, stride in reversed(list(zip(loops, strides, strict=True))):
        if loop in sizes:
            require(_polynomial(stride) == span, "elements with gaps")
            found[loop] = span
        span = _product(span, every[loop])
    return dict(reversed(found.items()))


def _apart(loops: list[str]) -> dict[str, int]:
    require(len(loops) <= _MOST_LOOPS, "an array of many loops")
    return {n: APART ** (len(loops) - 1 - i) for i, n in enumerate(loops)}


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    found: dict[tuple[str, ...], int] = {}
    for a, names in one:
        for b, others in other:
            key = tuple(sorted((*names, *others)))
            found[key] = found.get(key, 0) + a * b
    return tuple(sorted((c, n) for n, c in found.items() if c))


def _polynomial(value: Any) -> Polynomial:
    found: dict[tuple[str, ...], int] = {}
    for factor, names in value:
        key = tuple(sorted(map(str, names)))
        found[key] = found.get(key, 0) + whole(factor)
    return tuple(sorted((c, n) for n, c in found.items() if c))


def _bytes(value: Any) -> int:
    require(value in (1, 2, 4, 8), f"no bytes of an element: {value!r:.40}")
    return whole(value)
