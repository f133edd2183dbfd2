"""Other forms of loops and buffers are brought into the one that planning knows."""

from __future__ import annotations

from pathlib import Path

import pytest
import reported_kernels as reported
from input_forms import assert_right

TWO = "memref<2x64xf32, #gpu.address_space<workgroup>>"
SLOT = "memref<64xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- buffers with slots: the number of an iteration's slot, and of accesses to it ------


def with_slots(number: str, slot: str, view: str = "") -> str:
    """The plain loop, with two slots and one barrier in an iteration."""
    body = reported.loop(number + view + reported.COPY, reported.READ)
    before, _, after = body.rpartition("    gpu.barrier\n")
    accesses = "%own[" if view else f"%a[{slot}, "
    text = (before + after).replace("%a[%t", f"{accesses}%t")
    text = text.replace("%a[%other", f"{accesses}%other")
    return reported.kernel(text.replace("SHARED", SLOT if view else TWO), f"%a : {TWO}")


BY_REMAINDER = with_slots("    %s = arith.remui %k, %c2 : index", "%s")
BY_VIEW = with_slots(
    "    %s = affine.apply affine_map<(d0) -> (d0 mod 2)>(%k)",
    "%s",
    f"""
    %own = memref.subview %a[%s, 0] [1, 64] [1, 1] : {TWO} to {SLOT}""",
)


@pytest.mark.parametrize("text", [BY_REMAINDER, BY_VIEW], ids=["remainder", "view"])
def test_slots(text: str) -> None:
    assert_right(text, "alcop-fold-slots")


# -- what the loop does otherwise ------------------------------------------------------


def test_atomics_on_another_argument() -> None:
    atomic = """
    %old = memref.atomic_rmw addf %x, %C[%c1, %t] : (f32, memref<64x64xf32>) -> f32"""
    text = reported.kernel(reported.loop(reported.COPY, reported.READ + atomic))
    assert_right(text, "cse")


def test_an_address_by_a_choice() -> None:
    choice = """
    %few = arith.cmpi ult, %k, %c4 : index
    %row = scf.if %few -> (index) {
      %far = arith.muli %k, %c2 : index
      scf.yield %far : index
    } else {
      scf.yield %k : index
    }"""
    copy = choice + reported.COPY.replace("%A[%k,", "%A[%row,")
    assert_right(reported.kernel(reported.loop(copy, reported.READ)), "cse")


# -- one buffer, several loops ---------------------------------------------------------


def test_two_loops_in_turn() -> None:
    first = reported.loop(reported.COPY, reported.READ)
    second = first.replace("%sum", "%sum2").replace("%acc = %zero", "%acc = %sum")
    text = reported.kernel(first + second.replace("%C[%c0", "%C[%c1"), "%a : SHARED")
    assert_right(text, "alcop-separate-buffers")


# -- loops over integers ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_loops_over_integers(kind: str) -> None:
    bounds = f"""
  %n_{kind} = arith.index_cast %n : index to {kind}
  %lower = arith.constant -3 : {kind}
  %one = arith.constant 1 : {kind}
  %upper = arith.addi %n_{kind}, %lower : {kind}"""
    body = reported.loop(
        f"    %i = arith.subi %number, %lower : {kind}\n"
        f"    %k = arith.index_cast %i : {kind} to index{reported.COPY}",
        reported.READ,
    )
    body = body.replace(
        "scf.for %k = %c0 to %n step %c1",
        "scf.for %number = %lower to %upper step %one",
    )
    text = reported.kernel(bounds + body.replace("-> (f32) {", f"-> (f32) : {kind} {{"))
    assert_right(text, "alcop-normalize-loops")


# -- buffers that are views ------------------------------------------------------------


def test_views_of_dynamic_memory() -> None:
    views = """
  %bytes = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
  %c256 = arith.constant 256 : index
  %a = memref.view %bytes[%c256][]
    : memref<?xi8, #gpu.address_space<workgroup>> to SHARED"""
    loop = reported.loop(reported.COPY, reported.READ)
    text = reported.kernel(views + loop, "%unused : SHARED")
    assert_right(text, "alcop-separate-views", before=reported.PLAIN)


def test_an_assumption_of_alignment() -> None:
    assumed = """
  %b = memref.assume_alignment %a, 64 : SHARED"""
    read = reported.READ.replace("%a[", "%b[")
    text = reported.kernel(assumed + reported.loop(reported.COPY, read), "%a : SHARED")
    assert_right(text, "cse")


def test_barriers_of_nvvm() -> None:
    loop = reported.loop(reported.COPY, reported.READ)
    text = reported.kernel(loop.replace("gpu.barrier", "nvvm.barrier"))
    assert_right(text, "alcop-raise-barriers")
