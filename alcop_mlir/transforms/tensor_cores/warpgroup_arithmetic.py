"""Builders of wgmma: matrix descriptors of tiles, and accumulators.

Tiles lie in shared memory as TMA leaves them, see `alcop.boxes` and
`analysis/layout/tensor_boxes.py`. A descriptor holds an address, two distances between
groups of 8 rows, and the swizzle (PTX ISA, "Asynchronous warpgroup-level matrix
shared memory layout" and "Matrix descriptor format"). Fragments of accumulators are
those of mma.sync: instruction i of R has the 8-row groups i and R + i of each warp.

Ops of upstream's nvvm dialect, and descriptors of our own: `nvgpu.warpgroup` knows one
layout of B, and waits after each of its ops (docs/upstream.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.alignment import element_bytes, given
from alcop_mlir.analysis.ir.index_terms import terms
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.layout.tensor_boxes import ROWS_OF_PATTERN
from alcop_mlir.analysis.layout.warpgroups import (
    WarpgroupOperand,
    WarpgroupProduct,
)
from alcop_mlir.bindings import arith, ir, llvm, memref, nvvm, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.target import MMA_K_BYTES, WARP_SIZE, WARPGROUP, WGMMA_M
from alcop_mlir.transforms.tensor_cores.fragment_access import Pieces, elements, words

_UNIT_BITS = 4  # addresses and distances are in units of 16 bytes
_ADDRESS = 0x3FFF  # bits 0 to 13
_LEADING, _STRIDE, _MODE = 16, 32, 62  # first bits of the other fields
_MODES = {128: 1, 64: 2, 32: 3}
_COLUMNS_OF_PIECE = 8
MMA_ROWS = WGMMA_M // WARPGROUP


def warpgroup_number(thread: ir.Value) -> Any:
    """The number of the warpgroup: descriptors are in registers of a whole warp."""
    return arith.shrui(build.warp_number(thread), build.i32(WARPGROUP.bit_length() - 1))


@frozen
class Tile:
    """An operand in memory.

    group:   number of the warpgroup, i32; None where all read the same
    rows:    of a warp, of A
    """

    operand: WarpgroupOperand
    group: Any
    rows: int

    @property
    def _alloc(self) -> Any:
        return memory.root(self.operand.read.operands[0]).owner

    @property
    def _swizzle(self) -> int:
        return self._boxes["swizzle"]

    @property
    def _boxes(self) -> dict[str, int]:
        boxes = alcop.get_plain(self._alloc, alcop.BOXES)
        if boxes is None:
            raise PassError(
                self.operand.read, "is read by wgmma, expected a tile that TMA copies"
            )
        return boxes

    @property
    def _size(self) -> int:
        return element_bytes(self._alloc.results[0].type)

    @property
    def _shape(self) -> list[int]:
        return self._alloc.results[0].type.shape[-2:]

    @property
    def _box_bytes(self) -> int:
        return self._shape[0] * self._swizzle

    def descriptor(self, k: int, instruction: int) -> Any:
        """Of step `k` of the read, in elements, and one of the instructions."""
        first = self._first_k() + k
        inner = self.operand.along_k
        offset = self._along_k(first) if inner else first * self._swizzle
        across, step = self._across()
        offset += across
        repeats = max(1, self.rows // MMA_ROWS) if self.group is not None else 1
        offset += instruction * ROWS_OF_PATTERN * self._swizzle
        leading = self._box_bytes if not inner else 1 << _UNIT_BITS
        stride = repeats * ROWS_OF_PATTERN * self._swizzle
        low = self._low(leading)
        low = arith.addi(low, self._slot())
        if step:
            moved = arith.muli(self.group, build.i32(step >> _UNIT_BITS))
            low = arith.addi(low, moved)
        if offset:
            low = arith.addi(low, build.i32(offset >> _UNIT_BITS))
        high = _MODES[self._swizzle] << _MODE | (stride >> _UNIT_BITS) << _STRIDE
        wide = build.integer(64)
        # MLIR's integers of 64 bits are given as signed ones.
        signed = high - (high >> 63 << 64)
        rest = arith.constant(wide, ir.IntegerAttr.get(wide, signed))
        return arith.ori(arith.extui(wide, low), rest)

    def _first_k(self) -> int:
        indices = list(self.operand.read.operands)[1:3]
        return self._known(indices[1] if self.operand.along_k else indices[0])

    def _along_k(self, k: int) -> int:
        """Bytes from the tile's beginning to an index along K."""
        box, rest = divmod(k * self._size, self._swizzle)
        return box * self._box_bytes + rest

    def _across(self) -> tuple[int, int]:
        """Bytes to the first row (column), and from warpgroup to warpgroup."""
        rows = WARPGROUP * self.rows
        if self.group is not None:
            if self.operand.along_k:
                return 0, rows * self._swizzle
            return 0, rows * self._size // self._swizzle * self._box_bytes
        indices = list(self.operand.read.operands)[1:3]
        first = self._known(indices[0] if self.operand.along_k else indices[1])
        if self.operand.along_k:
            return first * self._swizzle, 0
        return first * self._size // self._swizzle * self._box_bytes, 0

    def _known(self, index: ir.Value) -> int:
        number = terms(index).known
        if number is None:
            raise PassError(
                self.operand.read, "is read by wgmma at an index that is not constant"
            )
        return number

    def _low(self, leading: int) -> Any:
        """The first word of the descriptor of the whole buffer."""
        word = build.integer(32)
        address = memref.extract_aligned_pointer_as_index(self._alloc.results[0])
        address = arith.index_cast(word, address)
        units = arith.shrui(address, build.i32(_UNIT_BITS))
        fields = build.i32((leading >> _UNIT_BITS) << _LEADING)
        return arith.ori(arith.andi(units, build.i32(_ADDRESS)), fields)

    def _slot(self) -> Any:
        """Units from the buffer's beginning to the slot that is read."""
        view = made_by(self.operand.read.operands[0], "memref.subview")
        if view is None or view.operands[0] != self._alloc.results[0]:
            raise PassError(self.operand.read, "is read by wgmma, expected a slot")
        slot, *rest = given(view, "offsets")
        if any(offset != 0 for offset in rest):
            raise PassError(
                self.operand.read, "is read by wgmma, expected a whole slot"
            )
        units = self._shape[0] * self._shape[1] * self._size >> _UNIT_BITS
        if isinstance(slot, int):
            return build.i32(slot * units)
        return arith.muli(arith.index_cast(build.integer(32), slot), build.i32(units))


