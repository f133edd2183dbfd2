"""How often planning compares memory in loops with many copies."""

from __future__ import annotations

from typing import Any

import pytest

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir import memory
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline

PASSES = "alcop-plan-pipelines{stages=2,1},alcop-multi-buffer,alcop-expand-pipelines"


def copying(copies: int) -> str:
    """A loop with so many copies, each into a buffer of its own."""
    numbers = range(copies)
    kind = "memref<8xf32, #gpu.address_space<workgroup>>"
    buffers = ", ".join(f"%a{n} : {kind}" for n in numbers)
    fills = "".join(
        f"""
        %c{n} = arith.constant {8 * n} : index
        %i{n} = arith.addi %k, %c{n} : index
        %v{n} = memref.load %A[%t, %i{n}] : memref<8x4096xf32>
        memref.store %v{n}, %a{n}[%t] : {kind}"""
        for n in numbers
    )
    uses = "".join(
        f"""
        %x{n} = memref.load %a{n}[%first] : {kind}
        %s{n + 1} = arith.addf %s{n}, %x{n} : f32"""
        for n in numbers
    )
    return f"""
gpu.module @kernels {{
  gpu.func @copying(%A: memref<8x4096xf32>, %C: memref<8xf32>)
      workgroup({buffers}) kernel {{
    %first = arith.constant 0 : index
    %step = arith.constant {8 * copies} : index
    %end = arith.constant 4096 : index
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %sum = scf.for %k = %first to %end step %step iter_args(%s0 = %zero) -> (f32) {{
      {fills}
      gpu.barrier
      {uses}
      gpu.barrier
      scf.yield %s{copies} : f32
    }}
    memref.store %sum, %C[%t] : memref<8xf32>
    gpu.return
  }}
}}
"""


def comparisons(copies: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often it is asked whether two memrefs overlap."""
    asked: list[Any] = []
    may_alias = memory.may_alias

    def counted(*memrefs: Any) -> bool:
        asked.append(memrefs)
        return may_alias(*memrefs)

    with make_context(), ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        module = ir.Module.parse(copying(copies))
        with monkeypatch.context() as patched:
            patched.setattr(memory, "may_alias", counted)
            run_pipeline(module, f"builtin.module({PASSES})")
        assert str(module).count("nvgpu.device_async_copy") == 3 * copies
    return len(asked)


def test_comparisons_grow_with_the_copies_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = (comparisons(copies, monkeypatch) for copies in (8, 32))
    assert many <= 4 * few
