"""Declares the workgroup buffers that a `gpu.func` allocates as globals of its module.

Before:  gpu.func @f(...) kernel {
           %s = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
After:   memref.global "private" @f_shared_0 : memref<64xf32, ...> = uninitialized
         gpu.func @f(...) kernel {
           %s = memref.get_global @f_shared_0 : memref<64xf32, ...>

Upstream's conversion would make a call of `malloc` of such an allocation. Whoever
launches the function does not know of its buffers, so that they are static.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.memory import size_in_bytes
from alcop_mlir.analysis.ir.symbols import name_of
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, memref
from alcop_mlir.errors import PassError
from alcop_mlir.passes import edit
from alcop_mlir.target import STATIC_SHARED_LIMIT
from alcop_mlir.transforms.kernels.launch_buffers import shared_allocations


def declare_buffers(kernels: ir.Operation) -> None:
    """Declare the buffers of each function in `kernels`, a gpu.module.

    Raises PassError for a buffer of run-time size, one that is allocated inside of a
    loop or branch, and where they are more than a block's static shared memory.
    """
    for function in walk(kernels, "gpu.func", enter=lambda op: op.name != "gpu.func"):
        total = 0
        for number, alloc in enumerate(shared_allocations(function)):
            total += _checked_size(alloc, function)
            if total > STATIC_SHARED_LIMIT:
                raise PassError(
                    alloc,
                    f"a kernel's own shared buffers are {total} bytes, of static "
                    f"shared memory a block has {STATIC_SHARED_LIMIT}: allocate them "
                    "in a gpu.launch, or view gpu.dynamic_shared_memory",
                )
            _declare(alloc, function, number)


def _checked_size(alloc: ir.Operation, function: ir.Operation) -> int:
    """Bytes of a buffer that can be declared."""
    kind = alloc.results[0].type
    size = size_in_bytes(kind)
    if size is None:
        raise PassError(
            alloc, f"shared buffer {kind} has no static size, expected constants"
        )
    if alloc.parent.operation != function:
        raise PassError(
            alloc,
            "shared buffer is allocated inside of a loop or branch, expected the "
            "kernel's top level",
        )
    return size


def _declare(alloc: ir.Operation, function: ir.Operation, number: int) -> None:
    kind = alloc.results[0].type
    name = f"{name_of(function)}_shared_{number}"
    with alloc.location, ir.InsertionPoint(function):
        memref.global_(
            name,
            ir.TypeAttr.get(kind),
            sym_visibility="private",
            initial_value=ir.UnitAttr.get(),
        )
    with alloc.location, ir.InsertionPoint(alloc):
        buffer = memref.get_global(kind, name)
    edit.erase_deallocs(alloc.results[0])
    alloc.results[0].replace_all_uses_with(buffer)
    alloc.erase()
