"""Move loads of scalars from the host into the kernels that use them.

Before:  %x = memref.load %s[] : memref<f32>
         gpu.launch ... { use(%x) }
After:   gpu.launch ... { %x = memref.load %s[] : memref<f32>
           use(%x) }

The host cannot access GPU memory; such loads come from `tensor.extract`, for example.
Where an op between the load and the launch may write the memref, the load is left
unchanged, with a remark.

Runs after the passes that make launches, and before alcop-plan-pipelines, which looks
at where values in a loop come from. Writes `alcop.reason` on
loads that are left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import ancestor_in
from alcop_mlir.analysis.ir.memory import may_alias, root, written_roots
from alcop_mlir.analysis.ir.walk import around, host_blocks
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass

_LAUNCH = "gpu.launch"
_NO_WRITES = ("cf.assert", "memref.dealloc")


@frozen
class SinkLoads(Pass):
    name = "alcop-sink-loads"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in host_blocks(op):
            ops = [op.operation for op in block.operations]
            loads = [op for op in ops if op.name == "memref.load"]
            for load in reversed(loads):  # an index may be another load's result
                for launch in _launches_using(load):
                    _sink(load, launch)
            edit.erase_unused(reversed(loads))


def _launches_using(load: ir.Operation) -> list[Any]:
    """The launches that use the loaded value, in no order."""
    users = (use.owner.operation for use in load.results[0].uses)
    launches = [op for user in users for op in around(user) if op.name == _LAUNCH]
    return list(dict.fromkeys(launches))


def _sink(load: ir.Operation, launch: ir.Operation) -> None:
    writer = _writer_between(load, launch)
    if writer is not None:
        reason = f"'{writer.name}' may write the memref before the value is used"
        alcop.give_reason(load, reason)
        diagnostics.remark(load, f"'memref.load' is left unchanged: {reason}")
        return
    (body,) = launch.regions[0].blocks
    with ir.InsertionPoint.at_block_begin(body), load.location:
        copy = load.clone(ip=ir.InsertionPoint.current)
    edit.remap(launch, {load.results[0]: copy.results[0]})


def _writer_between(load: ir.Operation, launch: ir.Operation) -> Any | None:
    """An op after the load, up to the end of the launch, that may write its source.

    Of the branches that the launch is in, all is looked at.
    """
    source = root(load.operands[0])
    last = ancestor_in(launch, load.block)
    passed = False
    for op in load.block.operations:
        for writer, target in _writes(op) if passed else ():
            if target is None or may_alias(source, target, noalias_arguments=True):
                return writer
        if op.operation == last:
            return None
        passed |= op.operation == load
    return None


def _writes(op: ir.Operation) -> Iterator[tuple[Any, Any | None]]:
    """Writers in `op`, each with the memref that it may write, None if unknown."""
    if op.operation.name in (_LAUNCH, "scf.if"):
        for region in op.operation.regions:
            for inner in (one for block in region.blocks for one in block.operations):
                yield from _writes(inner)
    elif op.operation.name not in _NO_WRITES:
        yield from written_roots(op)
