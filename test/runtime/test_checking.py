"""The float64 reference: what it computes, and that it finds wrong results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bundles import matmul

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function, with_sizes
from alcop_mlir.reference.contraction_values import F32_STEP
from alcop_mlir.reference.expressions import Argument, Constant, Expression, Operation
from alcop_mlir.reference.steps import (
    Einsum,
    Gather,
    Insert,
    Map,
    Pad,
    Reduction,
    Reshape,
    ScatteredViews,
    Slice,
    WindowViews,
)
from alcop_mlir.runtime import checking

Arrays = dict[str, np.ndarray[Any, Any]]


def random_arrays(function: Function, seed: int = 0) -> Arrays:
    """Without extreme values: what tests here spoil is random in [-1, 1]."""
    return checking.random_arrays(function, seed, values="plain")


def nt_with_init(dtype: str = "f32") -> Function:
    """`C += A @ B.T`, C of the given dtype."""
    return replace(
        matmul(),
        parameters=(
            Parameter("A", "f16", (16, 64), "in"),
            Parameter("B", "f16", (32, 64), "in"),
            Parameter("C", dtype, (16, 32), "inout"),
        ),
        reference=(Einsum("A", "B", "C", "mk,nk->mn", "C"),),
    )


def right_answer(function: Function, before: Arrays) -> Arrays:
    """As a kernel would compute it: f32 accumulators, rounded to the output's dtype."""
    after = dict(before)
    for step in function.reference:
        assert isinstance(step, Einsum)
        out = np.einsum(
            step.maps,
            after[step.lhs].astype(np.float32),
            after[step.rhs].astype(np.float32),
        )
        if step.init is not None:
            out = out + after[step.init]
        after[step.out] = out.astype(before[step.out].dtype)
    return after


def test_inputs_are_random_and_outputs_are_nan() -> None:
    """Uniform in [-1, 1], the same for the same seed; an unwritten element shows."""
    arrays = random_arrays(matmul(), seed=3)
    again = random_arrays(matmul(), seed=3)
    other = random_arrays(matmul(), seed=4)
    assert [(a.shape, a.dtype) for a in arrays.values()] == [
        ((64, 48), np.float16),
        ((48, 32), np.float16),
        ((64, 32), np.float32),
    ]
    assert np.array_equal(arrays["A"], again["A"])
    assert not np.array_equal(arrays["A"], other["A"])
    assert np.isnan(arrays["C"]).all()
    assert -1 <= arrays["A"].min() < -0.9
    assert 0.9 < arrays["A"].max() <= 1
    assert np.isfinite(random_arrays(nt_with_init())["C"]).all()


def test_small_inputs() -> None:
    """Floats of up to 1/8, and what the function adds to as well."""
    arrays = checking.random_arrays(nt_with_init(), values="small")
    for name in "ABC":
        assert 0.1 < np.abs(arrays[name].astype(np.float64)).max() <= 0.125


def test_contractions_are_einsums_in_float64() -> None:
    """Zero or the old contents as initial value, and one step's result in the next."""
    function = nt_with_init()
    before = random_arrays(function)
    a, b, c = (before[name].astype(np.float64) for name in "ABC")
    result = checking.evaluate(function, before)["C"].values
    assert result.dtype == np.float64
    assert np.allclose(result, a @ b.T + c, rtol=1e-13)
    chain = (
        Einsum("A", "B", "D", "mk,nk->mn", None),
        Einsum("D", "B", "E", "mk,kn->mn", None),
    )
    result = checking.evaluate(replace(function, reference=chain), before)["E"].values
    assert np.allclose(result, a @ b.T @ b, rtol=1e-13)


@pytest.mark.parametrize("function", [matmul(), matmul(16, 16, 4096), nt_with_init()])
def test_a_right_result_passes(function: Function) -> None:
    """With room: no more than a tenth of what is allowed."""
    before = random_arrays(function)
    check = checking.check(function, before, right_answer(function, before))
    assert check.ok
    assert 0 < check.error < check.tolerance / 10


def test_a_result_rounded_to_half_precision_passes() -> None:
    """The rounding of the output itself is allowed for."""
    function = nt_with_init("f16")
    before = random_arrays(function)
    check = checking.check(function, before, right_answer(function, before))
    assert check.ok
    assert check.error > 65 * F32_STEP


