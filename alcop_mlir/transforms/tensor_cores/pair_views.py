"""Builder of views of shared buffers of bytes as pairs of bytes, for ldmatrix.trans.

Before:  %buffer = memref.alloc() : memref<3x32x128xi8, workgroup>
After:   %bytes = memref.alloc() : memref<12288xi8, workgroup>
         %buffer = memref.view %bytes[0] : memref<3x32x128xi8, workgroup>
         %pairs = memref.view %bytes[0] : memref<3x32x64xi16, workgroup>

[PTX] ldmatrix.trans moves elements of 16 bits only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.bindings import ir, memref
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build


def in_pairs(source: ir.Value, indices: Sequence[ir.Value]) -> tuple[Any, list[Any]]:
    """A view by pairs of the buffer that `source` is part of, and indices into it."""
    buffer, within = _in_buffer(source, list(indices))
    *outer, column = within
    return _pairs(buffer), [*outer, build.div(column, 2)]


def _in_buffer(source: ir.Value, indices: list[ir.Value]) -> tuple[Any, list[Any]]:
    """The buffer that `source` is a part of, and the indices there."""
    op = _maker(source)
    if op.name == "memref.cast":
        return _in_buffer(op.operands[0], indices)
    if op.name == "memref.subview":
        return _in_buffer(op.operands[0], _in_source(op, indices))
    if op.name not in ("memref.alloc", "memref.view"):
        raise PassError(
            op, f"reads pairs of bytes of {source.type}, expected a buffer or its part"
        )
    return source, indices


def _maker(source: ir.Value) -> Any:
    op = loops.defining_op(source)
    assert op is not None, "shared memory is no argument"
    return op.operation


def _in_source(op: ir.Operation, indices: list[ir.Value]) -> list[Any]:
    """Indices of a subview as indices of what it is a part of."""
    if any(stride != 1 for stride in op.attributes["static_strides"]):
        raise PassError(op, "reads pairs of bytes of a view with strides")
    dynamic = ir.ShapedType.get_dynamic_size()
    given = iter(list(op.operands)[1:])
    offsets = [
        next(given) if offset == dynamic else build.index(offset)
        for offset in op.attributes["static_offsets"]
    ]
    # Dropped dimensions are the first: tiles are slots of a buffer.
    dropped = len(offsets) - len(indices)
    inner = zip(offsets[dropped:], indices, strict=True)
    return [*offsets[:dropped], *(build.add(offset, i) for offset, i in inner)]


def _pairs(buffer: ir.Value) -> Any:
    """The view by pairs of the buffer's bytes, built if there is none."""
    kind = buffer.type
    *outer, columns = kind.shape
    wanted = build.memref_like(kind, [*outer, columns // 2], build.integer(16))
    op = _maker(buffer)
    if op.name == "memref.alloc":
        op = _maker(_as_view(op))
    flat = op.operands[0]
    for use in flat.uses:
        view = use.owner.operation
        if view.name == "memref.view" and view.results[0].type == wanted:
            return view.results[0]
    with op.location, ir.InsertionPoint(op):
        return memref.view(wanted, flat, build.index(0), [])


def _as_view(alloc: ir.Operation) -> Any:
    """Replace a buffer by a view of an allocation of as many bytes."""
    kind = alloc.results[0].type
    flat_type = build.memref_like(kind, [math.prod(kind.shape)], build.integer(8))
    with alloc.location, ir.InsertionPoint(alloc):
        flat = build.alloc(flat_type)
        view = memref.view(kind, flat, build.index(0), [])
    alloc.results[0].replace_all_uses_with(view)
    alloc.erase()
    return view
