"""End to end on arrays with strides and offsets that are known at run time only.

Leading dimensions are parameters; an array is the view itself, at any offset.
"""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

TILE = "block=64,64,32 warp=32,32"
STAGES = ("1,1", "3,2")
SMALL = "{block = [16, 16, 32], warp = [16, 16]}"
PROMISE = "{alcop.row_alignment = 16 : i64}"


def compiled(text: str, stages: str) -> Program:
    options = compiler.Options(
        schedule=Schedule.parse(f"{TILE} stages={stages}"), use_ptxas=False
    )
    return Program(
        compiler.compile_source(inputs.read(text), options), device="emulator"
    )


def matmul(
    a: str, b: str, c: str, attributes: str = PROMISE, op: str = "matmul"
) -> str:
    return f"""
      func.func @matmul(%A: memref<{a}> {attributes}, %B: memref<{b}> {attributes},
                         %C: memref<{c}> {attributes}) {{
        linalg.{op} ins(%A, %B : memref<{a}>, memref<{b}>) outs(%C : memref<{c}>)
        return
      }}"""


def strided(rank: int, element: str, offset: str = "") -> str:
    shape = "x".join("?" * rank)
    strides = ", ".join([*"?" * (rank - 1), "1"])
    return f"{shape}x{element}, strided<[{strides}]{offset}>"


def within(
    random: np.random.Generator, shape: tuple[int, ...], dtype: str, gap: int
) -> np.ndarray:
    """A view of an array whose rows are longer by `gap`, all of it filled."""
    whole = random.uniform(-1, 1, (*shape[:-1], shape[-1] + gap)).astype(dtype)
    return whole[..., : shape[-1]]


def check(program: Program, m: int, n: int, k: int, gaps: tuple[int, int, int]) -> None:
    """C += A * B; elements between the rows of C are unchanged."""
    random = np.random.default_rng(m + n + k)
    a = within(random, (m, k), "f2", gaps[0])
    b = within(random, (k, n), "f2", gaps[1])
    c = within(random, (m, n), "f4", gaps[2])
    whole = c if c.base is None else c.base
    expected = whole.astype("f8")
    expected[:, :n] += a.astype("f8") @ b.astype("f8")
    program(a, b, c)
    np.testing.assert_allclose(whole, expected, atol=k * 2.0**-22, rtol=0)


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("offset", ["", ", offset: ?"])
def test_one_program_for_all_strides(stages: str, offset: str) -> None:
    a, b, c = (strided(2, element, offset) for element in ("f16", "f16", "f32"))
    program = compiled(matmul(a, b, c), stages)
    parameters = program.function.parameters
    assert [p.strides for p in parameters] == [
        (f"arg{number}_stride_0", 1) for number in range(3)
    ]
    check(program, 64, 64, 64, (0, 0, 0))
    check(program, 72, 40, 104, (8, 16, 4))
    check(program, 1, 136, 8, (0, 200, 8))
    check(program, 130, 8, 72, (64, 0, 400))


@pytest.mark.parametrize("stages", STAGES)
def test_known_sizes(stages: str) -> None:
    kinds = "72x104xf16", "104x40xf16", "72x40xf32"
    a, b, c = (f"{kind}, strided<[?, 1], offset: 7>" for kind in kinds)
    program = compiled(matmul(a, b, c), stages)
    check(program, 72, 40, 104, (8, 16, 4))
    check(program, 72, 40, 104, (0, 0, 0))


def test_known_sizes_have_a_variant_of_aligned_rows() -> None:
    """Rows may be of any length: it is their distances that count."""
    kinds = "40x37xf16", "37x27xf16", "40x27xf32"
    a, b, c = (f"{kind}, strided<[?, 1], offset: ?>" for kind in kinds)
    ways = ", ".join(
        f"{{row_bytes = {row}, schedule = {SMALL}}}" for row in ("16", "4", "1")
    )
    text = matmul(a, b, c, "", f"matmul {{alcop.variants = [{ways}]}}")
    bundle = compiler.compile_source(
        inputs.read(text), compiler.Options(use_ptxas=False)
    )
    program = Program(bundle, device="emulator")
    (launch,) = program.function.launches
    levels = [
        {pipeline.level for kernel in way.kernels for pipeline in kernel.pipelines}
        for way in launch.variants
    ]
    assert ["shared" in found for found in levels] == [True, True, False]
    for gaps, ran in (
        ((3, 5, 1), 0),
        ((11, 5, 1), 0),
        ((11, 5, 0), 1),  # rows of C are 27 elements apart
        ((1, 1, 0), 1),
        ((11, 4, 1), 2),
        ((0, 0, 0), 2),
    ):
        check(program, 40, 27, 37, gaps)
        assert program.last_variants == (ran,), gaps


