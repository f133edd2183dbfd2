"""Convolutions that no image can have, and empty ones: one error at the op, or none.

Named ops and generic ones, on tensors. MLIR refuses most when it reads them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import AlcopError
from alcop_mlir.runtime import checking

Shape = tuple[int, ...]
IMAGE, FILTER, OUTPUT = (1, 6, 6, 16), (3, 3, 16, 16), (1, 4, 4, 16)
WINDOWS = ("p + r", "q + s")


def kind(shape: Shape, element: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def function(shapes: tuple[Shape, Shape, Shape], op: str, end: str = "") -> str:
    x, w, y = map(kind, shapes, ("f16", "f16", "f32"))
    return f"""func.func @f(%x: {x}, %w: {w}, %e: {y}) -> {y} {{
      %y = {op} ins(%x, %w : {x}, {w}) outs(%e : {y}) {end} -> {y}
      return %y : {y}
    }}"""


def named(
    image: Shape = IMAGE,
    kernel: Shape = FILTER,
    out: Shape = OUTPUT,
    stride: int = 1,
    dilation: int = 1,
    name: str = "conv_2d_nhwc_hwcf",
) -> str:
    steps = (
        f"{{dilations = dense<{dilation}> : tensor<2xi64>, "
        f"strides = dense<{stride}> : tensor<2xi64>}}"
    )
    return function((image, kernel, out), f"linalg.{name} {steps}")


def generic(
    image: Shape = IMAGE,
    kernel: Shape = FILTER,
    out: Shape = OUTPUT,
    windows: tuple[str, str] = WINDOWS,
) -> str:
    loops = "affine_map<(n, p, q, f, r, s, c) -> "
    maps = ", ".join(
        f"{loops}({one})>"
        for one in (f"n, {', '.join(windows)}, c", "r, s, c, f", "n, p, q, f")
    )
    kinds = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
    body = """{
      ^bb0(%a: f16, %b: f16, %o: f32):
        %1 = arith.extf %a : f16 to f32
        %2 = arith.extf %b : f16 to f32
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %o, %3 : f32
        linalg.yield %4 : f32
      }"""
    head = f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
    return function((image, kernel, out), head, body)


SMALL = (1, 2, 2, 16)
WRONG = {
    "window larger than the image": (named(SMALL, out=(1, 1, 1, 16)), "but found 2"),
    "output too large": (named(out=(1, 5, 5, 16)), "but found 6"),
    "dilation 0": (named(dilation=0), "unexpected loop dimension"),
    "dilation -1": (named(dilation=-1), "indices from -2 to 3, expected 0 to 5"),
    "stride 0": (named(stride=0), "unexpected loop dimension"),
    "stride -1": (named(stride=-1), "unexpected result less than 0"),
    "other channels": (named(kernel=(3, 3, 32, 16)), "to be 16, but found 32"),
    "other groups": (
        named(
            (1, 6, 6, 3, 16),
            (2, 16, 3, 3, 16),
            (1, 4, 4, 3, 16),
            1,
            1,
            "conv_2d_nhwgc_gfhwc",
        ),
        "to be 3, but found 2",
    ),
    "generic, window larger": (generic(SMALL, out=(1, 1, 1, 16)), "but found 2"),
    "generic, stride 0": (
        generic(windows=("p * 0 + r", "q * 0 + s")),
        "to be 6, but found 3",
    ),
    "generic, stride -1": (generic(windows=("r - p", "q + s")), "less than 0"),
    "generic, beyond the end": (
        generic(windows=("p * 2 + r", "q + s")),
        "greater than or equal to 9, but found 6",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_error_at_the_op(name: str) -> None:
    text, why = WRONG[name]
    with pytest.raises(AlcopError) as caught:
        compiler.compile_source(inputs.read(text), compiler.Options(use_ptxas=False))
    assert why in str(caught.value)
    assert str(caught.value).startswith("-:2:12: ")
    assert len(str(caught.value).splitlines()) == 1


def test_negative_sizes() -> None:
    """Are no type."""
    with pytest.raises(AlcopError, match="-:1:"):
        inputs.read(named().replace("1x6x6x16", "1x-6x6x16"))


# Of image, filter and output.
EMPTY = {
    "no images": ((0, 6, 6, 16), FILTER, (0, 4, 4, 16)),
    "no rows": ((1, 0, 6, 16), FILTER, (1, 0, 4, 16)),
    "window larger, no output": (SMALL, FILTER, (1, 0, 0, 16)),
    "no channels": ((1, 6, 6, 0), (3, 3, 0, 16), OUTPUT),
    "no filters": (IMAGE, (3, 3, 16, 0), (1, 4, 4, 0)),
    "no taps": (IMAGE, (0, 3, 16, 16), (1, 7, 4, 16)),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("make", [named, generic])
def test_empty(make: object, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is added is nothing; a remark says that it is no matmul."""
    assert callable(make)
    shapes = EMPTY[name]
    program = alcop_mlir.compile(make(*shapes), device="emulator")
    remarks = capsys.readouterr().err
    assert "has no iterations: one of its sizes is 0" in remarks
    assert "is left unchanged" not in remarks
    before = checking.random_arrays(program.function)
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    result = after["result"]
    assert result.size == math.prod(shapes[2])
    np.testing.assert_array_equal(result, before["arg2"])


def test_a_window_of_one_place() -> None:
    """A dilation or stride of any size, as far as it is used."""
    for text in (
        named((1, 1, 1, 16), (1, 1, 16, 16), (1, 1, 1, 16), stride=7, dilation=9),
        generic(windows=("p + r * 0", "q + s * 0"), out=(1, 6, 6, 16)),
    ):
        program = alcop_mlir.compile(text, device="emulator")
        function = program.function
        before = checking.random_arrays(function, values="plain")
        after = {name: array.copy() for name, array in before.items()}
        program(*after.values())
        assert checking.check(function, before, after).ok
