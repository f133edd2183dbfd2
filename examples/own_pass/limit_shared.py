"""Note how much shared memory a kernel allocates, and refuse kernels above a limit.

Before:  gpu.launch ... { %a = memref.alloc() : memref<64x32xf16, workgroup> ... }
After:   gpu.launch ... { ... } {own.shared_bytes = 4096 : i64}

A kernel with a workgroup buffer whose size is not known is unsupported: it is left
unchanged, with a remark. One that needs more than `limit` bytes is an error.

Writes `own.shared_bytes`; reads and erases no attribute. Runs anywhere before
alcop-outline-kernels, which turns the allocations into one dynamic block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.kernels import kernels_in
from alcop_mlir.analysis.ir.memory import is_workgroup, size_in_bytes
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.passes.base import Pass, option

SHARED_BYTES = "own.shared_bytes"


@dataclass(frozen=True)
class LimitShared(Pass):
    name = "own-limit-shared"
    anchor = "any"

    limit: int = option(49152, "bytes of shared memory that a kernel may allocate")

    def run(self, op: Any) -> None:
        for kernel in kernels_in(op):
            sizes = [size_in_bytes(buffer.type) for buffer in _shared_buffers(kernel)]
            known = [size for size in sizes if size is not None]
            if len(known) < len(sizes):
                diagnostics.remark(kernel, f"{self.name}: a buffer's size is unknown")
            elif sum(known) > self.limit:
                raise PassError(
                    kernel,
                    f"allocates {sum(known)} bytes of shared memory, "
                    f"expected at most {self.limit}",
                )
            else:
                kernel.attributes[SHARED_BYTES] = _integer(sum(known))


def _shared_buffers(kernel: Any) -> list[Any]:
    """What the allocations in a kernel return that are in shared memory."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "memref.alloc" and is_workgroup(op.results[0].type):
            found.append(op.results[0])
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return found


def _integer(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
