"""Mutants of correct kernels: each must be caught, by a report, a fault or the numbers.

A mutant that cannot be caught because it is a correct program stands in EQUIVALENT
with the proof; it must then be clean. So nothing here is allowed to be missed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from fixture_kernels import edit, fixture, run_gemm
from kernel_text import launch

from alcop_mlir.errors import EmulationError

# Five tiles of K: every slot is filled, read, and filled again.
SIZES = (128, 128, 160)
LOOP = "// loop body starts"


def original() -> str:
    return fixture("gemm_f16_3stage")


def lines_with(text: str, fragment: str) -> list[int]:
    """Indices of the lines that hold an instruction, not a comment."""
    return [
        index
        for index, line in enumerate(text.split("\n"))
        if fragment in line and not line.strip().startswith("//")
    ]


def with_line(text: str, index: int, line: str) -> str:
    lines = text.split("\n")
    assert lines[index] != line, "a mutant must differ"
    lines[index] = line
    return "\n".join(lines)


def caught_by(text: str) -> set[str]:
    """What notices the mutant: `report`, `fault`, `numbers`; empty if nothing does."""
    try:
        result, wrong = run_gemm(text, *SIZES)
    except EmulationError:
        return {"fault"}
    found = {"report"} if result.hazards else set()
    return found | {"numbers"} if wrong else found


def test_the_original_is_clean() -> None:
    assert caught_by(original()) == set()


# Synchronisation ----------------------------------------------------------------------


def delete_barrier() -> str:
    return edit(original(), "bar.sync \t0;", "", after=LOOP)


def barrier_of_one_warp() -> str:
    return edit(original(), "bar.sync \t0;", "bar.warp.sync 0xffffffff;", after=LOOP)


def barrier_of_two_warps() -> str:
    """Two named barriers of two warps each instead of one of four."""
    pair = """
    { .reg .b32 %half; mov.u32 %half, %tid.x; shr.u32 %half, %half, 6;
      add.u32 %half, %half, 1; bar.sync %half, 64; }"""
    return edit(original(), "bar.sync \t0;", pair, after=LOOP)


def barrier_before_the_wait() -> str:
    text = edit(original(), "bar.sync \t0;", "", after=LOOP)
    return edit(text, LOOP, "bar.sync 0;")


def barrier_after_the_copies() -> str:
    text = edit(original(), "bar.sync \t0;", "", after=LOOP)
    moved = "cp.async.commit_group; bar.sync 0;"
    return edit(text, "cp.async.commit_group;", moved, after=LOOP)


def barrier_every_other_time() -> str:
    skip = """
    { .reg .pred %odd; .reg .b32 %bit; and.b32 %bit, {n}, 1;
      setp.ne.u32 %odd, %bit, 0; @%odd bar.sync 0; }"""
    counter = re.search(r"bar\.sync \t0;\s+add\.s32 \t%r\d+, (%r\d+), 2;", original())
    assert counter is not None
    skip = skip.replace("{n}", counter.group(1))
    return edit(original(), "bar.sync \t0;", skip, after=LOOP)


def delete_wait() -> str:
    return edit(original(), "cp.async.wait_group 1;", "", after=LOOP)


def wait_for(pending: int) -> Callable[[], str]:
    def mutant() -> str:
        return edit(original(), "wait_group 1;", f"wait_group {pending};", after=LOOP)

    return mutant


def wait_after_the_copies() -> str:
    """Strict enough for the own copies, but no barrier follows for the others'."""
    text = edit(original(), "cp.async.wait_group 1;", "", after=LOOP)
    moved = "cp.async.commit_group; cp.async.wait_group 1;"
    return edit(text, "cp.async.commit_group;", moved, after=LOOP)


def delete_commit(which: int) -> Callable[[], str]:
    return lambda: edit(original(), "cp.async.commit_group;", "", occurrence=which)


def double_commit(which: int) -> Callable[[], str]:
    twice = "cp.async.commit_group; cp.async.commit_group;"
    return lambda: edit(original(), "cp.async.commit_group;", twice, occurrence=which)


