"""What a kernel computes, as certificates state it: a contraction of known extents, and
element-wise ops on its result; or such ops alone. Plain JSON values, as of promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from alcop_mlir.manifest.chain_statement import SCORES, chains
from alcop_mlir.manifest.contraction_statement import Contraction
from alcop_mlir.manifest.copied_values import copies
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

_MOST_WAYS = 64  # of several values that kernels may store
_Found = dict[Kernel, "dict[str, Any] | Unstated"]
_Option = tuple[dict[str, Any], Held, bool]


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
    rows = {n: dict(found[n]) for n in ("rows",) if n in found}
    for one in rows.values():
        one["arrays"] = sorted(names[array] for array in one["arrays"])
    if "chain" in found:
        rows["chain"] = _named(found["chain"], names)
        names[SCORES] = SCORES
    if "windows" in found:
        rows["windows"] = {names[n]: one for n, one in found["windows"].items()}
    return {
        **found,
        **rows,
        "arrays": {names[n]: one for n, one in found["arrays"].items()},
        "lhs": None if lhs is None else names[lhs],
        "rhs": None if rhs is None else names[rhs],
        "init": None if init is None else names[init],
        "outputs": {
            names[n]: sorted(names[r] for r in reads)
            for n, reads in found["outputs"].items()
        },
    }


def _named(chain: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """What is said of a chain's first contraction, by names of parameters."""
    operands = {n: names[chain[n]] for n in ("lhs", "rhs")}
    kept = {n: [names[one] for one in chain[n]] for n in ("kept",) if n in chain}
    reads = sorted(names[n] for n in chain["reads"])
    return {**chain, **operands, **kept, "reads": reads}


def stated(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any] | None:
    """The statement, or None where there is none."""
    try:
        return statement(function, kernel, parameters)
    except Unstated:
        return None


@lru_cache(maxsize=4)
def _of_function(function: Function) -> _Found:
    """Of each kernel, as they are launched one after the other, by names of arrays.

    Where it is not known which value a kernel stores, as of the transposes of several
    parts of an array, that is taken with which most kernels are stated.
    """
    ways = [_Way(0, 0, Held(Values(function)), {})]
    for launch in function.launches:
        before = ways
        for variant in launch.variants:
            ways = [one._replace(held=one.held.fork()) for one in before]
            for kernel in variant.kernels:
                ways = _best([new for one in ways for new in _next(one, kernel)])
            before = [
                new._replace(held=old.held)
                for old, new in zip(before, ways, strict=False)
            ]
    return ways[0].found


class _Way(NamedTuple):
    """What kernels may have done so far: how many of them are stated, and in how many
    arrays values are stored that have their shapes.
    """

    stated: int
    shaped: int
    held: Held
    found: _Found


def _next(way: _Way, kernel: Kernel) -> Iterator[_Way]:
    """Behind one more kernel."""
    try:
        options = _options(kernel, way.held)
    except Unstated as why:
        held = way.held.fork()
        held.forget(_arrays(kernel))
        yield way._replace(held=held, found={kernel: why, **way.found})
        return
    for made, held, is_shaped in options:
        found = {**way.found, kernel: made}
        yield _Way(way.stated + 1, way.shaped + is_shaped, held, found)


def _best(ways: list[_Way]) -> list[_Way]:
    """Those with most kernels that are stated, or one less; likely ones first."""
    most = max(one.stated for one in ways)
    found: dict[object, _Way] = {}
    for one in sorted(ways, key=lambda one: (-one.stated, -one.shaped)):
        if one.stated >= most - 1:
            found.setdefault(one.held.key, one)
    return [*found.values()][:_MOST_WAYS]


def _arrays(kernel: Kernel) -> list[str]:
    every = (one.array for one in kernel.arguments if isinstance(one, Pointer))
    return list(dict.fromkeys(every))


def _options(kernel: Kernel, held: Held) -> list[_Option]:
    """The one contraction of its arrays, or what adds up its parts, or moves alone; and
    what arrays hold behind it.
    """
    arrays = _arrays(kernel)
    if not {*arrays} <= held.values.arrays.keys():
        raise Unstated("weights that another function has prepared")
    of_two = [*chains(held, arrays)]
    if len(of_two) == 1:
        (chain,) = of_two
        made = chain.written(kernel.grid)
        chain.store()
        return [(made, chain.held, True)]
    merge = None if held.parts is None else held.parts.merged(held, kernel)
    if merge is not None:
        made = merge.written_merge(held.parts, kernel.grid)
        merge.store()
        merge.held.parts = None
        return [(made, merge.held, True)]
    contractions = held.values.contractions
    made_of, count = held.made_of(arrays), 0
    known = [one for one in contractions if {one.lhs, one.rhs} <= made_of]
    for reads, guesses, steps in (
        (Contraction.multiplies, False, known),
        (Contraction.multiplies, True, contractions),
        (Contraction.adds_parts, False, contractions),
    ):
        if guesses and not held.has_guesses(arrays):
            continue
        every = (Contraction(held.fork(), arrays, step, guesses) for step in steps)
        found = [one for one in every if reads(one)]
        if len(found) > 1:
            found = [one for one in found if one.uses_all()]
        count = count or len(found)
        if len(found) == 1:
            (one,) = found
            made = one.written(kernel.grid)
            one.store()
            return [(made, one.held, True)]
    options: list[_Option] = []
    found_moves = moves(held, arrays) if not count else []
    for moved in found_moves or ([] if count else copies(held, arrays)):
        after = held.fork()
        array, shapes = moved.stored.array, held.values.shapes
        is_shaped = shapes[array] in [shapes[value] for value in moved.values]
        options.append((_moved(moved, held.values, kernel), after, is_shaped))
        after.store(array, moved.values, moved.order)
    if not options:
        raise Unstated(f"the manifest has {count} contractions of its arrays")
    return options


def _moved(moved: Moved, values: Values, kernel: Kernel) -> dict[str, Any]:
    """What is computed element by element, as JSON values: nothing is summed."""
    array, order = moved.stored.array, moved.loops
    used: Mapping[str, Operand] = {array: moved.stored, **moved.read}
    rows = {"loops": moved.row_loops, "arrays": sorted(moved.rows)}
    if is_known(used):
        members = known_members(used, values.arrays, kernel.grid)
    elif moved.rows or any(one.strides for one in used.values()):
        raise Unstated("rows, or parts of arrays, of sizes not known")
    else:
        used, order = merged(used, order, values.arrays)
        members = open_members(used, values.arrays)
    return {
        **members,
        "lhs": None,
        "rhs": None,
        "init": None,
        "order": order,
        "outputs": {array: sorted(moved.own)},
        **({"rows": rows} if moved.rows else {}),
    }
