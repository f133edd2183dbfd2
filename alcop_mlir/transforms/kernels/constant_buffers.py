"""Gives a `gpu.module` the constant arrays that its kernels read."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError

_GET, _GLOBAL = "memref.get_global", "memref.global"


def bring_constants(module: Any, kernels: Any) -> None:
    """Copy the `memref.global`s that `kernels` names from the module around it."""
    known = {_symbol(op): op for op in _top(module) if op.name == _GLOBAL}
    brought = {_symbol(op) for op in _top(kernels) if op.name == _GLOBAL}
    first = ir.InsertionPoint.at_block_begin(kernels.regions[0].blocks[0])
    for get in _reads(kernels):
        name = ir.FlatSymbolRefAttr(get.attributes["name"]).value
        if name in brought:
            continue
        if name not in known or "constant" not in known[name].attributes:
            raise PassError(get, f"reads '{name}', expected an array that is constant")
        known[name].clone(ip=first)
        brought.add(name)


def _top(module: Any) -> list[Any]:
    return [op.operation for op in module.operation.regions[0].blocks[0].operations]


def _symbol(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _reads(kernels: Any) -> list[Any]:
    return walk(kernels, _GET)
