"""End to end: right numbers and no bank conflict for every layout and type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program, grid_of
from alcop_mlir.schedule import Schedule

LAYOUTS = ("nn", "nt", "tn", "tt")  # "t": A is stored k x m, B is stored n x k
K_STEPS = {"f16": 32, "bf16": 32, "f32": 16, "i8": 64}
PLAIN_OUTPUT = {"f16": "f32", "bf16": "f32", "f32": "f32", "i8": "i32"}
STAGES = ((1, 1), (1, 2), (3, 1), (3, 2))
SIZE = 64  # M and N: four warps of 32 x 32
TILES = 4  # along K


@dataclass(frozen=True)
class Matmul:
    """`C = A * B`, or `C += A * B`, of type `kind` into `out`."""

    kind: str
    out: str
    layout: str
    reads_c: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        k = TILES * K_STEPS[self.kind]
        a = (SIZE, k) if self.layout[0] == "n" else (k, SIZE)
        b = (k, SIZE) if self.layout[1] == "n" else (SIZE, k)
        return a, b, (SIZE, SIZE)

    @property
    def kinds(self) -> tuple[str, str, str]:
        return self.kind, self.kind, self.out

    def text(self) -> str:
        """A linalg.generic that multiplies and adds in the widest of the types."""
        a, b, c = (
            f"memref<{rows}x{columns}x{kind}>"
            for (rows, columns), kind in zip(self.shapes, self.kinds, strict=True)
        )
        a_loops = "m, k" if self.layout[0] == "n" else "k, m"
        b_loops = "k, n" if self.layout[1] == "n" else "n, k"
        fill = f"linalg.fill ins(%z : {self.out}) outs(%C : {c})"
        return f"""
          func.func @matmul(%A: {a}, %B: {b}, %C: {c}) {{
            %z = arith.constant {"0" if self.kind == "i8" else "0.0"} : {self.out}
            {"" if self.reads_c else fill}
            linalg.generic {{
              indexing_maps = [
                affine_map<(m, n, k) -> ({a_loops})>,
                affine_map<(m, n, k) -> ({b_loops})>,
                affine_map<(m, n, k) -> (m, n)>],
              iterator_types = ["parallel", "parallel", "reduction"]
            }} ins(%A, %B : {a}, {b}) outs(%C : {c}) {{
            ^bb0(%a: {self.kind}, %b: {self.kind}, %c: {self.out}):
              {self.body()}
            }}
            return
          }}"""

    def body(self) -> str:
        wide, suffix = ("i32", "i") if self.kind == "i8" else ("f32", "f")
        lines, values = [], []
        for name, kind in zip("abc", self.kinds, strict=True):
            values.append(f"%{name}" if kind == wide else f"%wide_{name}")
            if kind != wide:
                extend = "arith.extsi" if wide == "i32" else "arith.extf"
                lines.append(f"%wide_{name} = {extend} %{name} : {kind} to {wide}")
        a, b, c = values
        lines.append(f"%p = arith.mul{suffix} {a}, {b} : {wide}")
        lines.append(f"%sum = arith.add{suffix} {c}, %p : {wide}")
        if self.out != wide:
            lines.append(f"%out = arith.truncf %sum : {wide} to {self.out}")
        result = "%sum" if self.out == wide else "%out"
        return "\n".join([*lines, f"linalg.yield {result} : {self.out}"])

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(len(self.layout))
        return [
            dtypes.random(random, shape, kind)
            for shape, kind in zip(self.shapes, self.kinds, strict=True)
        ]

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        a, b, c = (
            dtypes.decode(array, kind)
            for array, kind in zip(arrays, self.kinds, strict=True)
        )
        if self.kind == "f32":
            a, b = to_tf32(a), to_tf32(b)
        left = a if self.layout[0] == "n" else a.T
        right = b if self.layout[1] == "n" else b.T
        return left @ right + c * self.reads_c

    def tolerance(self, expected: np.ndarray) -> float:
        if self.kind == "i8":
            return 0.0
        terms = max(self.shapes[0]) * 2.0**-23
        rounding = dtypes.ROUNDING[self.out] if self.out != "f32" else 0.0
        return (terms + rounding) * float(np.abs(expected).max())


def to_tf32(values: np.ndarray) -> np.ndarray:
    """To nearest, ties away from zero."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)


