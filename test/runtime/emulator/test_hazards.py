"""What the hazard checker must find and name: lines, block, warp, address."""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES, edit, fixture, run_gemm
from kernel_text import launch, line_of, module
from racy_kernels import TWO_WARPS, kinds

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
LOOP = "// loop body starts"


def instruction(text: str, line: int | None) -> str:
    """The opcode at a PTX line, up to its first dot-free part."""
    assert line is not None
    return text.split("\n")[line - 1].split()[0]


def pairs(text: str, result: Result) -> set[frozenset[str]]:
    """The opcodes of both accesses of each report that names two."""
    return {
        frozenset(
            instruction(text, line).split(".")[0] for line in (h.line, h.other_line)
        )
        for h in result.hazards
        if h.other_line is not None
    }


# The bug table of a pipelined matmul --------------------------------------------------


def gemm() -> str:
    return fixture("gemm_f16_3stage")


def missing_wait() -> str:
    return edit(gemm(), "cp.async.wait_group 1;", "", after=LOOP)


def wait_off_by_one() -> str:
    return edit(gemm(), "wait_group 1;", "wait_group 2;", after=LOOP)


def barrier_after_the_copies() -> str:
    """The next copies are issued before the wait and the barrier, not after them."""
    text = edit(gemm(), "cp.async.wait_group 1;", "", after=LOOP)
    text = edit(text, "bar.sync \t0;", "", after=LOOP)
    moved = "cp.async.commit_group; cp.async.wait_group 2; bar.sync 0;"
    return edit(text, "cp.async.commit_group;", moved, after=LOOP)


def reads_the_next_slot() -> str:
    """The slot that is read starts at 1, so it is always one too far."""
    marker = text_between(gemm(), "// slot read: ", "\n")
    return edit(gemm(), f"mov.u32 \t{marker}, 0;", f"mov.u32 {marker}, 1;").replace(
        # another counter starts as a copy of this one
        f", {marker};\n\n$L__BB0_6:",
        ", 0;\n\n$L__BB0_6:",
    )


def missing_barrier() -> str:
    return edit(gemm(), "bar.sync \t0;", "", after=LOOP)


def no_bound_on_m() -> str:
    m = text_between(gemm(), "ld.param.u32 \t", ", [gemm_param_3]")
    return edit(
        gemm(), f"ld.param.u32 \t{m}, [gemm_param_3];", f"mov.u32 {m}, 0x7fffffff;"
    )


def misaligned_copy() -> str:
    address = text_between(gemm(), "cp.async.cg.shared.global [", "]")
    return edit(
        gemm(),
        f"cp.async.cg.shared.global [{address}]",
        f"cp.async.cg.shared.global [{address}+4]",
    )


def text_between(text: str, before: str, after: str) -> str:
    start = text.index(before) + len(before)
    return text[start : text.index(after, start)]


COPY_AND_READ = frozenset({"cp", "ldmatrix"})

# name: the variant, the kinds that lockstep must report, and whether the numbers come
# out right in lockstep (late, early): then only the checker can see the bug.
BUGS = {
    "missing wait": (missing_wait, {"read-in-flight"}, (False, True)),
    "wait off by one": (wait_off_by_one, {"read-in-flight"}, (False, True)),
    "copies before the barrier": (
        barrier_after_the_copies,
        {"write-after-read"},
        (True, True),
    ),
    "reads the next slot": (reads_the_next_slot, {"read-in-flight"}, (False, False)),
    "missing barrier": (
        missing_barrier,
        {"read-after-write", "write-after-read"},
        (True, True),
    ),
}


@in_every_mode
@pytest.mark.parametrize("bug", BUGS)
def test_bug_table(bug: str, visibility: str, schedule: str) -> None:
    make, expected, right = BUGS[bug]
    text = make()
    result, wrong = run_gemm(
        text,
        128,
        128,
        160,
        visibility=visibility,
        schedule=schedule,
        max_reports=1000,
    )
    assert COPY_AND_READ in pairs(text, result)
    if schedule == "lockstep":
        assert expected <= kinds(result)
        assert (wrong == 0) == right[visibility == "early"]


