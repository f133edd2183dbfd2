"""All poolings that linalg has names for run as SIMT fallbacks, against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from alcop_mlir.bindings import linalg
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

SIZES = {"n": 2, "c": 5, "d": 4, "h": 7, "w": 6}
TAPS, STRIDE = 3, 2
COMBINES = {"sum": np.sum, "max": np.max, "min": np.min}
NAMES = sorted(
    value.OPERATION_NAME
    for name, value in vars(linalg).items()
    if name.startswith("Pooling") and name.endswith("Op")
)


def kind(shape: list[int], element: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def windows(size: int) -> int:
    return (size - TAPS) // STRIDE + 1


def expected(image: np.ndarray, letters: str, combine: str) -> np.ndarray:
    """Of the taps, each a part of the image with a stride."""
    spatial = [letter for letter in letters if letter in "dhw"]
    taps = []
    for tap in itertools.product(range(TAPS), repeat=len(spatial)):
        at = dict(zip(spatial, tap, strict=True))
        place = tuple(
            slice(at[one], at[one] + STRIDE * (windows(SIZES[one]) - 1) + 1, STRIDE)
            if one in at
            else slice(None)
            for one in letters
        )
        taps.append(image[place])
    return COMBINES[combine](taps, axis=0)


def test_there_are_some() -> None:
    assert len(NAMES) == 17


@pytest.mark.parametrize("name", NAMES)
def test_pooling(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """From what the output holds on; a remark says that it multiplies nothing."""
    _, letters, combine, *unsigned = name.split("_")
    given, total = ("i8", "i32") if unsigned else ("f16", "f32")
    image = [SIZES[letter] for letter in letters]
    out = [
        windows(n) if one in "dhw" else n for n, one in zip(image, letters, strict=True)
    ]
    rank = sum(letter in "dhw" for letter in letters)
    x, w, y = kind(image, given), kind([TAPS] * rank, given), kind(out, total)
    steps = (
        f"{{strides = dense<{STRIDE}> : tensor<{rank}xi64>, "
        f"dilations = dense<1> : tensor<{rank}xi64>}}"
    )
    text = f"""func.func @f(%x: {x}, %w: {w}, %e: {y}) -> {y} {{
      %y = {name} {steps} ins(%x, %w : {x}, {w}) outs(%e : {y}) -> {y}
      return %y : {y}
    }}"""
    options = compiler.Options(use_ptxas=False)
    program = Program(
        compiler.compile_source(inputs.read(text), options), device="emulator"
    )
    assert f"'{name}' runs as a SIMT fallback" in capsys.readouterr().err
    random = np.random.default_rng(0)
    pixels = random.integers(-9, 10, image).astype("i1" if unsigned else "f2")
    start = random.integers(0, 20, out).astype("i4" if unsigned else "f4")
    result = np.zeros_like(start)
    program(pixels, np.zeros([TAPS] * rank, pixels.dtype), start, result)
    seen = pixels.view("u1").astype("i4") if unsigned else pixels.astype("f4")
    both = [expected(seen, letters, combine), start]
    np.testing.assert_array_equal(result, COMBINES[combine](both, axis=0))
    if not unsigned:  # of which references have no combining op
        before = checking.random_arrays(program.function)
        after = {name: array.copy() for name, array in before.items()}
        program(*after.values())
        assert checking.check(program.function, before, after).ok
