"""Kernels of one or two warps that share memory, and what is asked of reports."""

from __future__ import annotations

import numpy as np
from kernel_text import launch, line_of, module

from alcop_mlir.runtime.emulator import Hazard, Result


def kinds(result: Result) -> set[str]:
    return {hazard.kind for hazard in result.hazards}


def _start(cells: int, other: int) -> str:
    """Where a thread's own cell and that of thread `%i ^ other` are."""
    return f"""
    .shared .align 16 .b8 cells[{cells}];
    .reg .b32 %i, %at, %other, %v, %cells; .reg .b64 %in, %out; .reg .pred %p;
    mov.u32 %i, %tid.x;
    mov.u32 %cells, cells;
    shl.b32 %at, %i, 2; add.u32 %at, %at, %cells;
    xor.b32 %other, %i, {other};
    shl.b32 %other, %other, 2; add.u32 %other, %other, %cells;
    ld.param.u64 %in, [p0]; mad.wide.u32 %in, %i, 4, %in;
    ld.param.u64 %out, [p1]; mad.wide.u32 %out, %i, 4, %out;
"""


TWO_WARPS = _start(256, 63) + "ld.global.u32 %v, [%in];\n"
BETWEEN_LANES = _start(1024, 31)


def run_two_warps(
    body: str, visibility: str = "late", schedule: str = "lockstep", block: int = 64
) -> tuple[str, Result]:
    return _run(TWO_WARPS + body, visibility, schedule, block)


def run_one_warp(body: str, visibility: str, schedule: str) -> tuple[str, Result]:
    return _run(BETWEEN_LANES + body, visibility, schedule, 32)


def _run(body: str, visibility: str, schedule: str, block: int) -> tuple[str, Result]:
    text = module(body, ["u64", "u64"])
    arrays = [np.arange(block, dtype=np.uint32), np.zeros(block, np.uint32)]
    options = {"visibility": visibility, "schedule": schedule}
    return text, launch(text, "kernel", (1,), (block,), arrays, **options)


def check_pair(
    text: str, result: Result, first: str, second: str, wanted: set[str]
) -> list[Hazard]:
    """Some report names these two lines, and every report that does is of one kind."""
    lines = {line_of(text, first), line_of(text, second)}
    found = [h for h in result.hazards if {h.line, h.other_line} == lines]
    assert found, [str(hazard) for hazard in result.hazards]
    assert {hazard.kind for hazard in found} <= wanted
    return found
