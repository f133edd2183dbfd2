"""What a call needs besides its arguments: arrays that are made once per weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime import call
from alcop_mlir.runtime.arrays import Array


def given_weights(
    function: Function, arrays: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """The arrays that the function which prepares weights takes, of those of a call.

    LaunchError where one is missing.
    """
    prepare = function.prepare
    weights = () if prepare is None else prepare.weights
    given = call.bind(function, arrays, named, weights)
    pairs = zip(function.parameters, given, strict=True)
    return [array for one, array in pairs if one.name in weights]


def views(
    function: Function, prepared: Sequence[Any], view: Callable[[Any, str], Array]
) -> dict[str, Array]:
    """The prepared arrays by name; LaunchError where they are not those it needs."""
    prepare = function.prepare
    wanted = () if prepare is None else prepare.arrays
    if len(prepared) != len(wanted):
        raise LaunchError(
            f"'{function.name}' got {len(prepared)} prepared arrays, expected the "
            f"{len(wanted)} that its `prepare` returns"
        )
    found: dict[str, Array] = {}
    for one, array in zip(wanted, prepared, strict=True):
        found[one.name] = seen = view(array, f"prepared array '{one.name}'")
        if seen.shape != one.shape or not seen.is_contiguous:
            raise LaunchError(
                f"prepared array '{one.name}' has shape {seen.shape}, expected "
                f"{one.shape}, without gaps: give what `prepare` returns"
            )
    return found
