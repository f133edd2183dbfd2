"""End to end on irregular shapes: the right numbers for every stage count, no hazard.

Ragged against the tile in M, N and K, rows of any alignment, sizes known at run time
only, batches, vectors, strides, offsets, empty dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from argument_names import name_of

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime.checking import with_strides
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program, grid_of
from alcop_mlir.schedule import Schedule

DTYPES = {"f16": np.float16, "f32": np.float32}
TILE = "block=64,64,32 warp=32,32"
STAGES = ("1,1", "2,1", "3,2", "4,2")


@dataclass(frozen=True)
class Matmul:
    """C = A * B (+ C) as a program; `sizes` gives letters their numbers.

    maps:    of A, B and C
    dynamic: letters whose size the program does not know
    init:    "zero", "read", or "copy" (of a fourth array)
    promise: alcop.row_alignment of all arrays, in bytes
    pitch:   elements from row to row beyond its length, of A, B and C
    """

    sizes: dict[str, int]
    maps: tuple[str, str, str] = ("mk", "kn", "mn")
    dynamic: str = ""
    out: str = "f32"
    init: str = "zero"
    promise: int = 0
    pitch: tuple[int, int, int] = (0, 0, 0)

    def text(self) -> str:
        a, b, c = (
            self._type(number, "f16" if number < 2 else self.out) for number in range(3)
        )
        used = [loop for loop in "bhmnk" if loop in "".join(self.maps)]
        maps = ", ".join(
            f"affine_map<({', '.join(used)}) -> ({', '.join(letters)})>"
            for letters in self.maps
        )
        kinds = ", ".join(
            '"parallel"' if loop in self.maps[2] else '"reduction"' for loop in used
        )
        promise = f" {{alcop.row_alignment = {self.promise} : i64}}"
        given = promise if self.promise else ""
        before = {
            "zero": f"linalg.fill ins(%z : {self.out}) outs(%C : {c})",
            "read": "",
            "copy": f"memref.copy %D, %C : {c} to {c}",
        }[self.init]
        extra = f", %D: {c}{given}" if self.init == "copy" else ""
        # f16 times f16 in f16, as in the body of linalg.matmul.
        widened = ("%x", "%y") if self.out == "f16" else ("%p", "%q")
        widen = (
            ""
            if self.out == "f16"
            else "%p = arith.extf %x : f16 to f32\n%q = arith.extf %y : f16 to f32"
        )
        return f"""
          func.func @matmul(%A: {a}{given}, %B: {b}{given}, %C: {c}{given}{extra}) {{
            %z = arith.constant 0.0 : {self.out}
            {before}
            linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
              ins(%A, %B : {a}, {b}) outs(%C : {c}) {{
            ^bb0(%x: f16, %y: f16, %s: {self.out}):
              {widen}
              %t = arith.mulf {widened[0]}, {widened[1]} : {self.out}
              %u = arith.addf %s, %t : {self.out}
              linalg.yield %u : {self.out}
            }}
            return
          }}"""

    def _type(self, number: int, element: str) -> str:
        letters, pitch = self.maps[number], self.pitch[number]
        shape = "x".join(
            "?" if loop in self.dynamic else str(self.sizes[loop]) for loop in letters
        )
        layout = f", strided<[{self.sizes[letters[-1]] + pitch}, 1]>" if pitch else ""
        return f"memref<{shape}x{element}{layout}>"

    def arrays(self, sizes: dict[str, int] | None = None) -> list[np.ndarray]:
        """A, B and C, and D where the program has one."""
        sizes = sizes or self.sizes
        random = np.random.default_rng(sum(sizes.values()))
        maps = [*self.maps, *[self.maps[2]] * (self.init == "copy")]
        kinds = ["f2", "f2", *[DTYPES[self.out]] * 2]
        made = []
        for letters, kind, pitch in zip(maps, kinds, (*self.pitch, 0), strict=False):
            array = random.uniform(-1, 1, [sizes[i] for i in letters]).astype(kind)
            if pitch:
                array = with_strides(array, (array.shape[1] + pitch, 1))
            made.append(array)
        if self.init != "read":
            made[2][...] = np.nan
        return made

    def expected(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        a, b, c = self.maps
        values = [array.astype("f8") for array in arrays]
        matmul = np.einsum(f"{a},{b}->{c}", values[0], values[1])
        start = {"zero": 0.0, "read": values[2], "copy": values[-1]}[self.init]
        return matmul + start


def compiled(matmul: Matmul, schedule: str) -> Program:
    options = compiler.Options(schedule=Schedule.parse(schedule), use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(matmul.text()), options)
    return Program(bundle, device="emulator")


def check(
    matmul: Matmul, program: Program, sizes: dict[str, int] | None = None
) -> np.ndarray:
    """Run on the emulator, which raises on any hazard; compare with float64."""
    arrays = matmul.arrays(sizes)
    expected = matmul.expected(arrays)
    program(*arrays)
    terms = max(1, (sizes or matmul.sizes)["k"]) * (sizes or matmul.sizes).get("b", 1)
    exact = terms * 2.0**-22
    tolerance = exact + 2.0**-10 * terms**0.5 if matmul.out == "f16" else exact
    np.testing.assert_allclose(arrays[2], expected, atol=tolerance, rtol=0)
    return arrays[2]


def sizes(m: int, n: int, k: int, **others: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k, **others}


# One of M, N, K beyond whole tiles; all; less than a tile; rows of 8, 4, 2 bytes.
RAGGED = [
    sizes(72, 64, 64),
    sizes(64, 72, 64),
    sizes(64, 64, 72),
    sizes(130, 72, 104),
    sizes(1, 1, 1),
    sizes(63, 8, 8),
    sizes(66, 68, 100),
    sizes(66, 70, 98),
    sizes(65, 67, 97),
    sizes(1, 200, 136),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize("shape", RAGGED, ids=str)
@pytest.mark.parametrize("rhs", ["kn", "nk"])
def test_ragged(shape: dict[str, int], rhs: str) -> None:
    """All stage counts give the same bits."""
    matmul = Matmul(shape, ("mk", rhs, "mn"))
    results = [
        check(matmul, compiled(matmul, f"{TILE} stages={stages}")).tobytes()
        for stages in STAGES
    ]
    assert len(set(results)) == 1


@pytest.mark.parametrize("shape", [RAGGED[3], RAGGED[8]], ids=str)
@pytest.mark.parametrize("out", ["f32", "f16"])
@pytest.mark.parametrize("init", ["read", "copy"])
@pytest.mark.parametrize("stages", ["1,1", "3,2"])
def test_ragged_starts(shape: dict[str, int], out: str, init: str, stages: str) -> None:
    """Accumulators start from C, or from another array, within its bounds."""
    matmul = Matmul(shape, out=out, init=init)
    check(matmul, compiled(matmul, f"{TILE} stages={stages}"))


@pytest.mark.parametrize("k", [8, 24, 32, 40, 96, 104, 232])
@pytest.mark.parametrize("stages", ["2,1", "3,3", "5,2"])
def test_every_length_of_a_pipeline(k: int, stages: str) -> None:
    """K tiles fewer than stages, as many, more; the last one whole or not."""
    matmul = Matmul(sizes(40, 72, k))
    check(matmul, compiled(matmul, f"{TILE} stages={stages}"))


DYNAMIC = [
    sizes(64, 64, 64),
    sizes(200, 72, 168),
    sizes(8, 136, 8),
    sizes(1, 8, 264),
    sizes(129, 8, 32),
    sizes(72, 72, 0),
    sizes(0, 64, 64),
    sizes(64, 0, 64),
]


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("rhs", ["kn", "nk"])
@pytest.mark.parametrize("init", ["zero", "read"])
def test_one_program_for_all_sizes(stages: str, rhs: str, init: str) -> None:
    """With the promise that rows are multiples of 16 bytes."""
    matmul = Matmul(
        {}, ("mk", rhs, "mn"), dynamic="mnk", init=init, promise=16, out="f32"
    )
    program = compiled(matmul, f"{TILE} stages={stages}")
    for shape in DYNAMIC:
        check(matmul, program, shape)


@pytest.mark.parametrize("rhs", ["kn", "nk"])
@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("dynamic", ["mnk", ""])
def test_no_bank_conflicts_where_rows_are_far(
    rhs: str, columns: int, dynamic: str
) -> None:
    """Threads are arranged differently where the stride of rows is unknown or large."""
    given = sizes(64, columns, 96)
    known = {} if dynamic else given
    matmul = Matmul(known, ("mk", rhs, "mn"), dynamic=dynamic, promise=16)
    warp = "32,32" if columns == 64 else "32,64"
    program = compiled(matmul, f"block=64,{columns},32 warp={warp} stages=3,2")
    (kernel,) = program.function.kernels
    arrays = matmul.arrays(given)
    named = dict(zip(("arg0", "arg1", "arg2"), arrays, strict=True))
    known = {name.upper(): size for name, size in given.items()}
    result = emulate(
        program.ptx,
        kernel.name,
        grid_of(kernel, known),
        kernel.block,
        [(named | known)[name_of(one)] for one in kernel.arguments],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    assert result.counters is not None
    assert result.counters.bank_conflicts == 0


@pytest.mark.parametrize("stages", ["1,1", "3,2"])
@pytest.mark.parametrize("promise", [0, 4, 8])
def test_narrow_rows_at_run_time(stages: str, promise: int) -> None:
    """Without a promise, or with a smaller one, copies are narrower."""
    matmul = Matmul({}, dynamic="mnk", promise=promise, out="f16", init="read")
    program = compiled(matmul, f"{TILE} stages={stages}")
    step = max(1, promise // 2)
    for m, n, k in ((5, 3, 7), (65, 17, 41), (1, 1, 1)):
        check(matmul, program, sizes(m, n * step, k * step))


@pytest.mark.parametrize("dynamic", ["m", "n", "k", "mn", "mk"])
def test_some_sizes_at_run_time(dynamic: str) -> None:
    matmul = Matmul(sizes(72, 80, 104), dynamic=dynamic, promise=16)
    program = compiled(matmul, f"{TILE} stages=3,2")
    check(matmul, program)
    check(matmul, program, matmul.sizes | dict.fromkeys(dynamic, 40))


BATCHES = [
    ("bmk", "bkn", "bmn"),
    ("bmk", "bnk", "bmn"),
    ("mk", "bkn", "bmn"),
    ("bmk", "kn", "bmn"),
    ("mbk", "bkn", "bmn"),
    ("bmk", "bkn", "mn"),
    ("mbk", "nbk", "mn"),
]


@pytest.mark.parametrize("maps", BATCHES, ids=",".join)
@pytest.mark.parametrize("stages", ["1,1", "3,2"])
@pytest.mark.parametrize("dynamic", ["", "bmnk"])
def test_batches(maps: tuple[str, str, str], stages: str, dynamic: str) -> None:
    """Also those that share an operand, and those that are reduced."""
    matmul = Matmul(sizes(72, 40, 72, b=3), maps, dynamic, promise=16 if dynamic else 0)
    program = compiled(matmul, f"{TILE} stages={stages}")
    check(matmul, program)
    if dynamic:
        check(matmul, program, sizes(8, 8, 40, b=1))
        check(matmul, program, sizes(8, 8, 40, b=0))


@pytest.mark.parametrize("dynamic", ["", "bhmnk"])
def test_batches_of_batches(dynamic: str) -> None:
    """As heads of attention are: one loop over all, pipelined as any other."""
    matmul = Matmul(
        sizes(72, 40, 104, b=2, h=3),
        ("bhmk", "bhnk", "bhmn"),
        dynamic,
        promise=16 if dynamic else 0,
    )
    program = compiled(matmul, f"{TILE} stages=3,2")
    (kernel,) = program.function.kernels
    assert {pipeline.stages for pipeline in kernel.pipelines} == {2, 3}
    check(matmul, program)
    if dynamic:
        check(matmul, program, sizes(8, 8, 40, b=3, h=1))
        check(matmul, program, sizes(8, 8, 104, b=0, h=2))


VECTORS = [
    ("mk", "k", "m"),
    ("k", "kn", "n"),
    ("k", "nk", "n"),
    ("bmk", "bk", "bm"),
    ("bk", "bkn", "bn"),
]


@pytest.mark.parametrize("maps", VECTORS, ids=",".join)
@pytest.mark.parametrize("dynamic", ["", "bmnk"])
def test_vectors(maps: tuple[str, str, str], dynamic: str) -> None:
    matmul = Matmul(sizes(72, 200, 104, b=2), maps, dynamic)
    check(matmul, compiled(matmul, "block=16,64,32 warp=16,64 stages=3,2"))


@pytest.mark.parametrize("stages", ["1,1", "3,2"])
@pytest.mark.parametrize(
    ("shape", "pitch"),
    [
        (sizes(64, 64, 64), (8, 16, 4)),
        (sizes(70, 66, 77), (3, 6, 2)),  # rows of 80, 72 and 68 elements
        (sizes(70, 66, 77), (1, 1, 1)),
    ],
)
def test_strides(shape: dict[str, int], pitch: tuple[int, ...], stages: str) -> None:
    """Elements between rows are neither used nor written."""
    matmul = Matmul(shape, pitch=(pitch[0], pitch[1], pitch[2]), init="read")
    check(matmul, compiled(matmul, f"{TILE} stages={stages}"))


def test_offsets() -> None:
    """Views that the function itself takes, at aligned and at odd offsets."""
    text = """
      func.func @views(%A: memref<100x96xf16>, %B: memref<96x72xf16>,
                       %C: memref<100x72xf32>, %i: index) {
        %a = memref.subview %A[2, ROW][70, 64][1, 1] : memref<100x96xf16>
          to memref<70x64xf16, strided<[96, 1], offset: OFFSET>>
        %b = memref.subview %B[8, 0][64, 64][1, 1] : memref<96x72xf16>
          to memref<64x64xf16, strided<[72, 1], offset: 576>>
        %c = memref.subview %C[4, 3][70, 64][1, 1] : memref<100x72xf32>
          to memref<70x64xf32, strided<[72, 1], offset: 291>>
        linalg.matmul ins(%a, %b : memref<70x64xf16, strided<[96, 1], offset: OFFSET>>,
                                   memref<64x64xf16, strided<[72, 1], offset: 576>>)
          outs(%c : memref<70x64xf32, strided<[72, 1], offset: 291>>)
        return
      }""".replace(", %i: index", "")
    for row in (16, 5):
        source = text.replace("ROW", str(row)).replace("OFFSET", str(192 + row))
        options = compiler.Options(
            schedule=Schedule.parse(f"{TILE} stages=3,2"), use_ptxas=False
        )
        program = Program(
            compiler.compile_source(inputs.read(source), options), device="emulator"
        )
        random = np.random.default_rng(row)
        a = random.uniform(-1, 1, (100, 96)).astype("f2")
        b = random.uniform(-1, 1, (96, 72)).astype("f2")
        c = random.uniform(-1, 1, (100, 72)).astype("f4")
        expected = c.astype("f8")
        expected[4:74, 3:67] += a[2:72, row : row + 64].astype("f8") @ b[8:72, :64]
        program(a, b, c)
        np.testing.assert_allclose(c, expected, atol=64 * 2.0**-22, rtol=0)


@pytest.mark.parametrize("init", ["zero", "read", "copy"])
@pytest.mark.parametrize(
    "shape", [sizes(70, 66, 0), sizes(0, 66, 8), sizes(66, 0, 8), sizes(0, 0, 0)]
)
def test_empty_dimensions(shape: dict[str, int], init: str) -> None:
    """Without terms C is its initial value; C without elements is unchanged."""
    matmul = Matmul(shape, init=init)
    check(matmul, compiled(matmul, f"{TILE} stages=3,2"))


def test_no_batch() -> None:
    matmul = Matmul(sizes(72, 72, 72, b=0), ("bmk", "bkn", "bmn"))
    check(matmul, compiled(matmul, f"{TILE} stages=3,2"))


def test_tensors_of_any_size() -> None:
    """Results are output arrays, of sizes that the inputs give."""
    text = """
      func.func @matmul(%A: tensor<?x?xf16>, %B: tensor<?x?xf16>) -> tensor<?x?xf32> {
        %zero = arith.constant 0.0 : f32
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %m = tensor.dim %A, %c0 : tensor<?x?xf16>
        %n = tensor.dim %B, %c1 : tensor<?x?xf16>
        %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
        %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>)
          -> tensor<?x?xf32>
        %r = linalg.matmul ins(%A, %B : tensor<?x?xf16>, tensor<?x?xf16>)
          outs(%filled : tensor<?x?xf32>) -> tensor<?x?xf32>
        return %r : tensor<?x?xf32>
      }"""
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text), options)
    shapes = [parameter.shape for parameter in bundle.functions[0].parameters]
    assert shapes == [("M", "K"), ("K", "N"), ("M", "N")]
    matmul = Matmul(sizes(33, 40, 72))
    check(matmul, Program(bundle, device="emulator"))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            [(64, 64), (32, 64), (64, 64)],
            r"argument 2 \('arg1'\) has shape 32x64, expected 64xN: K is 64",
        ),
        (
            [(64, 64), (64, 72), (64, 64)],
            r"argument 3 \('arg2'\) has shape 64x64, expected 64x72: M is 64, N is 72",
        ),
        (
            [(64, 36), (36, 64), (64, 64)],
            r"argument 1 \('arg0'\) has rows of 72 bytes, but the function promises "
            "multiples of 16",
        ),
    ],
)
def test_sizes_that_do_not_fit(shapes: list[tuple[int, int]], message: str) -> None:
    """One line, before anything runs."""
    program = compiled(Matmul({}, dynamic="mnk", promise=16), f"{TILE} stages=2,1")
    kinds = ("f2", "f2", "f4")
    arrays = [np.zeros(s, kind) for s, kind in zip(shapes, kinds, strict=True)]
    with pytest.raises(LaunchError, match=f"^{message}$"):
        program(*arrays)


def test_strides_that_do_not_fit() -> None:
    matmul = Matmul(sizes(64, 64, 64), pitch=(8, 0, 0))
    program = compiled(matmul, f"{TILE} stages=2,1")
    _, b, c = matmul.arrays()
    message = r"'arg0'\) has strides of 128x2 bytes, expected 144x2"
    with pytest.raises(LaunchError, match=message):
        program(np.zeros((64, 64), "f2"), b, c)
