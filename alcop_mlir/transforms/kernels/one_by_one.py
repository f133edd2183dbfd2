"""Rewrites the kernels of a `gpu.module` one by one, each in a module of its own.

Upstream's conversions go over a whole module again and again: in one of sixty kernels
they take twice as long for each as in one of ten. Passes run on several modules in
parallel, where the context has threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import filterfalse

from alcop_mlir.analysis.ir.symbols import is_kernel, name_of, top_level
from alcop_mlir.bindings import ir


def one_by_one(kernels: ir.Operation, rewrite: Callable[[ir.Operation], None]) -> None:
    """`rewrite` an op with a `gpu.module` for each kernel of `kernels`; or this, where
    its kernels share symbols.

    What it declares beside a kernel is moved along; equal declarations become one.
    """
    body = kernels.regions[0].blocks[0]
    functions = top_level(kernels)
    if len(functions) < 2 or not all(map(is_kernel, functions)):
        rewrite(kernels)
        return
    around = _apart(kernels, functions)
    known: dict[str, str] = {}
    try:
        rewrite(around)
        for alone in top_level(around):
            _share(alone, known)
    finally:
        every = [op for alone in top_level(around) for op in top_level(alone)]
        for op in filter(is_kernel, every):
            body.append(op)
        for op in filterfalse(is_kernel, every):
            op.move_before(body.operations[0])


def _apart(kernels: ir.Operation, functions: Sequence[ir.Operation]) -> ir.Operation:
    """An op with a module for each function."""
    with kernels.location:
        # Upstream's conversions crash where a gpu.module is in no other op.
        modules = (
            f"gpu.module @alone{number} {{}}" for number in range(len(functions))
        )
        around = ir.Operation.parse(f"module {{ {' '.join(modules)} }}")
    for alone, function in zip(top_level(around), functions, strict=True):
        alone.regions[0].blocks[0].append(function)
    return around


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
