"""Expressions: their values, how far off a kernel may be, and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from alcop_mlir import codec
from alcop_mlir.element_types import TINY
from alcop_mlir.errors import ConfigError
from alcop_mlir.reference import expressions
from alcop_mlir.reference.evaluation import Bounded, bounded, evaluate
from alcop_mlir.reference.expressions import (
    OPERATIONS,
    Argument,
    Constant,
    Expression,
    Operation,
)

X, Y, Z = (Argument(number) for number in range(3))


def f32(name: str, *operands: Expression) -> Operation:
    return Operation(name, "f32", operands)


GELU = f32(
    "arith.mulf",
    f32("arith.mulf", X, Constant(0.5)),
    f32(
        "arith.addf",
        f32("math.erf", f32("arith.divf", X, Constant(math.sqrt(2)))),
        Constant(1.0),
    ),
)
# Values of all ops, by MLIR's definitions.
VALUES = [
    ("arith.negf", (1.5,), -1.5),
    ("arith.subf", (1.5, 2.0), -0.5),
    ("arith.divf", (1.0, 8.0), 0.125),
    ("arith.remf", (-5.5, 2.0), -1.5),
    ("arith.maximumf", (math.nan, 1.0), math.nan),
    ("arith.maxnumf", (math.nan, 1.0), 1.0),
    ("arith.minimumf", (-1.0, math.nan), math.nan),
    ("arith.minnumf", (-1.0, math.nan), -1.0),
    ("arith.select", (1, 2.5, 3.5), 2.5),
    ("arith.select", (0, 2.5, 3.5), 3.5),
    ("math.fma", (2.0, 3.0, 4.0), 10.0),
    ("math.round", (2.5,), 3.0),
    ("math.round", (-2.5,), -3.0),
    ("math.roundeven", (2.5,), 2.0),
    ("math.trunc", (-2.7,), -2.0),
    ("math.floor", (-2.7,), -3.0),
    ("math.ceil", (-2.7,), -2.0),
    ("math.rsqrt", (4.0,), 0.5),
    ("math.cbrt", (-8.0,), -2.0),
    ("math.exp2", (-3.0,), 0.125),
    ("math.powf", (2.0, -2.0), 0.25),
    ("math.fpowi", (-2.0, -3), -0.125),
    ("math.asinh", (0.5,), math.asinh(0.5)),
    ("math.acosh", (1.5,), math.acosh(1.5)),
    ("math.atanh", (0.5,), math.atanh(0.5)),
    ("math.log2", (8.0,), 3.0),
    ("math.log10", (1000.0,), 3.0),
    ("math.erf", (0.5,), math.erf(0.5)),
    ("math.tanh", (0.5,), math.tanh(0.5)),
    ("math.atan2", (1.0, -1.0), math.atan2(1.0, -1.0)),
    ("math.copysign", (3.0, -0.5), -3.0),
]
INTEGERS = [
    ("arith.addi", "i8", (127, 1), -128),
    ("arith.muli", "i32", (2**31 - 1, 2**31 - 1), 1),
    ("arith.subi", "i8", (-128, 1), 127),
    ("arith.divsi", "i32", (-7, 2), -3),
    ("arith.remsi", "i32", (-7, 2), -1),
    ("arith.floordivsi", "i64", (-7, 2), -4),
    ("arith.ceildivsi", "i64", (-7, 2), -3),
    ("math.ipowi", "i8", (-3, 5), 13),
    ("arith.maxsi", "i8", (-1, 1), 1),
    ("arith.maxui", "i8", (-1, 1), -1),
    ("arith.minui", "i8", (-1, 1), 1),
    ("arith.andi", "i8", (-1, 12), 12),
    ("arith.ori", "i8", (3, 12), 15),
    ("arith.xori", "i1", (1, 1), 0),
    ("arith.shli", "i8", (-113, 4), -16),
    ("arith.shrsi", "i8", (-113, 4), -8),
    ("arith.shrui", "i8", (-113, 4), 8),
    ("arith.shrui", "i32", (-1, 31), 1),
    ("arith.trunci", "i8", (300,), 44),
    ("arith.trunci", "i1", (3,), 1),
    ("arith.extsi", "i32", (-5,), -5),
    ("arith.fptosi", "i8", (-3.9,), -3),
    ("arith.cmpi.ult", "i1", (1, -1), 1),
    ("arith.cmpi.slt", "i1", (1, -1), 0),
    ("arith.cmpi.ne", "i1", (1, -1), 1),
    ("arith.cmpf.olt", "i1", (1, math.nan), 0),
    ("arith.cmpf.ult", "i1", (1, math.nan), 1),
    ("arith.cmpf.one", "i1", (math.nan, 1), 0),
    ("arith.cmpf.une", "i1", (math.nan, 1), 1),
    ("arith.cmpf.ord", "i1", (2, 1), 1),
    ("arith.cmpf.uno", "i1", (2, 1), 0),
    ("math.absi", "i8", (-5,), 5),
]


@pytest.mark.parametrize(
    ("name", "dtype", "operands", "expected"),
    [*((name, "f32", given, value) for name, given, value in VALUES), *INTEGERS],
)
def test_values(name: str, dtype: str, operands: Any, expected: float) -> None:
    op = Operation(name, dtype, tuple(Argument(n) for n in range(len(operands))))
    assert evaluate(op, operands) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_op_has_a_value_for_whole_arrays(name: str) -> None:
    """Also the bundle's ops that no test above asks the value of."""
    dtype = "i1" if ".cmp" in name else "i8" if "i" in name[-2:] else "f32"
    given = [np.full((3, 2), 0.5)] * OPERATIONS[name]
    op = Operation(name, dtype, tuple(Argument(n) for n in range(len(given))))
    assert evaluate(op, given).shape == (3, 2)


