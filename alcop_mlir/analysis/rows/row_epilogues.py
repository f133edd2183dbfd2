"""Which epilogues of a contraction the kernel of a row group computes for less.

An element-wise op that widens what a contraction writes, as the square of each element
does in front of a sum, is stored by the contraction if it is its epilogue. Where a row
group reads it, that computes it from what is stored anyhow, or from less. Changes
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.linalg.elementwise import Elementwise
from alcop_mlir.analysis.linalg.epilogue_fusion import is_stored
from alcop_mlir.bindings import ir

WHY = "the rows that read it are computed from less that is stored"


def for_rows(
    contraction: ir.Operation,
    fused: Sequence[Elementwise],
    grouped: Collection[ir.Operation],
) -> list[Elementwise]:
    """Of the epilogues those that are better computed by a row group.

    fused:   the ops that the kernel of `contraction` can compute, in order
    grouped: the ops of row groups
    """
    kept, left = list(fused), list[Elementwise]()
    for element in reversed(fused):
        output = element.output.value
        is_read = any(
            one.value == output
            for other in kept
            if other is not element
            for one in other.reads
        )
        if is_read or element.op not in grouped:
            continue
        rest = [one for one in kept if one is not element]
        if _stored_bits(contraction, rest) < _stored_bits(contraction, kept):
            kept = rest
            left.append(element)
    return left[::-1]


def _stored_bits(contraction: ir.Operation, fused: Sequence[Elementwise]) -> int:
    """Bits of what the kernel writes: all that others than the fused ops read."""
    ops = [contraction.operation, *(one.op for one in fused)]
    written = [list(contraction.operands)[-1], *(one.output.value for one in fused)]
    return sum(_bits(one.type) for one in dict.fromkeys(written) if is_stored(one, ops))


def _bits(kind: ir.MemRefType) -> int:
    sizes = [size for n, size in enumerate(kind.shape) if not kind.is_dynamic_dim(n)]
    return math.prod(sizes) * (element_bits(kind.element_type) or 64)
