"""Programs with torch-mlir's `tm_tensor.attention`: read, fused, and diagnosed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from chain_runs import drawn_arrays, expected

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import ConfigError
from alcop_mlir.runtime.launch import Program

M, N, K, D = 40, 72, 32, 16
SHAPES = {"q": (M, K), "k": (N, K), "v": (N, D), "mask": (M, N)}


def program(batch: str = "2x", mask: str | None = "2x", **shapes: str) -> str:
    """A function with one attention.

    mask:   sizes of its batch; None for none
    shapes: of an operand, instead of the right one
    """
    types = {
        name: f"tensor<{shapes.get(name, batch + 'x'.join(map(str, shape)))}xf16>"
        for name, shape in SHAPES.items()
    }
    types["mask"] = f"tensor<{mask}{M}x{N}xf16>"
    given = [one for one in types if one != "mask" or mask is not None]
    arguments = ", ".join(f"%{one}: {types[one]}" for one in given)
    out, size, empty = f"tensor<{batch}{M}x{D}xf16>", "", "tensor.empty()"
    if batch == "?x":
        size = f"%c = arith.constant 0 : index %n = tensor.dim %q, %c : {types['q']}"
        empty = "tensor.empty(%n)"
    return f"""func.func @f({arguments}) -> {out} {{
  {size} %0 = {empty} : {out}
  %1 = tm_tensor.attention ins({", ".join(f"%{one}" for one in given)}
    : {", ".join(types[one] for one in given)}) outs(%0 : {out}) -> {out}
  return %1 : {out}
}}
"""


@pytest.mark.parametrize(
    ("batch", "mask"),
    [
        ("2x", "2x"),
        ("2x", "?x"),
        ("2x", ""),
        ("", None),
        ("3x1x2x", "3x1x2x"),
        ("?x", "?x"),
    ],
)
def test_kernels_and_values(batch: str, mask: str | None, tmp_path: Path) -> None:
    file = tmp_path / "attention.mlir"
    file.write_text(program(batch, mask))
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(file), options)
    assert len(bundle.function().kernels) == 1
    sizes = tuple(map(int, re.findall(r"\d+", batch.replace("?", "2"))))
    given = drawn_arrays(1, *((*sizes, *SHAPES[one]) for one in "qkv"))
    q, k, v = (one.reshape(1, -1, *one.shape[-2:]) for one in given)
    added = np.zeros((1, 1, 1, 1))
    if mask is not None:
        count = sizes if mask else ()
        (drawn,) = drawn_arrays(2, (*count, M, N), largest=3)
        drawn[..., 60:] = -np.inf
        given.append(drawn)
        added = drawn.reshape(1, -1, M, N)
    made = np.asarray(Program(bundle, None, "emulator")(*given), np.float64)
    wanted = expected(q, k, v, added, K**-0.5).reshape(made.shape)
    np.testing.assert_allclose(made, wanted, atol=2e-3)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            {"k": "2x72x16"},
            "keys are tensor<2x72x16xf16>, expected tensor<2x72x32xf16>",
        ),
        ({"v": "2x64x16"}, "values are tensor<2x64x16xf16>, expected tensor<2x72x16x"),
        ({"v": "72x16"}, "values are tensor<72x16xf16>, expected tensor<2x72x16xf16>"),
        ({"mask": "4x"}, "mask are tensor<4x40x72xf16>, expected tensor<2x40x72xf16>"),
        ({"q": "2x40x?"}, "queries are .*, expected rows of a known length"),
        ({"q": "2x40x32xi8>, tensor<1"}, "has 4 inputs of 5 types, expected"),
    ],
)
def test_shapes_that_contradict(shapes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^-:3:3: 'tm_tensor.attention': {message}"):
        inputs.read(program(**shapes))