def test_arguments_are_broadcast() -> None:
    result = evaluate(f32("arith.addf", X, Y), [np.zeros((3, 1)), np.ones((1, 4))])
    assert result.shape == (3, 4)


@pytest.mark.parametrize(
    "name",
    "addf subf mulf divf".split(),
)
def test_a_rounded_result_is_within_the_error(name: str) -> None:
    """Of f32 arithmetic on numbers of any size, and of nothing much larger."""
    random = np.random.default_rng(1)
    x, y = (
        random.normal(size=10**4) * 10.0 ** random.integers(-3, 4, 10**4) for _ in "xy"
    )
    x, y = x.astype(np.float32), y.astype(np.float32)
    got = {"addf": x + y, "subf": x - y, "mulf": x * y, "divf": x / y}[name]
    result = bounded(f32(f"arith.{name}", X, Y), [Bounded(x), Bounded(y)])
    assert (np.abs(got - result.values) <= result.error).all()
    assert (result.error <= 2.0**-19 * np.abs(result.values)).all()


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("math.exp", np.exp),
        ("math.exp2", np.exp2),
        ("math.tanh", np.tanh),
        ("math.sin", np.sin),
        ("math.sqrt", lambda x: np.sqrt(np.abs(x))),
    ],
)
def test_functions_are_allowed_a_few_roundings(name: str, function: Any) -> None:
    x = np.random.default_rng(2).normal(size=1000).astype(np.float32) * 3
    operand = f32("math.absf", X) if name == "math.sqrt" else X
    result = bounded(f32(name, operand), [Bounded(x)])
    assert (np.abs(function(x) - result.values) <= result.error).all()
    assert (result.error <= 1e-5 * (np.abs(result.values) + 1)).all()


def test_errors_of_arguments_are_carried_on() -> None:
    """By the slope; across a step by all of it."""
    square = bounded(f32("arith.mulf", X, X), [Bounded(np.array(3.0), 0.01)])
    assert square.error == pytest.approx(0.06, rel=0.01)
    floor = f32("math.floor", X)
    assert bounded(floor, [Bounded(np.array(2.999), 0.01)]).error == 1
    assert bounded(floor, [Bounded(np.array(2.5), 0.01)]).error == 0
    relu = f32(
        "arith.select",
        Operation("arith.cmpf.ogt", "i1", (X, Constant(0.0))),
        X,
        Constant(0.0),
    )
    near = bounded(relu, [Bounded(np.array(0.001), 0.002)])
    assert 0.001 <= near.error <= 0.004


def test_half_precision_is_rounded_to_it() -> None:
    product = Operation("arith.mulf", "f16", (X, Y))
    result = bounded(product, [Bounded(np.array(1.5)), Bounded(np.array([1.25, 1.1]))])
    assert result.error[0] == 0  # f16 has 1.875
    assert result.error[1] == pytest.approx(1.65 * 2.0**-11, rel=1e-3)
    widened = Operation("arith.extf", "f32", (X,))
    assert bounded(widened, [Bounded(np.array(1.5))]).error == 0