def test_bug_table_names_both_lines() -> None:
    """The report of a missing barrier points at the copy and the read in the loop."""
    text = missing_barrier()
    result, _ = run_gemm(text, 128, 128, 160, max_reports=1000)
    start = line_of(text, LOOP)
    overwrites = [h for h in result.hazards if h.kind == "write-after-read"]
    assert overwrites
    for hazard in overwrites:
        assert hazard.line > start
        assert hazard.other_line is not None
        assert hazard.other_line > start
        assert instruction(text, hazard.line).startswith("cp.async.cg")
        assert instruction(text, hazard.other_line).startswith("ldmatrix")
        assert hazard.space == "shared"
        assert 0 <= hazard.address < 49152
        assert hazard.block == (0, 0, 0)
        assert 0 <= hazard.warp < 4
        assert str(hazard.line) in str(hazard)
        assert str(hazard.other_line) in str(hazard)


@in_every_mode
def test_copy_beyond_a_buffer(visibility: str, schedule: str) -> None:
    text = no_bound_on_m()
    with pytest.raises(EmulationError, match="out-of-bounds") as caught:
        run_gemm(text, 120, 128, 32, visibility=visibility, schedule=schedule)
    message = str(caught.value)
    assert "cp.async.cg.shared.global" in message
    assert "gemm_param_0" in message  # the nearest buffer
    assert "PTX line" in message


@in_every_mode
def test_misaligned_copy(visibility: str, schedule: str) -> None:
    text = misaligned_copy()
    with pytest.raises(EmulationError, match="misaligned") as caught:
        run_gemm(text, 128, 128, 32, visibility=visibility, schedule=schedule)
    line = line_of(text, "cp.async.cg.shared.global")
    assert f"PTX line {line}:" in str(caught.value)


# Deduplication and source lines -------------------------------------------------------


def test_reports_are_deduplicated() -> None:
    """A race in a loop, in two blocks: one report per pair of lines, with a count."""
    body = """
    mov.u32 %cells, 0;
    AGAIN:
    st.shared.u32 [%at], %v;
    ld.shared.u32 %v, [%other];
    bar.sync 0;
    add.u32 %cells, %cells, 1;
    setp.lt.u32 %p, %cells, 10;
    @%p bra AGAIN;
    """
    text = module(TWO_WARPS + body, ["u64", "u64"])
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    result = launch(text, "kernel", (2,), (64,), arrays)
    places = [(h.kind, h.line, h.other_line) for h in result.hazards]
    assert places == [
        ("read-after-write", line_of(text, "ld.shared"), line_of(text, "st.shared"))
    ]
    assert result.hazards[0].count >= 10


def test_the_number_of_reports_is_limited() -> None:
    use = "st.global.u32 [%out], %v;"
    body = "\n".join(f"ld.shared.u32 %v, [cells+{4 * i}]; {use}" for i in range(30))
    text = module(TWO_WARPS + body, ["u64", "u64"])
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    for limit in (1, 7, 20):
        result = launch(text, "kernel", (1,), (64,), arrays, max_reports=limit)
        assert len(result.hazards) == limit


def test_a_frequent_kind_leaves_room_for_others() -> None:
    """Beyond the limit the first report of each other kind is still kept."""
    use = "st.global.u32 [%out], %v;"
    reads = [f"ld.shared.u32 %v, [cells+{4 * i}]; {use}" for i in range(30)]
    body = "\n".join([*reads, "st.shared.u32 [%cells], %i;"])
    text = module(TWO_WARPS + body, ["u64", "u64"])
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    result = launch(text, "kernel", (1,), (64,), arrays, max_reports=7)
    found = [hazard.kind for hazard in result.hazards]
    assert found.count("uninitialised-read") == 7
    assert set(found[7:]) == {"write-after-read", "write-after-write"}


def test_hazards_can_be_left_out() -> None:
    text = module(
        TWO_WARPS + "ld.shared.u32 %v, [%at]; st.global.u32 [%out], %v;", ["u64", "u64"]
    )
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    assert launch(text, "kernel", (1,), (64,), arrays).hazards
    assert launch(text, "kernel", (1,), (64,), arrays, hazards=False).hazards == ()


def test_source_line() -> None:
    """nvcc -lineinfo: the report names the line of the CUDA source."""
    text = fixture("line_info")
    arrays = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]
    result = launch(text, "no_barrier", (1,), (64,), arrays)
    (hazard,) = result.hazards
    assert hazard.kind == "read-after-write"
    assert hazard.source == "line_info.cu:6"
    assert "line_info.cu:6" in str(hazard)
    assert hazard.line == line_of(text, "ld.shared")


def test_no_source_line_without_loc() -> None:
    text = module(
        TWO_WARPS + "ld.shared.u32 %v, [%at]; st.global.u32 [%out], %v;", ["u64", "u64"]
    )
    arrays = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    assert launch(text, "kernel", (1,), (64,), arrays).hazards[0].source is None
