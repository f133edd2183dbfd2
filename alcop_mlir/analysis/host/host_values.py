"""What a value of a host function is: a number, a size or stride, a memref."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import constant, defining_op
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.bindings import arith, ir
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.polynomials import constant as number
from alcop_mlir.polynomials import size as factor

_CALCULATIONS = {
    "arith.addi": Polynomial.__add__,
    "arith.subi": Polynomial.__sub__,
    "arith.muli": Polynomial.__mul__,
}


@dataclass(frozen=True)
class SizeOf:
    """The size of a dimension of an argument, known when the function is called."""

    argument: int
    dimension: int


@dataclass(frozen=True)
class StrideOf:
    """The stride of a dimension of an argument, known when the function is called."""

    argument: int
    dimension: int


@dataclass(frozen=True)
class Local:
    """A buffer that the function allocates, by its number."""

    number: int


@dataclass(frozen=True)
class Blocks:
    """The number of tiles of `tile` elements that cover the product of sizes."""

    sizes: tuple[int | SizeOf, ...]
    tile: int


@dataclass(frozen=True)
class AtMost:
    """The condition that `least` is at most `most`."""

    least: Polynomial
    most: Polynomial


def asserted(value: Any) -> AtMost | None:
    """The order of sizes that holds where the i1 `value` is true."""
    op = defining_op(value)
    if op is None or op.operation.name != "arith.cmpi":
        return None
    left, right = map(extent, op.operation.operands)
    name = str(arith.CmpIPredicate(op.operation.attributes["predicate"].value))
    if left is None or right is None:
        return None
    if name in ("sge", "sgt"):
        left, right = right, left
    if name in ("slt", "sgt"):
        left = left + number(1)
    return AtMost(left, right) if name in ("sle", "sge", "slt", "sgt") else None


def blocks(value: Any) -> int | Blocks | None:
    """A number of blocks: a constant, a size, or the tiles that cover some sizes."""
    known, tile = constant(value), 1
    if known is not None:
        return known
    op = defining_op(value)
    if op is not None and op.operation.name == "arith.ceildivui":
        value, divisor = op.operation.operands
        tile = constant(divisor) or 0
    total = extent(value)
    if total is None or len(total.terms) != 1 or tile <= 0:
        return None
    ((coefficient, factors),) = total.terms
    return Blocks(((coefficient,) if coefficient != 1 else ()) + factors, tile)


def argument(
    value: Any, allocated: list[Any]
) -> int | Local | SizeOf | StrideOf | None:
    """The argument of a kernel that `value` is: a memref of the host, a size or stride.

    allocated: the buffers that the function allocates, in the order of their numbers
    """
    if isinstance(value.type, ir.MemRefType):
        return _memref_argument(value, allocated)
    known = size(value)
    return known if isinstance(known, SizeOf) else _stride(value)


def size(value: Any) -> int | SizeOf | None:
    """The size that `value` is: a constant, or the size of an argument."""
    known = extent(value)
    if known is None or known.known is not None:
        return known and known.known
    match known.terms:
        case ((1, (SizeOf() as one,)),):
            return one
    return None


def extent(value: Any) -> Polynomial | None:
    """`value` as a polynomial in sizes of arguments; None where it is none."""
    value = _without_index_casts(value)
    known, op = constant(value), defining_op(value)
    if known is not None:
        return number(known)
    if op is None:
        return None
    name, operands = op.operation.name, op.operation.operands
    if name == "memref.dim":
        dimension = constant(operands[1])
        return None if dimension is None else _dimension(operands[0], dimension)
    if name not in _CALCULATIONS:
        return None
    left, right = map(extent, operands)
    return None if left is None or right is None else _CALCULATIONS[name](left, right)


def _dimension(memref: Any, dimension: int) -> Polynomial | None:
    """The size of a dimension of an argument, an allocation, or a view of one."""
    kind, owner = memref.type, defining_op(memref)
    if not kind.is_dynamic_dim(dimension):
        return number(kind.shape[dimension])
    if owner is None:
        return factor(SizeOf(ir.BlockArgument(memref).arg_number, dimension))
    op = owner.operation
    if op.name == "memref.alloc":
        before = sum(kind.is_dynamic_dim(other) for other in range(dimension))
        return extent(op.operands[before])
    if op.name == "memref.cast":
        return _dimension(op.operands[0], dimension)
    if op.name == "memref.collapse_shape":
        return _collapsed(op, dimension)
    return None


def _collapsed(op: Any, dimension: int) -> Polynomial | None:
    """The size of a dimension of a view that several dimensions were collapsed to."""
    total: Polynomial | None = number(1)
    for part in list(op.attributes["reassociation"])[dimension]:
        found = _dimension(op.operands[0], part.value)
        total = None if total is None or found is None else total * found
    return total


def _stride(value: Any) -> StrideOf | None:
    """The stride of an argument that `value` is."""
    value = _without_index_casts(value)
    op = defining_op(value)
    if op is None or op.operation.name != "memref.extract_strided_metadata":
        return None
    (memref,) = op.operation.operands
    dimension = list(op.operation.results).index(value) - 2 - memref.type.rank
    if dimension < 0 or defining_op(memref) is not None:
        return None
    return StrideOf(ir.BlockArgument(memref).arg_number, dimension)


def _without_index_casts(value: Any) -> Any:
    op = defining_op(value)
    while op is not None and op.operation.name == "arith.index_cast":
        (value,) = op.operation.operands
        op = defining_op(value)
    return value


def _memref_argument(value: Any, allocated: list[Any]) -> int | Local | None:
    """The argument or the allocated buffer that `value` is, or is a view of."""
    source = root(value)
    if source in allocated:
        return Local(allocated.index(source))
    owner = defining_op(source)
    if owner is None:
        return ir.BlockArgument(source).arg_number
    if owner.operation.name == "memref.extract_strided_metadata":
        return _memref_argument(owner.operation.operands[0], allocated)
    return None
