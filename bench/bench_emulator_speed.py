"""Seconds of the emulator for a million warp instructions, by kind of code.

Each kind is a loop of its own in blocks of 256 threads, with the hazards on. Prints the
best of a few runs, what it is of straight arithmetic by as many live warps, run beside
it, and whether that is more than it may be. Then 1024 cubed in f16, by mma and by a
warp-specialised kernel of Hopper, and the time to read and translate the kernels of
CUB's radix sort, where nvcc is found.

`--cpu` counts the CPU seconds of each call, for a machine that has other work, too; the
contractions, which use several cores, are left out.

Usage: python bench/bench_emulator_speed.py [--repeats N] [--cpu] [KIND ...]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench_emulator import FIXTURES, best_run, timed

from alcop_mlir.runtime.emulator import TensorMap, emulate, prepare

BLOCKS, THREADS = 64, 256
MOST = 10.0  # times the cost of straight arithmetic
TRANSLATION_LIMIT = 2.0  # seconds
CUBE_LIMIT = 1.2  # seconds, as in bench_emulator
# Seconds of the warp-specialised kernel, by the size of all dimensions.
WARPGROUP_LIMITS = {256: 0.15, 1024: 1.0}
WARPGROUP_TILE, WARPGROUP_SHARED = (128, 256), 229456
MILLION = 1e6
COPIES = 32  # of the body in one turn of the loop

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 p0) {
  .reg .pred %p<8>;
  .reg .b32 %r<40>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[4096];
  ld.param.u64 %rd1, [p0];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 256, %r1;
  and.b32 %r4, %r1, 31;
  shr.u32 %r5, %r1, 5;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r6, tile;
  shl.b32 %r7, %r1, 2;
  add.u32 %r8, %r6, %r7;
  and.b32 %r9, %r1, 7;
  shl.b32 %r10, %r9, 2;
  add.u32 %r11, %r6, %r10;
  mul.wide.u32 %rd4, %r9, 4;
  add.u64 %rd5, %rd1, %rd4;
  st.shared.u32 [%r8], %r1;
  cvt.rn.f32.u32 %f1, %r3;
  mov.f32 %f2, 0f3F000000;
  mov.u32 %r12, 0x3C003C00;
  mov.u32 %r20, %r3;
  bar.sync 0;
  BEFORE
  mov.u32 %r30, 0;
LOOP:
  BODY
  add.u32 %r30, %r30, 1;
  setp.lt.u32 %p7, %r30, TURNS;
  @%p7 bra LOOP;
  AFTER
  add.u32 %r21, %r20, %r12;
  cvt.rn.f32.u32 %f9, %r21;
  add.f32 %f9, %f9, %f1;
  add.u64 %rd6, %rd3, 64;
  st.global.f32 [%rd6], %f9;
  ret;
}
"""
CALLED = """.func (.param .b32 result) twice(.param .b32 given) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [given];
  add.u32 %r2, %r1, %r1;
  xor.b32 %r2, %r2, 5;
  st.param.b32 [result], %r2;
  ret;
}
"""


@dataclass(frozen=True)
class Kind:
    """A loop body, how often it stands in the loop, and how often the loop runs.

    bounded: whether it has to stay within `MOST` times straight arithmetic: what
    diverges, and atomics; not what accesses memory without them, nor atomics that go
    somewhere else each time, which are sorted anew
    live: blocks and threads of the straight arithmetic that it is compared with: an
    instruction of few warps costs a call of NumPy, whatever they do
    """

    body: str
    turns: int = 40
    copies: int = COPIES
    before: str = ""
    after: str = ""
    bounded: bool = False
    live: tuple[int, int] = (BLOCKS, THREADS)


MMA = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%f4, %f5, %f6, %f7}, {%r12, %r12, %r12, %r12}, {%r12, %r12}, "
    "{%f4, %f5, %f6, %f7};"
)
# Each half of the body is for a part of the lanes, and ends where they meet again.
SPLIT = """
  setp.CONDITION %p1, OPERANDS;
  @%p1 bra ELSE#;
  add.u32 %r20, %r20, 3; xor.b32 %r20, %r20, 9; add.u32 %r20, %r20, 1;
  fma.rn.f32 %f1, %f1, %f2, %f2; shl.b32 %r22, %r20, 1;
  bra JOIN#;
ELSE#:
  sub.u32 %r20, %r20, 5; xor.b32 %r20, %r20, 3; add.u32 %r20, %r20, 7;
  mul.f32 %f1, %f1, %f2; shl.b32 %r22, %r20, 2;
JOIN#:
  add.u32 %r20, %r20, %r22;"""


