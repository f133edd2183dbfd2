"""A file of compiled candidates: made where the compiler is, measured at the GPU.

candidates.json    schema, problem, target, compiler, and a schedule for each file
0000.zip, ...      a bundle each, as the runtime stores it
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alcop_mlir import files
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning.problem import Problem

SCHEMA = 1
_MANIFEST = "candidates.json"
_UNREADABLE = (KeyError, EOFError, UnicodeDecodeError, RuntimeError, zipfile.BadZipFile)
_MEMBERS = ("problem", "target", "compiler", "schedules")


@dataclass(frozen=True)
class Package:
    """Candidates of one problem, each with its compiled bundle (a .zip file's bytes).

    compiler: version and hash, as records have them
    """

    problem: Problem
    target: Target
    compiler: tuple[str, str]
    candidates: Sequence[tuple[Schedule, bytes]]


def save(package: Package, path: Path) -> None:
    """Write `package` to `path`, whole or not at all; ConfigError where that fails."""
    manifest = {
        "schema": SCHEMA,
        "problem": package.problem.to_record(),
        "target": package.target.name,
        "compiler": list(package.compiler),
        "schedules": [schedule.to_dict() for schedule, _ in package.candidates],
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))
        for number, (_, bundle) in enumerate(package.candidates):
            archive.writestr(_file(number), bundle)
    files.write_whole(path, data.getvalue())


def load(path: Path) -> Package:
    """The package at `path`; ConfigError where it is none, or damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(_MANIFEST))
            return _package(archive, manifest)
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror or error}") from None
    except (*_UNREADABLE, ValueError, TypeError, zlib.error) as error:
        raise ConfigError(f"'{path}' is no file of candidates: {error}") from None


def _package(archive: zipfile.ZipFile, manifest: Any) -> Package:
    if manifest["schema"] != SCHEMA:
        raise ConfigError(f"schema {manifest['schema']}, this version reads {SCHEMA}")
    problem, target, compiler, schedules = (manifest[name] for name in _MEMBERS)
    version, digest = compiler
    return Package(
        Problem.from_record(problem),
        find_target(target),
        (str(version), str(digest)),
        [
            (Schedule.from_dict(schedule), archive.read(_file(number)))
            for number, schedule in enumerate(schedules)
        ],
    )


def _file(number: int) -> str:
    return f"{number:04}.zip"