def test_views_have_a_variant_of_aligned_rows() -> None:
    """Where a view begins is a multiple of the distance of rows, which is asked for."""
    part = "memref<?x?xf16, strided<[?, 1], offset: ?>>"
    text = f"""
      func.func @lower_half(%A: memref<?x?xf16>, %B: memref<?x24xf16>,
                            %C: memref<?x24xf32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %m = memref.dim %C, %c0 : memref<?x24xf32>
        %k = memref.dim %A, %c1 : memref<?x?xf16>
        %a = memref.subview %A[%m, 0] [%m, %k] [1, 1] : memref<?x?xf16> to {part}
        linalg.matmul {{alcop.variants = [{{row_bytes = 16, schedule = {SMALL}}},
                                        {{schedule = {SMALL}}}]}}
          ins(%a, %B : {part}, memref<?x24xf16>) outs(%C : memref<?x24xf32>)
        return
      }}"""
    program = Program(
        compiler.compile_source(inputs.read(text), compiler.Options(use_ptxas=False)),
        device="emulator",
    )
    (launch,) = program.function.launches
    (kernel,) = launch.variants[0].kernels
    copied = [one.buffer for one in kernel.pipelines if one.level == "shared"]
    assert copied == ["arg0 16x32xf16", "arg1 32x16xf16"]
    random = np.random.default_rng(0)
    for k, ran in ((40, 0), (41, 1)):
        a = random.uniform(-1, 1, (34, k)).astype("f2")
        b = random.uniform(-1, 1, (k, 24)).astype("f2")
        c = np.zeros((17, 24), "f4")
        program(a, b, c)
        assert program.last_variants == (ran,)
        expected = a[17:].astype("f8") @ b.astype("f8")
        np.testing.assert_allclose(c, expected, atol=k * 2.0**-22, rtol=0)


def test_a_promise_keeps_the_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    """Without it rows begin anywhere, and copies go element by element."""
    kinds = [strided(2, element) for element in ("f16", "f16", "f32")]
    program = compiled(matmul(*kinds), "3,2")
    assert {p.stages for p in program.function.kernels[0].pipelines} == {2, 3}
    assert capsys.readouterr().err == ""
    program = compiled(matmul(*kinds, attributes=""), "3,2")
    assert "are known to be aligned to 2 bytes" in capsys.readouterr().err
    check(program, 65, 17, 41, (1, 0, 3))


@pytest.mark.parametrize("stages", STAGES)
def test_batches(stages: str) -> None:
    """A batch has a stride of its own, which may be anything, even 0 of an input."""
    kinds = [strided(3, element) for element in ("f16", "f16", "f32")]
    program = compiled(matmul(*kinds, op="batch_matmul"), stages)
    random = np.random.default_rng(0)
    a = np.broadcast_to(within(random, (40, 72), "f2", 8), (3, 40, 72))
    b = within(random, (3, 80, 24), "f2", 0)[:, 8:]  # a gap between the batches
    c = np.zeros((3, 48, 32), "f4")
    program(a, b, c[:, :40, :24])
    expected = np.zeros_like(c, "f8")
    expected[:, :40, :24] = a.astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(c, expected, atol=72 * 2.0**-22, rtol=0)


@pytest.mark.parametrize(("op", "shapes"), [("vecmat", "v"), ("batch_vecmat", "bv")])
def test_vectors(op: str, shapes: str) -> None:
    """Those of a batch may lie apart."""
    rank = len(shapes)
    a, b, c = (
        strided(rank, "f16", ", offset: ?"),
        strided(rank + 1, "f16"),
        strided(rank, "f32", ", offset: ?"),
    )
    program = compiled(matmul(a, b, c, op=op), "3,2")
    random = np.random.default_rng(0)
    batch = (3,) * (rank - 1)
    left = within(random, (*batch, 72), "f2", 8)
    right = within(random, (*batch, 72, 40), "f2", 24)
    out = np.zeros((*batch, 48), "f4")
    program(left, right, out[..., :40])
    expected = np.zeros_like(out, "f8")
    expected_c = np.einsum("...k,...kn->...n", left.astype("f8"), right.astype("f8"))
    expected[..., :40] = expected_c
    np.testing.assert_allclose(out, expected, atol=72 * 2.0**-22, rtol=0)


