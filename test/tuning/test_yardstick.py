"""The yardstick: frozen, independent, and a GPU as far as one can tell."""

from __future__ import annotations

import ast
import hashlib
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import yardstick
import yardstick_device
from yardstick import copies, device, memory
from yardstick.kernel import Kernel, resident
from yardstick.machines import A100, H100

from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning.problem import Problem

FILES = sorted(Path(yardstick.__file__).parent.glob("*.py"))
# Of all files of version 2. Who changes them makes another version, measures all
# figures on it again, and writes the new digest here.
DIGEST = "541c1d488fd9d2e5b4f75147a0a830072b7f93d5fe88835be399098b65d2d602"
PLAIN = Kernel(2048, 2048, 2048, 1, 2, 4, 4, (128, 128, 32), (64, 64), 3, 2)
WARPGROUPS = replace(
    PLAIN, block=(128, 256, 64), warp=(16, 256), slots=4, out=2, wgmma=True
)
GOLDEN = [
    (PLAIN, A100, 79.93782912234042),
    (replace(PLAIN, block=(32, 32, 16), warp=(16, 16)), A100, 252.2618095238116),
    (
        replace(PLAIN, m=16, block=(16, 64, 64), warp=(16, 16), parts=8),
        A100,
        8.115666155577056,
    ),
    (replace(PLAIN, slots=1, registers=1), A100, 140.4927531978216),
    (replace(PLAIN, n=2047, aligned=(16, 2), group=8), A100, 87.42378607443644),
    (replace(PLAIN, size=4, along_k=(False, False)), H100, 104.05114264514326),
    (WARPGROUPS, H100, 32.73623587369421),
]


def test_it_is_frozen() -> None:
    found = hashlib.sha256(b"".join(path.read_bytes() for path in FILES)).hexdigest()
    assert (yardstick.VERSION, found) == (2, DIGEST)


@pytest.mark.parametrize(("kernel", "machine", "microseconds"), GOLDEN)
def test_golden_values(kernel: Kernel, machine, microseconds: float) -> None:
    found = device.seconds(kernel, machine) * 1e6
    assert found == pytest.approx(microseconds, rel=1e-6)


def test_it_imports_nothing_of_what_it_judges() -> None:
    assert len(FILES) == 8
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                root = str(node.module).split(".")[0]
                assert root == "yardstick" or root in sys.stdlib_module_names
            assert not isinstance(node, ast.Import)


def peak(machine) -> float:
    """Multiply-adds per second of 16-bit elements."""
    per_cycle = machine.quarters * 16 * 8 * 16 / machine.mma
    return max(per_cycle, machine.wgmma) * machine.sms * machine.clock


@pytest.mark.parametrize(
    ("kernel", "machine", "least"),
    [
        (replace(PLAIN, m=8192, n=8192, k=8192, group=8), A100, 0.8),
        (replace(PLAIN, m=8192, n=8192, k=8192, group=8), H100, 0.4),
        (replace(WARPGROUPS, m=8192, n=8192, k=8192, group=8), H100, 0.5),
    ],
)
def test_large_products_come_near_the_peak(kernel, machine, least: float) -> None:
    work = kernel.m * kernel.n * kernel.k
    reached = work / device.seconds(kernel, machine) / peak(machine)
    assert least < reached < 1


def test_what_costs_time() -> None:
    """Each change makes a kernel slower, by the effect that it is named for."""
    plain = device.seconds(PLAIN, A100)
    worse = {
        "one slot": replace(PLAIN, slots=1, registers=1),
        "small K steps": replace(PLAIN, block=(128, 128, 16), slots=2),
        "rows of odd bytes": replace(PLAIN, aligned=(2, 2)),
        "words": replace(PLAIN, aligned=(4, 4)),
        "a tail": replace(PLAIN, m=2048 + 128 * 6),
        "small tiles": replace(PLAIN, block=(32, 32, 32), warp=(16, 16)),
        "one warp per quarter": replace(PLAIN, block=(128, 128, 64), slots=6),
    }
    times = {name: device.seconds(kernel, A100) for name, kernel in worse.items()}
    assert {name for name, time in times.items() if time > 1.02 * plain} == {*worse}


