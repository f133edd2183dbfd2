"""Kernels of one or two warps that share memory, and what is asked of reports."""

from __future__ import annotations

import numpy as np
from kernel_text import launch, line_of, module

from alcop_mlir.runtime.emulator import Hazard, Result


def kinds(result: Result) -> set[str]:
    return {hazard.kind for hazard in result.hazards}


TWO_WARPS = """
    .shared .align 16 .b8 cells[256];
    .reg .b32 %i, %at, %other, %v, %cells; .reg .b64 %in, %out; .reg .pred %p;
    mov.u32 %i, %tid.x;
    mov.u32 %cells, cells;
    shl.b32 %at, %i, 2; add.u32 %at, %at, %cells;
    xor.b32 %other, %i, 63; shl.b32 %other, %other, 2; add.u32 %other, %other, %cells;
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %i, 4, %in;
    ld.param.u64 %out, [p1]; mad.wide.u32 %out, %i, 4, %out;
    ld.global.u32 %v, [%in];
"""


def run_two_warps(
    body: str, visibility: str = "late", schedule: str = "lockstep", block: int = 64
) -> tuple[str, Result]:
    text = module(TWO_WARPS + body, ["u64", "u64"])
    given, out = np.arange(block, dtype=np.uint32), np.zeros(block, np.uint32)
    result = launch(
        text,
        "kernel",
        (1,),
        (block,),
        [given, out],
        visibility=visibility,
        schedule=schedule,
    )
    return text, result


def check_pair(
    text: str, result: Result, first: str, second: str, wanted: set[str]
) -> list[Hazard]:
    """Some report names these two lines, and every report that does is of one kind."""
    lines = {line_of(text, first), line_of(text, second)}
    found = [h for h in result.hazards if {h.line, h.other_line} == lines]
    assert found, [str(hazard) for hazard in result.hazards]
    assert {hazard.kind for hazard in found} <= wanted
    return found


BETWEEN_LANES = """
    .shared .align 16 .b8 cells[1024];
    .reg .b32 %i, %at, %other, %v, %cells; .reg .b64 %in, %out; .reg .pred %p;
    mov.u32 %i, %tid.x;
    mov.u32 %cells, cells;
    shl.b32 %at, %i, 2; add.u32 %at, %at, %cells;
    xor.b32 %other, %i, 31; shl.b32 %other, %other, 2; add.u32 %other, %other, %cells;
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %i, 4, %in;
    ld.param.u64 %out, [p1]; mad.wide.u32 %out, %i, 4, %out;
"""


def run_one_warp(body: str, visibility: str, schedule: str) -> tuple[str, Result]:
    text = module(BETWEEN_LANES + body, ["u64", "u64"])
    given, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    result = launch(
        text,
        "kernel",
        (1,),
        (32,),
        [given, out],
        visibility=visibility,
        schedule=schedule,
    )
    return text, result
