"""What the body of a matrix product multiplies: its inputs, or what is made of them.

  ^bb0(%a: f32, %b: f16, %c: f32):
    %half = arith.truncf %a : f32 to f16    a factor, computed of %a
    %x = arith.extf %half : f16 to f32
    %y = arith.extf %b : f16 to f32         %b itself is the other
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32

The body must multiply two factors and add to its output. What only widens them before
is left out: products are exact in f32 (i32) of either. Where the factors then differ in
type, they are taken as they are multiplied; but a number of 8 bits that became f32 is
exact in f16 and bf16 too.

Besides the array that is summed over, a factor may be made of inputs that are not: of
scalars (rank 0), and of one value per row or column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.bindings import ir, linalg

FLOATS = ("f16", "bf16", "f32")
_BODY_TYPES = (*FLOATS, "i32")  # an f64 sum is more than f32 accumulates
_WIDENING = ("arith.extf", "arith.extsi")
_CASTS = (*_WIDENING, "arith.truncf")
_SUMS = ("arith.addf", "arith.addi", "arith.mulf", "arith.muli", "linalg.yield")
_HALVES = ("f16", "bf16")


class NoContraction(Exception):
    """Carries the reason from the place that found it to who asked."""


@dataclass(frozen=True)
class OperandTransform:
    """One of the two factors of a body.

    value: in the body
    ops:   those that compute it, in order; none where it is an element of an input
    array: number of the input that it is made of, which is summed over
    others: numbers of those that are not
    kind:  the type that it is multiplied in, which holds `value` exactly
    """

    value: Any
    ops: tuple[Any, ...]
    array: int
    others: tuple[int, ...]
    kind: Any

    @property
    def is_computed(self) -> bool:
        """Whether it is more than an element of an input."""
        return bool(self.ops) or self.value.type != self.kind


def find_operand_transforms(op: Any) -> tuple[OperandTransform, OperandTransform]:
    """The factors of a linalg op's body, of its first array and of its second.

    Casts may stand anywhere as long as none is narrower than the output: products are
    accumulated in f32 whatever type the body adds in, and rounded once, which errs in
    the safe direction. Raises NoProduct where the body computes no product.
    """
    (block,) = op.regions[0].blocks
    narrowest = op.operands[len(op.operands) - 1].type.element_type.width
    multiplied = _multiplied(block)
    if multiplied is None:
        _check_sums(block.operations, narrowest)
        raise NoContraction("not a matrix product: the body does not add to its output")
    left, right = _of_one_type(*multiplied)
    if left.array == right.array:
        raise NoContraction(
            "not a matrix product: the body does not multiply its two inputs"
        )
    made = [*left.ops, *right.ops]
    _check_sums((op for op in block.operations if op.operation not in made), narrowest)
    return (left, right) if left.array < right.array else (right, left)


def _multiplied(block: Any) -> list[Any] | None:
    """The operands of the multiplication whose result is added to the output."""
    *_, out = block.arguments
    (yielded,) = list(block.operations)[-1].operation.operands
    addends = _operands_of(_behind(yielded, _CASTS), "arith.addf", "arith.addi")
    products = [v for v in (_behind(a, _CASTS) for a in addends) if v != out]
    if len(addends) != 2 or len(products) != 1:
        return None
    multiplied = _operands_of(products[0], "arith.mulf", "arith.muli")
    if not multiplied:
        raise NoContraction(
            "not a matrix product: the body does not multiply its two inputs"
        )
    return multiplied


def _of_one_type(left: Any, right: Any) -> tuple[OperandTransform, OperandTransform]:
    """The factors, as narrow as is exact and of one type if that is possible."""
    narrow = [_factor(_behind(value, _WIDENING)) for value in (left, right)]
    kinds = [str(factor.kind) for factor in narrow]
    for number, other in ((0, 1), (1, 0)):
        if kinds[other] in _HALVES and _is_byte(narrow[number].value):
            narrow[number] = replace(narrow[number], kind=narrow[other].kind)
    if narrow[0].kind == narrow[1].kind:
        return narrow[0], narrow[1]
    return _factor(left), _factor(right)


def _factor(value: Any) -> OperandTransform:
    """The factor `value`, made of an element of one array that is summed over."""
    block = _body_of(value)
    found, arguments = backward_slice([value], block)
    ops = [op.operation for op in found]
    for op in ops:
        _check_computed(op)
        _check_captured(op, block)
    inputs = sorted(argument.arg_number for argument in arguments)
    arrays = [number for number in inputs if number in _summed(block)] or inputs
    if len(arrays) != 1 or len(block.arguments) - 1 in inputs:
        raise NoContraction(
            "not a matrix product: expected factors that are each made of one input"
        )
    others = tuple(number for number in inputs if number not in arrays)
    return OperandTransform(value, tuple(ops), arrays[0], others, value.type)


def _body_of(value: Any) -> Any:
    owner = defining_op(value)
    return value.owner if owner is None else owner.operation.block


def _summed(block: Any) -> list[int]:
    """Numbers of the operands that are indexed by a loop that the output has not."""
    maps = linalg.get_indexing_maps(block.owner.operation)
    if maps is None:
        raise NoContraction("not a matrix product")
    loops = [{str(result) for result in one.value.results} for one in maps]
    return [number for number, own in enumerate(loops) if own - loops[-1]]


def _check_computed(op: Any) -> None:
    scalar = (ir.FloatType, ir.IntegerType)
    results: Iterable[Any] = op.results
    if not is_pure(op) or op.name.split(".")[0] not in ("arith", "math"):
        raise NoContraction(f"computes a factor by '{op.name}', expected arithmetic")
    if not all(isinstance(result.type, scalar) for result in results):
        raise NoContraction(f"computes a factor by '{op.name}', expected scalars")


def _check_captured(op: Any, block: Any) -> None:
    """Constants may stand outside of the body."""
    for value in op.operands:
        owner = defining_op(value)
        if owner is None and value.owner != block:
            raise NoContraction("computes a factor of a value that is not constant")
        if (
            owner is not None
            and owner.operation.block != block
            and (owner.operation.name != "arith.constant")
        ):
            raise NoContraction(
                f"computes a factor of the result of '{owner.operation.name}'"
            )


def _check_sums(ops: Iterable[Any], narrowest: int) -> None:
    """Of ops that sum up: what they compute must be no more than we compute."""
    for op in ops:
        if op.operation.name not in (*_CASTS, *_SUMS):
            raise NoContraction(
                f"not a matrix product: the body holds '{op.operation.name}'"
            )
        for result in op.operation.results:
            _check_sum(op.operation.name, result.type, narrowest)


def _check_sum(name: str, kind: Any, narrowest: int) -> None:
    if str(kind) not in _BODY_TYPES:
        raise NoContraction(
            f"computes in {kind}, sums are kept in f32, or i32 of integers"
        )
    if name == "arith.truncf" and kind.width < narrowest:
        raise NoContraction(f"rounds to {kind}, narrower than the output")


def _is_byte(value: Any) -> bool:
    """Whether it is an integer of 8 bits made f32."""
    owner = defining_op(value)
    if owner is None or owner.operation.name != "arith.sitofp":
        return False
    source = owner.operation.operands[0].type
    return (
        str(value.type) == "f32"
        and isinstance(source, ir.IntegerType)
        and (source.width <= 8)
    )


def _behind(value: Any, casts: tuple[str, ...]) -> Any:
    """What `value` was before casts of these names."""
    while (owner := defining_op(value)) is not None and owner.operation.name in casts:
        value = owner.operation.operands[0]
    return value


def _operands_of(value: Any, *names: str) -> list[Any]:
    """Operands of the op called so that defines `value`; none if another does."""
    owner = defining_op(value)
    if owner is None or owner.operation.name not in names:
        return []
    return list(owner.operation.operands)
