"""Which arguments of a compiled function another one makes, once per weights.

alcop-prepare-weights says so on the function. Changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.functions import Function, Prepare
from alcop_mlir.manifest.names import prepared_name


@frozen
class Preparation:
    """How many buffers `function` makes, of arguments by their numbers."""

    function: str
    weights: tuple[int, ...]
    arrays: int


def preparation(func: ir.Operation) -> Preparation | None:
    """What prepares weights for `func`; None where nothing does."""
    if alcop.PREPARE not in func.attributes:
        return None
    found: Any = ir.DictAttr(func.attributes[alcop.PREPARE])
    weights = tuple(number.value for number in found["weights"])
    return Preparation(found["function"].value, weights, found["arrays"].value)


def prepared(func: ir.Operation, function: Function) -> Function:
    """`function`, which `func` describes, with what it is given by another one."""
    found = preparation(func)
    if found is None:
        return function
    names = {prepared_name(number) for number in range(found.arrays)}
    every = function.parameters
    arrays = (
        Intermediate(one.name, one.dtype, one.shape)
        for one in every
        if one.name in names
    )
    weights = tuple(every[number].name for number in found.weights)
    return replace(
        function,
        parameters=tuple(one for one in every if one.name not in names),
        prepare=Prepare(found.function, weights, tuple(arrays)),
    )
