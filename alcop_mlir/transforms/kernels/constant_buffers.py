"""Constant `memref.global`s that kernels read: arguments, or copied to their module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import written_roots
from alcop_mlir.analysis.ir.symbols import by_name
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError


def copy_constants(known: Mapping[str, Any], kernels: ir.Operation) -> None:
    """Copy those of the `memref.global`s `known` that `kernels` reads into it."""
    copied = set(by_name(kernels, "memref.global"))
    first = ir.InsertionPoint.at_block_begin(kernels.regions[0].blocks[0])
    for get in walk(kernels, "memref.get_global"):
        name = get.attributes["name"].value
        if name in copied:
            continue
        if name not in known or "constant" not in known[name].attributes:
            raise PassError(get, f"reads '{name}', expected a constant memref.global")
        known[name].clone(ip=first)
        copied.add(name)


def move_outside(launch: ir.Operation, stored: Collection[str]) -> None:
    """Move what gets the globals `stored` in the launch before it."""
    for get in walk(launch, "memref.get_global"):
        if get.attributes["name"].value in stored:
            get.move_before(launch)


def check_only_read(launch: ir.Operation, stored: Collection[str]) -> None:
    """PassError where the launch writes one of the globals `stored`."""
    for writer, target in written_roots(launch):
        get = None if target is None else made_by(target, "memref.get_global")
        if get is not None and get.attributes["name"].value in stored:
            name = get.attributes["name"].value
            raise PassError(writer, f"writes '{name}', which is constant")