def multiply(
    product: WarpgroupProduct,
    contract: Any,
    sums: Sequence[Any],
    group: ir.Value,
    new: bool,
) -> list[Any]:
    """The wgmma of a contraction: accumulators of each instruction, a struct.

    new: whether there are none before: `sums` are not read
    """
    a = Tile(product.a, group, product.rows)
    b = Tile(product.b, None, 0)
    step = MMA_K_BYTES // ELEMENT_TYPES[product.a.element].bytes
    depth = contract.operands[0].type.shape[-1 if product.a.along_k else 0]
    found = list(sums)
    for k in range(0, depth, step):
        right = b.descriptor(k, 0)
        for number in range(product.instructions):
            found[number] = _wgmma(
                found[number],
                a.descriptor(k, number),
                right,
                product,
                step,
                new and k == 0,
            )
    return found


def multiply_held(
    product: WarpgroupProduct,
    sums: Sequence[Any],
    a: Pieces,
    new: bool,
) -> list[Any]:
    """The same with fragments of A in registers: piece i is of instruction i."""
    b = Tile(product.b, None, 0)
    step = MMA_K_BYTES // ELEMENT_TYPES[product.a.element].bytes
    found = list(sums)
    for number in range(a.counts["k"]):
        right = b.descriptor(number * step, 0)
        for row in range(product.instructions):
            held, fragment = found[row], words(a.at(m=row, k=number))
            made = alcop.WarpgroupMmaOp(held, *fragment, right, held.type)
            _describe(made.operation, product, step, not (new and number == 0))
            found[row] = made.operation.results[0]
    return found


def _describe(
    op: ir.Operation, product: WarpgroupProduct, step: int, adds: bool
) -> None:
    names = (product.a.element, product.b.element, product.accumulators)
    kinds = [ELEMENT_TYPES[name].ptx for name in names]
    op.attributes["shape"] = build.numbers([WGMMA_M, product.columns, step])
    op.attributes["types"] = ir.ArrayAttr.get([ir.StringAttr.get(k) for k in kinds])
    word = build.integer(32)
    for name, value in (("transpose_b", not product.b.along_k), ("adds", adds)):
        op.attributes[name] = ir.IntegerAttr.get(word, int(value))


