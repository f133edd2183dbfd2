"""Keep one of several equal launches, in a function that the host calls for each.

Before:  func.func @f(%A, %B, %C, %D) { gpu.launch ... { use(%A, %C) }
                                        gpu.launch ... { use(%B, %D) } }
After:   func.func @f(%A, %B, %C, %D) { call @f_matmul(%A, %C)
                                        call @f_matmul(%B, %D) }
         func.func private @f_matmul(%0, %1) attributes {alcop.merged} {
           gpu.launch ... { use(%0, %1) } }

Launches are equal where the texts of such functions are. A function has all that the
host computes for the launch by pure ops, as constants, sizes and views; its arguments
say what passes could see of the values there: `llvm.noalias` that one is an allocation,
`alcop.alignment` and `alcop.row_alignment` what is promised. So the passes that follow
decide as they would on the host, once for all of them: a network has hundreds of
launches, but a few dozen different ones. Its ops have the locations of all of them, at
each of which remarks are made. A launch without an equal one is left where it is.

Runs before alcop-plan-pipelines, after canonicalize and cse, which make more launches
equal. alcop-outline-kernels makes one kernel of such a function, and launches it where
the function is called. Upstream's duplicate-function-elimination keeps one of equal
functions as well, but forgets where the others stand.

Writes `alcop.merged`, and on arguments what is said above; alcop-outline-kernels erases
the functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.host import launches
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.symbols import name_of, text_of, top_level, unused_name
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import func, ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tiling.thread_points import KERNEL

_LAUNCH = "gpu.launch"


@frozen
class MergeLaunches(Pass):
    name = "alcop-merge-launches"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        equal: dict[str, list[_Outlined]] = {}
        for function in top_level(op, "func.func"):
            for launch in walk(function, _LAUNCH):
                made = _outlined(launch, function)
                if made is not None:
                    equal.setdefault(text_of(made.function), []).append(made)
        taken = {name_of(one) for one in top_level(op) if "sym_name" in one.attributes}
        for same in equal.values():
            if len(same) > 1:
                _keep_first(same, taken)
            for one in same[len(same) > 1 :]:
                one.function.erase()


@frozen
class _Outlined:
    """A launch, the function that it would be, and what the host would call it with."""

    launch: Any
    host: Any
    function: Any
    operands: tuple[Any, ...]
    sunk: tuple[Any, ...]


def _outlined(launch: ir.Operation, host: ir.Operation) -> _Outlined | None:
    """The launch as a function at the module's end; None where it can be no kernel."""
    needs = launches.needs(launch)
    if isinstance(needs, Rejected):
        return None
    operands = (*needs.memrefs, *needs.scalars)
    kinds = [value.type for value in operands]
    end = ir.InsertionPoint(host.block)
    with launch.location, end:
        made = func.FuncOp("", ir.FunctionType.get(kinds, []), visibility="private")
    made.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get(launches.known_of(value)) for value in operands]
    )
    entry = made.add_entry_block()
    mapping = dict(zip(operands, entry.arguments, strict=True))
    with launch.location, ir.InsertionPoint(entry):
        for op in (*needs.sunk, launch):
            edit.clone(op, mapping)
        func.ReturnOp([])
    return _Outlined(launch, host, made.operation, operands, needs.sunk)


def _keep_first(same: Sequence[_Outlined], taken: set[str]) -> None:
    """Call the function of the first of equal launches instead of each."""
    first = same[0]
    _give_locations(same)
    name = unused_name(_name(first), taken)
    first.function.attributes["sym_name"] = ir.StringAttr.get(name)
    first.function.attributes[alcop.MERGED] = ir.UnitAttr.get()
    first.function.move_after(first.host)
    for one in same:
        with one.launch.location, ir.InsertionPoint(one.launch):
            func.CallOp([], name, one.operands)
        one.launch.erase()
        edit.erase_unused(reversed(one.sunk))


def _name(one: _Outlined) -> str:
    """As its kernel is called."""
    kernel = one.launch.attributes.get(KERNEL)
    host = name_of(one.host)
    return host if kernel is None else f"{host}_{kernel.value}"


def _give_locations(same: Sequence[_Outlined]) -> None:
    """Give the ops of the first function the locations of the others, too."""
    places = {one.launch.location.attr: one.function for one in reversed(same)}
    if len(places) == 1:
        return
    for first, *others in zip(*map(walk, reversed(places.values())), strict=True):
        first.location = diagnostics.merged(op.location for op in (first, *others))
