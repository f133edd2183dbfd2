"""The state of the commands that need a GPU: bundle, device, records, time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from bench.gpu import operations
from bench.gpu.device import Device, Pool
from bench.gpu.operations import Loaded
from bench.gpu.pack import Entry, Kit
from bench.gpu.records import SKIPPED, Budget, Recorder
from bench.gpu.spec import Shape, Spec
from bench.gpu.supervise import DeviceLost

_T = TypeVar("_T")


@dataclass
class Session:
    """One run of a command.

    only: a regular expression that rows' keys have to match
    jobs: processes of the emulator; None is as many as the machine has, 0 none
    sanitizer: finds compute-sanitizer, None where there is none
    """

    kit: Kit
    device: Device
    records: Recorder
    budget: Budget
    only: str = ""
    jobs: int | None = None
    sanitizer: Callable[[], str | None] = lambda: None
    pool_size: int | None = None
    _loaded: dict[Spec, Loaded] = field(default_factory=dict)

    @cached_property
    def pool(self) -> Pool:
        """Random numbers for all rows."""
        if self.pool_size is None:
            return Pool(self.device)
        return Pool(self.device, self.pool_size)

    def load(self, spec: Spec) -> Loaded:
        """A kernel of the bundle, read once; ConfigError where it is damaged."""
        if spec not in self._loaded:
            self._loaded[spec] = operations.load(self.kit, spec, self.device)
        return self._loaded[spec]

    @property
    def golden(self) -> Path:
        """The file that keeps the results of the probes."""
        return self.records.path.with_name(f"golden-sm_{self.device.capability}.json")

    def begin(self, command: str, use: str) -> None:
        """Write the first line: what is known before any row."""
        kit = self.kit
        bundle = {
            "target": kit.target,
            "compiler": kit.compiler,
            "hash": kit.compiler_hash,
            "created": kit.created,
        }
        self.records.about(command=command, bundle=bundle, device=self.device.about())
        for one in (use, "program") if use == "check" else (use,):
            for reason, count in kit.skipped(one).items():
                key = f"{SKIPPED} {one} {reason}"
                if self.records.start(SKIPPED, key):
                    self.records.add(SKIPPED, key, use=one, reason=reason, count=count)

    def wants(self, key: str) -> bool:
        """Whether the user asked for rows of this name."""
        return re.search(self.only, key) is not None

    def pairs(self, use: str) -> list[tuple[Entry, Shape]]:
        """Kernels of the bundle and the shapes that they are to run at."""
        return [
            (entry, shape)
            for entry in self.kit.of(use)
            for shape in entry.shapes
            if self.wants(f"{entry.group} {entry.spec.key}")
        ]

    def emulated(
        self, result: Future[_T], most: float, row: dict[str, Any]
    ) -> _T | None:
        """What an emulation gives in `most` seconds or fewer; else None, and the row
        says so.
        """
        try:
            return result.result(timeout=min(most, 5.0 + self.budget.left()))
        except FutureTimeout:
            result.cancel()
            row.update(ok=False, error="the emulator took too long")
            return None

    @contextmanager
    def row(self, kind: str, key: str, **about: Any) -> Iterator[dict[str, Any]]:
        """A row to fill in; written on exit, as failed if the device raises an error.

        `ok` marks success, else `error` gives the reason; a row that is `pending` is
        not written yet.

        Raises DeviceLost where nothing can run afterwards in this process.
        """
        members: dict[str, Any] = dict(about)
        try:
            yield members
        except self.device.failures as error:
            self.records.failed(kind, key, error, **about)
            if self.device.is_lost():
                raise DeviceLost(key) from error
            return
        if members.get("pending"):
            return
        if members.get("ok"):
            self.records.add(kind, key, **members)
        else:
            error = members.pop("error", None) or f"differs: {members}"
            members.pop("ok", None)
            self.records.failed(kind, key, error, **members)