def one_term_missing(function: Function, before: Arrays, after: Arrays) -> None:
    a, b = before["A"].astype(np.float64), before["B"].astype(np.float64)
    row, column, k = 5, 7, a.shape[1] // 2
    (step,) = function.reference
    assert isinstance(step, Einsum)
    b_term = b[column, k] if "nk" in step.maps else b[k, column]
    after["C"][row, column] -= a[row, k] * b_term


def swapped_rows(_: Function, __: Arrays, after: Arrays) -> None:
    after["C"][[0, 1]] = after["C"][[1, 0]]


def unwritten(_: Function, before: Arrays, after: Arrays) -> None:
    after["C"][3, 3] = np.nan


def infinite(_: Function, before: Arrays, after: Arrays) -> None:
    after["C"][3, 3] = np.inf


def initial_value_lost(_: Function, before: Arrays, after: Arrays) -> None:
    after["C"] = after["C"] - np.nan_to_num(before["C"], nan=1e-2)


@pytest.mark.parametrize("function", [matmul(64, 32, 1024), nt_with_init()])
@pytest.mark.parametrize(
    "spoil", [one_term_missing, swapped_rows, unwritten, infinite, initial_value_lost]
)
def test_a_wrong_result_fails(function: Function, spoil: Any) -> None:
    """Also where one term of one element is missing."""
    before = random_arrays(function)
    after = right_answer(function, before)
    spoil(function, before, after)
    check = checking.check(function, before, after)
    assert not check.ok
    assert check.error > check.tolerance


def test_the_worst_output_counts() -> None:
    """One right array does not hide a wrong one."""
    base = matmul()
    function = replace(
        base,
        parameters=(*base.parameters, Parameter("D", "f32", (64, 32), "out")),
        reference=(*base.reference, Einsum("A", "B", "D", "mk,kn->mn", None)),
    )
    before = random_arrays(function)
    after = right_answer(function, before)
    assert checking.check(function, before, after).ok
    after["D"][0, 0] += 1
    assert not checking.check(function, before, after).ok


def test_a_result_of_zeros_has_an_error() -> None:
    """The absolute error, where there is nothing to divide by."""
    function = matmul()
    before = dict(random_arrays(function)) | {"B": np.zeros((48, 32), "f2")}
    zeros = np.zeros((64, 32), np.float32)
    assert checking.check(function, before, before | {"C": zeros}).error == 0
    check = checking.check(function, before, before | {"C": zeros + 0.5})
    assert check.error == 0.5
    assert not check.ok


def allowed(function: Function) -> float:
    """The largest error that C may have, relative to its largest element."""
    expected = checking.evaluate(function, random_arrays(function))["C"]
    return float(np.max(expected.error) / np.abs(expected.values).max())


def test_the_tolerance_grows_with_k_and_the_dtype() -> None:
    """K * 2^-23 for f32 accumulators; half a unit of f16 for an output of f16."""
    short, long = allowed(matmul(k=48)), allowed(matmul(k=4800))
    assert short < 50 * 2.0**-23
    assert long - short == pytest.approx(4752 * 2.0**-23, rel=1e-2)
    half = allowed(nt_with_init("f16")) - allowed(nt_with_init())
    assert half == pytest.approx(2**-11, rel=1e-3)


def test_operations_are_counted() -> None:
    """A multiplication and an addition for each term."""
    assert checking.flops(matmul(64, 32, 48)) == 2 * 64 * 32 * 48


def test_missing_knowledge_is_an_error() -> None:
    """No reference in the bundle, or a size that is known only with arrays."""
    function = matmul()
    before = random_arrays(function)
    with pytest.raises(LaunchError, match="nothing to check 'matmul' against"):
        checking.check(replace(function, reference=()), before, before)
    with pytest.raises(LaunchError, match="the size 'M' of 'A' is known only with arr"):
        random_arrays(matmul("M"))