def split(condition: str, operands: str) -> str:
    return SPLIT.replace("CONDITION", condition).replace("OPERANDS", operands)


TRIPS = """
  mov.u32 %r23, 0; add.u32 %r24, BOUND, 1;
TRIP#:
  add.u32 %r20, %r20, %r23; xor.b32 %r20, %r20, 9; fma.rn.f32 %f1, %f1, %f2, %f2;
  add.u32 %r23, %r23, 1;
  setp.lt.u32 %p1, %r23, %r24;
  @%p1 bra TRIP#;"""
ONE_WARP = """
  setp.ne.u32 %p1, %r5, 3; @%p1 bra DONE;
  setp.ne.u32 %p1, %r2, 7; @%p1 bra DONE;"""


def scattered(addresses: Sequence[str]) -> str:
    """Sets address registers by hashes of the thread, to elements [0, 256)."""
    lines = []
    for i, address in enumerate(addresses):
        lines.append(
            f"mul.lo.u32 %r25, %r3, {1664525 + 8 * i}; shr.u32 %r26, %r25, 13; "
            "xor.b32 %r25, %r25, %r26; mul.lo.u32 %r25, %r25, 22695477; "
            "shr.u32 %r25, %r25, 9; and.b32 %r25, %r25, 255; shl.b32 %r25, %r25, 2;"
        )
        if address.startswith("%rd"):
            lines.append(
                f"cvt.u64.u32 {address}, %r25; add.u64 {address}, %rd1, {address};"
            )
        else:
            lines.append(f"add.u32 {address}, %r6, %r25;")
    return "\n  ".join(lines)


GLOBAL_PLACES = ("%rd6", "%rd7")
SHARED_PLACES = ("%r31", "%r32")

