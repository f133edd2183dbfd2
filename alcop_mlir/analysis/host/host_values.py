"""What a value of a host function is: a number, a size or stride, a memref."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import permutations
from typing import Any

from alcop_mlir.analysis.ir.extents import extent, stride
from alcop_mlir.analysis.ir.loops import (
    constant,
    defining_op,
    made_by,
    splat,
    without,
)
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.bindings import arith, ir
from alcop_mlir.extents import Extent
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.kernels import (
    Aligned,
    AtMost,
    Blocks,
    CeilDiv,
    Condition,
    Divisible,
    Pointer,
    SizeValue,
    block_counts,
)
from alcop_mlir.manifest.names import intermediate_name
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.polynomials import constant as number
from alcop_mlir.polynomials import size as factor
from alcop_mlir.reference.steps import Size

_CALCULATIONS = {
    "arith.addi": Polynomial.__add__,
    "arith.subi": Polynomial.__sub__,
    "arith.muli": Polynomial.__mul__,
}
_BITS = 64  # of the sizes that a kernel takes


@frozen
class Names:
    """The names of arguments and of sizes.

    sizes: of dimensions of arguments, by name and number; one that is missing is named
           after its argument, one that turned out to be constant is a number
    """

    arguments: tuple[str, ...]
    sizes: Mapping[tuple[str, int], Size] = field(default_factory=dict)

    def size(self, argument: int, dimension: int) -> Size:
        """Of the size of a dimension of an argument, which the call gives."""
        name = self.arguments[argument]
        return self.sizes.get((name, dimension), f"{name}_{dimension}")

    def stride(self, argument: int, dimension: int) -> str:
        """Of the stride of a dimension of an argument, which the call gives."""
        return f"{self.arguments[argument]}_stride_{dimension}"


@frozen
class HostValues:
    """Reads the values of one host function.

    allocated: the buffers that it allocates, in the order of their numbers
    constants: the names of constants, by the symbols of their globals
    """

    names: Names
    allocated: Sequence[Any]
    constants: Mapping[str, str] = field(default_factory=dict)

    def asserted(self, value: ir.Value) -> tuple[AtMost, ...] | None:
        """The orders of sizes that hold where an i1 is true; None if others do."""
        found = self.guard(value)
        if isinstance(found, Rejected):
            return None
        orders = tuple(one for one in found if isinstance(one, AtMost))
        return orders if len(orders) == len(found) else None

    def guard(self, value: ir.Value) -> tuple[Condition, ...] | Rejected:
        """The conditions that all hold where the i1 `value` is true, and only there."""
        op = defining_op(value)
        if op is not None and op.name == "arith.andi":
            left, right = map(self.guard, op.operands)
            if isinstance(left, Rejected):
                return left
            return right if isinstance(right, Rejected) else (*left, *right)
        if (known := splat(value)) is not None:
            return () if known else (AtMost(number(1), number(0)),)
        if op is not None and op.name == "arith.cmpi":
            found = self._remainders(op) or self._orders(op)
            if found:
                return found
        return Rejected(
            value.owner.owner if op is None else op,
            "decides which kernels are launched, expected a conjunction (arith.andi) "
            "of orders of sizes and strides of arguments (arith.cmpi), and of "
            "remainders of these by constants that are compared with 0",
        )

    def _orders(self, op: ir.Operation) -> tuple[AtMost, ...]:
        """The orders of sizes that an arith.cmpi is true of; empty if of others."""
        left, right = map(self.extent, op.operands)
        if left is None or right is None:
            return ()
        name = str(arith.CmpIPredicate(op.attributes["predicate"].value))
        if name.startswith("u"):
            if not (left.is_never_negative and right.is_never_negative):
                return ()
            name = name.replace("u", "s", 1)
        if name == "eq":
            return AtMost(left, right), AtMost(right, left)
        if name in ("sge", "sgt"):
            left, right = right, left
        if name in ("slt", "sgt"):
            left = left + number(1)
        is_order = name in ("sle", "sge", "slt", "sgt")
        return (AtMost(left, right),) if is_order else ()

    def _remainders(self, op: ir.Operation) -> tuple[Condition, ...]:
        """The divisor that an arith.cmpi of a remainder with 0 asks for; or empty."""
        name = str(arith.CmpIPredicate(op.attributes["predicate"].value))
        left, right = op.operands
        remainder = made_by(left, "arith.remui", "arith.remsi")
        if name != "eq" or remainder is None or constant(right) != 0:
            return ()
        value, by = remainder.operands[0], constant(remainder.operands[1])
        if by is None or by < 1:
            return ()
        pointer = without(value, "arith.index_cast")
        pointer = made_by(pointer, "memref.extract_aligned_pointer_as_index")
        if pointer is not None:
            array = self._argument(pointer.operands[0])
            return () if array is None else (Aligned(array, by),)
        found = self.extent(value)
        is_signed = remainder.name == "arith.remsi"
        if found is None or not (is_signed or found.is_never_negative):
            return ()
        return (Divisible(found, by),)

    def blocks(self, value: ir.Value) -> Blocks | None:
        """A number of blocks: constants, tiles that cover sizes, these multiplied."""
        if (single := self._tiles(value)) is not None:
            return single
        op = made_by(value, "arith.muli")
        if op is None:
            return None
        left, right = map(self.blocks, op.operands)
        if left is None or right is None:
            return None
        return *block_counts(left), *block_counts(right)

    def _tiles(self, value: ir.Value) -> int | CeilDiv | None:
        """A constant, or the number of tiles that cover some sizes."""
        op, tile = made_by(value, "arith.ceildivui"), 1
        if op is not None:
            value, divisor = op.operands
            tile = constant(divisor) or 0
        total = self.extent(value)
        if total is None or tile <= 0:
            return None
        covered = CeilDiv(total, tile)
        return covered if total.known is None else covered.number({})

    def argument(self, value: ir.Value) -> Pointer | SizeValue | None:
        """The argument of a kernel that `value` is: a memref, a size or a stride."""
        if isinstance(value.type, ir.MemRefType):
            name = self._memref(value)
            return None if name is None else Pointer(name)
        is_integer = (
            isinstance(value.type, ir.IntegerType) and value.type.width == _BITS
        )
        if not is_integer and not isinstance(value.type, ir.IndexType):
            return None
        size = self.size(value)
        return None if size is None else SizeValue(size)

    def size(self, value: ir.Value) -> Extent | None:
        """What `value` is: a constant, a size or stride of an argument, or computed of
        these.
        """
        known = self.extent(value)
        if known is None or known.known is not None:
            return known and known.known
        match known.terms:
            case ((1, (one,)),):
                return one
        return known

    def extent(self, value: ir.Value) -> Polynomial | None:
        """`value` as a polynomial in sizes and strides of arguments, or None."""
        value = without(value, "arith.index_cast")
        known = constant(value)
        if known is not None:
            return number(known)
        if (op := made_by(value, "memref.dim")) is not None:
            dimension = constant(op.operands[1])
            return (
                None if dimension is None else self._size_of(op.operands[0], dimension)
            )
        if (stride := self._stride(value)) is not None:
            return factor(stride)
        if (op := made_by(value, "affine.apply")) is not None:
            (expression,) = op.attributes["map"].value.results
            return self._applied(expression, op)
        if (op := made_by(value, *_CALCULATIONS)) is None:
            return None
        if (whole := _shown_multiple(op)) is not None:
            return self.extent(whole)
        left, right = map(self.extent, op.operands)
        if left is None or right is None:
            return None
        return _CALCULATIONS[op.name](left, right)

    def _applied(self, expression: ir.AffineExpr, op: Any) -> Polynomial | None:
        """The value of a part of the map of an affine.apply."""
        match expression:
            case ir.AffineConstantExpr():
                return number(expression.value)
            case ir.AffineDimExpr():
                return self.extent(op.operands[expression.position])
            case ir.AffineSymbolExpr():
                first = op.attributes["map"].value.n_dims
                return self.extent(op.operands[first + expression.position])
            case ir.AffineAddExpr() | ir.AffineMulExpr():
                parts = [
                    self._applied(one, op) for one in (expression.lhs, expression.rhs)
                ]
                known = [one for one in parts if one is not None]
                if len(known) < len(parts):
                    return None
                is_sum = isinstance(expression, ir.AffineAddExpr)
                return known[0] + known[1] if is_sum else known[0] * known[1]
        return None

    def dimension(self, memref: ir.Value, number: int) -> Polynomial | None:
        """The size of a dimension, in sizes of arguments; None where not known."""
        return self._size_of(memref, number)

    def stride_of(
        self,
        memref: ir.Value,
        dimension: int,
        shape: Sequence[Polynomial | None],
        is_contiguous: bool,
    ) -> Polynomial | None:
        """The stride of a dimension, in elements; None where not known.

        shape: of the memref; is_contiguous: whether strides follow from it
        """
        strides, _ = memref.type.get_strides_and_offset()
        static = strides[dimension]
        if not memref.type.is_dynamic_stride_or_offset(static):
            return number(static)
        given = stride(memref, dimension)
        if given is not None:
            return number(given) if isinstance(given, int) else self.extent(given)
        if is_contiguous:
            total: Polynomial | None = number(1)
            for size in shape[dimension + 1 :]:
                total = None if total is None or size is None else total * size
            return total
        memref = without(memref, "memref.assume_alignment")
        if defining_op(memref) is not None:
            return None
        argument = ir.BlockArgument(memref).arg_number
        return factor(self.names.stride(argument, dimension))

    def _size_of(self, memref: ir.Value, dimension: int) -> Polynomial | None:
        """The size of a dimension of an argument, an allocation, or a view of one."""
        kind, op = memref.type, defining_op(memref)
        if not kind.is_dynamic_dim(dimension):
            return number(kind.shape[dimension])
        if op is None:
            argument = ir.BlockArgument(memref).arg_number
            size = self.names.size(argument, dimension)
            return number(size) if isinstance(size, int) else factor(size)
        if op.name in ("memref.cast", "memref.assume_alignment"):
            return self._size_of(op.operands[0], dimension)
        if op.name == "memref.collapse_shape":
            return self._collapsed(op, dimension)
        given = extent(memref, dimension)
        if given is None:
            return None
        return number(given) if isinstance(given, int) else self.extent(given)

    def _collapsed(self, op: ir.Operation, dimension: int) -> Polynomial | None:
        """The size of a dimension of a view that several were collapsed to."""
        total: Polynomial | None = number(1)
        for part in list(op.attributes["reassociation"])[dimension]:
            found = self._size_of(op.operands[0], part.value)
            total = None if total is None or found is None else total * found
        return total

    def _stride(self, value: ir.Value) -> str | None:
        """The stride of an argument that `value` is."""
        value = without(value, "arith.index_cast")
        op = made_by(value, "memref.extract_strided_metadata")
        if op is None:
            return None
        memref = without(op.operands[0], "memref.assume_alignment")
        dimension = value.result_number - 2 - memref.type.rank
        if dimension < 0 or defining_op(memref) is not None:
            return None
        return self.names.stride(ir.BlockArgument(memref).arg_number, dimension)

    def _memref(self, value: ir.Value) -> str | None:
        """The argument, buffer or constant that `value` is, or is a view of."""
        source = root(value)
        if source in self.allocated:
            return intermediate_name(list(self.allocated).index(source))
        owner = defining_op(source)
        if owner is None:
            return self._argument(source)
        if owner.name == "memref.extract_strided_metadata":
            return self._memref(owner.operands[0])
        if owner.name == "memref.get_global":
            return self.constants.get(owner.attributes["name"].value)
        return None

    def _argument(self, value: ir.Value) -> str | None:
        """The name of the argument that `value` is."""
        value = without(value, "memref.assume_alignment")
        if defining_op(value) is not None:
            return None
        return self.names.arguments[ir.BlockArgument(value).arg_number]


def _shown_multiple(op: ir.Operation) -> Any | None:
    """x of `x / c * c`, which shows a promise: x is a multiple of c.

    The launcher checks what is promised of rows.
    """
    if op.name != "arith.muli":
        return None
    for quotient, factor_ in permutations(op.operands):
        divided = made_by(quotient, "arith.divui")
        times = constant(factor_)
        if divided is not None and times and constant(divided.operands[1]) == times:
            return divided.operands[0]
    return None
