"""Copies the constant `memref.global`s that kernels read into their `gpu.module`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError

_GET, _GLOBAL = "memref.get_global", "memref.global"


def global_constants(module: ir.Operation) -> dict[str, Any]:
    """The `memref.global`s of a module, by name."""
    return {_symbol(op): op for op in _top(module) if op.name == _GLOBAL}


def copy_constants(known: Mapping[str, Any], kernels: ir.Operation) -> None:
    """Copy those of the `memref.global`s `known` that `kernels` reads into it."""
    copied = {_symbol(op) for op in _top(kernels) if op.name == _GLOBAL}
    first = ir.InsertionPoint.at_block_begin(kernels.regions[0].blocks[0])
    for get in _reads(kernels):
        name = ir.FlatSymbolRefAttr(get.attributes["name"]).value
        if name in copied:
            continue
        if name not in known or "constant" not in known[name].attributes:
            raise PassError(get, f"reads '{name}', expected a constant memref.global")
        known[name].clone(ip=first)
        copied.add(name)


def _top(module: ir.Operation) -> list[Any]:
    return [op.operation for op in module.operation.regions[0].blocks[0].operations]


def _symbol(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _reads(kernels: ir.Operation) -> list[Any]:
    return walk(kernels, _GET)
