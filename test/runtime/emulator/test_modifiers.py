"""An opcode with modifiers that it does not take: one line that names the word.

That ptxas refuses the same is in `test_ptx_forms`.
"""

from __future__ import annotations

import pytest

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import prepare
from alcop_mlir.runtime.emulator.instructions.opcodes.forms import (
    Group,
    Match,
    match,
)

TEXT = """.version 9.0
.target {target}
.address_size 64
.visible .entry k()
{{
.reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p<4>;
{line}
ret;
}}
"""


def refusal(line: str, target: str = "sm_90a") -> str:
    with pytest.raises(EmulationError) as caught:
        prepare(TEXT.format(line=line, target=target))
    message = str(caught.value)
    instruction = line.removesuffix(";")
    start = f"PTX line 7: instruction not supported by the emulator: {instruction} "
    assert message.startswith(start)
    return message.removeprefix(start)[1:-1]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("add.xyz.u32 %r0, %r1, %r2;", "`add` takes no `.xyz`"),
        ("add..u32 %r0, %r1, %r2;", "a dot with no word behind it"),
        ("add.u32. %r0, %r1, %r2;", "a dot with no word behind it"),
        ("prmt.b32.xyz %r0, %r1, %r2, %r3;", "`prmt` takes no `.xyz`"),
        ("activemask.m8n8k4 %r0;", "`activemask` takes no `.m8n8k4`"),
        ("brkpt.uni;", "`brkpt` takes no `.uni`"),
        # Words that other types or other forms of the opcode have.
        ("add.ftz.f64 %d0, %d1, %d2;", "`add` takes no `.ftz` here"),
        ("add.sat.u32 %r0, %r1, %r2;", "`add` takes no `.sat` here"),
        ("setp.lo.s32 %p0, %r1, %r2;", "`setp` takes no `.lo` here"),
        ("ld.global.ca.L1::no_allocate.u32 %r0, [%d0];", "`ld` takes no `.L1::"),
        ("red.acq_rel.gpu.add.u32 [%d0], %r1;", "`red` takes no `.acq_rel`"),
        ("sub.s16x2 %r0, %r1, %r2;", "`sub` takes no `.s16x2`"),
        # Twice.
        ("add.ftz.ftz.f32 %r0, %r1, %r2;", "`add` takes no `.ftz` here"),
        ("add.u32.u32 %r0, %r1, %r2;", "`add` takes no `.u32` here"),
        # What is missing.
        ("mul.u32 %r0, %r1, %r2;", "`mul` lacks `.lo` or `.hi`"),
        ("cvt.f16.f32 %h0, %r1;", "`cvt` lacks `.rn`, `.rz`, `.rm` or `.rp`"),
        ("activemask %r0;", "`activemask` lacks `.b32`"),
        ("shf.l.b32 %r0, %r1, %r2, %r3;", "`shf` lacks `.clamp` or `.wrap`"),
        ("fma.f32 %r0, %r1, %r2, %r3;", "`fma` lacks `.rn`, `.rz`, `.rm` or `.rp`"),
        # Types of operands in another order.
        ("dp2a.s32.u64.lo %r0, %r1, %r2, %r3;", "`dp2a` takes no `.u64`"),
        (
            "cp.async.ca.global.shared [%r0], [%d1], 4;",
            "`cp` takes no `.shared` here",
        ),
    ],
)
def test_what_no_form_has(line: str, why: str) -> None:
    assert refusal(line).startswith(why)


@pytest.mark.parametrize(
    "line",
    [
        "add.sat.s32.sat %r0, %r1, %r2;",
        "sin.approx.approx.f32 %r0, %r1;",
        "shfl.sync.sync.idx.b32 %r0, %r1, 0, 31, -1;",
        "ld.volatile.L2::128B.global.u32 %r0, [%d0];",
        "st.global.L1::evict_unchanged.u32 [%d0], %r1;",
        "cvt.rn.f32.bf16 %r0, %h1;",
        "mapa.s64 %d0, %d1, %r2;",
    ],
)
def test_what_ptxas_takes_beyond_the_isa(line: str) -> None:
    prepare(TEXT.format(line=line, target="sm_90a"))


@pytest.mark.parametrize(
    "line",
    [
        "add.u16x2 %r0, %r1, %r2;",
        "add.s16x2 %r0, %r1, %r2;",
        "min.u16x2 %r0, %r1, %r2;",
        "min.relu.s16x2 %r0, %r1, %r2;",
        "max.relu.s32 %r0, %r1, %r2;",
        "mov.u32 %r0, %aggr_smem_size;",
    ],
)
def test_what_sm_80_has_not(line: str) -> None:
    prepare(TEXT.format(line=line, target="sm_90"))
    assert refusal(line, "sm_80") == "sm_80: targets from sm_90 on have it"


def test_a_multiply_whose_nan_no_document_has() -> None:
    line = "fma.rn.oob.f16x2 %r0, %r1, %r2, %r3;"
    assert refusal(line, "sm_89") == "sm_89: targets from sm_90 on have it"
    assert refusal(line) == "which NaN it takes for 0 is not documented"


@pytest.mark.parametrize(
    "asks", [".reqnctapercluster 2", ".explicitcluster", ".maxclusterrank 4"]
)
def test_clusters_before_sm_90(asks: str) -> None:
    text = TEXT.replace("k()", f"k() {asks}")
    with pytest.raises(EmulationError) as caught:
        prepare(text.format(line="", target="sm_89"))
    why = "sm_89: targets from sm_90 on have clusters"
    assert str(caught.value) == f"PTX line 4: kernel k: {why}"
    prepare(text.format(line="", target="sm_90"))


ROW = (Group(("rn",), True), Group(("f32", "f64"), False), Group(("f32",), False))


@pytest.mark.parametrize(
    ("words", "strange", "missing"),
    [
        ("f32 f32 rn", "", 0),
        ("f64 rn f32", "", 0),
        ("f32 f64", "f64", 1),  # the types of a row have an order
        ("f32 rn rn", "rn", 1),
        ("", "", 2),
    ],
)
def test_how_words_fit_a_row(words: str, strange: str, missing: int) -> None:
    found = match(ROW, words.split())
    assert found == Match(tuple(strange.split()), ROW[len(ROW) - missing :])
