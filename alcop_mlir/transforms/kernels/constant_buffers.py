"""Copies the constant `memref.global`s that kernels read into their `gpu.module`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError


def copy_constants(known: Mapping[str, Any], kernels: ir.Operation) -> None:
    """Copy those of the `memref.global`s `known` that `kernels` reads into it."""
    copied = set(global_constants(kernels))
    first = ir.InsertionPoint.at_block_begin(kernels.regions[0].blocks[0])
    for get in walk(kernels, "memref.get_global"):
        name = get.attributes["name"].value
        if name in copied:
            continue
        if name not in known or "constant" not in known[name].attributes:
            raise PassError(get, f"reads '{name}', expected a constant memref.global")
        known[name].clone(ip=first)
        copied.add(name)


def global_constants(module: ir.Operation) -> dict[str, Any]:
    """The `memref.global`s of a module by name; not those of modules in it."""
    block = module.operation.regions[0].blocks[0]
    ops = (op.operation for op in block.operations)
    return {
        op.attributes["sym_name"].value: op for op in ops if op.name == "memref.global"
    }
