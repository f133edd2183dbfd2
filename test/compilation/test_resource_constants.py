"""Constants that torch-mlir writes as resources: computed with, checked, folded."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.compilation import inputs
from alcop_mlir.errors import ConfigError


def program(kind: str, data: bytes, name: str = "w") -> str:
    """A function that returns a constant with these bytes."""
    return f"""func.func @f() -> {kind} {{
  %c = arith.constant dense_resource<{name}> : {kind}
  return %c : {kind}
}}
{{-#
  dialect_resources: {{
    builtin: {{
      w: "0x04000000{data.hex().upper()}"
    }}
  }}
#-}}"""


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("tensor<2x2xf16>", np.array([1, 2, 3, 4], "f2"), "[[1.0{}, 2.0{}], [3.0"),
        ("tensor<2xbf16>", np.array([0x3F80, 0x4000], "u2"), "[1.000000e+00, 2.0{}]"),
        ("tensor<3xi64>", np.array([-1, 0, 7], "i8"), "[-1, 0, 7]"),
        ("tensor<3xi1>", np.array([1, 0, 1], "u1"), "[true, false, true]"),
        ("tensor<9xi1>", np.array([5, 1], "u1"), "[true, false, true, false,"),
    ],
)
def test_values(kind: str, data: np.ndarray, expected: str) -> None:
    """i1 has a bit or a byte for each element."""
    text = str(inputs.read(program(kind, data.tobytes())).module)
    assert f"dense<{expected.replace('{}', '00000e+00')}" in text


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("w", b"123", r"-:2:8: w has 3 bytes, tensor<2xf32> needs 8"),
        ("__elided__", b"", r"-:2:8: the bytes of .*__elided__.* are not in the modul"),
    ],
)
def test_bytes_that_are_not_those(name: str, data: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        inputs.read(program("tensor<2xf32>", data, name))


def test_computed_with() -> None:
    weights = np.arange(40, dtype="f4")
    text = program("tensor<40xf32>", weights.tobytes()).replace(
        "  return %c",
        """  %e = tensor.empty() : tensor<40xf32>
  %r = linalg.add ins(%x, %c : tensor<40xf32>, tensor<40xf32>)
    outs(%e : tensor<40xf32>) -> tensor<40xf32>
  return %r""",
    )
    compiled = alcop_mlir.compile(text.replace("@f()", "@f(%x: tensor<40xf32>)"))
    assert compiled.function.reference is not None
    assert len(compiled.function.constants) == 1
    x = np.ones(40, "f4")
    np.testing.assert_array_equal(compiled(x), x + weights)
