"""Kernels for sm_90a that multiply tf32, floats of eight bits and bytes by wgmma.

Operands are stored along K, M x K and N x K. Values of floats of eight bits are decoded
by `test_eight_bit_floats.py`, rounding to tf32 is done here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from test_eight_bit_floats import LARGEST, ROUNDING, SCALED, decoded, drawn
from test_warp_roles import MODES, run

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Partial
from alcop_mlir.target import find_target

Array = np.ndarray
E4, E5 = "f8E4M3FN", "f8E5M2"
ONE = {E4: 0x38, E5: 0x3C}  # bits of 1.0
NUMPY = {"f32": np.float32, "i8": np.int8, "i32": np.int32, E4: np.uint8, E5: np.uint8}
DIMS = {"n": ("m, k", "k, n"), "t": ("k, m", "n, k")}


@dataclass(frozen=True)
class Case:
    """C = A * B of these types, which are multiplied by `instruction`."""

    a: str
    b: str
    out: str
    instruction: str
    layout: str = "nt"

    def shapes(self, m: int, n: int, k: int) -> tuple[tuple[int, int], tuple[int, int]]:
        a = (m, k) if self.layout[0] == "n" else (k, m)
        return a, ((k, n) if self.layout[1] == "n" else (n, k))

    def text(self, m: int, n: int, k: int) -> str:
        kinds = [
            f"memref<{rows}x{columns}x{kind}>"
            for (rows, columns), kind in zip(
                (*self.shapes(m, n, k), (m, n)), (self.a, self.b, self.out), strict=True
            )
        ]
        a, b, c = kinds
        is_integer = self.out == "i32"
        letter, zero = ("i", "0") if is_integer else ("f", "0.0")
        wide = [
            ""
            if kind == self.out
            else f"%w{name} = arith.ext{'s' if is_integer else ''}{letter} %{name} : "
            f"{kind} to {self.out}"
            for name, kind in (("a", self.a), ("b", self.b))
        ]
        left, right = (
            f"%w{name}" if text else f"%{name}"
            for name, text in zip("ab", wide, strict=True)
        )
        return f"""
          func.func @f(%A: {a}, %B: {b}, %C: {c}) {{
            %z = arith.constant {zero} : {self.out}
            linalg.fill ins(%z : {self.out}) outs(%C : {c})
            linalg.generic {{
              indexing_maps = [affine_map<(m, n, k) -> ({DIMS[self.layout[0]][0]})>,
                               affine_map<(m, n, k) -> ({DIMS[self.layout[1]][1]})>,
                               affine_map<(m, n, k) -> (m, n)>],
              iterator_types = ["parallel", "parallel", "reduction"]
            }} ins(%A, %B : {a}, {b}) outs(%C : {c}) {{
            ^bb0(%a: {self.a}, %b: {self.b}, %c: {self.out}):
              {wide[0]}
              {wide[1]}
              %p = arith.mul{letter} {left}, {right} : {self.out}
              %s = arith.add{letter} %c, %p : {self.out}
              linalg.yield %s : {self.out}
            }}
            return
          }}"""

    def operands(self, m: int, n: int, k: int, exact: bool = True) -> list[Array]:
        """exact: of which no sum is rounded, in any order."""
        random = np.random.default_rng(m + n + k)
        shapes = zip(self.shapes(m, n, k), (self.a, self.b), strict=True)
        return [_drawn(random, shape, kind, exact) for shape, kind in shapes]

    def product(self, a: Array, b: Array) -> Array:
        left, right = (
            decoded(one, kind).astype(np.float64)
            for one, kind in zip((a, b), (self.a, self.b), strict=True)
        )
        left = left if self.layout[0] == "n" else left.T
        return left @ (right if self.layout[1] == "n" else right.T)

    def zeros(self, m: int, n: int) -> Array:
        return np.zeros((m, n), NUMPY[self.out])


def _drawn(
    random: np.random.Generator, shape: tuple[int, int], kind: str, exact: bool
) -> Array:
    if kind == "f32":
        whole = random.integers(-3, 4, shape).astype(np.float32)
        return whole if exact else random.standard_normal(shape, np.float32)
    if kind == "i8":
        return random.integers(-128, 128, shape).astype(np.int8)
    reach = 4 if exact else 24
    bits = random.integers(ONE[kind] - reach, ONE[kind] + reach, shape)
    return (bits | random.integers(0, 2, shape) << 7).astype(np.uint8)


TF32 = Case("f32", "f32", "f32", "m64n{}k8.f32.tf32.tf32")
BYTES = Case("i8", "i8", "i32", "m64n{}k32.s32.s8.s8")
CASES = (
    TF32,
    BYTES,
    Case(E5, E5, "f32", "m64n{}k32.f32.e5m2.e5m2"),
    Case(E4, E5, "f32", "m64n{}k32.f32.e4m3.e5m2"),
)
NAMES = [f"{case.a}-{case.b}" for case in CASES]


def compiled(text: str, schedule: str | None) -> Bundle:
    given = compiler.Options(
        target=find_target("sm_90a"),
        schedule=Partial.parse(schedule) if schedule else None,
        use_ptxas=False,
        allow_tf32=True,
    )
    return compiler.compile_source(inputs.read(text), given)


def code(bundle: Bundle) -> str:
    kernels = bundle.functions[0].kernels
    return "".join(bundle.code_of(kernel).ptx for kernel in kernels)


def schedule_of(case: Case, m: int, n: int, warp: str, row: int, stages: str) -> str:
    """With K steps that are `row` bytes long."""
    step = row // (4 if case is TF32 else 1)
    return f"block={m},{n},{step} warp={warp} stages={stages} engine=wgmma"


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_order_of_time_is_clean_and_right(case: Case) -> None:
    """Two warpgroups, an edge along each dimension, a ring that goes round."""
    step = 32 if case is TF32 else 128
    m, n, k = 100, 24, 5 * step + 16
    bundle = compiled(
        case.text(m, n, k), schedule_of(case, 128, 16, "16,16", 128, "3,2")
    )
    assert case.instruction.format(16) in code(bundle)
    a, b = case.operands(m, n, k)
    for mode in MODES:
        got = run(bundle, [a, b, case.zeros(m, n)], mode)
        np.testing.assert_array_equal(got, case.product(a, b))


@pytest.mark.parametrize(
    ("block", "warp", "row", "stages"),
    [
        # Two instructions, that share groups of 8 rows; a swizzle of 64 bytes.
        ((256, 32), "32,32", 64, "2,1"),
        # One warpgroup, two boxes side by side along K.
        ((64, 48), "16,48", 256, "4,3"),
        # The narrowest swizzle of tf32, and of bytes the next one.
        ((128, 16), "16,16", 64, "4,2"),
    ],
)
@pytest.mark.parametrize("case", CASES[:3], ids=NAMES[:3])
def test_tiles_and_swizzles(
    case: Case, block: tuple[int, int], warp: str, row: int, stages: str
) -> None:
    m, n, k = 200, 40, 256 if case is TF32 else 768
    bundle = compiled(case.text(m, n, k), schedule_of(case, *block, warp, row, stages))
    assert case.instruction.format(warp.split(",")[1]) in code(bundle)
    a, b = case.operands(m, n, k)
    for mode in (MODES[0], MODES[-1]):
        got = run(bundle, [a, b, case.zeros(m, n)], mode)
        np.testing.assert_array_equal(got, case.product(a, b))


@pytest.mark.parametrize("case", [TF32, CASES[-1]], ids=[NAMES[0], NAMES[-1]])
def test_no_stage_changes_a_bit(case: Case) -> None:
    m, n, k = 64, 16, 256 if case is TF32 else 1024
    a, b = case.operands(m, n, k, exact=False)
    found = [
        run(
            compiled(
                case.text(m, n, k), schedule_of(case, 64, 16, "16,16", 64, stages)
            ),
            [a, b, case.zeros(m, n)],
        )
        for stages in ("2,1", "3,2", "4,3")
    ]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    want = case.product(a, b)
    error = np.abs(found[0] - want)
    bound = np.abs(decoded(a, case.a)) @ np.abs(decoded(b, case.b)).T
    # Of tf32 operands are rounded, by 2^-11 each.
    scale = 2.0**-10 if case is TF32 else k * 2.0**-23
    assert (error <= scale * bound).all()


def tf32(x: Array) -> Array:
    """Rounded to nearest, ties to even: ten bits of fraction."""
    bits = x.view(np.uint32).astype(np.uint64)
    low = bits & 0x1FFF
    up = (low > 0x1000) | ((low == 0x1000) & (bits >> 13 & 1 == 1))
    return (
        ((bits - low + (up.astype(np.uint64) << 13)) & 0xFFFFFFFF)
        .astype(np.uint32)
        .view(np.float32)
    )


def test_f32_is_rounded_to_tf32_where_it_is_copied() -> None:
    """To nearest: wgmma alone would truncate, with twice the error."""
    m, n, k = 64, 16, 96
    bundle = compiled(TF32.text(m, n, k), schedule_of(TF32, 64, 16, "16,16", 64, "3,2"))
    random = np.random.default_rng(2)
    a = random.standard_normal((m, k)).astype(np.float32)
    # Ties, down and up; what carries into the exponent; infinity.
    bits = [0x3F801000, 0x3F803000, 0x3FFFFFFF, 0x7F800000]
    a[:4, 0] = np.array(bits, np.uint32).view(np.float32)
    a[:4, 1:] = 0
    one = np.zeros((n, k), np.float32)
    one[np.arange(n), np.arange(n)] = 1  # C is a part of A, rounded
    one[:, 0] = 1
    a[4:, 0] = 0
    got = run(bundle, [a, one, np.zeros((m, n), np.float32)])
    want = tf32(a)[:, :n].copy()
    want[:4] = want[:4, :1]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got[:3], want[:3])
    np.testing.assert_array_equal(got[4:, 1:], want[4:, 1:])
    assert not np.array_equal(want[4:], a[4:, :n])
    truncated = (a.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    assert not np.array_equal(got[4:, 1:], truncated[4:, 1:n])


@pytest.mark.parametrize("case", [TF32, CASES[-1]], ids=[NAMES[0], NAMES[-1]])
def test_batches_have_maps_of_three_dimensions(case: Case) -> None:
    m, n, k = 40, 24, 160
    text = case.text(m, n, k)
    for size in (m, n):
        text = text.replace(f"memref<{size}x", f"memref<3x{size}x")
    text = text.replace("(m, n, k) -> (", "(b, m, n, k) -> (b, ")
    text = text.replace('["parallel", ', '["parallel", "parallel", ')
    bundle = compiled(text, schedule_of(case, 64, 32, "16,32", 128, "3,2"))
    assert case.instruction.format(32) in code(bundle)
    a, b = (np.stack([one, one[::-1], one[:, ::-1]]) for one in case.operands(m, n, k))
    c = np.stack([case.zeros(m, n)] * 3)
    want = [case.product(*pair) for pair in zip(a, b, strict=True)]
    np.testing.assert_array_equal(run(bundle, [a, b, c]), want)


@pytest.mark.parametrize("case", [TF32, CASES[-1]], ids=[NAMES[0], NAMES[-1]])
def test_extreme_numbers_are_within_the_bound(case: Case) -> None:
    """By the reference: infinities, NaN, denormals, the largest; tf32 is rounded."""
    bundle = compiled(
        case.text(128, 64, 512), schedule_of(case, 64, 64, "16,64", 128, "3,2")
    )
    function = bundle.functions[0]
    before = checking.random_arrays(function, seed=1)
    after = {name: array.copy() for name, array in before.items()}
    given = [after[one.name] for one in function.parameters]
    Program(bundle, device="emulator")(*given)
    assert checking.check(function, before, after).ok


@pytest.mark.parametrize("out", ["bf16", E4])
def test_scales_are_computed_on_accumulators(out: str) -> None:
    """Of the tensor, of rows and of columns, as torch._scaled_mm has them."""
    bundle = compiled(
        SCALED.replace("OUT", out), "block=64,48,32 warp=16,48 stages=3,2 engine=wgmma"
    )
    (kernel,) = bundle.functions[0].kernels
    assert "m64n48k32.f32.e4m3.e5m2" in code(bundle)
    assert kernel.block == (256, 1, 1)
    a, b = drawn((48, 96), E4, 1), drawn((80, 96), E5, 2)
    random = np.random.default_rng(3)
    rows, columns = (random.uniform(1, 40, n).astype(np.float32) for n in (48, 80))
    whole = np.array(0.25, np.float32)
    c = np.zeros((48, 80), np.uint16 if out == "bf16" else np.uint8)
    got = decoded(run(bundle, [a, b, whole, rows, columns, c]), out)
    exact = (decoded(a, E4) @ decoded(b, E5).T) * 0.25 * rows[:, None] * columns
    limit = LARGEST.get(out, np.inf)
    error = np.abs(got - np.clip(exact, -limit, limit))
    assert (error <= ROUNDING[out] * 1.01 * np.abs(exact) + 1e-3).all()


def test_rows_across_k_are_multiplied_by_mma_sync(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Where wgmma is asked for: of the types as they are, which PTX has."""
    case = Case(E4, E5, "f32", "", "nn")
    m, n, k = 64, 64, 256
    schedule = schedule_of(case, 64, 64, "16,64", 128, "2,2")
    bundle = compiled(case.text(m, n, k), schedule)
    assert (
        "mma.sync instead of wgmma: 'vector.contract' is not computed by wgmma: an "
        "operand of f8E5M2 is "
        "stored across K, expected along K, or f16 or bf16"
    ) in capfd.readouterr().err
    assert "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2" in code(bundle)
    a, b = case.operands(m, n, k)
    got = run(bundle, [a, b, case.zeros(m, n)])
    np.testing.assert_array_equal(got, case.product(a, b))


