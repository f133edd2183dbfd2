"""cp.async: sizes, zero fill, guards, groups and waits."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import random_bytes, run_warp


def copy_body(copy: str, size: int) -> str:
    """Fill shared memory with `copy` (to %w9, from %w8), wait, and store it out."""
    words = size // 4
    return f"""
    .shared .align 16 .b8 buffer[{32 * size}];
    mov.u64 %w9, buffer; mad.wide.u32 %w9, %lane, {size}, %w9;
    mad.wide.u32 %w8, %lane, {size}, %in;
    {copy}
    cp.async.commit_group;
    cp.async.wait_group 0;
    mad.wide.u32 %out, %lane, {size}, %out;
    """ + "".join(
        f"ld.shared.u32 %t1, [%w9+{4 * i}]; st.global.u32 [%out+{4 * i}], %t1;\n"
        for i in range(words)
    )


COPIES = [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)]


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize(("cache", "size"), COPIES)
def test_cp_async(cache: str, size: int, visibility: str) -> None:
    copy = f"cp.async.{cache}.shared.global [%w9], [%w8], {size};"
    given = random_bytes(32 * size)
    run_warp(copy_body(copy, size), given, given, visibility=visibility)


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize(("cache", "size"), COPIES)
def test_cp_async_fills_with_zeros(cache: str, size: int, visibility: str) -> None:
    """A source size per lane, from nothing to everything."""
    copy = f"""
    rem.u32 %t0, %lane, {size + 1};
    cp.async.{cache}.shared.global.L2::128B [%w9], [%w8], {size}, %t0;
    """
    given = random_bytes(32 * size)
    wanted = given.reshape(32, size).copy()
    for lane in range(32):
        wanted[lane, lane % (size + 1) :] = 0
    run_warp(copy_body(copy, size), given, wanted.reshape(-1), visibility=visibility)


@pytest.mark.parametrize("wanted", [None, 5, 16])
def test_cp_async_with_a_cache_policy(wanted: int | None) -> None:
    """The policy is the last operand, and no source size."""
    count = "" if wanted is None else f"{wanted}, "
    copy = f"""
    createpolicy.fractional.L2::evict_last.b64 %w7, 1.0;
    cp.async.cg.shared.global.L2::cache_hint [%w9], [%w8], 16, {count}%w7;
    """
    given = random_bytes(512)
    expected = given.reshape(32, 16).copy()
    expected[:, 16 if wanted is None else wanted :] = 0
    run_warp(copy_body(copy, 16), given, expected.reshape(-1))


def test_cp_async_ignored_source() -> None:
    """ignore-src: the predicate's lanes get zeros."""
    copy = """
    setp.ge.u32 %q0, %lane, 20;
    cp.async.cg.shared.global [%w9], [%w8], 16, %q0;
    """
    given = random_bytes(512)
    wanted = given.copy()
    wanted[20 * 16 :] = 0
    run_warp(copy_body(copy, 16), given, wanted)


def test_cp_async_zero_size_reads_nothing() -> None:
    """With source size 0 the address may be anything that is not read."""
    copy = """
    setp.lt.u32 %q0, %lane, 4;
    selp.b32 %t0, 16, 0, %q0;
    @!%q0 mov.u64 %w8, 0;
    cp.async.cg.shared.global [%w9], [%w8], 16, %t0;
    """
    given = random_bytes(64)
    wanted = np.concatenate([given, np.zeros(448, np.uint8)])
    run_warp(copy_body(copy, 16), given, wanted)


def test_cp_async_guard() -> None:
    """Lanes whose guard is false copy nothing, and keep what was there."""
    copy = """
    mov.u32 %t0, 0x55555555;
    st.shared.u32 [%w9], %t0;
    setp.lt.u32 %q0, %lane, 7;
    @%q0 cp.async.ca.shared.global [%w9], [%w8], 4;
    """
    given = random_bytes(128).view(np.uint32)
    wanted = given.copy()
    wanted[7:] = 0x55555555
    run_warp(copy_body(copy, 4), given, wanted)


GROUPS = """
    .shared .align 16 .b8 buffer[512];
    mov.u64 %w9, buffer; mad.wide.u32 %w9, %lane, 4, %w9;
    mad.wide.u32 %w8, %lane, 4, %in;
    mad.wide.u32 %out, %lane, 4, %out;
    cp.async.ca.shared.global [%w9], [%w8], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%w9+128], [%w8+128], 4;
    cp.async.ca.shared.global [%w9+256], [%w8+256], 4;
    cp.async.commit_group;
    cp.async.commit_group;
    cp.async.ca.shared.global [%w9+384], [%w8+384], 4;
"""


def test_wait_group_counts_empty_groups() -> None:
    body = (
        GROUPS
        + """
    cp.async.wait_group 2;
    ld.shared.u32 %t0, [%w9];
    cp.async.wait_group 1;
    ld.shared.u32 %t1, [%w9+128]; ld.shared.u32 %t2, [%w9+256];
    cp.async.commit_group;
    cp.async.wait_group 0;
    ld.shared.u32 %t3, [%w9+384];
    st.global.u32 [%out], %t0; st.global.u32 [%out+128], %t1;
    st.global.u32 [%out+256], %t2; st.global.u32 [%out+384], %t3;
    """
    )
    given = random_bytes(512).view(np.uint32)
    for visibility in ("late", "early"):
        run_warp(body, given, given, visibility=visibility)


def test_wait_all_needs_no_commit() -> None:
    body = (
        GROUPS
        + """
    cp.async.wait_all;
    ld.shared.u32 %t3, [%w9+384];
    st.global.u32 [%out], %t3;
    """
    )
    given = random_bytes(512).view(np.uint32)
    run_warp(body, given, given[96:])


def test_groups_are_per_thread() -> None:
    """Odd lanes commit one group more: the same wait covers less for them."""
    body = """
    .shared .align 16 .b8 buffer[128];
    mov.u64 %w9, buffer; mad.wide.u32 %w9, %lane, 4, %w9;
    mad.wide.u32 %w8, %lane, 4, %in;
    mad.wide.u32 %out, %lane, 4, %out;
    and.b32 %t0, %lane, 1; setp.eq.u32 %q0, %t0, 1;
    cp.async.ca.shared.global [%w9], [%w8], 4;
    cp.async.commit_group;
    @%q0 cp.async.commit_group;
    cp.async.wait_group 1;
    mov.u32 %t1, 0;
    @%q0 ld.shared.u32 %t1, [%w9];
    st.global.u32 [%out], %t1;
    cp.async.wait_group 0;
    """
    given = random_bytes(128).view(np.uint32)
    run_warp(body, given, np.where(np.arange(32) % 2, given, 0).astype(np.uint32))
