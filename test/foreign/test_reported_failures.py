"""Failures that users of other pipelining compilers reported: right here, or refused.

Each test names the report. "Right" is: the bits of the unpipelined program at every
stage count, without a hazard; "refused" is: the remark, and the program as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import reported_kernels as reported
from differential import (
    SCHEDULES,
    VISIBILITIES,
    Compiled,
    Settings,
    compile_both,
    launch,
)

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.runtime.ptx import assemble, find_ptxas
from alcop_mlir.target import find_target
from alcop_mlir.verifier.check import check

STAGES = ((2, 1), (3, 1), (6, 1), (1, 2), (3, 2), (2, 4))
UNPIPELINED = Settings((1, 1))
MODES = [(seen, order) for seen in VISIBILITIES for order in SCHEDULES]
SIZES = (0, 1, 2, 5, 8, 13)  # trip counts: fewer than the stages, no multiple of slots


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def results(compiled: Compiled, size: int, mode: tuple[str, str]) -> np.ndarray:
    """C afterwards; fails on a hazard."""
    random = np.random.default_rng(0)
    a = random.uniform(-1, 1, (reported.ROWS, 64)).astype("f4")
    c = np.full((64, 64), 7, "f4")
    block = (reported.THREADS, 1, 1)
    assert launch(compiled, (1, 1, 1), block, [a, c, size], mode) == ()
    return c


def compiled(text: str, settings: Settings) -> Compiled:
    """Compile; fails where the structural check finds something."""
    both = compile_both(text, settings)
    assert both.wrong == ()
    return both.pipelined


def assert_right(
    text: str, level: str = "shared", every: Sequence[tuple[int, int]] = STAGES
) -> None:
    """Pipelined, and the bits of the unpipelined program, with every stages."""
    base = compiled(text, UNPIPELINED)
    expected = {size: results(base, size, MODES[0]) for size in SIZES}
    for number, stages in enumerate(every):
        for tail in ("predicated", "wrap"):
            done = compiled(text, Settings(stages, tail=tail, noalias=True))
            assert level in done.levels or stages[level == "register"] == 1, stages
            for place, size in enumerate(SIZES):
                mode = MODES[(number + place) % len(MODES)]
                found = results(done, size, mode)
                same = found.tobytes() == expected[size].tobytes()
                assert same, (stages, tail, size, mode)


def assert_refused(text: str, remark: str) -> None:
    """The remark, no pipeline, and the same bits."""
    with make_context(), ir.Location.unknown(), diagnostics.collect() as said:
        alcop.load()
        module = ir.Module.parse(text)
        plan = "alcop-plan-pipelines{stages=3,1 assume-noalias-args=true}"
        run_pipeline(module, f"builtin.module({plan})")
        assert "alcop.pipeline" not in str(module)
    assert remark in "\n".join(found.message for found in said)
    base = compiled(text, UNPIPELINED)
    after = compiled(text, Settings((3, 1), noalias=True))
    assert after.levels == frozenset()
    for size in SIZES:
        expected = results(base, size, MODES[0])
        assert results(after, size, MODES[-1]).tobytes() == expected.tobytes()


# -- pipelining a buffer that was not multi-buffered (IREE #13451, #13718) -------------


def test_a_buffer_read_after_the_loop() -> None:
    text = reported.READ_AFTER_THE_LOOP.replace("to %n", "to %c4")
    remark = "its buffer is read by 'memref.load' outside of the loop"
    assert_refused(text, remark)


def test_a_buffer_whose_address_escapes() -> None:
    remark = (
        "its buffer is used by 'memref.extract_aligned_pointer_as_index', whose effect "
        "is not known"
    )
    assert_refused(reported.ESCAPES, remark)


def test_expansion_without_multi_buffering_is_noticed() -> None:
    """A pipeline string that leaves alcop-multi-buffer out: one slot for all tiles."""
    with make_context(), ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        module = ir.Module.parse(reported.PLAIN)
        plan = "alcop-plan-pipelines{stages=3,1 assume-noalias-args=true}"
        with pytest.raises(Exception, match="alcop-multi-buffer"):
            run_pipeline(module, f"builtin.module({plan},alcop-expand-pipelines)")


# -- views that were hoisted out of the loop (llvm #62885, #176941; IREE #23919) -------


@pytest.mark.parametrize("view", reported.HOISTED_VIEWS)
def test_hoisted_views(view: str) -> None:
    assert_right(reported.HOISTED_VIEWS[view])


# -- races once num_stages > 1 (Triton #8139, #8259, #6691; TileLang #96, #2668) -------


def test_plain_loop() -> None:
    assert_right(reported.PLAIN)


def test_use_before_the_next_load() -> None:
    remark = "its buffer is read by 'memref.load' before the copy"
    assert_refused(reported.USE_FIRST, remark)


def test_read_then_overwritten() -> None:
    remark = "its buffer is also written by 'memref.store'"
    assert_refused(reported.READ_THEN_OVERWRITTEN, remark)


# -- short and ragged loops (TileLang #2566, #2567; TVM #17579, #16027) ----------------


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_fewer_iterations_than_stages(trips: int) -> None:
    text = reported.PLAIN.replace("to %n", "to %last").replace(
        "%t = gpu", f"%last = arith.constant {trips} : index\n  %t = gpu"
    )
    base = compiled(text, UNPIPELINED)
    for stages in STAGES:
        for tail in ("predicated", "wrap"):
            done = compiled(text, Settings(stages, tail=tail, noalias=True))
            for mode in MODES:
                found = results(done, trips, mode)
                expected = results(base, trips, MODES[0])
                assert found.tobytes() == expected.tobytes(), (stages, tail, mode)


def test_last_tile_is_not_full() -> None:
    """What lies beyond the end of the last tile is zero, not what was there before."""
    assert_right(reported.GUARDED_WITH_FILL)


@pytest.mark.parametrize("name", ["CHOSEN", "CHOSEN_BOTH"])
def test_the_condition_chooses_what_is_stored(name: str) -> None:
    assert_right(getattr(reported, name))


def test_two_copies_under_one_condition() -> None:
    assert_right(reported.MERGED)


# -- predicated copies (TVM #19741, #13966; TileLang #1937) ----------------------------


def test_a_predicated_copy_is_no_full_overwrite() -> None:
    remark = "its condition changes from iteration to iteration"
    assert_refused(reported.GUARDED_WITHOUT_FILL, remark)


# -- commit groups and waits (TileLang #2505; IREE #13859) -----------------------------


@pytest.mark.parametrize("name", ["TWO_GROUPS", "TWO_WAITS"])
def test_two_groups_in_an_iteration(name: str) -> None:
    assert_right(getattr(reported, name))


@pytest.mark.parametrize("name", ["TWO_GROUPS", "TWO_WAITS"])
def test_one_group_and_one_barrier_per_iteration(name: str) -> None:
    """As few as a hand-written kernel has: groups, waits and barriers in each loop."""
    with make_context(), ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        module = ir.Module.parse(getattr(reported, name))
        steps = (
            "alcop-plan-pipelines{stages=3,1},alcop-multi-buffer,"
            "alcop-expand-pipelines,canonicalize,cse,alcop-place-waits"
        )
        run_pipeline(module, f"builtin.module({steps})")
        text = str(module)
    steady = text.split("scf.for")[1].split("alcop.unroll")[0]
    for op in ("create_group", "device_async_wait", "gpu.barrier"):
        assert steady.count(op) == 1, op
    # IREE #10388: the tail is a loop with predicates, not a copy for each stage.
    assert text.count("scf.for") == 2


# -- opaque accesses to a buffer with slots (TVM #19742) -------------------------------


def test_ldmatrix_of_a_slot() -> None:
    random = np.random.default_rng(0)
    a = random.uniform(-1, 1, (256, 16)).astype("f2")

    def run(settings: Settings, size: int, mode: tuple[str, str]) -> np.ndarray:
        done = compiled(reported.LDMATRIX, settings)
        assert settings.stages[0] == 1 or "shared" in done.levels
        c = np.zeros((32, 8), "f2")
        assert launch(done, (1, 1, 1), (32, 1, 1), [a, c, size], mode) == ()
        return c

    for size in (1, 5):
        expected = run(UNPIPELINED, size, MODES[0])
        for stages in STAGES:
            found = run(Settings(stages, noalias=True), size, MODES[-1])
            assert found.tobytes() == expected.tobytes(), (size, stages)


# -- annotations that other passes break (TVM #18018) ----------------------------------


@pytest.mark.parametrize(
    "between",
    ["canonicalize,cse", "loop-invariant-code-motion", "fold-memref-alias-ops"],
)
def test_passes_between_plan_and_expansion(between: str) -> None:
    """The plan hangs on ops, not on their positions in the loop."""
    with make_context(), ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        module = ir.Module.parse(reported.HOISTED_VIEWS["subview"])
        steps = (
            f"alcop-plan-pipelines{{stages=3,1}},{between},alcop-multi-buffer,"
            f"{between},alcop-expand-pipelines,{between},alcop-place-waits"
        )
        run_pipeline(module, f"builtin.module({steps})")
        assert check(module.operation) == []
        assert "nvgpu.device_async_wait" in str(module)


# -- shared memory beyond 48 KiB (TVM #11478) ------------------------------------------


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_slots_beyond_what_a_static_buffer_may_have() -> None:
    """32 KiB times 4: refused, or in memory that the launch asks for."""
    text = reported.PLAIN.replace("memref<64xf32, #", "memref<8192xf32, #")
    done = compiled(text, Settings((4, 1), noalias=True))
    assert assemble(done.ptx, find_target("sm_80")) is not None


def test_slots_beyond_what_a_block_has(tmp_path: Path) -> None:
    text = reported.PLAIN.replace("memref<64xf32, #", "memref<8192xf32, #")
    with make_context(), ir.Location.unknown(), diagnostics.collect() as said:
        alcop.load()
        module = ir.Module.parse(text)
        report = tmp_path / "report.json"
        plan = f"alcop-plan-pipelines{{stages=8,1 report={report}}}"
        run_pipeline(module, f"builtin.module({plan})")
    (remark,) = [found.message for found in said if "rule 5" in found.message]
    assert "8 slots need" in remark
    (entry,) = json.loads(report.read_text())
    assert (entry["pipelined"], entry["rule"]) == (False, 5)


# -- state that is not reset between runs (TileLang #2674) -----------------------------


def test_a_pipeline_that_is_run_again() -> None:
    """A persistent kernel: the pipelined loop inside a sequential one."""
    inner = reported.loop(reported.COPY, reported.READ).replace("%sum =", "%one =")
    inner = inner.split("  memref.store %sum")[0].replace("= %zero)", "= %outer)")
    text = reported.kernel(
        "  %sum = scf.for %p = %c0 to %c4 step %c1 iter_args(%outer = %zero) -> (f32) {"
        f"{inner}"
        "    scf.yield %one : f32\n  }\n"
        "  memref.store %sum, %C[%c0, %t] : memref<64x64xf32>"
    )
    assert_right(text)