def map_function(
    expression: Expression,
    *dtypes: str,
    maps: str = "",
    sizes: tuple[int, ...] = (8, 40),
) -> Function:
    """`out = expression(in0, in1, ...)`; the last of `dtypes` is that of `out`."""
    names = [f"in{number}" for number in range(len(dtypes) - 1)]
    maps = maps or ",".join("ij" for _ in names) + "->ij"
    shapes = [
        tuple(dict(zip("ij", sizes, strict=True))[loop] for loop in loops)
        for loops in maps.replace("->", ",").split(",")
    ]
    parameters = [
        Parameter(name, dtype, shape, "out" if name == "out" else "in")
        for name, dtype, shape in zip([*names, "out"], dtypes, shapes, strict=True)
    ]
    step = Map(tuple(names), maps, "out", expression, shapes[-1])
    return replace(matmul(), parameters=tuple(parameters), reference=(step,))


def f32(name: str, *operands: Expression) -> Operation:
    return Operation(name, "f32", operands)


X, Y = Argument(0), Argument(1)
# What a kernel may do, in f32 NumPy; and ways to get it wrong.
MAPS = [
    (
        map_function(f32("math.exp", f32("arith.addf", X, Y)), "f32", "f32", "f32"),
        lambda x, y: np.exp(x + y),
        [lambda x, y: np.exp(x), lambda x, y: np.exp(x + y * np.float32(1.001))],
    ),
    (
        map_function(
            f32("arith.maximumf", f32("arith.addf", X, Y), Constant(0.0)),
            "f32",
            "f32",
            "f32",
            maps="ij,j->ij",
        ),
        lambda x, y: np.maximum(x + y, 0),
        [lambda x, y: x + y, lambda x, y: np.maximum(x, 0)],
    ),
    (
        map_function(
            f32("arith.divf", X, f32("math.exp", Y)),
            "f32",
            "f32",
            "f32",
            maps="ij,i->ij",
        ),
        lambda x, y: x / np.exp(y)[:, None],
        [lambda x, y: x / np.exp(y[::-1])[:, None]],
    ),
    (
        map_function(Operation("arith.truncf", "f16", (X,)), "f32", "f16"),
        lambda x: x,
        [lambda x: x * np.float32(1.002)],
    ),
    (
        map_function(f32("arith.sitofp", X), "i8", "f32"),
        lambda x: x,
        [lambda x: np.abs(x)],
    ),
]


@pytest.mark.parametrize(("function", "right", "wrong"), MAPS, ids=range(len(MAPS)))
def test_maps(function: Function, right: Any, wrong: list[Any]) -> None:
    """An error of one per cent in one element is found, and so is a missing op."""
    before = random_arrays(function)
    inputs = [array for name, array in before.items() if name != "out"]
    kind = before["out"].dtype
    result = np.asarray(right(*inputs)).astype(kind)
    assert checking.check(function, before, before | {"out": result}).ok
    for other in wrong:
        spoiled = np.broadcast_to(other(*inputs), result.shape).astype(kind)
        assert not checking.check(function, before, before | {"out": spoiled}).ok
    place = np.unravel_index(np.argmax(np.abs(result)), result.shape)
    spoiled = result.copy()
    spoiled[place] *= 1.01
    assert not checking.check(function, before, before | {"out": spoiled}).ok


def test_terms_are_added_to_a_large_start() -> None:
    """One after the other, each time with a rounding of the large number."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (8, 40), "in"),
            Parameter("C", "f32", (8,), "inout"),
        ),
        reference=(Reduction(("A",), "ij->i", "C", X, "arith.addf", "f32", "C"),),
    )
    before = random_arrays(function) | {"C": np.full(8, 98304, np.float32)}
    result = before["C"].copy()
    for column in range(40):
        result += before["A"][:, column]
    exact = before["C"] + before["A"].astype(np.float64).sum(axis=1)
    assert np.abs(result - exact).max() > 98304 * 2.0**-24  # of one rounding
    assert checking.check(function, before, before | {"C": result}).ok
    far = result + np.float32(2)
    assert not checking.check(function, before, before | {"C": far}).ok


@pytest.mark.parametrize(
    ("combine", "numpy"),
    [
        ("arith.addf", np.add),
        ("arith.mulf", np.multiply),
        ("arith.maximumf", np.maximum),
        ("arith.minimumf", np.minimum),
    ],
)
@pytest.mark.parametrize("has_init", [False, True])
@pytest.mark.parametrize("columns", [0, 1, 600])
def test_reductions(combine: str, numpy: Any, has_init: bool, columns: int) -> None:
    """Of absolute values, row by row, also of rows without any."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (8, columns), "in"),
            Parameter("C", "f32", (8,), "inout" if has_init else "out"),
        ),
        reference=(
            Reduction(
                ("A",),
                "ij->i",
                "C",
                f32("math.absf", X),
                combine,
                "f32",
                "C" if has_init else None,
            ),
        ),
    )
    before = random_arrays(function)
    terms = np.abs(before["A"])
    start = {np.maximum: -np.inf, np.minimum: np.inf}.get(numpy, numpy.identity)
    result = numpy.reduce(terms, axis=1, initial=start)
    if has_init:
        result = numpy(result, before["C"])
    assert checking.check(function, before, before | {"C": result}).ok
    if columns == 600 and numpy is not np.multiply:
        result[3] *= 1.01
        assert not checking.check(function, before, before | {"C": result}).ok