def test_unwritten_and_infinite_values_have_no_error() -> None:
    """What is no number stays none."""
    result = bounded(f32("math.absf", X), [Bounded(np.array([np.nan, -np.inf]), 0.1)])
    assert np.isnan(result.values[0])
    assert result.values[1] == np.inf
    assert (result.error == 0).all()


def known(expression: Expression, *operands: Any) -> tuple[float, float]:
    """Value and error of an expression of numbers, or of numbers with errors."""
    given = [
        Bounded(*map(np.asarray, one if isinstance(one, tuple) else (one, 0.0)))
        for one in operands
    ]
    result = bounded(expression, given)
    return float(result.values), float(result.error)


SQUARE = f32("arith.mulf", X, X)
HALF = Operation("arith.truncf", "f16", (X,))
WHOLE = Operation("arith.fptosi", "i8", (X,))


def i32(name: str, *operands: Expression) -> Operation:
    return Operation(name, "i32", operands)


def test_infinity_is_exact() -> None:
    """With any bound but an infinite one."""
    assert known(f32("math.exp", X), 1000.0) == (math.inf, TINY["f32"])
    for zero, value in ((0.0, -math.inf), (-0.0, math.inf)):
        assert known(f32("arith.divf", X, Y), -1.0, zero) == (value, TINY["f32"])
    assert known(f32("arith.mulf", X, Y), math.inf, 1e-40) == (math.inf, TINY["f32"])
    value, error = known(f32("arith.subf", X, X), math.inf)
    assert math.isnan(value)
    assert error == TINY["f32"]


def test_overflow_is_infinity_to_what_reads_it() -> None:
    """In f32; a fused kernel may not round to f16."""
    assert known(f32("arith.divf", Constant(1.0), SQUARE), -1e30) == (0, 2.0**-126)
    difference = f32("arith.subf", SQUARE, SQUARE)
    assert math.isnan(known(difference, 1e30)[0])
    assert known(difference, 1e30)[1] < 1e-30
    assert known(HALF, 1e5)[1] < 50
    assert known(f32("arith.extf", HALF), 1e5)[1] == math.inf
    assert known(f32("arith.extf", HALF), 1e4)[1] < 5
    assert known(f32("arith.extf", HALF), math.inf) == (math.inf, 0)
    at_the_edge = known(f32("arith.negf", SQUARE), math.sqrt(2.0**128 - 2.0**103))
    assert at_the_edge[1] == math.inf


@pytest.mark.parametrize(
    ("expression", "operands"),
    [
        (f32("arith.divf", X, Y), [1.0, (1e-3, 2e-3)]),
        (f32("math.log", X), [(1e-3, 2e-3)]),
        (f32("math.tan", X), [(1.6, 0.1)]),
        (f32("math.sin", X), [(100.0, 2.0)]),
        (WHOLE, [math.nan]),
        (WHOLE, [-math.inf]),
        (WHOLE, [128.0]),
        (WHOLE, [(127.5, 1.0)]),
        (Operation("arith.fptoui", "i8", (X,)), [-1.0]),
        (i32("arith.divsi", X, Y), [5, 0]),
        (i32("arith.remsi", X, Y), [-(2.0**31), -1]),
        (i32("arith.andi", X, Y), [(5, 1), 6]),
        (i32("arith.trunci", X), [(0, 2.0**31)]),
        (f32("math.copysign", X, Y), [1.0, math.nan]),
        (f32("arith.maximumf", X, Y), [(1.0, math.inf), 0.0]),
        (f32("math.tanh", X), [(1.0, math.inf)]),
        (f32("arith.mulf", X, Y), [(1.0, math.inf), 0.0]),
    ],
)
def test_what_is_unknown(expression: Expression, operands: list[Any]) -> None:
    """Poles and edges within the error, what MLIR leaves undefined, what is unknown."""
    assert known(expression, *operands)[1] == math.inf


def test_what_is_close_to_the_edge_is_known() -> None:
    assert known(WHOLE, 127.9) == (127, 0)
    assert known(WHOLE, -128.9) == (-128, 0)
    assert known(Operation("arith.fptoui", "i8", (X,)), 255.0) == (-1, 0)
    assert known(i32("arith.divsi", X, Y), -7, -1) == (7, 0)
    assert known(f32("math.tan", X), (1.4, 0.1))[1] < 10


def test_a_select_depends_on_what_it_selects() -> None:
    select = f32("arith.select", X, Y, Z)
    assert known(select, 1, 2.0, (3.0, math.inf)) == (2, 0)
    assert known(select, 0, (2.0, math.inf), 3.0) == (3, 0)
    assert known(select, (1, 1), 2.0, 3.0)[1] >= 1
    assert known(select, (1, 1), 2.0, math.nan)[1] == math.inf
    assert known(select, (1, 1), math.inf, math.inf) == (math.inf, 0)


