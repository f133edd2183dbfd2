"""Shared memory without known slots: what may be in flight, and who races."""

from __future__ import annotations

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.check import check

pytestmark = pytest.mark.usefixtures("context")
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
READ_OWN = READ.replace("%x", "%y").replace("%other", "%t")
READ_OF_OTHERS = f"""
  %32 = arith.constant 32 : index
  %last = arith.ori %t, %32 : index
  %x = memref.load %a[%last] : {SHARED}""".replace("%32", "%c32")
COPY_OF_FEW = f"""
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %few = arith.cmpi ult, %t, %c8 : index
  scf.if %few {{{COPY}
  }}"""
NEXT_OF_FEW = COPY_OF_FEW.replace("%copy", "%next")
COPY_IN_TURN = f"""
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %t to %c64 step %c32 {{{COPY.replace("%t", "%i")}
  }}"""
STORE_FIRST = f"""
  %c0 = arith.constant 0 : index
  memref.store %zero, %a[%c0] : {SHARED}"""
READ_FIRST = f"""
  %x = memref.load %a[%c0] : {SHARED}"""
COPY_OF_NOTHING = f"""
  %c0 = arith.constant 0 : index
  %none = nvgpu.device_async_copy %A[%t], %a[%t], 1, %c0 : memref<64xf32> to {SHARED}"""
READ_BEYOND = f"""
  %c64 = arith.constant 64 : index
  %beyond = arith.addi %t, %c64 : index
  %x = memref.load %a[%beyond] : {SHARED}"""
UNKNOWN = f"""
  %where = "test.where"(%a) : ({SHARED}) -> index"""


def found(body: str) -> list[str]:
    text = f"""
gpu.module @kernels {{
gpu.func @kernel(%A: memref<64xf32>, %go: i1) workgroup(%a : {SHARED})
    kernel attributes {{known_block_size = array<i32: 64, 1, 1>}} {{
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
{body}
  gpu.return
}}
}}"""
    ir.Context.current.allow_unregistered_dialects = True
    module = ir.Module.parse(text)
    return [wrong.message for wrong in check(module.operation)]


@pytest.mark.parametrize(
    "body",
    [
        COPY + GROUP + WAIT + BARRIER + READ,
        # What is read is not what is in flight.
        STORE + BARRIER + COPY_OF_FEW + GROUP + READ_OF_OTHERS + WAIT,
        COPY + GROUP + WAIT + BARRIER + NEXT_OF_FEW + READ_OF_OTHERS,
        # Stores, and reads of what the thread itself has stored.
        COPY + GROUP + WAIT + STORE + READ_OWN + BARRIER + READ + BARRIER + STORE,
        # All threads store the same.
        COPY + GROUP + WAIT + BARRIER + STORE_FIRST + READ_FIRST,
        # It is not known who copies, nor where.
        COPY + GROUP + WAIT + BARRIER + "  scf.if %go {" + NEXT_OF_FEW + "\n  }" + READ,
        # Threads run a loop differently often.
        COPY_IN_TURN + GROUP + WAIT + BARRIER + READ,
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


NEXT = COPY.replace("%copy", "%next")
LANDED = COPY + GROUP + WAIT + BARRIER
IN_FLIGHT = "is read while a copy into it is in flight: no wait covers its group"
NO_BARRIER = "is read with no barrier since its copies landed"
REFILLED = "is filled with no barrier since it was last read"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        # After a copy that was waited for.
        (LANDED + NEXT + READ, IN_FLIGHT),
        (LANDED + BARRIER + NEXT + GROUP.replace("%group", "%g2") + BARRIER + READ,
         IN_FLIGHT),
        (LANDED + NEXT_OF_FEW + READ, IN_FLIGHT),
        (COPY + GROUP + WAIT + READ, NO_BARRIER),
        (LANDED + READ + NEXT, REFILLED),
        (COPY_IN_TURN + GROUP + WAIT + READ, NO_BARRIER),
        # By threads themselves, in a kernel with copies.
        (LANDED + STORE + BARRIER + READ + STORE, REFILLED),
        (COPY_OF_NOTHING + GROUP + WAIT + BARRIER + STORE + READ,
         "is read with no barrier since another thread stored it"),
        (LANDED + READ_BEYOND, "is of byte 256, its buffer has 256"),
    ],
)  # fmt: skip
def test_wrong(body: str, why: str) -> None:
    assert why in found(body)


def test_a_wait_that_covers_no_group() -> None:
    assert found(COPY + GROUP + LATER + BARRIER)[0].startswith("lets 1 groups fly, but")
