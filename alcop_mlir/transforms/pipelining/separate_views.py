"""Replace typed views of a workgroup allocation of bytes by buffers of their own.

Before:  %bytes = memref.alloc() : memref<8192xi8, #gpu.address_space<workgroup>>
         %a = memref.view %bytes[%c0][] : ... to memref<32x64xf16, ...>
         %b = memref.view %bytes[%c4096][] : ... to memref<64x32xf16, ...>
After:   %a = memref.alloc() : memref<32x64xf16, ...>
         %b = memref.alloc() : memref<64x32xf16, ...>

Programs that plan their shared memory by hand have such views, and a view of bytes
cannot become one slot of several. Views of the same bytes by the same type become one
buffer, wherever they are. An allocation is left unchanged, with a remark, where the
bytes of two other views overlap, where an offset or a size is not constant, or where
any op but views uses it.

So are the views of `gpu.dynamic_shared_memory`, which all ops of that name in a kernel
share, and those in what it calls: with calls they are left unchanged. What the launch
gave to it is not needed any more: alcop-outline-kernels computes the size again, and
buffers of a `gpu.func` are static.

Runs before alcop-plan-pipelines in pipelines of others; alcop-compile does not need it.
Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir import symbols
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.memory import is_workgroup, size_in_bytes
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

_VIEW = "memref.view"
_CALLS = ("func.call", "llvm.call")


@frozen
class SeparateViews(Pass):
    name = "alcop-separate-views"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for makers in (*_byte_allocations(op), *_dynamic_memory(op)):
            views = _used_by_callees(makers[0]) or _views(makers)
            if isinstance(views, str):
                diagnostics.remark(makers[0], f"its views are not separated: {views}")
            elif views:
                _separate(makers, views)


@frozen
class _View:
    """A view of the bytes from `first` to before `end`."""

    op: Any
    first: int
    end: int

    @property
    def kind(self) -> Any:
        """The type of the view."""
        return self.op.results[0].type


def _byte_allocations(root: ir.Operation) -> list[list[Any]]:
    """The allocations in workgroup memory that are viewed as something else."""
    return [
        [alloc]
        for alloc in walk(root, "memref.alloc")
        if is_workgroup(alloc.results[0].type)
        and any(use.owner.operation.name == _VIEW for use in alloc.results[0].uses)
    ]


def _dynamic_memory(root: ir.Operation) -> list[list[Any]]:
    """The ops that are the dynamic shared memory, those of a kernel together."""
    found: dict[Any, list[Any]] = {}
    for op in walk(root, "gpu.dynamic_shared_memory"):
        kernel = enclosing(op)
        if kernel is not None:
            found.setdefault(kernel.op, []).append(op)
    return list(found.values())


def _used_by_callees(maker: ir.Operation) -> str | None:
    """Why functions may use a kernel's dynamic memory, which is theirs as well."""
    kernel = enclosing(maker)
    if maker.name == "memref.alloc" or kernel is None:
        return None
    if kernel.op.name == "gpu.func" and not symbols.is_kernel(kernel.op):
        return "kernels that call the function may use the bytes"
    calls = walk(kernel.op, *_CALLS)
    return f"what '{calls[0].name}' calls may use the bytes" if calls else None


def _views(makers: list[Any]) -> list[_View] | str:
    """All views of some bytes, by offset; or why they cannot be separated."""
    found = []
    for use in (use for maker in makers for use in maker.results[0].uses):
        op = use.owner.operation
        if op.name == "memref.dealloc":
            continue
        if op.name != _VIEW:
            return f"'{op.name}' uses the bytes themselves"
        first, size = constant(op.operands[1]), size_in_bytes(op.results[0].type)
        if first is None or size is None:
            return "a view's offset or size is not constant"
        found.append(_View(op, first, first + size))
    found.sort(key=lambda view: (view.first, view.end))
    for one, other in pairwise(found):
        same = (one.first, one.kind) == (other.first, other.kind)
        if not same and other.first < one.end:
            return (
                f"bytes {other.first} to {min(one.end, other.end)} are seen as "
                f"{one.kind} and as {other.kind}"
            )
    return found


def _separate(makers: list[Any], views: list[_View]) -> None:
    point = _insertion_point(makers[0])
    buffers: dict[int, Any] = {}
    for view in views:
        if view.first not in buffers:
            with view.op.location, point:
                buffers[view.first] = build.alloc(view.kind)
        view.op.results[0].replace_all_uses_with(buffers[view.first])
        view.op.erase()
    for use in [use for maker in makers for use in maker.results[0].uses]:
        dealloc = use.owner.operation
        with dealloc.location, ir.InsertionPoint(dealloc):
            for buffer in buffers.values():
                memref.dealloc(buffer)
        dealloc.erase()
    for maker in makers:
        maker.erase()


def _insertion_point(maker: ir.Operation) -> ir.InsertionPoint:
    """Before an allocation; of dynamic memory, where the kernel begins."""
    kernel = enclosing(maker)
    if maker.name == "memref.alloc" or kernel is None:
        return ir.InsertionPoint(maker)
    return ir.InsertionPoint.at_block_begin(kernel.body)
