"""Rows and columns of accumulators, distributed to lanes, on the emulator.

Each case is the code between a contraction and the stores of one warp, and what NumPy
makes of the same accumulators. Elements are small whole numbers: additions in any order
are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program

M, N, K = 32, 48, 16
Array = Any

KERNEL = """
#ws = #gpu.address_space<workgroup>
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#column = affine_map<(d) -> (0, d)>
func.func @f(%A: memref<{m}x{k}xf16>, %B: memref<{k}x{n}xf16>, %R: memref<{m}xf32>,
             %L: memref<{n}xf32>, %C: memref<{out}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %h = arith.constant 0.0 : f16
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : vector<{m}x{n}xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {{
    %a = memref.alloc() : memref<{m}x{k}xf16, #ws>
    %b = memref.alloc() : memref<{k}x{n}xf16, #ws>
    memref.copy %A, %a : memref<{m}x{k}xf16> to memref<{m}x{k}xf16, #ws>
    memref.copy %B, %b : memref<{k}x{n}xf16> to memref<{k}x{n}xf16, #ws>
    gpu.barrier
    %fa = vector.transfer_read %a[%c0, %c0], %h {{in_bounds = [true, true]}}
      : memref<{m}x{k}xf16, #ws>, vector<{m}x{k}xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %h {{in_bounds = [true, true]}}
      : memref<{k}x{n}xf16, #ws>, vector<{k}x{n}xf16>
    %s = vector.contract {{indexing_maps = [#mk, #kn, #mn],
      iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>}} %fa, %fb, %zero
      : vector<{m}x{k}xf16>, vector<{k}x{n}xf16> into vector<{m}x{n}xf32>
    {body}
    gpu.terminator
  }}
  return
}}
"""


@dataclass(frozen=True)
class Case:
    """The code of a kernel, and its result of accumulators, a row and a column.

    code: `S`, `R` and `C` are the types of accumulators, rows and columns of f32
    """

    code: str
    result: Callable[[Array, Array, Array], Array]


WRITE = """
    vector.transfer_write %x, %C[%c0, %c0] {in_bounds = [true, true]}
      : S, memref<{m}x{n}xf32>"""
# What the result is, where it is not all of the accumulators.
ROWS, COLUMNS = "  // rows", "  // columns"
WRITE_ROWS = f"""
    vector.transfer_write %x, %C[%c0] {{in_bounds = [true]}} : R, memref<{{m}}xf32>
{ROWS}"""
WRITE_COLUMNS = f"""
    vector.transfer_write %x, %C[%c0] {{in_bounds = [true]}} : C, memref<{{n}}xf32>
{COLUMNS}"""
READ_ROWS = """
    %r = vector.transfer_read %R[%c0], %f {in_bounds = [true]} : memref<{m}xf32>, R"""
READ_COLUMNS = """
    %l = vector.transfer_read %L[%c0], %f {in_bounds = [true]} : memref<{n}xf32>, C"""


def reduced(kind: str, axis: int) -> str:
    """Rows, or columns, that begin with those in memory."""
    start, result, read, write = (
        ("%r", "R", READ_ROWS, WRITE_ROWS)
        if axis
        else ("%l", "C", READ_COLUMNS, WRITE_COLUMNS)
    )
    return f"""{read}
    %x = vector.multi_reduction <{kind}>, %s, {start} [{axis}] : S to {result}{write}"""


def carried_sum(start: str, axis: int) -> Case:
    """A sum that a loop carries, halved each time, from what is in memory."""
    result, read, write = (
        ("R", READ_ROWS, WRITE_ROWS) if axis else ("C", READ_COLUMNS, WRITE_COLUMNS)
    )
    return Case(
        f"""{read}
    %c3 = arith.constant 3 : index
    %half = arith.constant dense<0.5> : {result}
    %x = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = {start}) -> ({result}) {{
      %d = arith.mulf %t, %half : {result}
      %y = vector.multi_reduction <add>, %s, %d [{axis}] : S to {result}
      scf.yield %y : {result}
    }}{write}""",
        lambda s, r, c: s.sum(axis) * 1.75 + (r if axis else c) / 8,
    )


CASES = {
    **{
        f"{kind}-{axis}": Case(
            reduced(kind, axis),
            lambda s, r, c, ufunc=ufunc, axis=axis: ufunc(
                ufunc.reduce(s, axis=axis), r if axis else c
            ),
        )
        for kind, ufunc in (
            ("add", np.add),
            ("maxnumf", np.fmax),
            ("minnumf", np.fmin),
            ("maximumf", np.maximum),
            ("minimumf", np.minimum),
        )
        for axis in (0, 1)
    },
    "mul": Case(
        """
    %one = arith.constant dense<1.0> : S
    %two = arith.constant dense<-2.0> : S
    %start = arith.constant dense<1.0> : R
    %is = arith.cmpf ogt, %s, %zero : S
    %p = arith.select %is, %two, %one : vector<{m}x{n}xi1>, S
    %x = vector.multi_reduction <mul>, %p, %start [1] : S to R"""
        + WRITE_ROWS,
        lambda s, r, c: np.where(s > 0, -2.0, 1.0).prod(1),
    ),
    "integers": Case(
        """
    %i = arith.fptosi %s : S to vector<{m}x{n}xi32>
    %start = arith.constant dense<-3> : vector<{m}xi32>
    %j = vector.multi_reduction <maxsi>, %i, %start [1]
      : vector<{m}x{n}xi32> to vector<{m}xi32>
    %x = arith.sitofp %j : vector<{m}xi32> to R"""
        + WRITE_ROWS,
        lambda s, r, c: np.maximum(s.max(1), -3),
    ),
    "bytes": Case(
        """
    %i = arith.fptosi %s : S to vector<{m}x{n}xi8>
    %start = arith.constant dense<0> : vector<{m}xi8>
    %j = vector.multi_reduction <xor>, %i, %start [1]
      : vector<{m}x{n}xi8> to vector<{m}xi8>
    %x = arith.sitofp %j : vector<{m}xi8> to R"""
        + WRITE_ROWS,
        lambda s, r, c: np.bitwise_xor.reduce(s.astype(np.int8), axis=1),
    ),
    "any": Case(
        """
    %l = arith.constant dense<38.0> : S
    %start = arith.constant dense<false> : vector<{n}xi1>
    %i = arith.cmpf ogt, %s, %l : S
    %j = vector.multi_reduction <or>, %i, %start [0]
      : vector<{m}x{n}xi1> to vector<{n}xi1>
    %x = arith.uitofp %j : vector<{n}xi1> to C"""
        + WRITE_COLUMNS,
        lambda s, r, c: (s > 38).any(0),
    ),
    "halves": Case(
        """
    %i = arith.truncf %s : S to vector<{m}x{n}xf16>
    %start = arith.constant dense<0.0> : vector<{m}xf16>
    %j = vector.multi_reduction <maxnumf>, %i, %start [1]
      : vector<{m}x{n}xf16> to vector<{m}xf16>
    %x = arith.extf %j : vector<{m}xf16> to R"""
        + WRITE_ROWS,
        lambda s, r, c: np.fmax(s.max(1), 0),
    ),
    "rows-standing": Case(
        READ_ROWS
        + """
    %t = vector.shape_cast %r : R to vector<{m}x1xf32>
    %u = arith.negf %t : vector<{m}x1xf32>
    %v = vector.broadcast %u : vector<{m}x1xf32> to S
    %x = arith.addf %s, %v : S"""
        + WRITE,
        lambda s, r, c: s - r[:, None],
    ),
    "rows-transposed": Case(
        READ_ROWS
        + """
    %t = vector.broadcast %r : R to vector<{n}x{m}xf32>
    %v = vector.transpose %t, [1, 0] : vector<{n}x{m}xf32> to S
    %x = arith.addf %s, %v : S"""
        + WRITE,
        lambda s, r, c: s + r[:, None],
    ),
    "columns": Case(
        READ_COLUMNS
        + """
    %v = vector.broadcast %l : C to S
    %x = arith.subf %s, %v : S"""
        + WRITE,
        lambda s, r, c: s - c,
    ),
    "columns-lying": Case(
        READ_COLUMNS
        + """
    %t = vector.shape_cast %l : C to vector<1x{n}xf32>
    %v = vector.broadcast %t : vector<1x{n}xf32> to S
    %x = arith.subf %s, %v : S"""
        + WRITE,
        lambda s, r, c: s - c,
    ),
    "no-accumulators": Case(  # both sides of the sum only broadcast
        READ_ROWS
        + READ_COLUMNS
        + """
    %t = vector.shape_cast %r : R to vector<{m}x1xf32>
    %u = vector.broadcast %t : vector<{m}x1xf32> to S
    %v = vector.broadcast %l : C to S
    %w = arith.mulf %u, %v : S
    %y = vector.multi_reduction <add>, %s, %r [1] : S to R
    %x = vector.multi_reduction <add>, %w, %y [1] : S to R"""
        + WRITE_ROWS,
        lambda s, r, c: s.sum(1) + r + r * c.sum(),
    ),
    "bounds": Case(  # of rows that are there, and of those that are stored
        """
    %p = memref.subview %R[0] [21] [1] : memref<{m}xf32> to memref<21xf32>
    %q = memref.subview %C[0] [30] [1] : memref<{m}xf32> to memref<30xf32>
    %r = vector.transfer_read %p[%c0], %f {in_bounds = [false]} : memref<21xf32>, R
    %x = vector.multi_reduction <add>, %s, %r [1] : S to R
    vector.transfer_write %x, %q[%c0] {in_bounds = [false]} : R, memref<30xf32>"""
        + "\n"
        + ROWS,
        lambda s, r, c: np.where(
            np.arange(M) < 30, s.sum(1) + np.where(np.arange(M) < 21, r, 0), 0
        ),
    ),
    "columns-bounds": Case(
        """
    %p = memref.subview %L[0] [29] [1] : memref<{n}xf32> to memref<29xf32>
    %q = memref.subview %C[0] [27] [1] : memref<{n}xf32> to memref<27xf32>
    %r = vector.transfer_read %p[%c0], %f {in_bounds = [false]} : memref<29xf32>, C
    %x = vector.multi_reduction <add>, %s, %r [0] : S to C
    vector.transfer_write %x, %q[%c0] {in_bounds = [false]} : C, memref<27xf32>"""
        + "\n"
        + COLUMNS,
        lambda s, r, c: np.where(
            np.arange(N) < 27, s.sum(0) + np.where(np.arange(N) < 29, c, 0), 0
        ),
    ),
    "mask": Case(
        """
    %n = vector.step : vector<{m}xindex>
    %i = arith.index_cast %n : vector<{m}xindex> to vector<{m}xi32>
    %o = arith.constant dense<7> : vector<{m}xi32>
    %j = arith.addi %i, %o : vector<{m}xi32>
    %t = vector.shape_cast %j : vector<{m}xi32> to vector<{m}x1xi32>
    %u = vector.broadcast %t : vector<{m}x1xi32> to vector<{m}x{n}xi32>
    %p = vector.step : vector<{n}xindex>
    %q = arith.index_cast %p : vector<{n}xindex> to vector<{n}xi32>
    %v = vector.broadcast %q : vector<{n}xi32> to vector<{m}x{n}xi32>
    %is = arith.cmpi sle, %v, %u : vector<{m}x{n}xi32>
    %x = arith.select %is, %s, %zero : vector<{m}x{n}xi1>, S"""
        + WRITE,
        lambda s, r, c: np.where(
            np.arange(N)[None] <= np.arange(M)[:, None] + 7, s, 0.0
        ),
    ),
    "same-numbers": Case(  # one vector.step for rows and columns of part of it
        """
    %n = vector.step : vector<{m}xindex>
    %i = arith.index_cast %n : vector<{m}xindex> to vector<{m}xi32>
    %t = vector.shape_cast %i : vector<{m}xi32> to vector<{m}x1xi32>
    %u = vector.broadcast %t : vector<{m}x1xi32> to vector<{m}x{m}xi32>
    %v = vector.broadcast %i : vector<{m}xi32> to vector<{m}x{m}xi32>
    %is = arith.cmpi slt, %v, %u : vector<{m}x{m}xi32>
    %part = vector.extract_strided_slice %s
      {offsets = [0, 16], sizes = [{m}, {m}], strides = [1, 1]}
      : S to vector<{m}x{m}xf32>
    %none = arith.constant dense<0.0> : vector<{m}x{m}xf32>
    %w = arith.select %is, %part, %none : vector<{m}x{m}xi1>, vector<{m}x{m}xf32>
    vector.transfer_write %w, %C[%c0, %c0] {in_bounds = [true, true]}
      : vector<{m}x{m}xf32>, memref<{m}x{n}xf32>""",
        lambda s, r, c: np.pad(np.tril(s[:, 16:], -1), ((0, 0), (0, 16))),
    ),
    "some-rows": Case(  # a slice of which the last offset is left out
        """
    %part = vector.extract_strided_slice %s
      {offsets = [16], sizes = [16], strides = [1]} : S to vector<16x{n}xf32>
    %twice = arith.addf %part, %part : vector<16x{n}xf32>
    vector.transfer_write %twice, %C[%c0, %c0] {in_bounds = [true, true]}
      : vector<16x{n}xf32>, memref<{m}x{n}xf32>""",
        lambda s, r, c: np.pad(2 * s[16:], ((0, 16), (0, 0))),
    ),
    "branch": Case(
        """
    %is = arith.cmpi eq, %bx, %c0 : index
    %start = arith.constant dense<0.0> : R
    %y, %z = scf.if %is -> (S, R) {
      %t = arith.addf %s, %s : S
      %u = vector.multi_reduction <add>, %s, %start [1] : S to R
      scf.yield %t, %u : S, R
    } else {
      scf.yield %s, %start : S, R
    }
    %x = vector.multi_reduction <add>, %y, %z [1] : S to R"""
        + WRITE_ROWS,
        lambda s, r, c: 3 * s.sum(1),
    ),
    "carried": Case(
        """
    %c3 = arith.constant 3 : index
    %start = arith.constant dense<1.0> : R
    %x = scf.for %i = %c0 to %c3 step %c1 iter_args(%r = %start) -> (R) {
      %y = vector.multi_reduction <maxnumf>, %s, %r [1] : S to R
      %z = arith.addf %y, %r : R
      scf.yield %z : R
    }"""
        + WRITE_ROWS,
        lambda s, r, c: _carried(s.max(1)),
    ),
    "carried-sum": carried_sum("%r", 1),
    "carried-sum-of-columns": carried_sum("%l", 0),
    "carried-sum-from-zero": Case(  # with a reduction of its own, and read twice
        """
    %c3 = arith.constant 3 : index
    %start = arith.constant dense<0.0> : R
    %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%r = %start) -> (R) {
      %d = vector.multi_reduction <add>, %s, %start [1] : S to R
      %y = arith.addf %d, %r : R
      scf.yield %y : R
    }
    %u = scf.for %i = %c0 to %c3 step %c1 iter_args(%r = %t) -> (R) {
      %y = vector.multi_reduction <add>, %s, %r [1] : S to R
      scf.yield %y : R
    }
    %x = arith.subf %u, %t : R"""
        + WRITE_ROWS,
        lambda s, r, c: 3 * s.sum(1),
    ),
    "carried-sum-in-loops": Case(  # the outer loop reads what the inner one adds up
        READ_ROWS
        + """
    %c3 = arith.constant 3 : index
    %half = arith.constant dense<0.5> : R
    %x = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %r) -> (R) {
      %u = scf.for %j = %c0 to %c3 step %c1 iter_args(%v = %t) -> (R) {
        %d = arith.mulf %v, %half : R
        %y = vector.multi_reduction <add>, %s, %d [1] : S to R
        scf.yield %y : R
      }
      %w = arith.addf %u, %t : R
      scf.yield %w : R
    }"""
        + WRITE_ROWS,
        lambda s, r, c: r * 1.125**3 + s.sum(1) * 1.75 * (1 + 1.125 + 1.125**2),
    ),
    "carried-sum-of-nothing": Case(  # no iteration
        READ_ROWS
        + """
    %first = memref.load %L[%c0] : memref<{n}xf32>
    %differs = arith.cmpf one, %first, %first : f32
    %word = arith.extui %differs : i1 to i32
    %end = arith.index_cast %word : i32 to index
    %x = scf.for %i = %c0 to %end step %c1 iter_args(%t = %r) -> (R) {
      %y = vector.multi_reduction <add>, %s, %t [1] : S to R
      scf.yield %y : R
    }"""
        + WRITE_ROWS,
        lambda s, r, c: r,
    ),
    "carried-sum-of-integers": Case(
        READ_ROWS
        + """
    %c3 = arith.constant 3 : index
    %i = arith.fptosi %s : S to vector<{m}x{n}xi32>
    %first = arith.fptosi %r : R to vector<{m}xi32>
    %five = arith.constant dense<5> : vector<{m}xi32>
    %t = scf.for %j = %c0 to %c3 step %c1 iter_args(%u = %first) -> (vector<{m}xi32>) {
      %d = arith.muli %u, %five : vector<{m}xi32>
      %y = vector.multi_reduction <add>, %i, %d [1]
        : vector<{m}x{n}xi32> to vector<{m}xi32>
      scf.yield %y : vector<{m}xi32>
    }
    %x = arith.sitofp %t : vector<{m}xi32> to R"""
        + WRITE_ROWS,
        lambda s, r, c: 31 * s.sum(1) + 125 * r,
    ),
    "three-dimensions": Case(
        """
    %start = arith.constant dense<0.0> : vector<1x{m}xf32>
    %t = vector.shape_cast %s : S to vector<1x{m}x{n}xf32>
    %u = arith.mulf %t, %t : vector<1x{m}x{n}xf32>
    %v = vector.multi_reduction <add>, %u, %start [2]
      : vector<1x{m}x{n}xf32> to vector<1x{m}xf32>
    %x = vector.shape_cast %v : vector<1x{m}xf32> to R"""
        + WRITE_ROWS,
        lambda s, r, c: (s * s).sum(1),
    ),
    "next-operand": Case(  # S * S[:, :16]' of what is rounded to f16
        """
    %none = arith.constant dense<0.0> : vector<{m}x{m}xf32>
    %t = arith.truncf %s : S to vector<{m}x{n}xf16>
    %left = vector.extract_strided_slice %t
      {offsets = [0, 16], sizes = [{m}, 32], strides = [1, 1]}
      : vector<{m}x{n}xf16> to vector<{m}x32xf16>
    %right = vector.extract_strided_slice %t
      {offsets = [0, 0], sizes = [{m}, 32], strides = [1, 1]}
      : vector<{m}x{n}xf16> to vector<{m}x32xf16>
    %w = vector.contract {indexing_maps = [#mk, #nk, #mn],
      iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %left, %right, %none
      : vector<{m}x32xf16>, vector<{m}x32xf16> into vector<{m}x{m}xf32>
    vector.transfer_write %w, %C[%c0, %c0] {in_bounds = [true, true]}
      : vector<{m}x{m}xf32>, memref<{m}x{n}xf32>""",
        lambda s, r, c: np.pad(s[:, 16:] @ s[:, :32].T, ((0, 0), (0, 16))),
    ),
}


def _carried(largest: Array) -> Array:
    rows = np.ones(M)
    for _ in range(3):
        rows = rows + np.maximum(rows, largest)
    return rows


def run(code: str, shape: tuple[int, ...]) -> tuple[Array, tuple[Array, Array, Array]]:
    """What a kernel computes, and its accumulators, rows and columns."""
    names = {
        "S": f"vector<{M}x{N}xf32>",
        "R": f"vector<{M}xf32>",
        "C": f"vector<{N}xf32>",
    }
    body = code.replace("{m}", str(M)).replace("{n}", str(N))
    body = re.sub(r"(?<![%\w])[SRC](?!\w)", lambda name: names[name[0]], body)
    out = "x".join(map(str, (*shape, "f32")))
    text = KERNEL.format(m=M, n=N, k=K, out=out, body=body)
    options = compiler.Options(use_ptxas=False)
    program = Program(
        compiler.compile_source(inputs.read(text), options), device="emulator"
    )
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, of).astype(np.float16) for of in ((M, K), (K, N)))
    rows, columns = (random.integers(-9, 9, of).astype(np.float32) for of in (M, N))
    result = np.zeros(shape, np.float32)
    program(a, b, rows, columns, result)
    accumulators = a.astype(np.float64) @ b.astype(np.float64)
    return result, (accumulators, rows, columns)


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_numpys(name: str) -> None:
    case = CASES[name]
    shape = {ROWS: (M,), COLUMNS: (N,)}.get(case.code.splitlines()[-1], (M, N))
    result, given = run(case.code, shape)
    np.testing.assert_array_equal(result, case.result(*given))
