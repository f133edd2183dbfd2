"""A barrier orders two ops only in iterations in which it is run as well."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.pipelining.plans.plan_dependences import Dependences, Placed
from alcop_mlir.bindings import ir

SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"
KERNEL = f"""
gpu.module @kernels {{
  gpu.func @kernel(%n: index) workgroup(%a : {SHARED}) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %other = arith.subi %c63, %t : index
    scf.for %k = %c0 to %n step %c1 {{
      memref.store %zero, %a[%t] : {SHARED}
      gpu.barrier
      %x = memref.load %a[%other] : {SHARED}
    }}
    gpu.return
  }}
}}"""


@pytest.mark.parametrize(
    ("leads", "is_kept"),
    [
        ((0, 0, 0), True),
        ((1, 1, 1), True),
        ((0, 1, 0), False),  # not run in the last iteration
        ((1, 0, 1), False),  # nor before the first
    ],
)
def test_a_barrier_runs_with_the_ops(
    context: None, leads: tuple[int, int, int], is_kept: bool
) -> None:
    module = ir.Module.parse(KERNEL)
    kernel = module.body.operations[0].regions[0].blocks[0].operations[0]
    loop = list(kernel.regions[0].blocks[0].operations)[-2].operation
    ops = [one.operation for one in loop.regions[0].blocks[0].operations][:3]
    order = [Placed(op, lead) for op, lead in zip(ops, leads, strict=True)]
    found = [
        (one.first.op.name, one.second.op.name)
        for one in Dependences(loop, order, {}, noalias=False).broken()
    ]
    assert found == ([] if is_kept else [("memref.store", "memref.load")])