def test_arrays_are_cut_and_put_together() -> None:
    """Slices, insertions and other shapes."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (4, 8), "in"),
            Parameter("C", "f32", (6, 6), "inout"),
        ),
        reference=(
            Slice("A", "%0", (0, 2), (4, 3), (1, 2)),
            Reshape("%0", "%1", (2, 6)),
            Insert("%1", "C", "C", (1, 0), (2, 6), (3, 1)),
        ),
    )
    before = random_arrays(function)
    after = before["C"].copy()
    after[1::3] = before["A"][:, 2:8:2].reshape(2, 6)
    assert checking.check(function, before, before | {"C": after}).ok
    after[0, 0] += 1e-3
    assert not checking.check(function, before, before | {"C": after}).ok


def test_windows_overlap() -> None:
    """As a convolution with one channel takes them."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (3, 11), "in"),
            Parameter("B", "f32", (4,), "in"),
            Parameter("C", "f32", (3, 3), "out"),
        ),
        reference=(
            WindowViews("A", "%0", 1, 3, 2, 4, 2),
            Einsum("%0", "B", "C", "mpk,k->mp", None),
        ),
    )
    before = random_arrays(function)
    a, b = before["A"], before["B"]
    after = np.stack([a[:, 2 * p : 2 * p + 7 : 2] @ b for p in range(3)], axis=1)
    assert checking.check(function, before, before | {"C": after}).ok
    assert not checking.check(function, before, before | {"C": after * 1.01}).ok
    too_far = replace(function.reference[0], positions=4)
    damaged = replace(function, reference=(too_far, *function.reference[1:]))
    with pytest.raises(LaunchError, match="the reference does not fit the arrays"):
        checking.check(damaged, before, before)


def scattered() -> tuple[Function, dict[str, np.ndarray]]:
    """Adds to windows of the output, and its arrays before it runs."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (3, 5), "in"),
            Parameter("B", "f32", (4,), "in"),
            Parameter("C", "f32", (3, "N"), "out"),
        ),
        reference=(
            ScatteredViews("A", "%0", 1, "N", 3, 4, 2, 1),
            Einsum("%0", "B", "C", "mpk,k->mp", None),
        ),
    )
    function = with_sizes(function, {"N": 20})
    return function, random_arrays(function)


def added_to_windows(before: dict[str, np.ndarray]) -> np.ndarray:
    """C, where nothing but elements and taps is multiplied."""
    after = np.zeros((3, 20), np.float32)
    for place, tap in np.ndindex(5, 4):
        after[:, 1 + 3 * place + 2 * tap] += before["A"][:, place] * before["B"][tap]
    return after


def test_windows_of_the_output() -> None:
    """Each element is added where the taps move it; others add nothing."""
    function, before = scattered()
    after = added_to_windows(before)
    assert checking.check(function, before, before | {"C": after}).ok
    assert not checking.check(function, before, before | {"C": after * 1.01}).ok
    moved = np.roll(after, 1, axis=1)
    assert not checking.check(function, before, before | {"C": moved}).ok


def test_what_no_tap_moves_may_be_multiplied_or_not() -> None:
    """An infinite tap reaches what it moves; a kernel may multiply it with zeros."""
    function, before = scattered()
    before["B"][1] = np.nan
    after = added_to_windows(before)
    assert checking.check(function, before, before | {"C": after}).ok
    everywhere = np.full_like(after, np.nan)
    assert checking.check(function, before, before | {"C": everywhere}).ok
    nowhere = np.nan_to_num(after)
    assert not checking.check(function, before, before | {"C": nowhere}).ok


def test_padding_and_reversed_windows() -> None:
    """Equal elements around an array; windows without taps, of a size by its name."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (3, 5), "in"),
            Parameter("C", "f32", (4, "N"), "out"),
        ),
        reference=(
            Pad("A", "%0", (0, 1), (1, 0), Constant(2.0)),
            WindowViews("%0", "C", 1, "N", -2, None, 1, 5),
        ),
    )
    function = with_sizes(function, {"N": 3})
    before = random_arrays(function)
    padded = np.pad(before["A"], [(0, 1), (1, 0)], constant_values=2.0)
    after = padded[:, [5, 3, 1]]
    assert checking.check(function, before, before | {"C": after}).ok
    assert not checking.check(function, before, before | {"C": after[:, ::-1]}).ok
    too_far = replace(function.reference[1], first=3)
    damaged = replace(function, reference=(function.reference[0], too_far))
    with pytest.raises(LaunchError, match="windows begin at -1"):
        checking.check(damaged, before, before)


