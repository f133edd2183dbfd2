"""Rewrites the kernels of a `gpu.module` one by one, each in a module of its own.

Upstream's conversions go over a whole module again and again: in one of sixty kernels
they take twice as long for each as in one of ten.
"""

from __future__ import annotations

from collections.abc import Callable

from alcop_mlir.analysis.ir.symbols import is_kernel, name_of, top_level
from alcop_mlir.bindings import ir


def one_by_one(kernels: ir.Operation, rewrite: Callable[[ir.Operation], None]) -> None:
    """`rewrite` each kernel of `kernels`, or all at once where they share symbols.

    What it declares beside a kernel is moved along; equal declarations become one.
    """
    body = kernels.regions[0].blocks[0]
    functions = top_level(kernels)
    if len(functions) < 2 or not all(map(is_kernel, functions)):
        rewrite(kernels)
        return
    known: dict[str, str] = {}
    for function in functions:
        with kernels.location:
            # Upstream's conversions crash where a gpu.module is in no other op.
            around = ir.Operation.parse("module { gpu.module @alone {} }")
        (alone,) = top_level(around)
        alone.regions[0].blocks[0].append(function)
        try:
            rewrite(alone)
            _share(alone, known)
        finally:
            for op in top_level(alone):
                if is_kernel(op):
                    body.append(op)
                else:
                    op.move_before(body.operations[0])


def _share(alone: ir.Operation, known: dict[str, str]) -> None:
    """Erase declarations that are known; rename others of a name that is taken."""
    for op in top_level(alone):
        if is_kernel(op):
            continue
        name = name_of(op)
        # The module does not verify while its kernel uses what has been erased.
        text = op.get_asm(assume_verified=True)
        free, number = name, 0
        while known.get(free, text) != text:
            number += 1
            free = f"{name}_{number}"
        if free != name:
            ir.SymbolTable.replace_all_symbol_uses(name, free, alone)
            ir.SymbolTable.set_symbol_name(op, free)
        if free in known:
            op.erase()
        known[free] = text
