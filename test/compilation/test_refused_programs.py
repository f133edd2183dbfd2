"""Programs that cannot be compiled: one error, at the op, that says what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

import alcop_mlir
from alcop_mlir.compilation import inputs
from alcop_mlir.errors import CompileError, ConfigError
from alcop_mlir.tools import opt

CAST = """
func.func @f(%x: memref<*xf16>, %y: memref<4xf16>) {
  %c = memref.cast %x : memref<*xf16> to memref<4xf16>
  linalg.exp ins(%c : memref<4xf16>) outs(%y : memref<4xf16>)
  return
}"""
INSIDE = """
func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> {
  %c = tensor.cast %x : tensor<4xf16> to tensor<*xf16>
  %d = tensor.cast %c : tensor<*xf16> to tensor<4xf16>
  return %d : tensor<4xf16>
}"""


def elementwise(element: str, body: str) -> str:
    """A function of a tensor of four; line 5 is the first of the body."""
    tensor, each = f"tensor<4x{element}>", "affine_map<(i) -> (i)>"
    maps = f'indexing_maps = [{each}, {each}], iterator_types = ["parallel"]'
    return f"""func.func @f(%x: {tensor}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{{maps}}} ins(%x : {tensor}) outs(%e : {tensor}) {{
  ^bb0(%a: {element}, %old: {element}):
    {body}
    linalg.yield %s : {element}
  }} -> {tensor}
  return %r : {tensor}
}}"""


COMPLEX = elementwise("complex<f32>", "%s = complex.mul %a, %a : complex<f32>")
MODULUS = (
    "%z = complex.create %a, %a : complex<f32>\n%s = complex.abs %z : complex<f32>"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CAST, r"-:2:1: 'func.func' has memref<\*xf16>, expected a known rank"),
        (INSIDE, r"-:3:8: 'tensor.cast' has tensor<\*xf16>, expected a known rank"),
        (COMPLEX, r"-:3:8: .* has complex<f32> elements, expected one of f16, bf16"),
        (elementwise("f32", MODULUS), r"-:6:\d+: .*'complex.abs' is left after all"),
        (
            elementwise("f64", "%s = math.sin %a : f64"),
            r"-:5:10: .* needs '__nv_sin' of CUDA's libdevice, which is not linked: "
            "compute it in f32",
        ),
    ],
    ids=["dynamic rank", "cast", "complex", "complex inside", "f64"],
)
def test_at_the_op(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        alcop_mlir.compile(text)


SCAN = """
  %r = tm_tensor.scan dimension(0) inclusive(true) ins(%x : tensor<4xf32>)
    outs(%x : tensor<4xf32>) { } -> tensor<4xf32>"""
SORT = """
  %r = "tm_tensor.sort"(%x) : (tensor<4xf32>) -> tensor<4xf32>"""
TANH = """
  %r = "made.up"(%x) : (tensor<4xf32>) -> !torch.vtensor<[4],f32>"""


@pytest.mark.parametrize(
    ("line", "name"),
    [(SCAN, "tm_tensor.scan"), (SORT, "tm_tensor.sort"), (TANH, "made.up")],
)
def test_ops_of_unknown_dialects(line: str, name: str) -> None:
    text = f"func.func @f(%x: tensor<4xf32>) {{ {line} \n  return\n}}"
    place = rf"-:2:\d+: '{name}' is in no dialect that is known: expected linalg"
    with pytest.raises(ConfigError, match=place):
        inputs.read(text)


def test_types_of_unknown_dialects() -> None:
    with pytest.raises(ConfigError, match=r"-:1:\d+: '!torch<vtensor.*' is in no dial"):
        inputs.read("func.func @f(%x: !torch.vtensor<[4],f32>) { return }")


def test_other_mistakes_are_the_parsers_words() -> None:
    with pytest.raises(ConfigError, match="-:1:14: expected non-function type"):
        inputs.read("func.func @f(1) {}")


def test_passes_alone_say_what_they_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those that look at a program around each pass."""
    file = tmp_path / "rank.mlir"
    file.write_text(CAST)
    assert opt.main([str(file), "--alcop-compile"]) == 1
    assert "uses a value of type memref<*xf16>" in capsys.readouterr().err
