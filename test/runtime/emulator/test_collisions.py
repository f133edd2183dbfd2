"""Atomics whose lanes meet in one element, against one lane after the other."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
import pytest
from kernel_text import launch, module

from alcop_mlir.runtime.emulator.arithmetic.collisions import (
    LastQueues,
    update_in_order,
)
from alcop_mlir.runtime.emulator.instructions.atomics import UPDATES

THREADS, BLOCKS = 256, 3

# What each operation leaves of the old value and its operands, in Python's integers.
OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, b, c: (old + b) % 2**32,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: c if old == b else old,
    "min": lambda old, b, c: min(old, b),
    "max": lambda old, b, c: max(old, b),
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
}
BODY = """
    .reg .b32 %r<12>;
    .reg .b64 %rd<20>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    ld.param.u64 %rd3, [p2];
    ld.param.u64 %rd4, [p3];
    ld.param.u64 %rd5, [p4];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 256, %r1;
    mul.wide.u32 %rd6, %r3, 4;
    add.u64 %rd7, %rd2, %rd6;
    ld.global.u32 %r4, [%rd7];
    mul.wide.u32 %rd8, %r4, 4;
    add.u64 %rd9, %rd1, %rd8;
    add.u64 %rd10, %rd3, %rd6;
    ld.global.u32 %r5, [%rd10];
    add.u64 %rd11, %rd4, %rd6;
    ld.global.u32 %r6, [%rd11];
    add.u64 %rd12, %rd5, %rd6;
    OPERATION
    st.global.u32 [%rd12], %r7;
    ret;