def test_layouts_that_say_what_the_shape_says() -> None:
    """A vector with a stride of 1, as an argument and as a view."""
    vector = "memref<32xf16, strided<[1]>>"
    text = f"""
      func.func @f(%A: memref<5x32xf16, strided<[32, 1]>>, %x: {vector},
                   %P: memref<64xf16>, %c: memref<5xf32>, %d: memref<5xf32>) {{
        %y = memref.subview %P[0] [32] [1] : memref<64xf16> to {vector}
        linalg.matvec ins(%A, %x : memref<5x32xf16, strided<[32, 1]>>, {vector})
          outs(%c : memref<5xf32>)
        linalg.matvec ins(%A, %y : memref<5x32xf16, strided<[32, 1]>>, {vector})
          outs(%d : memref<5xf32>)
        return
      }}"""
    program = compiled(text, "2,1")
    random = np.random.default_rng(0)
    a, x, p = (random.uniform(-1, 1, s).astype("f2") for s in ((5, 32), 32, 64))
    c, d = np.zeros(5, "f4"), np.zeros(5, "f4")
    program(a, x, p, c, d)
    for got, given in ((c, x), (d, p[:32])):
        expected = a.astype("f8") @ given.astype("f8")
        np.testing.assert_allclose(got, expected, atol=32 * 2.0**-22, rtol=0)


def test_views_of_arguments() -> None:
    """Views that the function itself takes, of run-time sizes and strides."""
    whole = strided(2, "f16", ", offset: ?")
    part = "memref<?x?xf16, strided<[?, 1], offset: ?>>"
    text = f"""
      func.func @lower_half(%A: memref<{whole}> {PROMISE},
                            %B: memref<?x?xf16> {PROMISE},
                            %C: memref<?x?xf32> {PROMISE}) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %m = memref.dim %C, %c0 : memref<?x?xf32>
        %k = memref.dim %A, %c1 : memref<{whole}>
        %a = memref.subview %A[%m, 0] [%m, %k] [1, 1] : memref<{whole}> to {part}
        linalg.matmul ins(%a, %B : {part}, memref<?x?xf16>) outs(%C : memref<?x?xf32>)
        return
      }}"""
    program = compiled(text, "3,2")
    random = np.random.default_rng(0)
    a = within(random, (80, 72), "f2", 8)
    b = random.uniform(-1, 1, (72, 24)).astype("f2")
    c = np.zeros((40, 24), "f4")
    program(a, b, c)
    expected = a[40:].astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(c, expected, atol=72 * 2.0**-22, rtol=0)


WHOLE = np.zeros((32, 48), "f2")
OUT = np.zeros((32, 48), "f4")


@pytest.mark.parametrize(
    ("a", "c", "message"),
    [
        (
            WHOLE[:, :44][:, ::2],
            OUT[:, :24],
            r"argument 1 \('arg0'\) has strides of 96x4 bytes, expected "
            "arg0_stride_0x2",
        ),
        (
            np.zeros((32, 44), "f2")[:, :24],
            OUT[:, :24],
            r"argument 1 \('arg0'\) has strides of 88x2 bytes, but the function "
            "promises multiples of 16",
        ),
        (
            WHOLE[::-1, :24],
            OUT[:, :24],
            r"argument 1 \('arg0'\) has strides of -96x2 bytes, expected multiples of "
            "2, none negative",
        ),
        (
            WHOLE[:, 4:28],
            OUT[:, :24],
            r"argument 1 \('arg0'\) starts 8 bytes behind a multiple of 16 bytes, "
            "expected an aligned array",
        ),
        (
            WHOLE[:, :24],
            np.lib.stride_tricks.as_strided(OUT, (32, 24), (64, 4)),
            r"argument 3 \('arg2'\) has strides of 64x4 bytes and is written, "
            "expected rows apart",
        ),
    ],
)
def test_arrays_that_do_not_fit(a: np.ndarray, c: np.ndarray, message: str) -> None:
    """One clear line, before anything runs."""
    kinds = [strided(2, element) for element in ("f16", "f16", "f32")]
    program = compiled(matmul(*kinds), "1,1")
    b = np.zeros((a.shape[1], 24), "f2")
    with pytest.raises(LaunchError, match=message):
        program(a, b, c)
