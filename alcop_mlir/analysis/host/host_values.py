"""What a value of a host function is: a number, a size or stride, a memref."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import (
    constant,
    defining_op,
    made_by,
    without,
)
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.bindings import arith, ir
from alcop_mlir.manifest.kernels import AtMost, CeilDiv, Pointer, SizeValue
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class HostValues:
    """Reads the values of one host function.

    allocated: the buffers that it allocates, in the order of their numbers
    constants: the names of constants, by the symbols of their globals
    """

    names: Names
    allocated: Sequence[Any]
    constants: Mapping[str, str] = field(default_factory=dict)

    def asserted(self, value: ir.Value) -> AtMost | None:
        """The order of sizes that holds where the i1 `value` is true."""
        op = made_by(value, "arith.cmpi")
        if op is None:
            return None
        left, right = map(self.extent, op.operands)
        name = str(arith.CmpIPredicate(op.attributes["predicate"].value))
        if left is None or right is None:
            return None
        if name in ("sge", "sgt"):
            left, right = right, left
        if name in ("slt", "sgt"):
            left = left + number(1)
        return AtMost(left, right) if name in ("sle", "sge", "slt", "sgt") else None

    def blocks(self, value: ir.Value) -> int | CeilDiv | None:
        """A number of blocks: a constant, or the tiles that cover some sizes."""
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
        size = self._stride(value) if size is None else size
        return None if size is None else SizeValue(size)

    def size(self, value: ir.Value) -> Size | None:
        """The size that `value` is: a constant, or the size of an argument."""
        known = self.extent(value)
        if known is None or known.known is not None:
            return known and known.known
        match known.terms:
            case ((1, (one,)),):
                return one
        return None

    def extent(self, value: ir.Value) -> Polynomial | None:
        """`value` as a polynomial in sizes of arguments; None where it is none."""
        value = without(value, "arith.index_cast")
        known = constant(value)
        if known is not None:
            return number(known)
        if (op := made_by(value, "memref.dim")) is not None:
            dimension = constant(op.operands[1])
            return (
                None if dimension is None else self._size_of(op.operands[0], dimension)
            )
        if (op := made_by(value, *_CALCULATIONS)) is None:
            return None
        left, right = map(self.extent, op.operands)
        if left is None or right is None:
            return None
        return _CALCULATIONS[op.name](left, right)

    def _size_of(self, memref: ir.Value, dimension: int) -> Polynomial | None:
        """The size of a dimension of an argument, an allocation, or a view of one."""
        kind, op = memref.type, defining_op(memref)
        if not kind.is_dynamic_dim(dimension):
            return number(kind.shape[dimension])
        if op is None:
            argument = ir.BlockArgument(memref).arg_number
            size = self.names.size(argument, dimension)
            return number(size) if isinstance(size, int) else factor(size)
        if op.name == "memref.alloc":
            before = sum(kind.is_dynamic_dim(other) for other in range(dimension))
            return self.extent(op.operands[before])
        if op.name == "memref.cast":
            return self._size_of(op.operands[0], dimension)
        if op.name == "memref.collapse_shape":
            return self._collapsed(op, dimension)
        return None

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
        (memref,) = op.operands
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
            return self.names.arguments[ir.BlockArgument(source).arg_number]
        if owner.name == "memref.extract_strided_metadata":
            return self._memref(owner.operands[0])
        if owner.name == "memref.get_global":
            return self.constants.get(owner.attributes["name"].value)
        return None
