"""mma.sync of the shapes and types that are rare, against whole matrices.

Where each element lies is written here as the PTX ISA says it, case by case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from kernel_text import run_kernel
from warp_multiply import Place, placed, registers, run

from alcop_mlir.errors import EmulationError


@dataclass(frozen=True)
class Form:
    """A shape of integers or bits: how many elements a lane has, and which."""

    shape: str
    bits: int
    a_count: int
    b_count: int
    a: Place
    b: Place

    @property
    def sizes(self) -> tuple[int, int]:
        rows, rest = self.shape[1:].split("n8k")
        return int(rows), int(rest)


def c_place(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


FORMS = [
    Form(
        "m8n8k16",
        8,
        4,
        4,
        lambda lane, i: (lane >> 2, lane % 4 * 4 + i),
        lambda lane, i: (lane % 4 * 4 + i, lane >> 2),
    ),
    Form(
        "m8n8k32",
        4,
        8,
        8,
        lambda lane, i: (lane >> 2, lane % 4 * 8 + i),
        lambda lane, i: (lane % 4 * 8 + i, lane >> 2),
    ),
    Form(
        "m16n8k32",
        4,
        16,
        8,
        lambda lane, i: ((lane >> 2) + (8 if i >= 8 else 0), lane % 4 * 8 + (i & 7)),
        lambda lane, i: (lane % 4 * 8 + i, lane >> 2),
    ),
    Form(
        "m16n8k64",
        4,
        32,
        16,
        lambda lane, i: (
            (lane >> 2) + (0 if i < 8 or 16 <= i < 24 else 8),
            lane % 4 * 8 + (i & 7) + (32 if i >= 16 else 0),
        ),
        lambda lane, i: (lane % 4 * 8 + (i & 7) + (32 if i >= 8 else 0), lane >> 2),
    ),
    Form(
        "m8n8k128",
        1,
        32,
        32,
        lambda lane, i: (lane >> 2, lane % 4 * 32 + i),
        lambda lane, i: (lane % 4 * 32 + i, lane >> 2),
    ),
    Form(
        "m16n8k128",
        1,
        64,
        32,
        lambda lane, i: ((lane >> 2) + (8 if i >= 32 else 0), lane % 4 * 32 + i % 32),
        lambda lane, i: (lane % 4 * 32 + i, lane >> 2),
    ),
    Form(
        "m16n8k256",
        1,
        128,
        64,
        lambda lane, i: (
            (lane >> 2) + (0 if i < 32 or 64 <= i < 96 else 8),
            lane % 4 * 32 + i % 32 + (128 if i >= 64 else 0),
        ),
        lambda lane, i: (lane % 4 * 32 + i % 32 + (128 if i >= 32 else 0), lane >> 2),
    ),
]
TYPES = {8: ("s8", "u8"), 4: ("s4", "u4"), 1: ("b1",)}
CASES = [
    (form, a, b, end)
    for form in FORMS
    for a in TYPES[form.bits]
    for b in TYPES[form.bits]
    for end in ((".xor.popc", ".and.popc") if form.bits == 1 else ("", ".satfinite"))
]


def meaning(kind: str, bits: np.ndarray, width: int) -> np.ndarray:
    signed = kind[0] == "s"
    return bits - (1 << width) * (signed & (bits >> (width - 1) == 1))


@pytest.mark.parametrize(
    ("form", "a_kind", "b_kind", "end"),
    CASES,
    ids=lambda x: x.shape if isinstance(x, Form) else None,
)
def test_integers_and_bits(form: Form, a_kind: str, b_kind: str, end: str) -> None:
    generator = np.random.default_rng(len(form.shape) + form.bits)
    rows, depth = form.sizes
    a = generator.integers(0, 1 << form.bits, (rows, depth))
    b = generator.integers(0, 1 << form.bits, (depth, 8))
    ends = np.array([-(2**31), -3, 0, 12345, 2**31 - 3, 2**31 - 1])
    c = generator.choice(ends, (rows, 8))
    given = [
        registers(a, form.bits, form.a_count, form.a),
        registers(b, form.bits, form.b_count, form.b),
        registers(c, 32, rows // 4, c_place),
    ]
    middle, after = ("", end) if form.bits == 1 else (end, "")
    opcode = f"mma.sync.aligned.{form.shape}.row.col{middle}"
    words = run(f"{opcode}.s32.{a_kind}.{b_kind}.s32{after}", given, rows // 4)
    got = placed(words, np.int32, (rows, 8), c_place)
    if end == ".xor.popc":
        exact = (a[:, :, None] != b[None]).sum(axis=1) + c
    elif end == ".and.popc":
        exact = (a[:, :, None] & b[None]).sum(axis=1) + c
    else:
        left, right = meaning(a_kind, a, form.bits), meaning(b_kind, b, form.bits)
        exact = left @ right + c
    if end == ".satfinite":
        exact = np.clip(exact, -(2**31), 2**31 - 1)
    np.testing.assert_array_equal(got, exact.astype(np.int64).astype(np.int32))


MODES = ["", ".rn", ".rz", ".rm", ".rp"]
# Rows and columns of K of the elements of A, by shape: those of the rows 8 and more
# take turns with the others, and each pair has four columns of its own.
DOUBLES = {
    "m8n8k4": [(0, 0)],
    "m16n8k4": [(0, 0), (8, 0)],
    "m16n8k8": [(0, 0), (8, 0), (0, 4), (8, 4)],
    "m16n8k16": [(row, k) for k in (0, 4, 8, 12) for row in (0, 8)],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", DOUBLES)
def test_f64(shape: str, mode: str) -> None:
    generator = np.random.default_rng(5)
    rows, depth = map(int, shape[1:].split("n8k"))
    a = generator.standard_normal((rows, depth))
    b = generator.standard_normal((depth, 8))
    c = generator.standard_normal((rows, 8)) * 1e-3
    held = DOUBLES[shape]

    def bits(x: np.ndarray) -> np.ndarray:
        return x.view(np.uint64)

    def a_place(lane: int, i: int) -> tuple[int, int]:
        row, column = held[i]
        return row + (lane >> 2), column + lane % 4

    count = rows // 4
    given = [
        registers(bits(a), 64, len(held), a_place),
        registers(
            bits(b), 64, depth // 4, lambda lane, i: (4 * i + lane % 4, lane >> 2)
        ),
        registers(bits(c), 64, count, c_place),
    ]
    opcode = f"mma.sync.aligned.{shape}.row.col{mode}.f64.f64.f64.f64"
    words = run(opcode, given, count, result_bits=64, target="sm_90")
    got = placed(words, np.float64, (rows, 8), c_place)
    np.testing.assert_allclose(got, a @ b + c, rtol=0, atol=1e-14 * depth / 4)
    if mode in (".rm", ".rp"):
        low, high = (got, exact_sum(a, b, c))
        assert np.all(low <= high) if mode == ".rm" else np.all(low >= high)


@pytest.mark.parametrize("shape", [shape for shape in DOUBLES if shape != "m8n8k4"])
def test_larger_shapes_of_f64_are_of_sm_90(shape: str) -> None:
    rows, depth = map(int, shape[1:].split("n8k"))
    sizes = [rows * depth // 32, depth // 4, rows // 4]
    given = [np.zeros((32, size), np.uint64) for size in sizes]
    opcode = f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64"
    with pytest.raises(EmulationError, match="sm_90"):
        run(opcode, given, rows // 4, result_bits=64, target="sm_89")


def exact_sum(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    wide = np.longdouble
    return a.astype(wide) @ b.astype(wide) + c.astype(wide)


# m8n8k4 of f16: four matmuls, in lanes 4 p to 4 p + 3 and 16 lanes later -------------


def quad_a(layout: str, lane: int, i: int) -> tuple[int, int]:
    upper = 4 if lane >= 16 else 0
    return (lane % 4 + upper, i) if layout == "row" else (i % 4 + upper, lane % 4)


def quad_b(layout: str, lane: int, i: int) -> tuple[int, int]:
    upper = 4 if lane >= 16 else 0
    return (lane % 4, i + upper) if layout == "row" else (i, lane % 4 + upper)


def quad_c(kind: str, lane: int, i: int) -> tuple[int, int]:
    upper = 4 if lane >= 16 else 0
    if kind == "f16":
        return lane % 4 + upper, i
    return (lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)


@pytest.mark.parametrize("b_layout", ["row", "col"])
@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize(
    ("d_kind", "c_kind"), [("f16", "f16"), ("f32", "f16"), ("f32", "f32")]
)
def test_four_products(a_layout: str, b_layout: str, d_kind: str, c_kind: str) -> None:
    generator = np.random.default_rng(9)

    def product_of(lane: int) -> int:
        return lane % 16 // 4

    a = generator.integers(-8, 9, (4, 8, 4)).astype(np.float16)
    b = generator.integers(-8, 9, (4, 4, 8)).astype(np.float16)
    c = generator.integers(-8, 9, (4, 8, 8)).astype(
        np.float16 if c_kind == "f16" else np.float32
    )

    def words(x: np.ndarray, count: int, place: Place) -> np.ndarray:
        width = 8 * x.dtype.itemsize
        bits = x.view(f"u{x.dtype.itemsize}")

        def whole(lane: int, i: int) -> tuple[int, int]:
            return (product_of(lane), *place(lane, i))  # type: ignore[return-value]

        return registers(bits, width, count, whole)

    given = [
        words(a, 4, lambda lane, i: quad_a(a_layout, lane, i)),
        words(b, 4, lambda lane, i: quad_b(b_layout, lane, i)),
        words(c, 8, lambda lane, i: quad_c(c_kind, lane, i)),
    ]
    opcode = f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}"
    count = 4 if d_kind == "f16" else 8
    found = run(f"{opcode}.{d_kind}.f16.f16.{c_kind}", given, count)
    dtype = np.float16 if d_kind == "f16" else np.float32
    held = found.view(dtype).reshape(32, 8)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    for lane in range(32):
        for i in range(8):
            row, column = quad_c(d_kind, lane, i)
            assert held[lane, i] == exact[product_of(lane), row, column]


# 8-bit floats -------------------------------------------------------------------------


def eight_bits(kind: str) -> np.ndarray:
    """The value of every byte: f16 has the exponent of e5m2, and f32 that of e4m3."""
    byte = np.arange(256)
    if kind == "e5m2":
        return (byte.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    size = byte & 0x7F
    power = np.where(size >> 3, (size >> 3) - 7.0, -6.0)
    value = ((size & 7) / 8 + (size >> 3 > 0)) * 2.0**power
    return np.where(byte > 127, -value, value)


@pytest.mark.parametrize("result", ["f32", "f16"])
@pytest.mark.parametrize("b_kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("a_kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("depth", [16, 32])
def test_eight_bit_floats(depth: int, a_kind: str, b_kind: str, result: str) -> None:
    generator = np.random.default_rng(depth)

    def small(shape: tuple[int, int]) -> np.ndarray:
        """Numbers around 1, of either sign."""
        size = generator.integers(0x30, 0x40, shape)
        return size | generator.integers(0, 2, shape) << 7

    a, b = small((16, depth)), small((depth, 8))
    dtype = np.float16 if result == "f16" else np.float32
    c = generator.integers(-4, 5, (16, 8)).astype(dtype)
    width = 8 * c.dtype.itemsize
    given = [
        registers(
            a,
            8,
            depth // 2,
            lambda lane, i: (
                (lane >> 2) + 8 * (i // 4 % 2),
                lane % 4 * 4 + (i & 3) + 16 * (i // 8),
            ),
        ),
        registers(
            b,
            8,
            depth // 4,
            lambda lane, i: (lane % 4 * 4 + (i & 3) + 16 * (i // 4), lane >> 2),
        ),
        registers(c.view(f"u{c.dtype.itemsize}"), width, 4, c_place),
    ]
    opcode = f"mma.sync.aligned.m16n8k{depth}.row.col.{result}.{a_kind}.{b_kind}"
    words = run(
        f"{opcode}.{result}", given, 2 if result == "f16" else 4, target="sm_89"
    )
    got = placed(words, dtype, (16, 8), c_place)
    exact = eight_bits(a_kind)[a] @ eight_bits(b_kind)[b] + c
    tolerance = 2.0**-9 if result == "f16" else 2.0**-20
    assert np.all(np.abs(got - exact) <= tolerance * (1 + np.abs(exact)))


# What is no form ----------------------------------------------------------------------

A4, A2, A1 = "{%a0, %a1, %a2, %a3}", "{%a0, %a1}", "{%a0}"


@pytest.mark.parametrize(
    "text",
    [
        f"mma.sync.aligned.m8n8k16.row.col.s32.s8.f16.s32 {A2}, {A1}, {A1}, {A2}",
        f"mma.sync.aligned.m8n8k16.row.col.f32.s8.s8.f32 {A2}, {A1}, {A1}, {A2}",
        f"mma.sync.aligned.m8n8k16.col.row.s32.s8.s8.s32 {A2}, {A1}, {A1}, {A2}",
        f"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {A2}, {A2}, {A1}, {A2}",
        f"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {A2}, {A1}, {A1}",
        "mma.sync.aligned.m16n8k4.row.col.f32.f64.f64.f32 "
        "{%a0, %a1, %a2, %a3}, {%d0, %d1}, {%d0}, {%a0, %a1, %a2, %a3}",
        "mma.sync.aligned.m8n8k16.row.col.f64.f64.f64.f64 "
        "{%d0, %d1}, {%d0, %d1, %d2, %d3}, {%d0, %d1, %d2, %d3}, {%d0, %d1}",
        f"mma.sync.aligned.m16n8k32.row.col.s32.s4.s4 {A4}, {A2}, {A1}, {A4}",
        "mma.sp.sync.aligned.m16n8k999999999.row.col.f32.f16.f16.f32 "
        f"{A4}, {A4}, {A4}, {A4}, %a0, 0",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        f"{A4}, {A4}, {A4}, {A4}, %a0, 2",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        f"{A4}, {A4}, {A4}, {A4}, %a0, %a1",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
        "wmma.load.a.sync.aligned.row.m999999999n9k9.shared.f16 {%a0}, [%p]",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared {%a0}, [%p]",
        "wmma.load.a.sync.aligned.row.shared.f16 {%a0}, [%p]",
        f"wmma.load.b.sync.aligned.row.m8n8k32.shared.s4 {A1}, [%p]",
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f16",
        "wmma.mma.sync.aligned.row.col.m16n16k16.f32",
        "vadd4.s32.s32.s32 %a0, %a1.b12, %a2, %a3",
        "vadd.s32.s32.s32 %a0, %a1.b7, %a2",
        "vset.s32.s32.no %a0, %a1, %a2",
        "vadd.s32.s32.s32.add %a0, %a1, %a2",
        "add.s32 %a0, -%a1, %a2",
        "add.s32 %a0.b0, %a1, %a2",
        "cvt.pack.sat.u99.s32 %a0, %a1, %a2",
        "lop3.nor.b32 %a0|%q, %a1, %a2, %a3, 1, %q",
        "createpolicy.fractional.L2::evict_last.b64 %a0",
    ],
)
def test_what_is_no_form_is_an_error_of_one_line(text: str) -> None:
    body = f".reg .b32 %a<4>; .reg .b64 %p, %d<4>; .reg .pred %q;\n{text};\nret;"
    with pytest.raises(EmulationError, match=r"^PTX line 9: [^\n]*$"):
        run_kernel(body, [], [])
