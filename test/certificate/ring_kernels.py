"""Small kernels with a ring of slots, as PTX text: what proofs are tried on.

Each thread of 64 copies 4 bytes of a tile per turn, and reads what its neighbour has
copied. The loop has the form of those of pipelined matmuls; a run on the emulator takes
milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import emulate

THREADS, TILE = 64, 256  # bytes


@dataclass(frozen=True)
class Ring:
    """A pipeline of `slots` slots whose loop makes `n` turns, a parameter.

    waits:        groups that may be in flight when a turn reads; None for no wait
    has_barrier:  after the wait
    is_early:     the copy of a turn is issued before its wait
    is_committed: each turn commits, also where it copies nothing
    shift:        bytes that the copies of the loop go beside their slot
    counted:      slots that the ring counts, where not all
    """

    slots: int = 3
    waits: int | None = 1
    has_barrier: bool = True
    is_early: bool = False
    is_committed: bool = True
    shift: int = 0
    counted: int | None = None

    def text(self) -> str:
        """The PTX."""
        fetch = self._fetch()
        wait = "" if self.waits is None else f"  cp.async.wait_group {self.waits};\n"
        barrier = "  bar.sync 0;\n" if self.has_barrier else ""
        early, late = (fetch, "") if self.is_early else ("", fetch)
        prologue = "".join(map(self._prologue, range(self.slots - 1)))
        counted = self.slots if self.counted is None else self.counted
        return f"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry ring(.param .u64 in, .param .u64 out, .param .u64 n)
.reqntid {THREADS}, 1, 1
{{
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<32>;
  .shared .align 16 .b8 tiles[{self.slots * TILE}];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u64 %rd3, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  mov.u64 %rd6, tiles;
  add.s64 %rd7, %rd6, %rd4;
  xor.b64 %rd8, %rd4, 4;
  add.s64 %rd9, %rd6, %rd8;
  mov.b32 %r5, 0;
{prologue}
  mov.b64 %rd10, 0;
  mov.b64 %rd11, 0;
  mov.b64 %rd12, {(self.slots - 1) % self.slots};
  setp.lt.s64 %p1, %rd3, 1;
  @%p1 bra DONE;
LOOP:
{early}{wait}{barrier}
  shl.b64 %rd14, %rd11, 8;
  add.s64 %rd15, %rd9, %rd14;
  ld.shared.b32 %r6, [%rd15];
  add.s32 %r5, %r5, %r6;
{late}
  add.s64 %rd11, %rd11, 1;
  setp.eq.b64 %p3, %rd11, {self.slots};
  selp.b64 %rd11, 0, %rd11, %p3;
  add.s64 %rd12, %rd12, 1;
  setp.eq.b64 %p4, %rd12, {counted};
  selp.b64 %rd12, 0, %rd12, %p4;
  add.s64 %rd10, %rd10, 1;
  setp.lt.s64 %p5, %rd10, %rd3;
  @%p5 bra LOOP;
DONE:
  cp.async.wait_all;
  add.s64 %rd16, %rd2, %rd4;
  st.global.b32 [%rd16], %r5;
  ret;
}}
"""

    def _prologue(self, slot: int) -> str:
        return f"""
  setp.le.s64 %p6, %rd3, {slot};
  @%p6 bra SKIP{slot};
  cp.async.ca.shared.global [%rd7+{slot * TILE}], [%rd5+{slot * TILE}], 4;
SKIP{slot}:
  cp.async.commit_group;
"""

    def _fetch(self) -> str:
        commit = "  cp.async.commit_group;\n"
        return f"""
  add.s64 %rd20, %rd10, {self.slots - 1};
  setp.ge.s64 %p2, %rd20, %rd3;
  @%p2 bra NONE;
  shl.b64 %rd21, %rd12, 8;
  add.s64 %rd22, %rd7, %rd21;
  shl.b64 %rd23, %rd20, 8;
  add.s64 %rd24, %rd5, %rd23;
  cp.async.ca.shared.global [%rd22+{self.shift}], [%rd24], 4;
{"" if self.is_committed else commit}NONE:
{commit if self.is_committed else ""}"""


def misbehaves(ring: Ring, turns: int) -> bool:
    """Whether a run with so many turns has hazards, or another result than it should,
    where copies land late or early.
    """
    data = np.arange(turns * THREADS + THREADS, dtype=np.int32) * 7 + 1
    tiles = data[: turns * THREADS].reshape(turns, THREADS)
    expected = tiles[:, np.arange(THREADS) ^ 1].sum(axis=0, dtype=np.int32)
    for visibility in ("late", "early"):
        out = np.zeros(THREADS, np.int32)
        try:
            result = emulate(
                ring.text(),
                "ring",
                grid=(1, 1, 1),
                block=(THREADS, 1, 1),
                args=[data, out, turns],
                visibility=visibility,
            )
        except EmulationError:  # out of bounds
            return True
        if result.hazards or not np.array_equal(out, expected):
            return True
    return False


def steady_ring(slots: int = 3) -> str:
    """A ring whose source is an address that goes on with each turn."""
    text = Ring(slots, slots - 2).text()
    text = text.replace("shl.b64 %rd23, %rd20, 8;", "")
    text = text.replace("add.s64 %rd24, %rd5, %rd23;", "mov.b64 %rd24, %rd25;")
    last = "add.s64 %rd10, %rd10, 1;"
    text = text.replace(last, f"add.s64 %rd25, %rd25, 256;\n  {last}")
    start = f"  add.s64 %rd25, %rd5, {256 * (slots - 1)};\nLOOP:"
    return text.replace("LOOP:", start)
