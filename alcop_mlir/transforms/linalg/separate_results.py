"""Give each result of a function a buffer of its own.

Before:  func.return %x, %x : memref<4x8xf32>, memref<4x8xf32>
After:   %y = memref.alloc() : memref<4x8xf32>
         memref.copy %x, %y
         func.return %x, %y : memref<4x8xf32>, memref<4x8xf32>

The results of a compiled function become output arguments, one for each, so that a
buffer that is returned twice has to be copied. Upstream's buffer-results-to-out-params
crashes on one that the function allocates.

One that is a reshape of a buffer is that buffer, allocated in the shape of the result,
which would be copied otherwise:

Before:  %t = memref.alloc() : memref<64x8xf32>
         %x = memref.expand_shape %t [[0, 1], [2]] : .. into memref<4x16x8xf32>
         func.return %x
After:   %x = memref.alloc() : memref<4x16x8xf32>
         %t = memref.collapse_shape %x [[0, 1], [2]] : .. into memref<64x8xf32>
         func.return %x

Runs after bufferization and before buffer-results-to-out-params. Reads and writes no
attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.bindings import ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass

_EXPAND = "memref.expand_shape"
_COLLAPSE = "memref.collapse_shape"


@frozen
class SeparateResults(Pass):
    name = "alcop-separate-results"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in op.regions[0].blocks:
            last = list(block.operations)[-1].operation
            if last.name == "func.return":
                _reshape_buffers(last)
                _separate(last)


def _reshape_buffers(returned: ir.Operation) -> None:
    """Allocate each buffer that is returned in one shape alone in that shape."""
    values = [one for one in returned.operands if isinstance(one.type, ir.MemRefType)]
    roots = [root(value) for value in values]
    for value, buffer in zip(values, roots, strict=True):
        if roots.count(buffer) == 1:
            _allocate_as_returned(value)


def _allocate_as_returned(value: ir.Value) -> None:
    """Allocate what is returned in its own shape, if it is a reshape of that."""
    reshape = made_by(value, _EXPAND, _COLLAPSE)
    alloc = None if reshape is None else made_by(reshape.operands[0], "memref.alloc")
    if reshape is None or alloc is None or not _is_plain(value.type, alloc):
        return
    groups = groups_of(reshape)
    old = alloc.results[0]
    with alloc.location, ir.InsertionPoint(alloc):
        new = build.alloc(value.type)
        edit.keep_attributes(alloc, new.owner)
        if reshape.name == _EXPAND:
            view = memref.collapse_shape(old.type, new, groups)
        else:
            shape = list(old.type.shape)
            view = memref.expand_shape(old.type, new, groups, [], shape)
    value.replace_all_uses_with(new)
    old.replace_all_uses_with(view)
    reshape.erase()
    alloc.erase()


def _is_plain(kind: ir.MemRefType, alloc: ir.Operation) -> bool:
    """Whether a reshape has this type, of sizes that are known, and no layout."""
    same = ir.MemRefType.get(kind.shape, kind.element_type, None, kind.memory_space)
    return kind.has_static_shape and kind == same and not len(alloc.operands)


def _separate(returned: ir.Operation) -> None:
    seen: list[Any] = []
    for number, value in enumerate(list(returned.operands)):
        if value in seen and isinstance(value.type, ir.MemRefType):
            with ir.InsertionPoint(returned), returned.location:
                returned.operands[number] = build.copied(value)
        seen.append(value)