KINDS = {
    "arithmetic": Kind(
        "add.u32 %r20, %r20, %r1; xor.b32 %r20, %r20, %r3; "
        "fma.rn.f32 %f1, %f1, %f2, %f2; shl.b32 %r22, %r20, 1;"
    ),
    "global memory": Kind(
        "ld.global.u32 %r22, [%rd3]; add.u32 %r22, %r22, 1; st.global.u32 [%rd3], %r22;"
    ),
    "shared memory": Kind(
        "ld.shared.u32 %r22, [%r8]; add.u32 %r22, %r22, 1; st.shared.u32 [%r8], %r22;"
    ),
    "shared memory, differs by block": Kind(
        "ld.shared.u32 %r22, [%r8]; add.u32 %r22, %r22, 1; st.shared.u32 [%r8], %r22;",
        before="xor.b32 %r25, %r2, 3; and.b32 %r25, %r25, 1; shl.b32 %r25, %r25, 10; "
        "add.u32 %r8, %r8, %r25; st.shared.u32 [%r8], %r1;",
    ),
    "mma": Kind(
        MMA,
        before="".join(f"mov.f32 %f{i}, 0f00000000; " for i in range(4, 8)),
    ),
    "global atomics, collide": Kind(
        "atom.global.add.u32 %r22, [%rd5], %r1;", turns=20, bounded=True
    ),
    "global atomics, collide elsewhere": Kind(
        "atom.global.add.u32 %r22, [%rd5], %r1; "
        "atom.global.add.u32 %r22, [%rd5+64], %r1;",
        turns=20,
        copies=16,
        bounded=True,
    ),
    "global atomics, scattered": Kind(
        "".join(f"atom.global.add.u32 %r22, [{p}], %r1; " for p in GLOBAL_PLACES),
        turns=20,
        copies=16,
        before=scattered(GLOBAL_PLACES),
    ),
    "global reductions, f32, collide": Kind(
        "red.global.add.f32 [%rd5], %f2;", turns=20, bounded=True
    ),
    "shared atomics, collide": Kind(
        "atom.shared.add.u32 %r22, [%r11], %r1;", turns=20, bounded=True
    ),
    "shared reductions, one element": Kind(
        "red.shared.add.u32 [%r6], 1;", turns=20, bounded=True
    ),
    "shared atomics, no collision": Kind(
        "atom.shared.add.u32 %r22, [%r8], %r1;", turns=20, bounded=True
    ),
    "shared atomics, cas, collide": Kind(
        "atom.shared.cas.b32 %r22, [%r11], %r1, %r3;", turns=20, bounded=True
    ),
    # Each instruction swaps once in each element.
    "shared atomics, cas, swaps": Kind(
        "atom.shared.cas.b32 %r22, [%r11], %r22, %r3;",
        turns=20,
        before="mov.u32 %r22, %r9;",
    ),
    "shared atomics, scattered": Kind(
        "".join(f"atom.shared.add.u32 %r22, [{p}], %r1; " for p in SHARED_PLACES),
        turns=20,
        copies=16,
        before=scattered(SHARED_PLACES),
    ),
    "lanes diverge, two ways": Kind(split("lt.u32", "%r4, 11"), copies=8, bounded=True),
    "warps diverge, two ways": Kind(split("lt.u32", "%r5, 3"), copies=8, bounded=True),
    "blocks diverge, two ways": Kind(
        split("lt.u32", "%r2, 13"), copies=8, bounded=True
    ),
    "lanes diverge, by data": Kind(
        "xor.b32 %r25, %r20, %r30; and.b32 %r25, %r25, 1;" + split("eq.u32", "%r25, 0"),
        copies=8,
        bounded=True,
    ),
    "loops, trips by lane": Kind(
        TRIPS.replace("BOUND", "%r4"), turns=4, copies=4, bounded=True
    ),
    "loops, trips by warp": Kind(
        TRIPS.replace("BOUND", "%r5"), turns=8, copies=4, bounded=True
    ),
    "loops, trips by block": Kind(
        TRIPS.replace("BOUND", "%r2"), turns=4, copies=4, bounded=True
    ),
    "calls": Kind(
        "{ .param .b32 given; .param .b32 got; st.param.b32 [given], %r20; "
        "call (got), twice, (given); ld.param.b32 %r20, [got]; }",
        copies=8,
    ),
    "one live warp of 512": Kind(
        "add.u32 %r20, %r20, %r1; xor.b32 %r20, %r20, %r3; "
        "fma.rn.f32 %f1, %f1, %f2, %f2; shl.b32 %r22, %r20, 1;",
        before=ONE_WARP,
        after="DONE:",
        bounded=True,
        live=(1, 32),
    ),
}


def text_of(kind: Kind) -> str:
    """The PTX of a kind."""
    body = "\n  ".join(kind.body.replace("#", str(i)) for i in range(kind.copies))
    text = HEAD.replace("BODY", body).replace("TURNS", str(kind.turns))
    text = text.replace("BEFORE", kind.before).replace("AFTER", kind.after)
    return text.replace(".visible", CALLED + ".visible") if "call " in text else text


def run(text: str, blocks: int, threads: int, cpu: bool) -> tuple[float, int]:
    """Seconds for a million warp instructions; how many ran."""
    memory = np.zeros(BLOCKS * THREADS + 64, np.uint32)
    grid, block = (blocks, 1, 1), (threads, 1, 1)
    result, busy, _ = timed(
        lambda: emulate(text, "kernel", grid, block, [memory], max_reports=1)
    )
    seconds = busy if cpu else result.seconds
    return seconds * MILLION / result.warp_instructions, result.warp_instructions


def costs(kind: Kind, repeats: int, cpu: bool) -> tuple[float, float, int]:
    """Seconds of a kind and of straight arithmetic by as many live warps.

    For a million warp instructions, the least of all runs, which take turns, so that
    both have the machine that there is; and how many ran.
    """
    texts = text_of(kind), text_of(KINDS["arithmetic"])
    best, straight, count = np.inf, np.inf, 0
    for _ in range(repeats):
        seconds, count = run(texts[0], BLOCKS, THREADS, cpu)
        best = min(best, seconds)
        straight = min(straight, run(texts[1], *kind.live, cpu)[0])
    return best, straight, count