def compiled(matmul: Matmul, schedule: Schedule | None = None) -> Bundle:
    options = compiler.Options(
        schedule=schedule, use_ptxas=False, allow_tf32=matmul.kind == "f32"
    )
    return compiler.compile_source(inputs.read(matmul.text()), options)


def run(matmul: Matmul, schedule: Schedule) -> None:
    """Compile, run, and check numbers, hazards and bank conflicts."""
    bundle = compiled(matmul, schedule)
    (kernel,) = bundle.functions[0].kernels
    arrays = matmul.arrays()
    expected = matmul.expected(arrays)
    result = emulate(
        bundle.code_of(kernel).ptx,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        arrays,
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    assert not result.hazards
    assert result.counters is not None
    assert result.counters.bank_conflicts == 0
    got = dtypes.decode(arrays[2], matmul.out)
    np.testing.assert_allclose(got, expected, atol=matmul.tolerance(expected), rtol=0)


def square(kind: str, stages: tuple[int, int]) -> Schedule:
    return Schedule((SIZE, SIZE, K_STEPS[kind]), (32, 32), stages)


@pytest.mark.parametrize("stages", STAGES, ids=lambda s: f"{s[0]}-{s[1]}")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", K_STEPS)
def test_inputs(kind: str, layout: str, stages: tuple[int, int]) -> None:
    reads_c = stages[1] == 2  # each layout of the accumulators is loaded, too
    run(Matmul(kind, PLAIN_OUTPUT[kind], layout, reads_c), square(kind, stages))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("kind", "out"),
    [
        ("f16", "f16"),
        ("f16", "bf16"),
        ("bf16", "bf16"),
        ("bf16", "f16"),
        ("f32", "f16"),
        ("f32", "bf16"),
    ],
)
def test_outputs(kind: str, out: str, layout: str) -> None:
    run(Matmul(kind, out, layout, reads_c=layout == "tn"), square(kind, (3, 2)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("kind", "step"), [("f32", 16), ("i8", 32)])
def test_narrow_tiles(kind: str, step: int, layout: str) -> None:
    """Rows of 16, 32 and 64 bytes: several rows of a tile share a row of the banks."""
    matmul = Matmul(kind, PLAIN_OUTPUT[kind], layout)
    run(matmul, Schedule((16, 32, step), (16, 16), (2, 2)))
    run(matmul, Schedule((64, 16, step), (32, 16), (2, 2)))


def test_integer_accumulators_wrap_around() -> None:
    """As arith.addi does, and unlike nvgpu.mma.sync."""
    matmul = Matmul("i8", "i32", "nn", reads_c=True)
    bundle = compiled(matmul)
    a, b, c = matmul.arrays()
    a.fill(-128)
    b.fill(-128)
    c.fill(2**31 - 1)
    Program(bundle, device="emulator")(a, b, c)
    total = 2**31 - 1 + 128 * 128 * matmul.shapes[0][1]
    assert (c == total - 2**32).all()


@pytest.mark.parametrize(("kind", "step"), [("i8", 64), ("bf16", 32), ("f32", 16)])
def test_chosen_schedule(kind: str, step: int) -> None:
    """A K step takes 64 bytes of each row, whatever the type."""
    bundle = compiled(Matmul(kind, PLAIN_OUTPUT[kind], "nt"))
    (kernel,) = bundle.functions[0].kernels
    assert kernel.schedule is not None
    assert kernel.schedule.block[2] == step


def test_tf32_is_never_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the option a matmul of f32 is a SIMT fallback, and a remark says so."""
    matmul = Matmul("f32", "f32", "nn")
    bundle = compiler.compile_source(
        inputs.read(matmul.text()), compiler.Options(use_ptxas=False)
    )
    (kernel,) = bundle.function().kernels
    assert kernel.fallback is not None
    assert "mma.sync" not in bundle.code_of(kernel).ptx
    assert "option 'allow-tf32' only" in capsys.readouterr().err


def test_k_step_that_the_type_does_not_have() -> None:
    matmul = Matmul("i8", "i32", "nt")
    with pytest.raises(CompileError, match="expected a multiple of 32 for i8"):
        compiled(matmul, Schedule((64, 64, 16), (32, 32), (2, 1)))
