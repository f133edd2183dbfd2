"""What a program of torch-mlir's computes of sizes, as torch's expressions.

    %d = tensor.dim %arg0, %c1          // s0
    %n = arith.floordivsi %d, %c2       // Quotient(s0, 2)
    %m = arith.minsi %n, %d             // Quotient(s0, 2), which is no larger than s0

Nothing is changed. A value that is no size, or not known to be one, has no expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from alcop_mlir.frozen import frozen
from alcop_mlir.torch.symbols import canonical, is_at_most, quotient

# The predicates of arith.cmpi, in the order of their numbers.
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")
_AFFINE = {
    "AffineAddExpr": "addi", "AffineMulExpr": "muli", "AffineModExpr": "remsi",
    "AffineFloorDivExpr": "floordivsi", "AffineCeilDivExpr": "ceildivsi",
}  # fmt: skip
_SAME = ("arith.index_cast", "arith.extsi", "arith.trunci")
# Ops whose result has the shape of an operand, by the operand's number.
_SHAPED = {"tensor.insert_slice": 1, "tensor.insert": 1, "arith.select": 1}


@frozen
class Known:
    """What torch knows of the sizes of a program.

    arguments: the size of each dimension of each argument, in canonical form
    least: what symbols are at least
    """

    arguments: Sequence[Sequence[Any]]
    least: Mapping[Any, int]


class Shapes:
    """The expressions of the sizes in one block, by the bindings of torch-mlir."""

    def __init__(self, ir: Any, known: Known) -> None:
        self._ir, self._known = ir, known
        self._found: dict[Any, Any] = {}

    def size(self, value: Any) -> Any:
        """The expression of an index or integer, a bool of an i1; None if unknown."""
        if value not in self._found:
            self._found[value] = self._size(value)
        return self._found[value]

    def shape(self, value: Any) -> list[Any]:
        """The size of each dimension of a tensor; None for one that is not known."""
        kind = value.type
        if not any(kind.is_dynamic_dim(n) for n in range(kind.rank)):
            return [sympy.Integer(size) for size in kind.shape]
        if ("shape", value) not in self._found:
            self._found["shape", value] = self._shape(value)
        made = self._found["shape", value] or [None] * kind.rank
        return [
            size if kind.is_dynamic_dim(n) else sympy.Integer(kind.shape[n])
            for n, size in enumerate(made)
        ]

    def _size(self, value: Any) -> Any:
        op = self._op(value)
        if op is None:
            return None
        if op.name == "arith.constant":
            given = op.attributes["value"]
            is_integer = isinstance(given, self._ir.IntegerAttr)
            return sympy.Integer(given.value) if is_integer else None
        if op.name == "tensor.dim":
            return self._dimension(*op.operands)
        if op.name in _SAME:
            return self.size(op.operands[0])
        if op.name == "affine.apply":
            (made,) = op.attributes["map"].value.results
            return self._applied(made, op)
        if not op.name.startswith("arith."):
            return None
        operands = [self.size(operand) for operand in op.operands]
        if op.name == "arith.select":
            condition, one, other = operands
            return None if condition is None else one if condition else other
        if len(operands) != 2 or None in operands:
            return None
        if op.name == "arith.cmpi":
            return self._compared(op.attributes["predicate"].value, *operands)
        return self._computed(op.name, *operands)

    def _dimension(self, array: Any, which: Any) -> Any:
        number = self.size(which)
        return None if number is None else self.shape(array)[int(number)]

    def _applied(self, made: Any, op: Any) -> Any:
        """The value of a part of the map of an affine.apply."""
        ir = self._ir
        match made:
            case ir.AffineConstantExpr():
                return sympy.Integer(made.value)
            case ir.AffineDimExpr():
                return self.size(op.operands[made.position])
            case ir.AffineSymbolExpr():
                first = op.attributes["map"].value.n_dims
                return self.size(op.operands[first + made.position])
        name = _AFFINE.get(type(made).__name__)
        parts = [self._applied(part, op) for part in (made.lhs, made.rhs)]
        return None if name is None or None in parts else self._computed(name, *parts)

    def _computed(self, name: str, one: Any, other: Any) -> Any:
        match name.removeprefix("arith."):
            case "addi":
                return canonical(one + other)
            case "subi":
                return canonical(one - other)
            case "muli":
                return canonical(one * other)
            case "floordivsi":
                return quotient(one, other)
            case "divsi" | "divui" if self._at_most(sympy.Integer(0), one):
                return quotient(one, other)
            case "ceildivsi" | "ceildivui":
                return quotient(canonical(one + other - 1), other)
            case "remsi" | "remui" if self._at_most(sympy.Integer(0), one):
                return canonical(one - other * quotient(one, other))
            case "minsi" | "minui":
                return self._extreme(one, other)
            case "maxsi" | "maxui":
                least = self._extreme(one, other)
                return None if least is None else one if least is other else other
        return None

    def _extreme(self, one: Any, other: Any) -> Any:
        """The smaller one."""
        if self._at_most(one, other):
            return one
        return other if self._at_most(other, one) else None

    def _compared(self, predicate: int, one: Any, other: Any) -> bool | None:
        if predicate >= len(_PREDICATES):
            return None
        name = _PREDICATES[predicate]
        if name in ("sgt", "sge"):
            one, other, name = other, one, name.replace("g", "l")
        if name in ("eq", "ne"):
            if one == other:
                return name == "eq"
            differ = self._at_most(one + 1, other) or self._at_most(other + 1, one)
            return name == "ne" if differ else None
        more = int(name == "slt")
        if self._at_most(one + more, other):
            return True
        return False if self._at_most(other + 1 - more, one) else None

    def _at_most(self, one: Any, other: Any) -> bool:
        return is_at_most(one, other, self._known.least)

    def _op(self, value: Any) -> Any:
        return None if isinstance(value.owner, self._ir.Block) else value.owner

    def _shape(self, value: Any) -> list[Any] | None:
        """The sizes of a tensor, of which static ones may be missing."""
        op = self._op(value)
        if op is None:
            return self._of_argument(value)
        if op.name.startswith("linalg."):
            return self.shape(self._output(op, value))
        if op.name in _SHAPED:
            return self.shape(op.operands[_SHAPED[op.name]])
        match op.name.removeprefix("tensor."):
            case "empty" | "generate":
                return self._given(value.type.shape, list(op.operands))
            case "cast":
                return self.shape(op.operands[0])
            case "reshape":
                return reshaped(self, op)
            case "expand_shape":
                return self._given(value.type.shape, list(op.operands)[1:])
            case "collapse_shape":
                return self._collapsed(op)
            case "pad":
                return self._padded(op)
            case "extract_slice":
                return self._sliced(op, value.type.rank)
            case "concat":
                return self._joined(op)
        return None

    def _of_argument(self, value: Any) -> list[Any] | None:
        arguments = self._known.arguments
        number = self._ir.BlockArgument(value).arg_number
        is_main = value.owner.owner.operation.name == "func.func"
        return list(arguments[number]) if is_main else None

    def _output(self, op: Any, value: Any) -> Any:
        """The operand that a result of a linalg op starts from."""
        first = len(op.operands) - len(op.results)
        number = next(n for n, one in enumerate(op.results) if one == value)
        return op.operands[first + number]

    def _given(self, shape: Sequence[int], sizes: Sequence[Any]) -> list[Any]:
        """A shape of which `sizes` are those that are not static."""
        rest = iter(sizes)
        unknown = self._ir.ShapedType.get_dynamic_size()
        return [
            self.size(next(rest)) if one == unknown else sympy.Integer(one)
            for one in shape
        ]

    def _collapsed(self, op: Any) -> list[Any]:
        source = self.shape(op.operands[0])
        groups = [
            [part.value for part in one] for one in op.attributes["reassociation"]
        ]
        return [_product([source[n] for n in group]) for group in groups]

    def _padded(self, op: Any) -> list[Any]:
        low = self._mixed(op, "static_low", 1)
        high = self._mixed(op, "static_high", 2)
        sizes = zip(self.shape(op.operands[0]), low, high, strict=True)
        return [_sum(parts) for parts in sizes]

    def _sliced(self, op: Any, rank: int) -> list[Any] | None:
        sizes = self._mixed(op, "static_sizes", 2)
        return sizes if len(sizes) == rank else None

    def _mixed(self, op: Any, name: str, segment: int) -> list[Any]:
        """Numbers of an op, some of them operands: those of a segment of operands."""
        segments = list(op.attributes["operandSegmentSizes"])
        first = sum(segments[:segment])
        given = list(op.operands)[first : first + segments[segment]]
        return self._given(list(op.attributes[name]), given)

    def _joined(self, op: Any) -> list[Any]:
        shapes = [self.shape(operand) for operand in op.operands]
        made, along = list(shapes[0]), op.attributes["dim"].value
        made[along] = _sum([shape[along] for shape in shapes])
        return made


def reshaped(shapes: Shapes, op: Any) -> list[Any] | None:
    """The sizes that a `tensor.reshape` gives."""
    made_by = op.operands[1].owner
    if getattr(made_by, "name", "") != "tensor.from_elements":
        return None
    return [shapes.size(size) for size in made_by.operands]


def _sum(parts: Sequence[Any]) -> Any:
    return None if None in parts else canonical(sympy.Add(*parts))


def _product(parts: Sequence[Any]) -> Any:
    return None if None in parts else canonical(sympy.Mul(*parts))
