"""Kernels that a source brings along: `gpu.module`s, and functions of the nvvm dialect.

`put_in_module` before lowering:

    Before:  llvm.func @f(%p: !llvm.ptr) attributes {nvvm.kernel} { ... }
    After:   gpu.module @kernels { llvm.func @f(%p: !llvm.ptr) ... { ... } }

`to_binaries` when there is machine code, for upstream's `gpu-to-llvm`:

    Before:  gpu.module @k [#nvvm.target<chip = "sm_80">] { llvm.func @f ... }
    After:   gpu.binary @k [#gpu.object<#nvvm.target<chip = "sm_80">, bin = "...">]
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from alcop_mlir.analysis.ir.symbols import name_of, top_level
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.runtime.bundle import Code
from alcop_mlir.target import Target, find_target

_NAME = "kernels"
_CHIP = re.compile(r'^#nvvm\.target<.*\bchip = "([^"]+)"')


def gpu_modules(module: ir.Operation) -> list[ir.Operation]:
    """The `gpu.module`s of a module, in order."""
    return top_level(module, "gpu.module")


def own_target(module: ir.Operation) -> Target | None:
    """The first target that a `gpu.module` names; ConfigError for one not known."""
    for op in gpu_modules(module):
        for target in op.attributes["targets"] if "targets" in op.attributes else ():
            if chip := _CHIP.search(str(target)):
                return find_target(chip[1])
    return None


def put_in_module(module: ir.Operation) -> None:
    """Move llvm ops beside bare kernels into a `gpu.module`; does nothing without."""
    bare = [op for op in top_level(module) if op.name.startswith("llvm.")]
    if not any("nvvm.kernel" in op.attributes for op in bare):
        return
    with module.context, module.location:
        module.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            made = ir.Operation.parse(f"gpu.module @{_NAME} {{}}")
            ir.InsertionPoint.current.insert(made)
        body = made.regions[0].blocks[0]
        for op in bare:
            body.append(op)


def to_binaries(module: ir.Operation, code: Mapping[str, Code]) -> None:
    """Replace each `gpu.module` by a `gpu.binary` of its code: the cubin, else PTX."""
    with module.context:
        handler = ir.Attribute.parse("#gpu.select_object")
        for op in gpu_modules(module):
            name = name_of(op)
            (target,) = op.attributes["targets"]
            made, kind = code[name].cubin, gpu.CompilationTarget.Binary
            if made is None:
                # CUDA's JIT reads up to a zero.
                made, kind = (
                    f"{code[name].ptx}\0".encode(),
                    gpu.CompilationTarget.Assembly,
                )
            objects = ir.ArrayAttr.get([gpu.ObjectAttr.get(target, kind, made)])
            with ir.InsertionPoint(op), op.location:
                # The handler is given: without one the bindings make an op that the
                # printer crashes on.
                gpu.BinaryOp(name, objects, offloadingHandler=handler)
            op.erase()
