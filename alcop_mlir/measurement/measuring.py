"""Work done in other processes, which may crash or hang without harm.

The work is a function of one argument, which the workers import by name. Tasks and
values are pickled on their way.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from alcop_mlir.errors import AlcopError, ConfigError

START_LIMIT = 120.0  # seconds for a worker to import what it needs
_PARENT_POLL = 0.2  # seconds between two looks whether there is a parent
_FAILED_STARTS = 3  # in a row, before giving up

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Outcome:
    """The outcome of the task `number`: its value, or why there is none.

    has_died: whether the process ended by itself, or by somebody else
    """

    number: int
    value: Any = None
    error: str = ""
    has_died: bool = False


class Pool:
    """Worker processes that call `function`, each at most `limit` seconds per task.

        with Pool(function, workers=4, limit=60.0) as pool:
            for outcome in pool.run(tasks): ...

    A worker that takes too long is killed, one that dies is replaced.
    """

    def __init__(self, function: Function, workers: int, limit: float):
        self._function, self._count, self._limit = function, workers, limit
        self._workers: list[_Worker] = []
        self._failed_starts = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers; tasks that they had are lost."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def start(self) -> None:
        """Start all workers and wait until each is ready, or has ended."""
        while len(self._workers) < self._count:
            self._workers.append(_Worker(self._function))
        for worker in list(self._workers):
            if not worker.started and worker.connection.poll(START_LIMIT):
                for _ in self._receive(worker):
                    pass  # it has no task

    def run(self, tasks: Sequence[Any]) -> Iterator[Outcome]:
        """The outcome of each task, in the order in which they finish.

        Raises ConfigError where workers do not start.
        """
        waiting = list(enumerate(tasks))[::-1]
        while len(self._workers) < min(self._count, len(tasks)):
            self._workers.append(_Worker(self._function))
        while waiting or any(worker.task is not None for worker in self._workers):
            for worker in self._workers:
                if waiting and worker.idle:
                    worker.give(*waiting.pop())
            busy = {w.connection: w for w in self._workers if not w.idle}
            for connection in wait(list(busy), timeout=0.1):
                assert isinstance(connection, Connection)
                yield from self._receive(busy[connection])
            for worker in list(self._workers):
                if worker.seconds() > (self._limit if worker.started else START_LIMIT):
                    yield from self._replace(worker, "took too long, and was stopped")

    def _receive(self, worker: _Worker) -> Iterator[Outcome]:
        try:
            value, error = worker.connection.recv()
        except (EOFError, OSError):
            yield from self._replace(worker, worker.last_words(), has_died=True)
            return
        number, worker.task = worker.task, None
        worker.started, self._failed_starts = True, 0
        if number is not None:  # else it says that it is ready
            yield Outcome(number, value, error)

    def _replace(
        self, worker: _Worker, why: str, has_died: bool = False
    ) -> Iterator[Outcome]:
        """Start a new worker for a lost one; the outcome of the lost one's task."""
        worker.kill()
        if not worker.started:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise ConfigError(f"the workers do not start: {why}")
        self._workers[self._workers.index(worker)] = _Worker(self._function)
        if worker.task is not None:
            yield Outcome(worker.task, error=why, has_died=has_died)


class _Worker:
    """One process. `started` is set once it has reported that it is ready."""

    def __init__(self, function: Function):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        handle, name = tempfile.mkstemp(prefix="alcop-worker-", suffix=".txt")
        os.close(handle)
        self._stderr = Path(name)
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, function, name), daemon=True
        )
        self._process.start()
        theirs.close()
        self.started = False
        self.task: int | None = None
        self._since = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it can be given something to do."""
        return self.started and self.task is None

    def seconds(self) -> float:
        """Since it was started, or given its task; 0 while it is idle."""
        return 0.0 if self.idle else time.monotonic() - self._since

    def give(self, number: int, task: Any) -> None:
        """Send it the task `number`."""
        self.task, self._since = number, time.monotonic()
        with contextlib.suppress(OSError):  # it died: `run` will see
            self.connection.send(task)

    def last_words(self) -> str:
        """Why it died: its exit status, and the last line that it wrote."""
        self._process.join(timeout=1.0)
        lines = self._stderr.read_text(errors="replace").strip().splitlines()
        code = self._process.exitcode
        cause = f"exit status {code}"
        if code is not None and code < 0:
            cause = signal.Signals(-code).name
        return f"the process died ({cause})" + (f": {lines[-1]}" if lines else "")

    def kill(self) -> None:
        """End the process and remove what it left."""
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._stderr.unlink(missing_ok=True)


def _end_with(parent: int) -> None:
    """End this process soon after its parent, whatever it does: a GPU is free then."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL)
    os._exit(1)


def _serve(connection: Connection, function: Function, stderr: str) -> None:
    """The worker's side: one task after the other until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    log = os.open(stderr, os.O_WRONLY | os.O_APPEND)
    os.dup2(log, sys.stderr.fileno() if sys.stderr else 2)
    connection.send((None, ""))  # it is ready
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer = function(task), ""
        except AlcopError as error:
            answer = None, str(error)
        connection.send(answer)