def warpgroup_seconds(size: int, repeats: int) -> float:
    """Of the warp-specialised kernel: copy engine, mbarriers, wgmma; hazards on."""
    text = (FIXTURES / "warpgroup_gemm.ptx").read_text(encoding="utf-8")
    generator, best = np.random.default_rng(0), np.inf
    a, b = generator.standard_normal((2, size, size)).astype(np.float16)
    c = np.zeros((size, size), np.float16)
    boxes = [(a, (128, 64)), (b, (256, 64)), (c, (64, 64))]
    maps = [TensorMap(array, box=box, swizzle=128) for array, box in boxes]
    rows, columns = WARPGROUP_TILE
    grid, block = (size // rows * (size // columns), 1, 1), (384, 1, 1)
    for _ in range(repeats):
        arguments = [*maps, size, size, size]
        result = emulate(
            text, None, grid, block, arguments, dynamic_shared=WARPGROUP_SHARED
        )
        if result.hazards:
            sys.exit(f"unexpected: {result.hazards[0]}")
        best = min(best, result.seconds)
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    if not np.allclose(c, wanted, rtol=1e-3, atol=5e-2):
        sys.exit(f"{size} cubed by wgmma: the result is wrong")
    return best


def print_translation(cpu: bool) -> None:
    """How long all kernels of CUB's radix sort take from text to what runs."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("translation of CUB's radix sort: no nvcc")
        return
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = Path(folder, "sort.cu"), Path(folder, "sort.ptx")
        source.write_text(CUB_SORT)
        command = [nvcc, "-arch=sm_80", "-ptx", "-o", str(ptx), str(source)]
        subprocess.run(command, check=True, capture_output=True)
        text = ptx.read_text()
    clock = time.process_time if cpu else time.perf_counter
    started = clock()
    for name in re.findall(r"\.entry (\w+)", text):
        prepare(text, name)
    seconds = clock() - started
    verdict = "ok" if seconds <= TRANSLATION_LIMIT else "OVER"
    print(
        f"translation of CUB's radix sort, {text.count(';'):,} instructions: "
        f"{seconds:.2f} s (at most {TRANSLATION_LIMIT:g}) {verdict}"
    )


CUB_SORT = """
#include <cub/device/device_radix_sort.cuh>
cudaError_t sort(void *space, size_t &size, const unsigned *keys, unsigned *sorted,
                 const unsigned *values, unsigned *moved, int count) {
  return cub::DeviceRadixSort::SortPairs(space, size, keys, sorted, values, moved,
                                         count);
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="of the table; all if none is given")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU seconds")
    options = parser.parse_args()
    print(f"{'kind':32} {'warp instr.':>11} {'s per million':>13} {'of straight':>11}")
    for name, kind in KINDS.items():
        if options.kinds and name not in options.kinds:
            continue
        seconds, straight, count = costs(kind, options.repeats, options.cpu)
        ratio = seconds / straight
        verdict = "ok" if ratio <= MOST else "OVER"
        verdict = verdict if kind.bounded else ""
        print(f"{name:32} {count:11,} {seconds:13.3f} {ratio:11.1f} {verdict}")
    if not options.kinds and not options.cpu:
        ptx = (FIXTURES / "gemm_f16_3stage.ptx").read_text(encoding="utf-8")
        seconds = best_run(ptx, (1024, 1024, 1024), options.repeats)[0]
        verdict = "ok" if seconds <= CUBE_LIMIT else "OVER"
        print(f"1024 cubed, f16: {seconds:.2f} s (at most {CUBE_LIMIT:g}) {verdict}")
        for size, limit in WARPGROUP_LIMITS.items():
            seconds = warpgroup_seconds(size, options.repeats)
            verdict = "ok" if seconds <= limit else "OVER"
            print(
                f"{size} cubed, f16, wgmma: {seconds:.2f} s (at most {limit}) {verdict}"
            )
    if not options.kinds:
        print_translation(options.cpu)


if __name__ == "__main__":
    main()
