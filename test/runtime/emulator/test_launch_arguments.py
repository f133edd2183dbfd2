"""Launches as CUDA has them: structures, arrays of pointers, variables, grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernel_text import launch, module

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Pointers, Result, Struct, emulate, prepare

HEAD = """
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
"""
# struct { int n; float *x; int k; float *y; }: y[i] = x[i] + k for i < n.
WITH_STRUCT = f"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .align 8 .b8 s[32])
{{
    {HEAD}
    ld.param.u32 %r2, [s];
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra DONE;
    ld.param.u64 %rd2, [s+8];
    ld.param.u32 %r3, [s+16];
    ld.param.u64 %rd3, [s+24];
    add.u64 %rd2, %rd2, %rd1;
    add.u64 %rd3, %rd3, %rd1;
    ld.global.u32 %r4, [%rd2];
    add.u32 %r4, %r4, %r3;
    st.global.u32 [%rd3], %r4;
DONE:
    ret;
}}
"""


def test_a_structure_holds_addresses() -> None:
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    places = [0, *np.arange(8, 32, 8)]  # offsets may be NumPy's
    s = Struct(32, dict(zip(places, [np.int32(40), x, np.int32(7), y], strict=True)))
    assert launch(WITH_STRUCT, None, (1,), (64,), [s]).hazards == ()
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 40, x + 7, 0))


def test_arrays_in_a_structure_may_overlap() -> None:
    x = np.arange(65, dtype=np.uint32)
    s = Struct(32, {0: np.int32(32), 8: x[:-1], 16: np.int32(7), 24: x[1:]})
    launch(WITH_STRUCT, None, (1,), (32,), [s])
    np.testing.assert_array_equal(x[1:33], np.arange(32) + 7)


def test_an_array_of_pointers() -> None:
    """out[i] = table[i % 3][i], and table[3] is null."""
    body = (
        HEAD
        + """
    ld.param.u64 %rd2, [p0];
    ld.param.u64 %rd3, [p1];
    rem.u32 %r2, %r1, 3;
    mul.wide.u32 %rd4, %r2, 8;
    add.u64 %rd4, %rd2, %rd4;
    ld.global.u64 %rd5, [%rd4];
    add.u64 %rd5, %rd5, %rd1;
    ld.global.u32 %r3, [%rd5];
    ld.global.u64 %rd6, [%rd2+24];
    setp.ne.u64 %p1, %rd6, 0;
    @%p1 trap;
    add.u64 %rd3, %rd3, %rd1;
    st.global.u32 [%rd3], %r3;
    ret;
    """
    )
    rows = [np.arange(64, dtype=np.uint32) + 100 * i for i in range(3)]
    out = np.zeros(64, np.uint32)
    text = module(body, ["u64", "u64"])
    launch(text, "kernel", (1,), (64,), [Pointers([*rows, None]), out])
    wanted = [rows[i % 3][i] for i in range(64)]
    np.testing.assert_array_equal(out, wanted)


def with_symbols(out: np.ndarray, symbols: dict[str, np.ndarray]) -> Result:
    body = (
        HEAD
        + """
    ld.param.u64 %rd2, [p0];
    and.b32 %r2, %r1, 3;
    mul.wide.u32 %rd4, %r2, 4;
    mov.u64 %rd5, factors;
    add.u64 %rd5, %rd5, %rd4;
    ld.const.u32 %r3, [%rd5];
    mov.u64 %rd6, count;
    atom.global.add.u32 %r4, [%rd6], 1;
    mul.lo.u32 %r3, %r3, %r1;
    add.u64 %rd2, %rd2, %rd1;
    st.global.u32 [%rd2], %r3;
    ret;
    """
    )
    variables = ".const .align 4 .b8 factors[16];\n.global .align 4 .u32 count = 5;\n"
    text = module(body, ["u64"], before=variables)
    return launch(text, "kernel", (1,), (64,), [out], symbols=symbols)


def test_variables_are_set_and_read_back() -> None:
    out, count = np.zeros(64, np.uint32), np.array([1000], np.uint32)
    factors = np.array([2, 3, 5, 7], np.uint32)
    result = with_symbols(out, {"factors": factors, "count": count})
    assert result.hazards == ()
    i = np.arange(64)
    np.testing.assert_array_equal(out, factors[i % 4] * i)
    assert count.tolist() == [1064]
    assert factors.tolist() == [2, 3, 5, 7]


# Blocks exchange a value three times, through the barrier of cooperative groups: the
# first thread of each block adds to a counter, and waits until its top bit changes.
GRID_BARRIER = """
    bar.sync 0;
    @%p2 bra WAITED{0};
    atom.add.release.gpu.u32 %r8, [%rd8], %r7;
SPIN{0}:
    ld.acquire.gpu.u32 %r9, [%rd8];
    xor.b32 %r9, %r9, %r8;
    setp.gt.s32 %p3, %r9, -1;
    @%p3 bra SPIN{0};
WAITED{0}:
    bar.sync 0;
"""


