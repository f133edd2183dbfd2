"""Functions that CUDA has in libdevice: ours against float64, in units of the last bit.

The emulator computes `.approx` instructions exactly; hardware adds up to two units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime.launch import Program

COUNT = 1 << 13
Array = np.ndarray
SPECIAL = np.array([0.0, np.inf, -np.inf, np.nan, -1.0, 1e-42, 200.0, -200.0], "f4")

# The function, the interval of its arguments, and the bound.
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float, float, float]] = {
    "exp": (np.exp, -87, 88, 2),
    "exp2": (np.exp2, -125, 127, 0.51),
    "expm1": (np.expm1, -10, 88, 3),
    "tanh": (np.tanh, -10, 10, 1.5),
    "erf": (np.vectorize(math.erf), -4, 4, 2.5),
    "log": (np.log, 0, 100, 2),
    "log2": (np.log2, 0, 100, 3),
    "log10": (np.log10, 0, 100, 3),
    "sqrt": (np.sqrt, 0, 100, 0.51),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 100, 0.51),
    "absf": (np.abs, -100, 100, 0),
    "ceil": (np.ceil, -100, 100, 0),
    "floor": (np.floor, -100, 100, 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), -100, 100, 0),
    "roundeven": (np.rint, -100, 100, 0),
    "trunc": (np.trunc, -100, 100, 0),
}


def run(name: str, *given: Array, element: str = "f32") -> Array:
    """The op of that name on each element, by a kernel on the emulator."""
    kind = f"memref<{given[0].size}x{element}>"
    letters = "abc"[: len(given)]
    arrays = ", ".join(f"%array_{letter}" for letter in letters)
    elements = ", ".join(f"%{letter}: {element}" for letter in letters)
    text = f"""
      #i = affine_map<(i) -> (i)>
      func.func @f({arrays.replace(",", f": {kind},")}: {kind}, %y: {kind}) {{
        linalg.generic {{indexing_maps = [{"#i, " * len(given)}#i],
            iterator_types = ["parallel"]}}
          ins({arrays} : {", ".join([kind] * len(given))}) outs(%y : {kind}) {{
        ^bb0({elements}, %old: {element}):
          %r = {name} {", ".join(f"%{letter}" for letter in letters)} : {element}
          linalg.yield %r : {element}
        }}
        return
      }}"""
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text), options)
    result = dtypes.unwritten(given[0].shape, element)
    Program(bundle, device="emulator")(*given, result)
    return result


def arguments(low: float, high: float) -> Array:
    """Evenly spaced over the interval, and of all magnitudes down to 1e-8."""
    random = np.random.default_rng(7)
    even = random.uniform(low, high, COUNT // 2)
    small = np.exp(random.uniform(math.log(1e-8), math.log(high), COUNT // 2))
    signs = random.choice([-1.0, 1.0], COUNT // 2) if low < 0 else 1.0
    return np.concatenate([even, signs * small]).astype("f4")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_close_to_float64(name: str) -> None:
    function, low, high, bound = FUNCTIONS[name]
    given = arguments(low, high)
    expected = function(given.astype("f8"))
    unit = np.spacing(np.abs(expected).astype("f4")).astype("f8")
    error = np.abs(run(f"math.{name}", given) - expected) / unit
    worst = error.argmax()
    assert error[worst] <= bound, f"{name}({given[worst]}): {error[worst]} units"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][0](SPECIAL.astype("f8")).astype("f4")
    np.testing.assert_allclose(
        run(f"math.{name}", SPECIAL), expected, rtol=1e-6, atol=2e-45
    )


@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt"])
def test_computed_in_f32_for_f16(name: str) -> None:
    given = np.linspace(0, 3, 64).astype("f2")
    expected = FUNCTIONS[name][0](given.astype("f8")).astype("f2")
    np.testing.assert_array_equal(run(f"math.{name}", given, element="f16"), expected)


def test_powers() -> None:
    """Integer exponents where bases, a quarter of them, are negative."""
    random = np.random.default_rng(3)
    base = np.exp(random.uniform(-10, 10, COUNT)).astype("f4")
    exponent = random.uniform(-8, 8, COUNT).astype("f4")
    base[: COUNT // 4] *= -1
    exponent[: COUNT // 4] = np.rint(exponent[: COUNT // 4])
    expected = np.power(base.astype("f8"), exponent.astype("f8"))
    unit = np.spacing(np.abs(expected).astype("f4")).astype("f8")
    error = np.abs(run("math.powf", base, exponent) - expected) / unit
    assert error.max() < 2


def test_special_powers() -> None:
    sizes = [0, 1, 2, 0.5, np.inf, 1e-40]
    bases = np.array([*sizes, *(-size for size in sizes), np.nan], "f4")
    exponents = np.array(
        [0, 1, -1, 2, 3, -3, 0.5, -2.5, 1e9, np.inf, -np.inf, np.nan], "f4"
    )
    base, exponent = (
        one.ravel().copy() for one in np.meshgrid(bases, exponents, indexing="ij")
    )
    with np.errstate(all="ignore"):
        expected = np.power(base.astype("f8"), exponent.astype("f8")).astype("f4")
    result = run("math.powf", base, exponent)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=2e-45)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_absolute_values_of_integers(element: str) -> None:
    """The least integer has none, and stays."""
    kind = np.dtype(element.replace("i", "int"))
    least = np.iinfo(kind).min
    given = np.array([0, 1, -1, 77, -77, -least - 1, least + 1, least], kind)
    np.testing.assert_array_equal(
        run("math.absi", given, element=element), np.where(given < 0, -given, given)
    )


def test_maximum_of_numbers() -> None:
    """Unlike arith.maximumf it drops NaN."""
    left = np.array([1, np.nan, 3, -1], "f4")
    right = np.array([2, 1, np.nan, -2], "f4")
    np.testing.assert_array_equal(run("arith.maxnumf", left, right), [2, 1, 3, -1])
    np.testing.assert_array_equal(run("arith.minnumf", left, right), [1, 1, 3, -2])


def test_what_there_is_no_body_for_is_named() -> None:
    with pytest.raises(CompileError, match="__nv_sinf"):
        run("math.sin", SPECIAL)
