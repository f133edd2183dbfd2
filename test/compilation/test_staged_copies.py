"""Rows of any length: threads load single elements a K step early, and store words.

On the emulator, which finds no hazard and no access outside of an array.
"""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

# K steps of 64 bytes.
SCHEDULES = {
    "f16": "block=32,32,32 warp=16,32 stages=3",
    "i8": "block=32,32,64 warp=16,32 stages=3",
}
SIZES = ((1, 1, 1), (33, 34, 31), (31, 33, 165))


def matmul(kind: str, layout: str, sizes: tuple[int, int, int] | None = None) -> str:
    """C = A * B; "t": A is stored k x m, B is stored n x k."""
    out = "i32" if kind == "i8" else "f32"
    extents = dict(zip("mnk", sizes or "???", strict=True))
    loops = ("mk" if layout[0] == "n" else "km", "kn" if layout[1] == "n" else "nk")
    a, b, c = (
        f"memref<{'x'.join(str(extents[loop]) for loop in one)}x{element}>"
        for one, element in zip((*loops, "mn"), (kind, kind, out), strict=True)
    )
    maps = ", ".join(
        f"affine_map<(m, n, k) -> ({', '.join(one)})>" for one in (*loops, "mn")
    )
    return f"""
      func.func @matmul(%A: {a}, %B: {b}, %C: {c}) {{
        linalg.matmul indexing_maps = [{maps}] ins(%A, %B : {a}, {b}) outs(%C : {c})
        return
      }}"""


def compiled(text: str, kind: str, registers: int = 2) -> Program:
    schedule = Schedule.parse(f"{SCHEDULES[kind]},{registers}")
    options = compiler.Options(schedule=schedule, use_ptxas=False, variants=1)
    return Program(
        compiler.compile_source(inputs.read(text), options), device="emulator"
    )


def product(
    program: Program, kind: str, layout: str, sizes: tuple[int, int, int]
) -> np.ndarray:
    """C of small whole numbers, which f16 and f32 hold exactly."""
    m, n, k = sizes
    random = np.random.default_rng(sum(sizes))
    dtype, out = ("i1", "i4") if kind == "i8" else ("f2", "f4")
    a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), out)
    stored = [
        np.ascontiguousarray(one.T) if way == "t" else one
        for one, way in zip((a, b), layout, strict=True)
    ]
    program(*stored, c)
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8"))
    return c


@pytest.mark.parametrize(
    ("kind", "layout"),
    [("f16", "nn"), ("f16", "nt"), ("f16", "tn"), ("i8", "nt"), ("i8", "tn")],
)
def test_open_sizes(kind: str, layout: str) -> None:
    program = compiled(matmul(kind, layout), kind)
    for sizes in SIZES:
        product(program, kind, layout, sizes)


def test_known_sizes() -> None:
    """With constant strides rows beyond the last one are under a condition."""
    for layout, sizes in (("nn", (33, 35, 71)), ("tn", (15, 35, 64))):
        product(compiled(matmul("f16", layout, sizes), "f16"), "f16", layout, sizes)


def test_rows_that_are_never_there() -> None:
    """Of a tile of 32 rows 16 are zero: what is read of shared memory is written."""
    kind = "memref<16x64xf16, strided<[65, 1]>>"
    text = matmul("f16", "nt", (16, 16, 64)).replace("memref<16x64xf16>", kind)
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (16, 65)).astype("f2")[:, :64] for _ in range(2))
    c = np.zeros((16, 16), "f4")
    compiled(text, "f16")(a, b, c)
    np.testing.assert_array_equal(c, a.astype("f8") @ b.astype("f8").T)


def test_they_are_said_to_be_pipelined_through_registers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Once for each operand; with one register stage they are not, and a remark too."""
    program = compiled(matmul("f16", "nn"), "f16")
    (kernel,) = program.function.kernels
    loaded = [(p.buffer, p.level, p.stages) for p in kernel.pipelines][:2]
    assert loaded == [("arg0 f16", "register", 2), ("arg1 f16", "register", 2)]
    why = "the rows of argument {}, memref<?x?xf16>, are known to be aligned to 2 bytes"
    first, second = capsys.readouterr().err.splitlines()
    for number, line in enumerate((first, second), start=1):
        assert f"pipelined through registers only: {why.format(number)}" in line
        assert line.endswith("where they are known at run time only")
    compiled(matmul("f16", "nn"), "f16", registers=1)
    for number, line in enumerate(capsys.readouterr().err.splitlines(), start=1):
        assert f"not pipelined (rule 1): {why.format(number)}" in line
