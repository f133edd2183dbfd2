"""Bodies of linalg ops as expressions: they compute what MLIR says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from alcop_mlir.analysis.linalg.scalar_code import expression
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.reference.evaluation import evaluate
from alcop_mlir.reference.expressions import Argument, Constant, Expression, Operation


def read(arguments: str, body: str, result: str) -> Expression | None:
    """Of what `%r` is, a `result`, in a function."""
    text = f"func.func @f({arguments}) -> {result} {{ {body} return %r : {result} }}"
    with make_context():
        module = ir.Module.parse(text)
    func = module.operation.regions[0].blocks[0].operations[0]
    block = func.operation.regions[0].blocks[0]
    (value,) = list(block.operations)[-1].operation.operands
    return expression(block, value)


def test_arguments_constants_and_ops() -> None:
    body = "%h = arith.constant 0.5 : f16 %r = arith.mulf %x, %h : f16"
    product = Operation("arith.mulf", "f16", (Argument(1), Constant(0.5)))
    assert read("%w: f16, %x: f16", body, "f16") == product
    assert read("%r: f32", "", "f32") == Argument(0)
    assert read("", "%r = arith.constant -3 : i8", "i8") == Constant(-3.0)
    assert read("", "%r = arith.constant true", "i1") == Constant(1.0)
    infinite = read("", "%r = arith.constant 0xFF800000 : f32", "f32")
    assert infinite == Constant(-math.inf)


X = np.array([-2.5, -1.0, 0.0, 0.25, 3.0])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "%c = arith.cmpf ogt, %x, %z : f32 %r = arith.select %c, %x, %z : f32",
            np.maximum(X, 0),
        ),
        (
            "%c = arith.cmpf une, %x, %z : f32 %d = arith.extui %c : i1 to i32 "
            "%r = arith.sitofp %d : i32 to f32",
            (X != 0) * 1.0,
        ),
        (
            "%n = arith.negf %x : f32 %e = math.exp %n : f32 "
            "%s = arith.addf %e, %o : f32 %r = arith.divf %x, %s : f32",
            X / (1 + np.exp(-X)),
        ),
        (
            "%i = arith.fptosi %x : f32 to i8 %k = arith.constant 100 : i8 "
            "%m = arith.muli %i, %k : i8 %r = arith.sitofp %m : i8 to f32",
            np.array([56, -100, 0, 0, 44.0]),
        ),
        (
            "%i = arith.fptosi %x : f32 to i32 %j = arith.constant 0 : i32 "
            "%c = arith.cmpi sge, %i, %j : i32 %r = arith.select %c, %o, %z : f32",
            np.array([0, 0, 1, 1, 1.0]),
        ),
        (
            "%i = arith.fptosi %x : f32 to i64 %r = arith.sitofp %i : i64 to f32",
            np.trunc(X),
        ),
        ("%p = arith.constant 2 : i32 %r = math.fpowi %x, %p : f32, i32", X**2),
    ],
    ids=["relu", "mask", "silu", "wrap", "integers", "wide", "power"],
)
def test_values(body: str, expected: np.ndarray) -> None:
    constants = "%z = arith.constant 0.0 : f32 %o = arith.constant 1.0 : f32 "
    found = read("%x: f32", constants + body, "f32")
    assert found is not None
    assert np.allclose(evaluate(found, [X]), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "body",
    [
        "%i = arith.fptosi %x : f32 to i128 %r = arith.sitofp %i : i128 to f32",
        "%i = arith.fptosi %x : f32 to i8 %r = arith.uitofp %i : i8 to f32",
        "%c = arith.cmpf oeq, %x, %x : f32 %r = arith.sitofp %c : i1 to f32",
        "%i = arith.bitcast %x : f32 to i32 %r = arith.bitcast %i : i32 to f32",
        "%r = math.erfc %x : f32",
    ],
)
def test_what_expressions_cannot_say(body: str) -> None:
    """64 bits, other signs, bit patterns, ops that are not in the table."""
    assert read("%x: f32", body, "f32") is None


def test_a_body_that_is_too_large() -> None:
    """As a tree: shared values count as often as they are used."""
    doubled = "".join(f"%v{n + 1} = arith.addf %v{n}, %v{n} : f32 " for n in range(12))
    body = f"%v0 = math.exp %x : f32 {doubled} %r = math.exp %v12 : f32"
    assert read("%x: f32", body, "f32") is None
