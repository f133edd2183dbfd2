"""Global memory that threads and copy engines both touch: fences, sources, results.

PTX ISA "Async proxy", "cp.async.bulk", "cp.async.bulk.wait_group": what threads have
written needs a fence.proxy.async before an engine reads it; an engine reads from the
issue of a copy to the end of the phase that counts its bytes; what it writes is there
after `wait_group`, not after `wait_group.read`.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bulk_kernels import START, run
from fixture_kernels import MODES
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import Result, TensorMap

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
early_and_late = pytest.mark.parametrize("visibility", ["early", "late"])
WORDS = 128  # of 4 bytes; the kernels have 64 threads, each with two of them
VALUES = np.tile(np.arange(64, dtype=np.uint32), 2)

# %in is what copies read or write, %map a tensor map of it, %mine the thread's words.
HEAD = (
    START
    + """
    .reg .b64 %mine, %result; .reg .b32 %x; .reg .pred %q<3>;
    mov.b64 %map, p0; cvta.param.u64 %map, %map;
    ld.param.u64 %in, [p1]; ld.param.u64 %out, [p2];
    mad.wide.u32 %mine, %i, 4, %in; mad.wide.u32 %result, %i, 4, %out;
    mad.lo.u32 %at, %i, 4, %at; mov.u32 %c0, 0;
    setp.eq.u32 %q0, %i, 0; setp.eq.u32 %q1, %i, 32;
    st.shared.u32 [%at+1024], %i; st.shared.u32 [%at+1280], %i;
    fence.proxy.async.shared::cta; bar.sync 0;
"""
)
LOAD_FORM = "{0}.global.mbarrier::complete_tx::bytes [buffer], {1}, [bar];"
FLAT = LOAD_FORM.format("cp.async.bulk.shared::cta", "[%in], 512")
TILE = LOAD_FORM.format("cp.async.bulk.tensor.1d.shared::cluster", "[%map, {%c0}]")
FLAT_OUT = "cp.async.bulk.global.shared::cta.bulk_group [%in], [buffer+1024], 512;"
TILE_OUT = (
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {%c0}], "
    "[buffer+1024];"
)
ADD = FLAT_OUT.replace("cp.", "cp.reduce.").replace("group ", "group.add.u32 ")
NUMBERS = itertools.count()


def alone(code: str, predicate: str = "%q0") -> str:
    """Instructions of thread 0 alone, or of the one that a predicate names."""
    return "\n".join(f"@{predicate} {one.strip()};" for one in code.split(";")[:-1])


def load(copy: str = FLAT) -> str:
    return alone(f"mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512; {copy}")


def store(copy: str = FLAT_OUT, predicate: str = "%q0") -> str:
    return alone(f"{copy} cp.async.bulk.commit_group;", predicate)


def wait(parity: int = 0) -> str:
    """Each thread waits for the load."""
    label = f"AGAIN{next(NUMBERS)}"
    test = f"mbarrier.try_wait.parity.shared.b64 %p0, [bar], {parity}"
    return f"{label}: {test}; @!%p0 bra {label};"


def done(how: str = "", predicate: str = "%q0") -> str:
    return alone(f"cp.async.bulk.wait_group{how} 0;", predicate)


WRITE = "st.global.u32 [%mine], %i;\nst.global.u32 [%mine+256], %i;"
KEEP = """
    ld.shared.u32 %v, [%at]; ld.shared.u32 %x, [%at+256];
    st.global.u32 [%result], %v; st.global.u32 [%result+256], %x;
"""
LOOK = """
    ld.global.u32 %v, [%mine]; ld.global.u32 %x, [%mine+256];
    st.global.u32 [%result], %v; st.global.u32 [%result+256], %x;
