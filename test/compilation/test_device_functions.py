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
from alcop_mlir.element_types import TINY
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime.launch import Program

COUNT = 1 << 13
Array = np.ndarray
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-42, -1e-42, 200, -200], "f4"
)

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
    "log1p": (np.log1p, -0.999, 100, 1.5),
    "cbrt": (np.cbrt, -100, 100, 2),
    "sin": (np.sin, -1e5, 1e5, 1.5),
    "cos": (np.cos, -1e5, 1e5, 1.5),
    "tan": (np.tan, -1e5, 1e5, 3),
    "asin": (np.arcsin, -1, 1, 2),
    "acos": (np.arccos, -1, 1, 1.5),
    "atan": (np.arctan, -10, 10, 1.5),
    "sinh": (np.sinh, -89.4, 89.4, 2.2),
    "cosh": (np.cosh, -89.4, 89.4, 2.2),
    "asinh": (np.arcsinh, -20, 20, 1.5),
    "acosh": (np.arccosh, 1, 20000, 2),
    "atanh": (np.arctanh, -0.999, 0.999, 2),
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
    operands = ", ".join(f"%{letter}" for letter in "abc"[: len(given)])
    return run_body(f"%r = {name} {operands} : {element}", *given, element=element)


def run_body(body: str, *given: Array, element: str = "f32") -> Array:
    """What the body makes as %r of elements %a, %b, %c of the arrays."""
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
          {body}
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
    return np.concatenate([even, signs * small]).clip(low, high).astype("f4")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_close_to_float64(name: str) -> None:
    function, low, high, bound = FUNCTIONS[name]
    given = arguments(low, high)
    expected = function(given.astype("f8"))
    unit = np.spacing(np.abs(expected).astype("f4")).astype("f8")
    error = np.abs(run(f"math.{name}", given) - expected) / unit
    worst = error.argmax()
    assert error[worst] <= bound, f"{name}({given[worst]}): {error[worst]} units"


def test_an_approximate_power_of_two_flushes_subnormal_numbers() -> None:
    given = np.concatenate(
        [arguments(-125, 127), np.array([-126.5, -149, -1e-42], "f4")]
    )
    expected = np.exp2(given.astype("f8"))
    expected[-3:] = [0, 0, 1]
    unit = np.spacing(np.abs(expected).astype("f4")).astype("f8")
    made = run_body("%r = math.exp2 %a fastmath<afn> : f32", given)
    assert (np.abs(made - expected) <= 0.51 * unit).all()


# Of f64: the function, the interval of its arguments, and the bound.
WIDE_FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float, float, float]] = {
    "exp": (np.exp, -700, 700, 1.5),
    "exp2": (np.exp2, -1000, 1000, 2),
    "log": (np.log, 0, 100, 1.5),
    "log2": (np.log2, 0, 100, 2),
    "log10": (np.log10, 0, 100, 2),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 100, 1.5),
}
needs_longer_floats = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="no floats with more digits than f64"
)


