"""`.approx` instructions, held to the error bounds that the PTX ISA states."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from exact_floats import (
    decode,
    encode,
)
from float_lanes import KINDS, run
from hypothesis import given
from kernel_text import run_lanes
from operand_values import COUNT, FIXED, seeds


def spread(seed: int, low: float, high: float) -> np.ndarray:
    """Floats over a range, sign included; for functions with an error bound."""
    generator = np.random.default_rng(seed)
    return generator.uniform(low, high, COUNT).astype(np.float32)


def powers(seed: int, low: int, high: int) -> np.ndarray:
    """Positive floats spread over the exponents from low to high."""
    generator = np.random.default_rng(seed)
    return np.exp2(generator.uniform(low, high, COUNT)).astype(np.float32)


def approximate(opcode: str, *values: np.ndarray) -> np.ndarray:
    inputs = {n: ("f32", v) for n, v in zip("ab", values, strict=False)}
    sources = ", ".join(f"%{name}" for name in inputs)
    got = run_lanes(f"{opcode} %d, {sources};", inputs, {"d": "f32"})["d"]
    return got.view(np.float32).astype(np.float64)


@pytest.mark.parametrize("suffix", ["", ".ftz"])
@FIXED
@given(seed=seeds)
def test_approximate_functions_meet_their_bounds(suffix: str, seed: int) -> None:
    """The maximum errors that the PTX ISA states for each."""
    wide, narrow = powers(seed, -120, 120), spread(seed, -3.1, 3.1)
    exact = wide.astype(np.float64)
    ulp = 2.0**-23
    reciprocal = approximate(f"rcp.approx{suffix}.f32", wide)
    np.testing.assert_allclose(reciprocal, 1 / exact, rtol=ulp)
    root = approximate(f"rsqrt.approx{suffix}.f32", wide)
    np.testing.assert_allclose(root, exact**-0.5, rtol=2.0**-22.4)
    root = approximate(f"sqrt.approx{suffix}.f32", wide)
    np.testing.assert_allclose(root, exact**0.5, rtol=2.0**-22)
    other = powers(seed + 1, -3, 3)
    divided = approximate(f"div.approx{suffix}.f32", wide, other)
    np.testing.assert_allclose(divided, exact / other, rtol=2 * ulp)
    divided = approximate(f"div.full{suffix}.f32", wide, other)
    np.testing.assert_allclose(divided, exact / other, rtol=2 * ulp)
    exponent = spread(seed, -100, 100)
    power = approximate(f"ex2.approx{suffix}.f32", exponent)
    np.testing.assert_allclose(
        power, np.exp2(exponent.astype(np.float64)), rtol=2.0**-22
    )
    logarithm = approximate(f"lg2.approx{suffix}.f32", wide)
    np.testing.assert_allclose(logarithm, np.log2(exact), rtol=2.0**-22, atol=2.0**-22)
    for name, function in (("sin", np.sin), ("cos", np.cos)):
        got = approximate(f"{name}.approx{suffix}.f32", narrow)
        np.testing.assert_allclose(
            got, function(narrow.astype(np.float64)), rtol=0, atol=2.0**-20.5
        )


@FIXED
@given(seed=seeds)
def test_tanh(seed: int) -> None:
    values = spread(seed, -6, 6)
    np.testing.assert_allclose(
        approximate("tanh.approx.f32", values),
        np.tanh(values.astype(np.float64)),
        rtol=2.0**-10.9,
    )


INFINITY, NAN = math.inf, math.nan
# PTX ISA tables of special inputs: -Inf, -0, +0, +Inf, NaN
SPECIALS = np.array([-INFINITY, -0.0, 0.0, INFINITY, NAN], np.float32)


@pytest.mark.parametrize(
    ("opcode", "results"),
    [
        ("rcp.approx.ftz.f32", [-0.0, -INFINITY, INFINITY, 0.0, NAN]),
        ("sqrt.approx.ftz.f32", [NAN, -0.0, 0.0, INFINITY, NAN]),
        ("rsqrt.approx.ftz.f32", [NAN, -INFINITY, INFINITY, 0.0, NAN]),
        ("lg2.approx.ftz.f32", [NAN, -INFINITY, -INFINITY, INFINITY, NAN]),
        ("ex2.approx.ftz.f32", [0.0, 1.0, 1.0, INFINITY, NAN]),
        ("sin.approx.ftz.f32", [NAN, -0.0, 0.0, NAN, NAN]),
        ("cos.approx.ftz.f32", [NAN, 1.0, 1.0, NAN, NAN]),
        ("tanh.approx.f32", [-1.0, -0.0, 0.0, 1.0, NAN]),
    ],
)
def test_special_inputs(opcode: str, results: list[float]) -> None:
    got = approximate(opcode, np.resize(SPECIALS, 640))[:5]
    np.testing.assert_array_equal(got, results)
    zeros = np.array(results) == 0
    signs = np.signbit(results)
    np.testing.assert_array_equal(np.signbit(got)[zeros], signs[zeros])


@pytest.mark.parametrize("flushed", [False, True])
def test_ftz_of_approximations(flushed: bool) -> None:
    """A subnormal in, or out, is kept only without .ftz."""
    tiny = np.full(128, 2.0**-130, np.float32)
    huge = np.full(128, 2.0**127.5, np.float32)
    suffix = ".ftz" if flushed else ""
    logarithm = approximate(f"lg2.approx{suffix}.f32", tiny)[0]
    assert logarithm == (-INFINITY if flushed else pytest.approx(-130, rel=1e-6))
    reciprocal = approximate(f"rcp.approx{suffix}.f32", huge)[0]
    assert reciprocal == (0.0 if flushed else pytest.approx(2.0**-127.5, rel=1e-5))
    power = approximate(f"ex2.approx{suffix}.f32", np.full(128, -130, np.float32))[0]
    assert power == (0.0 if flushed else pytest.approx(2.0**-130, rel=1e-6))


@pytest.mark.parametrize(
    ("opcode", "kind", "function", "error"),
    [
        ("ex2.approx.f16", "f16", np.exp2, 2.0**-9.9),
        ("ex2.approx.ftz.bf16", "bf16", np.exp2, 2.0**-7),
        ("tanh.approx.f16", "f16", np.tanh, 2.0**-10.987),
        ("tanh.approx.bf16", "bf16", np.tanh, 2.0**-8),
    ],
)
@FIXED
@given(seed=seeds)
def test_half_approximations(
    opcode: str, kind: str, function: Callable[..., np.ndarray], error: float, seed: int
) -> None:
    fmt = KINDS[kind].fmt
    column = [encode(fmt, float(value)) for value in spread(seed, -4, 4)]
    bits = run(f"{opcode} %d, %a;", KINDS[kind], [column], "sm_90", "7.8")
    got = [decode(fmt, int(value)) for value in bits]
    exact = function(np.array([decode(fmt, value) for value in column]))
    # The stated bound, and half a unit for the last rounding.
    relative = error + 2.0 ** -(fmt.fraction_bits + 1)
    np.testing.assert_allclose(got, exact, rtol=relative, atol=2.0**-10.9)


@pytest.mark.parametrize(("name", "power"), [("rcp", 1.0), ("rsqrt", 0.5)])
@FIXED
@given(seed=seeds)
def test_gross_approximations_of_f64(name: str, power: float, seed: int) -> None:
    """`.approx.ftz.f64`: 20 bits, from the upper half of the operand."""
    generator = np.random.default_rng(seed)
    x = np.ldexp(generator.uniform(1, 2, 512), generator.integers(-900, 900, 512))
    special = [0.0, -0.0, np.inf, 5e-324, 2.0**-1023, 2.0**1023, np.nan]
    x[: len(special)] = special
    body = f"{name}.approx.ftz.f64 %d, %a;"
    got = run_lanes(body, {"a": ("f64", x)}, {"d": "f64"})["d"]
    assert not np.any(got[7:] & 0xFFFFFFFF)
    found = got.view(np.float64)
    wanted = x[7:] ** -power
    assert np.all(np.abs(found[7:] / wanted - 1) <= 2.0**-19)
    big = 0.0 if name == "rcp" else 2.0**-511.5  # 1 / 2^1023 is subnormal
    assert found[:2].tolist() == [np.inf, -np.inf]
    assert found[2:5].tolist() == [0.0, np.inf, np.inf]
    assert abs(found[5] - big) <= 2.0**-19 * big
    assert np.isnan(found[6])


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@FIXED
@given(seed=seeds)
def test_directed_square_roots_of_f64(mode: str, seed: int) -> None:
    """The neighbours of the result lie on the other side of the exact root."""
    generator = np.random.default_rng(seed)
    x = np.ldexp(generator.uniform(1, 2, 512), generator.integers(-1060, 1000, 512))
    x[:256] = np.square(generator.integers(1, 2**26, 256).astype(np.float64))
    got = run_lanes(f"sqrt.{mode}.f64 %d, %a;", {"a": ("f64", x)}, {"d": "f64"})["d"]
    for number, root in zip(x.tolist(), got.view(np.float64).tolist(), strict=True):
        exact, below = Fraction(number), math.nextafter(root, 0.0)
        above = math.nextafter(root, math.inf)
        if mode == "rp":
            assert Fraction(below) ** 2 < exact <= Fraction(root) ** 2
        else:
            assert Fraction(root) ** 2 <= exact < Fraction(above) ** 2