"""
BARRIER = "bar.sync 0;"
FENCE = "fence.proxy.async.global;"


def try_body(
    *parts: str, visibility: str = "late", schedule: str = "lockstep"
) -> tuple[Result, np.ndarray, np.ndarray]:
    """The result, what copies read or write, and the output."""
    given, out = np.full(WORDS, 1000, np.uint32), np.zeros(WORDS, np.uint32)
    body = "\n".join((HEAD, *parts))
    tensor = TensorMap(given, box=(WORDS,))
    arguments = [tensor, given, out]
    options = {"visibility": visibility, "schedule": schedule}
    result = run(body, ["map", "u64", "u64"], arguments, threads=64, **options)
    return result, given, out


def found(*parts: str, **options: str) -> set[str]:
    return kinds(try_body(*parts, **options)[0])


# --- what threads have written, and an engine reads -----------------------------------


@in_every_mode
def test_a_load_of_what_threads_have_written(visibility: str, schedule: str) -> None:
    parts = (WRITE, FENCE, BARRIER, load(), wait(), KEEP)
    options = {"visibility": visibility, "schedule": schedule}
    result, _, out = try_body(*parts, **options)
    np.testing.assert_array_equal(out, VALUES)
    assert result.hazards == ()
    assert found(WRITE, BARRIER, *parts[3:], **options) == {"no-proxy-fence"}


@pytest.mark.parametrize(
    ("before", "after", "is_missing"),
    [
        ("", "", True),
        ("fence.proxy.async;", "", False),
        ("", FENCE, False),
        ("", alone(FENCE), False),
        (alone(FENCE), "", True),
        ("fence.proxy.async.shared::cta;", "", True),
        ("", "fence.acq_rel.gpu;", True),
    ],
)
def test_which_fences_there_are(before: str, after: str, is_missing: bool) -> None:
    """Of the memory, behind the write; by each writer, or by who reads."""
    parts = (WRITE, before, BARRIER, after, load(), wait(), KEEP)
    assert found(*parts) == ({"no-proxy-fence"} if is_missing else set())


def test_a_tensor_copy_of_what_threads_have_written() -> None:
    rest = (BARRIER, load(TILE), wait(), KEEP)
    assert found(WRITE, *rest) == {"no-proxy-fence"}
    assert found(WRITE, FENCE, *rest) == set()


def test_a_fence_of_global_memory_is_none_of_shared_memory() -> None:
    fill = f"st.shared.u32 [%at+1024], 7; {{}} {BARRIER}"
    assert found(fill.format(FENCE), store(), done()) == {"no-proxy-fence"}
    assert found(fill.format("fence.proxy.async;"), store(), done()) == set()


@pytest.mark.parametrize(
    "write",
    [
        "red.global.add.u32 [%mine], 1;",
        "atom.global.exch.b32 %x, [%mine], 1;",
        "st.relaxed.gpu.global.u32 [%mine], 1;",
        "st.global.b8 [%mine], 1;",
    ],
)
def test_other_ways_to_write(write: str) -> None:
    rest = (BARRIER, load(), wait(), KEEP)
    assert found(write, *rest) == {"no-proxy-fence"}
    assert found(write, FENCE, *rest) == set()


def test_one_thread_writes_and_loads() -> None:
    write = alone("st.global.u32 [%mine], %i;")
    rest = (load(), wait(), KEEP)
    assert found(write, *rest) == {"no-proxy-fence"}
    assert found(write, alone(FENCE), *rest) == set()


def test_a_reduction_reads_what_threads_have_written() -> None:
    parts = (BARRIER, store(ADD), done())
    result, given, _ = try_body(WRITE, FENCE, *parts)
    np.testing.assert_array_equal(given, 2 * VALUES)
    assert result.hazards == ()
    assert found(WRITE, *parts) == {"no-proxy-fence"}


def test_a_report_says_what_is_missing() -> None:
    (hazard,) = try_body(WRITE, BARRIER, load(), wait(), KEEP)[0].hazards
    assert "no fence.proxy.async (or fence.proxy.async.global) between" in str(hazard)
    assert "was written by warp 0 and is read through the async proxy" in str(hazard)
    assert "`@%q0 cp.async.bulk.shared::cta.global" in str(hazard)
    assert "`st.global.u32 [%mine]" in str(hazard)
    assert hazard.space == "global"
    assert hazard.other_line is not None
    assert hazard.line > hazard.other_line


def test_one_warp_is_checked_too() -> None:
    """A kernel of one warp has no races between warps, but engines."""
    parts = (alone("st.global.u32 [%mine], %i;"), load(), wait(), KEEP)
    body = "\n".join((HEAD, *parts))
    given, out = np.full(WORDS, 1000, np.uint32), np.zeros(WORDS, np.uint32)
    arguments = [TensorMap(given, box=(WORDS,)), given, out]
    result = run(body, ["map", "u64", "u64"], arguments, threads=32)
    assert kinds(result) == {"no-proxy-fence"}


# --- sources that are overwritten while an engine reads them ------------------------


@pytest.mark.parametrize(
    ("copy", "visibility", "schedule"),
    [*((FLAT, *mode) for mode in MODES), (TILE, "late", "lockstep")],
)
def test_a_source_is_overwritten(copy: str, visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    result, _, out = try_body(load(copy), wait(), WRITE, KEEP, **options)
    np.testing.assert_array_equal(out, 1000)
    assert result.hazards == ()
    write = alone("st.global.u32 [%mine], 5;")
    assert found(load(copy), write, wait(), KEEP, **options) == {"write-while-read"}


@early_and_late
def test_who_knows_of_the_end_of_a_load(visibility: str) -> None:
    """The wait of another thread counts with a barrier behind it."""
    once = wait().replace("AGAIN", "ONCE")
    once = f"@!%q0 bra LATER; {once} LATER:"
    write = alone("st.global.u32 [%mine], 5;", "%q1")
    assert found(load(), once, BARRIER, write, visibility=visibility) == set()
    kinds = found(load(), once, write, visibility=visibility)
    assert kinds == {"write-while-read"}


@pytest.mark.parametrize(
    "write",
    [
        "red.global.add.u32 [%mine], 1;",
        "st.release.gpu.global.u32 [%mine], 1;",
        "st.global.b8 [%mine+3], 1;",
    ],
)
def test_other_ways_to_overwrite(write: str) -> None:
    assert found(load(), write, wait(), KEEP) == {"write-while-read"}
    assert found(load(), wait(), write, KEEP) == set()


@early_and_late
@pytest.mark.parametrize("copy", [FLAT_OUT, TILE_OUT, ADD], ids=["flat", "tile", "add"])
def test_a_store_over_the_source_of_a_load(copy: str, visibility: str) -> None:
    parts = (load(), store(copy), wait(), done(), KEEP)
    assert found(*parts, visibility=visibility) == {"write-while-read"}
    parts = (load(), wait(), store(copy), done(), KEEP)
    assert found(*parts, visibility=visibility) == set()


def test_a_report_says_which_wait_is_missing() -> None:
    write = alone("st.global.u32 [%mine], 5;")
    (hazard,) = try_body(load(), write, wait(), KEEP)[0].hazards
    assert "is read by a copy to shared memory" in str(hazard)
    assert "has not waited for the mbarrier of the copy" in str(hazard)


# --- what an engine writes, before it is there --------------------------------------


@pytest.mark.parametrize(
    ("copy", "visibility", "schedule"),
    [*((FLAT_OUT, *mode) for mode in MODES), (TILE_OUT, "late", "lockstep")],
)
def test_what_a_store_has_written(copy: str, visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    result, given, out = try_body(store(copy), done(), BARRIER, LOOK, **options)
    np.testing.assert_array_equal(out, VALUES)
    np.testing.assert_array_equal(given, VALUES)
    assert result.hazards == ()
    parts = (store(copy), done(".read"), BARRIER, LOOK)
    result, given, out = try_body(*parts, **options)
    assert kinds(result) == {"read-in-flight"}
    # All is there at the end of the kernel, but not where it was read too early.
    np.testing.assert_array_equal(given, VALUES)
    assert (out == VALUES).all() == (visibility == "early")


@early_and_late
def test_a_load_of_what_a_store_writes(visibility: str) -> None:
    """Engines have written it: no fence is asked for."""
    rest = (load(), wait(), KEEP)
    result, _, out = try_body(store(), done(), *rest, visibility=visibility)
    np.testing.assert_array_equal(out, VALUES)
    assert result.hazards == ()
    early = (store(), done(".read"), *rest)
    assert found(*early, visibility=visibility) == {"read-in-flight"}
    assert found(store(), *rest, done(), visibility=visibility) == {"read-in-flight"}


def test_another_warp_needs_a_barrier() -> None:
    look = alone("ld.global.u32 %v, [%mine]; st.global.u32 [%result], %v;", "%q1")
    assert found(store(), done(), BARRIER, look) == set()
    assert found(store(), done(), look) == {"read-after-write"}


@pytest.mark.parametrize(
    "access",
    [
        "ld.relaxed.gpu.global.u32 %x, [%mine];",
        "ld.volatile.global.u32 %x, [%mine];",
    ],
)
def test_strong_reads_of_what_is_on_its_way(access: str) -> None:
    assert found(store(), done(".read"), BARRIER, access) == {"read-in-flight"}
    assert found(store(), done(), BARRIER, access) == set()


@pytest.mark.parametrize(
    "access", ["st.global.u32 [%mine], 7;", "red.global.add.u32 [%mine], 1;"]
)
def test_writes_over_what_is_on_its_way(access: str) -> None:
    assert found(store(), done(".read"), BARRIER, access) == {"write-in-flight"}
    assert found(store(), done(), BARRIER, access) == set()


def test_two_stores_to_one_place() -> None:
    """Copies of one thread come in no order; reductions need none."""
    assert found(store(), store(), done()) == {"write-in-flight"}
    assert found(store(), done(".read"), store(), done()) == {"write-in-flight"}
    assert found(store(), done(), store(), done()) == set()
    assert found(store(ADD), store(ADD), done()) == set()
    assert found(store(ADD), store(), done()) == {"write-in-flight"}


def test_reductions_of_two_warps() -> None:
    other = (store(ADD, "%q1"), done("", "%q1"))
    result, given, _ = try_body(store(ADD), done(), *other)
    np.testing.assert_array_equal(given, 1000 + 2 * VALUES)
    assert result.hazards == ()
    assert found(store(ADD), done(), store(FLAT_OUT, "%q1"), done("", "%q1")) == {
        "write-after-write"
    }
    # The wait of one thread is none for the copy of another.
    both = (store(ADD), store(ADD, "%q1"), done(), BARRIER, LOOK, done("", "%q1"))
    assert found(*both) == {"read-in-flight"}


def test_the_newest_group_may_be_on_its_way() -> None:
    """Two stores, to the two halves; a wait for all but one."""
    first = FLAT_OUT.replace("512", "256")
    second = first.replace("[%in]", "[%in+256]").replace("+1024", "+1280")
    parts = (store(first), store(second), done().replace("group 0", "group 1"))
    low = "ld.global.u32 %v, [%mine]; st.global.u32 [%result], %v;"
    high = low.replace("%mine", "%mine+256")
    assert found(*parts, BARRIER, low, done()) == set()
    assert found(*parts, BARRIER, high, done()) == {"read-in-flight"}


def test_the_end_of_a_kernel_orders_all() -> None:
    result, given, _ = try_body(store(), done(".read"))
    np.testing.assert_array_equal(given, VALUES)
    assert result.hazards == ()
    assert result.notes == ()


def test_a_report_says_which_wait_is_needed() -> None:
    (hazard, *_) = try_body(store(), done(".read"), BARRIER, LOOK)[0].hazards
    assert "where a copy goes that warp 0 has issued" in str(hazard)
    assert "a cp.async.bulk.wait_group without .read, which its thread" in str(hazard)
    assert "`@%q0 cp.async.bulk.global.shared::cta.bulk_group" in str(hazard)


# --- what one block has written, and an engine reads for another one ------------------

# Block 0 writes what block 1 loads, once it has seen a flag.
TWO_BLOCKS = """
    .reg .b32 %block, %seen; .reg .b64 %flag; .reg .pred %w;
    mov.u32 %block, %ctaid.x; setp.ne.u32 %w, %block, 0;
    add.u64 %flag, %out, 512;
    @%w bra READER;
    {write}
    {writer_fence}
    bar.sync 0;
    @%q0 st.release.gpu.global.u32 [%flag], 1;
    ret;
