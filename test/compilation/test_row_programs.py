"""Programs of ops on rows, as frontends export them: how many kernels, and right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir import diagnostics
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program

Array = np.ndarray
# When stores are seen by others, and in which order warps run.
MODES = {"late": ("late", "lockstep"), "early": ("early", "random")}

_ALL = "affine_map<(m, n) -> (m, n)>"
_ROW = "affine_map<(m, n) -> (m)>"


def _centred(source: str, target: str) -> str:
    """Each row of %source without its sum, which starts from %f."""
    return f"""
  %sum{target} = linalg.reduce {{ arith.addf }} ins(%{source} : tensor<6x96xf32>)
    outs(%f : tensor<6xf32>) dimensions = [1]
  %{target} = linalg.generic {{indexing_maps = [{_ALL}, {_ROW}, {_ALL}],
    iterator_types = ["parallel", "parallel"]}}
    ins(%{source}, %sum{target} : tensor<6x96xf32>, tensor<6xf32>)
    outs(%e : tensor<6x96xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }} -> tensor<6x96xf32>"""


def _run(text: str, mode: str, *arrays: Array) -> int:
    """Compile and run a function in a mode; returns the number of its kernels."""
    with diagnostics.collect():
        options = compiler.Options(use_ptxas=False)
        bundle = compiler.compile_source(inputs.read(text), options)
    visibility, schedule = MODES[mode]
    emulated = Emulation(EmulatorOptions(visibility=visibility, schedule=schedule))
    Program(bundle, device="emulator", emulation=emulated)(*arrays)
    return len(bundle.functions[0].kernels)


@pytest.mark.parametrize("mode", MODES)
def test_what_combines_two_statistics_is_one_kernel(mode: str) -> None:
    """As a divergence of two distributions: each is computed of its own rows first."""
    softmax = "linalg.softmax dimension(1) ins(%{0} : {1}) outs(%e : {1}) -> {1}"
    kind = "tensor<6x96xf32>"
    text = f"""
func.func @f(%x: {kind}, %y: {kind}) -> tensor<6xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {kind}
  %p = {softmax.format("x", kind)}
  %q = {softmax.format("y", kind)}
  %d = linalg.generic {{indexing_maps = [{_ALL}, {_ALL}, {_ALL}],
    iterator_types = ["parallel", "parallel"]}}
    ins(%p, %q : {kind}, {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    %1 = math.log %0 : f32
    %2 = arith.mulf %a, %1 : f32
    linalg.yield %2 : f32
  }} -> {kind}
  %g = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<6xf32>) -> tensor<6xf32>
  %s = linalg.reduce {{ arith.addf }} ins(%d : {kind}) outs(%f : tensor<6xf32>)
    dimensions = [1]
  return %s : tensor<6xf32>
}}"""
    x, y = np.random.default_rng(0).uniform(-2, 2, (2, 6, 96)).astype("f4")
    found = np.zeros(6, "f4")
    assert _run(text, mode, x, y, found) == 1
    p, q = (np.exp(one) / np.exp(one).sum(1, keepdims=True) for one in (x, y))
    np.testing.assert_allclose(found, (p * np.log(p / q)).sum(1), rtol=1e-4)


def test_reductions_that_start_from_one_fill_are_apart() -> None:
    """Rows, then columns, then rows: one fill is no buffer with two lives."""
    program = alcop_mlir.compile(
        f"""
func.func @f(%x: tensor<6x96xf32>, %p: tensor<96x96xf32>) -> tensor<6x96xf32> {{
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<6xf32>) -> tensor<6xf32>
  %e = tensor.empty() : tensor<6x96xf32>
  {_centred("x", "y")}
  %h = linalg.fill ins(%zero : f32) outs(%e : tensor<6x96xf32>) -> tensor<6x96xf32>
  %z = linalg.matmul ins(%y, %p : tensor<6x96xf32>, tensor<96x96xf32>)
    outs(%h : tensor<6x96xf32>) -> tensor<6x96xf32>
  {_centred("z", "w")}
  return %w : tensor<6x96xf32>
}}""",
        device="emulator",
    )
    assert len(program.function.kernels) == 3
    values = np.random.default_rng(0)
    x = values.uniform(-1, 1, (6, 96)).astype("f4")
    p = values.uniform(-0.1, 0.1, (96, 96)).astype("f4")
    y = x - x.sum(1, keepdims=True)
    z = y @ p
    result = np.zeros_like(x)
    program(x, p, result)
    np.testing.assert_allclose(result, z - z.sum(1, keepdims=True), atol=1e-3)


def _largest(
    rows: int | str, columns: int | str, kind: str, how: str, beats: str
) -> str:
    """The largest or smallest element of each row, and its column, as of torch.max."""
    every, row, place = (
        f"tensor<{rows}x{columns}x{kind}>",
        f"tensor<{rows}x{kind}>",
        f"tensor<{rows}xi64>",
    )
    size = "%m" if rows == "?" else ""
    start = "0x" + ("F" if how[:3] == "max" else "7")
    start += "F800000" if kind == "f32" else "C00"
    return f"""
