"""Builders of what a product multiplies, from what shared memory holds of its arrays.

A factor of the body of a product is an element of an array, or computed of one (see
`analysis.factors`): the warp computes it on fragments, between the read of the tile and
the multiplication, so that tiles are copied as they lie in memory.
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

# What else factors are made of, by its argument in the body: scalars, and vectors that
# are the same along k.
Others = dict[Any, Any]


def check_fill(product: TiledContraction) -> None:
    """PassError where a last step that is filled up with zeros would be wrong."""
    (block,) = product.op.regions[0].blocks
    why = why_fill_disturbs(block, product.factors)
    if why is not None:
        step = product.schedule.block[2]
        raise PassError(product.op, f"{why} of {step}: choose a step that divides it")


def load_others(
    product: TiledContraction, place: TileOffsets, ragged: Collection[str]
) -> Others:
    """They are the same in every step: read once, before the loops.

    ragged: those of "m" and "n" in which a tile may reach beyond the arrays
    """
    (block,) = product.op.regions[0].blocks
    found: Others = {}
    for factor, loops in zip(
        product.factors, (product.lhs_loops, product.rhs_loops), strict=True
    ):
        for number in factor.others:
            array = product.op.operands[number]
            found[block.arguments[number]] = (
                _along(array, loops.replace("b", ""), product, place, ragged)
                if array.type.rank
                else memref.load(array, [])
            )
    return found


def _along(
    array: Any,
    loops: str,
    product: TiledContraction,
    place: TileOffsets,
    ragged: Collection[str],
) -> Any:
    """One value per row or column of a factor, the same along k."""
    other = loops.replace("k", "")
    kind = ir.VectorType.get(
        [product.fragment_extents[loop] for loop in loops], array.type.element_type
    )
    results = [
        ir.AffineExpr.get_constant(0) if loop == "k" else ir.AffineExpr.get_dim(0)
        for loop in loops
    ]
    return vector.transfer_read(
        kind,
        array,
        [build.add(place.block[other], place.warp[other])],
        ir.AffineMapAttr.get(ir.AffineMap.get(1, 0, results)),
        arith.constant(kind.element_type, zero_of(kind)),
        [loop == "k" or loop not in ragged for loop in loops],
    )


def multiplied(
    product: TiledContraction, factor: OperandTransform, elements: Any, others: Others
) -> Any:
    """The factor of these elements of its array, in the type of the multiplication."""
    (block,) = product.op.regions[0].blocks
    shape = list(elements.type.shape)
    known = {**others, block.arguments[factor.operand]: elements}
    compute(factor.ops, shape, known)
    value = as_vector(factor.value, shape, known)
    kind = ir.FloatTF32Type.get() if product.precision == "tf32" else factor.kind
    if value.type.element_type == kind:
        return value
    # Exact, unless the product was marked to be of tf32.
    return arith.truncf(ir.VectorType.get(shape, kind), value)
