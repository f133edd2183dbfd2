"""The ops at the top level of a module, by the symbols that they define."""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir

# Of `gpu.func` and `llvm.func`: nothing but a launch refers to such a function.
_KERNEL_ATTRIBUTES = ("kernel", "gpu.kernel", "nvvm.kernel")


def name_of(op: ir.Operation) -> str:
    """The name of the symbol that `op` defines."""
    return ir.StringAttr(op.operation.attributes["sym_name"]).value


def top_level(module: ir.Operation | ir.Module, *names: str) -> list[Any]:
    """The ops of these names just inside of a module; all if none is given."""
    ops = [op.operation for op in module.operation.regions[0].blocks[0].operations]
    return [op for op in ops if not names or op.name in names]


def by_name(module: ir.Operation | ir.Module, op_name: str) -> dict[str, Any]:
    """The ops called `op_name` just inside of a module, by the names of symbols."""
    return {name_of(op): op for op in top_level(module, op_name)}


def is_kernel(function: ir.Operation) -> bool:
    """Whether a function is a kernel, not one that kernels call."""
    return any(name in function.attributes for name in _KERNEL_ATTRIBUTES)
