"""Costs of schedules, and the limits that refuse them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alcop_mlir import resources
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Copies
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target, target_names


def test_shared_bytes_are_tiles_times_slots() -> None:
    # A: 128 x 32, B: 32 x 128, f16, three slots.
    assert resources.shared_bytes(Schedule()) == 3 * 2 * 128 * 32 * 2


def test_cost_counts_blocks_per_sm() -> None:
    cost = resources.cost(Schedule(), find_target("sm_80"))
    assert cost.threads == 128
    # 128 threads of about 232 registers: two blocks in 65536.
    assert cost.blocks_per_sm == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "block=256,128,64 warp=64,64 stages=8,2",
            "needs 393216 bytes of shared memory, sm_80 has 166912 per block",
        ),
        ("block=128,128,32 warp=128,128", "registers per thread, there are 255"),
        ("block=512,256,16 warp=64,64 stages=2,2", "registers per block"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resources.cost(Schedule.parse(text), find_target("sm_80"))
    assert message in str(caught.value)


def test_targets_are_found_by_name() -> None:
    assert [find_target(name).name for name in target_names()] == list(target_names())
    assert find_target("sm_86").compute_capability == 86
    everyone = ", ".join(target_names())
    for name in ("sm_70", "sm_80a", "sm_90b", "sm_", "sm_090", "sm_90 ", "", "sm_90aa"):
        with pytest.raises(ConfigError, match=f"'{name}', expected one of {everyone}"):
            find_target(name)


def test_a_feature_set_is_of_one_architecture() -> None:
    """Code for sm_90a runs on no other GPU; it has the resources of sm_90."""
    specific, plain = find_target("sm_90a"), find_target("sm_90")
    assert specific.name == "sm_90a"
    assert specific.architecture == plain.architecture == "sm_90"
    assert specific.compute_capability == 90
    assert replace(specific, name="sm_90") == plain
    assert [specific.runs_on(number) for number in (89, 90, 100)] == [0, 1, 0]
    assert [plain.runs_on(number) for number in (89, 90, 100)] == [0, 1, 1]


def test_memory_may_hold_wider_elements_than_are_multiplied() -> None:
    """A of f32, multiplied as f16: A's tiles, and fragments as loaded, are twice."""
    schedule = Schedule.parse("block=64,64,32 warp=32,32 stages=3,2")
    assert resources.shared_bytes(schedule, 2, (4, 2)) == 3 * 64 * 32 * (4 + 2)
    plain = resources.registers_per_thread(schedule)
    # 32 x 16 elements per stage are 8 registers a lane as f16, 16 as f32.
    assert resources.registers_per_thread(schedule, 2, (4, 2)) == plain + 2 * 8 + 8
    with pytest.raises(ConfigError, match="needs 196608 bytes of shared memory"):
        resources.cost(Schedule.parse("stages=6,1"), find_target("sm_80"), 2, (4, 4))


SMALL, LARGE = "block=64,64,32 warp=32,32", "block=128,128,32 warp=64,64"


@pytest.mark.parametrize(
    ("schedule", "element_bytes", "at_once", "more"),
    [
        (LARGE, 2, (16, 16), 0),
        # Four for each copy: 64 x 32 f16 are 1024 words, 8 for each of 128 threads.
        (SMALL, 2, (16, 4), 4 * 8),
        (SMALL, 2, (8, 4), 4 * (4 + 8)),
        # Of single elements a register each, an address of two for each word, bounds.
        (SMALL, 2, (2, 2), 2 * (16 + 2 * 8) + 8),
        (SMALL, 2, (2, 4), 16 + 2 * 8 + 4 * 8 + 8),
        ("block=64,64,64 warp=32,32", 1, (1, 1), 2 * (32 + 2 * 8) + 8),
    ],
)
def test_registers_of_copies_add_up(
    schedule: str, element_bytes: int, at_once: tuple[int, int], more: int
) -> None:
    one, copies = Schedule.parse(schedule), Copies(at_once)
    wide = resources.registers_per_thread(one, element_bytes)
    assert resources.registers_per_thread(one, element_bytes, None, copies) == (
        wide + more
    )


@pytest.mark.parametrize(
    ("schedule", "element_bytes", "copies", "more"),
    [
        (LARGE, 2, Copies(), 0),  # 8 copies of 16 bytes for each thread
        ("block=128,128,64 warp=64,64", 2, Copies(), 2 * (16 - 8)),
        ("block=64,128,32 warp=64,64", 2, Copies(), 2 * (12 - 8)),
        ("block=64,128,128 warp=64,64", 1, Copies(), 2 * (24 - 8)),
        ("block=128,128,16 warp=64,64", 4, Copies(word_loads=1), 16),
        ("block=64,128,16 warp=64,64", 4, Copies(word_loads=2), 2 * 16 + 2 * (12 - 8)),
    ],
)
def test_registers_of_wide_copies_and_words_add_up(
    schedule: str, element_bytes: int, copies: Copies, more: int
) -> None:
    """Beside 64 x 64 accumulators, two steps of fragments, and 40."""
    one = Schedule.parse(schedule)
    found = resources.registers_per_thread(one, element_bytes, copies=copies)
    assert found == 128 + 2 * 32 + 40 + more


@pytest.mark.parametrize(
    ("schedule", "gathered", "more"),
    [
        # A row of 64 bytes for four threads: 4 rows each; two fragments of 32 bytes.
        (LARGE, "A", 3 * 4 + 2 * 2),
        (f"{LARGE} raster=8", "A", 3 * 4 + 2 * 2 + 4),
        ("block=256,64,32 warp=64,64", "A", 3 * 8 + 2 * 2),
        ("block=256,64,32 warp=64,64", "B", 3 * 2 + 2 * 2),
        ("block=128,128,64 warp=64,64", "A", 3 * 4 + 2 * 4),
        ("block=64,64,16 warp=32,32", "B", 3 * 1 + 2 * 1),
    ],
)
def test_registers_of_gathered_rows_add_up(
    schedule: str, gathered: str, more: int
) -> None:
    one, copies = Schedule.parse(schedule), Copies(gathered=gathered)
    few_copies = replace(one, block=(*one.block[:2], 16))
    plain = resources.registers_per_thread(few_copies)
    assert resources.registers_per_thread(one, copies=copies) == plain + more


@pytest.mark.parametrize(
    ("schedule", "at_once", "message"),
    [
        (LARGE, (16, 16), ""),
        ("block=64,128,64 warp=64,64", (16, 16), "needs about 264 registers"),
        (LARGE, (16, 4), "needs about 296 registers per thread, there are 255"),
        ("block=128,128,32 warp=64,32", (4, 4), ""),
        ("block=64,64,64 warp=32,32", (2, 2), "128 registers per thread for what is"),
        ("block=128,64,32 warp=64,32", (2, 2), "needs about 256 registers"),
    ],
)
def test_what_copies_need_is_limited(
    schedule: str, at_once: tuple[int, int], message: str
) -> None:
    target, copies = find_target("sm_80"), Copies(at_once)
    if not message:
        resources.cost(Schedule.parse(schedule), target, copies=copies)
        return
    with pytest.raises(ConfigError, match=message):
        resources.cost(Schedule.parse(schedule), target, copies=copies)