def test_rows_of_a_table() -> None:
    """Inputs have indices that the table has; others are an error."""
    function = replace(
        matmul(),
        parameters=(
            Parameter("T", "f16", (7, 4), "in"),
            Parameter("I", "i32", ("N",), "in"),
            Parameter("C", "f16", ("N", 4), "out"),
        ),
        reference=(
            Gather("T", ("I",), "i->ij", "C", (Argument(0), Argument(2)), ("N", 4)),
        ),
    )
    function = with_sizes(function, {"N": 20})
    before = checking.random_arrays(function)
    assert set(before["I"]) == set(range(7))
    after = before | {"C": before["T"][before["I"]]}
    assert checking.check(function, before, after).ok
    wrong = before | {"C": before["T"][(before["I"] + 1) % 7]}
    assert not checking.check(function, before, wrong).ok
    for index in (-1, 7):
        before["I"][3] = index
        with pytest.raises(LaunchError, match=f"is {index}, expected 0 to 6"):
            checking.check(function, before, after)


def test_errors_go_through_a_chain() -> None:
    """An f16 intermediate may be off by its rounding, its consumer by what follows."""
    half = Operation("arith.truncf", "f16", (f32("arith.maximumf", X, Constant(0.0)),))
    function = replace(
        nt_with_init(),
        reference=(
            Einsum("A", "B", "%0", "mk,nk->mn", None),
            Map(("%0",), "ij->ij", "%1", half, (16, 32)),
            Einsum("%1", "B", "%2", "mn,nk->mk", None),
            Reduction(("%2",), "ij->i", "%3", X, "arith.addf", "f32", None),
            Map(("C", "%3"), "ij,i->ij", "C", f32("arith.addf", X, Y), (16, 32)),
        ),
    )
    before = random_arrays(function)
    a, b = (before[name].astype(np.float32) for name in "AB")
    hidden = np.maximum(a @ b.T, 0).astype(np.float16).astype(np.float32)
    after = before["C"] + (hidden @ b).sum(axis=1, keepdims=True)
    assert checking.check(function, before, before | {"C": after}).ok
    # Not rounded at all, as where the steps are fused.
    wide = before["C"] + (np.maximum(a @ b.T, 0) @ b).sum(axis=1, keepdims=True)
    assert checking.check(function, before, before | {"C": wide}).ok
    linear = before["C"] + ((a @ b.T) @ b).sum(axis=1, keepdims=True)
    assert not checking.check(function, before, before | {"C": linear}).ok


def test_integers_wrap_around_and_are_exact() -> None:
    """Also those that floats are converted to, unless they are near a step."""
    factor = float(np.float32(0.37))
    scaled = f32("arith.mulf", f32("arith.sitofp", X), Constant(factor))
    whole = Operation("arith.fptosi", "i32", (f32("math.roundeven", scaled),))
    function = map_function(Operation("arith.trunci", "i8", (whole,)), "i32", "i8")
    before = dict(random_arrays(function))
    before["in0"] = before["in0"] * 49
    floats = before["in0"].astype(np.float32) * np.float32(0.37)
    result = np.rint(floats).astype(np.int32).astype(np.int8)
    assert checking.check(function, before, before | {"out": result}).ok
    result[5, 6] += 1
    assert not checking.check(function, before, before | {"out": result}).ok


