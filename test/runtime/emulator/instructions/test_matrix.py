"""mma.sync against matmul of float64 and integers; ldmatrix and stmatrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from fragments import SHAPES, accumulator, from_lanes, to_lanes
from hypothesis import given
from kernel_text import run_kernel
from operand_values import FIXED, seeds

TILES = 6  # independent mma per launch, one per warp


@dataclass(frozen=True)
class Multiply:
    """One form of mma.sync: its opcode and the types of A, B and the accumulator."""

    shape: str
    a: str
    b: str
    c: str
    modifier: str = ""

    @property
    def opcode(self) -> str:
        return (
            f"mma.sync.aligned.{self.shape}.row.col{self.modifier}"
            f".{self.c}.{self.a}.{self.b}.{self.c}"
        )


BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8}

FLOAT_KINDS = [
    Multiply(shape, kind, kind, accumulated)
    for shape in ("m16n8k8", "m16n8k16")
    for kind, accumulated in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))
] + [Multiply(shape, "tf32", "tf32", "f32") for shape in ("m16n8k4", "m16n8k8")]

INTEGER_KINDS = [
    Multiply(shape, a, b, "s32", modifier)
    for shape in ("m16n8k16", "m16n8k32")
    for a in ("s8", "u8")
    for b in ("s8", "u8")
    for modifier in ("", ".satfinite")
]


def run_multiply(
    multiply: Multiply, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    """Run one mma per warp; a, b and c hold TILES matrices each, as stored bits."""
    shape = SHAPES[multiply.shape, BITS[multiply.a]]
    registers = [
        np.stack([to_lanes(one, shape.a, shape.a_elements) for one in a]),
        np.stack([to_lanes(one, shape.b, shape.b_elements) for one in b]),
        np.stack([to_lanes(one, accumulator, 4) for one in c]),
    ]
    counts = [part.shape[-1] for part in registers]
    out = np.zeros_like(registers[2])
    body = ".reg .b64 %p, %o; .reg .b32 %thread, "
    body += ", ".join(f"%{n}<{count}>" for n, count in zip("abc", counts, strict=True))
    body += ", %d<4>;\nmov.u32 %thread, %tid.x;\n"
    lists = {}
    for place, (name, count) in enumerate(zip("abc", counts, strict=True)):
        body += f"ld.param.u64 %p, [p{place}];\n"
        body += f"mad.wide.u32 %p, %thread, {4 * count}, %p;\n"
        for i in range(count):
            body += f"ld.global.b32 %{name}{i}, [%p+{4 * i}];\n"
        lists[name] = "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"
    lists["d"] = lists["c"].replace("%c", "%d")
    body += f"{multiply.opcode}\n  {lists['d']},\n  {lists['a']},\n"
    body += f"  {lists['b']},\n  {lists['c']};\n"  # over several lines, as LLVM does
    body += f"ld.param.u64 %o, [p3]; mad.wide.u32 %o, %thread, {4 * counts[2]}, %o;\n"
    for i in range(counts[2]):
        body += f"st.global.b32 [%o+{4 * i}], %d{i};\n"
    # registers of f32 type are not needed: b32 ones may hold floats
    result = run_kernel(body, ["u64"] * 4, [*registers, out], block=(32 * TILES,))
    assert result.hazards == ()
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[multiply.c]
    return np.stack([from_lanes(one, dtype, (16, 8)) for one in out])


def stored(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """What the registers hold for these values, and the values they then mean."""
    if kind == "f16":
        half = values.astype(np.float16)
        return half, half.astype(np.float64)
    bits = values.astype(np.float32).view(np.uint32)
    kept = np.uint32(0xFFFF0000 if kind == "bf16" else 0xFFFFE000)
    bits = bits & kept
    meant = bits.view(np.float32).astype(np.float64)
    if kind == "bf16":
        return (bits >> np.uint32(16)).astype(np.uint16), meant
    return bits, meant


@pytest.mark.parametrize("multiply", FLOAT_KINDS, ids=lambda p: p.opcode)
@FIXED
@given(seed=seeds)
def test_float_multiply(multiply: Multiply, seed: int) -> None:
    generator = np.random.default_rng(seed)
    k = SHAPES[multiply.shape, BITS[multiply.a]].k
    a_bits, a = stored(generator.standard_normal((TILES, 16, k)), multiply.a)
    b_bits, b = stored(generator.standard_normal((TILES, k, 8)), multiply.b)
    c = generator.standard_normal((TILES, 16, 8))
    c = c.astype(np.float16 if multiply.c == "f16" else np.float32)
    got = run_multiply(multiply, a_bits, b_bits, c)
    exact = a @ b + c.astype(np.float64)
    size = np.abs(a) @ np.abs(b) + np.abs(c)
    # each a * b is exact; each of the k + 1 terms may be rounded once when added
    unit = 2.0**-11 if multiply.c == "f16" else 2.0**-23
    assert np.all(np.abs(got - exact) <= (k + 2) * unit * size)
    # no two elements of the result may have changed places
    assert np.all(np.abs(got - exact) < 0.05 * (1 + np.abs(exact)))


@pytest.mark.parametrize("multiply", FLOAT_KINDS, ids=lambda p: p.opcode)
def test_every_pair_of_elements_meets(multiply: Multiply) -> None:
    """One-hot rows: D[i][j] tells exactly which element of B was met."""
    k = SHAPES[multiply.shape, BITS[multiply.a]].k
    a, b = np.zeros((TILES, 16, k)), np.zeros((TILES, k, 8))
    wanted = np.zeros((TILES, 16, 8))
    values = np.arange(8 * k).reshape(k, 8) % 101  # exact in every type
    for which in range(TILES):
        for row in range(16):
            column = (row * 3 + which * 5) % k
            a[which, row, column] = 1
            wanted[which, row] = values[column]
        b[which] = values
    a_bits, _ = stored(a, multiply.a)
    b_bits, _ = stored(b, multiply.b)
    c = np.zeros((TILES, 16, 8), np.float16 if multiply.c == "f16" else np.float32)
    np.testing.assert_array_equal(run_multiply(multiply, a_bits, b_bits, c), wanted)


@pytest.mark.parametrize("multiply", FLOAT_KINDS, ids=lambda p: p.opcode)
def test_infinities_and_nans(multiply: Multiply) -> None:
    k = SHAPES[multiply.shape, BITS[multiply.a]].k
    a, b = np.ones((TILES, 16, k)), np.ones((TILES, k, 8))
    a[0, 3, 0] = np.inf
    a[1, 4, 1] = np.nan
    a[2, 5, 0], b[2, 0, :] = np.inf, 0
    b[3, 1, 6] = -np.inf
    c = np.zeros((TILES, 16, 8), np.float16 if multiply.c == "f16" else np.float32)
    got = run_multiply(multiply, stored(a, multiply.a)[0], stored(b, multiply.b)[0], c)
    wanted = np.full((TILES, 16, 8), float(k))
    wanted[0, 3] = np.inf
    wanted[1, 4] = np.nan
    wanted[2] = k - 1
    wanted[2, 5] = np.nan
    wanted[3, :, 6] = -np.inf
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_subnormal_operands_count(kind: str) -> None:
    """mma does not flush: 2**-24 (f16) and 2**-130 (bf16) are subnormals."""
    tiny = 2.0**-24 if kind == "f16" else 2.0**-130
    a_bits, a = stored(np.full((TILES, 16, 16), tiny), kind)
    b_bits, _ = stored(np.full((TILES, 16, 8), 4.0), kind)
    c = np.zeros((TILES, 16, 8), np.float32)
    got = run_multiply(Multiply("m16n8k16", kind, kind, "f32"), a_bits, b_bits, c)
    assert a[0, 0, 0] == tiny
    np.testing.assert_array_equal(got, np.full_like(got, tiny * 64))


@pytest.mark.parametrize("multiply", INTEGER_KINDS, ids=lambda p: p.opcode)
@FIXED
@given(seed=seeds)
def test_integer_multiply(multiply: Multiply, seed: int) -> None:
    """Exact; without .satfinite the sum wraps, with it it stops at the ends."""
    generator = np.random.default_rng(seed)
    k = SHAPES[multiply.shape, 8].k
    types = {"s8": np.int8, "u8": np.uint8}

    def matrix(kind: str, shape: tuple[int, ...]) -> np.ndarray:
        info = np.iinfo(types[kind])
        return generator.integers(info.min, info.max + 1, shape).astype(types[kind])

    a, b = matrix(multiply.a, (TILES, 16, k)), matrix(multiply.b, (TILES, k, 8))
    ends = [-(2**31), -(2**31) + 5000, -1, 0, 70000, 2**31 - 5000, 2**31 - 1]
    c = generator.choice(np.array(ends), (TILES, 16, 8)).astype(np.int32)
    got = run_multiply(multiply, a, b, c)
    exact = a.astype(np.int64) @ b.astype(np.int64) + c
    assert np.any(exact > 2**31 - 1) or np.any(exact < -(2**31))
    if multiply.modifier:
        exact = np.clip(exact, -(2**31), 2**31 - 1)
    np.testing.assert_array_equal(got, exact.astype(np.int32))


def test_accumulating_in_place() -> None:
    """D may be C's registers, and A or B may change between two mma."""
    body = """
    .reg .b64 %o; .reg .b32 %a<4>, %b<2>, %d<4>, %n, %lane, %one, %two;
    .reg .pred %p;
    ld.param.u64 %o, [p0]; mov.u32 %lane, %laneid;
    mad.wide.u32 %o, %lane, 16, %o;
    mov.u32 %one, 0x3C003C00; mov.u32 %two, 0x40004000;
    mov.b32 %a0, %one; mov.b32 %a1, %one; mov.b32 %a2, %one; mov.b32 %a3, %one;
    mov.b32 %b0, %one; mov.b32 %b1, %one;
    mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
    mov.u32 %n, 0;
    AGAIN:
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
      {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%d0, %d1, %d2, %d3};
    mov.b32 %a0, %two; mov.b32 %a2, %two; mov.b32 %b1, %two;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 3;
    @%p bra AGAIN;
    st.global.v4.b32 [%o], {%d0, %d1, %d2, %d3};
    """
    out = np.zeros((32, 4), np.float32)
    run_kernel(body, ["u64"], [out])
    # rows 0 to 7 see a0 and a2, rows 8 to 15 see a1 and a3, which never change
    low, high = 16 + 2 * (8 * 2 + 8 * 4), 16 + 2 * (8 + 8 * 2)
    np.testing.assert_array_equal(out, np.tile([low, low, high, high], (32, 1)))


