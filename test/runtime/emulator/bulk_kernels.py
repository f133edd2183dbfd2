"""Kernels of bulk and tensor copies as text: start, load, wait, store, dump."""

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_text import launch, module

from alcop_mlir.runtime.emulator import Result

TARGET = {"target": "sm_90a", "version": "8.6"}

START = """
    .shared .align 1024 .b8 buffer[32768];
    .shared .align 8 .b8 bar[8];
    .reg .b32 %i, %at, %v, %c<6>, %size; .reg .b64 %d<4>, %in, %out, %map;
    .reg .pred %p<4>;
    mov.u32 %i, %tid.x; setp.ne.u32 %p1, %i, 0; mov.u32 %at, buffer;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
"""
LOAD = """
    @%p1 bra LOADED;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};
    {copy}
LOADED:
"""
WAIT = """
LOOP:
    mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;
    @!%p0 bra LOOP;
"""
DUMP = """
    add.u32 %at, %at, {first};
    mad.lo.u32 %at, %i, 4, %at; mad.wide.u32 %out, %i, 4, %out;
    mov.u32 %v, %i;
DUMP:
    ld.shared.u32 %c5, [%at]; st.global.u32 [%out], %c5;
    add.u32 %at, %at, 256; add.u64 %out, %out, 256; add.u32 %v, %v, 64;
    setp.lt.u32 %p2, %v, {words}; @%p2 bra DUMP;
"""


def run(text: str, kinds_of: list[str], arguments: list[Any], **options: Any) -> Result:
    threads, blocks = options.pop("threads", 64), options.pop("blocks", 1)
    sized = ", ".join(
        f".param .align 64 .b8 p{i}[128]" if k == "map" else f".param .{k} p{i}"
        for i, k in enumerate(kinds_of)
    )
    whole = module(text, [], **TARGET).replace("kernel()", f"kernel({sized})")
    return launch(whole, None, (blocks,), (threads,), arguments, **options)


def in_shared(box: np.ndarray, swizzle: int) -> np.ndarray:
    """The bytes of a box in shared memory: 16-byte pieces where a swizzle puts them.

    PTX ISA, figures of the swizzling modes: in rows of 128 bytes piece j of row r is at
    j ^ (r % 8), at 64 bytes j ^ (r / 2 % 4) within its 64, at 32 bytes j ^ (r / 4 % 2),
    where r counts what is as long as the span.
    """
    raw = np.frombuffer(box.tobytes(), np.uint8).reshape(-1, 16)
    out = np.zeros_like(raw)
    if not swizzle:
        return raw.reshape(-1)
    per = swizzle // 16
    for piece in range(len(raw)):
        row, column = divmod(piece, per)
        out[row * per + (column ^ (row * swizzle // 128 % per))] = raw[piece]
    return out.reshape(-1)
