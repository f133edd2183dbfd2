"""Builders that store accumulators to shared memory as TMA stores a box from there.

A buffer with `alcop.boxes` holds boxes that are swizzled as the copy engine expects:
chunks of 16 bytes of a row are permuted by the number of the row within a pattern (PTX
ISA, "Tensor swizzling modes"). `stmatrix` writes four matrices of 8x8 elements of 16
bits, of which a lane holds the elements that it has of accumulators, and gives the
address of one row: the pieces above and below of two neighbouring columns of pieces. A
matrix has eight rows of a pattern, so that its chunks lie in different banks.

Elements of 32 bits a lane stores itself, the two of a row that it has side by side, 8
bytes. Half a warp does so at once: four rows, a chunk and its neighbour of each, of
which the pattern keeps two rows in the same banks. So half of the lanes store another
piece first: in a pattern of 128 bytes every other row the piece after the next one, in
one of 64 every other two rows the next one. Of 32 bytes four rows fill a wave.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.layout.stored_boxes import STORED_BYTES
from alcop_mlir.bindings import arith, gpu, ir, llvm, memref, nvvm, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.resources import WORD_BYTES
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tensor_cores.fragment_access import HALF, Pieces, words

_ROW_BYTES = 16  # of a matrix
_ROWS = 16  # of an accumulator piece
_AT_ONCE = 2  # pieces whose four matrices one stmatrix stores
_SHAPE = "#nvvm.ld_st_matrix_shape<m = 8, n = 8>"
_ELEMENTS = "#nvvm.ld_st_matrix_elt_type<b16>"
_QUAD = 4  # lanes that hold a row of a piece
_PAIR_BYTES = 2 * WORD_BYTES  # that a lane has side by side
_CHUNKS_OF_PIECE = 2  # of a row of 8 words
# By the bytes of a pattern: the bit of a row's number whose lanes store another piece,
# and how far that is.
_TURNED = {128: (0, 2), 64: (1, 1)}
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
    if size not in STORED_BYTES or not is_whole or fragments.layout.interleaved:
        raise PassError(
            write,
            f"stores {write.operands[0].type} to boxes of TMA, expected "
            f"{_ROWS}x{box['columns']} elements of 16 or 32 bits as accumulators",
        )
    assert kind.rank == len("mn"), kind
    store = _store_words if size == WORD_BYTES else _store_halves
    store(fragments, _address(target), box["swizzle"])


def _store_halves(fragments: Pieces, first: ir.Value, swizzle: int) -> None:
    """Store elements of 16 bits, by stmatrix."""
    row, chunk = _place(swizzle)
    at = arith.addi(first, arith.muli(row, build.i32(swizzle)))
    for number in range(0, fragments.counts["n"], _AT_ONCE):
        own = arith.xori(chunk, build.i32(number)) if number else chunk
        offset = arith.shli(own, build.i32(_ROW_BYTES.bit_length() - 1))
        held = [
            word
            for piece in fragments.values[number : number + _AT_ONCE]
            for word in words(piece)
        ]
        _store_matrices(arith.addi(at, offset), held)


def _store_words(fragments: Pieces, first: ir.Value, swizzle: int) -> None:
    """Store elements of 32 bits, two of a row at once."""
    number = _lane()
    row = arith.shrui(number, build.i32(_QUAD.bit_length() - 1))
    in_quad = arith.andi(number, build.i32(_QUAD - 1))
    in_row = arith.xori(arith.shrui(in_quad, build.i32(1)), _phase(row, swizzle))
    odd = arith.andi(in_quad, build.i32(1))
    at = arith.addi(first, arith.muli(row, build.i32(swizzle)))
    at = arith.addi(at, arith.muli(odd, build.i32(_PAIR_BYTES)))
    held = [words(piece) for piece in fragments.values]
    if swizzle in _TURNED:
        bit, apart = _TURNED[swizzle]
        turn = arith.andi(arith.shrui(row, build.i32(bit)), build.i32(1))
        chunks = build.i32(apart * _CHUNKS_OF_PIECE)
        in_row = arith.xori(in_row, arith.muli(turn, chunks))
        is_turned = arith.cmpi(arith.CmpIPredicate.ne, turn, build.i32(0))
        held = _turned(held, apart, is_turned)
    for piece, parts in enumerate(held):
        chunk = build.i32(_CHUNKS_OF_PIECE * piece)
        own = arith.xori(in_row, chunk) if piece else in_row
        offset = arith.shli(own, build.i32(_ROW_BYTES.bit_length() - 1))
        place = arith.addi(at, offset)
        _store_pair(place, parts[:2])
        # Eight rows on, where the pattern is that of this one.
        _store_pair(arith.addi(place, build.i32(HALF * swizzle)), parts[2:])


def _turned(held: list[Any], apart: int, is_turned: ir.Value) -> list[Any]:
    """The words of pieces, which lanes that are turned have exchanged in pairs."""
    return [
        [
            arith.select(is_turned, other, own)
            for own, other in zip(parts, held[number ^ apart], strict=True)
        ]
        for number, parts in enumerate(held)
    ]


def _store_pair(address: ir.Value, pair: list[Any]) -> None:
    kind = ir.VectorType.get([len(pair)], build.integer(32))
    place = llvm.inttoptr(ir.Type.parse("!llvm.ptr<3>"), address)
    llvm.StoreOp(vector.from_elements(kind, pair), place, alignment=_PAIR_BYTES)


def _lane() -> Any:
    """The number of a lane in its warp."""
    # Not of the thread: what is computed of that for the K loop would be held until
    # here, in 64 bits.
    return arith.index_castui(build.integer(32), gpu.lane_id(upper_bound=WARP_SIZE))


def _place(swizzle: int) -> tuple[Any, Any]:
    """The row whose address a lane gives, and where its chunk of the first lies."""
    number = _lane()
    row = arith.andi(number, build.i32(_ROWS - 1))
    column = arith.shrui(number, build.i32(_ROWS.bit_length() - 1))
    return row, arith.xori(column, _phase(row, swizzle))


def _phase(row: ir.Value, swizzle: int) -> Any:
    """What the chunks of a row are permuted by."""
    # As many rows as fill a wave have the same permutation.
    shared = _WAVE_BYTES // swizzle
    phases = swizzle // _ROW_BYTES
    turned = arith.shrui(row, build.i32(shared.bit_length() - 1)) if shared > 1 else row
    return arith.andi(turned, build.i32(phases - 1))


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
