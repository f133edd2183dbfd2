"""Compiling the lists into a bundle: in several processes, only what has changed.

Compiled kernels and refusals are kept in a folder, under a name made from the kernel
and from the compiler's own sources. An interrupted run continues from there.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from alcop_mlir import __version__
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from bench.gpu import pack
from bench.gpu.lists import Item, all_items
from bench.gpu.pack import Entry
from bench.gpu.spec import Spec

COMPILE_LIMIT = 180.0  # seconds for one kernel
# Parts of the package that do not affect the compiled code.
_NOT_COMPILER = ("runtime/emulator/", "tools/", "tuning/", "runtime/launch.py")
_PACKAGE = Path(__file__).parents[2] / "alcop_mlir"
_REASON_LENGTH = 160


@dataclass(frozen=True)
class Compiled:
    """The stored bundle of a kernel, or why there is none."""

    data: bytes = b""
    error: str = ""


def build(
    path: Path,
    target: str,
    cache_folder: Path,
    jobs: int,
    items: Sequence[Item] | None = None,
) -> int:
    """Compile and write the bundle at `path`; prints progress; returns exit status."""
    items = all_items(target) if items is None else items
    specs = list(dict.fromkeys(item.spec for item in items))
    compiled = compile_all(specs, cache_folder, jobs)
    entries = [_entry(item, compiled[item.spec.key].error) for item in items]
    about = {
        "target": target,
        "compiler": f"alcop_mlir {__version__}",
        "compiler_hash": compiler_hash(),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    kernels = {key: one.data for key, one in compiled.items() if one.data}
    size = pack.write(path, about, entries, kernels)
    _print_summary(path, size, entries, kernels)
    return 0 if kernels else 1


def compile_all(
    specs: Sequence[Spec], cache_folder: Path, jobs: int
) -> dict[str, Compiled]:
    """Each kernel by its key: from the folder, else compiled and put there."""
    # The compiler is on machines that build only: see the package's docstring.
    from alcop_mlir.measurement.measuring import Pool

    cache_folder.mkdir(parents=True, exist_ok=True)
    found = {spec.key: _cached(cache_folder, spec) for spec in specs}
    left = [spec for spec in specs if found[spec.key] is None]
    print(f"{len(specs)} kernels, {len(specs) - len(left)} compiled before", flush=True)
    tasks = [
        {"spec": spec.to_json(), "path": str(_stem(cache_folder, spec))}
        for spec in left
    ]
    progress = _Progress(len(left))
    with Pool(compile_one, max(1, min(jobs, len(left))), COMPILE_LIMIT) as pool:
        for outcome in pool.run(tasks) if tasks else ():
            spec = left[outcome.number]
            if outcome.error:
                _keep_error(_stem(cache_folder, spec), outcome.error)
            found[spec.key] = _cached(cache_folder, spec)
            progress.step(spec.key, outcome.error)
    return {
        key: one or Compiled(error="was not compiled") for key, one in found.items()
    }


def compile_one(task: dict[str, Any]) -> str:
    """Compile one kernel into its file; runs in a process of its own.

    Raises AlcopError where the compiler refuses.
    """
    from alcop_mlir.compilation import compiler, inputs
    from alcop_mlir.runtime import bundle as bundles

    spec = Spec.from_json(task["spec"])
    schedule = Schedule.parse(spec.schedule) if spec.schedule else None
    target = find_target(spec.target)
    options = compiler.Options(target, schedule, allow_tf32=spec.allow_tf32)
    made = compiler.compile_source(inputs.read_text(spec.mlir()), options)
    bundles.save(made, f"{task['path']}.zip")
    return spec.key


@cache
def compiler_hash() -> str:
    """The hash of all source files that affect the code compiled from a schedule."""
    return _hash_of(lambda name: not name.startswith(_NOT_COMPILER), (".py", ".txt"))


@cache
def model_hash() -> str:
    """The hash of the sources that choose a schedule where none is given."""
    return _hash_of(lambda name: name.startswith("tuning/"), (".py", ".jsonl", ".gz"))


def _hash_of(matters: Callable[[str], bool], suffixes: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for source in sorted(_PACKAGE.rglob("*")):
        name = source.relative_to(_PACKAGE).as_posix()
        if source.suffix in suffixes and matters(name):
            digest.update(name.encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _entry(item: Item, error: str) -> Entry:
    return Entry(
        item.spec,
        item.use,
        item.group,
        item.role,
        item.shapes,
        item.emulate,
        item.rank,
        error,
    )


def _stem(folder: Path, spec: Spec) -> Path:
    made_by = compiler_hash() + ("" if spec.schedule else model_hash())
    return folder / f"{spec.key}-{made_by}"


def _cached(folder: Path, spec: Spec) -> Compiled | None:
    stem = _stem(folder, spec)
    bundle, refusal = Path(f"{stem}.zip"), Path(f"{stem}.json")
    if bundle.exists():
        return Compiled(data=bundle.read_bytes())
    if refusal.exists():
        return Compiled(error=json.loads(refusal.read_text())["error"])
    return None


def _keep_error(stem: Path, error: str) -> None:
    """Store the reason without what is specific to the kernel: reasons are counted."""
    reason = error.splitlines()[0].rsplit("was not compiled to a kernel: ", 1)[-1]
    reason = re.sub(r"^-:\d+:\d+: |schedule '[^']*' ", "", reason)[:_REASON_LENGTH]
    Path(f"{stem}.json").write_text(json.dumps({"error": reason}))


class _Progress:
    """A line per second at most: how many, how long still."""

    def __init__(self, total: int):
        self._total, self._done, self._failed = total, 0, 0
        self._start = self._shown = time.monotonic()

    def step(self, name: str, error: str) -> None:
        """Count one more kernel."""
        self._done += 1
        self._failed += bool(error)
        now = time.monotonic()
        if now - self._shown < 1.0 and self._done < self._total:
            return
        self._shown = now
        left = (now - self._start) / self._done * (self._total - self._done)
        print(
            f"  {self._done} of {self._total}, {self._failed} refused, about "
            f"{left:.0f} s left: {name}",
            flush=True,
        )


def _print_summary(
    path: Path, size: int, entries: Iterable[Entry], kernels: Iterable[str]
) -> None:
    entries = list(entries)
    print(f"{path}: {len(list(kernels))} kernels, {size / 1e6:.1f} MB")
    for use in ("check", "program", "bench", "collect"):
        mine = [entry for entry in entries if entry.use == use]
        left_out = [entry for entry in mine if entry.error]
        print(f"  {use}: {len(mine) - len(left_out)} of {len(mine)} items")
        reasons: dict[tuple[str, str], int] = {}
        for entry in left_out:
            key = (entry.group, entry.error)
            reasons[key] = reasons.get(key, 0) + 1
        for (group, reason), count in sorted(reasons.items(), key=lambda r: -r[1]):
            print(f"    {count:4} left out ({group}): {reason}")
    if not kernels:
        print("error: nothing could be compiled", file=sys.stderr)
