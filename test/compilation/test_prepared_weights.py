"""What depends on weights alone: computed once, the same bits, refused where wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.errors import ConfigError, LaunchError
from alcop_mlir.runtime import bundle
from alcop_mlir.runtime.launch import Program

# A convolution, scaled and shifted by what is computed of two vectors per channel.
TEXT = """
#each = affine_map<(n, c, y, x) -> (n, c, y, x)>
#channel = affine_map<(n, c, y, x) -> (c)>
#one = affine_map<(c) -> (c)>
func.func @f(%w: tensor<16x16x3x3xf16> MARK, %v: tensor<16xf16> MARK,
    %m: tensor<16xf16> MARK, %x: tensor<1x16x6x6xf16>) -> tensor<1x16x4x4xf16> {
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<1x16x4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<1x16x4x4xf32>)
    -> tensor<1x16x4x4xf32>
  %y = linalg.conv_2d_nchw_fchw
    ins(%x, %w : tensor<1x16x6x6xf16>, tensor<16x16x3x3xf16>)
    outs(%f : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
  %e = tensor.empty() : tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
    ins(%v : tensor<16xf16>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f16, %o: f32):
    %0 = arith.extf %a : f16 to f32
    %1 = math.rsqrt %0 : f32
    linalg.yield %1 : f32
  } -> tensor<16xf32>
  %g = tensor.empty() : tensor<1x16x4x4xf16>
  %r = linalg.generic {indexing_maps = [#each, #channel, #channel, #each],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%y, %s, %m : tensor<1x16x4x4xf32>, tensor<16xf32>, tensor<16xf16>)
    outs(%g : tensor<1x16x4x4xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16, %o: f16):
    %0 = arith.extf %c : f16 to f32
    %1 = arith.subf %a, %0 : f32
    %2 = arith.mulf %1, %b : f32
    %3 = arith.truncf %2 : f32 to f16
    linalg.yield %3 : f16
  } -> tensor<1x16x4x4xf16>
  return %r : tensor<1x16x4x4xf16>
}"""
SHAPES = {"w": (16, 16, 3, 3), "v": (16,), "m": (16,), "x": (1, 16, 6, 6)}


def arrays(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    return {
        name: draw.uniform(0.1, 1, shape).astype(np.float16)
        for name, shape in SHAPES.items()
    }


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Stored and loaded: a bundle says all that is needed."""
    path = tmp_path_factory.mktemp("stored") / "f.zip"
    made = alcop_mlir.compile(TEXT.replace("MARK", "{alcop.weight}"))
    bundle.save(made.bundle, path)
    return alcop_mlir.load(path)


def test_the_same_bits(program: Program) -> None:
    plain = alcop_mlir.compile(TEXT.replace("MARK", ""))
    first, second = arrays(0), arrays(1)
    wanted = plain(**first)
    prepared = program.prepare(**{name: first[name] for name in "wvm"})
    assert np.array_equal(program(**first), wanted)
    assert np.array_equal(program(**first, prepared=prepared), wanted)
    mixed = {**second, "x": first["x"]}
    assert np.array_equal(program(**mixed), plain(**mixed))
    assert plain.prepare() == ()
    # The convolution, and copies of its image and output; else of the filter, too, and
    # one on a vector.
    assert [len(one.function.launches) for one in (program, plain)] == [3, 5]


def test_what_does_not_fit_is_refused(program: Program) -> None:
    given = arrays(0)
    scale = np.zeros(16, np.float32)
    with pytest.raises(LaunchError, match="'f' got 1 prepared arrays, expected the 2"):
        program(**given, prepared=[scale])
    with pytest.raises(LaunchError, match=r"'prepared[01]' has shape .*, expected "):
        program(**given, prepared=[scale[:8], scale[:8]])
    with pytest.raises(LaunchError, match="'f' got 2 arrays, expected "):
        program.prepare(w=given["w"], x=given["x"])
    with pytest.raises(LaunchError, match="'f' has no argument 'u'"):
        program.prepare(u=given["w"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": ("none",)}, 'unknown weight "none"'),
        ({"weights": ("arg0",)}, '"f_prepare" does not make of its weights what it'),
        ({"arrays": ()}, 'unknown array "prepared[01]"|"f_prepare" does not make'),
        ({"function": "g"}, 'unknown function "g" prepares its weights'),
    ],
)
def test_functions_of_a_bundle_fit_together(
    program: Program, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    prepare = program.function.prepare
    assert prepare is not None
    assert (prepare.function, len(prepare.arrays)) == ("f_prepare", 2)
    wrong = replace(program.function, prepare=replace(prepare, **change))
    functions = (wrong, program.bundle.function("f_prepare"))
    with pytest.raises(ConfigError, match=message):
        bundle.save(replace(program.bundle, functions=functions), tmp_path / "f.zip")