READER:
    ld.acquire.gpu.global.u32 %seen, [%flag];
    setp.eq.u32 %w, %seen, 0;
    @%w bra READER;
    {reader_fence}
    bar.sync 0;
"""


def kinds_of_two_blocks(
    copy: str = FLAT, writer: str = "", reader: str = "", **options: str
) -> set[str]:
    given, out = np.full(WORDS, 1000, np.uint32), np.zeros(WORDS + 1, np.uint32)
    two = TWO_BLOCKS.format(write=WRITE, writer_fence=writer, reader_fence=reader)
    body = "\n".join((HEAD, two, load(copy), wait(), KEEP))
    arguments = [TensorMap(given, box=(WORDS,)), given, out]
    kinds_of = ["map", "u64", "u64"]
    result = run(body, kinds_of, arguments, threads=64, blocks=2, **options)
    np.testing.assert_array_equal(out[:WORDS], VALUES)
    return kinds(result)


@in_every_mode
def test_a_fence_by_the_block_that_writes_or_by_the_one_that_loads(
    visibility: str, schedule: str
) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    assert kinds_of_two_blocks(**options) == {"no-proxy-fence"}
    assert kinds_of_two_blocks(writer=FENCE, **options) == set()
    assert kinds_of_two_blocks(reader=FENCE, **options) == set()


def test_fences_of_shared_memory_order_no_global_memory() -> None:
    fence = "fence.proxy.async.shared::cta;"
    assert kinds_of_two_blocks(reader=fence) == {"no-proxy-fence"}
    assert kinds_of_two_blocks(reader="fence.proxy.async;") == set()


def test_a_fence_before_the_write_is_none() -> None:
    body = f"{FENCE} {WRITE}"
    global_before = TWO_BLOCKS.replace("{write}", body)
    given, out = np.full(WORDS, 1000, np.uint32), np.zeros(WORDS + 1, np.uint32)
    two = global_before.format(writer_fence="", reader_fence="")
    text = "\n".join((HEAD, two, load(TILE), wait(), KEEP))
    arguments = [TensorMap(given, box=(WORDS,)), given, out]
    result = run(text, ["map", "u64", "u64"], arguments, threads=64, blocks=2)
    (hazard,) = result.hazards
    assert "was written by block (0, 0, 0) and is read through the async proxy by " in (
        hazard.message
    )
    assert "block (1, 0, 0)" in hazard.message


def test_what_another_write_has_replaced_needs_no_fence_for_the_first() -> None:
    """16 bytes of the second writer, with its fence, over 4 of the first."""
    wide = "mov.u32 %v, 5; @%q0 st.global.v4.u32 [%in], {%v, %v, %v, %v};"
    narrow = "@%q1 st.global.u32 [%in+4], %i;"
    given, out = np.full(WORDS, 1000, np.uint32), np.zeros(WORDS + 1, np.uint32)
    write = f"{narrow} bar.sync 0; {wide} {FENCE}"
    two = TWO_BLOCKS.replace(
        "{write}", write.replace("{%v", "{{%v").replace("v}", "v}}")
    )
    text = two.format(writer_fence="", reader_fence="")
    body = "\n".join((HEAD, text, load(), wait(), KEEP))
    arguments = [TensorMap(given, box=(WORDS,)), given, out]
    result = run(body, ["map", "u64", "u64"], arguments, threads=64, blocks=2)
    assert result.hazards == ()
    assert out[:5].tolist() == [5, 5, 5, 5, 1000]
