"""Atomics and reductions on shared and global memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_text import LANE, run_kernel

U32, S32, U64 = np.uint32, np.int32, np.uint64
Fold = Callable[[int, int], int]
ATOMICS: list[tuple[str, type, Fold]] = [
    ("add.u32", U32, lambda old, b: (old + b) & 0xFFFFFFFF),
    ("add.s32", S32, lambda old, b: old + b),
    ("add.u64", U64, lambda old, b: (old + b) & 0xFFFFFFFFFFFFFFFF),
    ("min.u32", U32, min),
    ("max.u32", U32, max),
    ("min.s32", S32, min),
    ("max.s32", S32, max),
    ("min.u64", U64, min),
    ("max.u64", U64, max),
    ("and.b32", U32, lambda old, b: old & b),
    ("or.b32", U32, lambda old, b: old | b),
    ("xor.b32", U32, lambda old, b: old ^ b),
    ("and.b64", U64, lambda old, b: old & b),
    ("or.b64", U64, lambda old, b: old | b),
    ("xor.b64", U64, lambda old, b: old ^ b),
    ("inc.u32", U32, lambda old, b: 0 if old >= b else old + 1),
    ("dec.u32", U32, lambda old, b: b if old == 0 or old > b else old - 1),
]
CELLS = 5


def atomic_operands(dtype: type, opcode: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    info = np.iinfo(dtype)
    span = (info.min // 256, info.max // 256)
    start = generator.integers(*span, CELLS, dtype=dtype)
    values = generator.integers(*span, 128, dtype=dtype)
    if opcode[:3] in ("inc", "dec"):
        values[:] = 17  # one bound: any order of lanes gives the same end
        start[:] = [0, 5, 16, 17, 900]
    return start, values


@pytest.mark.parametrize(
    "form",
    [
        "red.global",
        "atom.global",
        "red.shared",
        "atom.shared",
        "red.relaxed.gpu.global",
    ],
)
@pytest.mark.parametrize(("opcode", "dtype", "fold"), ATOMICS)
def test_atomics_end_value(form: str, opcode: str, dtype: type, fold: Fold) -> None:
    """128 threads on 5 cells: what is there at the end depends on no order."""
    start, values = atomic_operands(dtype, opcode)
    size = np.dtype(dtype).itemsize
    register = "%t1" if size == 4 else "%w1"
    old = "%t2, " if size == 4 else "%w2, "
    body = (
        LANE
        + f"""
    .shared .align 8 .b8 cells[{CELLS * size}];
    mov.u64 %w5, cells;
    rem.u32 %t0, %lane, {CELLS};
    mad.wide.u32 %w0, %lane, {size}, %in;
    ld.global.b{8 * size} {register}, [%w0];
    mad.wide.u32 %w3, %t0, {size}, %out;
    mad.wide.u32 %w4, %t0, {size}, %w5;
    setp.lt.u32 %q0, %lane, {CELLS};
    @%q0 ld.global.b{8 * size} %w6, [%w3];
    @%q0 st.shared.b{8 * size} [%w4], %w6;
    bar.sync 0;
    {form}.{opcode} {"[%w4]" if "shared" in form else "[%w3]"}, {register};
    bar.sync 0;
    @%q0 ld.shared.b{8 * size} %w6, [%w4];
    """
    )
    if form.startswith("atom"):
        body = body.replace(f".{opcode} [", f".{opcode} {old}[")
    if "shared" in form:
        body += f"@%q0 st.global.b{8 * size} [%w3], %w6;"
    cells = start.copy()
    result = run_kernel(body, ["u64", "u64"], [values, cells], block=(128,))
    assert result.hazards == ()
    wanted = [int(value) for value in start]
    for lane, value in enumerate(values.tolist()):
        wanted[lane % CELLS] = fold(wanted[lane % CELLS], value)
    assert cells.tolist() == wanted


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atom_add_hands_out_tickets(space: str) -> None:
    """Old values are all different: no two lanes see the same counter."""
    start = """
    .shared .align 4 .b32 counter;
    mov.u32 %t9, 0;
    setp.eq.u32 %q0, %lane, 0;
    @%q0 st.shared.u32 [counter], %t9;
    bar.sync 0;
    """
    where = "[counter]" if space == "shared" else "[%in]"
    body = f"""{LANE}{start}
    atom.{space}.add.u32 %t0, {where}, 3;
    mad.wide.u32 %out, %lane, 4, %out;
    st.global.u32 [%out], %t0;
    """
    counter, out = np.zeros(1, np.uint32), np.zeros(96, np.uint32)
    result = run_kernel(body, ["u64", "u64"], [counter, out], block=(96,))
    assert result.hazards == ()
    assert sorted(out.tolist()) == list(range(0, 288, 3))
    assert counter[0] == (288 if space == "global" else 0)


def test_atomics_across_blocks() -> None:
    body = (
        LANE
        + """
    atom.global.add.u32 %t0, [%in], 1;
    mad.wide.u32 %out, %t0, 4, %out;
    mov.u32 %t1, %ctaid.x;
    st.global.u32 [%out], %t1;
    """
    )
    counter, out = np.zeros(1, np.uint32), np.full(160, 99, np.uint32)
    result = run_kernel(body, ["u64", "u64"], [counter, out], grid=(5,))
    assert result.hazards == ()
    assert counter[0] == 160
    assert sorted(out.tolist()) == sorted(list(range(5)) * 32)


@pytest.mark.parametrize("space", ["global", "shared"])
def test_exch_and_cas(space: str) -> None:
    """exch passes values along a chain; cas lets exactly one lane in."""
    body = (
        LANE
        + f"""
    .shared .align 4 .b32 cells[2];
    mov.u64 %w0, {"cells" if space == "shared" else "%in"};
    mov.u32 %t9, 1000;
    setp.eq.u32 %q0, %lane, 0;
    @%q0 st.{space}.u32 [%w0], %t9;
    @%q0 st.{space}.u32 [%w0+4], %t9;
    bar.sync 0;
    atom.{space}.exch.b32 %t0, [%w0], %lane;
    add.u32 %t8, %lane, 2000;
    atom.{space}.cas.b32 %t1, [%w0+4], 1000, %t8;
    bar.sync 0;
    mad.wide.u32 %out, %lane, 8, %out;
    st.global.v2.u32 [%out], {{%t0, %t1}};
    ld.{space}.u32 %t2, [%w0];
    ld.{space}.u32 %t3, [%w0+4];
    @%q0 st.global.v2.u32 [%in+8], {{%t2, %t3}};
    """
    )
    cells, out = np.zeros(4, np.uint32), np.zeros((64, 2), np.uint32)
    result = run_kernel(body, ["u64", "u64"], [cells, out], block=(64,))
    assert result.hazards == ()
    last, winner = cells[2:].tolist()
    # every value but the last one put there was handed to somebody
    assert sorted([*out[:, 0].tolist(), last]) == [*range(64), 1000]
    assert 2000 <= winner < 2064
    assert out[:, 1].tolist().count(1000) == 1
    assert out[winner - 2000, 1] == 1000
    assert set(out[:, 1].tolist()) == {1000, winner}


@pytest.mark.parametrize(
    ("opcode", "dtype"), [("add.f32", np.float32), ("add.f64", np.float64)]
)
@pytest.mark.parametrize("form", ["red.global", "atom.global", "atom.shared"])
def test_float_atomics(form: str, opcode: str, dtype: type) -> None:
    """Small whole numbers: the sum is exact in any order."""
    values = np.random.default_rng(1).integers(-100, 100, 128).astype(dtype)
    size = values.itemsize
    register = "%f1" if size == 4 else "%g1"
    old = {"%f1": "%f2", "%g1": "%g2"}[register]
    where = "[cell]" if "shared" in form else "[%out]"
    body = (
        LANE
        + f"""
    .shared .align 8 .b8 cell[8];
    setp.eq.u32 %q0, %lane, 0;
    mov.b64 %w0, 0;
    @%q0 st.shared.b64 [cell], %w0;
    bar.sync 0;
    mad.wide.u32 %w1, %lane, {size}, %in;
    ld.global.b{8 * size} {register}, [%w1];
    {form}.{opcode} {old + ", " if form.startswith("atom") else ""}{where}, {register};
    bar.sync 0;
    """
    )
    if "shared" in form:
        body += f"@%q0 ld.shared.b{8 * size} %w2, [cell];\n"
        body += f"@%q0 st.global.b{8 * size} [%out], %w2;"
    total = np.zeros(1, dtype)
    result = run_kernel(body, ["u64", "u64"], [values, total], block=(128,))
    assert result.hazards == ()
    assert total[0] == values.sum()


def test_packed_half_atomics() -> None:
    body = (
        LANE
        + """
    mad.wide.u32 %w1, %lane, 4, %in;
    ld.global.b32 %t0, [%w1];
    red.global.add.noftz.f16x2 [%out], %t0;
    """
    )
    values = np.random.default_rng(1).integers(-8, 9, (32, 2)).astype(np.float16)
    total = np.zeros(2, np.float16)
    run_kernel(body, ["u64", "u64"], [values, total])
    np.testing.assert_array_equal(total, values.sum(axis=0))


# 128 bits -----------------------------------------------------------------------------

# As two doubles, some of these are NaN, and some are equal that differ as bits.
HALVES = (0, 1 << 63, 0x7FF8000000000001, 0x7FF0000000000001, 7)
WIDE = [(low, high) for low in HALVES for high in HALVES[:3]]


@pytest.mark.parametrize("cells", [1, 12, 96])
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("name", ["exch", "cas"])
def test_of_128_bits(name: str, space: str, cells: int) -> None:
    """One thread after the other, equal only if all bits are."""
    generator = np.random.default_rng(cells)
    pool = [*WIDE, *generator.integers(0, 2**64, (3, 2), np.uint64).tolist()]
    numbers = np.array(pool, np.uint64)
    memory = numbers[generator.integers(0, 6, cells)]
    compared, given = (numbers[generator.integers(0, 6, 96)] for _ in range(2))
    values = np.stack([compared, given], axis=1) if name == "cas" else given
    operands = "%x, %y" if name == "cas" else "%y"
    where = "%w0" if space == "shared" else "%cell"
    size = 32 if name == "cas" else 16
    body = f"""{LANE}
    .reg .b128 %x, %y, %z;
    .reg .b64 %cells, %cell;
    .shared .align 16 .b8 tile[{16 * cells}];
    ld.param.u64 %cells, [p2];
    rem.u32 %t0, %lane, {cells};
    setp.lt.u32 %q0, %lane, {cells};
    mad.wide.u32 %cell, %t0, 16, %cells;
    mov.u64 %w0, tile;
    mad.wide.u32 %w0, %t0, 16, %w0;
    @%q0 ld.global.b128 %z, [%cell];
    @%q0 st.shared.b128 [%w0], %z;
    mad.wide.u32 %in, %lane, {size}, %in;
    ld.global.b128 %x, [%in];
    ld.global.b128 %y, [%in+{size - 16}];
    mad.wide.u32 %out, %lane, 16, %out;
    bar.sync 0;
    atom.{space}.{name}.b128 %z, [{where}], {operands};
    bar.sync 0;
    st.global.b128 [%out], %z;
    """
    if space == "shared":
        body += "@%q0 ld.shared.b128 %z, [%w0];\n@%q0 st.global.b128 [%cell], %z;"
    got, found = memory.copy(), np.zeros((96, 2), np.uint64)
    result = run_kernel(
        body,
        ["u64"] * 3,
        [values, found, got],
        block=(96,),
        target="sm_90",
        version="8.3",
    )
    assert result.hazards == ()
    wanted, before = memory.tolist(), []
    for lane in range(96):
        old = wanted[lane % cells]
        before.append(old)
        if name == "exch" or old == compared[lane].tolist():
            wanted[lane % cells] = given[lane].tolist()
    assert found.tolist() == before
    assert got.tolist() == wanted
