"""Compute what depends on weights alone in a function of its own, which runs once.

Before:  func.func @main(%w: tensor<32x16x3x3xf16> {alcop.weight}, %x: ..) -> .. {
           %t = linalg.transpose ins(%w : ..) outs(%e) permutation = [0, 2, 3, 1]
           %y = linalg.generic ins(%x, %t : ..) .. }
After:   func.func @main(%w: tensor<32x16x3x3xf16>, %x: .., %t: tensor<32x3x3x16xf16>)
             -> .. attributes {alcop.prepare = {
                 arrays = 1, function = "main_prepare", weights = [0]}} {
           %y = linalg.generic ins(%x, %t : ..) .. }
         func.func @main_prepare(%w: tensor<32x16x3x3xf16>) -> tensor<32x3x3x16xf16> {
           %t = linalg.transpose ins(%w : ..) outs(%e) permutation = [0, 2, 3, 1]
           return %t }

The last `arrays` arguments of the function are what the other one returns for the
arguments `weights`: whoever launches it runs that once, and again for other weights.
Filters in another order, scale and shift of a batch norm, casts of biases are such, and
so is what depends on nothing and takes a function as `cos` for each element, with casts
of that. A view of a weight stays where it is read, and so does what is larger than its
weights and than 64 KiB, as a bias for each pixel; what takes functions may be as large
as all weights. Functions that are called are left unchanged, but for the mark; so is
what has no weights.

Runs before bufferization, after alcop-propagate-layouts made transposes of filters and
alcop-fold-transposes took in those of matrices. Reads and erases `alcop.weight` on
arguments; writes `alcop.prepare`, which becomes part of the manifest.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.symbols import name_of, top_level
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.tensors.weights import (
    WEIGHT,
    Preparation,
    find_preparation,
)
from alcop_mlir.bindings import func, ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass


@frozen
class PrepareWeights(Pass):
    name = "alcop-prepare-weights"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        called = {one.attributes["callee"].value for one in walk(op, "func.call")}
        functions = top_level(op, "func.func")
        taken = set(map(name_of, functions))
        for function in functions:
            if not _is_marked(function):
                continue
            found = find_preparation(function)
            if found is not None and name_of(function) not in called:
                name = _unused(f"{name_of(function)}_prepare", taken)
                with function.location:
                    _make(function, name, found)
                    _use(function, name, found)
            _unmark(function)


def _is_marked(function: ir.Operation) -> bool:
    given = function.attributes
    has_body = len(function.regions[0].blocks) > 0
    return has_body and any(
        WEIGHT in ir.DictAttr(one)
        for one in (given["arg_attrs"] if "arg_attrs" in given else ())
    )


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _make(function: ir.Operation, name: str, found: Preparation) -> None:
    """The function that computes what is found, behind `function`."""
    (block,) = function.regions[0].blocks
    weights = [block.arguments[number] for number in found.weights]
    kinds = [one.type for one in weights], [one.type for one in found.results]
    with ir.InsertionPoint.after(function):
        made = func.FuncOp(name, ir.FunctionType.get(*kinds))
    places = [one.location for one in weights]
    body = made.operation.regions[0].blocks.append(*kinds[0], arg_locs=places)
    known = dict(zip(weights, body.arguments, strict=True))
    with ir.InsertionPoint(body):
        for op in found.ops:
            edit.clone(op, known)
        func.ReturnOp([known[one] for one in found.results])


def _use(function: ir.Operation, name: str, found: Preparation) -> None:
    """Take as arguments what the function `name` returns."""
    (block,) = function.regions[0].blocks
    old = ir.FunctionType(function.attributes["function_type"].value)
    for result in found.results:
        argument = block.add_argument(result.type, result.owner.operation.location)
        result.replace_all_uses_with(argument)
    edit.erase_unused(reversed(found.ops))
    kinds = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(kinds, old.results)
    )
    every = list(function.attributes["arg_attrs"])
    every += [ir.DictAttr.get({})] * len(found.results)
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(every)
    i64 = build.integer(64)
    parts: dict[str, Any] = {
        "arrays": ir.IntegerAttr.get(i64, len(found.results)),
        "function": ir.StringAttr.get(name),
        "weights": ir.ArrayAttr.get(
            [ir.IntegerAttr.get(i64, n) for n in found.weights]
        ),
    }
    function.attributes[alcop.PREPARE] = ir.DictAttr.get(parts)


def _unmark(function: ir.Operation) -> None:
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [
            ir.DictAttr.get(
                {one.name: one.attr for one in attributes if one.name != WEIGHT}
            )
            for attributes in map(ir.DictAttr, function.attributes["arg_attrs"])
        ]
    )
