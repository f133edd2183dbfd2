"""Keep one of several equal kernels.

Before:  gpu.module @f_kernels { gpu.func @f_matmul ...  gpu.func @f_matmul_1 ... }
         gpu.launch_func @f_kernels::@f_matmul ...
         gpu.launch_func @f_kernels::@f_matmul_1 ...
After:   gpu.module @f_kernels { gpu.func @f_matmul ... }
         gpu.launch_func @f_kernels::@f_matmul ...
         gpu.launch_func @f_kernels::@f_matmul ...

Kernels are equal where their texts are, but for the name, and their launches ask for as
much shared memory; of those that refer to other symbols, such as constants, these must
be equal as well. The first one in the module is kept, whatever function it was outlined
from: a bundle then stores its code once. alcop-merge-launches has merged most of them;
others became equal later, as where what was promised made no difference. A `gpu.module`
of which nothing but constants is left is erased.

Runs after alcop-outline-kernels, whose values from the host are parameters, and before
alcop-lower-to-nvvm, so that equal kernels are lowered once. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.symbols import (
    is_kernel,
    name_of,
    nameless_text,
    text_of,
    top_level,
)
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass

_KERNEL, _GLOBAL = "gpu.func", "memref.global"
_Symbol = tuple[str, str]  # of a gpu.module, and of a kernel in it


@frozen
class MergeKernels(Pass):
    name = "alcop-merge-kernels"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        launches = walk(op, "gpu.launch_func", enter=lambda one: one.name != _KERNEL)
        launched = {_launched(launch): _shared_bytes(launch) for launch in launches}
        first: dict[tuple[Any, ...], _Symbol] = {}
        merged: dict[_Symbol, _Symbol] = {}
        for kernels in top_level(op, "gpu.module"):
            for kernel in top_level(kernels, _KERNEL):
                symbol = name_of(kernels), name_of(kernel)
                if symbol not in launched:
                    continue
                key = launched[symbol], *_text(kernel, kernels)
                kept = first.setdefault(key, symbol)
                if kept != symbol:
                    merged[symbol] = kept
                    kernel.erase()
            if merged and all(one.name == _GLOBAL for one in top_level(kernels)):
                kernels.erase()
        for launch in launches:
            kept = merged.get(_launched(launch))
            if kept is not None:
                launch.attributes["kernel"] = ir.SymbolRefAttr.get(list(kept))


def _launched(launch: ir.Operation) -> _Symbol:
    module, kernel = ir.SymbolRefAttr(launch.attributes["kernel"]).value
    return module, kernel


def _shared_bytes(launch: ir.Operation) -> int | None:
    """Dynamic shared memory, which is asked for once per kernel."""
    size = launch.opview.dynamicSharedMemorySize
    return None if size is None else constant(size)


def _text(kernel: ir.Operation, kernels: ir.Operation) -> tuple[str, ...]:
    """A kernel without its name, and all that it might refer to."""
    text = nameless_text(kernel)
    if text.count("@") == 1:
        return (text,)
    others = [one for one in top_level(kernels) if not is_kernel(one)]
    return (text, *map(text_of, others))
