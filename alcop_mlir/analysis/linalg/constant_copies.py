"""Buffers that hold nothing but copies of constants.

    %w = memref.get_global @weights : memref<16x32x3x3xf16>
    %t = memref.alloc() : memref<3x3x32x16xf16>
    linalg.transpose ins(%w) outs(%t) permutation = [2, 3, 1, 0]

What writes such a buffer are fills, and ops that copy elements of constants, in any
order of dimensions, forwards or backwards, into all of it or a part; `constant_values`
computes what they leave in it. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alcop_mlir.analysis.ir.code_motion import NO_ACCESS
from alcop_mlir.analysis.ir.memory import VIEW_OPS, root
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.constant_values import Array, written_bits
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class ConstantCopy:
    """A buffer that is written before it is read, with known elements.

    bits:    the elements, as unsigned integers of their size
    writers: the ops that write it
    """

    buffer: Any
    bits: Array
    writers: tuple[Any, ...]


def find_constant_copy(
    alloc: ir.Operation, known: Mapping[Any, Array]
) -> ConstantCopy | None:
    """What a buffer holds, if that is copied from constants; else None.

    known: the elements of other buffers, by their values, and of constants, by the
           names of their symbols
    """
    (buffer,) = alloc.results
    if not buffer.type.has_static_shape or not follows_shape(buffer.type):
        return None
    accesses = set(_accesses(buffer))
    if any(op.block != alloc.block for op in accesses):
        return None
    ordered = [one.operation for one in alloc.block.operations]
    views = [linalg_view(op) for op in ordered if op in accesses]
    if None in views:
        return None
    known_views = [view for view in views if view is not None]
    writers = [view for view in known_views if _writes(view, buffer)]
    if not writers or known_views[: len(writers)] != writers:
        return None
    bits = written_bits(buffer, writers, known)
    if bits is None:
        return None
    return ConstantCopy(buffer, bits, tuple(view.op for view in writers))


def _accesses(memref: ir.Value) -> Iterator[Any]:
    """The ops that access the memref, also through views."""
    for use in memref.uses:
        user = use.owner.operation
        if user.name in VIEW_OPS:
            yield from _accesses(user.results[0])
        elif user.name not in NO_ACCESS:
            yield user


def _writes(view: LinalgView, buffer: ir.Value) -> bool:
    return any(root(one.value) == buffer for one in view.outputs)
