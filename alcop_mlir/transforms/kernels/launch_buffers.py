"""Moves the shared buffers of a `gpu.launch` to allocations at its top level."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.host.launches import LAUNCH_ARGUMENTS
from alcop_mlir.analysis.ir.loops import is_inside
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.passes import build

_ATTRIBUTIONS = "workgroup_attributions"


def move_buffers_inside(launch: ir.Operation) -> None:
    """Turn workgroup attributions into allocations; move those from outside inside.

    Upstream's promotion allocates shared memory where the function begins. Such an
    allocation is moved into the launch if nothing else uses it.
    """
    _allocate_attributions(launch)
    function = launch
    while function.parent is not None and function.name != "func.func":
        function = function.parent.operation
    for alloc in shared_allocations(function):
        if is_inside(alloc, launch):
            continue
        users = [use.owner.operation for use in alloc.results[0].uses]
        others = [user for user in users if user.name != "memref.dealloc"]
        if others and all(is_inside(user, launch) for user in others):
            build.erase_deallocs(alloc.results[0])
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


def shared_allocations(function: ir.Operation) -> list[Any]:
    """The allocations in workgroup memory."""
    allocations = walk(function, "memref.alloc")
    return [op for op in allocations if is_workgroup(op.results[0].type)]


def _body(launch: ir.Operation) -> Any:
    return launch.regions[0].blocks[0]
