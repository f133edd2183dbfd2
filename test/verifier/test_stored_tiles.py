"""What threads write and TMA stores: fences, barriers and waits between."""

from __future__ import annotations

import pytest

from alcop_mlir.compilation import inputs
from alcop_mlir.verifier.rings.check import check_rings

FENCE = (
    "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, "
    "space = #nvvm.shared_space<cta>}"
)
MEET = "nvvm.barrier id = %id number_of_threads = %count"
COMMIT, FINISH = (
    "nvvm.cp.async.bulk.commit.group",
    "nvvm.cp.async.bulk.wait_group 0 {read}",
)
STORE = "nvgpu.tma.async.store %a to %map[%c0, %c0] : !tile -> !map"
TEXT = f"""
#ws = #gpu.address_space<workgroup>
!map = !nvgpu.tensormap.descriptor<tensor = memref<8x8xf16, 3>, swizzle = none,
    l2promo = none, oob = zero, interleave = none>
!tile = memref<8x8xf16, #ws>
gpu.module @m {{
gpu.func @f(%map: !map, %n: index) kernel attributes {{
    known_block_size = array<i32: 96, 1, 1>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %id = arith.constant 1 : i32
  %count = arith.constant 64 : i32
  %x = arith.constant 1.0 : f16
  %t = gpu.thread_id x
  %is_first = arith.cmpi eq, %t, %c0 : index
  %is_storing = arith.cmpi ult, %t, %c64 : index
  %a = memref.alloc() : !tile
  scf.if %is_storing {{
    scf.for %i = %c0 to %n step %c1 {{
      memref.store %x, %a[%c0, %c0] : !tile
      {FENCE}
      {MEET}
      scf.if %is_first {{
        {STORE}
        {COMMIT}
        {FINISH}
      }}
      {MEET} // again
    }}
    nvvm.cp.async.bulk.wait_group 0
  }}
  gpu.return
}}
}}
"""
UNFENCED = "written by threads and stored by TMA, with no 'fence.proxy.async' between"
UNREAD = "a store by TMA may still read shared memory when it ends"
REWRITTEN = "is written while a store by TMA may"
# What is changed, what for, and what is said.
WRONG = {
    "no fence": ((FENCE, ""), UNFENCED),
    "fence first": (
        ("memref.store %x", f"{FENCE}\n memref.store %x"),
        (FENCE + "\n      nvvm.barrier", "nvvm.barrier"),
        UNFENCED,
    ),
    "no barrier": ((MEET + "\n", "\n"), REWRITTEN),
    "no barrier, and the last thread stores": (
        (MEET + "\n", "\n"),
        ("eq, %t, %c0", "eq, %t, %c63"),
        "is stored while threads may still write it",
    ),
    "no wait": ((FINISH, ""), REWRITTEN),
    "no barrier behind the wait": ((MEET + " // again", ""), REWRITTEN),
    "wait for less": ((FINISH, FINISH.replace("0", "1")), REWRITTEN),
    "no group": ((COMMIT, ""), UNREAD),
    "never written": (
        ("memref.store %x, %a[%c0, %c0] : !tile", ""),
        "is stored and was never written",
    ),
    "others at the barrier": (
        ("%count = arith.constant 64", "%count = arith.constant 96"),
        "not all threads that it is for come here",
    ),
    "more at the barrier": (
        ("%count = arith.constant 64", "%count = arith.constant 32"),
        "and others come to it",
    ),
}


def found(text: str) -> list[str]:
    module = inputs.read(text).module
    return [wrong.message for wrong in check_rings(module.operation)]


def test_it_is_right() -> None:
    assert found(TEXT) == []


def test_who_stores_may_fence() -> None:
    """A fence anywhere on the way will do: behind the barrier, by who stores."""
    text = TEXT.replace(FENCE, "").replace(STORE, f"{FENCE}\n{STORE}")
    assert text.count(FENCE) == 1
    assert found(text) == []


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused(name: str) -> None:
    *changes, said = WRONG[name]
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (message,) = found(text)
    assert said in message


def test_a_copy_that_nobody_awaits_is_refused() -> None:
    text = TEXT.replace("%n step", "%c1 step").replace(FINISH, "")
    assert found(text.replace("nvvm.cp.async.bulk.wait_group 0", "")) == [UNREAD]
