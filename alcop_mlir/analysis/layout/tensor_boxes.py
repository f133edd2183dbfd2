"""The boxes by which the copy engine of sm_90 (TMA) copies a tile into shared memory.

A tile becomes one box, or several side by side where its rows are longer than a
swizzle's pattern. Each box is one instruction, lies in one piece, and is swizzled by
the engine; what it has beyond the edge of its memref is filled with zero. Elements of
f32 that all readers of the tile round to tf32 the engine rounds, to nearest, ties to
even, where the map's elements are tf32 (CU_TENSOR_MAP_DATA_TYPE_TFLOAT32; the mode is
not documented, and was seen on sm_120: triton-lang/triton, pull request 11751).
`tensor_boxes` answers for the copy of a tile; nothing is changed here.

Limits are those of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object
Management"), patterns those of PTX ISA, "Tensor swizzling modes".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import (
    base_alignment,
    element_bytes,
    given,
    kept_dimensions,
    stride_divisor,
    without_casts,
)
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.index_terms import Terms, terms
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.loops import is_inside, made_by
from alcop_mlir.analysis.ir.slices import captured, is_pure
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.target import (
    TENSOR_MAP_DISTANCE,
    TENSOR_MAP_EXTENT,
    TENSOR_MAP_RANK,
)

MAX_BOX = 256  # elements along each dimension
ALIGNMENT = 16  # bytes, of the memref and of the distances of its rows
ROWS_OF_PATTERN = 8  # of a swizzle
SWIZZLES = (128, 64, 32)  # bytes that a pattern is wide; the rows of a box
_COPIES = ("memref.copy", "alcop.copy")


@frozen
class TensorBoxes:
    """How TMA copies a tile of `memref`.

    memref:   a memref of the host, or a view that can be made there
    offsets: of the tile in each dimension of the memref, each a sum of values and ints
    box:     elements of one box along each dimension of the memref
    count:   of the boxes that lie side by side along the innermost dimension
    swizzle: bytes of a row of a box
    rounded: the type that elements are rounded to on the way; None for their own
    """

    memref: Any
    offsets: tuple[tuple[Any, ...], ...]
    box: tuple[int, ...]
    count: int
    swizzle: int
    rounded: str | None = None

    @property
    def elements(self) -> int:
        """Elements of one box."""
        return math.prod(self.box)

    @property
    def columns(self) -> int:
        """Elements of a row of a box."""
        return self.box[-1]

    def in_parts(self, parts: int) -> TensorBoxes | None:
        """The boxes of one of so many equal parts of the tile; None where it has none.

        Of several boxes some, the first ones first; of one box some rows, of whole
        patterns of the swizzle.
        """
        if self.count % parts == 0:
            return replace(self, count=self.count // parts)
        dim = next((n for n, one in enumerate(self.box[:-1]) if one > 1), None)
        if self.count > 1 or dim is None or self.box[dim] % parts:
            return None
        box = list(self.box)
        box[dim] //= parts
        rows = math.prod(box[:-1])
        return None if rows % ROWS_OF_PATTERN else replace(self, box=tuple(box))

    def cut(self, part: TensorBoxes) -> int:
        """The dimension along which such a part is one."""
        pairs = enumerate(zip(self.box, part.box, strict=True))
        return next((n for n, (one, other) in pairs if one != other), len(self.box) - 1)


def tensor_boxes(copy: ir.Operation) -> TensorBoxes | str:
    """The boxes of a `memref.copy` or `alcop.copy` of a tile, or why it has none."""
    copy = copy.operation
    if copy.name not in _COPIES:
        return f"'{copy.name}' is no copy of a tile"
    source, target = copy.operands
    if source.type.element_type != target.type.element_type:
        return "its source and buffer differ in element type"
    tile = _tile(source, target)
    if isinstance(tile, str):
        return tile
    block = enclosing(copy)
    if block is None or not is_of_host(tile.memref, block.op):
        return "what it copies is no memref of the host"
    size = element_bytes(target.type)
    row = tile.shape[-1] * size
    width = next((w for w in SWIZZLES if row % w == 0), None)
    if width is None:
        least = SWIZZLES[-1]
        return f"rows of the tile have {row} bytes, expected a multiple of {least}"
    box = (*tile.shape[:-1], width // size)
    return unfit(tile.memref, box, size) or TensorBoxes(
        tile.memref, tuple(tile.offsets), box, row // width, width, _rounded(target)
    )


def _rounded(target: ir.Value) -> str | None:
    """What all that is read of a buffer of f32 is rounded to; None where it is not."""
    found = memory.accesses(memory.root(target))
    if not isinstance(found, list) or not isinstance(
        target.type.element_type, ir.F32Type
    ):
        return None
    values = [one.op.results[0] for one in found if not one.writes and one.op.results]
    users = [use.owner.operation for value in values for use in value.uses]
    is_tf32 = all(
        user.name == "arith.truncf"
        and isinstance(user.results[0].type, ir.VectorType)
        and isinstance(user.results[0].type.element_type, ir.FloatTF32Type)
        for user in users
    )
    return "tf32" if users and is_tf32 else None


@dataclass
class Tile:
    """A part of `memref`: offsets and extents along its dimensions.

    dims: of the memref, that the dimensions of the part are
    """

    memref: Any
    offsets: list[tuple[Any, ...]]
    shape: list[int]
    dims: list[int] = field(default_factory=list)


def _tile(source: ir.Value, target: ir.Value) -> Tile | str:
    """The part of a memref that a copy reads into the whole of `target`."""
    source = without_casts(source)
    rank = source.type.rank
    sizes: list[Any] = list(source.type.shape)
    own = made_by(source, "memref.subview")
    if own is not None:
        every = given(own, "sizes")
        sizes = [every[number] for number in kept_dimensions(own)]
    tile = Tile(source, [()] * rank, list(target.type.shape), list(range(rank)))
    while (view := made_by(tile.memref, "memref.subview")) is not None:
        if any(step != 1 for step in given(view, "strides")):
            return "the tile leaves elements out"
        tile = in_source(tile, view)
    for dim, size, extent_ in zip(tile.dims, sizes, target.type.shape, strict=True):
        if not _fills_up_to_edge(tile, dim, size, extent_):
            return (
                f"the extent of the tile along dimension {dim} is neither {extent_} "
                "nor what is left of the memref"
            )
    if tile.dims[-1] != tile.memref.type.rank - 1:
        return "rows of the tile are not along the innermost dimension"
    return tile


def in_source(tile: Tile, view: ir.Operation) -> Tile:
    """A part of a view as a part of what it views."""
    kept = kept_dimensions(view)
    offsets = [(one,) for one in given(view, "offsets")]
    shape = [1] * len(offsets)
    for number, dim in enumerate(kept):
        offsets[dim] = (*offsets[dim], *tile.offsets[number])
        shape[dim] = tile.shape[number]
    dims = [kept[number] for number in tile.dims]
    return Tile(without_casts(view.operands[0]), offsets, shape, dims)


def _fills_up_to_edge(tile: Tile, dim: int, size: Any, wanted: int) -> bool:
    """Whether the tile has `wanted` elements, or as many as the memref has left."""
    if size == wanted or terms(size).known == wanted:
        return True
    total = extent(tile.memref, dim)
    if total is None:
        return False
    left = terms(total)
    for offset in tile.offsets[dim]:
        left = left.plus(terms(offset), -1)
    if terms(size) == left:
        return left.known is None or left.known <= wanted
    least = made_by(size, "arith.minsi") if isinstance(size, ir.Value) else None
    if least is None:
        return False
    found = [terms(one) for one in least.operands]
    return left in found and Terms(wanted) in found


def is_of_host(memref: ir.Value, kernel: ir.Operation) -> bool:
    """Whether a memref is made outside of the kernel, or could be."""
    if not _is_made_in(memref, kernel):
        return True
    owner = memref.owner
    if isinstance(owner, ir.Block) or not is_pure(owner):
        return False
    return all(is_of_host(value, kernel) for value in captured(owner))


def _is_made_in(value: ir.Value, kernel: ir.Operation) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        holder = owner.owner.operation
        return holder == kernel or is_inside(holder, kernel)
    return is_inside(owner.operation, kernel)


def unfit(memref: ir.Value, box: tuple[int, ...], size: int) -> str | None:
    """Why no tensor map describes the memref with that box; None where one does."""
    kind = memref.type
    if kind.rank > TENSOR_MAP_RANK:
        return (
            f"{kind} has {kind.rank} dimensions, a tensor map at most {TENSOR_MAP_RANK}"
        )
    if any(extent > MAX_BOX for extent in box):
        text = "x".join(map(str, box))
        return f"a box of {text} elements, expected at most {MAX_BOX} each way"
    strides, _ = kind.get_strides_and_offset()
    if strides[-1] != 1:
        return f"elements of rows of {kind} are not neighbours"
    aligned = base_alignment(memref)
    if aligned % ALIGNMENT:
        return f"{kind} is aligned to {aligned} bytes, {ALIGNMENT} are needed"
    for number in range(kind.rank - 1):
        distance = stride_divisor(memref, number) * size
        if distance % ALIGNMENT:
            return (
                f"dimension {number} of {kind} has a distance that is a multiple of "
                f"{distance} bytes, {ALIGNMENT} are needed"
            )
    return beyond_limits(kind, size)


def beyond_limits(kind: ir.Type, size: int) -> str | None:
    """Which limit of tensor maps the known extents and distances of a memref exceed.

    size: bytes of an element. What is known at run time only is looked at there.
    """
    for number in range(kind.rank):
        if not kind.is_dynamic_dim(number) and kind.shape[number] > TENSOR_MAP_EXTENT:
            return (
                f"dimension {number} of {kind} has {kind.shape[number]} elements, a "
                f"tensor map has at most {TENSOR_MAP_EXTENT}"
            )
    strides, _ = kind.get_strides_and_offset()
    for number, stride in enumerate(strides[:-1]):
        is_known = not kind.is_dynamic_stride_or_offset(stride)
        if is_known and not 0 < stride * size < TENSOR_MAP_DISTANCE:
            return (
                f"dimension {number} of {kind} has a distance of {stride * size} "
                "bytes, a tensor map has more than 0 and less than "
                f"{TENSOR_MAP_DISTANCE}"
            )
    return None
