"""Asynchronous copies into buffers without known slots: the first read waits."""

from __future__ import annotations

import pytest

from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.verifier.check import check

SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"
COPY = f"""
  %copy = nvgpu.device_async_copy %A[%t], %a[%t], 1 : memref<64xf32> to {SHARED}"""
GROUP = """
  %group = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token"""
WAIT = """
  nvgpu.device_async_wait %group {numGroups = 0 : i32}"""
LATER = WAIT.replace("= 0", "= 1")
BARRIER = """
  gpu.barrier"""
READ = f"""
  %x = memref.load %a[%other] : {SHARED}"""
STORE = f"""
  memref.store %zero, %a[%t] : {SHARED}"""
UNKNOWN = f"""
  %where = "test.where"(%a) : ({SHARED}) -> index"""


def found(body: str) -> list[str]:
    text = f"""
gpu.module @kernels {{
gpu.func @kernel(%A: memref<64xf32>, %go: i1) workgroup(%a : {SHARED}) kernel {{
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
{body}
  gpu.return
}}
}}"""
    with make_context() as context, ir.Location.unknown():
        alcop.load()
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        return [wrong.message for wrong in check(module.operation)]


@pytest.mark.parametrize(
    "body",
    [
        COPY + GROUP + WAIT + BARRIER + READ,
        # What is read may be what was stored before, or has landed before.
        STORE + BARRIER + COPY + GROUP + READ + WAIT,
        COPY + GROUP + WAIT + BARRIER + COPY.replace("%copy", "%next") + READ,
        # Some threads copy, and wait for that.
        f"  scf.if %go {{{COPY}{GROUP}{WAIT}\n  }}{BARRIER}{READ}",
        # An op that is not understood may wait.
        COPY + GROUP + UNKNOWN + READ,
        # Who knows what they wait for.
        COPY + "\n  nvvm.cp.async.commit.group\n  nvvm.cp.async.wait.group 0" + READ,
    ],
)
def test_right(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    "body",
    [
        COPY + GROUP + BARRIER + READ + WAIT,
        COPY + GROUP + READ,
        f"  scf.if %go {{{COPY}{GROUP}\n  }}{BARRIER}{READ}",
        # The group holds no copy.
        GROUP + COPY + WAIT + BARRIER + READ,
    ],
)
def test_read_before_the_copy_landed(body: str) -> None:
    assert found(body) == [
        f"'{SHARED}' is read before any copy into it has landed: no wait covers one"
    ]


def test_a_wait_that_covers_no_group() -> None:
    assert found(COPY + GROUP + LATER + BARRIER)[0].startswith("lets 1 groups fly, but")