func.func @f(%x: {every}) -> ({row}, {place}) {{
  %start = arith.constant {start} : {kind}
  %zero = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : {every}
  %d = tensor.empty({size}) : {row}
  %e = tensor.empty({size}) : {place}
  %a = linalg.fill ins(%start : {kind}) outs(%d : {row}) -> {row}
  %b = linalg.fill ins(%zero : i64) outs(%e : {place}) -> {place}
  %r:2 = linalg.generic {{indexing_maps = [{_ALL}, {_ROW}, {_ROW}],
    iterator_types = ["parallel", "reduction"]}}
    ins(%x : {every}) outs(%a, %b : {row}, {place}) {{
  ^bb0(%in: {kind}, %most: {kind}, %n: i64):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i64
    %more = arith.{how} %in, %most : {kind}
    %is = arith.cmpf {beats}, %in, %most : {kind}
    %k = arith.select %is, %j, %n : i64
    linalg.yield %more, %k : {kind}, i64
  }} -> ({row}, {place})
  return %r#0, %r#1 : {row}, {place}
}}"""


def _folded(x: Array, how: str, beats: str) -> tuple[Array, Array]:
    """The same, element by element."""
    largest = how[:3] == "max"
    best = np.full(len(x), -np.inf if largest else np.inf, x.dtype)
    place = np.zeros(len(x), "i8")
    compare = {
        "ogt": np.greater,
        "oge": np.greater_equal,
        "olt": np.less,
        "ole": np.less_equal,
    }[beats]
    for column in range(x.shape[1]):
        term = x[:, column]
        place = np.where(compare(term, best), column, place)
        best = (np.maximum if largest else np.minimum)(term, best)
    return best, place


@pytest.mark.parametrize(
    ("columns", "kind", "how", "beats", "is_open"),
    [
        (5, "f32", "maximumf", "ogt", False),
        (100, "f16", "maximumf", "oge", False),
        (3000, "f16", "minimumf", "olt", False),
        (3000, "f32", "minimumf", "ole", True),
        (0, "f32", "maximumf", "oge", True),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_largest_elements(
    columns: int, kind: str, how: str, beats: str, is_open: bool, mode: str
) -> None:
    """Of equal ones the first or the last, of rows with a NaN as their order has it."""
    sizes = ("?", "?") if is_open else (8, columns)
    text = _largest(*sizes, kind, how, beats)
    x = np.random.default_rng(0).integers(-9, 9, (8, columns))
    x = x.astype("f4" if kind == "f32" else "f2")
    if columns:
        x[1] = -np.inf
        x[2, columns // 2] = np.nan
        x[3] = np.nan
        x[4, -1] = np.inf
        x[5, 0] = np.nan
        x[6, ::2] = -0.0
        x[6, 1::2] = 0.0
    best, place = np.zeros(8, x.dtype), np.zeros(8, "i8")
    assert _run(text, mode, x, best, place) == 1
    expected = _folded(x, how, beats)
    np.testing.assert_array_equal(best, expected[0])
    np.testing.assert_array_equal(place, expected[1])


def _softmax(shape: Sequence[int | str], dimension: int) -> str:
    kind = f"tensor<{'x'.join(map(str, shape))}xf32>"
    sizes = "%m, %n" if "?" in shape else ""
    return f"""
func.func @f(%x: {kind}) -> {kind} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : {kind}
  %n = tensor.dim %x, %c1 : {kind}
  %e = tensor.empty({sizes}) : {kind}
  %y = linalg.softmax dimension({dimension})
    ins(%x : {kind}) outs(%e : {kind}) -> {kind}
  return %y : {kind}
}}"""


@pytest.mark.parametrize(
    ("shape", "dimension", "is_open"),
    [
        ((3, 17000), 1, False),  # in parts
        ((7, 513), 1, True),
        ((7, 1), 1, True),
        ((7, 0), 1, True),
        ((6, 3, 40), 1, False),  # a thread for each row
        ((2, 300, 33), 1, False),  # several for each
        ((70, 40), 0, True),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_softmax_of_any_rows(
    shape: tuple[int, ...], dimension: int, is_open: bool, mode: str
) -> None:
    """One kernel, and rows that are not finite as of NumPy, element by element."""
    x = np.random.default_rng(0).uniform(-3, 3, shape).astype("f4")
    rows = np.moveaxis(x, dimension, -1)
    if x.size > 2 * shape[dimension]:
        rows[..., 1, :] = -np.inf
        rows[..., 2, 0] = np.nan
        rows[..., 0, -1] = np.inf
    if rows.shape[-2] > 5:
        rows[..., 4, :] *= 1e30
        rows[..., 5, ::2] = -np.inf
    result = np.zeros_like(x)
    kind = ["?"] * 2 if is_open else shape
    assert _run(_softmax(kind, dimension), mode, x, result) == 1
    if not x.size:
        return
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        powers = np.exp(wide - wide.max(axis=dimension, keepdims=True))
        expected = powers / powers.sum(axis=dimension, keepdims=True)
    np.testing.assert_allclose(result, expected, rtol=2.0**-17, atol=2.0**-24)
