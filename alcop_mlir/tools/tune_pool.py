"""alcop-tune --pool: the search on many GPUs; alcop-tune worker: what they run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import alcop_mlir
from alcop_mlir import knobs
from alcop_mlir.errors import ConfigError, check_known
from alcop_mlir.measurement import devices, pool, pool_address, pool_workers
from alcop_mlir.measurement.journal import Journal
from alcop_mlir.measurement.operators import Program
from alcop_mlir.measurement.pool import Asked, PoolMeasurer, Workers
from alcop_mlir.measurement.pool_address import Address
from alcop_mlir.target import DEFAULT_TARGET, TARGETS, Target, find_target
from alcop_mlir.tools import command_line, tune_program
from alcop_mlir.tools.command_line import is_installed
from alcop_mlir.tools.tune_options import LOCAL
from alcop_mlir.tuning import models
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Budget, Trials
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.space import Space

FindProgram = Callable[[Target], Program]
Say = Callable[..., None]


def serve(given: Any) -> int:
    """Be workers of a pool until Ctrl-C."""
    address = _address(given)
    device = devices.pick(given.device)
    if device == "simulated" != given.device:
        raise ConfigError("no GPU is found to measure on; --device simulated has none")
    chosen = pool_workers.specs(device, given.simulated_devices, given.workers)
    with pool.connected(address):
        pass  # there is a scheduler that answers
    names = [next(iter(one["resources"])) for one in chosen]
    measuring = sum(bool(pool_workers.gpu_measured(name)) for name in names)
    print(
        f"{measuring} measuring and {len(names) - measuring} compiling workers "
        f"({device}) for {address.text}; Ctrl-C ends them",
        flush=True,
    )
    pool_workers.serve(address, chosen)
    return 0


def tune(
    given: Any, find_program: FindProgram, space: Space, budget: Budget, say: Say
) -> int:
    """Search on a pool, for one operator or for a whole program."""
    if str(given.pool).endswith(".mlir"):
        raise ConfigError(f"'{given.pool}' is no address; FILE goes first, then --pool")
    device = _device(given)
    target = _target(given, device)
    program = find_program(target)
    say(*program.left_out)
    path = (given.records or models.records_path()).absolute()
    compiler = alcop_mlir.__version__, devices.compiler_hash()
    name, limits = pool.search_name(path), (given.repeat, given.time_limit)
    asked = Asked(name, target, device, compiler, *limits)
    with _client(given, device) as client:
        workers = Workers(client, say)
        wait = pool.START_LIMIT if given.pool == LOCAL else pool.CONNECT_LIMIT
        gpu = pool.pick_gpu(workers, device, target, wait)
        _describe(client, workers, asked, gpu, say)
        measurer = PoolMeasurer(client, workers, asked, gpu, program.operators, say)
        journal = Journal(path)
        if found := measurer.collect(journal):
            say(
                f"{found} measurements of a search that was broken off are recorded now"
            )
        chooser = Chooser(target, path=path, device=device, gpu=gpu)
        say(*chooser.counted.notes, *chooser.counted.left_out, *chooser.learned[1])
        known = _known(journal, asked, gpu)
        searches = tune_program.make_searches(given, program, chooser, space, known)
        print(tune_program.title(searches, program.name, chooser, space))
        if chooser.unused():
            print(f"no compile uses what is found: {chooser.unused()}")
        rows = tune_program.run(searches, measurer, budget, journal, gpu)
        command_line.print_table(program.name, [*rows])
        measurer.forget()
    return 0 if any(one.best < math.inf for one in searches) else 1


def _known(journal: Journal, asked: Asked, gpu: str) -> Callable[[Problem], Trials]:
    """What was measured on such a GPU, whatever its driver, by this compiler."""
    digest = asked.compiler[1]
    if asked.device == "simulated":
        digest = devices.simulated_setting(asked.target).compiler_hash
    found = journal.refresh()

    def times(problem: Problem) -> Trials:
        return {
            schedule: record.seconds
            for (one, schedule, setting), record in found.items()
            if one == problem.recorded
            and (setting.target, setting.device) == (asked.target.name, asked.device)
            and (setting.gpu, setting.compiler_hash) == (gpu, digest)
        }

    return times


def _device(given: Any) -> str:
    """That of the workers: a pool elsewhere may have a GPU where here is none."""
    check_known("device", given.device, devices.DEVICES)
    if given.pool != LOCAL:
        return "simulated" if given.device == "simulated" else "cuda"
    return devices.pick(given.device)


def _target(given: Any, device: str) -> Target:
    """The one asked for, else that of the GPU asked for, else the default."""
    if given.target is None and device == "cuda":
        if given.pool == LOCAL:
            return command_line.target(given, device)
        named = (one for one in TARGETS if one.device == knobs.gpu())
        return next(named, find_target(DEFAULT_TARGET))
    return command_line.target(given)


def _address(given: Any) -> Address:
    return pool_address.parse(given.pool, given.pool_tls, given.pool_insecure)


def _client(given: Any, device: str) -> Any:
    """Of the scheduler asked for, or of one on this machine."""
    if given.pool != LOCAL:
        return pool.connected(_address(given))
    chosen = pool_workers.specs(device, given.simulated_devices, given.workers)
    return pool.local_cluster(chosen)


def _describe(client: Any, workers: Workers, asked: Asked, gpu: str, say: Say) -> None:
    """Who measures, who does not, and where to watch them."""
    found = workers.gpus()
    measuring = found.pop(gpu)
    compiling = len(workers.offering(pool_workers.compiles()))
    if asked.device != "simulated" and not compiling:
        raise ConfigError(
            "no worker of the pool compiles as this version does: start one by "
            "`alcop-tune worker`"
        )
    print(f"pool: {measuring} measuring ({gpu}), {compiling} compiling workers")
    for other, count in found.items():
        say(f"{count} worker(s) of {other} are not asked, only those of {gpu}")
    others = sum(map(pool_workers.is_other_version, workers.known.values()))
    if others:
        say(
            f"{others} worker(s) of another version than {asked.compiler[0]}: not asked"
        )
    if is_installed("bokeh"):
        print(f"dashboard: {client.dashboard_link}", flush=True)