def test_few_blocks_gain_by_parts_of_k() -> None:
    thin = replace(PLAIN, m=16, n=512, k=8192, block=(16, 64, 64), warp=(16, 16))
    split = replace(thin, parts=4)
    assert device.seconds(split, A100) < 0.7 * device.seconds(thin, A100)
    short = replace(thin, k=256)
    split = replace(short, parts=4)
    assert device.seconds(split, A100) > device.seconds(short, A100)


def test_what_an_sm_holds() -> None:
    assert resident(PLAIN, A100) == 2  # by registers
    deep = replace(PLAIN, block=(128, 128, 64), slots=4)
    assert resident(deep, A100) == 1  # by shared memory
    assert resident(replace(PLAIN, block=(16, 16, 16), warp=(16, 16)), A100) == 32


def test_copies_of_a_step_counted_by_hand() -> None:
    """Of 128x32 of A along K, 64 bytes a row, and 32x128 of B, 256 bytes a row."""
    step = copies.of_step(PLAIN)
    assert step.instructions == 2 * 128 * 64 / 512
    assert step.lines == 128 + 2 * 32
    assert step.moved == step.stored == 2 * 128 * 64
    odd = copies.of_step(replace(PLAIN, aligned=(16, 2)))
    assert odd.instructions == 128 * 64 / 512 + 2 * 32 * 128 / 32
    assert odd.moved == 128 * 64 + 32 * (256 + 32)
    half = copies.of_step(replace(PLAIN, m=64))  # rows beyond the edge are not read
    assert half.moved == 64 * 64 + 128 * 64


def test_waves_read_each_panel_once() -> None:
    """216 blocks of 16x16: 13.5 rows of blocks, all columns."""
    (_, first), (_, last) = memory.waves(PLAIN, 216, 20e6)
    assert (first.blocks, last.blocks) == (216, 40)
    assert first.missed == pytest.approx((14 + 16) / (2 * 216))
    assert first.cold == 1.0
    assert last.missed == pytest.approx(2 / (2 * 40))  # L2 keeps the rest
    (_, _), (_, last) = memory.waves(PLAIN, 216, 1e6)
    assert last.missed == pytest.approx((3 + 16) / (2 * 40), rel=0.2)


def test_groups_of_rows_share_more() -> None:
    large = replace(PLAIN, m=8192, n=8192)
    grouped = replace(large, group=8)
    plain, better = (memory.waves(one, 216, 20e6) for one in (large, grouped))
    assert better[0][1].missed < 0.7 * plain[0][1].missed
    assert memory.place(grouped, 8) == (0, 1, 0)
    assert memory.place(grouped, 8 * 64) == (8, 0, 0)


def test_schedules_of_the_compiler_are_kernels_of_the_yardstick() -> None:
    problem = Problem(100, 63, 256, dtypes=("f16", "f16", "f32", "f16"))
    schedule = Schedule((64, 64, 32), (32, 16), (4, 2), raster=8, split_k=2)
    kernel = yardstick_device.kernel_of(problem, schedule)
    assert kernel.aligned == (16, 2)
    assert (kernel.rows, kernel.columns, kernel.parts, kernel.group) == (2, 1, 2, 8)
    assert (kernel.warps, kernel.fragments, kernel.steps) == (8, 2, 4)
    (found,) = yardstick_device.seconds(problem, [schedule], A100)
    assert found == device.seconds(kernel, A100)


def test_a_schedule_takes_a_few_milliseconds() -> None:
    start = time.process_time()
    for _ in range(5):
        device.seconds(PLAIN, A100)
    assert (time.process_time() - start) / 5 < 0.05
