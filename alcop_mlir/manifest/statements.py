"""What a kernel computes, as certificates state it: a contraction of known extents, and
element-wise ops on its result; or such ops alone. Plain JSON values, as of promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from alcop_mlir.manifest.contraction_statement import Contraction
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.held_values import Held, Operand, Values
from alcop_mlir.manifest.kernels import Kernel, Pointer
from alcop_mlir.manifest.moved_values import Moved, moves
from alcop_mlir.manifest.stated_arrays import (
    Unstated,
    is_known,
    known_members,
    merged,
    open_members,
)
from alcop_mlir.reference.steps import Einsum


def statement(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any]:
    """What the kernel computes; raises Unstated where that is no such contraction.

    parameters: the names of those of the kernel
    """
    found = _of_function(function)[kernel]
    if isinstance(found, Unstated):
        raise found
    given = dict(zip(parameters, kernel.arguments, strict=False))
    names = {one.array: name for name, one in given.items() if isinstance(one, Pointer)}
    lhs, rhs, init = (found[n] for n in ("lhs", "rhs", "init"))
    return {
        **found,
        "arrays": {names[n]: one for n, one in found["arrays"].items()},
        "lhs": None if lhs is None else names[lhs],
        "rhs": None if rhs is None else names[rhs],
        "init": None if init is None else names[init],
        "outputs": {
            names[n]: sorted(names[r] for r in reads)
            for n, reads in found["outputs"].items()
        },
    }


def stated(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any] | None:
    """The statement, or None where there is none."""
    try:
        return statement(function, kernel, parameters)
    except Unstated:
        return None


@lru_cache(maxsize=4)
def _of_function(function: Function) -> dict[Kernel, dict[str, Any] | Unstated]:
    """Of each kernel, as they are launched one after the other, by names of arrays."""
    held = Held(Values(function))
    found: dict[Kernel, dict[str, Any] | Unstated] = {}
    for launch in function.launches:
        before = held
        for variant in launch.variants:
            held = before.fork()
            for kernel in variant.kernels:
                try:
                    found[kernel], held = _of_kernel(kernel, held)
                except Unstated as why:
                    held.forget(_arrays(kernel))
                    found.setdefault(kernel, why)
    return found


def _arrays(kernel: Kernel) -> list[str]:
    every = (one.array for one in kernel.arguments if isinstance(one, Pointer))
    return list(dict.fromkeys(every))


def _of_kernel(kernel: Kernel, held: Held) -> tuple[dict[str, Any], Held]:
    """The one contraction of its arrays, or what adds up its parts, or moves alone; and
    what arrays hold behind it.
    """
    arrays = _arrays(kernel)
    steps = [one for one in held.values.function.reference if isinstance(one, Einsum)]
    count = 0
    for reads, guesses in (
        (Contraction.multiplies, False),
        (Contraction.multiplies, True),
        (Contraction.adds_parts, False),
    ):
        every = (Contraction(held.fork(), arrays, step, guesses) for step in steps)
        found = [one for one in every if reads(one)]
        if len(found) > 1:
            found = [one for one in found if one.uses_all()]
        count = count or len(found)
        if len(found) == 1:
            (one,) = found
            made = one.written(kernel.grid)
            one.store()
            return made, one.held
    moved = moves(held, arrays) if not count else None
    if moved is None:
        raise Unstated(f"the manifest has {count} contractions of its arrays")
    made = _moved(moved, held.values, kernel)
    held.store(moved.array, moved.values)
    return made, held


def _moved(moved: Moved, values: Values, kernel: Kernel) -> dict[str, Any]:
    """What is computed element by element, as JSON values: nothing is summed."""
    used: Mapping[str, Operand] = {
        moved.array: Operand(moved.array, moved.shape, moved.loops),
        **moved.read,
    }
    order = moved.loops
    if is_known(used):
        members = known_members(used, values.arrays, kernel.grid)
    else:
        used, order = merged(used, order)
        members = open_members(used, values.arrays)
    return {
        **members,
        "lhs": None,
        "rhs": None,
        "init": None,
        "order": order,
        "outputs": {moved.array: sorted(moved.read)},
    }
