"""Which loops of an op on tensors could be one, as dimensions that were one before.

`find_collapsed` looks at a `linalg.generic` that reads what a `tensor.expand_shape`
made, and says which of its loops to collapse so that it reads the source instead. A
reshape from and to loops of one iteration may have been folded into the op's maps.
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from alcop_mlir.analysis.ir.loops import defining_op, made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

Parts = tuple[tuple[int, ...], ...]  # dimensions or loops, those together that are one

EXPAND = "tensor.expand_shape"


@frozen
class CollapsedOp:
    """An op with fewer loops.

    groups:  of its loops, those that become one together
    parts:   the same of the dimensions of each operand, in the op's order
    refused: why other loops stay apart
    """

    groups: Parts
    parts: tuple[Parts, ...]
    refused: tuple[str, ...]


def find_collapsed(view: LinalgView) -> CollapsedOp:
    """The loops to collapse, by all inputs that were expanded; `groups` may be those
    that the op has. One of a single iteration goes where a computed input lacks it.
    """
    wanted: dict[tuple[int, ...], str | None] = {}
    for pair in _single_loops(view):
        wanted[pair] = _why_not(view, pair)
    for operand in view.inputs:
        expand = made_by(operand.value, EXPAND)
        if expand is None:
            continue
        for part in parts_of(expand):
            loops = tuple(operand.loops[number] for number in part)
            if len(part) > 1 and loops not in wanted:
                wanted[loops] = _why_not(view, loops)  # type: ignore[index]
    found = [group for group, why_not in wanted.items() if why_not is None]
    groups = _all_groups(view.rank, found)
    parts = tuple(_parts(operand, groups) for operand in view.operands)
    refused = tuple(dict.fromkeys(why for why in wanted.values() if why))
    return CollapsedOp(groups, parts, refused)


def _single_loops(view: LinalgView) -> Iterator[tuple[int, int]]:
    """Loops of one iteration that a computed matrix lacks, each with a neighbour.

    Arguments and vectors may lack them where all that is computed has them.
    """
    single = {loop for loop in range(view.rank) if view.static_size(loop) == 1}
    others = {*range(view.rank)} - single
    if not any(
        len(one.loops) > 1
        and others <= {*one.loops}
        and single - {*one.loops}
        and _is_computed(one.value)
        for one in view.inputs
    ):
        return
    for one, other in pairwise(view.outputs[0].loops):
        if one is not None and other is not None and {one, other} & single:
            yield one, other


def _is_computed(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name.startswith("linalg.")


def parts_of(reshape: ir.Operation) -> Parts:
    """The dimensions of the longer shape of a reshape, by those of the shorter one."""
    groups = reshape.attributes["reassociation"]
    return tuple(tuple(map(int, group)) for group in groups)


def _why_not(view: LinalgView, loops: Sequence[int | None]) -> str | None:
    """Why the loops cannot be one."""
    if None in loops or len(set(loops)) != len(loops):
        return "it indexes what was expanded by more than loops"
    group = [loop for loop in loops if loop is not None]
    if not all(_is_static(one.value.type) for one in view.operands):
        return "it has sizes that are known at run time only"
    if len({loop in view.reductions for loop in group}) > 1:
        return "it reduces a part of what was one dimension"
    indices = walk(view.op, "linalg.index")
    if any(one.attributes["dim"].value in group for one in indices):
        return "it computes with the number of an iteration"
    misfits = (_misfit(view, one, group) for one in view.operands)
    return next(filter(None, misfits), None)


def _is_static(kind: ir.Type) -> bool:
    """Whether all sizes are known; so they are of a number."""
    return not isinstance(kind, ir.RankedTensorType) or kind.has_static_shape


def _misfit(view: LinalgView, operand: Operand, group: Sequence[int]) -> str | None:
    """Why the loops of a group cannot index an operand as one; None if they can.

    It has all of them, next to each other and in order, or none. Loops of one iteration
    it may lack, or have alone.
    """
    if any(one.loop is None and {*one.loops} & {*group} for one in operand.indices):
        return "it computes an index of what was one dimension"
    places = [n for n, loop in enumerate(operand.loops) if loop in group]
    present = [operand.loops[n] for n in places]
    long = [loop for loop in group if view.static_size(loop) != 1]
    if not places or not {*present} & {*long}:
        return None
    is_run = places == [*range(places[0], places[-1] + 1)]
    ordered = [loop for loop in group if loop in present]
    if is_run and present == ordered and {*long} <= {*present}:
        return None
    return "an operand has a part of what was one dimension, or has it in another order"


def _all_groups(rank: int, joined: Sequence[tuple[int, ...]]) -> Parts:
    """The groups, and each other loop alone, in the order of their first loops."""
    taken: set[int] = set()
    first: dict[int, tuple[int, ...]] = {}
    for group in joined:
        if not taken & {*group}:
            first[group[0]] = group
            taken.update(group)
    return tuple(
        first.get(loop, (loop,))
        for loop in range(rank)
        if loop in first or loop not in taken
    )


def _parts(operand: Operand, groups: Parts) -> Parts:
    """The dimensions of an operand, those together that have loops of one group."""
    of_loop = {loop: n for n, group in enumerate(groups) for loop in group}
    parts: list[list[int]] = []
    last: int | None = None
    for number, loop in enumerate(operand.loops):
        group = None if loop is None else of_loop[loop]
        if group is None or group != last:
            parts.append([])
        parts[-1].append(number)
        last = group
    return tuple(map(tuple, parts))
