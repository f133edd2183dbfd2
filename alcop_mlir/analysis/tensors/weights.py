"""What of a function on tensors is computed from its weights alone, or from nothing.

A weight is an argument with the attribute `alcop.weight`, which many calls give alike,
and which the function does not update in place. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.updates import IN_PLACE
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

WEIGHT = "alcop.weight"

# What may be larger than the weights it is made of, as a vector of f32 per channel.
_SMALL = 1 << 16  # bytes
# As cheap where they are read, and copies elsewhere.
_VIEWS = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast")
_DIALECTS = ("linalg.", "tensor.", "arith.", "math.")
_ENDS = ("linalg.yield", "tensor.yield", "linalg.index")


@frozen
class Preparation:
    """What can be computed once per weights.

    weights: numbers of the arguments that are needed, in order
    ops:     that compute it, in order
    results: those of their results that others read
    """

    weights: tuple[int, ...]
    ops: tuple[Any, ...]
    results: tuple[Any, ...]


def find_preparation(function: ir.Operation) -> Preparation | None:
    """What the function's weights alone tell; None where that is nothing."""
    blocks = list(function.regions[0].blocks)
    if len(blocks) != 1:
        return None
    (block,) = blocks
    known = values_of_weights(function)
    made = _made(known, block)
    moved = _moved(made, known, block, weights_of(function))
    inside = {*moved}
    results = [one for op in moved for one in op.results if _is_read(one, inside)]
    if not results:
        return None
    needed, numbers = _needed(results, made, block)
    weights = sorted(numbers) or weights_of(function)[:1]
    return Preparation(tuple(weights), tuple(needed), tuple(results))


def values_of_weights(function: ir.Operation) -> dict[Any, frozenset[int]]:
    """Values of a function's only block that depend on its weights alone, or nothing.

    With each the numbers of the weights. The weights are such values.
    """
    (block,) = function.regions[0].blocks
    known: dict[Any, frozenset[int]] = {
        block.arguments[number]: frozenset([number]) for number in weights_of(function)
    }
    for op in (one.operation for one in block.operations):
        reads = list(_values_read(op, block))
        if _is_tensor_code(op) and all(value in known for value in reads):
            numbers = frozenset[int]().union(*(known[value] for value in reads))
            known.update((result, numbers) for result in op.results)
    return known


def _made(known: Container[Any], block: ir.Block) -> list[Any]:
    """The ops of a block that make known values, in order."""
    every = (one.operation for one in block.operations)
    return [one for one in every if any(result in known for result in one.results)]


def weights_of(function: ir.Operation) -> list[int]:
    """Numbers of the arguments that are weights: tensors of sizes that are known."""
    if "arg_attrs" not in function.attributes:
        return []
    kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
    every = enumerate(zip(kinds, function.attributes["arg_attrs"], strict=True))
    return [
        number
        for number, (kind, attributes) in every
        if _is_weight(ir.DictAttr(attributes)) and _is_static(kind)
    ]


def _is_weight(attributes: ir.DictAttr) -> bool:
    return WEIGHT in attributes and IN_PLACE not in attributes


def _is_static(kind: Any) -> bool:
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape


def _values_read(op: Any, block: ir.Block) -> Iterator[Any]:
    """The values of `block` that `op`, or an op in it, reads."""
    for inner in walk(op):
        for value in inner.operands:
            owner = value.owner
            where = owner if isinstance(owner, ir.Block) else owner.operation.block
            if where == block:
                yield value


def _is_tensor_code(op: Any) -> bool:
    """Whether it computes tensors or numbers, and may run early or never."""
    if not op.name.startswith(_DIALECTS) or not len(op.results):
        return False
    tensors = [one.type for one in op.results if isinstance(one.type, ir.ShapedType)]
    if not all(map(_is_static, tensors)):
        return False
    inner = [one for one in walk(op) if one != op]
    if not all(is_pure(one) or one.name in _ENDS for one in inner):
        return False
    return is_pure(op) or op.name.startswith(("linalg.", "tensor."))


def _moved(
    made: Sequence[Any],
    known: dict[Any, frozenset[int]],
    block: ir.Block,
    weights: Sequence[int],
) -> list[Any]:
    """Of the ops that depend on weights, or nothing, those worth to be run once."""
    moved: dict[Any, None] = {}
    long = _long(made)
    for op in reversed(made):
        numbers = known[op.results[0]]
        if not any(True for one in op.results for _ in one.uses):
            continue
        measured = weights if op in long else numbers or weights
        kinds = [block.arguments[number].type for number in measured]
        most = max(_SMALL, sum(map(_bytes, kinds)))
        is_small = sum(_bytes(one.type) for one in op.results) <= most
        is_read = any(_is_read(one, moved) for one in op.results)
        is_worth = bool(numbers) or op in long
        if not is_read or (is_small and is_worth and op.name not in _VIEWS):
            moved[op] = None
    return list(moved)[::-1]


def _long(made: Sequence[Any]) -> set[Any]:
    """The ops that compute functions, or make no more of what such ops make."""
    long: set[Any] = set()
    for op in made:
        read = [one for one in op.operands if defining_op(one) in long]
        size = sum(_bytes(one.type) for one in op.results)
        is_short = any(_bytes(one.type) >= size > 0 for one in read)
        if _takes_long(op) or is_short:
            long.add(op)
    return long


def _takes_long(op: ir.Operation) -> bool:
    """Whether it computes a function, as `math.cos`, for each element."""
    return op.name == "linalg.generic" and any(
        inner.name.startswith("math.") for inner in walk(op)
    )


def _is_read(value: Any, moved: Container[Any]) -> bool:
    """Whether an op besides those that are moved reads `value`."""
    return any(_top(use.owner.operation, value) not in moved for use in value.uses)


def _top(op: Any, value: Any) -> Any:
    """The op of the function's own block that is `op`, or has it inside."""
    block = value.owner.operation.block
    while op.block != block:
        op = op.parent.operation
    return op


def _needed(
    results: Sequence[Any], made: Sequence[Any], block: ir.Block
) -> tuple[list[Any], set[int]]:
    """The ops that the results are computed by, in order, and the weights they read."""
    wanted, ops = {*results}, list[Any]()
    for op in reversed(made):
        if any(result in wanted for result in op.results):
            ops.append(op)
            wanted.update(_values_read(op, block))
    arguments = [one for one in block.arguments if one in wanted]
    return ops[::-1], {one.arg_number for one in arguments}


def _bytes(kind: Any) -> int:
    """Of a tensor; of a number none."""
    if not isinstance(kind, ir.RankedTensorType):
        return 0
    return math.prod(kind.shape) * (element_bits(kind.element_type) or 64) // 8
