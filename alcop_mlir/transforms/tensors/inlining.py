"""What one op computes for another, computed by that one: masks, places, single uses.

    %i = linalg.generic outs(%e : tensor<16xi64>) { yield linalg.index 0 }
    %m = linalg.generic ins(%i, %p) outs(..: tensor<16xi1>) { arith.cmpi eq }
    linalg.generic ins(%m, ..) ..  { arith.select %m, .. }
    ->  linalg.generic ins(%p, ..) .. { arith.select ((linalg.index 1) == %p), .. }

Upstream's linalg-fuse-elementwise-ops does so of all ops of a function, and makes
contractions of several ops' bodies, which are then none of tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors

_MOST_OPS = 64  # of a body


def with_integers(op: ir.Operation) -> Any:
    """The `linalg.generic` on tensors, or one that replaces it and computes integers
    and booleans itself that element-wise ops make for it.
    """
    return _with(op, lambda made, value: _is_integer(value))


def with_single_uses(op: ir.Operation) -> Any:
    """The `linalg.generic` on tensors, or one that replaces it and computes itself what
    element-wise ops make for it alone, each element once; up to 64 ops in a body.
    """
    return _with(op, _is_single_use)


def with_ops(op: ir.Operation, ops: Collection[Any]) -> Any:
    """The `linalg.generic` on tensors, or one that replaces it and computes itself what
    those of `ops` make for it that are element-wise.
    """
    return _with(op, lambda made, value: made.op in ops)


def _is_integer(value: ir.Value) -> bool:
    return isinstance(value.type.element_type, ir.IntegerType)


def _is_single_use(made: LinalgView, value: ir.Value) -> bool:
    (use, *others) = value.uses
    size = len(made.block.operations) + len(view_of(use.owner).block.operations)
    return not others and size <= _MOST_OPS


def _with(op: ir.Operation, wants: Callable[[LinalgView, ir.Value], bool]) -> Any:
    while True:
        view = view_of(op)
        pairs = (_producer(one, wants) for one in view.inputs)
        found = next(filter(None, pairs), None)
        if found is None:
            return op
        op = _inlined(view, *found)


def _producer(
    operand: Operand, wants: Callable[[LinalgView, ir.Value], bool]
) -> tuple[Operand, LinalgView] | None:
    """The operand, and the element-wise op that makes it, if that is wanted."""
    made = made_by(operand.value, "linalg.generic")
    if made is None:
        return None
    view = view_of(made)
    if len(view.outputs) != 1 or view.reductions or view.outputs[0].is_read:
        return None
    output = view.outputs[0]
    is_plain = output.loops == tuple(range(view.rank)) and all(
        index.loop is not None or index.constant == 0 for index in operand.indices
    )
    regions = any(len(one.operation.regions) for one in view.block.operations)
    is_wanted = is_plain and not regions and wants(view, operand.value)
    return (operand, view) if is_wanted else None


def _inlined(view: LinalgView, operand: Operand, producer: LinalgView) -> Any:
    """The op with the body of the op that makes `operand` instead of it."""
    others = [one for one in view.inputs if one is not operand]
    sources = [(one.value, _composed(one, operand)) for one in producer.inputs]
    inputs = [*((one.value, one.map) for one in others), *sources]
    outputs = [(one.value, one.map) for one in view.outputs]
    with view.op.location, ir.InsertionPoint(view.op):
        made = generic_on_tensors(
            [value for value, _ in inputs],
            [value for value, _ in outputs],
            [one for _, one in (*inputs, *outputs)],
            view.reductions,
        )
        kinds = [value.type.element_type for value, _ in (*inputs, *outputs)]
        here = view.op.location
        block = made.regions[0].blocks.append(*kinds, arg_locs=[here] * len(kinds))
        with ir.InsertionPoint(block):
            _write_body(view, operand, producer, others, list(block.arguments))
    for old, new in zip(view.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    view.op.erase()
    edit.erase_unused([producer.op])
    return made


def _composed(source: Operand, operand: Operand) -> ir.AffineMap:
    """The loops of the op that index what the op that makes `operand` reads."""
    results = [one.compose(operand.map) for one in source.map.results]
    return ir.AffineMap.get(operand.map.n_dims, 0, results)


def _write_body(
    view: LinalgView,
    operand: Operand,
    producer: LinalgView,
    others: Sequence[Operand],
    arguments: list[ir.Value],
) -> None:
    """Both bodies; `arguments` are of `others`, of the inner body, and of outputs."""
    first, rest = arguments[: len(others)], arguments[len(others) :]
    own = [*(one.argument for one in others)]
    mapping = dict(zip(own, first, strict=True))
    sources = [one.argument for one in producer.inputs]
    inner = dict(zip(sources, rest, strict=False))
    for index in walk(producer.op, "linalg.index"):
        loop = operand.indices[index.attributes["dim"].value].loop
        inner[index.results[0]] = (
            build.index(0) if loop is None else linalg.IndexOp(loop).result
        )
    (mapping[operand.argument],) = edit.inline(producer.block, inner)
    results = rest[len(sources) :]
    for one, argument in zip(view.outputs, results, strict=True):
        mapping[one.argument] = argument
    linalg.YieldOp(edit.inline(view.block, mapping))
