"""A bundle of bundles: one .zip with many compiled kernels and what they are for.

    index.json     schema, when and by what it was made, the kernels, the items
    KEY.zip        the bundle of one kernel, as alcop_mlir.runtime.bundle writes it

Reading checks the index at once, and each kernel when it is asked for: a damaged
kernel is a row that fails, not the end of the run.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.runtime import bundle as bundles
from alcop_mlir.runtime.bundle import Bundle
from bench.gpu.spec import Shape, Spec, as_shape

SCHEMA = 1
INDEX = "index.json"
MOST_BYTES = 40 * 10**6  # of the whole file: it has to travel
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same kernels give the same bytes


@dataclass(frozen=True)
class Entry:
    """One use of a kernel that was compiled, or why it was not; see lists.Item."""

    spec: Spec
    use: str
    group: str
    role: str
    shapes: tuple[Shape, ...]
    emulate: bool
    rank: int
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        return {**vars(self), "spec": self.spec.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Entry:
        """What `to_json` gave; ConfigError where it is something else."""
        try:
            members = dict(value)
            spec = Spec.from_json(members.pop("spec"))
            shapes = tuple(as_shape(shape) for shape in members.pop("shapes"))
            return cls(spec=spec, shapes=shapes, **members)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"an item of the bundle's index: {error}") from error


@dataclass(frozen=True)
class Kit:
    """A file of kernels that is open for reading.

    compiler_hash: of the compiler's sources, to distinguish times of another compiler
    """

    path: Path
    target: str
    compiler: str
    compiler_hash: str
    created: str
    entries: tuple[Entry, ...]
    digests: Mapping[str, str]

    def of(self, use: str) -> list[Entry]:
        """What was compiled for `use`, what matters most first."""
        found = [e for e in self.entries if e.use == use and not e.error]
        return sorted(found, key=lambda entry: entry.rank)

    def skipped(self, use: str) -> dict[str, int]:
        """Why items of `use` are not in the bundle, and how many each."""
        reasons: dict[str, int] = {}
        for entry in self.entries:
            if entry.use == use and entry.error:
                reasons[entry.error] = reasons.get(entry.error, 0) + 1
        return reasons

    def load(self, spec: Spec) -> Bundle:
        """The bundle of one kernel; ConfigError where it is missing or damaged."""
        name = f"{spec.key}.zip"
        data = _member(self.path, name)
        if hashlib.sha256(data).hexdigest() != self.digests.get(spec.key):
            raise ConfigError(f"{name} is not what the index's sha256 says")
        with tempfile.TemporaryDirectory() as folder:
            inner = Path(folder, name)
            inner.write_bytes(data)
            return bundles.load(inner)


def write(
    path: Path,
    about: Mapping[str, str],
    entries: Iterable[Entry],
    kernels: Mapping[str, bytes],
) -> int:
    """Write the file whole; returns its bytes. ConfigError where that is too large.

    about: `target`, `compiler`, `compiler_hash`, `created`
    kernels: stored bundles by key
    """
    digests = {key: hashlib.sha256(data).hexdigest() for key, data in kernels.items()}
    index = {
        "schema": SCHEMA,
        **about,
        "kernels": digests,
        "items": [entry.to_json() for entry in entries],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, True, 9) as archive:
            _add(archive, INDEX, json.dumps(index, sort_keys=True).encode())
            for key, data in sorted(kernels.items()):
                _add(archive, f"{key}.zip", data)
        size = temporary.stat().st_size
        if size > MOST_BYTES:
            raise ConfigError(
                f"the bundle has {size} bytes, at most {MOST_BYTES} can travel: fewer "
                "items in bench/gpu/lists.py"
            )
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return size


def read(path: Path) -> Kit:
    """The index of the file at `path`; ConfigError where there is none."""
    if not path.is_file():
        raise ConfigError(f"no such file: '{path}'; `make gpu-bundle` makes it")
    try:
        index = json.loads(_member(path, INDEX))
        if index["schema"] != SCHEMA:
            raise ConfigError(
                f"schema is {index['schema']}, this version reads {SCHEMA}"
            )
        return Kit(
            path=path,
            target=str(index["target"]),
            compiler=str(index["compiler"]),
            compiler_hash=str(index["compiler_hash"]),
            created=str(index["created"]),
            entries=tuple(Entry.from_json(item) for item in index["items"]),
            digests=dict(index["kernels"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        # ConfigError is a ValueError: the message names the file and what is wrong.
        raise ConfigError(f"damaged bundle '{path}': {error}") from error


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def _member(path: Path, name: str) -> bytes:
    """The contents of one file of the archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(name)
            limits.BUNDLE.check(entry.file_size, name)
            return archive.read(entry)
    except KeyError:
        raise ConfigError(f"no {name} in '{path}'") from None
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise ConfigError(f"cannot read {name}: {error}") from error
