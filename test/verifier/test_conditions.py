"""What a plan's copies fill under a condition: reads that are not under it are found.

Nothing else sees these: neither passes after planning, nor the check of slots.
"""

from __future__ import annotations

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.plans import check_plans

KERNEL = """
#ws = #gpu.address_space<workgroup>
gpu.module @kernels {
gpu.func @kernel(%A: memref<64x64xf32>, %mask: memref<64xi32>, %C: memref<64xf32>,
                 %n: index)
    workgroup(%a : memref<64xf32, #ws>)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %none = arith.constant 0 : i32
  %fill = arith.constant 1.0 : f32
  %t = gpu.thread_id x
  %u = arith.subi %c63, %t : index
  %invariant = arith.cmpi ult, %n, %c4 : index
  %part = arith.cmpi ult, %t, %c4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %n step %c1 {
    %m = memref.load %mask[%k] : memref<64xi32>
    %go = arith.cmpi ne, %m, %none : i32
    %again = arith.cmpi ne, %m, %none : i32
    %other = arith.cmpi ult, %k, %c4 : index
    %own = arith.cmpi ult, %k, %t : index
    scf.if %go {
      %v = memref.load %A[%k, %t] : memref<64x64xf32>
      memref.store %v, %a[%t] : memref<64xf32, #ws>
    }
    gpu.barrier
    scf.if %go {
      %x = memref.load %a[%u] : memref<64xf32, #ws>
      memref.store %x, %C[%u] : memref<64xf32>
    }
    gpu.barrier
  }
  gpu.return
}
}
"""
PLAN = "alcop-plan-pipelines{stages=3,1 assume-noalias-args=true}"

pytestmark = pytest.mark.usefixtures("context")


def planned() -> str:
    module = ir.Module.parse(KERNEL)
    run_pipeline(module, f"builtin.module({PLAN})")
    assert 'kind = "fill"' in str(module)
    return str(module)


def messages(fill: str = "go", read: str = "go", more: str = "") -> list[str]:
    """What is found in the planned kernel, with other conditions of the two parts."""
    text = planned()
    names = {name: _named(text, name) for name in (fill, read)}
    first, second = f"scf.if {_named(text, 'go')} {{", "\0"
    text = text.replace(first, second, 1).replace(first, f"scf.if {names[read]} {{")
    text = text.replace(second, f"scf.if {names[fill]} {{")
    if more:
        # Only the fill is an op with a region and a number.
        text = text.replace("} {alcop.op", f"}} else {{ {more} }} {{alcop.op")
    return [wrong.message for wrong in check_plans(ir.Module.parse(text).operation)]


def _named(text: str, name: str) -> str:
    """What the printed kernel calls a condition, by its number among comparisons."""
    order = ("invariant", "part", "go", "again", "other", "own")
    lines = [line for line in text.splitlines() if "arith.cmpi" in line]
    return lines[order.index(name)].split()[0]


def test_reads_under_the_same_condition() -> None:
    assert messages() == []
    assert messages("invariant", "invariant") == []
    assert messages("other", "other") == []


@pytest.mark.parametrize("read", ["again", "other", "invariant"])
def test_reads_under_another_condition(read: str) -> None:
    (found,) = messages("go", read)
    assert "may read an older tile: 'memref.store' fills its buffer" in found


@pytest.mark.parametrize("fill", ["invariant", "part"])
def test_a_condition_that_does_not_change_leaves_nothing_older(fill: str) -> None:
    assert messages(fill, "go") == []


def test_threads_that_differ_in_the_condition() -> None:
    """Each reads what another one has not filled."""
    (found,) = messages("own", "own")
    assert "threads may differ in the condition" in found


def test_what_is_filled_otherwise_may_be_read_always() -> None:
    text = planned()
    store = next(line for line in text.splitlines() if "memref.store" in line)
    _, rest = store.split(",", 1)
    fill = next(line for line in text.splitlines() if "1.000000e+00 : f32" in line)
    otherwise = f"memref.store {fill.split()[0]},{rest}"
    assert messages("go", "other", otherwise) == []
