"""Builders of operand transforms: what a contraction multiplies of its tiles.

A contraction multiplies elements of A and B, or values that its body computes of them
(see `analysis.linalg.operand_transforms`): the warp computes those on fragments,
between the read of the tile and the multiplication, so that tiles are copied as memory
holds them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from alcop_mlir.analysis.linalg.operand_transforms import OperandTransform
from alcop_mlir.analysis.linalg.zero_fill import why_fill_disturbs
from alcop_mlir.bindings import arith, ir, memref, vector
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.transforms.tiling.tile_access import zero_of
from alcop_mlir.transforms.tiling.tiled_contractions import (
    TiledContraction,
    TileOffsets,
)
from alcop_mlir.transforms.tiling.vector_code import as_vector, compute

# The other operands of transforms, by argument of the body: scalars, and vectors that
# are the same along k.
Others = dict[Any, Any]


def check_fill(contraction: TiledContraction) -> None:
    """PassError where filling up the last K step with zeros would be wrong."""
    (block,) = contraction.op.regions[0].blocks
    why = why_fill_disturbs(block, contraction.transforms)
    if why is not None:
        step = contraction.schedule.block[2]
        raise PassError(
            contraction.op, f"{why} of {step}: choose a step that divides it"
        )


def load_others(
    contraction: TiledContraction, offsets: TileOffsets, ragged: Collection[str]
) -> Others:
    """Read the other operands, once before the loops: all steps use the same.

    ragged: those of "m" and "n" in which a tile may exceed its operand
    """
    (block,) = contraction.op.regions[0].blocks
    found: Others = {}
    for transform, loops in zip(
        contraction.transforms,
        (contraction.lhs_loops, contraction.rhs_loops),
        strict=True,
    ):
        for number in transform.others:
            buffer = contraction.op.operands[number]
            found[block.arguments[number]] = (
                _along(buffer, loops.replace("b", ""), contraction, offsets, ragged)
                if buffer.type.rank
                else memref.load(buffer, [])
            )
    return found


def _along(
    buffer: ir.Value,
    loops: str,
    contraction: TiledContraction,
    offsets: TileOffsets,
    ragged: Collection[str],
) -> Any:
    """One value per row or column of the operand, the same along k."""
    other = loops.replace("k", "")
    kind = ir.VectorType.get(
        [contraction.fragment_extents[loop] for loop in loops], buffer.type.element_type
    )
    return vector.transfer_read(
        kind,
        buffer,
        [build.add(offsets.block[other], offsets.warp[other])],
        build.loop_map(1, [None if loop == "k" else 0 for loop in loops]),
        arith.constant(kind.element_type, zero_of(kind)),
        [loop == "k" or loop not in ragged for loop in loops],
    )


def transformed(
    contraction: TiledContraction,
    transform: OperandTransform,
    elements: ir.Value,
    others: Others,
) -> Any:
    """The operand transform of these elements, in the type of the multiplication."""
    (block,) = contraction.op.regions[0].blocks
    shape = list(elements.type.shape)
    known = {**others, block.arguments[transform.operand]: elements}
    compute(transform.ops, shape, known)
    value = as_vector(transform.value, shape, known)
    precision = contraction.precision
    kind = transform.kind if precision is None else ir.Type.parse(precision)
    if value.type.element_type == kind:
        return value
    # Exact, unless the contraction is marked with a precision.
    return arith.truncf(ir.VectorType.get(shape, kind), value)
