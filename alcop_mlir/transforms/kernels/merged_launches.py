"""Functions with a launch that a host function calls several times, and their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir.symbols import name_of, top_level
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.buffer_labels import (
    arguments_called,
    origins,
    relabelled,
)
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.passes import edit

_LAUNCH, _CALL = "gpu.launch", "func.call"


def merged_functions(module: ir.Operation) -> dict[str, Any]:
    """The functions that alcop-merge-launches has made, by name."""
    functions = top_level(module, "func.func")
    return {name_of(one): one for one in functions if alcop.MERGED in one.attributes}


def launches_of(function: ir.Operation, merged: Mapping[str, Any]) -> list[Any]:
    """Each `gpu.launch` that the function is, or calls, in the order of the program."""
    found: list[Any] = []
    for op in walk(function, _LAUNCH, _CALL):
        callee = _callee(op, merged)
        if callee is not None:
            found += walk(callee, _LAUNCH)
        elif op.name == _LAUNCH:
            found.append(op)
    return found


def inline_calls(function: ir.Operation, merged: Mapping[str, Any]) -> None:
    """Do what the merged functions do where the function calls them.

    Upstream's `inline` would not say what the host calls the buffers of a pipeline.
    """
    calls = [(op, _callee(op, merged)) for op in walk(function, _CALL)]
    names: dict[Any, str] = {}
    for call, callee in calls:
        if callee is not None:
            names = names or origins(function)
            _inline(call, callee, names)


def _callee(op: ir.Operation, merged: Mapping[str, Any]) -> Any | None:
    return merged.get(op.attributes["callee"].value) if op.name == _CALL else None


def _inline(call: ir.Operation, callee: ir.Operation, names: Mapping[Any, str]) -> None:
    (block,) = callee.regions[0].blocks
    mapping = dict(zip(block.arguments, call.operands, strict=True))
    here = arguments_called(names, list(call.operands))
    *ops, _ = (op.operation for op in block.operations)
    with ir.InsertionPoint(call):
        for op in ops:
            made = edit.clone(op, mapping)
            made.location = call.location
            _relabel(made, here)
    call.erase()


def _relabel(launch: ir.Operation, names: Mapping[str, str]) -> None:
    """Call the buffers of pipelines what the host does."""
    decided = alcop.get_plain(launch, alcop.DECISIONS)
    if decided and "pipelines" in decided:
        for one in decided["pipelines"]:
            one["buffer"] = relabelled(one["buffer"], names)
        launch.attributes[alcop.DECISIONS] = to_attribute(decided)
