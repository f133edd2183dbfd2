"""Blocks that touch the same global memory with nothing to order them."""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, line_of, module
from racy_kernels import (
    kinds,
)

from alcop_mlir.runtime.emulator import Result

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)


BLOCKS = """
    .reg .b64 %out; .reg .b32 %i, %c, %n; .reg .pred %p;
    ld.param.u64 %out, [p0];
    mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x;
"""


def run_blocks(body: str, blocks: int = 3) -> tuple[str, Result]:
    text = module(BLOCKS + body, ["u64"])
    out = np.zeros(256, np.uint32)
    return text, launch(text, "kernel", (blocks,), (32,), [out])


def test_blocks_that_write_the_same_place() -> None:
    text, result = run_blocks(
        "mad.wide.u32 %out, %i, 4, %out;\nst.global.u32 [%out], %c;"
    )
    (hazard,) = result.hazards
    assert hazard.kind == "block-conflict"
    assert hazard.space == "global"
    assert hazard.line == line_of(text, "st.global")
    assert hazard.other_line == line_of(text, "st.global")


def test_blocks_that_overlap_by_one_element() -> None:
    text, result = run_blocks(
        "mad.lo.u32 %i, %c, 31, %i;\n"
        "mad.wide.u32 %out, %i, 4, %out;\n"
        "st.global.u32 [%out], %c;",
        blocks=2,
    )
    assert kinds(result) == {"block-conflict"}
    assert result.hazards[0].line == line_of(text, "st.global")


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("", set()),  # the last two elements are read for nothing
        ("add.u32 %n, %n, %t;", {"block-conflict"}),
    ],
)
def test_reads_that_nothing_depends_on_are_no_conflict(
    rest: str, expected: set[str]
) -> None:
    """Compilers widen loads over gaps."""
    _, result = run_blocks(
        ".reg .b32 %s, %t, %u;\n"
        "mad.wide.u32 %out, %c, 8, %out;\n"
        "setp.eq.u32 %p, %i, 0;\n"
        "and.b32 %n, %c, 1;\n"
        "setp.eq.and.u32 %p, %n, 0, %p;\n"
        "@%p ld.global.v4.b32 {%n, %s, %t, %u}, [%out];\n"
        "setp.eq.u32 %p, %i, 0;\n"
        f"add.u32 %n, %n, %s;\n{rest}\n"
        "@%p st.global.u32 [%out], %n;",
        blocks=2,
    )
    assert kinds(result) == expected


def test_blocks_that_write_apart_are_clean() -> None:
    _, result = run_blocks(
        "mad.lo.u32 %i, %c, 32, %i;\n"
        "mad.wide.u32 %out, %i, 4, %out;\n"
        "st.global.u32 [%out], %c;\nst.global.u32 [%out], %i;"
    )
    assert result.hazards == ()


def test_conflict_between_batches_of_blocks() -> None:
    """The first and the last of many blocks: they may not run side by side."""
    _, result = run_blocks(
        "rem.u32 %n, %c, 199; setp.ne.u32 %p, %n, 0; @%p ret;\n"
        "mad.wide.u32 %out, %i, 4, %out;\nst.global.u32 [%out], %c;",
        blocks=200,
    )
    assert kinds(result) == {"block-conflict"}


@pytest.mark.parametrize("reader", [0, 2])
def test_a_block_that_reads_what_another_writes(reader: int) -> None:
    """Before or after: nothing orders blocks, so either order may happen."""
    text, result = run_blocks(
        f"mad.wide.u32 %out, %i, 4, %out;\nsetp.eq.u32 %p, %c, {reader};\n"
        "@%p ld.global.u32 %n, [%out];\nsetp.eq.u32 %p, %c, 1;\n"
        "@%p st.global.u32 [%out], %c;"
    )
    (hazard,) = result.hazards
    assert hazard.kind == "block-conflict"
    assert {hazard.line, hazard.other_line} == {
        line_of(text, "ld.global"),
        line_of(text, "st.global"),
    }


def test_a_block_may_read_what_it_wrote() -> None:
    _, result = run_blocks(
        "mad.lo.u32 %i, %c, 32, %i;\nmad.wide.u32 %out, %i, 4, %out;\n"
        "st.global.u32 [%out], %c;\nld.global.u32 %n, [%out];\n"
        "st.global.u32 [%out], %n;"
    )
    assert result.hazards == ()
