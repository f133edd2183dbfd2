"""Views in which consecutive dimensions of a memref are one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.bindings import ir, memref
from alcop_mlir.passes import build


def collapsed(buffer: ir.Value, parts: Sequence[Sequence[int]]) -> Any:
    """A view of `buffer` with a dimension for each of `parts`, lists of dimensions.

    The dimensions of a part have no gaps between their rows. Builds at the current
    insertion point; `buffer` itself where nothing is collapsed.
    """
    kind, dynamic = buffer.type, ir.ShapedType.get_dynamic_size()
    if len(parts) == kind.rank:
        return buffer
    shape = [
        dynamic
        if any(map(kind.is_dynamic_dim, part))
        else math.prod(kind.shape[number] for number in part)
        for part in parts
    ]
    layout = None
    if isinstance(kind.layout, ir.StridedLayoutAttr):
        strides, offset = kind.get_strides_and_offset()
        inner = [strides[part[-1]] for part in parts]
        layout = ir.StridedLayoutAttr.get(offset, inner)
    result = build.memref_like(kind, shape, layout=layout)
    return memref.collapse_shape(result, buffer, list(map(list, parts)))
