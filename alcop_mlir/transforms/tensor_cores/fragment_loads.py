"""Builders that load operands of mma.sync from shared memory into the lanes of a warp.

[PTX] "Matrix Fragments for mma": in units of 32-bit words, which hold neighbours along
k, lane l holds of a piece of a, in this order, row g and g + 8 at word t, then both at
word t + 4, for g = l / 4 and t = l % 4; of a piece of b, words t and t + 4 of column g,
then of column g + 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import without_casts
from alcop_mlir.analysis.layout.fragment_layout import (
    BYTES,
    LDMATRIX_ROW_BYTES,
    NIBBLES,
    PAIRS,
    WORDS,
    FragmentLayout,
)
from alcop_mlir.analysis.layout.swizzle import is_of_boxes
from alcop_mlir.bindings import arith, gpu, ir, memref, nvgpu, vector
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    HALF,
    QUAD,
    AccumulatorSource,
    Indices,
    Pieces,
    lane,
    load_row,
    moved,
    permute,
    piece_offsets,
    pieces,
    shifted,
    words,
)
from alcop_mlir.transforms.tensor_cores.pair_views import in_pairs

_MATRICES = 4  # 8x8 matrices of an ldmatrix.x4; [PTX] ldmatrix
_WHOLE = 2 * HALF  # rows of two matrices
_PAIR = 2  # bytes that become 16 bits each
# prmt's selectors of the first (second) bytes of four pairs, the pairs of the first
# register before those of the second, and after them; [PTX] prmt
_PART = ((0x6420, 0x2064), (0x7531, 0x3175))

# The selector that makes each of the first two bytes the lower half of 16 bits.
_SPREAD = 0x4140


@dataclass
class LaneOffsets:
    """Lane offsets of loads: row and column of a lane's element in a piece.

    Built at the start of the kernel, when first needed, so that all loads share them.
    """

    threads: int
    block: Any
    built: dict[Any, Any] = field(default_factory=dict)

    def of(self, layout: FragmentLayout, way: str) -> tuple[Any, Any]:
        """The lane offset of loads of `layout` done in that way."""
        if way == BYTES and layout.paired:
            return self._once(_below, HALF, layout.is_along_k)
        if way == NIBBLES:
            k, other = self._once(_words, 1, True)
            return other, k
        if way in (WORDS, BYTES):
            bundles = layout.word_elements // (2 if way == BYTES else 1)
            k, other = self._once(_words, bundles, layout.is_along_k)
            return (other, k) if layout.is_along_k else (k, other)
        if way == PAIRS:
            return self._once(_pairs)
        columns = LDMATRIX_ROW_BYTES // layout.bytes
        # Matrices are in the order of the operand's words: the second is below the
        # first, or beside it.
        make = _below if layout.dims in ("mk", "kn") else _beside
        return self._once(make, columns, layout.is_along_k)

    def selectors(self) -> tuple[Any, Any]:
        """Selectors for prmt to separate pairs: first elements, second elements."""
        return self._once(_selectors)

    def _once(
        self,
        make: Callable[[Any, int], tuple[Any, Any]],
        elements: int = 0,
        has_lane_register: bool = False,
    ) -> Any:
        """Build once, from the lane register, or from the thread's number.

        Which of the two matters to LLVM: it adds constants to rows by `or`, but where
        the constant's bits are those that were masked away before, it drops the mask
        instead, so that addresses share no common part and need a register each. Rows
        of a warp's tile begin at bits of the thread's number, those along k at 0.
        """
        key = (make, elements, has_lane_register)
        if key not in self.built:
            with ir.InsertionPoint.at_block_begin(self.block):
                at = (
                    gpu.lane_id(upper_bound=WARP_SIZE)
                    if has_lane_register
                    else lane(self.threads)
                )
                self.built[key] = make(at, elements)
        return self.built[key]


def _below(at: ir.Value, columns: int) -> tuple[Any, Any]:
    second = build.mul(build.div(at, _WHOLE), columns)
    return build.rem(at, _WHOLE), second


def _beside(at: ir.Value, columns: int) -> tuple[Any, Any]:
    second = build.mul(build.div(at, _WHOLE), HALF)
    first = build.mul(build.div(build.rem(at, _WHOLE), HALF), columns)
    return build.add(build.rem(at, HALF), second), first


def _words(at: ir.Value, elements: int) -> tuple[Any, Any]:
    """Offsets along k and across it of a lane's first word, of so many elements."""
    return build.mul(build.rem(at, QUAD), elements), build.div(at, QUAD)


