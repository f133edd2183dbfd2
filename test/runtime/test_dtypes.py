"""Element types in NumPy: bf16 as bits, rounding, and arrays that fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bundles import matmul

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference.steps import Einsum
from alcop_mlir.runtime import arrays, checking


def contraction(kind: str, out: str, precision: str | None = None) -> Function:
    return replace(
        matmul(),
        parameters=(
            Parameter("A", kind, (16, 64), "in"),
            Parameter("B", kind, (64, 32), "in"),
            Parameter("C", out, (16, 32), "out"),
        ),
        reference=(Einsum("A", "B", "C", "mk,kn->mn", None, precision),),
    )


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1.0, 0x3F80),
        (-2.5, 0xC020),
        (1.0 + 2.0**-8, 0x3F80),  # half way: to even
        (1.0 + 3 * 2.0**-8, 0x3F82),
        (1.0 + 2.0**-8 + 2.0**-20, 0x3F81),
        (3.4e38, 0x7F80),
        (float("-inf"), 0xFF80),
    ],
)
def test_bf16_is_rounded_to_nearest_even(value: float, bits: int) -> None:
    assert dtypes.encode(np.array([value]), "bf16") == [bits]


def test_bf16_there_and_back() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    values = dtypes.decode(bits, "bf16")
    numbers = ~np.isnan(values)
    assert (dtypes.encode(values, "bf16") == bits)[numbers].all()
    assert np.isnan(
        dtypes.decode(dtypes.encode(values, "bf16"), "bf16")[~numbers]
    ).all()


def test_arrays_of_ml_dtypes_are_taken() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -3.0], ml_dtypes.bfloat16)
    assert dtypes.fits(values.dtype, "bf16")
    assert dtypes.decode(values, "bf16").tolist() == [1.5, -3.0]


@pytest.mark.parametrize(
    ("dtype", "given", "message"),
    [
        ("bf16", np.float16, "float16, expected uint16 (the bits) or bfloat16"),
        ("i8", np.uint8, "uint8, expected int8"),
        ("f32", np.uint32, "uint32, expected float32"),
    ],
)
def test_other_dtypes_are_refused(dtype: str, given: type, message: str) -> None:
    function = contraction(dtype, "f32")
    views = [
        arrays.host_array(np.zeros((16, 64), given), "A"),
        arrays.host_array(np.zeros((64, 32), given), "B"),
        arrays.host_array(np.zeros((16, 32), np.float32), "C"),
    ]
    with pytest.raises(LaunchError) as caught:
        arrays.check(function, views)
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", dtypes.NUMPY_DTYPES)
def test_elements_that_nobody_wrote_show(dtype: str) -> None:
    values = dtypes.decode(dtypes.unwritten((4,), dtype), dtype)
    least = {"i1": 2}.get(dtype, 100)  # neither true nor false; too large to be drawn
    assert (np.isnan(values) | (np.abs(values) >= least)).all()


def test_contractions_of_integers_are_checked_exactly() -> None:
    function = contraction("i8", "i32")
    before = checking.random_arrays(function, values="plain")
    right = before["A"].astype(np.int32) @ before["B"].astype(np.int32)
    assert checking.check(function, before, before | {"C": right}).ok
    right[3, 4] += 1
    check = checking.check(function, before, before | {"C": right})
    assert not check.ok
    assert check.tolerance == 0


def test_rounding_to_tf32_is_allowed_where_the_bundle_says_so() -> None:
    plain, rounded = contraction("f32", "f32"), contraction("f32", "f32", "tf32")
    before = checking.random_arrays(plain, values="plain")
    cut = {
        name: ((before[name].view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
        for name in "AB"
    }
    after = before | {"C": cut["A"] @ cut["B"]}
    assert checking.check(rounded, before, after).ok
    assert not checking.check(plain, before, after).ok


def test_results_in_bf16() -> None:
    function = contraction("bf16", "bf16")
    before = checking.random_arrays(function, values="plain")
    a, b = (dtypes.decode(before[name], "bf16") for name in "AB")
    after = before | {"C": dtypes.encode(a @ b, "bf16")}
    assert checking.check(function, before, after).ok
    assert not checking.check(function, before, before).ok
