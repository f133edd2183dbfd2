"""Rows of tables that a contraction reads where they are, against NumPy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "embedding_f16.mlir"


def text(shape: tuple[int, ...], index: str) -> str:
    """Rows of a table, named by a tensor of indices, times a matrix."""
    rank, count = len(shape), math.prod(shape)
    sizes, loops = "x".join(map(str, shape)), ", ".join(f"i{n}" for n in range(rank))
    table, w = "tensor<50x48xf16>", "tensor<48x24xf16>"
    rows, a, y = (
        f"tensor<{one}>"
        for one in (f"{sizes}x48xf16", f"{count}x48xf16", f"{count}x24xf32")
    )
    row = "%n" if index == "index" else "%r"
    cast = "" if index == "index" else f"%r = arith.index_cast %n : {index} to index"
    parallel = ", ".join(['"parallel"'] * (rank + 1))
    groups = f"[[{', '.join(map(str, range(rank)))}], [{rank}]]"
    collapse = f"%a = tensor.collapse_shape %rows {groups} : {rows} into {a}"
    return f"""
      func.func @f(%t: {table}, %i: tensor<{sizes}x{index}>, %w: {w}) -> {y} {{
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : {rows}
        %rows = linalg.generic {{
          indexing_maps = [affine_map<({loops}, k) -> ({loops})>,
                           affine_map<({loops}, k) -> ({loops}, k)>],
          iterator_types = [{parallel}]}}
          ins(%i : tensor<{sizes}x{index}>) outs(%e : {rows}) {{
        ^bb0(%n: {index}, %o: f16):
          %k = linalg.index {rank} : index
          {cast}
          %v = tensor.extract %t[{row}, %k] : {table}
          linalg.yield %v : f16
        }} -> {rows}
        {collapse if rank > 1 else ""}
        %g = tensor.empty() : {y}
        %f = linalg.fill ins(%zero : f32) outs(%g : {y}) -> {y}
        %y = linalg.matmul ins(%{"a" if rank > 1 else "rows"}, %w : {a}, {w})
          outs(%f : {y}) -> {y}
        return %y : {y}
      }}"""


@pytest.mark.parametrize(("shape", "index"), [((37,), "i32"), ((3, 11), "i64")])
def test_rows_of_a_table(shape: tuple[int, ...], index: str) -> None:
    """One kernel, which reads what the indices name, and nothing else of the table."""
    program = alcop_mlir.compile(text(shape, index), device="emulator")
    (kernel,) = program.function.kernels
    assert kernel.schedule is not None
    random = np.random.default_rng(0)
    table = random.integers(-3, 4, (50, 48)).astype(np.float16)
    w = random.integers(-3, 4, (48, 24)).astype(np.float16)
    numbers = random.integers(0, 25, shape).astype(f"int{index[1:]}") * 2
    table[1::2] = np.nan
    found = program(table, numbers, w)
    expected = table[numbers.ravel()].astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    assert_checked(program)


def wrapped(shape: tuple[int, ...]) -> str:
    """Numbers below zero count from the end."""
    given = text(shape, "i64")
    return given.replace(
        "%r = arith.index_cast %n : i64 to index",
        """%c0 = arith.constant 0 : i64
           %c50 = arith.constant 50 : i64
           %less = arith.cmpi slt, %n, %c0 : i64
           %more = arith.addi %n, %c50 : i64
           %row = arith.select %less, %more, %n : i64
           %r = arith.index_cast %row : i64 to index""",
    )


@pytest.mark.parametrize("shape", [(37,), (3, 11)])
def test_numbers_of_rows_that_are_computed(shape: tuple[int, ...]) -> None:
    """A kernel computes them, another reads the rows where the table has them."""
    program = alcop_mlir.compile(wrapped(shape), device="emulator")
    first, second = program.function.kernels
    assert first.schedule is None
    assert second.schedule is not None
    assert "arg0" in second.arrays
    random = np.random.default_rng(0)
    table = random.integers(-3, 4, (50, 48)).astype(np.float16)
    w = random.integers(-3, 4, (48, 24)).astype(np.float16)
    numbers = random.integers(-50, 50, shape)
    expected = table[numbers.ravel()].astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_array_equal(program(table, numbers, w), expected)
    before = checking.random_arrays(program.function)
    assert before["arg1"].min() < 0
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(program.function, before, after).ok


# What a batch reads, by the shapes of table and indices: rows of one table, rows of a
# table for each matrix, and whole matrices, as those of experts.
BATCHES = {
    "rows": ((50, 48), (3, 21), "b, i", "%v, %k"),
    "tables": ((3, 50, 48), (3, 21), "b, i", "%b, %v, %k"),
    "matrices": ((50, 21, 48), (3,), "b", "%v, %r, %k"),
}


def batched(form: str, is_open: bool) -> str:
    """A batch of rows times a batch of matrices; `is_open`: its size is not known."""
    table, indices, loops, places = BATCHES[form]
    count = "?" if is_open else "3"
    t, i = (
        f"tensor<{'x'.join(map(str, shape))}x{kind}>"
        for shape, kind in ((table, "f16"), ((count, *indices[1:]), "i64"))
    )
    a, w, y = (
        f"tensor<{count}x{one}>" for one in ("21x48xf16", "48x24xf16", "21x24xf32")
    )
    size = "%d" if is_open else ""
    return f"""
      func.func @f(%t: {t}, %i: {i}, %w: {w}) -> {y} {{
        %zero = arith.constant 0.0 : f32
        %c0 = arith.constant 0 : index
        %d = tensor.dim %i, %c0 : {i}
        %e = tensor.empty({size}) : {a}
        %a = linalg.generic {{
          indexing_maps = [affine_map<(b, i, k) -> ({loops})>,
                           affine_map<(b, i, k) -> (b, i, k)>],
          iterator_types = ["parallel", "parallel", "parallel"]}}
          ins(%i : {i}) outs(%e : {a}) {{
        ^bb0(%n: i64, %o: f16):
          %b = linalg.index 0 : index
          %r = linalg.index 1 : index
          %k = linalg.index 2 : index
          %v = arith.index_cast %n : i64 to index
          %x = tensor.extract %t[{places}] : {t}
          linalg.yield %x : f16
        }} -> {a}
        %g = tensor.empty({size}) : {y}
        %f = linalg.fill ins(%zero : f32) outs(%g : {y}) -> {y}
        %y = linalg.batch_matmul ins(%a, %w : {a}, {w}) outs(%f : {y}) -> {y}
        return %y : {y}
      }}"""


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("form", BATCHES)
def test_a_batch(form: str, is_open: bool) -> None:
    """One kernel, which reads what the indices name, and nothing else of the table."""
    given = batched(form, is_open)
    program = alcop_mlir.compile(given, device="emulator", variants=1)
    (kernel,) = program.function.kernels
    assert kernel.schedule is not None
    random = np.random.default_rng(0)
    shape, indices, *_ = BATCHES[form]
    table = random.integers(-3, 4, shape).astype(np.float16)
    w = random.integers(-3, 4, (3, 48, 24)).astype(np.float16)
    numbers = random.integers(0, 25, indices) * 2
    every = np.moveaxis(table, 1 if form == "tables" else 0, 0)
    every[1::2] = np.nan
    a = [
        table[n, one] if form == "tables" else table[one]
        for n, one in enumerate(numbers)
    ]
    expected = np.stack(a).astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_array_equal(program(table, numbers, w), expected)
    if not is_open:
        assert_checked(program)


def test_a_contraction_that_reads_the_table_itself() -> None:
    """Of an expert for each of a batch, in its body: one kernel, on tensor cores."""
    program = alcop_mlir.compile(
        """
      func.func @f(%t: tensor<50x48x24xf16>, %i: tensor<3xi64>,
                   %x: tensor<3x21x48xf16>) -> tensor<3x21x24xf32> {
        %zero = arith.constant 0.0 : f32
        %e = tensor.empty() : tensor<3x21x24xf32>
        %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x21x24xf32>)
          -> tensor<3x21x24xf32>
        %y = linalg.generic {
          indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
                           affine_map<(b, m, n, k) -> (b)>,
                           affine_map<(b, m, n, k) -> (b, m, n)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %i : tensor<3x21x48xf16>, tensor<3xi64>)
          outs(%f : tensor<3x21x24xf32>) {
        ^bb0(%a: f16, %n: i64, %o: f32):
          %c = linalg.index 2 : index
          %k = linalg.index 3 : index
          %r = arith.index_cast %n : i64 to index
          %b = tensor.extract %t[%r, %k, %c] : tensor<50x48x24xf16>
          %0 = arith.extf %a : f16 to f32
          %1 = arith.extf %b : f16 to f32
          %2 = arith.mulf %0, %1 : f32
          %3 = arith.addf %o, %2 : f32
          linalg.yield %3 : f32
        } -> tensor<3x21x24xf32>
        return %y : tensor<3x21x24xf32>
      }""",
        device="emulator",
    )
    (kernel,) = program.function.kernels
    assert kernel.schedule is not None
    random = np.random.default_rng(0)
    table = random.integers(-3, 4, (50, 48, 24)).astype(np.float16)
    x = random.integers(-3, 4, (3, 21, 48)).astype(np.float16)
    numbers = random.integers(0, 50, 3)
    expected = x.astype(np.float32) @ table[numbers].astype(np.float32)
    np.testing.assert_array_equal(program(table, numbers, x), expected)
    assert_checked(program)


def test_numbers_are_not_computed_for_others() -> None:
    """Of f32, unless tf32 is allowed, no contraction reads a table: rows are copied."""
    for shape in ((37,), (3, 11)):
        given = wrapped(shape).replace("f16", "f32")
        program = alcop_mlir.compile(given, device="emulator")
        first, second = program.function.kernels
        assert "result" not in first.arrays
        assert "arg0" not in second.arrays


def test_numbers_that_differ_along_a_row() -> None:
    """Are those of elements, not of rows."""
    given = text((37,), "i64").replace(
        "%r = arith.index_cast %n : i64 to index",
        """%column = arith.index_cast %k : index to i64
           %row = arith.addi %n, %column : i64
           %r = arith.index_cast %row : i64 to index""",
    )
    program = alcop_mlir.compile(given, device="emulator")
    random = np.random.default_rng(0)
    table = random.integers(-3, 4, (50, 48)).astype(np.float16)
    w = random.integers(-3, 4, (48, 24)).astype(np.float16)
    numbers = random.integers(0, 2, 37)
    columns = np.arange(48)
    rows = table[numbers[:, None] + columns, columns].astype(np.float32)
    expected = rows @ w.astype(np.float32)
    np.testing.assert_array_equal(program(table, numbers, w), expected)


def test_the_example() -> None:
    """One kernel, on indices of 64 bits that the table has."""
    program = alcop_mlir.compile(EXAMPLE.read_text(), device="emulator")
    (kernel,) = program.function.kernels
    assert kernel.schedule is not None
    assert_checked(program, 1000)


def assert_checked(program: Program, rows: int = 50) -> None:
    """With indices that the runner draws; rows that are not read are not known."""
    function = program.function
    before = checking.random_arrays(function)
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(function, before, after).ok
    shifted = before | {"arg1": (before["arg1"] + 1) % rows}
    assert not checking.check(function, shifted, after).ok


def test_gathers_of_all_forms() -> None:
    """Of columns, of elements, with a dimension of size 1, of one row, of open size."""
    table, i = "tensor<50x48xf16>", "tensor<37x1xi32>"
    two, one, long = "tensor<37x2xi32>", "tensor<1xi32>", "tensor<?x1xi64>"
    forms = [
        ("%i", "1", i, "tensor<37x50xf16>"),
        ("%two", "0, 1", two, "tensor<37xf16>"),
        ("%i", "0", i, "tensor<37x1x48xf16>"),
        ("%one", "0", one, "tensor<48xf16>"),
        ("%long", "0", long, "tensor<?x48xf16>"),
    ]
    ops = "".join(
        f"%{n} = tensor.gather %t[{name}] gather_dims([{along}])"
        f" : ({table}, {given}) -> {result}\n"
        for n, (name, along, given, result) in enumerate(forms)
    )
    results = ", ".join(result for *_, result in forms)
    program = alcop_mlir.compile(
        f"""
      func.func @f(%t: {table}, %i: {i}, %two: {two}, %one: {one}, %long: {long})
          -> ({results}) {{
        {ops}
        return %0, %1, %2, %3, %4 : {results}
      }}""",
        device="emulator",
    )
    random = np.random.default_rng(0)
    t = random.integers(-3, 4, (50, 48)).astype(np.float16)
    indices, single = (random.integers(0, 48, (n, 1), np.int32) for n in (37, 1))
    pairs, many = random.integers(0, 48, (37, 2), np.int32), indices.astype(np.int64)
    found = program(t, indices, pairs, single[0], many)
    rows = t[indices[:, 0]]
    expected = [t[:, indices[:, 0]].T, t[pairs[:, 0], pairs[:, 1]], rows[:, None]]
    for got, right in zip(found, [*expected, t[single[0, 0]], rows], strict=True):
        np.testing.assert_array_equal(got, right)
    assert program.function.reference


def test_tensor_gather() -> None:
    """Which bufferization does not know."""
    program = alcop_mlir.compile(
        """
      func.func @f(%t: tensor<50x48xf16>, %i: tensor<37x1xi32>, %w: tensor<48x24xf16>)
          -> tensor<37x24xf32> {
        %zero = arith.constant 0.0 : f32
        %rows = tensor.gather %t[%i] gather_dims([0])
          : (tensor<50x48xf16>, tensor<37x1xi32>) -> tensor<37x48xf16>
        %e = tensor.empty() : tensor<37x24xf32>
        %f = linalg.fill ins(%zero : f32) outs(%e : tensor<37x24xf32>)
          -> tensor<37x24xf32>
        %y = linalg.matmul ins(%rows, %w : tensor<37x48xf16>, tensor<48x24xf16>)
          outs(%f : tensor<37x24xf32>) -> tensor<37x24xf32>
        return %y : tensor<37x24xf32>
      }""",
        device="emulator",
    )
    (kernel,) = program.function.kernels
    assert kernel.schedule is not None
    random = np.random.default_rng(0)
    table = random.integers(-3, 4, (50, 48)).astype(np.float16)
    w = random.integers(-3, 4, (48, 24)).astype(np.float16)
    numbers = random.integers(0, 50, (37, 1)).astype(np.int32)
    expected = table[numbers[:, 0]].astype(np.float32) @ w.astype(np.float32)
    np.testing.assert_array_equal(program(table, numbers, w), expected)
    assert_checked(program)
