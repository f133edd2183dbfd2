"""The matrix product of an MLIR file, as the tuner sees it."""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis import computation
from alcop_mlir.analysis.host import host_functions
from alcop_mlir.bindings import ir
from alcop_mlir.errors import ConfigError
from alcop_mlir.inputs import Input
from alcop_mlir.tuning.problem import Problem

_ACCUMULATOR = "f32"  # whatever the op's own type
# The letters that steps give to loops.
_ROWS, _COLUMNS = "mpqr", "nstu"
_KINDS = {"M": _ROWS, "N": _COLUMNS, "K": "kxyz", "batch": "bcde"}


def problem_of(source: Input, name: str) -> Problem:
    """The one product in `source`; ConfigError where there is none, or another number.

    name: of the file, for messages
    """
    found = [
        (func, step)
        for func in host_functions(source.module)
        for step in computation.computation(func).steps
    ]
    if len(found) != 1:
        raise ConfigError(
            f"'{name}' computes {len(found) or 'no'} matrix products that can be "
            "tuned, expected one"
        )
    func, step = found[0]
    arrays = _arrays(func)
    first, second, maps = step.lhs, step.rhs, step.maps
    if _is_swapped(maps):  # the op's first input is B
        first, second, maps = second, first, _exchanged(maps)
    lhs, rhs = maps.split("->")[0].split(",")
    sizes = dict(zip(lhs, _shape(arrays[first]), strict=True))
    sizes.update(zip(rhs, _shape(arrays[second]), strict=True))
    loops = {
        kind: math.prod(size for loop, size in sizes.items() if loop in letters)
        for kind, letters in _KINDS.items()
    }
    a, b, out = (str(arrays[array].element_type) for array in (first, second, step.out))
    batched = set(sizes) & set(_KINDS["batch"])
    return Problem(
        loops["M"],
        loops["N"],
        loops["K"],
        loops["batch"],
        "batch_matmul" if batched else "matmul",
        (a, b, _ACCUMULATOR, out),
        f"{lhs},{rhs}",
    )


def _arrays(func: Any) -> dict[str, Any]:
    """The types of arguments and results, by the names that steps give them."""
    kind = ir.FunctionType(ir.TypeAttr(func.attributes["function_type"]).value)
    names = [computation.argument_name(n) for n in range(len(kind.inputs))]
    names += [
        computation.result_name(n, len(kind.results)) for n in range(len(kind.results))
    ]
    return dict(
        zip(names, map(ir.ShapedType, [*kind.inputs, *kind.results]), strict=True)
    )


def _is_swapped(maps: str) -> bool:
    """Whether the result has its columns before its rows."""
    kinds = [loop in _ROWS for loop in maps.split("->")[1] if loop in _ROWS + _COLUMNS]
    return kinds == sorted(kinds) and len(set(kinds)) == 2


def _exchanged(maps: str) -> str:
    """`maps` with rows and columns, and the two inputs, in each other's place."""
    letters = str.maketrans(_ROWS + _COLUMNS, _COLUMNS + _ROWS)
    inputs, out = maps.translate(letters).split("->")
    lhs, rhs = inputs.split(",")
    return f"{rhs},{lhs}->{out}"


def _shape(kind: Any) -> list[int]:
    if not kind.has_static_shape:
        raise ConfigError(f"{kind} has a size that is not known, expected numbers")
    return list(kind.shape)
