"""Builders that store accumulators to shared memory as TMA stores a box from there.

A buffer with `alcop.boxes` holds boxes that are swizzled as the copy engine expects:
chunks of 16 bytes of a row are permuted by the number of the row within a pattern (PTX
ISA, "Tensor swizzling modes"). `stmatrix` writes four matrices of 8x8 elements of 16
bits, of which a lane holds the elements that it has of accumulators, and gives the
address of one row: the pieces above and below of two neighbouring columns of pieces. A
matrix has eight rows of a pattern, so that its chunks lie in different banks.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.bindings import arith, gpu, ir, llvm, memref, nvvm
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tensor_cores.fragment_access import Pieces, words

_ROW_BYTES = 16  # of a matrix
_ROWS = 16  # of an accumulator piece
_AT_ONCE = 2  # pieces whose four matrices one stmatrix stores
_SHAPE = "#nvvm.ld_st_matrix_shape<m = 8, n = 8>"
_ELEMENTS = "#nvvm.ld_st_matrix_elt_type<b16>"
_WAVE_BYTES = 128  # that a row of the pattern is XORed within; rows lie in it in turn


def box_of(target: ir.Value) -> dict[str, int] | None:
    """The columns and the swizzle of boxes in memory; None of other memory."""
    root = memory.root(target)
    if isinstance(root.owner, ir.Block):
        return None
    return alcop.get_plain(root.owner, alcop.BOXES)


def store_box(write: ir.Operation, fragments: Pieces, target: ir.Value) -> None:
    """Store a whole box of accumulators, which `target` is."""
    box = box_of(target)
    assert box is not None, target
    kind, size = target.type, element_bytes(target.type)
    is_whole = list(write.operands[0].type.shape) == [_ROWS, box["columns"]]
    if size != 2 or not is_whole or fragments.layout.interleaved:
        raise PassError(
            write,
            f"stores {write.operands[0].type} to boxes of TMA, expected "
            f"{_ROWS}x{box['columns']} elements of 16 bits as accumulators",
        )
    first = _address(target)
    row, chunk = _place(box["swizzle"])
    at = arith.addi(first, arith.muli(row, build.i32(box["swizzle"])))
    assert kind.rank == len("mn"), kind
    for number in range(0, fragments.counts["n"], _AT_ONCE):
        own = arith.xori(chunk, build.i32(number)) if number else chunk
        offset = arith.shli(own, build.i32(_ROW_BYTES.bit_length() - 1))
        held = [
            word
            for piece in fragments.values[number : number + _AT_ONCE]
            for word in words(piece)
        ]
        _store_matrices(arith.addi(at, offset), held)


def _place(swizzle: int) -> tuple[Any, Any]:
    """The row whose address a lane gives, and where its chunk of the first lies."""
    # Not of the thread: what is computed of that for the K loop would be held until
    # here, in 64 bits.
    number = arith.index_castui(build.integer(32), gpu.lane_id(upper_bound=WARP_SIZE))
    row = arith.andi(number, build.i32(_ROWS - 1))
    column = arith.shrui(number, build.i32(_ROWS.bit_length() - 1))
    # As many rows as fill a wave have the same permutation.
    shared = _WAVE_BYTES // swizzle
    phases = swizzle // _ROW_BYTES
    turned = arith.shrui(row, build.i32(shared.bit_length() - 1)) if shared > 1 else row
    phase = arith.andi(turned, build.i32(phases - 1))
    return row, arith.xori(column, phase)


def _address(target: ir.Value) -> Any:
    """Of the first byte of a part of a buffer, in 32 bits of shared memory."""
    word, size = build.integer(32), element_bytes(target.type)
    part = made_by(target, "memref.reinterpret_cast")
    assert part is not None, target
    start = memref.extract_aligned_pointer_as_index(part.operands[0])
    offset = arith.index_cast(word, part.operands[1])
    return arith.addi(
        arith.index_cast(word, start), arith.muli(offset, build.i32(size))
    )


def _store_matrices(address: ir.Value, held: list[Any]) -> None:
    place = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), address)
    layout = ir.Attribute.parse("#nvvm.mma_layout<row>")
    nvvm.StMatrixOp(
        place, held, layout, ir.Attribute.parse(_SHAPE), ir.Attribute.parse(_ELEMENTS)
    )
