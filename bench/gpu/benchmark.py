"""Times of the kernels, of cuBLAS, of Triton, and of the kernels unpipelined.

All competitors at one shape take turns, round after round, in one process. Every call
uses another set of arrays, so that no input is found in the L2 cache. A round is
enqueued while the GPU waits, so that the CPU's time does not count. The median of each
competitor is kept. Rows: `ceiling` (the limits of mma.sync and of memory), `drift` (one
matmul by cuBLAS, timed repeatedly during the run), `time`, and `shape` (with clocks).
"""

from __future__ import annotations

import importlib
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.tuning.problem import Problem
from bench.gpu import operations
from bench.gpu.device import Arrays, Device
from bench.gpu.operations import check_memory
from bench.gpu.pack import Entry
from bench.gpu.session import Session
from bench.gpu.spec import Shape, array_bytes

CUBLAS, TRITON = "cuBLAS", "Triton"
CACHE_TURNS = 2  # the sets of arrays together take so many times the L2 cache
MOST_SETS = 64
TRITON_SECONDS = 90.0  # for a trial whether Triton works here
_MEMORY_SHARE = 0.5  # of the free memory that the sets may take
LONG_ENOUGH = 100e-6  # seconds; shorter calls are repeated between two events
MOST_REPEATS = 8
_DRIFT: Shape = (1, 4096, 4096, 4096)
_DRIFT_EVERY = 15  # shapes
MMA_FLOPS = 2 * 16 * 8 * 16
_MMA_PER_ROUND = 16  # of ceiling.ptx
# Blocks per multiprocessor and warps per block that keep all tensor cores busy.
_OCCUPANCIES = ((1, 8), (2, 8), (1, 16), (4, 4))
_REPORTED_SPREAD = 4  # times needed for quartiles


@dataclass(frozen=True)
class Effort:
    """How much is measured; QUICK is for tests on the emulator.

    ceiling_rounds: of the loop of ceiling.ptx; multiprocessors: that it fills
    shape_seconds: least and most for one shape
    """

    least_rounds: int = 7
    most_rounds: int = 200
    shape_seconds: tuple[float, float] = (0.5, 8.0)
    warm_up_rounds: int = 3
    ceiling_rounds: int = 8000
    multiprocessors: int | None = None
    copy_bytes: int = 2**30
    drift: Shape = _DRIFT


FULL = Effort()
QUICK = Effort(
    least_rounds=2,
    most_rounds=2,
    shape_seconds=(0.0, 0.1),
    warm_up_rounds=0,
    ceiling_rounds=1,
    multiprocessors=1,
    copy_bytes=2**12,
    drift=(1, 32, 32, 32),
)


@dataclass
class Competitor:
    """One way to compute the contraction; `times` are seconds of each round."""

    role: str
    key: str
    about: dict[str, Any]
    call: Callable[[Arrays], object]
    times: list[float] = field(default_factory=list)


def run(session: Session, effort: Effort = FULL, use_triton: bool = True) -> None:
    """All rows, while there is time."""
    triton = _triton(session) if use_triton else None
    _ceilings(session, effort, "begin")
    shapes = _shapes(session)
    for number, ((group, problem), entries) in enumerate(shapes):
        if session.budget.left() == 0:
            break
        if number % _DRIFT_EVERY == 0:
            _drift(session, effort, number)
        least, most = effort.shape_seconds
        share = session.budget.left() / (len(shapes) - number)
        seconds = max(least, min(most, share))
        _measure_shape(session, effort, group, problem, entries, triton, seconds)
    session.records.left_out(_shape_key(problem) for (_, problem), _ in shapes)
    _ceilings(session, effort, "end")


