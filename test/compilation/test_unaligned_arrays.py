"""End to end on arrays that begin at any element, as views of larger ones do.

Where they begin is known at run time only. An aligned array runs the aligned variant,
others one that is for them; each gives the bits of the kernel of its schedule that was
compiled for these sizes, of aligned arrays.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_guarded_variants import Form, bits, compiled, placed, sizes, written

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.kernels import Aligned
from alcop_mlir.runtime.launch import Program

NUMBER = 3  # of the schedule of all variants
SIZES = sizes(20, 32, 48)


F16 = Form(gaps=True)
CASES = {
    "f16": (
        F16,
        (16, 4, 1),
        (
            ((0, 0, 0), 0),
            ((8, 16, 4), 0),
            ((1, 0, 0), 2),
            ((0, 7, 0), 2),
            ((9, 15, 3), 2),
            ((2, 0, 0), 1),
            ((8, 6, 0), 1),
            ((0, 0, 1), 1),  # C is stored by elements
        ),
    ),
    "fused": (
        Form(rhs="nk", has_epilogue=True),  # V of f32, D of f16
        (16, 1),
        (((0, 8, 4, 8), 0), ((4, 4, 0, 0), 1), ((0, 0, 1, 0), 1), ((0, 0, 0, 9), 1)),
    ),
    "tf32": (Form("f32"), (16, 1), (((4, 0, 8), 0), ((1, 3, 1), 1))),
    "s8": (Form("i8", "i32"), (4, 1), (((16, 4, 0), 0), ((0, 1, 0), 1))),
}


@pytest.mark.parametrize("name", CASES)
def test_any_beginning(name: str) -> None:
    """On the emulator, which finds no hazard, and no access that is not aligned."""
    form, rows, cases = CASES[name]
    ways = ", ".join(
        f"{{row_bytes = {row}, schedule = {written(NUMBER)}}}" for row in rows
    )
    program = compiled(form.text(f"alcop.variants = [{ways}]"))
    arrays: list[np.ndarray] = []
    for offsets, ran in cases:
        arrays = placed(form.data(SIZES, exact=True), offsets)
        expected = form.expected(arrays)
        program(*arrays)
        assert program.last_variants == (ran,), offsets
        found = dtypes.decode(arrays[-1], form.taken[-1][1])
        np.testing.assert_array_equal(found, expected, f"{offsets}")
    for parameter, array in zip(program.function.parameters, arrays, strict=True):
        assert parameter.alignment == array.itemsize
    between_elements(program, arrays)
    if form == F16:
        same_bits(program, [offsets for offsets, _ in cases])


def same_bits(program: Program, cases: list[tuple[int, ...]]) -> None:
    """As the kernel of the schedule that is compiled for the sizes."""
    schedule = f"alcop.schedule = #alcop.schedule<{written(NUMBER)}>"
    static = compiled(F16.text(schedule, SIZES))
    for offsets in cases:
        arrays, same = (F16.data(SIZES, exact=False) for _ in range(2))
        arrays = placed(arrays, offsets)
        program(*arrays)
        static(*same)
        np.testing.assert_array_equal(bits(arrays[-1]), bits(same[-1]), f"{offsets}")


def between_elements(program: Program, arrays: list[np.ndarray]) -> None:
    """An array that begins there is refused in one line."""
    for number, array in enumerate(arrays):
        size = array.itemsize
        if size == 1:
            continue
        given = [*arrays]
        memory = np.zeros(array.nbytes * 16, np.uint8)
        begin = -memory.ctypes.data % size + 1
        given[number] = np.ndarray(
            array.shape, array.dtype, memory, begin, array.strides
        )
        message = f"starts 1 bytes behind a multiple of {size} bytes, expected"
        with pytest.raises(LaunchError, match=message) as refusal:
            program(*given)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("unknown", ["A", "C"])
def test_known_sizes(unknown: str) -> None:
    """The compiler chooses variants where no more than a beginning is not known."""
    types = {"A": "16x64xf16", "B": "64x32xf16", "C": "16x32xf32"}
    columns = types[unknown].split("x")[1]
    types[unknown] += f", strided<[{columns}, 1], offset: ?>"
    a, b, c = (f"memref<{one}>" for one in types.values())
    program = compiled(f"""
      func.func @f(%A: {a}, %B: {b}, %C: {c}) {{
        linalg.matmul ins(%A, %B : {a}, {b}) outs(%C : {c})
        return
      }}""")
    (launch,) = program.function.launches
    conditions = [one for way in launch.variants for one in way.guard]
    assert {type(one) for one in conditions} == {Aligned}
    kernels = launch.variants[0].kernels
    assert {one.level for one in kernels[0].pipelines} >= {"shared"}
    number = "ABC".index(unknown)
    assert [one.alignment < 16 for one in program.function.parameters] == [
        place == number for place in range(3)
    ]
    for offset, is_last in ((0, False), (16, False), (1, True)):
        random = np.random.default_rng(0)
        x = random.integers(-4, 5, (16, 64)).astype("f2")
        y = random.integers(-4, 5, (64, 32)).astype("f2")
        offsets = [offset if place == number else 0 for place in range(3)]
        x, y, z = placed([x, y, np.zeros((16, 32), "f4")], offsets)
        program(x, y, z)
        (ran,) = program.last_variants
        assert ran == (len(launch.variants) - 1 if is_last else 0)
        np.testing.assert_array_equal(z, x.astype("f4") @ y.astype("f4"))


def test_views_at_offsets_of_the_host() -> None:
    """Right columns of A: where they begin is asked for, as the host computes it."""
    part = "memref<?x?xf16, strided<[?, 1], offset: ?>>"
    ways = ", ".join(
        f"{{row_bytes = {row}, schedule = {written(3)}}}" for row in (16, 1)
    )
    program = compiled(f"""
      func.func @right(%A: memref<?x?xf16>, %B: memref<?x24xf16>,
                       %C: memref<?x24xf32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %m = memref.dim %C, %c0 : memref<?x24xf32>
        %k = memref.dim %B, %c0 : memref<?x24xf16>
        %columns = memref.dim %A, %c1 : memref<?x?xf16>
        %at = arith.subi %columns, %k : index
        %a = memref.subview %A[0, %at] [%m, %k] [1, 1] : memref<?x?xf16> to {part}
        linalg.matmul {{alcop.variants = [{ways}]}}
          ins(%a, %B : {part}, memref<?x24xf16>) outs(%C : memref<?x24xf32>)
        return
      }}""")
    (launch,) = program.function.launches
    assert "(-K + arg0_1) % 8 == 0" in map(str, launch.variants[0].guard)
    random = np.random.default_rng(0)
    for columns, k, behind, ran in (
        (48, 40, 0, 0),
        (40, 40, 8, 0),
        (47, 40, 0, 1),
        (48, 41, 0, 1),
        (48, 40, 1, 1),
    ):
        a = random.integers(-4, 5, (17, columns)).astype("f2")
        b = random.integers(-4, 5, (k, 24)).astype("f2")
        a, b, c = placed([a, b, np.zeros((17, 24), "f4")], [behind, 0, 0])
        program(a, b, c)
        assert program.last_variants == (ran,), (columns, k, behind)
        np.testing.assert_array_equal(c, a[:, columns - k :].astype("f4") @ b)
    for rows, columns, k, message in (
        (17, 40, 48, r"-K \+ arg0_1 is -8, expected at least 0"),
        (16, 48, 40, "arg0_0 is 16, expected at least M, which is 17"),
    ):
        a, b = np.zeros((rows, columns), "f2"), np.zeros((k, 24), "f2")
        with pytest.raises(LaunchError, match=f"do not fit together: {message}$"):
            program(a, b, np.zeros((17, 24), "f4"))
