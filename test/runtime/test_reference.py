"""The float64 reference: what it computes, and that it finds wrong results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bundles import matmul

from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import reference
from alcop_mlir.runtime.manifest import Contraction, Function, Parameter

Arrays = dict[str, np.ndarray[Any, Any]]


def nt_with_init(dtype: str = "f32") -> Function:
    """`C += A @ B.T`, C of the given dtype."""
    return replace(
        matmul(),
        parameters=(
            Parameter("A", "f16", (16, 64), "in"),
            Parameter("B", "f16", (32, 64), "in"),
            Parameter("C", dtype, (16, 32), "inout"),
        ),
        reference=(Contraction("A", "B", "C", "mk,nk->mn", "C"),),
    )


def right_answer(function: Function, before: Arrays) -> Arrays:
    """As a kernel would give it: f32 sums, rounded to the output's dtype."""
    after = dict(before)
    for step in function.reference:
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
    arrays = reference.random_arrays(matmul(), seed=3)
    again = reference.random_arrays(matmul(), seed=3)
    other = reference.random_arrays(matmul(), seed=4)
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
    assert np.isfinite(reference.random_arrays(nt_with_init())["C"]).all()


def test_contractions_are_einsums_in_float64() -> None:
    """Zero or the old contents as initial value, and one step's result in the next."""
    function = nt_with_init()
    before = reference.random_arrays(function)
    a, b, c = (before[name].astype(np.float64) for name in "ABC")
    result = reference.evaluate(function.reference, before)
    assert result["C"].dtype == np.float64
    assert np.allclose(result["C"], a @ b.T + c, rtol=1e-13)
    chain = (
        Contraction("A", "B", "D", "mk,nk->mn", None),
        Contraction("D", "B", "E", "mk,kn->mn", None),
    )
    assert np.allclose(reference.evaluate(chain, before)["E"], a @ b.T @ b, rtol=1e-13)


@pytest.mark.parametrize("function", [matmul(), matmul(16, 16, 4096), nt_with_init()])
def test_a_right_result_passes(function: Function) -> None:
    """With room: no more than a tenth of what is allowed."""
    before = reference.random_arrays(function)
    check = reference.check(function, before, right_answer(function, before))
    assert check.ok
    assert 0 < check.error < check.tolerance / 10


def test_a_result_rounded_to_half_precision_passes() -> None:
    """The rounding of the output itself is allowed for."""
    function = nt_with_init("f16")
    before = reference.random_arrays(function)
    check = reference.check(function, before, right_answer(function, before))
    assert check.ok
    assert check.error > 65 * reference.F32_STEP


def one_term_missing(function: Function, before: Arrays, after: Arrays) -> None:
    a, b = before["A"].astype(np.float64), before["B"].astype(np.float64)
    row, column, k = 5, 7, a.shape[1] // 2
    b_term = b[column, k] if "nk" in function.reference[0].maps else b[k, column]
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
    """Also where one product of one element is missing."""
    before = reference.random_arrays(function)
    after = right_answer(function, before)
    spoil(function, before, after)
    check = reference.check(function, before, after)
    assert not check.ok
    assert check.error > check.tolerance


def test_the_worst_output_counts() -> None:
    """One right array does not hide a wrong one."""
    base = matmul()
    function = replace(
        base,
        parameters=(*base.parameters, Parameter("D", "f32", (64, 32), "out")),
        reference=(*base.reference, Contraction("A", "B", "D", "mk,kn->mn", None)),
    )
    before = reference.random_arrays(function)
    after = right_answer(function, before)
    assert reference.check(function, before, after).ok
    after["D"][0, 0] += 1
    assert not reference.check(function, before, after).ok


def test_a_product_of_zeros_has_an_error() -> None:
    """The absolute one, where there is nothing to divide by."""
    zeros = np.zeros((2, 2))
    assert reference.relative_error(zeros, zeros) == 0
    assert reference.relative_error(zeros + 0.5, zeros) == 0.5


def test_the_tolerance_grows_with_k_and_the_dtype() -> None:
    """K * 2^-23 for f32 sums; half a unit of f16 where the output is rounded to it."""
    short, long = matmul(k=48), matmul(k=4800)
    assert reference.tolerance(short, "C") < 50 * 2.0**-23
    more = reference.tolerance(long, "C") - reference.tolerance(short, "C")
    assert more == pytest.approx(4752 * 2.0**-23)
    half = reference.tolerance(nt_with_init("f16"), "C")
    assert half - reference.tolerance(nt_with_init(), "C") == pytest.approx(
        2**-11, rel=1e-3
    )


def test_operations_are_counted() -> None:
    """A multiplication and an addition for each term."""
    assert reference.flops(matmul(64, 32, 48)) == 2 * 64 * 32 * 48


def test_what_is_not_known_is_said() -> None:
    """No reference in the bundle, or a size that only arrays tell."""
    function = matmul()
    before = reference.random_arrays(function)
    with pytest.raises(LaunchError, match="nothing to check 'matmul' against"):
        reference.check(replace(function, reference=()), before, before)
    with pytest.raises(LaunchError, match="the size 'M' of 'A' is known only with arr"):
        reference.random_arrays(matmul("M"))
