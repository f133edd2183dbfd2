"""A plan that drops a group or a wait of copies which are not the pipeline's."""

from __future__ import annotations

import re

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.plans import check_plans

SHARED = "memref<32xf32, #gpu.address_space<workgroup>>"
GLOBAL = "memref<64x32xf32>"
# %C is stored to in the loop, so that its copy is refused.
KERNEL = f"""
gpu.module @kernels {{
  gpu.func @kernel(%A: {GLOBAL}, %C: {GLOBAL}) workgroup(%a : {SHARED}, %c : {SHARED})
      kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    %t = gpu.thread_id x
    %u = arith.subi %c31, %t : index
    scf.for %k = %c0 to %c31 step %c1 {{
      %1 = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : {GLOBAL} to {SHARED}
      %2 = nvgpu.device_async_copy %C[%k, %t], %c[%t], 1 : {GLOBAL} to {SHARED}
      %g = nvgpu.device_async_create_group
      nvgpu.device_async_wait %g {{numGroups = 0 : i32}}
      gpu.barrier
      %x = memref.load %a[%u] : {SHARED}
      %y = memref.load %c[%u] : {SHARED}
      %z = arith.addf %x, %y : f32
      %next = arith.addi %k, %c1 : index
      memref.store %z, %C[%next, %t] : {GLOBAL}
      gpu.barrier
    }}
    gpu.return
  }}
}}"""

pytestmark = pytest.mark.usefixtures("context")


@pytest.mark.parametrize("name", ["device_async_wait", "device_async_create_group"])
def test_dropped(name: str) -> None:
    module = ir.Module.parse(KERNEL)
    options = "stages=3,1 assume-noalias-args=true"
    run_pipeline(module, f"builtin.module(alcop-plan-pipelines{{{options}}})")
    assert check_plans(module.operation) == []
    text = str(module)
    entry = re.search(rf', {{[^{{}}]*name = "nvgpu\.{name}"[^{{}}]*}}', text)
    assert entry, text
    number = re.search(r"op = (\d+)", entry[0])
    assert number
    text = text.replace(entry[0], "")
    text = re.sub(rf",? ?alcop\.op = {number[1]} : i64(, )?", "", text)
    (wrong,) = check_plans(ir.Module.parse(text).operation)
    assert "is not in the plan, and neither is a" in wrong.message
    assert wrong.op.name == f"nvgpu.{name}"


def test_groups_of_the_pipeline_are_placed_anew() -> None:
    """Where all copies are its own, the plan names neither groups nor waits."""
    module = ir.Module.parse(
        KERNEL.replace("store %z, %C[", "store %z, %R[").replace(
            "(%A:", f"(%R: {GLOBAL}, %A:"
        )
    )
    options = "stages=3,1 assume-noalias-args=true"
    run_pipeline(module, f"builtin.module(alcop-plan-pipelines{{{options}}})")
    assert str(module).count('kind = "fill"') == 2
    assert "device_async_wait" not in str(module).partition("alcop.pipeline")[2]
    assert check_plans(module.operation) == []