# ldmatrix and stmatrix ----------------------------------------------------------------


def pieces(count: int, transposed: bool, tiles: np.ndarray) -> np.ndarray:
    """What each lane holds of 8 x 8 tiles of 16-bit items: (32, count) words."""
    words = np.zeros((32, count), np.uint32)
    for lane in range(32):
        row, column = lane // 4, lane % 4 * 2
        for i in range(count):
            tile = tiles[i].T if transposed else tiles[i]
            low, high = int(tile[row, column]), int(tile[row, column + 1])
            words[lane, i] = low | high << 16
    return words


def placed(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Tiles, and for each of their rows 16 bytes of its own among 64 such."""
    generator = np.random.default_rng(seed)
    tiles = generator.integers(0, 1 << 16, (count, 8, 8)).astype(np.uint16)
    return tiles, generator.permutation(64)[: 8 * count]


MATRIX_FORMS = [(count, trans) for count in (1, 2, 4) for trans in (False, True)]


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize(("count", "transposed"), MATRIX_FORMS)
@FIXED
@given(seed=seeds)
def test_ldmatrix(count: int, transposed: bool, generic: bool, seed: int) -> None:
    tiles, places = placed(count, seed)
    memory = np.zeros((64, 8), np.uint16)
    memory[places] = tiles.reshape(-1, 8)
    # lanes beyond 8 * count give addresses that must not be looked at
    offsets = np.full(32, 0x7FFFFF01, np.uint32)
    offsets[: 8 * count] = places * 16
    out = np.zeros((32, count), np.uint32)
    registers = "{" + ", ".join(f"%r{i}" for i in range(count)) + "}"
    where = "" if generic else ".shared"
    turn = ".trans" if transposed else ""
    # ptxas takes the parts in any order; CUTLASS writes them as the second
    orders = (f"m8n8.x{count}{turn}", f"x{count}{turn}.m8n8", f"x{count}.m8n8{turn}")
    order = orders[seed % len(orders)]
    body = f"""
    .shared .align 16 .b8 tiles[1024];
    .reg .b64 %in, %at, %out, %s; .reg .b32 %lane, %r<4>, %t;
    mov.u32 %lane, %laneid;
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %lane, 32, %in;
    mov.u64 %s, tiles; mad.wide.u32 %at, %lane, 32, %s;
    ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%in];
    st.shared.v4.b32 [%at], {{%r0, %r1, %r2, %r3}};
    ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%in+16];
    st.shared.v4.b32 [%at+16], {{%r0, %r1, %r2, %r3}};
    bar.warp.sync 0xffffffff;
    ld.param.u64 %at, [p1]; mad.wide.u32 %at, %lane, 4, %at;
    ld.global.u32 %t, [%at];
    {"cvta.shared.u64 %s, %s;" if generic else ""}
    cvt.u64.u32 %at, %t; add.u64 %at, %s, %at;
    ldmatrix.sync.aligned.{order}{where}.b16 {registers}, [%at];
    ld.param.u64 %out, [p2]; mad.wide.u32 %out, %lane, {4 * count}, %out;
    """ + "".join(f"st.global.b32 [%out+{4 * i}], %r{i};\n" for i in range(count))
    result = run_kernel(body, ["u64"] * 3, [memory, offsets, out])
    assert result.hazards == ()
    np.testing.assert_array_equal(out, pieces(count, transposed, tiles))


@pytest.mark.parametrize(("count", "transposed"), MATRIX_FORMS)
@FIXED
@given(seed=seeds)
def test_stmatrix(count: int, transposed: bool, seed: int) -> None:
    tiles, places = placed(count, seed)
    words = pieces(count, transposed, tiles)
    offsets = np.full(32, 0x7FFFFF01, np.uint32)
    offsets[: 8 * count] = places * 16
    out = np.zeros((64, 8), np.uint16)
    registers = "{" + ", ".join(f"%r{i}" for i in range(count)) + "}"
    turn = ".trans" if transposed else ""
    body = (
        f"""
    .shared .align 16 .b8 tiles[1024];
    .reg .b64 %in, %at, %out, %s; .reg .b32 %lane, %r<4>, %t, %z;
    mov.u32 %lane, %laneid; mov.b32 %z, 0;
    mov.u64 %s, tiles; mad.wide.u32 %at, %lane, 32, %s;
    st.shared.v4.b32 [%at], {{%z, %z, %z, %z}};
    st.shared.v4.b32 [%at+16], {{%z, %z, %z, %z}};
    bar.warp.sync 0xffffffff;
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %lane, {4 * count}, %in;
    """
        + "".join(f"ld.global.b32 %r{i}, [%in+{4 * i}];\n" for i in range(count))
        + f"""
    ld.param.u64 %at, [p1]; mad.wide.u32 %at, %lane, 4, %at;
    ld.global.u32 %t, [%at];
    cvt.u64.u32 %at, %t; add.u64 %at, %s, %at;
    stmatrix.sync.aligned.m8n8.x{count}{turn}.shared.b16 [%at], {registers};
    bar.warp.sync 0xffffffff;
    mad.wide.u32 %at, %lane, 32, %s;
    ld.param.u64 %out, [p2]; mad.wide.u32 %out, %lane, 32, %out;
    ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%at];
    st.global.v4.b32 [%out], {{%r0, %r1, %r2, %r3}};
    ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%at+16];
    st.global.v4.b32 [%out+16], {{%r0, %r1, %r2, %r3}};
    """
    )
    result = run_kernel(
        body, ["u64"] * 3, [words, offsets, out], target="sm_90", version="8.0"
    )
    assert result.hazards == ()
    wanted = np.zeros((64, 8), np.uint16)
    wanted[places] = tiles.reshape(-1, 8)
    np.testing.assert_array_equal(out, wanted)


def test_movmatrix() -> None:
    """The transpose of one 8 x 8 tile across the lanes."""
    tiles, _ = placed(1, 5)
    words = pieces(1, False, tiles)
    out = np.zeros((32, 1), np.uint32)
    body = """
    .reg .b64 %p; .reg .b32 %lane, %r;
    mov.u32 %lane, %laneid;
    ld.param.u64 %p, [p0]; mad.wide.u32 %p, %lane, 4, %p; ld.global.b32 %r, [%p];
    movmatrix.sync.aligned.m8n8.trans.b16 %r, %r;
    ld.param.u64 %p, [p1]; mad.wide.u32 %p, %lane, 4, %p; st.global.b32 [%p], %r;
    """
    run_kernel(body, ["u64"] * 2, [words, out])
    np.testing.assert_array_equal(out, pieces(1, True, tiles))


def test_stmatrix_of_registers_that_are_the_same_in_all_blocks() -> None:
    """NumPy stacks such arrays in an order of its own."""
    body = """
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 16, %r1;
    add.u32 %r3, %r0, 0; add.u32 %r4, %r0, 100;
    add.u32 %r5, %r0, 200; add.u32 %r6, %r0, 300;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r3, %r4, %r5, %r6};
    bar.warp.sync -1;
    ld.shared.b32 %r2, [%r1];
    mov.u32 %r7, %ctaid.x; mad.lo.u32 %r0, %r7, 64, %r0;
    ld.param.u64 %rd0, [p0]; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
    st.global.b32 [%rd0], %r2;
    ret;
    """
    out = np.ones((2, 64), np.uint32)
    result = run_kernel(
        body, ["u64"], [out], grid=(2,), block=(64,), target="sm_90", version="7.8"
    )
    assert result.hazards == ()
    lane = np.arange(32)  # reads the first word of its row, which lane 4 (row) held
    row = lane % 8 * 4 + lane // 8 * 100
    np.testing.assert_array_equal(out, np.tile([*row, *(row + 32)], (2, 1)))
