"""A sample of the sweep over the forms of PTX: all that ptxas takes is translated.

The whole sweep: python bench/bench_ptx_forms.py.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from alcop_mlir.runtime.emulator.ptx.spelling import ordered
from alcop_mlir.runtime.ptx import find_ptxas

BENCH = Path(__file__).resolve().parents[3] / "bench"
SAMPLE = 41  # every 41st form, some 500 in all families


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        return importlib.import_module("bench_ptx_forms")


def test_a_sample_is_translated(bench: ModuleType) -> None:
    """For the first target of which ptxas takes it, and for none before."""
    before = {"sm_89": "sm_80", "sm_90a": "sm_89"}
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("needs ptxas")
    given = list(bench.forms())[::SAMPLE]
    taken = bench.all_accepted(given, ptxas)
    assert len(given) > 450
    assert len(taken) > len(given) // 3
    newer = {
        form: before[target]
        for form, target in taken.items()
        if target in before and form.family not in bench.OUT_OF_SCOPE
    }
    assert len(newer) > 50
    said = dict(bench.refusals(newer))
    assert [form.text for form in newer if form not in said] == []
    assert all("have it" in why or "has it" in why for why in said.values())
    refused = {form.text for form, _ in bench.refusals(taken)}
    scope = {form.text for form in taken if form.family in bench.OUT_OF_SCOPE}
    assert refused - scope == set()
    assert len(scope) <= 0.03 * len(taken)


def test_ptxas_and_the_emulator_refuse_what_is_no_form(bench: ModuleType) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("needs ptxas")
    good = bench.Form("integer", "add.s32 %r0, %r1, %r2;")
    bad = bench.Form("integer", "add.s32.lo %r0, %r1, %r2;")
    sm_89 = bench.Form("conversion", "cvt.rn.f16x2.e4m3x2 %r0, %h1;")
    surface = bench.Form("surface", "suq.width.b32 %r0, [sf0];")
    taken = bench.all_accepted([good, bad, sm_89, surface], ptxas)
    assert taken == {good: "sm_80", sm_89: "sm_89", surface: "sm_80"}
    assert [form for form, _ in bench.refusals(taken)] == [surface]
    rows = bench.table([good, bad, sm_89, surface], taken, {surface}).splitlines()
    assert rows[1].split() == ["integer", "2", "1", "1", "100.0", "%"]
    assert rows[-1].split() == ["all", "4", "3", "2", "66.7", "%"]


def test_modifiers_come_in_any_order(bench: ModuleType) -> None:
    """All orders that ptxas takes of the modifiers of a sample are translated."""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("needs ptxas")
    given = [f for f in bench.forms() if f.family not in bench.OUT_OF_SCOPE]
    taken = bench.all_accepted(given[7 :: 3 * SAMPLE], ptxas)
    _, others = bench.orders(taken, 3, ptxas)
    assert len(others) > 100
    assert list(bench.refusals(others)) == []


def test_what_ptxas_refuses_is_refused(bench: ModuleType) -> None:
    """Forms with one modifier more, less, twice or another one; most do not exist.

    A few of them lack an operand, of which ptxas knows more than the emulator.
    """
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("needs ptxas")
    given = [f for f in bench.forms() if f.family not in bench.OUT_OF_SCOPE]
    taken = bench.all_accepted(given[3::SAMPLE], ptxas)
    asked, found = bench.changes(taken, 1000, ptxas)
    assert len(asked) == 1000
    assert len(found) < 100
    *different, end = bench.differences(asked, found).splitlines()
    assert len(different) <= 5, different
    assert end.endswith(f"both say the same of {1000 - len(different)}")


def test_the_order_of_the_isa_stays(bench: ModuleType) -> None:
    """But for .satfinite of wgmma, for which the grammar has two places."""
    opcodes = {form.text.split(" ")[0].removesuffix(";") for form in bench.forms()}
    changed = [o for o in opcodes if ".".join(ordered(tuple(o.split(".")))) != o]
    assert [o for o in changed if not o.startswith("wgmma")] == []
    assert all(o.endswith("8.satfinite") for o in changed)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("mul.f32.ftz.rn", "mul.rn.ftz.f32"),
        ("setp.s32.and.ge", "setp.ge.and.s32"),
        ("shfl.idx.b32.sync", "shfl.sync.idx.b32"),
        ("redux.xor.b32.sync", "redux.sync.xor.b32"),
        ("match.b32.sync.any", "match.any.sync.b32"),
        ("barrier.red.aligned.popc.u32", "barrier.red.popc.aligned.u32"),
        (
            "barrier.cluster.arrive.aligned.relaxed",
            "barrier.cluster.arrive.relaxed.aligned",
        ),
        ("vset.add.eq.s32.u32", "vset.s32.u32.eq.add"),
        ("cp.async.shared.cg.L2::128B.global", "cp.async.cg.shared.global.L2::128B"),
        (
            "cp.async.bulk.global.bulk_group.shared::cta",
            "cp.async.bulk.global.shared::cta.bulk_group",
        ),
        (
            "fence.proxy.release.tensormap::generic.gpu",
            "fence.proxy.tensormap::generic.release.gpu",
        ),
        (
            "mma.sync.m16n8k32.aligned.row.satfinite.col.s32.u8.u8.s32",
            "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32",
        ),
        ("dp4a.u32.s32", "dp4a.u32.s32"),
        ("cvt.f32.rn.f64", "cvt.rn.f32.f64"),
    ],
)
def test_orders(written: str, wanted: str) -> None:
    assert ".".join(ordered(tuple(written.split(".")))) == wanted


def test_the_grammar_is_read_as_it_says(bench: ModuleType) -> None:
    """Some lines of it written out; no form twice."""
    texts = [form.text for form in bench.forms()]
    assert len(texts) == len(set(texts))
    wanted = """
        madc.hi.cc.u64 %d0, %d1, %d2, %d3;
        setp.le.xor.f64 %p0|%p5, %d1, %d2, !%p3;
        mov.b64 {%h0, %h1, %h2, %h3}, %d1;
        lop3.or.b32 _|%p5, %r1, %r2, %r3, 0x96, !%p5;
        vadd4.s32.u32.s32 %r0, %r1.b7654, %r2.b0246, %r3;
        st.shared.cs.u8 [%sp], %h1;
        cp.async.wait_all;
    """
    assert {line.strip() for line in wanted.strip().splitlines()} <= set(texts)
