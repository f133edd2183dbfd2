"""The boxes by which the copy engine of sm_90 (TMA) stores what a warp has computed.

A warp's part of C becomes portions of 16 rows, each as wide as a swizzle's pattern: one
box, and one instruction of the engine, which drops what is beyond the edge of the
memref. Of elements of 16 bits `stmatrix` writes a row of eight at once, as a quad holds
them; of 32 bits a lane has two side by side, and stores them. Of others it has parts of
a word.

`stored_boxes` answers for a `vector.transfer_write`; nothing is changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    element_bytes,
    given,
    kept_dimensions,
    without_casts,
)
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.index_terms import terms
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.layout.fragment_layout import transfer_dims
from alcop_mlir.analysis.layout.tensor_boxes import (
    SWIZZLES,
    TensorBoxes,
    Tile,
    in_source,
    is_of_host,
    unfit,
)
from alcop_mlir.bindings import ir

ROWS = 16  # of a portion: those of an accumulator piece
STORED_BYTES = (2, 4)  # of an element
_OPERANDS = 2  # of a transfer, before its indices: the vector, the memref


def stored_boxes(write: ir.Operation) -> TensorBoxes | str:
    """The box of a portion of what `write` stores, at the first one; or why it has
    none.
    """
    write = write.operation
    vector, target, *indices = write.operands
    size = element_bytes(target.type)
    if size not in STORED_BYTES:
        return f"elements have {8 * size} bits, expected 16 or 32"
    rank = target.type.rank
    if len(indices) != rank or transfer_dims(write) != (rank - 2, rank - 1):
        return "it is no store of rows of a matrix"
    rows, columns = vector.type.shape
    width = next((one for one in SWIZZLES if columns * size % one == 0), None)
    if width is None or rows % ROWS:
        return (
            f"a warp has {rows}x{columns} elements, expected multiples of {ROWS} rows "
            f"and {SWIZZLES[-1]} bytes"
        )
    tile = _tile(write)
    if isinstance(tile, str):
        return tile
    if tile.dims[1] != tile.memref.type.rank - 1:
        return "rows of C are not along the innermost dimension"
    box = [1] * tile.memref.type.rank
    for dim, one in zip(tile.dims, (ROWS, width // size), strict=True):
        box[dim] = one
    return unfit(tile.memref, tuple(box), size) or TensorBoxes(
        tile.memref, tuple(tile.offsets), tuple(box), 1, width
    )


def _tile(write: ir.Operation) -> Tile | str:
    """What is stored, as a part of a memref of the host that is no view of another."""
    target, *indices = list(write.operands)[_OPERANDS - 1 :]
    memref = without_casts(target)
    outer = [1] * (len(indices) - 2)
    shape = [*outer, *write.operands[0].type.shape]
    dims = list(range(len(indices) - 2, len(indices)))
    tile = Tile(memref, [(one,) for one in indices], shape, dims)
    inside = [one.value for one in write.attributes["in_bounds"]]
    while (view := made_by(tile.memref, "memref.subview")) is not None:
        if any(step != 1 for step in given(view, "strides")):
            return "C leaves elements out"
        for dim, is_inside in zip(tile.dims, inside, strict=True):
            if not is_inside and not _is_whole(view, dim):
                return "C is a part of a memref, whose edge it may exceed"
        tile = in_source(tile, view)
    block = enclosing(write)
    if block is None or not is_of_host(tile.memref, block.op):
        return "C is no memref of the host"
    return tile


def _is_whole(view: ir.Operation, dim: int) -> bool:
    """Whether a view has all that it views along one of its own dimensions."""
    number = kept_dimensions(view)[dim]
    every: Any = extent(view.operands[0], number)
    size: Any = given(view, "sizes")[number]
    return (
        given(view, "offsets")[number] == 0
        and every is not None
        and terms(size) == terms(every)
    )