def commit_before_the_copies() -> str:
    text = edit(original(), "cp.async.commit_group;", "", after=LOOP)
    return edit(text, "bar.sync \t0;", "bar.sync 0; cp.async.commit_group;", after=LOOP)


def commit_by_half_of_the_warps() -> str:
    half = """
    { .reg .pred %low; .reg .b32 %me; mov.u32 %me, %tid.x; setp.lt.u32 %low, %me, 64;
      @%low cp.async.commit_group; }"""
    return edit(original(), "cp.async.commit_group;", half, after=LOOP)


SYNCHRONISATION: dict[str, Callable[[], str]] = {
    "delete the barrier": delete_barrier,
    "barrier of one warp": barrier_of_one_warp,
    "barrier of two warps": barrier_of_two_warps,
    "barrier before the wait": barrier_before_the_wait,
    "barrier after the copies": barrier_after_the_copies,
    "barrier every other time": barrier_every_other_time,
    "delete the wait": delete_wait,
    "wait_group 0": wait_for(0),
    "wait_group 2": wait_for(2),
    "wait_group 3": wait_for(3),
    "wait after the copies": wait_after_the_copies,
    "delete the first commit": delete_commit(0),
    "delete the second commit": delete_commit(1),
    "delete the commit of the loop": delete_commit(2),
    "double the first commit": double_commit(0),
    "double the second commit": double_commit(1),
    "double the commit of the loop": double_commit(2),
    "commit before the copies": commit_before_the_copies,
    "commit by half of the warps": commit_by_half_of_the_warps,
}

# wait_group n completes all but the n youngest groups. Call a program's wait at least
# as strict as another's if at each wait it completes every copy that the other does.
# A stricter program only removes interleavings from a correct one: it is correct.
EQUIVALENT = {
    "wait_group 0": "it completes every group, so also those that wait_group 1 does",
    "double the first commit": (
        "an empty group between those of tiles 0 and 1: the wait of iteration 0 leaves"
        " one group, that of tile 1, as before; later waits see the same groups"
    ),
    "double the second commit": (
        "an empty group after that of tile 1: the wait of iteration 0 leaves only the"
        " empty one in flight, so it completes tiles 0 and 1: stricter; afterwards the"
        " youngest groups are those of the loop, as before"
    ),
    "double the commit of the loop": (
        "each wait leaves only the empty youngest group, so it completes all copies"
    ),
}


@pytest.mark.parametrize("name", SYNCHRONISATION)
def test_synchronisation(name: str) -> None:
    """A report or a fault is wanted here: right numbers prove nothing."""
    found = caught_by(SYNCHRONISATION[name]())
    if name in EQUIVALENT:
        assert found == set()
    else:
        assert found & {"report", "fault"}


def test_only_the_checker_sees_a_missing_barrier() -> None:
    """Why it is there: with all warps in step the numbers come out right."""
    assert caught_by(delete_barrier()) == {"report"}


# Copies, loads and mma ----------------------------------------------------------------


def shifted(line: str, amount: int, operand: int = 0) -> str:
    """The nth address of an instruction, moved by `amount` bytes."""
    addresses = re.findall(r"\[[^\]]*\]", line)
    old = addresses[operand]
    return line.replace(old, f"{old[:-1]}+{amount}]", 1)


def copy_mutants(lines: list[str], places: list[int]) -> Iterator[tuple[str, int, str]]:
    for count, index in enumerate(places):
        line = lines[index]
        yield "delete", index, ""
        if count % 3 == 0:
            yield "destination + 64", index, shifted(line, 64)
        if count % 3 == 1:
            yield "source + 16", index, shifted(line, 16, operand=1)
        if count % 3 == 2:
            yield "copies nothing", index, re.sub(r"%r\d+;", "0;", line)


