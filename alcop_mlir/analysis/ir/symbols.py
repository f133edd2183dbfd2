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


def unused_name(name: str, taken: set[str]) -> str:
    """`name`, or with the first number that makes it new; adds it to `taken`."""
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate


def nameless_text(op: ir.Operation) -> str:
    """The text of a function or kernel, but for its name."""
    name = op.attributes["sym_name"]
    op.attributes["sym_name"] = ir.StringAttr.get("")
    text = text_of(op)
    op.attributes["sym_name"] = name
    return text


def text_of(op: ir.Operation) -> str:
    """The text of an op that uses no value from outside."""
    # In local scope: else all of the module is numbered, each time.
    return op.get_asm(use_local_scope=True)


def is_kernel(function: ir.Operation) -> bool:
    """Whether a function is a kernel, not one that kernels call."""
    return any(name in function.attributes for name in _KERNEL_ATTRIBUTES)
