"""Reinterpret memrefs of which dimensions were collapsed, so that no access divides.

Before:  %w = memref.collapse_shape %W [[0], [1, 2, 3]]
           : memref<128x3x3x64xf16> into memref<128x576xf16>
After:   %w = memref.reinterpret_cast %W to offset: [0], sizes: [128, 576],
           strides: [576, 1] : memref<128x3x3x64xf16> to memref<128x576xf16>

Upstream's fold-memref-alias-ops lets accesses of a view access what it views: through a
collapse by divisions, of which each copy of a loop would have some. It leaves what is
reinterpreted unchanged. Views of shared memory, of open sizes or with gaps are left
unchanged.

Runs before fold-memref-alias-ops, and after all passes that ask what a memref is a view
of along each dimension. Reads, writes and erases no attributes.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@frozen
class ReinterpretShapes(Pass):
    name = "alcop-reinterpret-shapes"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for view in walk(op, "memref.collapse_shape"):
            if not _is_plain(view):
                continue
            (old,) = view.results
            with view.location, ir.InsertionPoint(view):
                new = build.reinterpreted(old.type, view.operands[0])
            old.replace_all_uses_with(new)
            view.erase()


def _is_plain(view: ir.Operation) -> bool:
    """Whether what is viewed has no gaps, and sizes that are known."""
    kind, source = view.results[0].type, view.operands[0].type
    return (
        kind.has_static_shape
        and not is_workgroup(kind)
        and all(follows_shape(one) and _begins(one) for one in (kind, source))
    )


def _begins(kind: ir.Type) -> bool:
    _, offset = kind.get_strides_and_offset()
    return offset == 0