# -- what is chosen --------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_wgmma_is_chosen(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    """In parts of K, which a second kernel adds up; 2048 would be too short for it."""
    m, n, k = 128, 64, 4096
    bundle = compiled(case.text(m, n, k), None)
    schedule = bundle.functions[0].kernels[0].schedule
    assert schedule is not None
    assert (schedule.engine, schedule.split_k) == ("wgmma", 4)
    assert "remark" not in capfd.readouterr().err
    a, b = case.operands(m, n, k)
    got = run(bundle, [a, b, case.zeros(m, n)])
    np.testing.assert_array_equal(got, case.product(a, b))


@pytest.mark.parametrize(
    ("case", "sizes", "message"),
    [
        (
            Case(E4, E5, "f32", "", "nn"),
            (64, 64, 512),
            ", as f16, instead of wgmma: B of f8E4M3FN and f8E5M2 is stored across K, "
            "expected along K, or f16 or bf16",
        ),
        (
            Case("i8", "i8", "i32", "", "tn"),
            (64, 64, 512),
            " instead of wgmma: A and B of i8 are stored across K",
        ),
        (
            Case("f32", "f32", "f32", "", "tt"),
            (64, 64, 512),
            " instead of wgmma: A of tf32 is stored across K",
        ),
        (
            Case("i8", "i8", "i32", ""),
            (64, 64, 520),
            "rows of A are known to begin at multiples of 8 bytes, expected 16",
        ),
        (
            Case(E4, E4, "f32", ""),
            (16, 64, 512),
            ", as f16, instead of wgmma: C of 16 x 64 fills less than half of a tile",
        ),
        (
            Case("f32", "f32", "f32", ""),
            (64, 64, 64),
            "K is 64, expected 96 at least to fill a ring",
        ),
    ],
)
def test_a_remark_says_why_mma_sync_multiplies(
    case: Case,
    sizes: tuple[int, int, int],
    message: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    bundle = compiled(case.text(*sizes), None)
    assert "remark: multiplied by mma.sync" in (said := capfd.readouterr().err)
    assert message in said
    assert "wgmma" not in code(bundle)
    a, b = case.operands(*sizes)
    got = run(bundle, [a, b, case.zeros(*sizes[:2])])
    np.testing.assert_array_equal(got, case.product(a, b))