def exchange(rounds: int) -> str:
    body = """
    ld.param.u64 %rd2, [p0];
    mov.u32 %r10, %envreg1;
    mov.u32 %r11, %envreg2;
    mov.b64 %rd8, {%r11, %r10};
    add.u64 %rd8, %rd8, 4;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %nctaid.x;
    setp.ne.u32 %p2, %r1, 0;
    setp.eq.u32 %p4, %r2, 0;
    sub.u32 %r7, 0x80000001, %r4;
    selp.b32 %r7, %r7, 1, %p4;
    mad.lo.u32 %r5, %r2, %r3, %r1;
    mul.lo.u32 %r6, %r3, %r4;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd3, %rd2, %rd3;
    add.u32 %r12, %r5, %r3;
    rem.u32 %r12, %r12, %r6;
    mul.wide.u32 %rd4, %r12, 4;
    add.u64 %rd4, %rd2, %rd4;
    """
    for number in range(rounds):
        body += "ld.global.u32 %r13, [%rd4];" + GRID_BARRIER.format(2 * number)
        body += "ld.global.u32 %r14, [%rd3]; add.u32 %r14, %r14, %r13;"
        body += "st.global.u32 [%rd3], %r14;" + GRID_BARRIER.format(2 * number + 1)
    return module(HEAD + body + "ret;", ["u64"])


@pytest.mark.parametrize("schedule", ["lockstep", "descending"])
@pytest.mark.parametrize("blocks", [3, 150])
def test_all_blocks_of_a_cooperative_grid_meet(blocks: int, schedule: str) -> None:
    """More blocks than otherwise run together."""
    values = np.arange(64 * blocks, dtype=np.uint32)
    wanted = values.copy()
    for _ in range(3):
        wanted += np.roll(wanted, -64)
    text = exchange(3)
    result = launch(
        text,
        "kernel",
        (blocks,),
        (64,),
        [values],
        cooperative=True,
        schedule=schedule,
    )
    np.testing.assert_array_equal(values, wanted)
    assert result.hazards == ()


def test_only_a_cooperative_grid_has_a_workspace() -> None:
    with pytest.raises(EmulationError, match=r"out-of-bounds .* global access"):
        launch(exchange(1), "kernel", (3,), (64,), [np.zeros(192, np.uint32)])


X = np.zeros(4, np.uint32)
WRONG: Any = [5]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Struct(8, {0: X, 4: np.int32(1)}), "byte 4 .* overlaps the one"),
        (lambda: Struct(8, {0: np.int32(1), 4: X}), "of 8 bytes take 12"),
        (lambda: Struct(40, {-8: X}), "whole numbers from 0 on, got '-8'"),
        (lambda: Struct(40, {"a": X}), "whole numbers from 0 on, got 'a'"),  # type: ignore[dict-item]
        (
            lambda: Struct(8, {0: WRONG[0]}),
            "expected an array, Pointers, bytes or a scalar",
        ),
        (lambda: run_with(Struct(16, {0: X})), "has 32 bytes, got 16 bytes"),
        (lambda: run_with(X), "is a 32-byte b8, got an array"),
        (
            lambda: run_with(Struct(8, {0: Pointers(WRONG)})),
            "expected arrays in Pointers, got int",
        ),
        (lambda: with_symbols(X, {"other": X}), "there is no variable other; the "),
        (lambda: with_symbols(X, {"count": X}), "variable count has 4 bytes, got 16"),
        (lambda: with_symbols(X, {"count": X[::2]}), "expected a contiguous array"),
        (
            lambda: launch(exchange(1), None, (9999,), (64,), [X], cooperative=True),
            "a cooperative launch of 639936 threads: expected at most 221184",
        ),
    ],
)
def test_mistakes_are_one_line(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(EmulationError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def run_with(argument: Any) -> None:
    launch(WITH_STRUCT, None, (1,), (64,), [argument])


def test_a_variable_of_another_module() -> None:
    """It is not there; `symbols` give its contents, and its size."""
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .extern .global .align 4 .u32 other;
    .extern .const .align 4 .b8 list[];
    .entry k(.param .u64 p0) {
    .reg .b64 %p; .reg .b32 %r, %s; ld.param.u64 %p, [p0];
    ld.global.u32 %r, [other]; ld.const.u32 %s, [list+8]; add.u32 %r, %r, %s;
    st.global.u32 [%p], %r; ret; }
    .entry apart(.param .u64 p0) {
    .reg .b64 %p; ld.param.u64 %p, [p0]; st.global.u32 [%p], 5; ret; }
    """
    out = np.zeros(1, np.uint32)
    other, listed = np.array([7], np.uint32), np.array([1, 2, 30], np.uint32)
    symbols = {"other": other, "list": listed}
    emulate(text, "k", (1, 1, 1), (1, 1, 1), [out], symbols=symbols)
    assert out[0] == 37
    with pytest.raises(EmulationError, match="unknown name other"):
        emulate(text, "k", (1, 1, 1), (1, 1, 1), [out], symbols={"list": listed})
    prepare(text, "k")
    emulate(text, "apart", (1, 1, 1), (1, 1, 1), [out])
    assert out[0] == 5