def _pairs(at: ir.Value, _: int) -> tuple[Any, Any]:
    """Two matrices share 16 rows; a lane's word holds four consecutive ones.

    The first has rows 0, 1, 4, 5, 10, 11, 14, 15 and the second the others: eight
    different ones modulo 8, as a swizzle by rows needs to be free of conflicts.
    """
    matrix, within = build.div(at, HALF), build.rem(at, HALF)
    row = build.add(
        build.mul(build.div(matrix, 2), _WHOLE), build.mul(build.div(within, 2), 4)
    )
    second = arith.xori(build.rem(matrix, 2), build.div(within, 4))
    row = build.add(row, build.rem(within, 2))
    return build.add(row, build.mul(second, 2)), build.index(0)


def _selectors(at: ir.Value, _: int) -> tuple[Any, Any]:
    """Lanes of the upper half of a quad get the matrices of `_pairs` swapped."""
    lane_in_quad = build.rem(at, QUAD)
    swapped = arith.cmpi(arith.CmpIPredicate.uge, lane_in_quad, build.index(2))
    first, second = (
        arith.select(swapped, build.i32(reverse), build.i32(order))
        for order, reverse in _PART
    )
    return first, second


def load_operand(
    source: ir.Value,
    indices: Indices,
    layout: FragmentLayout,
    kind: ir.Type,
    lane_offsets: LaneOffsets,
) -> Pieces:
    """Pieces of a or b, all of one k before those of the next."""
    way = layout.way_from(source.type)
    # TMA fills a buffer as it is: its bytes are loaded in pairs without another view.
    has_pairs = way in (PAIRS, BYTES) and not is_of_boxes(memory.root(source))
    if has_pairs:
        source, indices = in_pairs(source, indices)
    else:
        source = without_casts(source)
    offsets = lane_offsets.of(layout, way)
    if way == BYTES and not has_pairs:
        offsets = (offsets[0], build.mul(offsets[1], _PAIR))
    first = shifted(indices, offsets)
    lane_type = layout.lane_type(kind.element_type)
    order = sorted(
        piece_offsets(layout, kind), key=lambda offset: offset[layout.dims.index("k")]
    )

    def piece(row: int, column: int) -> Any:
        if way not in (PAIRS, BYTES):
            at = moved(first, row, column)
            if way == WORDS:
                return _load_words(source, at, layout, lane_type)
            if way == NIBBLES:
                return _load_nibbles(source, at, layout, lane_type)
            return nvgpu.ldmatrix(
                lane_type,
                source,
                at,
                transpose=not layout.is_along_k,
                num_tiles=_MATRICES,
            )
        at = moved(first, row, column // _PAIR if has_pairs else column)
        if way == BYTES:
            return _load_bytes(source, at, layout, lane_type)
        return _load_pairs(source, at, layout, lane_type, lane_offsets)

    if way == BYTES and layout.paired:
        loaded = _load_byte_pieces(source, first, layout, order)
        if isinstance(kind.element_type, ir.FloatType):
            loaded = {at: arith.bitcast(lane_type, loaded[at]) for at in loaded}
    else:
        loaded = {offset: piece(*offset) for offset in order}
    return pieces(layout, kind, [loaded[offset] for offset in sorted(loaded)])


def load_along(
    source: AccumulatorSource, layout: FragmentLayout, kind: ir.Type, threads: int
) -> Pieces:
    """Pieces of a or b that are the same along k, from one value per row or column."""
    between = 1 if layout.paired else HALF
    quad = build.div(lane(threads), QUAD)
    if layout.paired:
        quad = build.mul(quad, 2)
    first = source.shifted((quad, quad))  # memory has no dimension along k
    order = (0, 1, 0, 1) if layout.role == "a" else (0, 0, 1, 1)
    lane_type = layout.lane_type(kind.element_type)
    loaded: dict[int, Any] = {}
    found = []
    for offset in piece_offsets(layout, kind):
        number = offset[1 - layout.dims.index("k")]
        if number not in loaded:
            pair = [
                memref.load(first.memory, first.at(row, row))
                for row in (number, number + between)
            ]
            elements = [pair[n] for n in order for _ in range(layout.word_elements)]
            loaded[number] = vector.from_elements(lane_type, elements)
        found.append(loaded[number])
    return pieces(layout, kind, found)


def _load_words(
    source: ir.Value, at: Indices, layout: FragmentLayout, kind: ir.Type
) -> Any:
    """Load word by word, where ldmatrix does not distribute elements as needed.

    It moves 16 bits or more along k unchanged, and transposes elements of 16 bits only.
    """
    count = layout.word_elements
    found: list[Any] = []
    for k, other in _word_offsets(layout, count):
        if layout.is_along_k:
            found += load_row(source, moved(at, other, k), count)
        else:
            rows = range(k, k + count)
            found += [memref.load(source, moved(at, row, other)) for row in rows]
    return vector.from_elements(kind, found)


def _word_offsets(layout: FragmentLayout, length: int) -> list[tuple[int, int]]:
    """Offsets of a lane's words from its first, along k and across it, in order.

    length: of a word along k
    """
    along, across = (0, QUAD * length), (0, HALF)
    if layout.role == "a":
        return [(k, other) for k in along for other in across]
    return [(k, other) for other in across for k in along]


def _load_bytes(
    source: ir.Value, at: Indices, layout: FragmentLayout, kind: ir.Type
) -> Any:
    """Pairs of bytes along k: of integers each becomes the half of a register, of which
    f16 are made; floats are converted in pairs.
    """
    i16, i32 = build.integer(16), build.integer(32)
    is_float = isinstance(kind.element_type, ir.FloatType)
    spread, zero = build.i32(_SPREAD), build.i32(0)
    loaded = []
    is_in_pairs = source.type.element_type == i16
    for k, other in _word_offsets(layout, 1 if is_in_pairs else _PAIR):
        pair = _load_pair(source, moved(at, other, k))
        if not is_float:
            pair = permute(arith.extui(i32, pair), zero, spread)
        loaded.append(pair)
    if not is_float:
        return _as_bytes(loaded)
    column = ir.VectorType.get([len(loaded), 1], i16)
    return vector.bitcast(kind, vector.from_elements(column, loaded))


def _load_pair(source: ir.Value, at: Indices) -> Any:
    """A pair of bytes as 16 bits: an element, or two bytes side by side."""
    i16 = build.integer(16)
    if source.type.element_type == i16:
        return memref.load(source, at)
    pair = vector.bitcast(ir.VectorType.get([1], i16), build.load(source, at, _PAIR))
    return vector.extract(pair, [], [0])


def _load_nibbles(
    source: ir.Value, at: Indices, layout: FragmentLayout, kind: ir.Type
) -> Any:
    """The byte of each word, which holds both of its elements."""
    offsets = _word_offsets(layout, 1)
    loaded = [memref.load(source, moved(at, other, k)) for k, other in offsets]
    return vector.from_elements(kind, loaded)


def _load_byte_pieces(
    source: ir.Value,
    first: Indices,
    layout: FragmentLayout,
    order: list[tuple[int, int]],
) -> dict[tuple[int, int], Any]:
    """Pieces across k, two neighbours by one ldmatrix: it moves pairs of bytes.

    A lane's word holds a pair of each of two k. Their first bytes are a word of row (of
    column) 2i, their second bytes one of 2i + 1.
    """
    loaded = {}
    rows = dict.fromkeys(row for row, _ in order)
    for row in rows:
        columns = [column for other, column in order if other == row]
        for number in range(0, len(columns), 2):
            both = columns[number : number + 2]
            at = moved(first, row, both[0] // 2)
            matrices = words(_pair_matrices(source, at, 2 * len(both)))
            for piece, column in enumerate(both):
                low, high = matrices[2 * piece : 2 * piece + 2]
                eight = build.i32(8)
                second = [arith.shrui(word, eight) for word in (low, high)]
                if layout.role == "a":
                    found = [low, second[0], high, second[1]]
                else:
                    found = [low, high, *second]
                loaded[row, column] = _as_bytes(found)
    return loaded


def _pair_matrices(source: ir.Value, at: Indices, count: int) -> Any:
    kind = ir.VectorType.get([count, 2], build.integer(16))
    return nvgpu.ldmatrix(kind, source, at, transpose=True, num_tiles=count)


def _as_bytes(words: list[ir.Value]) -> Any:
    """The first byte of each half of the words: LLVM leaves them in their registers."""
    i8, i16, i32 = (build.integer(bits) for bits in (8, 16, 32))
    column = vector.from_elements(ir.VectorType.get([len(words), 1], i32), words)
    halves = vector.bitcast(ir.VectorType.get([len(words), 2], i16), column)
    return arith.trunci(ir.VectorType.get([len(words), 2], i8), halves)


def _load_pairs(
    source: ir.Value,
    at: Indices,
    layout: FragmentLayout,
    kind: ir.Type,
    lane_offsets: LaneOffsets,
) -> Any:
    """Two matrices hold one half along k of the piece, the other two the other half."""
    i32 = build.integer(32)
    first, second, third, fourth = words(_pair_matrices(source, at, _MATRICES))
    upper = [permute(first, second, by) for by in lane_offsets.selectors()]
    lower = [permute(third, fourth, by) for by in lane_offsets.selectors()]
    if layout.role == "a":
        order = [*upper, *lower]
    else:
        order = [upper[0], lower[0], upper[1], lower[1]]
    column = vector.from_elements(ir.VectorType.get([_MATRICES, 1], i32), order)
    return vector.bitcast(kind, column)
