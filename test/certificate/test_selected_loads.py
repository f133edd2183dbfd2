"""Loads from one of two arrays, as what was loaded says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven, verdict

from alcop_mlir.checker.ptx.text import read_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

# Of each row, a number of all or its own elements.
CHOSEN = Case(
    "chosen",
    """
func.func @f(%which: memref<32xi1>, %a: memref<8xf16>, %B: memref<32x8xf16>,
             %C: memref<32x8xf16>) {
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>,
                       affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%which, %a, %B : memref<32xi1>, memref<8xf16>, memref<32x8xf16>)
      outs(%C : memref<32x8xf16>) {
    ^bb0(%is: i1, %one: f16, %own: f16, %c: f16):
      %found = arith.select %is, %one, %own : f16
      linalg.yield %found : f16
  }
  return
}""",
)


CHOICE = re.compile(r"selp\.b64 (%rd\d+), (%rd\d+), (%rd\d+), (%p\d+);")
TEXT = CHOSEN.ptx.replace(" \t", " ")
(FOUND,) = CHOICE.finditer(TEXT)
SELECTED, FIRST, SECOND, TEST = FOUND.groups()


def test_is_proven_whole() -> None:
    (name,) = re.findall(r"\.entry (\w+)", TEXT)
    assert any(ins.is_choice for ins in read_kernel(TEXT, name).code)
    assert_proven(CHOSEN)


@pytest.mark.parametrize("address", [FIRST, SECOND])
def test_other_elements_are_refused(address: str) -> None:
    shifted = f"xor.b64 {address}, {address}, 2;\n\t{FOUND.group()}"
    assert_misplaced(CHOSEN, FOUND.group(), shifted)


@pytest.mark.parametrize("address", [FIRST, SECOND])
def test_each_address_is_inside_of_its_array(address: str) -> None:
    far = f"add.s64 {address}, {address}, 512;\n\t{FOUND.group()}"
    assert not verdict(CHOSEN, TEXT.replace(FOUND.group(), far)).is_bounded


def test_addresses_are_those_that_were_chosen() -> None:
    """Not those that registers hold where it is loaded."""
    there, back = (f"add.s64 {FIRST}, {FIRST}, {step};" for step in (2, -2))
    assert_misplaced(CHOSEN, FOUND.group(), f"{there} {FOUND.group()} {back}")


def test_ways_that_meet_behind_the_choice_are_gone_through() -> None:
    later = f"@{TEST} bra ON;\n\t{FOUND.group()}\nON:"
    first = f"mov.b64 {SELECTED}, {FIRST};\n\t{later}"
    text = TEXT.replace(FOUND.group(), first)
    (name,) = re.findall(r"\.entry (\w+)", text)
    assert not any(ins.is_choice for ins in read_kernel(text, name).code)


def test_what_blocks_and_threads_decide_is_not_loaded_twice() -> None:
    choice = FOUND.group().replace(TEST, "%p0")
    text = TEXT.replace(
        FOUND.group(), f"setp.lt.u64 %p0, {SECOND}, {FIRST};\n\t{choice}"
    )
    (name,) = re.findall(r"\.entry (\w+)", text)
    assert not any(ins.is_choice for ins in read_kernel(text, name).code)