def test_nan_and_infinity_are_expected_where_they_belong() -> None:
    """NaN where the reference is NaN; infinity where it is beyond the type's range."""
    function = map_function(Operation("arith.truncf", "f16", (X,)), "f32", "f16")
    before = dict(random_arrays(function))
    before["in0"][0, :4] = [np.nan, 1e6, -1e6, 65503]
    after = before["in0"].copy()
    after[0, 1:3] = [np.inf, -np.inf]
    half = after.astype(np.float16)
    assert checking.check(function, before, before | {"out": half}).ok
    for place, value in ((0, 0.0), (1, 65504), (2, np.inf), (3, np.inf), (5, np.nan)):
        spoiled = half.copy()
        spoiled[0, place] = value
        check = checking.check(function, before, before | {"out": spoiled})
        assert check.ok == (place == 3), place


def test_half_precision_accumulators_have_a_larger_tolerance() -> None:
    """Where the program accumulates in f16, and not on tensor cores."""
    plain = nt_with_init("f16")
    (step,) = plain.reference
    assert isinstance(step, Einsum)
    rough = replace(plain, reference=(replace(step, sums="f16"),))
    before = random_arrays(plain)
    total = before["C"].copy()
    for k in range(64):
        total += np.multiply.outer(before["A"][:, k], before["B"][:, k])
    assert total.dtype == np.float16
    assert checking.check(rough, before, before | {"C": total}).ok
    assert not checking.check(plain, before, before | {"C": total}).ok
    lost = before | {"C": total - before["C"]}
    assert not checking.check(rough, before, lost).ok


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "i32"])
def test_inputs_are_extreme_in_places(dtype: str) -> None:
    """All kinds over a few seeds, but in few rows and columns; else as plain ones."""
    function = replace(
        matmul(),
        parameters=tuple(replace(one, dtype=dtype) for one in matmul().parameters),
    )
    seen: set[str] = set()
    for seed in range(12):
        mixed = checking.random_arrays(function, seed)
        plain = checking.random_arrays(function, seed, "plain")
        for name in "AB":
            values, before = (
                dtypes.decode(arrays[name], dtype) for arrays in (mixed, plain)
            )
            changed = values != before
            assert 0 < changed.sum() <= 16
            seen |= set(map(str, values[changed]))
        expected = checking.evaluate(function, mixed)["C"]
        known = np.isfinite(expected.values) & np.isfinite(expected.error)
        assert known.mean() >= 0.75
    small, large = dtypes.extremes(dtype)
    assert seen == {str(float(value)) for value in [*small, *large]}


def test_extremes_are_those_of_the_type() -> None:
    small, large = dtypes.extremes("f16")
    assert small[1] == 2.0**-24
    assert small[2] == 2.0**-14 - 2.0**-24
    assert small[5] == 2.0**-14
    assert large[2] == 65504
    assert dtypes.extremes("bf16")[0][1] == 2.0**-133
    assert dtypes.extremes("f32")[0][1] == 2.0**-149
    assert dtypes.extremes("f64")[0][1] == 2.0**-1074
    assert dtypes.extremes("i32")[0][:2] == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize("function", [matmul(), nt_with_init()])
@pytest.mark.parametrize("seed", range(6))
def test_extreme_inputs_are_checked(function: Function, seed: int) -> None:
    """NaN and infinity have to be there, and what is next to them is found."""
    before = checking.random_arrays(function, seed)
    with np.errstate(all="ignore"):
        after = right_answer(function, before)
    check = checking.check(function, before, after)
    assert check.ok
    result = after["C"]
    assert check.elements == result.size
    assert check.unchecked <= 2  # the largest of C, plus a little
    special = (~np.isfinite(result)).sum() - check.special
    assert 0 <= special <= check.unchecked
    expected = checking.evaluate(function, before)["C"]
    known = np.isfinite(expected.error)
    values = np.abs(expected.values)
    plain = np.argwhere((values > 1) & (values < 50))[0]
    special = np.argwhere(~np.isfinite(values) & known)[0]
    for place, value in (
        (plain, result[tuple(plain)] * 1.01),
        (plain, np.nan),
        (plain, np.inf),
        (special, 0.0),
        (special, -result[tuple(special)] if values[tuple(special)] > 0 else 1.0),
    ):
        spoiled = result.copy()
        spoiled[tuple(place)] = value
        assert not checking.check(function, before, before | {"C": spoiled}).ok, place