def test_comparisons_with_errors() -> None:
    """Values that may be equal may compare otherwise; others do not."""
    for name in ("oeq", "une", "olt", "uge"):
        compare = Operation(f"arith.cmpf.{name}", "i1", (X, Y))
        assert known(compare, (1.0, 0.2), 1.1)[1] == 1
        assert known(compare, (1.0, 0.1), (1.15, 0.1))[1] == 1
        assert known(compare, (1.0, 0.1), 1.2)[1] == 0
        assert known(compare, (1.0, math.inf), 1.2)[1] == 1
        assert known(compare, (1.0, 0.1), math.inf)[1] == 0


def test_zeros_have_an_order() -> None:
    for name, sign in (("arith.maximumf", 1), ("arith.minimumf", -1)):
        for zeros in ((0.0, -0.0), (-0.0, 0.0)):
            value, _ = known(f32(name, X, Y), *zeros)
            assert math.copysign(1, value) == sign


@pytest.mark.parametrize(
    "expression",
    [
        GELU,
        Constant(-math.inf),
        Argument(3),
        Operation("arith.cmpf.ole", "i1", (X, Constant(1e-30))),
        f32("arith.select", X, Y, Z),
    ],
    ids=["gelu", "inf", "argument", "compare", "select"],
)
def test_json_and_back(expression: Expression) -> None:
    text = json.dumps(codec.encode(expression, Expression), allow_nan=False)
    assert codec.decode(Expression, json.loads(text)) == expression


def nested(depth: int) -> Any:
    value: Any = {"argument": 0}
    for _ in range(depth):
        value = {"op": "arith.negf", "type": "f32", "operands": [value]}
    return value


def doubled(depth: int) -> Any:
    value: Any = {"argument": 0}
    for _ in range(depth):
        value = {"op": "arith.addf", "type": "f32", "operands": [value, value]}
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            None,
            "expected a number or one of inf, -inf, nan or an object, got null",
        ),
        ("exec('1')", "expression: expected one of inf, -inf, nan, got \"exec('1')\""),
        (True, "or an object, got true"),
        (
            {"argument": -1},
            "expression.argument: expected an integer of 0 or more, got -1",
        ),
        (
            {"argument": "x"},
            'expression.argument: expected an integer of 0 or more, got "x"',
        ),
        ({}, 'expected an object with "argument" or "op", got {}'),
        (
            {"op": "os.system", "operands": []},
            'expected an op that references know, got "os.system"',
        ),
        (
            {"op": "arith.addf", "type": "f32", "operands": [1]},
            "'arith.addf' has 1 operands, expected 2",
        ),
        ({"op": "arith.negf", "operands": [1]}, "expression.type: missing"),
        (
            {"op": "arith.negf", "type": "f32", "operands": [[]]},
            "expression.operands[0]: expected a number or one of",
        ),
        (
            {"op": "arith.negf", "type": "i9", "operands": [1]},
            "expression.type: expected one of f16, bf16, f8E4M3FN, f8E5M2, tf32, f32, ",
        ),
        (nested(1000), "expected at most 1600 values, nested at most 128 deep"),
        (nested(100_000), "expected at most 1600 values, nested at most 128 deep"),
        (doubled(20), "expected at most 1600 values, nested at most 128 deep"),
        (
            {"op": "math.fma", "type": "f32", "operands": [1] * 1500},
            "larger than 400 ops",
        ),
        (doubled(8), "expression is larger than 400 ops"),
        (10**400, "expected a number, got an integer of 1329 bits"),
        (math.nan, "expected a number, got nan"),
    ],
)
def test_damaged_json_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expressions.check(codec.decode(Expression, value, "expression"))
    assert message in str(caught.value)


def test_parts() -> None:
    assert expressions.arguments(GELU) == {0}
    assert len(list(expressions.parts(GELU))) == 10
    assert expressions.substitute(f32("arith.addf", X, Y), {1: Constant(2.0)}) == f32(
        "arith.addf", X, Constant(2.0)
    )
    wide = f32("arith.extf", Operation("arith.truncf", "f16", (X,)))
    assert expressions.without_casts(wide, ("arith.extf", "arith.truncf")) == X
    assert expressions.without_casts(wide, ("arith.extf",)) != X
    assert expressions.is_small(GELU)
