"""Functions with constant arrays: stored as bytes beside small kernels, and checked.

The expected numbers are computed here, in float64 NumPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import bundle as bundles
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.constants import reference_constants
from alcop_mlir.runtime.launch import Program

Array = np.ndarray[Any, Any]
GENERATOR = np.random.default_rng(3)


def build(text: str) -> Bundle:
    options = compiler.Options(use_ptxas=False)
    return compiler.compile_source(inputs.read_text(text.encode()), options)


def dense(array: Array, dtype: str) -> str:
    """The array as MLIR writes large ones."""
    shape = "x".join(map(str, (*array.shape, dtype)))
    return f'dense<"0x{array.tobytes().hex().upper()}"> : tensor<{shape}>'


def matmul(name: str, constant: str, k: int, n: int) -> str:
    return f"""
      func.func @{name}(%a: tensor<32x{k}xf16>) -> tensor<32x{n}xf32> {{
        %w = arith.constant {constant}
        %z = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<32x{n}xf32>
        %f = linalg.fill ins(%z : f32) outs(%e : tensor<32x{n}xf32>)
          -> tensor<32x{n}xf32>
        %r = linalg.matmul ins(%a, %w : tensor<32x{k}xf16>, tensor<{k}x{n}xf16>)
          outs(%f : tensor<32x{n}xf32>) -> tensor<32x{n}xf32>
        return %r : tensor<32x{n}xf32>
      }}"""


def weights(k: int, n: int) -> Array:
    return GENERATOR.uniform(-1, 1, (k, n)).astype(np.float16)


def is_right(bundle: Bundle, name: str | None = None) -> bool:
    """Whether a call gives what the stored reference does."""
    program = Program(bundle, name, device="emulator")
    before = checking.random_arrays(program.function)
    after = {one: array.copy() for one, array in before.items()}
    program(**after)
    read = reference_constants(bundle, program.function)
    return checking.check(program.function, before, after, read).ok


def test_a_constant_of_a_megabyte_is_stored_once(tmp_path: Path) -> None:
    """By two functions of the file; the PTX of their kernels does not hold it."""
    w = weights(1024, 512)
    text = dense(w, "f16")
    made = build(matmul("f", text, 1024, 512) + matmul("g", text, 1024, 512))
    assert all(len(code.ptx) < 50_000 for code in made.code.values())
    assert list(made.data.values()) == [w.tobytes()]
    a = GENERATOR.uniform(-1, 1, (32, 1024)).astype(np.float16)
    expected = a.astype(np.float64) @ w
    for name in ("out", "out.zip"):
        bundles.save(made, tmp_path / name)
        loaded = bundles.load(tmp_path / name)
        assert list(loaded.data.values()) == [w.tobytes()]
        for function in ("f", "g"):
            got = Program(loaded, function, device="emulator")(a)
            assert np.allclose(got, expected, atol=1e-3)
            assert is_right(loaded, function)
    stored = sum(one.stat().st_size for one in (tmp_path / "out").iterdir())
    assert stored < w.nbytes + 120_000
    assert (tmp_path / "out.zip").stat().st_size < w.nbytes + 120_000


def test_the_check_sees_another_constant() -> None:
    """The reference reads the elements, not only the shape."""
    made = build(matmul("f", dense(weights(64, 32), "f16"), 64, 32))
    assert is_right(made)
    (file,) = made.data
    function = made.function()
    program = Program(made, device="emulator")
    before = checking.random_arrays(function)
    after = {one: array.copy() for one, array in before.items()}
    program(**after)
    (name,) = reference_constants(made, function)
    others = {name: weights(64, 32)}
    assert file == function.constants[0].file
    assert not checking.check(function, before, after, others).ok
    with pytest.raises(LaunchError, match=f"the reference of 'f' reads {name} too"):
        checking.check(function, before, after)


@pytest.mark.parametrize("dtype", ["f32", "i8", "i32", "bf16"])
def test_element_types(dtype: str) -> None:
    """Also bf16, whose bytes NumPy does not have; the shape may be any."""
    kind = {"f32": "f4", "i8": "i1", "i32": "i4", "bf16": "u2"}[dtype]
    values = GENERATOR.integers(-100, 100, (7, 31)).astype(kind)
    if dtype == "bf16":
        values = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    add = "arith.addi" if dtype.startswith("i") else "arith.addf"
    tensor = f"tensor<7x31x{dtype}>"
    made = build(f"""
      #id = affine_map<(i, j) -> (i, j)>
      func.func @f(%a: {tensor}) -> {tensor} {{
        %w = arith.constant {dense(values, dtype)}
        %e = tensor.empty() : {tensor}
        %r = linalg.generic {{indexing_maps = [#id, #id, #id],
            iterator_types = ["parallel", "parallel"]}}
            ins(%a, %w : {tensor}, {tensor}) outs(%e : {tensor}) {{
        ^bb0(%x: {dtype}, %y: {dtype}, %o: {dtype}):
          %s = {add} %x, %y : {dtype}
          linalg.yield %s : {dtype}
        }} -> {tensor}
        return %r : {tensor}
      }}""")
    assert list(made.data.values()) == [values.tobytes()]
    assert is_right(made)


def test_small_constants_stay_in_the_code() -> None:
    """As many as 64 bytes; what the reference reads of them is stored."""
    values = np.arange(16, dtype=np.float32)
    made = build(f"""
      #id = affine_map<(i) -> (i)>
      func.func @f(%a: tensor<16xf32>) -> tensor<16xf32> {{
        %w = arith.constant {dense(values, "f32")}
        %e = tensor.empty() : tensor<16xf32>
        %r = linalg.generic {{indexing_maps = [#id, #id, #id],
            iterator_types = ["parallel"]}}
            ins(%a, %w : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) {{
        ^bb0(%x: f32, %y: f32, %o: f32):
          %s = arith.mulf %x, %y : f32
          linalg.yield %s : f32
        }} -> tensor<16xf32>
        return %r : tensor<16xf32>
      }}""")
    (kernel,) = made.function().kernels
    assert set(kernel.arrays) == {"arg0", "result"}
    assert list(made.data.values()) == [values.tobytes()]
    assert is_right(made)


def test_a_transposed_constant_is_transposed_at_compile_time() -> None:
    """Of a convolution's filter, too: one kernel, which reads one constant."""
    w = GENERATOR.integers(-3, 4, (16, 3, 3, 32)).astype(np.float16)
    made = build(f"""
      func.func @f(%x: tensor<1x8x8x32xf16>, %y: tensor<1x6x6x16xf32>)
          -> tensor<1x6x6x16xf32> {{
        %w = arith.constant {dense(w, "f16")}
        %e = tensor.empty() : tensor<3x3x32x16xf16>
        %t = linalg.transpose ins(%w : tensor<16x3x3x32xf16>)
          outs(%e : tensor<3x3x32x16xf16>) permutation = [1, 2, 3, 0]
        %r = linalg.conv_2d_nhwc_hwcf
          ins(%x, %t : tensor<1x8x8x32xf16>, tensor<3x3x32x16xf16>)
          outs(%y : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
        return %r : tensor<1x6x6x16xf32>
      }}""")
    (launch,) = made.function().launches
    assert len(launch.variants[0].kernels) == 1
    assert len([one for one in launch.arrays if one.startswith("const")]) == 1
    stored = w.transpose(1, 2, 3, 0).tobytes()
    assert {*made.data.values()} == {w.tobytes(), stored}  # one is the reference's
    assert is_right(made)


def test_few_channels_of_a_constant_filter_have_no_kernel_for_it() -> None:
    w = GENERATOR.integers(-3, 4, (3, 3, 3, 16)).astype(np.float16)
    made = build(f"""
      func.func @f(%x: tensor<1x8x8x3xf16>, %y: tensor<1x6x6x16xf32>)
          -> tensor<1x6x6x16xf32> {{
        %w = arith.constant {dense(w, "f16")}
        %r = linalg.conv_2d_nhwc_hwcf
          ins(%x, %w : tensor<1x8x8x3xf16>, tensor<3x3x3x16xf16>)
          outs(%y : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
        return %r : tensor<1x6x6x16xf32>
      }}""")
    kernels = [one for launch in made.function().launches for one in launch.kernels]
    filled = np.zeros((3, 3, 4, 16), np.float16)
    filled[:, :, :3] = w
    assert filled.tobytes() in made.data.values()
    assert len(kernels) == 2
    assert is_right(made)