def test_a_large_row_hides_nothing_elsewhere() -> None:
    """The bound is relative to a row of A and a column of B."""
    function = matmul()
    function = replace(
        function, parameters=tuple(replace(p, dtype="f32") for p in function.parameters)
    )
    before = random_arrays(function)
    before["A"][7, 3] = 3e38
    after = right_answer(function, before)
    assert checking.check(function, before, after).ok
    after["C"][8, 8] += 1e-3
    assert not checking.check(function, before, after).ok


def test_sums_that_may_overflow_are_unchecked() -> None:
    """3e38 + 3e38 - 3e38 is infinite in one order; what is in all orders is checked."""
    function = matmul(2, 2, 3)
    function = replace(
        function, parameters=tuple(replace(p, dtype="f32") for p in function.parameters)
    )
    before = random_arrays(function)
    before["A"][:] = [[3e38, 3e38, -3e38], [3e38, 3e38, 1.0]]
    before["B"][:] = 1
    for first, second, is_right in (
        (3e38, np.inf, True),
        (np.inf, np.inf, True),
        (np.nan, np.inf, True),
        (3e38, 3e38, False),
        (3e38, np.nan, False),
    ):
        after = np.array([[first] * 2, [second] * 2], np.float32)
        check = checking.check(function, before, before | {"C": after})
        assert check.ok == is_right
        assert (check.unchecked, check.special) == (2, 2)


def test_infinity_times_what_may_be_zero_is_unchecked() -> None:
    """A relu of a rounded sum, times infinity: NaN or infinite."""
    relu = f32("arith.maximumf", f32("arith.addf", X, X), Constant(0.0))
    function = replace(
        matmul(4, 4, 4),
        reference=(
            Map(("A",), "mk->mk", "%0", relu, (4, 4)),
            Einsum("%0", "B", "C", "mk,kn->mn", None),
        ),
    )
    before = random_arrays(function)
    before["A"][:] = 1
    before["A"][0, 0] = 0
    before["B"][:, 2] = np.inf
    check = checking.check(function, before, before)
    assert (check.unchecked, check.special) == (1, 3)


def test_the_sign_of_zero() -> None:
    """Of a copy and of a select; not of what was rounded."""
    copied, added = (
        map_function(X, "f32", "f32"),
        map_function(f32("arith.addf", X, X), "f32", "f32"),
    )
    for function, is_right in ((copied, False), (added, True)):
        before = random_arrays(function)
        before["in0"][:] = -0.0
        zeros = np.zeros((8, 40), np.float32)
        assert checking.check(function, before, before | {"out": -zeros}).ok
        assert checking.check(function, before, before | {"out": zeros}).ok == is_right


def test_large_integers_are_exact() -> None:
    """Those of i32 wrap around beyond float64's mantissa."""
    function = matmul(8, 8, 16)
    function = replace(
        function, parameters=tuple(replace(p, dtype="i32") for p in function.parameters)
    )
    before = random_arrays(function)
    before["A"][:] = 2**31 - 1
    before["B"][:] = 2**31 - 3
    with np.errstate(over="ignore"):
        after = before["A"] @ before["B"]
    assert checking.check(function, before, before | {"C": after}).ok
    after[3, 3] += 1
    assert not checking.check(function, before, before | {"C": after}).ok


@pytest.mark.parametrize("combine", ["addf", "mulf", "maximumf", "maxnumf"])
def test_reductions_of_extremes(combine: str) -> None:
    numpy = {
        "addf": np.add,
        "mulf": np.multiply,
        "maximumf": np.maximum,
        "maxnumf": np.fmax,
    }[combine]
    function = replace(
        matmul(),
        parameters=(
            Parameter("A", "f32", (40, 64), "in"),
            Parameter("C", "f32", (40,), "out"),
        ),
        reference=(Reduction(("A",), "ij->i", "C", X, f"arith.{combine}", "f32"),),
    )
    for seed in range(8):
        before = checking.random_arrays(function, seed)
        with np.errstate(all="ignore"):
            right = numpy.reduce(before["A"], axis=1)
            back = numpy.reduce(before["A"][:, ::-1], axis=1)
        for after in (right, back):
            assert checking.check(function, before, before | {"C": after}).ok
        assert np.isfinite(right).sum() >= 30