def _wgmma(
    sums: ir.Value,
    a: ir.Value,
    b: ir.Value,
    product: WarpgroupProduct,
    step: int,
    is_new: bool,
) -> Any:
    of_a, of_b, of_sums = (
        ir.Attribute.parse(f"#nvvm.wgmma_type<{ELEMENT_TYPES[name].ptx}>")
        for name in (product.a.element, product.b.element, product.accumulators)
    )
    one = ir.Attribute.parse("#nvvm.wgmma_scale_in<one>")
    row, column = (
        ir.Attribute.parse(f"#nvvm.mma_layout<{name}>") for name in ("row", "col")
    )
    shape = f"#nvvm.shape<m = {WGMMA_M}, n = {product.columns}, k = {step}>"
    scale = "zero" if is_new else "one"
    return nvvm.WgmmaMmaAsyncOp(
        sums.type,
        sums,
        a,
        b,
        ir.Attribute.parse(shape),
        of_a,
        of_b,
        of_sums,
        ir.Attribute.parse(f"#nvvm.wgmma_scale_out<{scale}>"),
        one,
        one,
        row if product.a.along_k else column,
        column if product.b.along_k else row,
    ).results[0]


# -- accumulators as fragments, and as the structs of wgmma ----------------------------


def no_sums(product: WarpgroupProduct) -> list[Any]:
    """Structs of which nothing is read."""
    kind = _struct(product)
    return [llvm.mlir_undef(kind) for _ in range(product.instructions)]


def opaque(fragment: ir.Value, number: int) -> Any:
    """A fragment that LLVM takes for computed where this stands.

    A constant it would write to registers just before the wgmma that adds to it, behind
    the fence: zeros of columns beyond the edge of C.

    number: of the fragment in its kernel; LLVM makes one of moves that are equal, and
        copies that behind the fence
    """
    kind = fragment.type
    letter = "f" if str(kind.element_type) == "f32" else "r"
    moved = [
        llvm.inline_asm(
            kind.element_type,
            [one],
            f"mov.b32 $0, $1; // accumulator {number}.{place}",
            f"={letter},{letter}",
        )
        for place, one in enumerate(elements(fragment))
    ]
    return vector.from_elements(kind, moved)


def packed(product: WarpgroupProduct, fragments: Sequence[Any]) -> list[Any]:
    """The structs of fragments."""
    found = []
    for number in range(product.instructions):
        made = llvm.mlir_undef(_struct(product))
        for place, (piece, half, column) in enumerate(_places(product, number)):
            value = vector.extract(fragments[piece], [], [half, column])
            made = llvm.insertvalue(made, value, [place])
        found.append(made)
    return found


def unpacked(product: WarpgroupProduct, sums: Sequence[Any]) -> tuple[Any, ...]:
    """The fragments of structs."""
    element = ir.Type.parse(product.accumulators)
    values: dict[int, dict[tuple[int, int], Any]] = {}
    for number, made in enumerate(sums):
        for place, (piece, half, column) in enumerate(_places(product, number)):
            value = llvm.extractvalue(element, made, [place])
            values.setdefault(piece, {})[half, column] = value
    kind = ir.VectorType.get([2, 2], element)
    return tuple(
        vector.from_elements(
            kind, [values[piece][h, c] for h in (0, 1) for c in (0, 1)]
        )
        for piece in range(len(values))
    )


def _struct(product: WarpgroupProduct) -> Any:
    count = product.columns * WGMMA_M // (WARPGROUP * WARP_SIZE)
    registers = ", ".join([product.accumulators] * count)
    return ir.Type.parse(f"!llvm.struct<({registers})>")


def _places(product: WarpgroupProduct, number: int) -> list[tuple[int, int, int]]:
    """For each register of an instruction the fragment, its row and its column."""
    pieces = product.columns // _COLUMNS_OF_PIECE
    groups = [product.instructions * half + number for half in (0, 1)]
    if product.a.in_registers:
        groups = [2 * number, 2 * number + 1]
    return [
        (group // 2 * pieces + n, group % 2, column)
        for n in range(pieces)
        for group in groups
        for column in (0, 1)
    ]