"""


def run(opcode: str, memory: np.ndarray, at: np.ndarray, *operands: np.ndarray):
    """Memory afterwards, and what each lane found there."""
    last = ", %r6" if ".cas." in opcode else ""
    body = BODY.replace("OPERATION", f"{opcode} %r7, [%rd9], %r5{last};")
    text = module(body, ["u64"] * 5)
    memory, found = memory.copy(), np.zeros(at.size, memory.dtype)
    arguments = [memory, at, *operands, found]
    launch(text, "kernel", (BLOCKS,), (THREADS,), arguments)
    return memory, found


def places(kind: str, generator: np.random.Generator) -> np.ndarray:
    """The element of each lane: one for all, a few, many, unevenly."""
    count = THREADS * BLOCKS
    most = {"one": 1, "few": 5, "many": 300, "uneven": 64}[kind]
    at = generator.integers(0, most, count)
    if kind == "uneven":
        at = np.minimum(at, generator.integers(0, most, count) ** 2 // 64)
    return at.astype(np.uint32)


@pytest.mark.parametrize("kind", ["one", "few", "many", "uneven"])
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("limits", ["alike", "small", "any"])
def test_integers(name: str, kind: str, limits: str) -> None:
    generator = np.random.default_rng(len(name) + 10 * len(kind))
    at = places(kind, generator)
    top = {"alike": 1, "small": 4, "any": 2**32}[limits]
    memory = generator.integers(0, min(top + 3, 2**32), 320).astype(np.uint32)
    b, c = generator.integers(0, top, (2, at.size)).astype(np.uint32)
    if limits == "alike":
        b += np.uint32(5)
    suffix = "b32" if name in ("exch", "cas", "and", "or", "xor") else "u32"
    got = run(f"atom.global.{name}.{suffix}", memory, at, b, c)
    wanted, found = memory.tolist(), []
    for where, x, y in zip(at.tolist(), b.tolist(), c.tolist(), strict=True):
        found.append(wanted[where])
        wanted[where] = OPERATIONS[name](wanted[where], x, y)
    np.testing.assert_array_equal(got[0], wanted)
    np.testing.assert_array_equal(got[1], found)


@pytest.mark.parametrize("name", ["min", "max"])
def test_signed_integers(name: str) -> None:
    generator = np.random.default_rng(5)
    at = places("few", generator)
    memory = generator.integers(-(2**31), 2**31, 320).astype(np.int32)
    b = generator.integers(-(2**31), 2**31, at.size).astype(np.int32)
    got, _ = run(f"atom.global.{name}.s32", memory, at, b, b)
    wanted = memory.copy()
    getattr(np, f"{name}imum").at(wanted, at, b)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind", ["one", "few", "many", "uneven"])
def test_floats_are_rounded_one_by_one(kind: str) -> None:
    generator = np.random.default_rng(7)
    at = places(kind, generator)
    memory = generator.standard_normal(320).astype(np.float32)
    b = (generator.standard_normal(at.size) * 1e3).astype(np.float32)
    body = BODY.replace(
        "OPERATION",
        "mov.b32 %f1, %r5; atom.global.add.f32 %f2, [%rd9], %f1; mov.b32 %r7, %f2;",
    )
    got, found = memory.copy(), np.zeros(at.size, np.float32)
    text = module(body, ["u64"] * 5)
    launch(text, "kernel", (BLOCKS,), (THREADS,), [got, at, b, b.copy(), found])
    wanted = memory.copy()
    for i, where in enumerate(at.tolist()):
        assert found[i] == wanted[where]
        wanted[where] = np.float32(wanted[where] + b[i])
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("opcode", ["add.u32", "exch.b32", "cas.b32", "max.u32"])
def test_colliding_lanes_cost_about_what_others_do(opcode: str) -> None:
    """All lanes in one element, against each in its own: within ten times."""
    generator = np.random.default_rng(1)
    memory = np.zeros(THREADS * BLOCKS, np.uint32)
    b = generator.integers(0, 99, memory.size).astype(np.uint32)
    together, apart = np.zeros_like(b), np.arange(b.size, dtype=np.uint32)

    def seconds(at: np.ndarray) -> float:
        times = []
        for _ in range(3):
            start = process_time()
            run(f"atom.global.{opcode}", memory, at, b, b)
            times.append(process_time() - start)
        return min(times)

    assert seconds(together) < 10 * seconds(apart)


# As BODY, in a tile of shared memory that each block fills and stores.
SHARED_BODY = """
    .reg .b32 %r<16>;
    .reg .b64 %rd<20>;
    .shared .align 4 .b8 tile[1280];
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    ld.param.u64 %rd3, [p2];
    ld.param.u64 %rd4, [p3];
    ld.param.u64 %rd5, [p4];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 256, %r1;
    mul.wide.u32 %rd6, %r3, 4;
    add.u64 %rd7, %rd1, %rd6;
    ld.global.u32 %r8, [%rd7];
    mov.u32 %r9, tile;
    shl.b32 %r10, %r1, 2;
    add.u32 %r10, %r9, %r10;
    st.shared.u32 [%r10], %r8;
    bar.sync 0;
    WHERE
    ld.global.u32 %r4, [%rd8];
    shl.b32 %r4, %r4, 2;
    add.u32 %r4, %r9, %r4;
    add.u64 %rd10, %rd3, %rd6;
    ld.global.u32 %r5, [%rd10];
    add.u64 %rd11, %rd4, %rd6;
    ld.global.u32 %r6, [%rd11];
    add.u64 %rd12, %rd5, %rd6;
    OPERATION
    st.global.u32 [%rd12], %r7;
    bar.sync 0;
    ld.shared.u32 %r8, [%r10];
    st.global.u32 [%rd7], %r8;
    ret;
