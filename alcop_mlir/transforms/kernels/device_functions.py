"""Defines the functions of libdevice that kernels call.

Upstream lowers `math.exp` to a call of `__nv_expf`, which is in CUDA's own library;
that library is not linked here. `device_functions.mlir` and the files beside it define
such functions in the llvm dialect; one that they lack is an error at the op that needs
it. Other functions stay declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alcop_mlir.analysis.ir.symbols import by_name
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError

_FUNCTION = "llvm.func"
_LIBDEVICE = "__nv_"  # how the names of its functions begin
_SOURCES = (
    "device_functions.mlir",
    "trigonometric_functions.mlir",
    "f64_functions.mlir",
)


def define_called(kernels: ir.Operation) -> None:
    """Define each declared function that the sources define.

    PassError at a call of another function of libdevice.
    """
    body = kernels.regions[0].blocks[0]
    functions = by_name(kernels, _FUNCTION)
    declared = {n: op for n, op in functions.items() if not op.regions[0].blocks}
    if not declared:
        return
    texts = (Path(__file__).with_name(name).read_text("utf-8") for name in _SOURCES)
    library = ir.Module.parse("\n".join(texts), context=kernels.context)
    known = by_name(library, _FUNCTION)
    _check_known(kernels, [name for name in declared if name not in known], known)
    for name in _needed([name for name in declared if name in known], known):
        if name in declared:
            declared[name].erase()
        known[name].clone(ip=ir.InsertionPoint.at_block_begin(body))


def _check_known(
    kernels: ir.Operation, others: list[str], known: Mapping[str, Any]
) -> None:
    missing = {name for name in others if name.startswith(_LIBDEVICE)}
    for call in walk(kernels, "llvm.call") if missing else ():
        callee = call.attributes["callee"] if "callee" in call.attributes else None
        if callee is None or callee.value not in missing:
            continue
        narrow = ": compute it in f32" if f"{callee.value}f" in known else ""
        raise PassError(
            call,
            f"needs '{callee.value}' of CUDA's libdevice, which is not linked{narrow}",
        )


def _needed(names: list[str], known: dict[str, Any]) -> list[str]:
    """The functions, and all functions that these call."""
    needed: list[str] = []
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.append(name)
            calls = walk(known[name], "llvm.call")
            pending += [call.attributes["callee"].value for call in calls]
    return needed
