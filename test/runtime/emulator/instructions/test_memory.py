"""Loads and stores of every width, in every space."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import LANE, random_bytes, run_kernel, run_warp

ACCESSES = [
    (1, 8),
    (2, 8),
    (4, 8),
    (1, 16),
    (2, 16),
    (4, 16),
    (1, 32),
    (2, 32),
    (4, 32),
    (1, 64),
    (2, 64),
]
REGISTERS = {8: "h", 16: "h", 32: "t", 64: "w"}


def access(vector: int, bits: int) -> tuple[str, str, int]:
    """The suffix of the opcode, the register list and the bytes of one access."""
    names = [f"%{REGISTERS[bits]}{i}" for i in range(vector)]
    if vector == 1:
        return f"b{bits}", names[0], bits // 8
    return f"v{vector}.b{bits}", "{" + ", ".join(names) + "}", vector * bits // 8


@pytest.mark.parametrize(("vector", "bits"), ACCESSES)
@pytest.mark.parametrize(
    "cache",
    [
        "",
        ".nc",
        ".ca",
        ".cg",
        ".cs",
        ".volatile",
        ".relaxed.gpu",
        ".nc.L1::no_allocate",
        ".L2::128B",
    ],
)
def test_global_loads_and_stores(cache: str, vector: int, bits: int) -> None:
    suffix, registers, size = access(vector, bits)
    load = f"ld{cache}.global.{suffix}"
    if cache.startswith((".nc", ".ca", ".cg", ".cs", ".L2")):
        load = f"ld.global{cache}.{suffix}"
    body = f"""
    mad.wide.u32 %in, %lane, {size}, %in;
    mad.wide.u32 %out, %lane, {size}, %out;
    {load} {registers}, [%in+{size}];
    st.global.{suffix} [%out], {registers};
    """
    given = random_bytes(33 * size)
    run_warp(body, given, given[size:])


@pytest.mark.parametrize(("vector", "bits"), ACCESSES)
@pytest.mark.parametrize(
    "space", ["shared", "local", "generic shared", "generic local"]
)
def test_shared_and_local(space: str, vector: int, bits: int) -> None:
    """Write through one address, read back through another form of it."""
    suffix, registers, size = access(vector, bits)
    real = space.split()[-1]
    count = 32 if real == "shared" else 2
    step = (
        "mul.lo.u32 %t9, %lane, " + str(size) + ";"
        if real == "shared"
        else ("mov.u32 %t9, 0;")
    )
    address, dotted = "%w9", f".{real}"
    widen = "cvt.u64.u32 %w8, %t9; mov.u64 %w9, buffer; add.u64 %w9, %w9, %w8;"
    if space.startswith("generic"):
        widen += f"cvta.{real}.u64 %w9, %w9;"
        dotted = ""
    body = (
        f"""
    .{real} .align 16 .b8 buffer[{count * size}];
    mad.wide.u32 %in, %lane, {size}, %in;
    mad.wide.u32 %out, %lane, {size}, %out;
    {step} {widen}
    ld.global.{suffix} {registers}, [%in];
    st{dotted}.{suffix} [{address}], {registers};
    """
        + "".join(
            f"mov.b{max(bits, 16)} %{REGISTERS[bits]}{i}, 0;\n" for i in range(vector)
        )
        + f"""
    ld{dotted}.{suffix} {registers}, [{address}];
    st.global.{suffix} [%out], {registers};
    """
    )
    given = random_bytes(32 * size)
    run_warp(body, given, given)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("u8", "u1"),
        ("s8", "i1"),
        ("u16", "u2"),
        ("s16", "i2"),
        ("u32", "u4"),
        ("s32", "i4"),
    ],
)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_narrow_loads_extend(space: str, kind: str, dtype: str) -> None:
    """ld into a wider register: zeros above an unsigned value, signs above a signed."""
    given = random_bytes(64 * np.dtype(dtype).itemsize).view(dtype)[:32]
    size = given.itemsize
    body = f"mad.wide.u32 %w0, %lane, {size}, %in;\n"
    if space == "shared":
        body += f"""
        .shared .align 8 .b8 buffer[{32 * size}];
        mov.u64 %w1, buffer; mad.wide.u32 %w1, %lane, {size}, %w1;
        ld.global.b{8 * size} %{"h0" if size < 4 else "t0"}, [%w0];
        st.shared.b{8 * size} [%w1], %{"h0" if size < 4 else "t0"};
        mov.u64 %w0, %w1;
        """
    body += f"""
    mad.wide.u32 %out, %lane, 8, %out;
    ld.{space}.{kind} %w3, [%w0];
    st.global.u64 [%out], %w3;
    """
    run_warp(body, given, given.astype("i8" if kind[0] == "s" else "u8"))


def test_narrow_stores_take_the_low_part() -> None:
    body = """
    mad.wide.u32 %w0, %lane, 8, %in;
    mad.wide.u32 %out, %lane, 8, %out;
    ld.global.u64 %w1, [%w0];
    cvt.u32.u64 %t1, %w1;
    st.global.u8 [%out], %w1;
    st.global.u16 [%out+2], %t1;
    st.global.u32 [%out+4], %w1;
    """
    given = random_bytes(256).view(np.uint64)
    wanted = np.zeros((32, 8), np.uint8)
    source = given.view(np.uint8).reshape(32, 8)
    wanted[:, 0] = source[:, 0]
    wanted[:, 2:4] = source[:, :2]
    wanted[:, 4:] = source[:, :4]
    run_warp(body, given, wanted)


def test_guarded_access_touches_nothing() -> None:
    """A false guard: neither the memory nor the register changes."""
    body = """
    mad.wide.u32 %w0, %lane, 4, %in;
    mad.wide.u32 %out, %lane, 4, %out;
    and.b32 %t0, %lane, 1;
    setp.eq.u32 %q0, %t0, 0;
    mov.u32 %t1, 99;
    @!%q0 mov.u64 %w0, 0;
    @%q0 ld.global.u32 %t1, [%w0];
    setp.lt.u32 %q1, %lane, 10;
    @%q1 st.global.u32 [%out], %t1;
    """
    given = np.arange(100, 132, dtype=np.uint32)
    wanted = np.where(np.arange(32) % 2, 99, given).astype(np.uint32)
    wanted[10:] = 0
    run_warp(body, given, wanted)


def test_parameters_of_every_type() -> None:
    """Scalars follow the type of the parameter, packed with its alignment."""
    kinds = ["u8", "s16", "u32", "f32", "u64", "f64", "b16", "s8", "u64"]
    body = """
    .reg .b64 %w<2>, %out; .reg .b32 %t<3>; .reg .f32 %f; .reg .f64 %g; .reg .b16 %h;
    ld.param.u64 %out, [p8];
    ld.param.u8 %w0, [p0];  st.global.u64 [%out], %w0;
    ld.param.s16 %w0, [p1]; st.global.u64 [%out+8], %w0;
    ld.param.u32 %t0, [p2]; st.global.u32 [%out+16], %t0;
    ld.param.f32 %f, [p3];  st.global.f32 [%out+20], %f;
    ld.param.u64 %w1, [p4]; st.global.u64 [%out+24], %w1;
    ld.param.f64 %g, [p5];  st.global.f64 [%out+32], %g;
    ld.param.b16 %h, [p6];  st.global.b16 [%out+40], %h;
    ld.param.s8 %t1, [p7];  st.global.u32 [%out+44], %t1;
    """
    out = np.zeros(48, np.uint8)
    given = [200, -3, 4_000_000_000, 2.5, 2**63 + 1, 1e300, 0x1234, -5, out]
    run_kernel(body, kinds, given, block=(1,))
    assert out[:16].view(np.int64).tolist() == [200, -3]
    assert out[16:20].view(np.uint32).tolist() == [4_000_000_000]
    assert out[20:24].view(np.float32).tolist() == [2.5]
    assert out[24:32].view(np.uint64).tolist() == [2**63 + 1]
    assert out[32:40].view(np.float64).tolist() == [1e300]
    assert out[40:42].view(np.uint16).tolist() == [0x1234]
    assert out[44:].view(np.int32).tolist() == [-5]


def test_module_variables() -> None:
    """Constants and globals with initial values; a global keeps what is stored."""
    before = """
    .const .align 4 .b32 table[4] = {10, 20, 30, 40};
    .global .align 8 .b8 bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    .global .align 4 .f32 scale = 0f40200000;
    .global .align 4 .u32 scratch[32];
    """
    body = """
    and.b32 %t0, %lane, 3;
    mov.u64 %w0, table; mad.wide.u32 %w0, %t0, 4, %w0;
    ld.const.u32 %t1, [%w0];
    ld.global.u32 %t2, [bytes+4];
    add.u32 %t1, %t1, %t2;
    ld.global.f32 %f0, [scale];
    cvt.rn.f32.u32 %f1, %lane; mul.f32 %f0, %f0, %f1; cvt.rzi.u32.f32 %t3, %f0;
    mov.u64 %w1, scratch; mad.wide.u32 %w1, %lane, 4, %w1;
    st.global.u32 [%w1], %t3;
    ld.global.u32 %t4, [%w1];
    add.u32 %t1, %t1, %t4;
    mad.wide.u32 %out, %lane, 4, %out;
    st.global.u32 [%out], %t1;
    """
    lanes = np.arange(32)
    wanted = (
        np.array([10, 20, 30, 40])[lanes % 4] + 0x08070605 + (lanes * 2.5).astype(int)
    )
    run_warp(body, np.zeros(1, np.uint32), wanted.astype(np.uint32), before=before)


def test_dynamic_shared_memory() -> None:
    body = (
        LANE
        + """
    mov.u64 %w0, dynamic; mad.wide.u32 %w1, %lane, 4, %w0;
    st.shared.u32 [%w1+64], %lane;
    ld.shared.u32 %t0, [%w1+64];
    mov.u32 %t1, %dynamic_smem_size;
    add.u32 %t0, %t0, %t1;
    mov.u32 %t1, %aggr_smem_size;
    add.u32 %t0, %t0, %t1;
    mad.wide.u32 %out, %lane, 4, %out;
    st.global.u32 [%out], %t0;
    """
    )
    out = np.zeros(32, np.uint32)
    result = run_kernel(
        body,
        ["u64", "u64"],
        [np.zeros(1, np.uint32), out],
        before=".extern .shared .align 16 .b8 dynamic[];",
        dynamic_shared=192,
        target="sm_90",
    )
    assert result.hazards == ()
    np.testing.assert_array_equal(out, np.arange(2 * 192, 2 * 192 + 32))


def test_address_spaces_of_generic_pointers() -> None:
    body = """
    .shared .align 4 .b32 here; .local .align 4 .b32 mine;
    mov.u64 %w0, here; cvta.shared.u64 %w0, %w0;
    mov.u64 %w1, mine; cvta.local.u64 %w1, %w1;
    mov.u32 %t0, 0;
    isspacep.shared %q0, %w0; @%q0 or.b32 %t0, %t0, 1;
    isspacep.shared %q0, %w1; @%q0 or.b32 %t0, %t0, 2;
    isspacep.local %q0, %w1;  @%q0 or.b32 %t0, %t0, 4;
    isspacep.global %q0, %in; @%q0 or.b32 %t0, %t0, 8;
    isspacep.global %q0, %w0; @%q0 or.b32 %t0, %t0, 16;
    mad.wide.u32 %out, %lane, 4, %out;
    st.global.u32 [%out], %t0;
    """
    run_warp(body, np.zeros(1, np.uint32), np.full(32, 13, np.uint32))