def load_mutants(lines: list[str], places: list[int]) -> Iterator[tuple[str, int, str]]:
    for count, index in enumerate(places):
        line = lines[index]
        if count % 2 == 0:
            yield "address + 1024", index, shifted(line, 1024)
        elif ".trans" in line:
            yield "not transposed", index, line.replace(".trans", "")
        else:
            yield "transposed", index, line.replace(".x4.", ".x4.trans.")
        if count % 4 == 1:
            yield "delete", index, ""
        if count % 4 == 3:
            swapped = re.sub(r"\{(%r\d+), (%r\d+),", r"{\2, \1,", line)
            yield "swap two results", index, swapped


def product_mutants(
    lines: list[str], places: list[int]
) -> Iterator[tuple[str, int, str]]:
    for count, index in enumerate(places):
        line = lines[index]
        if count % 8 == 0:
            yield "delete", index, ""
        if count % 16 == 3:
            yield "swap b", index, re.sub(r"\{(%r\d+), (%r\d+)\}", r"{\2, \1}", line)
        if count % 16 == 7:
            swapped = re.sub(
                r"\{(%r\d+), (%r\d+), (%r\d+), (%r\d+)\}",
                r"{\2, \1, \3, \4}",
                line,
                count=1,
            )
            yield "swap a", index, swapped
        if count % 16 == 11:
            yield "do it twice", index, f"{line} {line}"


def operation_mutants() -> dict[str, tuple[int, str]]:
    text = original()
    lines = text.split("\n")
    found: dict[str, tuple[int, str]] = {}
    for fragment, mutants in (
        ("cp.async.cg", copy_mutants),
        ("ldmatrix.", load_mutants),
        ("mma.sync", product_mutants),
    ):
        for what, index, line in mutants(lines, lines_with(text, fragment)):
            found[f"{fragment} {what}, line {index + 1}"] = (index, line)
    return found


OPERATIONS = operation_mutants()


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name: str) -> None:
    assert caught_by(with_line(original(), *OPERATIONS[name]))


def test_enough_mutants() -> None:
    """The table is made by search: an empty one would pass everything."""
    for fragment, least in (("cp.async.cg", 48), ("ldmatrix.", 24), ("mma.sync", 20)):
        assert sum(name.startswith(fragment) for name in OPERATIONS) >= least


# The other fixtures -------------------------------------------------------------------


def barrier_mutants() -> list[tuple[str, int]]:
    names = ("transpose_u16", "warp_reduce", "histogram", "stmatrix", "named_barriers")
    return [
        (name, index) for name in names for index in lines_with(fixture(name), "bar.")
    ]


def arguments_of(name: str) -> tuple[str, tuple[int, ...], tuple[int, ...], list]:
    if name == "transpose_u16":
        halves = [np.zeros((32, 32), np.uint16), np.zeros((32, 32), np.uint16)]
        return "transpose", (1,), (128,), [*halves, 32, 32]
    if name == "warp_reduce":
        arrays = [
            np.zeros(256, np.float32),
            np.zeros(1, np.float32),
            np.zeros(8, np.uint32),
            np.zeros(256, np.int32),
        ]
        return "warp_reduce", (1,), (256,), arrays
    if name == "histogram":
        # each thread counts into the cell that a thread of another warp clears
        arrays = [
            np.arange(256, dtype=np.uint8)[::-1].copy(),
            256,
            np.zeros(256, np.uint32),
            np.zeros(1, np.uint32),
        ]
        return "histogram", (1,), (128,), arrays
    if name == "stmatrix":
        words = [np.zeros((4, 32), np.uint32) for _ in range(3)]
        return "store_tiles", (1,), (32,), words
    rounds = 11  # both the unrolled loop and the rest of it
    arrays = [np.zeros((rounds, 32), np.int32), np.zeros((rounds, 2, 32), np.int32)]
    return "producer_consumer", (1,), (96,), [*arrays, rounds]


@pytest.mark.parametrize(("name", "index"), barrier_mutants())
def test_every_barrier_is_needed(name: str, index: int) -> None:
    kernel, grid, block, arguments = arguments_of(name)
    text = with_line(fixture(name), index, "")
    try:
        found = [str(h) for h in launch(text, kernel, grid, block, arguments).hazards]
    except EmulationError as error:
        found = [str(error)]
    assert found
