"""Builders of operand transforms: what a contraction multiplies of its tiles.

A contraction multiplies elements of A and B, or values that its body computes of them
(see `analysis.linalg.operand_transforms`): the warp computes those on fragments,
between the read of the tile and the multiplication, so that tiles are copied as memory
holds them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from alcop_mlir.analysis.linalg.nibbles import NIBBLE_BITS, PER_BYTE
from alcop_mlir.analysis.linalg.zero_fill import why_fill_disturbs
from alcop_mlir.bindings import ir, memref, vector
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.transforms.tiling.tiled_contractions import (
    BlockTile,
    TiledContraction,
    TiledOperand,
)
from alcop_mlir.transforms.tiling.vector_code import as_vector, compute, rounded

# The other operands of transforms, by argument of the body: scalars, and vectors that
# are the same along k.
Others = dict[Any, Any]


def check_fill(contraction: TiledContraction) -> None:
    """PassError where filling up the last K step with zeros would be wrong."""
    lhs, rhs = contraction.operands
    why = why_fill_disturbs(_body(contraction), (lhs.transform, rhs.transform))
    if why is not None:
        step = contraction.schedule.block[2]
        raise PassError(
            contraction.op, f"{why} of {step}: choose a step that divides it"
        )


def load_others(tile: BlockTile, ragged: Collection[str]) -> Others:
    """Read the other operands, once before the loops: all steps use the same.

    ragged: those of "m" and "n" in which a tile may exceed its operand
    """
    contraction = tile.contraction
    found: Others = {}
    grouped = {one.number for one in contraction.groups}
    for operand in contraction.operands:
        for number in set(operand.transform.others) - grouped:
            buffer = contraction.op.operands[number]
            found[_body(contraction).arguments[number]] = (
                _along(buffer, operand.matrix_loops, tile, ragged)
                if buffer.type.rank
                else memref.load(buffer, [])
            )
    return found


def _along(
    buffer: ir.Value, loops: str, tile: BlockTile, ragged: Collection[str]
) -> Any:
    """One value per row or column of the operand, the same along k."""
    other = loops.replace("k", "")
    extents = tile.contraction.fragment_extents
    element = buffer.type.element_type
    return vector.transfer_read(
        ir.VectorType.get([extents[loop] for loop in loops], element),
        buffer,
        [build.add(tile.block[other], tile.warp[other])],
        build.loop_map(1, [None if loop == "k" else 0 for loop in loops]),
        build.zero(element),
        [loop == "k" or loop not in ragged for loop in loops],
    )


def transformed(
    contraction: TiledContraction,
    operand: TiledOperand,
    elements: ir.Value,
    others: Others,
) -> Any:
    """The operand transform of these elements, in the type of the multiplication."""
    transform = operand.transform
    argument = _body(contraction).arguments[transform.operand]
    if transform.nibble is not None:
        argument, elements = transform.nibble, _unpacked(elements)
    shape = list(elements.type.shape)
    known = {**others, argument: elements}
    compute(transform.ops, shape, known)
    value = as_vector(transform.value, shape, known)
    precision = contraction.precision
    kind = transform.kind if precision is None else ir.Type.parse(precision)
    # Exact, unless the contraction is marked with a precision.
    return rounded(value, kind)


def _unpacked(bytes_: ir.Value) -> Any:
    """The nibbles of bytes along the last dimension, the lower one first."""
    *outer, count = bytes_.type.shape
    kind = ir.VectorType.get([*outer, PER_BYTE * count], build.integer(NIBBLE_BITS))
    return vector.bitcast(kind, bytes_)


def _body(contraction: TiledContraction) -> Any:
    (block,) = contraction.op.regions[0].blocks
    return block