"""
# The elements that the lanes of the first block go to, for all, or those of each block.
WHERE = {
    "alike": "mul.wide.u32 %rd8, %r1, 4; add.u64 %rd8, %rd2, %rd8;",
    "by block": "add.u64 %rd8, %rd2, %rd6;",
}


@pytest.mark.parametrize("blocks", WHERE)
@pytest.mark.parametrize("kind", ["one", "few", "uneven", "apart"])
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("opcode", ["atom", "red"])
def test_shared_memory(opcode: str, name: str, kind: str, blocks: str) -> None:
    """Each block has elements of its own, whether or not its lanes go to the same."""
    if opcode == "red" and name in ("exch", "cas"):
        return  # there are no such forms
    generator = np.random.default_rng(len(name) + 10 * len(kind))
    at = np.tile(generator.permutation(THREADS), BLOCKS).astype(np.uint32)
    if kind != "apart":
        at = places(kind, generator)
    memory, b, c = generator.integers(0, 6, (3, at.size)).astype(np.uint32)
    suffix = "b32" if name in ("exch", "cas", "and", "or", "xor") else "u32"
    to, last = "%r7, ", ", %r6" if name == "cas" else ""
    operation = f"{opcode}.shared.{name}.{suffix} {to}[%r4], %r5{last};"
    if opcode == "red":
        operation = operation.replace(to, "") + " mov.u32 %r7, 0;"
    body = SHARED_BODY.replace("WHERE", WHERE[blocks])
    text = module(body.replace("OPERATION", operation), ["u64"] * 5)
    got, found = memory.copy(), np.zeros(at.size, np.uint32)
    launch(text, "kernel", (BLOCKS,), (THREADS,), [got, at, b, c, found])
    if blocks == "alike":
        at = np.tile(at[:THREADS], BLOCKS)
    wanted, seen = memory.tolist(), []
    for i, (where, x, y) in enumerate(zip(at, b.tolist(), c.tolist(), strict=True)):
        element = i // THREADS * THREADS + int(where)
        seen.append(wanted[element])
        wanted[element] = OPERATIONS[name](wanted[element], x, y)
    np.testing.assert_array_equal(got, wanted)
    if opcode == "atom":
        np.testing.assert_array_equal(found, seen)


@pytest.mark.parametrize("kind", ["one", "uneven"])
@pytest.mark.parametrize("name", ["add", "min", "max", "and", "inc"])
def test_reductions_leave_what_atomics_do(name: str, kind: str) -> None:
    generator = np.random.default_rng(3)
    at = places(kind, generator)
    memory = generator.integers(0, 2**32, 320).astype(np.uint32)
    b = generator.integers(0, 2**32, at.size).astype(np.uint32)
    suffix = "b32" if name == "and" else "u32"
    wanted, _ = run(f"atom.global.{name}.{suffix}", memory, at, b, b)
    body = BODY.replace("OPERATION", f"red.global.{name}.{suffix} [%rd9], %r5;")
    got, text = memory.copy(), module(body, ["u64"] * 5)
    arguments = [got, at, b, b.copy(), np.zeros_like(b)]
    launch(text, "kernel", (BLOCKS,), (THREADS,), arguments)
    np.testing.assert_array_equal(got, wanted)


def test_float_reductions_are_rounded_one_by_one() -> None:
    generator = np.random.default_rng(9)
    at = places("few", generator)
    memory = generator.standard_normal(320).astype(np.float32)
    b = (generator.standard_normal(at.size) * 1e3).astype(np.float32)
    body = BODY.replace(
        "OPERATION", "mov.b32 %f1, %r5; red.global.add.f32 [%rd9], %f1;"
    )
    got, text = memory.copy(), module(body, ["u64"] * 5)
    arguments = [got, at, b, b.copy(), np.zeros_like(b)]
    launch(text, "kernel", (BLOCKS,), (THREADS,), arguments)
    wanted = memory.copy()
    for i, where in enumerate(at.tolist()):
        wanted[where] = np.float32(wanted[where] + b[i])
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("shape", ["each its own", "all alike"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operands_that_all_blocks_share(name: str, shape: str) -> None:
    """One row of operands stands for every copy of memory; queues are remembered."""
    generator, known = np.random.default_rng(len(name)), LastQueues()
    copies, count = 3, 128
    rows = copies if shape == "each its own" else 1
    memory = generator.integers(0, 6, (copies, 8)).astype(np.uint32)
    wanted = memory.copy()
    first = generator.integers(0, 4, count)
    same = (first, first.copy(), np.roll(first, 5), first[:64], np.arange(8))
    for at in same:
        at[-1] = 3  # a look at the last one does not tell them apart
    elsewhere = (first + 4, first + 1, np.minimum(first, 2) + 1)
    for at in (*same, first, *elsewhere):
        x, y = generator.integers(0, 6, (2, rows, at.size)).astype(np.uint32)
        update = UPDATES[name]
        found = update_in_order(memory, at, name, update, x, y, known)
        for copy, row in enumerate(wanted):
            for i, element in enumerate(at):
                old = int(row[element])
                assert found[copy, i] == old
                b, c = int(x[copy % rows, i]), int(y[copy % rows, i])
                row[element] = OPERATIONS[name](old, b, c)
        np.testing.assert_array_equal(memory, wanted)


def test_a_swap_is_found_by_those_behind_it_alone() -> None:
    """The first one seeks what the second one leaves, and comes too early for it."""
    memory, at = np.array([[1, 1]], np.uint32), np.zeros(4, np.int64)
    x, y = np.array([[2, 1, 5, 2]], np.uint32), np.array([[9, 2, 7, 3]], np.uint32)
    found = update_in_order(memory, at, "cas", UPDATES["cas"], x, y)
    assert found.tolist() == [[1, 1, 2, 2]]
    assert memory.tolist() == [[3, 1]]
