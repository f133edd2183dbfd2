"""A file of compiled candidates: made where the compiler is, measured at the GPU.

candidates.json    schema, problem, target, compiler, and a schedule for each file
0000.zip, ...      a bundle each, as the runtime stores it
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from alcop_mlir import archives, codec, files, limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning.problem import Problem, StoredProblem

SCHEMA = 1
_MANIFEST = "candidates.json"


@dataclass(frozen=True)
class Package:
    """Candidates of one problem, each with its compiled bundle (a .zip file's bytes).

    compiler: version and hash, as records have them
    """

    problem: Problem
    target: Target
    compiler: tuple[str, str]
    candidates: Sequence[tuple[Schedule, bytes]]


@dataclass(frozen=True)
class _Manifest:
    schema: int
    problem: StoredProblem
    target: str
    compiler: tuple[str, str]
    schedules: tuple[Schedule, ...]


def save(package: Package, path: Path) -> None:
    """Write `package` to `path`, whole or not at all; ConfigError where that fails."""
    manifest = _Manifest(
        SCHEMA,
        package.problem.stored,
        package.target.name,
        package.compiler,
        tuple(schedule for schedule, _ in package.candidates),
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, json.dumps(codec.encode(manifest), indent=1))
        for number, (_, bundle) in enumerate(package.candidates):
            archive.writestr(_file(number), bundle)
    files.write_whole(path, data.getvalue())


def load(path: Path) -> Package:
    """The package at `path`; ConfigError where it is none, or damaged."""
    data = files.read(path, limits.BUNDLE)
    try:
        with archives.opened(io.BytesIO(data)) as archive:
            return _package(
                archives.reader(lambda name: archives.member(archive, name))
            )
    except ConfigError as error:
        raise ConfigError(
            f"{files.named(path)} is no file of candidates: {error}"
        ) from None


def _package(read: archives.Read) -> Package:
    value = codec.parse(read(_MANIFEST), limits.JSON.most)
    schema = codec.schema_of(value)
    if schema != SCHEMA:
        raise ConfigError(f"schema {schema}, this version reads {SCHEMA}")
    manifest = codec.decode(_Manifest, value)
    return Package(
        manifest.problem.problem,
        find_target(manifest.target),
        manifest.compiler,
        [
            (schedule, read(_file(number)))
            for number, schedule in enumerate(manifest.schedules)
        ],
    )


def _file(number: int) -> str:
    return f"{number:04}.zip"
