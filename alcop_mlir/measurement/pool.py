"""A search that measures on the workers of a pool, by Dask.distributed.

Nothing of ours is pickled: requests and records are JSON, bundles are bytes. A request
is a task whose name is that of the measurement, and it asks for a resource: see
`pool_workers`. Dask repeats none; what a worker loses is asked for again here.
"""

from __future__ import annotations

import contextlib
import hashlib
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir import codec
from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement import pool_tasks, pool_workers
from alcop_mlir.measurement.journal import Journal, key
from alcop_mlir.measurement.operators import Operator
from alcop_mlir.measurement.pool_address import Address, import_distributed
from alcop_mlir.measurement.pool_tasks import Request
from alcop_mlir.measurement.program_search import Trial
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import gpus, records
from alcop_mlir.tuning.records import Record

START_LIMIT = 120  # seconds until the workers have to be there
CONNECT_LIMIT = 10  # seconds until a scheduler has to answer
_ATTEMPTS = 4  # of one measurement, by workers that end or answer nonsense
_POLL = 1.0  # seconds between two looks at the workers
_MOST_ANSWER = 1 << 20  # bytes

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What all requests of a search have in common."""

    search: str
    target: Target
    device: str
    compiler: tuple[str, str]
    repeat: int
    limit: int

    def request(self, operator: Operator, schedule: Schedule) -> Request:
        """To compile and measure a schedule of the operator."""
        return Request(
            self.search,
            operator.problem,
            schedule,
            self.target.name,
            self.device,
            self.compiler,
            self.repeat,
            self.limit,
            "" if self.device == "simulated" else operator.source,
        )


@contextlib.contextmanager
def connected(address: Address) -> Iterator[Any]:
    """A client of the scheduler at `address`; ConfigError where none answers."""
    distributed = import_distributed()
    try:
        client = distributed.Client(
            address.text,
            security=address.security,
            timeout=CONNECT_LIMIT,
        )
    except (OSError, ValueError, TypeError) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        raise ConfigError(
            f"no scheduler answers at '{address.text}' within {CONNECT_LIMIT} s: {why}"
        ) from None
    with client:
        yield client


@contextlib.contextmanager
def local_cluster(specs: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """A client of a scheduler of its own, with such workers, on this machine."""
    distributed = import_distributed()
    host = {"host": "127.0.0.1", "protocol": "tcp://", "port": 0}
    cluster = distributed.SpecCluster(
        scheduler={
            "cls": distributed.Scheduler,
            "options": {**host, "dashboard_address": "127.0.0.1:0"},
        },
        workers={
            number: {"cls": distributed.Nanny, "options": {"host": "127.0.0.1", **one}}
            for number, one in enumerate(specs)
        },
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def search_name(path: object) -> str:
    """Names all searches that write records to the file at `path` of this machine."""
    return f"{socket.gethostname()}:{path}"


class Workers:
    """Who there is: by address, the resource that each offers."""

    def __init__(self, client: Any, say: Say):
        self._client, self._say = client, say
        self.known: dict[str, str] = {}

    def look(self) -> None:
        """Find out; a line for each that is gone."""
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        now = {
            address: next(iter(one.get("resources") or {}), "")
            for address, one in found.items()
        }
        for address in self.known.keys() - now.keys():
            kind = self.known[address].split(" ")[1:2]
            self._say(f"a worker is gone: {address} ({' '.join(kind)})")
        self.known = now

    def offering(self, resource: str) -> list[str]:
        """The addresses of those that offer it."""
        return [one for one, offered in self.known.items() if offered == resource]

    def gpus(self) -> Counter[str]:
        """How many measure on each GPU, for this version."""
        found = map(pool_workers.gpu_measured, self.known.values())
        return Counter(gpu for gpu in found if gpu)

    def wait_for(self, is_ready: Callable[[], bool], seconds: float) -> bool:
        """Look until something is ready; whether it is."""
        end = time.monotonic() + seconds
        self.look()
        while not is_ready() and time.monotonic() < end:
            time.sleep(0.1)
            self.look()
        return is_ready()


def pick_gpu(workers: Workers, device: str, target: Target, wait: float) -> str:
    """The GPU to measure on, of which there are workers; ConfigError without one."""
    workers.wait_for(lambda: bool(workers.gpus()), wait)
    found = workers.gpus()
    simulated = found.pop(pool_workers.SIMULATED, 0)
    if device == "simulated" and simulated:
        return pool_workers.SIMULATED
    wanted = gpus.compiled_for(target)
    if device != "simulated" and len(found) == 1:
        return next(iter(found))
    if device != "simulated" and wanted in found:
        return wanted
    others = sum(map(pool_workers.is_other_version, workers.known.values()))
    offered = [f"{count} of {gpu}" for gpu, count in found.items()]
    offered += [f"{simulated} of the simulated device"] * bool(simulated)
    offered += [f"{others} of another version"] * bool(others)
    what = "the simulated device" if device == "simulated" else wanted
    raise ConfigError(
        f"no worker of the pool measures on {what}; there are "
        f"{', '.join(offered) or 'none'}: ALCOP_GPU chooses, `alcop-tune worker` starts"
    )


class PoolMeasurer:
    """Measures on all workers that offer a resource, as many at once as there are."""

    def __init__(
        self,
        client: Any,
        workers: Workers,
        asked: Asked,
        gpu: str,
        operators: Sequence[Operator],
        say: Say,
    ):
        self._client, self._workers, self._asked = client, workers, asked
        self._resource, self._gpu = pool_workers.measures(gpu), gpu
        self._operators, self._say = operators, say
        self._running: dict[Any, tuple[int, Schedule]] = {}
        self._attempts: Counter[tuple[int, Schedule]] = Counter()
        self._heard = time.monotonic()

    def wants_more(self) -> bool:
        """Each worker has one to do, and one that comes next."""
        slots = max(1, len(self._workers.offering(self._resource)))
        return len(self._running) < 2 * slots

    def start(self, number: int, schedules: Sequence[Schedule]) -> None:
        """Have the schedules of an operator compiled and measured."""
        for schedule in schedules:
            self._submit(number, schedule)

    def finished(self) -> Iterator[Trial]:
        """Those that have ended; waits for one."""
        answered = False
        while True:
            done = [one for one in self._running if one.done()]
            for future in done:
                number, schedule = self._running.pop(future)
                trial = self._trial(future, number, schedule)
                if trial is not None:
                    self._heard, answered = time.monotonic(), True
                    yield trial
            if not self._running or (answered and self.wants_more()):
                return
            if not done:
                self._wait()

    def collect(self, journal: Journal) -> int:
        """Add what workers measured for an earlier search, and it did not record.

        Each is asked once it is free: what it still measures is in its answer. Then the
        process that measures is there, too.
        """
        known = len(journal.refresh())
        distributed = import_distributed()
        asked = [
            self._client.submit(
                pool_tasks.begin,
                self._asked.search,
                self._asked.device,
                self._asked.limit,
                workers=[address],
                allow_other_workers=False,
                resources={self._resource: 1},
                retries=0,
                pure=False,
            )
            for address in self._workers.offering(self._resource)
        ]
        if asked:
            with contextlib.suppress(TimeoutError):
                distributed.wait(asked, timeout=self._asked.limit + START_LIMIT)
        for future in asked:
            if future.status == "finished":
                log = records.parse(future.result().encode(), "a worker's journal")
                for record in log.records:
                    journal.append(record)
        return len(journal.refresh()) - known

    def forget(self) -> None:
        """All is recorded: workers need not keep it. What fails does no harm."""
        sent = [
            self._client.submit(
                pool_tasks.forget, self._asked.search, workers=[one], pure=False
            )
            for one in self._workers.offering(self._resource)
        ]
        if sent:
            with contextlib.suppress(TimeoutError):
                import_distributed().wait(sent, timeout=CONNECT_LIMIT)

    def _submit(self, number: int, schedule: Schedule) -> None:
        attempt = self._attempts[number, schedule]
        text = self._asked.request(self._operators[number], schedule).text
        name = f"{hashlib.sha256(text.encode()).hexdigest()[:24]}-{attempt}"
        bundle: Any = ""
        if self._asked.device != "simulated":
            bundle = self._client.submit(
                pool_tasks.compile_bundle,
                text,
                key=f"compile-{name}",
                resources={pool_workers.compiles(): 1},
                retries=0,
            )
        future = self._client.submit(
            pool_tasks.measure,
            text,
            bundle,
            key=f"measure-{name}",
            resources={self._resource: 1},
            retries=0,
        )
        self._running[future] = number, schedule

    def _trial(self, future: Any, number: int, schedule: Schedule) -> Trial | None:
        """The end of a measurement; None where it is asked for once more."""
        if future.status == "cancelled":
            raise ConfigError(
                "the pool's scheduler is gone: what was measured is recorded, the same "
                "command goes on"
            )
        try:
            record = self._record(future, number, schedule)
        except _Nonsense as error:
            self._attempts[number, schedule] += 1
            if self._attempts[number, schedule] < _ATTEMPTS:
                self._say(f"'{schedule}' is measured once more: {error}")
                self._submit(number, schedule)
                return None
            self._say(f"'{schedule}' is left out: {error}")
            return Trial(number, schedule, None)
        return Trial(number, schedule, record)

    def _record(self, future: Any, number: int, schedule: Schedule) -> Record:
        """What a worker answered; _Nonsense where that cannot be."""
        if future.status == "error":
            error = future.exception()
            raise _Nonsense(f"{type(error).__name__}: {error}".splitlines()[0][:160])
        answer = future.result()
        if not isinstance(answer, str):
            raise _Nonsense(f"a worker answered {type(answer).__name__}, not a record")
        try:
            record = records.from_json(codec.parse(answer.encode(), _MOST_ANSWER))
        except ConfigError as error:
            raise _Nonsense(f"a worker answered no record: {error}") from None
        self._check(record, self._operators[number], schedule)
        return record

    def _check(self, record: Record, operator: Operator, schedule: Schedule) -> None:
        """_Nonsense where it is of something else, or no GPU can be so fast."""
        asked, setting = self._asked, record.setting
        problem, _, _ = key(record)
        if (problem, record.schedule) != (operator.problem.recorded, schedule):
            raise _Nonsense("a worker answered a record of something else")
        found = setting.target, setting.device, setting.gpu
        if found != (asked.target.name, asked.device, self._gpu):
            raise _Nonsense(f"a worker answered a record of {' '.join(found)}")
        least = gpus.least_seconds(operator.problem, asked.target, self._gpu)
        if record.seconds is not None and record.seconds < least:
            raise _Nonsense(
                f"a worker answered {record.seconds:.3g} s, impossibly fast"
            )

    def _wait(self) -> None:
        """For an answer, or a second; ConfigError where none comes for too long."""
        with contextlib.suppress(TimeoutError):
            import_distributed().wait(
                [*self._running], timeout=_POLL, return_when="FIRST_COMPLETED"
            )
        self._workers.look()
        silence = time.monotonic() - self._heard
        if silence > 3 * self._asked.limit + START_LIMIT:
            raise ConfigError(
                f"no worker has answered for {silence:.0f} s: what was measured is "
                "recorded, the same command goes on"
            )


class _Nonsense(Exception):
    """What a worker answered is no record of what was asked for."""
