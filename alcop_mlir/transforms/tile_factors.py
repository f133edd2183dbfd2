"""Builders of what a product multiplies, from what shared memory holds of its arrays.

A factor of the body of a product is an element of an array, or computed of one (see
`analysis.factors`): the warp computes it on fragments, between the read of the tile and
the multiplication, so that tiles are copied as they lie in memory.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.factors import Factor
from alcop_mlir.analysis.zero_fill import why_fill_disturbs
from alcop_mlir.bindings import arith, ir, memref
from alcop_mlir.errors import PassError
from alcop_mlir.transforms.tiled_products import Product
from alcop_mlir.transforms.vector_code import as_vector, compute

# The elements of the rank 0 operands that factors use, by their argument in the body.
Scalars = dict[Any, Any]


def check_fill(product: Product) -> None:
    """PassError where a last step that is filled up with zeros would be wrong."""
    (block,) = product.op.regions[0].blocks
    why = why_fill_disturbs(block, product.factors)
    if why is not None:
        step = product.schedule.block[2]
        raise PassError(product.op, f"{why} of {step}: choose a step that divides it")


def load_scalars(product: Product) -> Scalars:
    """They are the same in every step: read once, where the kernel begins."""
    operands = list(product.op.operands)
    (block,) = product.op.regions[0].blocks
    return {
        argument: memref.load(array, [])
        for argument, array in zip(block.arguments, operands, strict=True)
        if array.type.rank == 0 and any(True for _ in argument.uses)
    }


def multiplied(
    product: Product, factor: Factor, elements: Any, scalars: Scalars
) -> Any:
    """The factor of these elements of its array, in the type of the multiplication."""
    (block,) = product.op.regions[0].blocks
    shape = list(elements.type.shape)
    known = {**scalars, block.arguments[factor.array]: elements}
    compute(factor.ops, shape, known)
    value = as_vector(factor.value, shape, known)
    kind = ir.FloatTF32Type.get() if product.precision == "tf32" else factor.kind
    if value.type.element_type == kind:
        return value
    # Exact, unless the product was marked to be of tf32.
    return arith.truncf(ir.VectorType.get(shape, kind), value)
