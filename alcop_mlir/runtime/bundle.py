"""Stored kernels: a directory or .zip with a manifest, PTX and optional cubins.

    manifest.json     what the package `manifest` describes, with a hash of each file
    NAME.ptx          the PTX of module NAME, which holds the kernels of a function
    NAME.cubin        the same, assembled for the target

The same bundle gives the same bytes, and is written whole or not at all. Loading checks
everything: a bundle that loads can be launched.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from alcop_mlir import codec, files
from alcop_mlir.errors import ConfigError
from alcop_mlir.manifest.bundles import SCHEMA, Manifest, Module, StoredFile
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.runtime import manifest_check
from alcop_mlir.target import Target, find_target

MANIFEST = "manifest.json"
MAX_FILE_BYTES = 256 * 2**20  # of one file in a bundle; above it the bundle is damaged
# What reading a broken directory or archive (encrypted: RuntimeError) raises.
_UNREADABLE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
_ARCHIVES = frozenset(
    ".7z .bz2 .gz .lz4 .lzma .rar .tar .tbz .tbz2 .tgz .txz .xz .zip .zst".split()
)
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows


@dataclass(frozen=True)
class Code:
    """The code of a module: PTX text, and the cubin where ptxas was there."""

    ptx: str
    cubin: bytes | None = None


@dataclass(frozen=True)
class Bundle:
    """Compiled functions and their kernels.

    compiler: name and version of what made it
    source_hash: hexadecimal sha256 of what it was made from
    code: by the name of the module
    """

    target: Target
    compiler: str
    source_hash: str
    functions: tuple[Function, ...]
    code: Mapping[str, Code]

    def code_of(self, kernel: Kernel) -> Code:
        """The code of the module that holds `kernel`."""
        return self.code[kernel.module]

    def function(self, name: str | None = None) -> Function:
        """The function called `name`, or the only one; ConfigError if there is none."""
        names = ", ".join(function.name for function in self.functions) or "none"
        found = [one for one in self.functions if name in (None, one.name)]
        if name is None and len(found) != 1:
            raise ConfigError(f"which function? the bundle has {names}")
        if not found:
            raise ConfigError(f"the bundle has no function '{name}', it has {names}")
        return found[0]


def save(bundle: Bundle, path: str | Path) -> None:
    """Write `bundle` to the directory `path`, or to the archive `path` if it is a .zip.

    An existing bundle is replaced. Raises ConfigError where `path` is something else,
    or cannot be written.
    """
    check_path(path)
    path = Path(path).absolute()
    contents = _files(bundle)
    if path.suffix == ".zip":
        files.write_whole(path, _zipped(contents))
        return
    try:
        _save_directory(contents, path)
    except OSError as error:
        raise ConfigError(
            f"cannot write '{path}': {error.strerror or error}"
        ) from error


def check_path(path: str | Path) -> None:
    """Raise ConfigError if `save` would refuse `path`, before any compiling."""
    path = Path(path)
    if path.suffix.lower() in _ARCHIVES and path.suffix != ".zip":
        raise ConfigError(
            f"'{path}': a bundle is a directory or a .zip, no {path.suffix} archive"
        )
    if path.suffix == ".zip" and path.is_dir():
        raise ConfigError(f"'{path}' is a directory, expected a file")
    if path.suffix != ".zip" and path.exists() and not _may_replace(path):
        raise ConfigError(
            f"'{path}' exists and is not a bundle: give another name, or one ending in "
            ".zip"
        )
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"cannot write '{path}': no directory '{path.parent}'")


def load(path: str | Path) -> Bundle:
    """The bundle at `path`; ConfigError where there is none or it is damaged."""
    path = Path(path)
    if not path.exists():
        raise ConfigError(f"no such file or directory: '{path}'")
    try:
        return _from_contents(_contents(path))
    except (*_UNREADABLE, ConfigError) as error:
        raise ConfigError(f"damaged bundle '{path}': {error}") from error


def is_bundle(path: str | Path) -> bool:
    """Whether `path` is meant as a bundle: a directory, or named .zip."""
    return Path(path).is_dir() or Path(path).suffix == ".zip"


def _files(bundle: Bundle) -> dict[str, bytes]:
    """What is stored, by name; ConfigError if no load would take it."""
    contents: dict[str, bytes] = {}
    for name, code in sorted(bundle.code.items()):
        contents[f"{name}.ptx"] = code.ptx.encode()
        if code.cubin is not None:
            contents[f"{name}.cubin"] = code.cubin
    stored = {name: StoredFile(name, _hash(data)) for name, data in contents.items()}
    manifest = Manifest(
        compiler=bundle.compiler,
        source_sha256=bundle.source_hash,
        target=bundle.target.name,
        modules=tuple(
            Module(name, stored[f"{name}.ptx"], stored.get(f"{name}.cubin"))
            for name in sorted(bundle.code)
        ),
        functions=bundle.functions,
    )
    try:
        manifest_check.check(manifest)
    except ConfigError as error:
        raise ConfigError(f"the bundle cannot be stored: {error}") from None
    text = json.dumps(codec.encode(manifest), indent=1, sort_keys=True) + "\n"
    return {MANIFEST: text.encode(), **contents}


def _zipped(contents: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    # Stored, not deflated: zlib's bytes differ from version to version.
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _ZIP_TIME)
            entry.create_system = 3  # Unix, on every system
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return data.getvalue()


def _save_directory(contents: dict[str, bytes], path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    replaced = path.with_name(f"{temporary.name}.old")
    try:
        temporary.mkdir()
        for name, data in contents.items():
            (temporary / name).write_bytes(data)
        if path.exists():
            path.rename(replaced)
        temporary.rename(path)
    finally:
        if replaced.exists() and not path.exists():
            replaced.rename(path)
        for leftover in (temporary, replaced):
            shutil.rmtree(leftover, ignore_errors=True)


def _may_replace(path: Path) -> bool:
    """Whether replacing `path` would lose nothing but a bundle."""
    return path.is_dir() and all(_is_part(item.name) for item in path.iterdir())


def _is_part(name: str) -> bool:
    """Whether files of that name belong to a bundle."""
    return name == MANIFEST or name.endswith((".ptx", ".cubin"))


def _contents(path: Path) -> dict[str, bytes]:
    """The files of a bundle by name; ConfigError where one is absurdly large."""
    if path.is_dir():
        items = [item for item in path.iterdir() if _is_part(item.name)]
        for item in items:
            _check_size(item.name, item.stat().st_size)
        return {item.name: item.read_bytes() for item in items}
    with zipfile.ZipFile(path) as archive:
        entries = [one for one in archive.infolist() if _is_part(one.filename)]
        for entry in entries:
            _check_size(entry.filename, entry.file_size)
        return {entry.filename: archive.read(entry) for entry in entries}


def _check_size(name: str, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise ConfigError(f"{name} is larger than {MAX_FILE_BYTES} bytes")


def _from_contents(contents: Mapping[str, bytes]) -> Bundle:
    if MANIFEST not in contents:
        raise ConfigError(f"no {MANIFEST}")
    read = _manifest(contents[MANIFEST])
    return Bundle(
        target=find_target(read.target),
        compiler=read.compiler,
        source_hash=read.source_sha256,
        functions=read.functions,
        code={module.name: _code(contents, module) for module in read.modules},
    )


def _manifest(data: bytes) -> Manifest:
    try:
        value = codec.parse(data, MAX_FILE_BYTES)
    except ConfigError as error:
        raise ConfigError(f"{MANIFEST}: {error}") from None
    schema = codec.schema_of(value, "manifest")
    if schema != SCHEMA:
        raise ConfigError(
            f"schema is {schema}, this version reads {SCHEMA}: compile it again"
        )
    read = codec.decode(Manifest, value)
    manifest_check.check(read)
    return read


def _code(contents: Mapping[str, bytes], module: Module) -> Code:
    try:
        ptx = _checked(contents, module.ptx).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{module.ptx.name}: no UTF-8 text") from None
    return Code(ptx, None if module.cubin is None else _checked(contents, module.cubin))


def _checked(contents: Mapping[str, bytes], file: StoredFile) -> bytes:
    if file.name not in contents:
        raise ConfigError(f"no {file.name}")
    if _hash(contents[file.name]) != file.sha256:
        raise ConfigError(f"{file.name} is not what the manifest's sha256 says")
    return contents[file.name]


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