def rotation(device: Device, problem: Problem) -> int:
    """The number of sets of arrays that exceed the L2 cache, and fit in memory."""
    size = array_bytes(problem)
    wanted = -(-CACHE_TURNS * device.cache_bytes() // size) + 1
    fitting = int(device.free_bytes() * _MEMORY_SHARE) // size
    return max(1, min(wanted, fitting, MOST_SETS))


def time_rounds(
    device: Device,
    competitors: Sequence[Competitor],
    sets: Sequence[Arrays],
    effort: Effort,
    seconds: float,
) -> None:
    """Fill in `times`: about `seconds`, within the least and the most rounds."""
    turn = _Turn(sets)
    repeats = [1] * len(competitors)
    first: list[float] = []
    for _ in range(effort.warm_up_rounds + 1):
        first = device.seconds([partial(turn, c.call, 1) for c in competitors])
    repeats = [
        max(1, min(MOST_REPEATS, int(LONG_ENOUGH / max(spent, 1e-9))))
        for spent in first
    ]
    one_round = sum(n * spent for n, spent in zip(repeats, first, strict=True))
    count = int(seconds / max(one_round, 1e-3))
    count = max(effort.least_rounds, min(effort.most_rounds, count))
    for number in range(count):
        # Another one begins each round, so that the order changes.
        shift = number % len(competitors)
        order = [*range(shift, len(competitors)), *range(shift)]
        spent = device.seconds(
            [partial(turn, competitors[i].call, repeats[i]) for i in order]
        )
        for i, total in zip(order, spent, strict=True):
            competitors[i].times.append(total / repeats[i])


class _Turn:
    """Calls a competitor with one set of arrays after the other."""

    def __init__(self, sets: Sequence[Arrays]):
        self._sets, self._next = sets, 0

    def __call__(self, call: Callable[[Arrays], object], repeats: int) -> None:
        for _ in range(repeats):
            call(self._sets[self._next])
            self._next = (self._next + 1) % len(self._sets)


def spread(times: Sequence[float]) -> float:
    """The interquartile range divided by the median."""
    if len(times) < _REPORTED_SPREAD:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle


def _shapes(session: Session) -> list[tuple[tuple[str, Problem], list[Entry]]]:
    found: dict[tuple[str, Problem], list[Entry]] = {}
    for entry, shape in session.pairs("bench"):
        key = (entry.group, entry.spec.problem(shape))
        found.setdefault(key, []).append(entry)
    return list(found.items())


def _shape_key(problem: Problem) -> str:
    return f"shape {problem} {problem.layout}"


def _key(problem: Problem, who: str) -> str:
    return f"time {problem} {problem.layout} {who}"


def _measure_shape(
    session: Session,
    effort: Effort,
    group: str,
    problem: Problem,
    entries: Sequence[Entry],
    triton: Any,
    seconds: float,
) -> None:
    """The rows of one shape; a competitor that fails is left out of the rounds."""
    device, records, key = session.device, session.records, _shape_key(problem)
    if not records.start("shape", key):
        return
    with session.row("shape", key, group=group, problem=str(problem)) as row:
        check_memory(device, problem, sets=2)
        sets = [
            session.pool.operands(problem) for _ in range(rotation(device, problem))
        ]
        library = device.library(problem)
        library(sets[0])
        expected = sets[0][2].copy()
        ready = [Competitor(CUBLAS, _key(problem, CUBLAS), {}, library)]
        for entry in entries:
            _admit(session, problem, entry, sets[0], expected, ready)
        if triton is not None:
            _admit_triton(session, problem, triton, sets, expected, ready)
        records.start("shape", key)  # a crash from here on is recorded as this row's
        time_rounds(device, ready, sets, effort, seconds)
        row.update(ok=True, state=device.state(), sets=len(sets))
        for one in ready:
            _write(session, group, problem, one)


def _admit(
    session: Session,
    problem: Problem,
    entry: Entry,
    arrays: Arrays,
    expected: Any,
    ready: list[Competitor],
) -> None:
    """Run the kernel once, and append it to `ready` if the result is right."""
    device = session.device
    name = f"{entry.role} {entry.spec.schedule}".strip()
    key = _key(problem, name)
    if not session.records.start("time", key):
        return
    about: dict[str, Any] = {"role": entry.role, "group": entry.group}
    with session.row("time", key, **about) as row:
        loaded = session.load(entry.spec)
        out = device.empty(arrays[2].shape, problem.dtypes[3])
        loaded.call(arrays[0], arrays[1], out)
        off = operations.distance(device, problem, out, expected)
        # No row is written yet if it is right: the time is missing.
        if off <= 2 * operations.tolerance(problem):
            about["schedule"] = loaded.schedule
            about["registers"] = loaded.kernel.registers
            call = partial(_call, loaded.call)
            ready.append(Competitor(entry.role, key, about, call))
            row["pending"] = True
        else:
            row["error"] = f"off from cuBLAS by {off:.2e}"


def _call(program: Callable[..., None], arrays: Arrays) -> None:
    program(*arrays)


def _admit_triton(
    session: Session,
    problem: Problem,
    triton: Any,
    sets: Sequence[Arrays],
    expected: Any,
    ready: list[Competitor],
) -> None:
    key = _key(problem, TRITON)
    if not session.records.start("time", key):
        return
    with session.row("time", key, role=TRITON) as row:
        try:
            call, config = triton.tuned(session.device, problem, sets)
        except triton.failures as error:
            row["error"] = f"{type(error).__name__}: {error}"
            return
        call(sets[0])
        off = operations.distance(session.device, problem, sets[0][2], expected)
        if not off <= 2 * operations.tolerance(problem):
            row["error"] = f"off from cuBLAS by {off:.2e}"
            return
        about = {"role": TRITON, "schedule": config}
        ready.append(Competitor(TRITON, key, about, call))
        row["pending"] = True


def _write(session: Session, group: str, problem: Problem, one: Competitor) -> None:
    median = statistics.median(one.times)
    session.records.add(
        "time",
        one.key,
        ok=True,
        **{"group": group, "role": one.role, **one.about},
        problem=str(problem),
        **problem.to_record(),
        seconds=median,
        spread=spread(one.times),
        rounds=len(one.times),
        tflops=problem.flops / median / 1e12,
        bytes=array_bytes(problem),
    )


def _drift(session: Session, effort: Effort, number: int) -> None:
    key = f"drift {number}"
    if not session.records.start("drift", key):
        return
    _, m, n, k = effort.drift
    problem = Problem(m, n, k)
    with session.row("drift", key, problem=str(problem)) as row:
        device = session.device
        one = Competitor(CUBLAS, key, {}, device.library(problem))
        sets = [session.pool.operands(problem) for _ in range(2)]
        time_rounds(device, [one], sets, effort, 0.1)
        median = statistics.median(one.times)
        row.update(ok=True, seconds=median, tflops=problem.flops / median / 1e12)


def _ceilings(session: Session, effort: Effort, when: str) -> None:
    for dtype in ("f16", "bf16"):
        key = f"ceiling mma.sync {dtype} {when}"
        if session.records.start("ceiling", key):
            with session.row("ceiling", key) as row:
                best = max(
                    mma_ceiling(session.device, effort, dtype, *occupancy)
                    for occupancy in _OCCUPANCIES
                )
                row.update(ok=True, what=f"mma.sync {dtype}", tflops=best / 1e12)
    key = f"ceiling copy {when}"
    if session.records.start("ceiling", key):
        with session.row("ceiling", key) as row:
            rate = copy_ceiling(session.device, effort)
            row.update(ok=True, what="copy", bytes_per_second=rate)


def mma_ceiling(
    device: Device, effort: Effort, dtype: str, blocks: int, warps: int
) -> float:
    """Operations per second of mma.sync from registers alone.

    blocks: per multiprocessor
    """
    ptx = Path(__file__).with_name("probes").joinpath("ceiling.ptx").read_text()
    kernel = device.kernel(ptx, f"ceiling_{dtype}")
    grid = blocks * (effort.multiprocessors or device.about()["sms"])
    numbers = np.random.default_rng(0).random(16 * WARP_SIZE, np.float32) * 2 - 1
    values = device.array(dtypes.encode(numbers, dtype).view(np.uint16))
    found = device.empty((grid * warps * WARP_SIZE * 4,), "f32")
    arguments = (values, np.uint32(effort.ceiling_rounds), found)

    def call() -> None:
        kernel((grid, 1, 1), (warps * WARP_SIZE, 1, 1), arguments)

    for _ in range(effort.warm_up_rounds):
        device.seconds([call])
    seconds = statistics.median(
        device.seconds([call])[0] for _ in range(effort.least_rounds)
    )
    mma = grid * warps * effort.ceiling_rounds * _MMA_PER_ROUND
    return mma * MMA_FLOPS / seconds


def copy_ceiling(device: Device, effort: Effort) -> float:
    """Bytes per second of a large copy, read and written."""
    size = min(effort.copy_bytes, device.free_bytes() // 4)
    source, to = (device.empty((size // 4,), "f32") for _ in range(2))
    calls = [lambda: device.copy(source, to)]
    device.seconds(calls)
    times = [device.seconds(calls)[0] for _ in range(effort.least_rounds)]
    return 2 * source.nbytes / statistics.median(times)


def _triton(session: Session) -> Any:
    """The competitor, or None with a row that says why."""
    if session.device.name != "cuda":
        return None
    # In a process of its own: incompatible packages fail in many ways.
    command = [sys.executable, "-m", "bench.gpu.triton_matmul"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TRITON_SECONDS
        )
        why = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        if done.returncode == 0:
            module = importlib.import_module("bench.gpu.triton_matmul")
            return module.TritonMatmul(session.device)
    except subprocess.TimeoutExpired:
        why = f"it did nothing for {TRITON_SECONDS:.0f} s"
    print(f"Triton is not measured: {why}", flush=True)
    if session.records.start("state", "triton"):
        session.records.add("state", "triton", text=f"not measured: {why}")
    return None
