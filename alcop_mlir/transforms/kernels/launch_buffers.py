"""Moves the shared buffers of `gpu.launch` ops to allocations at their top level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from alcop_mlir.analysis.host.launches import LAUNCH_ARGUMENTS
from alcop_mlir.analysis.ir.loops import is_inside
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir
from alcop_mlir.passes import build, edit

_ATTRIBUTIONS = "workgroup_attributions"
_LAUNCH = "gpu.launch"


def move_buffers_inside(
    function: ir.Operation, launches: Sequence[ir.Operation]
) -> None:
    """Turn workgroup attributions into allocations; move those from outside inside.

    Upstream's promotion allocates shared memory where the function begins. Such an
    allocation is moved into one of the launches, all that `function` has, if nothing
    else uses it.
    """
    for launch in launches:
        _allocate_attributions(launch)
    for alloc in shared_allocations(function, enter=lambda op: op.name != _LAUNCH):
        users = [use.owner.operation for use in alloc.results[0].uses]
        others = [user for user in users if user.name != "memref.dealloc"]
        outside = around(others[0]) if others else ()
        launch = next((one for one in outside if one.name == _LAUNCH), None)
        if launch is not None and all(is_inside(user, launch) for user in others):
            edit.erase_deallocs(alloc.results[0])
            alloc.move_before(next(iter(_body(launch).operations)))


def _allocate_attributions(launch: ir.Operation) -> None:
    if _ATTRIBUTIONS not in launch.attributes:
        return
    count = launch.attributes[_ATTRIBUTIONS].value
    block = _body(launch)
    for _ in range(count):
        old = block.arguments[LAUNCH_ARGUMENTS]
        with launch.location, ir.InsertionPoint.at_block_begin(block):
            new = build.alloc(old.type)
        old.replace_all_uses_with(new)
        block.erase_argument(LAUNCH_ARGUMENTS)
    del launch.attributes[_ATTRIBUTIONS]


def shared_allocations(
    function: ir.Operation, enter: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The allocations in workgroup memory; `enter`: as of `walk`."""
    allocations = walk(function, "memref.alloc", enter=enter)
    return [op for op in allocations if is_workgroup(op.results[0].type)]


def _body(launch: ir.Operation) -> Any:
    return launch.regions[0].blocks[0]
