"""What the body of a contraction multiplies: elements, or operand transforms of them.

  ^bb0(%a: f32, %b: f16, %c: f32):
    %half = arith.truncf %a : f32 to f16    an operand transform of %a
    %x = arith.extf %half : f16 to f32
    %y = arith.extf %b : f16 to f32         %b has none: only widened
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32

The body must multiply two values and add to its output. Casts that only widen these
before are not part of the transforms: products of numbers of either type are exact in
f32 (i32). Where the transforms then differ in type, the widened values are taken; but
an 8-bit integer that became f32 is exact in f16 and bf16 too, and so are 8-bit floats,
of which two types may be multiplied by each other.

Besides A (or B), a transform may read inputs that the reduction loop does not index:
scalars (rank 0), and memrefs with one value per row or column. Of what holds two
elements in a byte it is computed from the nibble, see `nibbles`; it may then read
memrefs with one value per column and group along the reduction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir.loops import block_of, defining_op, made_by, without
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.linalg.nibbles import (
    find_nibble,
    nibble_ops,
    packed_operand,
)
from alcop_mlir.analysis.linalg.view import LinalgView
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import (
    ACCUMULATORS,
    CONTRACTION_TYPES,
    EIGHT_BIT_FLOATS,
    ELEMENT_TYPES,
    widened,
)
from alcop_mlir.frozen import frozen

_WIDENING = ("arith.extf", "arith.extsi")
_CASTS = (*_WIDENING, "arith.truncf")
_OF_NIBBLES = ("arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp")
_SUMS = ("arith.addf", "arith.addi", "arith.mulf", "arith.muli", "linalg.yield")
# Floats that are multiplied and have 8 bits for a value: bytes are exact in them.
_HOLD_BYTES = tuple(
    name for name in ACCUMULATORS if 0 < ELEMENT_TYPES[name].rounding <= 2.0**-8
)


class NoContraction(Exception):
    """Carries the reason to `contractions.classify`."""


@frozen
class OperandTransform:
    """One of the two values that a body multiplies.

    value:   in the body
    ops:     the ops that compute it, in order; none where it is an element of an input
    operand: number of the op's operand that it is computed from, A or B
    others:  numbers of other inputs that it is computed from
    kind:    the type that it is multiplied in, which is exact for `value`
    nibble:  what it is computed from, where the operand holds two elements in a byte
    """

    value: Any
    ops: tuple[Any, ...]
    operand: int
    others: tuple[int, ...]
    kind: Any
    nibble: Any = None

    @property
    def is_computed(self) -> bool:
        """Whether it is more than an element of an input."""
        return bool(self.ops) or self.value.type != self.kind


def find_operand_transforms(
    view: LinalgView,
) -> tuple[OperandTransform, OperandTransform]:
    """The operand transforms of an op's body, by the numbers of their operands.

    The body may cast anywhere as long as no type is narrower than the output: the
    accumulator type is f32 whatever type the body adds in, and is rounded once, which
    is more exact. Raises NoContraction for any other body.
    """
    block = view.block
    narrowest = view.outputs[0].value.type.element_type.width
    multiplied = _multiplied(block)
    if multiplied is None:
        _check_accumulation(block.operations, narrowest)
        raise NoContraction("not a contraction: the body does not add to its output")
    left, right = _of_one_type(view, *multiplied)
    if left.operand == right.operand:
        raise NoContraction(
            "not a contraction: the body does not multiply its two inputs"
        )
    made = [*left.ops, *right.ops]
    for one in (left, right):
        made += nibble_ops(one.nibble) if one.nibble is not None else []
    _check_accumulation(
        (op for op in block.operations if op.operation not in made), narrowest
    )
    return (left, right) if left.operand < right.operand else (right, left)


def _multiplied(block: ir.Block) -> list[Any] | None:
    """The operands of the multiplication whose result is added to the output."""
    *_, out = block.arguments
    (yielded,) = list(block.operations)[-1].operation.operands
    addends = _operands_of(without(yielded, *_CASTS), "arith.addf", "arith.addi")
    terms = [v for v in (without(a, *_CASTS) for a in addends) if v != out]
    if len(addends) != 2 or len(terms) != 1:
        return None
    multiplied = _operands_of(terms[0], "arith.mulf", "arith.muli")
    if not multiplied:
        raise NoContraction(
            "not a contraction: the body does not multiply its two inputs"
        )
    return multiplied


def _of_one_type(
    view: LinalgView, left: ir.Value, right: ir.Value
) -> tuple[OperandTransform, OperandTransform]:
    """The transforms, as narrow as is exact and of one type if possible."""
    narrow = [_transform(view, without(value, *_WIDENING)) for value in (left, right)]
    kinds = [str(transform.kind) for transform in narrow]
    for number, other in ((0, 1), (1, 0)):
        is_held = _is_held(kinds[number], kinds[other])
        if kinds[other] in _HOLD_BYTES and (is_held or _is_byte(narrow[number].value)):
            narrow[number] = replace(narrow[number], kind=narrow[other].kind)
    if narrow[0].kind == narrow[1].kind or {*kinds} <= {*EIGHT_BIT_FLOATS}:
        return narrow[0], narrow[1]
    return _transform(view, left), _transform(view, right)


def widened_for(
    transforms: tuple[OperandTransform, OperandTransform], multiplied: Collection[str]
) -> tuple[OperandTransform, OperandTransform]:
    """The transforms on a target whose mma.sync multiplies the types `multiplied`, and
    those that it does everywhere: others are multiplied in a type that holds them.
    """
    kinds = {str(one.kind) for one in transforms}
    if kinds <= {*multiplied} or not kinds <= {*EIGHT_BIT_FLOATS}:
        return transforms
    (wide,) = {widened(kind) for kind in kinds}
    return in_type(transforms, wide)


def in_type(
    transforms: tuple[OperandTransform, OperandTransform], name: str
) -> tuple[OperandTransform, OperandTransform]:
    """The transforms, multiplied in a type that is exact for both."""
    with transforms[0].value.type.context:
        kind = ir.Type.parse(name)
    left, right = (replace(one, kind=kind) for one in transforms)
    return left, right


def _is_held(own: str, other: str) -> bool:
    """Whether one type is of floats of eight bits that are exact in the other."""
    is_narrow = own in EIGHT_BIT_FLOATS and own != other and other in ELEMENT_TYPES
    return is_narrow and ELEMENT_TYPES[other].holds(ELEMENT_TYPES[own])


def _transform(view: LinalgView, value: ir.Value) -> OperandTransform:
    """The transform that computes `value` from an element of A or of B."""
    block = view.block
    packed = packed_operand(view)
    nibble = None if packed is None else find_nibble(block)
    found, arguments = backward_slice(
        [value], block, () if packed is None else (nibble,)
    )
    ops = [op.operation for op in found]
    for op in ops:
        _check_computed(op, block)
    if (
        packed is not None
        and nibble is not None
        and any(nibble in (*op.operands,) for op in ops)
    ):
        _check_nibble(nibble)
        others = tuple(sorted(argument.arg_number for argument in arguments))
        return OperandTransform(value, tuple(ops), packed, others, value.type, nibble)
    inputs = sorted(argument.arg_number for argument in arguments)
    out = set(view.outputs[0].indices)
    # Those that are indexed by what does not index the output.
    reduced = [n for n in inputs if set(view.operands[n].indices) - out]
    operands = reduced or inputs
    if len(operands) != 1 or len(view.inputs) in inputs:
        raise NoContraction(
            "not a contraction: expected operand transforms that each read one input"
        )
    others = tuple(number for number in inputs if number not in operands)
    return OperandTransform(value, tuple(ops), operands[0], others, value.type)


def _check_computed(op: ir.Operation, block: ir.Block) -> None:
    """Raise unless `op` computes scalars, from the body and from constants."""
    what = f"has '{op.name}' in an operand transform, expected"
    if not is_pure(op) or op.name.split(".")[0] not in ("arith", "math"):
        raise NoContraction(f"{what} arithmetic")
    scalar = (ir.FloatType, ir.IntegerType)
    if not all(isinstance(result.type, scalar) for result in op.results):
        raise NoContraction(f"{what} scalars")
    for value in op.operands:
        owner = defining_op(value)
        if block_of(value) == block or made_by(value, "arith.constant") is not None:
            continue
        if owner is None:
            raise NoContraction(
                "has an operand transform of a value that is not constant"
            )
        raise NoContraction(
            f"has an operand transform of the result of '{owner.name}', "
            "which is computed outside of the body"
        )


def _check_nibble(nibble: ir.Value) -> None:
    """Raise unless all that reads it makes other types of it."""
    for use in nibble.uses:
        if use.owner.operation.name not in _OF_NIBBLES:
            raise NoContraction(
                f"has '{use.owner.operation.name}' of a number of four bits, expected "
                f"{' or '.join(_OF_NIBBLES)}"
            )


def _check_accumulation(ops: Iterable[ir.Operation], narrowest: int) -> None:
    """Raise if the ops that accumulate do more, or more exactly, than mma.sync."""
    for op in ops:
        if op.operation.name not in (*_CASTS, *_SUMS):
            raise NoContraction(
                f"not a contraction: the body has '{op.operation.name}'"
            )
        for kind in (result.type for result in op.operation.results):
            if str(kind) not in CONTRACTION_TYPES:  # f64: accumulators are less exact
                raise NoContraction(
                    f"computes in {kind}, expected {', '.join(CONTRACTION_TYPES)}: "
                    "accumulators are f32, or i32 for integers"
                )
            if op.operation.name == "arith.truncf" and kind.width < narrowest:
                raise NoContraction(f"rounds to {kind}, narrower than the output")


def _is_byte(value: ir.Value) -> bool:
    """Whether it is an 8-bit integer that was converted to f32."""
    op = made_by(value, "arith.sitofp")
    return (
        op is not None and str(value.type) == "f32" and op.operands[0].type.width <= 8
    )


def _operands_of(value: ir.Value, *names: str) -> list[Any]:
    """Operands of the op that makes `value`; none if it has another name."""
    op = made_by(value, *names)
    return [] if op is None else list(op.operands)
