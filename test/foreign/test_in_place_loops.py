"""Loops that store to the array that they load from: the bits of the loop as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
import reported_kernels as reported
from differential import context
from test_reported_failures import assert_refused, assert_right

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.running import PassFailure

STAGES = ((3, 1), (4, 2))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def in_place(load: str, store: str) -> str:
    """A row of C goes through shared memory, and is stored by other threads."""
    copy = f"""
    %next_row = arith.addi %k, %c1 : index
    %v = memref.load %C[{load}] : memref<64x64xf32>
    memref.store %v, %a[%t] : SHARED"""
    use = f"""
    %x = memref.load %a[%other] : SHARED
    %next = arith.addf %x, %x : f32
    memref.store %next, %C[{store}] : memref<64x64xf32>"""
    text = reported.loop(copy, use)
    return text[: text.rindex("\n")]  # C is not stored to after the loop


@pytest.mark.parametrize("load", ["%k, %t", "%next_row, %t"])
def test_copies(load: str) -> None:
    """Each thread stores what another one loaded, in the same or an earlier row."""
    text = reported.kernel(in_place(load, "%k, %other"), "%a : SHARED")
    assert_right(text, every=STAGES)


def test_copies_in_a_loop_that_runs_again() -> None:
    """What the next run loads first, other threads have stored last."""
    nest = f"""
  scf.for %p = %c0 to %c2 step %c1 {{{in_place("%k, %t", "%k, %other")}
  }}"""
    assert_right(reported.kernel(nest, "%a : SHARED"), every=STAGES)


def test_loads() -> None:
    """A barrier between load and store, and no shared memory."""
    body = """
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
    %x = arith.addf %v, %v : f32
    memref.store %x, %C[%k, %other] : memref<64x64xf32>
    gpu.barrier
  }"""
    assert_right(reported.kernel(body), "register", ((1, 3),))


def test_a_tail_does_not_start_again() -> None:
    text = reported.kernel(in_place("%k, %t", "%k, %other"), "%a : SHARED")
    plan = "alcop-plan-pipelines{stages=3,1 assume-noalias-args=true tail=wrap}"
    with context(), ir.Location.unknown(), diagnostics.collect() as said:
        module = ir.Module.parse(text)
        run_pipeline(module, f"builtin.module({plan},alcop-multi-buffer)")
        users = str(module).replace("pipeline<{", 'pipeline<{tail = "wrap", ')
        wrapped = ir.Module.parse(users)
        with pytest.raises(PassFailure, match="starts again with what the loop writes"):
            run_pipeline(wrapped, "builtin.module(alcop-expand-pipelines)")
    why = "it writes to what its copies would start again with"
    assert [one.message for one in said][:1] == [f"its tail is predicated: {why}"]


@pytest.mark.parametrize("store", ["%next_row, %other", "%c2, %other"])
def test_a_later_row_is_stored_to(store: str) -> None:
    remark = "its source may be written by 'memref.store' in the loop"
    text = reported.kernel(in_place("%k, %t", store), "%a : SHARED")
    assert_refused(text, remark)