@needs_longer_floats
@pytest.mark.parametrize("name", WIDE_FUNCTIONS)
def test_f64_is_close_to_80_bits(name: str) -> None:
    function, low, high, bound = WIDE_FUNCTIONS[name]
    random = np.random.default_rng(9)
    given = np.append(random.uniform(low, high, COUNT // 2), random.uniform(0.5, 2, 64))
    expected = function(given.astype(np.longdouble))
    unit = np.spacing(np.abs(expected).astype("f8"))
    error = np.abs(run(f"math.{name}", given, element="f64") - expected) / unit
    assert error.max() <= bound
    special = SPECIAL.astype("f8")
    with np.errstate(all="ignore"):
        expected = function(special)
    np.testing.assert_allclose(
        run(f"math.{name}", special, element="f64"), expected, rtol=1e-15, atol=5e-324
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][0](SPECIAL.astype("f8")).astype("f4")
    np.testing.assert_allclose(
        run(f"math.{name}", SPECIAL), expected, rtol=1e-6, atol=2e-45
    )


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_whole_turns_of_large_angles(name: str) -> None:
    """Of all magnitudes up to the largest, and close to multiples of pi / 2."""
    random = np.random.default_rng(5)
    size = np.exp2(random.uniform(15, 127.99, COUNT)).astype("f4")
    given = np.where(random.random(COUNT) < 0.5, size, -size)
    near_zero = np.rint(random.uniform(-1e6, 1e6, COUNT)) * (np.pi / 2)
    given[: COUNT // 2] = near_zero[: COUNT // 2]
    function = FUNCTIONS[name][0]
    expected = function(given.astype("f8"))
    unit = np.spacing(np.abs(expected).astype("f4")).astype("f8")
    error = np.abs(run(f"math.{name}", given) - expected) / unit
    assert error.max() <= FUNCTIONS[name][3]


def test_angles_in_all_quadrants() -> None:
    random = np.random.default_rng(6)
    ends = np.array([0, -0.0, 1, -1, 1e-42, -3e38, np.inf, -np.inf, np.nan], "f4")
    up, along = (one.ravel().copy() for one in np.meshgrid(ends, ends))
    more = (random.normal(0, 1, (2, COUNT)) * 10 ** random.uniform(-9, 9)).astype("f4")
    up, along = np.append(up, more[0]), np.append(along, more[1])
    expected = np.arctan2(up.astype("f8"), along.astype("f8"))
    result = run("math.atan2", up, along)
    np.testing.assert_allclose(result, expected, rtol=2.5e-7, atol=2.0**-126)
    numbers = np.isfinite(expected)
    np.testing.assert_array_equal(
        np.signbit(result)[numbers], np.signbit(expected)[numbers]
    )


def test_the_rest_of_a_division_is_exact() -> None:
    random = np.random.default_rng(8)
    bits = random.integers(0, 2**32, (2, COUNT), np.uint32).view("f4")
    near = random.uniform(-100, 100, (2, COUNT)).astype("f4")
    ends = np.array([0, -0.0, 1, 1e-45, -1e-42, 3e38, np.inf, np.nan], "f4")
    pairs = np.stack([one.ravel() for one in np.meshgrid(ends, ends)])
    left, right = np.concatenate([bits, near, pairs], 1)
    with np.errstate(invalid="ignore"):
        expected = np.fmod(left, right)
    result = run("arith.remf", left.copy(), right.copy())
    np.testing.assert_array_equal(result, expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(result)[zero], np.signbit(left)[zero])


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


@needs_longer_floats
def test_f64_powers_lose_what_the_logarithm_does() -> None:
    random = np.random.default_rng(4)
    base, exponent = np.exp(random.uniform(-5, 5, 512)), random.uniform(-20, 20, 512)
    base[:128] *= -1
    exponent[:128] = np.rint(exponent[:128])
    expected = np.power(*(one.astype(np.longdouble) for one in (base, exponent)))
    result = run("math.powf", base, exponent, element="f64")
    units = 1 + np.abs(exponent * np.log(np.abs(base)))
    assert (np.abs(result / expected - 1) <= 2.0**-52 * units).all()


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_special_powers(element: str) -> None:
    sizes = [0, 1, 2, 0.5, np.inf, 1e-40]
    kind = dtypes.NUMPY_DTYPES[element]
    bases = np.array([*sizes, *(-size for size in sizes), np.nan], kind)
    exponents = np.array(
        [0, 1, -1, 2, 3, -3, 0.5, -2.5, 1e9, np.inf, -np.inf, np.nan], kind
    )
    base, exponent = (
        one.ravel().copy() for one in np.meshgrid(bases, exponents, indexing="ij")
    )
    with np.errstate(all="ignore"):
        expected = np.power(base.astype("f8"), exponent.astype("f8")).astype(kind)
    result = run("math.powf", base, exponent, element=element)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=2e-45)


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("exponent", [-3, 0, 2, 3, 7])
def test_whole_powers_are_rounded_once(element: str, exponent: int) -> None:
    """Multiplications of f16 would be rounded one by one."""
    random = np.random.default_rng(4)
    signs = random.choice([-1, 1], 256)
    given = dtypes.encode(signs * random.uniform(0.1, 4, 256), element)
    body = f"""%n = arith.constant {exponent} : i64
          %r = math.fpowi %a, %n : {element}, i64"""
    result = dtypes.decode(run_body(body, given, element=element), element)
    expected = dtypes.decode(given, element).astype("f8") ** float(exponent)
    rounding = dtypes.ROUNDING[element]
    count = 1.002 if element in ("f16", "bf16") else abs(exponent) + 1
    tiny = TINY[element]
    np.testing.assert_allclose(result, expected, rtol=count * rounding, atol=tiny)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_absolute_values_of_integers(element: str) -> None:
    """The least integer has none, and stays."""
    kind = np.dtype(element.replace("i", "int"))
    least = np.iinfo(kind).min
    given = np.array([0, 1, -1, 77, -77, -least - 1, least + 1, least], kind)
    np.testing.assert_array_equal(
        run("math.absi", given, element=element), np.where(given < 0, -given, given)
    )


@pytest.mark.parametrize("exponent", [1, 2, 5, 31])
def test_powers_of_integers(exponent: int) -> None:
    """They wrap around."""
    given = np.array([0, 1, -1, 3, -7, 1000, -(2**31)], "i4")
    body = f"""%n = arith.constant {exponent} : i32
          %r = math.ipowi %a, %n : i32"""
    expected = [(int(one) ** exponent + 2**31) % 2**32 - 2**31 for one in given]
    np.testing.assert_array_equal(run_body(body, given, element="i32"), expected)


def test_maximum_of_numbers() -> None:
    """Unlike arith.maximumf it drops NaN."""
    left = np.array([1, np.nan, 3, -1], "f4")
    right = np.array([2, 1, np.nan, -2], "f4")
    np.testing.assert_array_equal(run("arith.maxnumf", left, right), [2, 1, 3, -1])
    np.testing.assert_array_equal(run("arith.minnumf", left, right), [1, 1, 3, -2])


def test_what_there_is_no_body_for_is_named() -> None:
    with pytest.raises(CompileError, match="__nv_erfcf"):
        run("math.erfc", SPECIAL)
