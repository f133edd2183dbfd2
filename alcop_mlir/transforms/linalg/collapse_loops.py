"""Merge loops of contractions whose operands have many dimensions.

Before:  linalg.generic ins(%A, %B : memref<2x8x64x32xf16>, memref<2x8x32x48xf16>)
             outs(%C : memref<2x8x64x48xf32>)       // loops b, h, m, n, k
After:   %a = memref.collapse_shape %A [[0, 1], [2], [3]] ... into memref<16x64x32xf16>
         linalg.generic ins(%a, %b) outs(%c)        // loops bh, m, n, k

Loops that index all operands together, and run over them without gaps, become one:
loops of the batch, of rows or columns, of the reduction. Only an op that thereby gets
the loops of a contraction (see `analysis.linalg.contractions`) is changed; all others
are left unchanged.

Runs before alcop-raise-contractions. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.contractions import (
    indexing_maps,
    loop_letters,
    names_of_loops,
    structured_ops,
)
from alcop_mlir.analysis.linalg.loop_groups import loop_groups, loops_of
from alcop_mlir.bindings import ir, memref
from alcop_mlir.passes.base import Pass

_CHANGEABLE = ("linalg.generic", "linalg.contract")  # ops that may have any maps
_KINDS = "iterator_types"
_Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class CollapseLoops(Pass):
    name = "alcop-collapse-loops"
    anchor = "func.func"

    def run(self, op: Any) -> None:
        for candidate in list(structured_ops(op)):
            groups = _groups_that_help(candidate)
            if groups is not None:
                with candidate.location, ir.InsertionPoint(candidate):
                    _collapse(candidate, groups)


def _groups_that_help(op: Any) -> _Groups | None:
    """Groups by which `op` gets the loops of a contraction; None if of no use."""
    if op.name not in _CHANGEABLE or loop_letters(op) is not None:
        return None
    (block,) = op.regions[0].blocks
    if any(inner.operation.name == "linalg.index" for inner in block.operations):
        return None
    groups = loop_groups(op)
    if groups is None or all(len(group) == 1 for group in groups):
        return None
    maps = [_grouped(loops_of(one) or (), groups) for one in indexing_maps(op) or ()]
    return None if len(maps) != 3 or names_of_loops(maps) is None else groups


def _grouped(loops: Sequence[int], groups: _Groups) -> list[int]:
    """Numbers of the groups that index an operand."""
    first = {group[0]: number for number, group in enumerate(groups)}
    return [first[loop] for loop in loops if loop in first]


def _collapse(op: Any, groups: _Groups) -> None:
    dims = [ir.AffineExpr.get_dim(number) for number in range(len(groups))]
    maps = []
    for number, one in enumerate(indexing_maps(op) or ()):
        loops = loops_of(one) or []
        op.operands[number] = _collapsed(op.operands[number], loops, groups)
        results = [dims[group] for group in _grouped(loops, groups)]
        maps.append(ir.AffineMapAttr.get(ir.AffineMap.get(len(dims), 0, results)))
    op.attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    if _KINDS in op.attributes:
        kinds = list(op.attributes[_KINDS])
        op.attributes[_KINDS] = ir.ArrayAttr.get([kinds[group[0]] for group in groups])


def _collapsed(buffer: Any, loops: Sequence[int], groups: _Groups) -> Any:
    """A view of `buffer` with a dimension for each group."""
    parts = [
        [loops.index(loop) for loop in groups[group]]
        for group in _grouped(loops, groups)
    ]
    if len(parts) == len(loops):
        return buffer
    kind, dynamic = buffer.type, ir.ShapedType.get_dynamic_size()
    shape = [
        dynamic
        if any(map(kind.is_dynamic_dim, part))
        else math.prod(kind.shape[number] for number in part)
        for part in parts
    ]
    layout = None
    if not follows_shape(kind):
        strides, offset = kind.get_strides_and_offset()
        inner = [strides[part[-1]] for part in parts]
        layout = ir.StridedLayoutAttr.get(offset, inner)
    result = ir.MemRefType.get(
        shape, kind.element_type, layout=layout, memory_space=kind.memory_space
    )
    return memref.collapse_shape(result, buffer, parts)
