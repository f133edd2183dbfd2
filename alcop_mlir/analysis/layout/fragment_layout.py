"""How matrices are distributed to the lanes of a warp, and which memory fits that.

A matrix is cut into the pieces of one mma.sync ([PTX] "Matrix Fragments for mma"), 32
bytes along k of every type: m16n8k16 of f16 and bf16, m16n8k8 of tf32, m16n8k32 of s8.

  role           shape of a piece        per lane
  a              16 (m) x 32 bytes (k)   vector<4x2xf16>, <4x1xf32>, <4x4xi8>: 4 words
  b              32 bytes (k) x 16 (n)   the same, two for each of two mma.sync
  accumulator    16 (m) x 8 (n)          vector<2x2xf32>, <2x2xi32>
  rows           16 (m)                  vector<2xf32>: of its two rows
  columns        8 (n)                   vector<2xf32>: of its two columns

Rows and columns are vectors with an element per row (column) of accumulators, each of
which every lane holds that has elements of that row.

How a piece of a or b is loaded depends on the size of its elements, and on whether
neighbours in memory lie along k ("mk", "nk") or across it ("km", "kn"):

  along k         an ldmatrix.x4, which only sees rows of 16 bytes
  across, 16 bit  an ldmatrix.x4.trans
  across, 8 bit   an ldmatrix.x4.trans that moves pairs, and four prmt that separate
                  them: rows (columns) 2i and 2i + 1 of the piece are where i and i + 8
                  would be; the accumulators are interleaved alike
  across, 32 bit  four loads of one element

The elements in memory may be of another size than those that are multiplied: f32 or i8
that operand transforms convert to f16. ldmatrix does not fit these. The elements of one
word of mma.sync are loaded as a vector along k, one by one across k; but bytes across
k that become 16 bits are moved by ldmatrix.x4.trans in pairs too, two pieces at a time.
Of nibbles along k, two in a byte, each word of 16-bit elements is a load of one byte.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import address_alignment, divisor, element_bytes
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.target import MMA_F16_SHAPE, mma_shape

LDMATRIX_ROW_BYTES = 16  # a row of a matrix, and its alignment; [PTX] ldmatrix
UNIT = "1"  # a dimension of extent 1
_OPERAND_BITS = (8, 16, 32)
_MOVED_BITS = (8, 16, 32)  # of an accumulator, perhaps converted
_READ_BITS = (1, *_MOVED_BITS, 64)  # of what is combined with one, as a mask
_MMA_M, _MMA_N, _ = MMA_F16_SHAPE
# Rows and columns of a piece, but for k. b is loaded for two mma.sync at a time.
_EXTENT = {"a": {"m": _MMA_M}, "b": {"n": 2 * _MMA_N}}
_ACCUMULATOR = {"m": _MMA_M, "n": _MMA_N, UNIT: 1}
_BY_LETTERS = {"mn": "accumulator", "m": "rows", "n": "columns"}
_TRANSFERRED = ("mn", "m", "n")
_WORDS = 4  # of 32 bits: one lane's part of a piece of a or b
_WORD_BYTES = 4
_PER_BYTE = 2  # elements of packed bytes
_ALONG_K = ("mk", "nk")

# Ways to load a piece of a or b
MATRICES = "matrices"  # ldmatrix, transposed where across k
PAIRS = "pairs"  # ldmatrix of pairs, which are parted
BYTES = "bytes"  # pairs of bytes that become 16 bits each: loads, ldmatrix across k
NIBBLES = "nibbles"  # loads of one byte, whose halves become 16 bits each
WORDS = "words"  # loads of the elements of one word: a vector along k, or one by one


@frozen
class FragmentLayout:
    """How a matrix is distributed to the lanes of a warp.

    role:        "a", "b", "accumulator", "rows" or "columns"
    dims:        which dimension is which, as the vector type has them: "mk" or "km" for
                 a, "kn" or "nk" for b; "mn" or "nm" for accumulators, "m" for rows, "n"
                 for columns, all with "1" for dimensions of extent 1 among them
    bytes:       of an element of a or b
    paired:      whether a or b is moved in pairs of bytes that lie across k
    packed:      whether these are bytes, each of which holds two elements along k
    interleaved: those of "m" and "n" along which accumulators are interleaved
    """

    role: str
    dims: str
    bytes: int = 2
    paired: bool = False
    interleaved: str = ""
    packed: bool = False

    def __str__(self) -> str:
        name = f"{self.role} " + "".join(f"[{dim}]" for dim in self.dims)
        return f"{name}, {self.interleaved} interleaved" if self.interleaved else name

    @property
    def is_along_k(self) -> bool:
        """Whether neighbours in memory are neighbours along k."""
        return self.dims in _ALONG_K

    @property
    def is_operand(self) -> bool:
        """Whether it is a or b."""
        return self.role in _EXTENT

    @property
    def word_elements(self) -> int:
        """Elements along k in one word of an operand's fragment."""
        return _WORD_BYTES // self.bytes

    def way_from(self, memory: ir.Type) -> str:
        """How pieces of an operand are loaded from a memref type, see above."""
        if self.packed:
            return NIBBLES
        stored = element_bytes(memory)
        if self.paired:
            return PAIRS if self.bytes == 1 else BYTES
        if stored == 1 and self.bytes == 2 and self.is_along_k:
            return BYTES
        if stored != self.bytes:
            return WORDS
        is_transposed_word = self.bytes == _WORD_BYTES and not self.is_along_k
        return WORDS if is_transposed_word else MATRICES

    @property
    def extents(self) -> dict[str, int]:
        """Extent of a piece along each dimension."""
        if not self.is_operand:
            return _ACCUMULATOR
        return {**_EXTENT[self.role], "k": self.k_extent}

    @property
    def k_extent(self) -> int:
        """Extent of a piece of an operand along k: of bytes, if they are packed."""
        return mma_shape(self.bytes)[2] // (_PER_BYTE if self.packed else 1)

    def with_dims(self, dims: str) -> FragmentLayout | None:
        """The layout of a vector of these dimensions that goes with accumulators, rows
        or columns of this layout; None if there is none.
        """
        role = _BY_LETTERS.get("".join(sorted(dims.replace(UNIT, ""))))
        if role is None or self.is_operand:
            return None
        interleaved = "".join(dim for dim in self.interleaved if dim in dims)
        return FragmentLayout(role, dims, interleaved=interleaved)

    def rows_and_columns(
        self, dims: Sequence[int | None]
    ) -> tuple[int | None, int | None]:
        """Of dimensions that those of a vector follow, which rows and columns do."""
        if self.is_operand:
            rows, columns = dims
            return rows, columns
        by_name = dict(zip(self.dims, dims, strict=True))
        return by_name.get("m"), by_name.get("n")

    @property
    def piece(self) -> tuple[int, ...]:
        """Extents of a piece, in the order of `dims`."""
        return tuple(self.extents[dim] for dim in self.dims)

    def grid(self, kind: ir.Type) -> dict[str, int]:
        """Pieces along each dimension of a vector type."""
        counts = zip(self.dims, kind.shape, self.piece, strict=True)
        return {dim: extent // step for dim, extent, step in counts}

    def lane_type(self, element: ir.Type) -> Any:
        """The type of one lane's part of one piece."""
        if not self.is_operand:
            both = 2 if self.role == "accumulator" else 1
            return ir.VectorType.get([2] * both, element)
        row = ELEMENT_TYPES.get(str(element))
        if row is not None and row.memory:
            element = ir.Type.parse(row.memory)  # which holds it, its last bits zero
        count = self.word_elements // (_PER_BYTE if self.packed else 1)
        return ir.VectorType.get([_WORDS, count], element)


def operand_layout(
    role: str, dims: str, element: ir.Type, stored: Collection[int] = ()
) -> FragmentLayout:
    """The layout of a or b with elements of that type.

    stored: bytes of its elements in memory, see `fragments.stored_bytes`
    """
    size = ELEMENT_TYPES[str(element)].bytes
    in_bytes = size == 1 or (size == 2 and set(stored) == {1})
    return FragmentLayout(role, dims, size, paired=in_bytes and dims not in _ALONG_K)


def accumulator_layout(a: FragmentLayout, b: FragmentLayout) -> FragmentLayout:
    """The layout of the accumulators of a contraction of a and b."""
    interleaved = "m" * a.paired + "n" * b.paired
    return FragmentLayout("accumulator", "mn", interleaved=interleaved)


def is_held_as(held: FragmentLayout | None, needed: FragmentLayout) -> bool:
    """Whether the accumulators `held` are the operand `needed`, lane by lane.

    Of two neighbouring accumulator pieces of 16 bits a lane holds just what it does of
    one piece of a; or of b, if rows are columns of the contraction.
    """
    if held is None or held.role != "accumulator" or held.interleaved:
        return False
    names = {"a": {"m": "m", "n": "k"}, "b": {"m": "n", "n": "k"}}.get(needed.role)
    if names is None or (needed.bytes, needed.paired) != (2, False) or needed.packed:
        return False
    return "".join(names.get(dim, dim) for dim in held.dims) == needed.dims


# Where no operand is paired.
ACCUMULATORS_LAYOUT = FragmentLayout("accumulator", "mn")


def check_shape(op: ir.Operation, kind: ir.Type, layout: FragmentLayout) -> None:
    """PassError at `op` unless vectors of type `kind` can be cut into pieces."""
    k = layout.k_extent
    # Accumulators are stored two pieces at a time.
    multiples = {"m": _MMA_M, "n": 2 * _MMA_N, "k": k, UNIT: 1}
    for dim, extent in zip(layout.dims, kind.shape, strict=True):
        if extent % multiples[dim]:
            raise PassError(
                op,
                f"{kind} as {layout}: {dim} is {extent}, expected a multiple of "
                f"{multiples[dim]} (mma.sync.m{_MMA_M}n{_MMA_N}k{k})",
            )


def check_read(op: ir.Operation, layout: FragmentLayout) -> None:
    """PassError unless the vector.transfer_read can load pieces of `layout`."""
    source, first, *others = list(op.operation.operands)
    if is_same_along_k(op, layout):
        _check_width(op, source.type, _MOVED_BITS)
        return
    _check_transfer(op, source, layout.is_operand)
    if not layout.is_operand:
        _check_dims(op, "reads", op.operation.results[0].type, layout)
        _check_width(op, source.type, _READ_BITS)
        return
    if not is_workgroup(source.type):
        raise PassError(
            op, f"reads {layout} from {source.type}, expected workgroup memory"
        )
    _check_width(op, source.type, _OPERAND_BITS)
    needed, instruction = _needed_alignment(op, layout)
    strides, _ = source.type.get_strides_and_offset()
    column = [first, *others][source.type.rank - 1]
    steps = [1] * (source.type.rank - 1) + [divisor(column)]
    alignment = address_alignment(source, steps)
    if needed and (strides[-1] != 1 or alignment % needed):
        raise PassError(
            op,
            f"reads {layout} from {source.type} at rows that are known to be aligned "
            f"to {alignment} bytes, expected {needed} ({instruction}) and contiguous "
            "rows",
        )


def _needed_alignment(op: ir.Operation, layout: FragmentLayout) -> tuple[int, str]:
    """Bytes that rows must be aligned to, and for what; 0 for single elements."""
    memory = op.operation.operands[0].type
    if layout.paired and element_bytes(memory) != 1:
        raise PassError(
            op,
            f"reads {layout} of i8 from {memory}: across k, expected memory of i8",
        )
    way = layout.way_from(memory)
    if way == NIBBLES:
        return 0, "loads of one byte"
    if way != WORDS and not (way == BYTES and layout.is_along_k):
        return LDMATRIX_ROW_BYTES, "ldmatrix"
    if layout.is_along_k:
        return layout.word_elements * element_bytes(memory), "loads of words of mma"
    return 0, "loads of one element"


def is_same_along_k(op: ir.Operation, layout: FragmentLayout) -> bool:
    """Whether a read broadcasts one element in memory along k."""
    rows_and_columns = zip(layout.dims, transfer_dims(op), strict=True)
    return [loop for loop, dim in rows_and_columns if dim is None] == ["k"]


def transfer_dims(op: ir.Operation) -> tuple[int | None, ...]:
    """The dimensions of the memref that those of a transfer's vector follow.

    None where all rows (columns) of the vector are the same.
    """
    return tuple(
        ir.AffineDimExpr(result).position
        if isinstance(result, ir.AffineDimExpr)
        else None
        for result in op.operation.attributes["permutation_map"].value.results
    )


def check_write(op: ir.Operation, layout: FragmentLayout) -> None:
    """PassError unless the vector.transfer_write can store pieces of `layout`."""
    value, target = list(op.operation.operands)[:2]
    _check_transfer(op, target, layout.is_operand)
    if layout.is_operand:
        raise PassError(
            op,
            f"writes {value.type} as {layout}, expected an accumulator to be written",
        )
    _check_dims(op, "writes", value.type, layout)
    _check_width(op, target.type, _MOVED_BITS)


def _check_dims(
    op: ir.Operation, verb: str, kind: ir.Type, layout: FragmentLayout
) -> None:
    """PassError for accumulators, rows or columns that memory has in another order."""
    if layout.dims not in _TRANSFERRED:
        raise PassError(op, f"{verb} {kind} as {layout}, expected [m][n], [m] or [n]")


def _check_width(op: ir.Operation, kind: ir.Type, widths: tuple[int, ...]) -> None:
    if getattr(kind.element_type, "width", None) not in widths:
        *most, last = map(str, widths)
        bits = f"{', '.join(most)} or {last}"
        raise PassError(
            op, f"transfer of {kind.element_type}, expected elements of {bits} bits"
        )


def _check_transfer(op: ir.Operation, memref: ir.Value, is_operand: bool) -> None:
    """Between a memref and a vector of its last dimensions.

    An operand must be in bounds: zeros are filled in where it is copied.
    """
    operation = op.operation
    if not isinstance(memref.type, ir.MemRefType):
        raise PassError(op, f"transfer on {memref.type}, expected a memref")
    if any(isinstance(v.type, ir.VectorType) for v in list(operation.operands)[2:]):
        raise PassError(op, "transfer with a mask, expected none")
    affine_map = operation.attributes["permutation_map"].value
    is_free = not is_operand and operation.name == "vector.transfer_read"
    rank, inner = memref.type.rank, len(transfer_dims(op))
    last = ir.AffineMap.get_minor_identity(rank, inner) if inner <= rank else None
    if not is_free and affine_map != last:
        raise PassError(op, f"transfer by {affine_map}, expected the last dimensions")
    in_bounds = operation.attributes["in_bounds"]
    if is_operand and not all(attribute.value for attribute in in_bounds):
        raise PassError(op, "transfer that may leave its memref, expected in_bounds")
