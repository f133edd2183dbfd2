"""Shared memory that nothing has written: a hazard only where its value is used.

Cells 32 and up are not written. Each case says whether the value reaches memory, a
branch or an address.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import launch, line_of, module
from racy_kernels import TWO_WARPS, kinds, run_two_warps

from alcop_mlir.runtime.emulator import Hazard, Result

LATE = ("late", "lockstep")
START = """
    .reg .b32 %x, %y, %z, %w; .reg .pred %q, %h; .reg .b64 %rd; .reg .b16 %s;
    .reg .f32 %f<8>;
    and.b32 %y, %i, 31; shl.b32 %y, %y, 2; add.u32 %y, %y, %cells;
    setp.lt.u32 %p, %i, 32;
    @%p st.shared.u32 [%y], %v;
    bar.sync 0;
    ld.shared.u32 %x, [%at]; // the load
"""
STORE = "st.global.u32 [%out], %x; // the use"

USED = {
    "stored": STORE,
    "computed with": "add.u32 %x, %x, 5; mul.lo.u32 %x, %x, %x;" + STORE,
    "one of a vector": """
        and.b32 %y, %i, 7; shl.b32 %y, %y, 4; add.u32 %y, %y, %cells;
        ld.shared.v4.u32 {%x, %y, %z, %w}, [%y+64]; // also a load
        mov.u32 %x, %w;
    """
    + STORE,
    "added to memory": "red.global.add.u32 [%out], %x; // the use",
    "an address": """
        sub.u32 %z, %x, %x; add.u32 %z, %z, %at;
        ld.shared.u32 %z, [%z]; // the use
    """,
    "a branch": """
        setp.eq.u32 %q, %x, 7;
        @%q bra SKIP; // the use
        add.u32 %v, %v, 1;
        SKIP: st.global.u32 [%out], %v;
    """,
    "whether to store": """
        setp.ne.u32 %q, %x, 7;
        @%q st.global.u32 [%out], %v; // the use
    """,
    "whether to compute": """
        setp.ne.u32 %q, %x, 7;
        @%q add.u32 %v, %v, 1;
        st.global.u32 [%out], %v; // the use
    """,
    "which of two": """
        setp.ne.u32 %q, %x, 7;
        selp.u32 %x, 3, 4, %q;
    """
    + STORE,
    "by way of shared memory": """
        st.shared.u32 [%at+256], %x;
        ld.shared.u32 %x, [%at+256];
    """
    + STORE,
    "from another lane": """
        shfl.sync.bfly.b32 %x, %x, 1, 31, -1;
    """
    + STORE,
    "from another warp": """
        st.shared.u32 [%at+256], %x;
        bar.sync 0;
        ld.shared.u32 %x, [%other+256];
    """
    + STORE,
    "half of it": "and.b32 %x, %x, 0xffff;" + STORE,
    "around a loop": """
        mov.u32 %z, 0;
        NEXT: add.u32 %x, %x, 1;
        add.u32 %z, %z, 1;
        setp.lt.u32 %q, %z, 3;
        @%q bra NEXT;
    """
    + STORE,
}
DROPPED = {
    "never used": "st.global.u32 [%out], %v;",
    "overwritten": "mov.u32 %x, 5;" + STORE,
    "not chosen": "selp.u32 %x, %x, 0, %p;" + STORE,
    "predicated": "@!%p mov.u32 %x, 0;" + STORE,
    "not stored": "@%p " + STORE,
    "masked out": "selp.b32 %y, -1, 0, %p; and.b32 %x, %x, %y;" + STORE,
    "decides nothing": """
        setp.lt.u32 %q, %x, 10;
        and.pred %q, %q, %p;
        @%q bra SKIP;
        add.u32 %v, %v, 1;
        SKIP: st.global.u32 [%out], %v;
    """,
    "behind a branch": """
        @!%p bra SKIP;
        st.global.u32 [%out], %x;
        SKIP: ret;
    """,
    "of lanes that no one asks": """
        ld.shared.u32 %x, [%y+64]; // lanes 0 to 15 have theirs
        shfl.sync.idx.b32 %x, %x, 3, 31, -1;
    """
    + STORE,
    "others of a vector": """
        and.b32 %y, %i, 7; shl.b32 %y, %y, 4; add.u32 %y, %y, %cells;
        ld.shared.v4.u32 {%x, %y, %z, %w}, [%y+8];
        setp.lt.u32 %q, %i, 7;
        @%q st.global.v2.u32 [%out], {%x, %x};
    """.replace("[%y+8]", "[%y]").replace(
        ".v2.u32 [%out], {%x, %x}", ".u32 [%out], %x"
    ),
    "copied, then written": """
        st.shared.u32 [%at+256], %x;
        st.shared.u32 [%at+256], %v;
        ld.shared.u32 %x, [%at+256];
    """
    + STORE,
}
CELLS = TWO_WARPS.replace("cells[256]", "cells[512]")


def run(body: str, schedule: str = "lockstep") -> tuple[str, Result]:
    text = module(CELLS + START + body, ["u64", "u64"])
    arrays = [np.arange(1, 65, dtype=np.uint32), np.zeros(64, np.uint32)]
    return text, launch(text, "kernel", (2,), (64,), arrays, schedule=schedule)


def of_unwritten(result: Result) -> list[Hazard]:
    return [h for h in result.hazards if h.kind == "uninitialised-read"]


@pytest.mark.parametrize("schedule", ["lockstep", "descending"])
@pytest.mark.parametrize("case", USED)
def test_a_value_that_is_used_is_reported(case: str, schedule: str) -> None:
    text, result = run(USED[case], schedule)
    found = of_unwritten(result)
    assert found
    line = line_of(text, "// also a load" if "vector" in case else "// the load")
    assert line in [h.line for h in found]
    assert any(f"at PTX line {line_of(text, '// the use')}:" in str(h) for h in found)


@pytest.mark.parametrize("schedule", ["lockstep", "descending"])
@pytest.mark.parametrize("case", DROPPED)
def test_a_value_that_is_dropped_is_not(case: str, schedule: str) -> None:
    _, result = run(DROPPED[case], schedule)
    assert of_unwritten(result) == []


def test_rows_of_a_product_that_nobody_stores() -> None:
    """A of rows 8 to 15 is unwritten, and so are those rows of D only."""
    body = """
    .reg .b32 %a<4>, %b<2>, %c<4>;
    shl.b32 %y, %i, 2; add.u32 %y, %y, %cells;
    mov.b32 %a0, 0x3c003c00; mov.b32 %a2, %a0;
    ld.shared.u32 %a1, [%y+256];
    ld.shared.u32 %a3, [%y+256];
    mov.b32 %b0, %a0; mov.b32 %b1, %a0;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%f4, %f4, %f4, %f4};
    st.global.f32 [%out], FIELD;
    """
    for field, wanted in (("%f0", 0), ("%f2", 1)):
        _, result = run("mov.f32 %f4, 0f00000000;" + body.replace("FIELD", field))
        assert len({h.kind for h in of_unwritten(result)}) == wanted


def test_an_atomic_uses_what_it_finds() -> None:
    _, result = run_two_warps("atom.shared.add.u32 %v, [%at], 1;", *LATE)
    assert kinds(result) == {"uninitialised-read"}


@pytest.mark.parametrize("form", ["", ".trans"])
def test_a_row_of_a_matrix_reaches_the_lanes_that_receive_of_it(form: str) -> None:
    """Row 7 of the second matrix is unwritten, all other rows are written."""
    body = f"""
    and.b32 %y, %i, 15; shl.b32 %y, %y, 4; and.b32 %y, %y, 127;
    add.u32 %y, %y, %cells;
    and.b32 %z, %i, 15; setp.eq.u32 %q, %z, 15;
    @%q add.u32 %y, %y, 128;
    ldmatrix.sync.aligned.m8n8.x2{form}.shared.b16 {{%z, %w}}, [%y];
    and.b32 %x, %i, 31; LANES
    @%q st.global.u32 [%out], REGISTER;
    """
    receive = "shr.u32 %x, %x, 2; setp.OP.u32 %q, %x, 7;"
    if form:
        receive = "and.b32 %x, %x, 3; setp.OP.u32 %q, %x, 3;"
    for register, condition, wanted in (
        ("%w", "eq", True),
        ("%w", "ne", False),
        ("%z", "eq", False),
    ):
        text = body.replace("LANES", receive.replace("OP", condition))
        _, result = run(text.replace("REGISTER", register))
        assert bool(of_unwritten(result)) == wanted
