"""`emulate`: runs one kernel of a PTX module on NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from alcop_mlir import limits
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arguments import Argument, Bound, bind
from alcop_mlir.runtime.emulator.budget import Budget
from alcop_mlir.runtime.emulator.hazards.cluster_shadow import ClusterShadow
from alcop_mlir.runtime.emulator.hazards.engine_shadow import EngineShadow
from alcop_mlir.runtime.emulator.hazards.global_shadow import GlobalShadow
from alcop_mlir.runtime.emulator.hazards.proxy_marks import ProxyMarks
from alcop_mlir.runtime.emulator.hazards.reports import Hazard, Reports
from alcop_mlir.runtime.emulator.hazards.warp_shadow import WarpShadow
from alcop_mlir.runtime.emulator.hazards.warpgroup_reads import WarpgroupReads
from alcop_mlir.runtime.emulator.instructions.calls import MAX_LOCAL
from alcop_mlir.runtime.emulator.launch_checks import (
    check_arguments,
    check_kernel,
    check_launch,
    check_options,
    shape_of,
)
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Observer
from alcop_mlir.runtime.emulator.machine.map_views import MapViews
from alcop_mlir.runtime.emulator.machine.memory_map import map_memory
from alcop_mlir.runtime.emulator.machine.releases import Releases
from alcop_mlir.runtime.emulator.machine.warps import LANES, Shape
from alcop_mlir.runtime.emulator.observers.counters import Counters, CounterSet
from alcop_mlir.runtime.emulator.observers.trace import Tracer, TraceRequest
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx
from alcop_mlir.runtime.emulator.ptx.program import Program, link
from alcop_mlir.runtime.emulator.ptx.syntax import Module, PtxKernel
from alcop_mlir.runtime.emulator.schedule import Runner
from alcop_mlir.runtime.emulator.translated_kernel import TranslatedKernel
from alcop_mlir.runtime.emulator.turns import make_picker

# Blocks that run together: beyond about 64 the cost per block no longer falls.
BATCH_BLOCKS = 64
_KEPT_MODULES = 4  # that were parsed last: a program launches kernels of few


@dataclass(frozen=True)
class Result:
    """What a run found.

    `seconds`: wall-clock time of the run without parsing; `warp_instructions`: how
    many were issued, summed over all warps; `printed`: the text of its `printf`;
    `notes`: what looks like a hazard, but changes no result.
    """

    hazards: tuple[Hazard, ...]
    counters: Counters | None
    seconds: float
    warp_instructions: int
    printed: str = ""
    notes: tuple[Hazard, ...] = ()


def emulate(
    ptx: str,
    kernel: str | None,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    args: Sequence[Argument],
    *,
    dynamic_shared: int = 0,
    cluster: tuple[int, int, int] | None = None,
    cooperative: bool = False,
    symbols: Mapping[str, np.ndarray] | None = None,
    visibility: str = "late",
    schedule: str = "lockstep",
    hazards: bool = True,
    max_reports: int = 20,
    instruction_limit: int | None = None,
    time_limit: float | None = None,
    counters: bool = False,
    trace: TraceRequest | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Runs `kernel` (None: the only one) of a PTX module.

    `args` has one entry per `.param`: an array is a device pointer to a buffer of its
    own, of any dtype and shape, and holds the kernel's writes afterwards (arrays that
    overlap keep doing so); a number is converted to the type of the parameter; bytes
    and `Struct` fill a structure, which may hold addresses; `Pointers` is an array of
    addresses. `symbols` sets variables of the module, `.const` or `.global`, by name;
    arrays of the latter hold the writes afterwards. `dynamic_shared` is in bytes.
    `cluster` is the size of clusters in blocks, where the kernel does not say it. The
    blocks of a `cooperative` launch are all there at once. `visibility` says when
    asynchronous copies land, as "late" or as "early" as PTX allows; `schedule` is
    "lockstep", "ascending", "descending", "random" or "random(SEED)". With `hazards`
    races are found, up to `max_reports` different ones. `instruction_limit` bounds
    the warp instructions of one batch of blocks, `time_limit` the seconds of the run.
    `progress` is told how many blocks are done, and of how many, before each batch and
    at the end.

    Raises `EmulationError` for PTX outside the subset, a launch that does not fit the
    kernel, and faults: out of bounds, misaligned, deadlock, instruction limit.
    """
    check_options(visibility, max_reports, instruction_limit, time_limit)
    check_arguments(args, symbols)
    picker = make_picker(schedule)
    module = _read(ptx)
    code = _choose(module, kernel)
    check_kernel(module, code)
    check_launch(code, grid, block, dynamic_shared, cooperative)
    launch = shape_of(module, code, grid, block, cluster)
    clusters = math.prod(launch.clusters)
    program = link(module, code)
    with np.errstate(all="ignore"):
        bound = bind(program, module, args, symbols or {}, cooperative)
        most = max(BATCH_BLOCKS // launch.ranks, 1)
        together = clusters if cooperative else min(clusters, most)
        lanes = together * launch.ranks * launch.warps * LANES
        translated = _translated(program, module, bound, dynamic_shared, lanes)
        tallies = CounterSet(translated.listing) if counters else None
        tracer = Tracer(trace, translated.listing, launch) if trace else None
        checks = _checks(bound, program, launch, max_reports) if hazards else None
        watchers = _Watchers(tallies, tracer, checks)
        budget = Budget.from_now(instruction_limit, time_limit)
        views = MapViews(bound.memory)
        total = 0

        def run_batch(numbers: np.ndarray) -> int:
            """How many warp instructions these clusters took; frees their state."""
            early = visibility == "early"
            memory = bound.memory
            batch = Batch(translated.loaded, numbers, launch, memory, views, early)
            observers = watchers.of(batch, translated)
            return Runner(translated, batch, schedule, picker, budget, observers).run()

        for first in range(0, clusters, together):
            if progress is not None:
                progress(first * launch.ranks, clusters * launch.ranks)
            total += run_batch(np.arange(first, min(first + together, clusters)))
        if progress is not None:
            progress(clusters * launch.ranks, clusters * launch.ranks)
        seconds = budget.spent()
        bound.copy_back()
    if tracer is not None:
        tracer.write()
    found = () if checks is None else checks.reports.all()
    printed = translated.loaded.printed.all()
    counted = tallies.result() if tallies else None
    noted = () if checks is None else checks.reports.notes()
    return Result(found, counted, seconds, total, printed, noted)


def prepare(ptx: str, kernel: str | None = None) -> None:
    """Translates `kernel` (None: the only one) of a PTX module, and runs nothing.

    Raises `EmulationError` for PTX that `emulate` would not start.
    """
    module = _read(ptx)
    code = _choose(module, kernel)
    check_kernel(module, code)
    program = link(module, code)
    zeros = [bytes(parameter.size) for parameter in code.parameters]
    others = [v for v in module.variables.values() if v.extern and v.space != "shared"]
    given = {v.name: np.zeros(v.size, np.uint8) for v in others}
    with np.errstate(all="ignore"):
        bound = bind(program, module, zeros, given, cooperative=False)
        _translated(program, module, bound, 0, LANES)


@dataclass(frozen=True)
class _Watchers:
    """Who watches a run: counters, a trace, checks for races."""

    tallies: CounterSet | None
    tracer: Tracer | None
    checks: GlobalShadow | None

    def of(self, batch: Batch, kernel: TranslatedKernel) -> list[Observer]:
        """Those who watch `batch`, whose accesses are checked from here on."""
        if self.checks is not None:
            _watch(batch, self.checks, kernel)
        follows = self.tracer is not None and self.tracer.follows(batch)
        watching = (self.tallies, self.tracer if follows else None)
        return [one for one in watching if one is not None]


def _checks(bound: Bound, program: Program, launch: Shape, most: int) -> GlobalShadow:
    """The check for races on global memory, with up to `most` reports of all memory."""
    reports = Reports(most, {ins.line: ins for ins in program.code})
    size = bound.memory.data.size
    return GlobalShadow(size, reports, launch)


def _translated(
    program: Program, module: Module, bound: Bound, dynamic: int, lanes: int
) -> TranslatedKernel:
    """The kernel with its memory laid out, for so many lanes at once."""
    limits.INSTRUCTIONS.check(
        len(program.code), f"kernel {program.kernel.name}", EmulationError
    )
    placed = bound.globals
    memory_map = map_memory(program, module, dynamic, bound.parameter_bytes, placed)
    if memory_map.local_size > MAX_LOCAL:
        raise EmulationError(
            f"kernel {program.kernel.name} has {memory_map.local_size} bytes of local "
            f"memory; a thread may have at most {MAX_LOCAL}"
        )
    size = memory_map.local_size * lanes
    limits.MEMORY.check(size, "local memory of all threads", EmulationError)
    translated = TranslatedKernel(program, memory_map, dynamic)
    translated.check(module.target)
    return translated


def _watch(batch: Batch, checks: GlobalShadow, kernel: TranslatedKernel) -> None:
    """Check the accesses of the batch for races."""
    reports, clocks, names = checks.reports, batch.clocks, batch.names
    checks.warps = checks.engines = None
    if kernel.has_engines:
        engines = EngineShadow(checks.size, clocks, reports, names)
        checks.warps = checks.engines = engines
        if kernel.has_flags and checks.proxies is None:
            checks.proxies = ProxyMarks(checks.size)
    elif batch.warps > 1:
        checks.warps = WarpShadow(checks.size, clocks, reports, names)
    batch.global_shadow = checks
    size = batch.shared.size
    batch.shadow = shadow = ClusterShadow(size, kernel.granule, clocks, reports, names)
    if kernel.has_flags:
        sizes = {"shared": size, "global": checks.size}
        batch.releases = Releases(batch, clocks, sizes, shadow.widen)
    batch.warpgroup_watcher = WarpgroupReads(shadow, reports, names)


def _read(ptx: str) -> Module:
    """The module; the limit is that of now, also for a text that was read before."""
    if isinstance(ptx, str):
        limits.PTX.check(len(ptx), "the PTX text", EmulationError)
        return _parsed(ptx)
    return parse_ptx(ptx)


@lru_cache(maxsize=_KEPT_MODULES)
def _parsed(ptx: str) -> Module:
    """The module; nothing changes one that has been read."""
    return parse_ptx(ptx)


def _choose(module: Module, name: str | None) -> PtxKernel:
    names = list(module.kernels)
    if name is None:
        if len(names) != 1:
            raise EmulationError(
                f"expected a module with one kernel, it has {len(names)}: "
                f"{', '.join(names) or 'none'}"
            )
        name = names[0]
    if name not in module.kernels:
        raise EmulationError(
            f"there is no kernel {name}; the module has {', '.join(names) or 'none'}"
        )
    return module.kernels[name]
