"""Stored kernels: a directory or .zip with a manifest, PTX and optional cubins.

    manifest.json     what the package `manifest` describes, with a hash of each file
    NAME.ptx          the PTX of module NAME, which holds the kernels of a function
    NAME.cubin        the same, assembled for the target
    constant-HASH.bin the contents of constant arrays; equal ones are stored once

In a directory, the names of all files but the manifest hold a part of their hash. In an
archive, code is packed by LZMA (NAME.ptx.xz) where that is shorter than deflate; all
else but constants is deflated. PTX takes a tenth of its size then. The same bundle has
the same bytes (an archive: where zlib and liblzma are), and is written whole or not at
all (`bundle_files`).
Loading checks everything, within limits: a bundle that loads can be launched.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path

from alcop_mlir import codec, files, limits
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Constant
from alcop_mlir.manifest.bundles import (
    OLDER,
    SCHEMA,
    Manifest,
    Module,
    StoredFile,
    upgraded,
)
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.manifest.names import constant_file
from alcop_mlir.runtime import bundle_files, manifest_check
from alcop_mlir.runtime.bundle_files import MANIFEST as MANIFEST
from alcop_mlir.runtime.bundle_files import Read
from alcop_mlir.target import Target, find_target

_ARCHIVES = frozenset(
    ".7z .bz2 .gz .lz4 .lzma .rar .tar .tbz .tbz2 .tgz .txz .xz .zip .zst".split()
)


@frozen
class Code:
    """The code of a module: PTX text, and the cubin where ptxas was there.

    certificates: verdicts on its kernels as JSON, where `alcop-compile --certify` made
    the bundle
    """

    ptx: str
    cubin: bytes | None = None
    certificates: bytes | None = None


@frozen
class Bundle:
    """Compiled functions and their kernels.

    compiler: name and version of what made it
    source_hash: hexadecimal sha256 of what it was made from
    code: by the name of the module
    data: contents of files with constants, by name
    """

    target: Target
    compiler: str
    source_hash: str
    functions: tuple[Function, ...]
    code: Mapping[str, Code]
    data: Mapping[str, bytes] = field(default_factory=dict)

    def code_of(self, kernel: Kernel) -> Code:
        """The code of the module that holds `kernel`."""
        return self.code[kernel.module]

    def contents(self, constant: Constant) -> bytes:
        """The elements of `constant`; ConfigError where the bundle lacks them."""
        if constant.file not in self.data:
            raise ConfigError(
                f"constant '{constant.name}': the bundle has no {constant.file}"
            )
        end = constant.offset + constant.bytes
        return self.data[constant.file][constant.offset : end]

    def function(self, name: str | None = None) -> Function:
        """The function called `name`, or the only one; ConfigError if there is none.

        Those that prepare weights for others do not count, but by their names.
        """
        prepares = {one.prepare.function for one in self.functions if one.prepare}
        called = [one for one in self.functions if one.name not in prepares]
        names = ", ".join(function.name for function in called) or "none"
        found = [one for one in self.functions if one.name == name]
        found = called if name is None else found
        if name is None and len(found) != 1:
            raise ConfigError(f"which function? the bundle has {names}")
        if not found:
            raise ConfigError(f"the bundle has no function '{name}', it has {names}")
        return found[0]


def save(bundle: Bundle, path: str | Path) -> None:
    """Write `bundle` to the directory `path`, or to the archive `path` if it is a .zip.

    An existing bundle is replaced: who reads meanwhile gets the old one or the new one.
    Raises ConfigError where `path` is something else, or cannot be written.
    """
    check_path(path)
    path = Path(path).absolute()
    if path.suffix == ".zip":
        files.write_whole(
            path, bundle_files.zipped(_files(bundle, lambda name, _: name))
        )
        return
    try:
        contents = _files(bundle, bundle_files.hashed_name)
        bundle_files.write_directory(contents, path)
    except OSError as error:
        raise ConfigError(
            f"cannot write {files.named(path)}: {files.reason(error)}"
        ) from error


def check_path(path: str | Path) -> None:
    """Raise ConfigError if `save` would refuse `path`, before any compiling."""
    path = Path(path)
    if path.suffix.lower() in _ARCHIVES and path.suffix != ".zip":
        raise ConfigError(
            f"'{path}': a bundle is a directory or a .zip, no {path.suffix} archive"
        )
    if path.suffix == ".zip" and os.path.isdir(path):
        raise ConfigError(f"'{path}' is a directory, expected a file")
    if path.suffix != ".zip" and os.path.exists(path):
        if not bundle_files.is_replaceable(path):
            raise ConfigError(
                f"'{path}' exists and is not a bundle: give another name, or one "
                "ending in .zip"
            )
    if not os.path.isdir(path.absolute().parent):
        raise ConfigError(
            f"cannot write {files.named(path)}: no directory {files.named(path.parent)}"
        )


def load(path: str | Path) -> Bundle:
    """The bundle at `path`; ConfigError where there is none or it is damaged."""
    path = Path(path)
    if not os.path.exists(path):
        raise ConfigError(f"no such file or directory: {files.named(path)}")
    try:
        return bundle_files.reading(path, _from_files)
    except ConfigError as error:
        raise ConfigError(f"damaged bundle {files.named(path)}: {error}") from None


def is_bundle(path: str | Path) -> bool:
    """Whether `path` is meant as a bundle: a directory, or named .zip."""
    return os.path.isdir(path) or Path(path).suffix == ".zip"


def _files(bundle: Bundle, called: Callable[[str, str], str]) -> dict[str, bytes]:
    """What is stored, by name; ConfigError if no load would take it.

    called: the name of a file, by its plain name and its hash
    """
    contents: dict[str, bytes] = {}
    for name, code in sorted(bundle.code.items()):
        contents[f"{name}.ptx"] = code.ptx.encode()
        if code.cubin is not None:
            contents[f"{name}.cubin"] = code.cubin
        if code.certificates is not None:
            contents[f"{name}.cert"] = code.certificates
    hashes = {name: _hash(data) for name, data in contents.items()}
    stored = {name: StoredFile(called(name, h), h) for name, h in hashes.items()}
    data = {name: (_hash(one), one) for name, one in sorted(bundle.data.items())}
    constants = {constant_file(hashed): one for hashed, one in data.values()}
    manifest = Manifest(
        compiler=bundle.compiler,
        source_sha256=bundle.source_hash,
        target=bundle.target.name,
        modules=tuple(
            Module(
                name,
                stored[f"{name}.ptx"],
                stored.get(f"{name}.cubin"),
                stored.get(f"{name}.cert"),
            )
            for name in sorted(bundle.code)
        ),
        functions=tuple(_renamed(one, data) for one in bundle.functions),
        data=tuple(StoredFile(name, _hash(one)) for name, one in constants.items()),
    )
    try:
        manifest_check.check(manifest)
        manifest_check.check_data(manifest, constants)
    except ConfigError as error:
        raise ConfigError(f"the bundle cannot be stored: {error}") from None
    text = json.dumps(codec.encode(manifest), indent=1, sort_keys=True) + "\n"
    found = {stored[name].name: data for name, data in contents.items()}
    every = {MANIFEST: text.encode(), **found, **constants}
    limits.BUNDLE.check(sum(map(len, every.values())), "the bundle")
    return every


def _renamed(function: Function, data: Mapping[str, tuple[str, bytes]]) -> Function:
    """`function` with the names that files of constants have where they are stored."""
    constants = (
        replace(one, file=constant_file(data[one.file][0])) if one.file in data else one
        for one in function.constants
    )
    return replace(function, constants=tuple(constants))


def _from_files(read: Read) -> Bundle:
    found = _manifest(read(MANIFEST))
    data = {file.name: _checked(read, file) for file in found.data}
    manifest_check.check_data(found, data)
    return Bundle(
        target=find_target(found.target),
        compiler=found.compiler,
        source_hash=found.source_sha256,
        functions=found.functions,
        code={module.name: _code(read, module) for module in found.modules},
        data=data,
    )


def _manifest(data: bytes) -> Manifest:
    try:
        value = codec.parse(data, limits.JSON.most)
    except ConfigError as error:
        raise ConfigError(f"{MANIFEST}: {error}") from None
    schema = codec.schema_of(value, "manifest")
    if schema not in (*OLDER, SCHEMA):
        readable = " and ".join(map(str, (*OLDER, SCHEMA)))
        raise ConfigError(
            f"schema is {schema}, this version reads {readable}: compile it again"
        )
    read = codec.decode(Manifest, upgraded(value, schema))
    manifest_check.check(read)
    return read


def _code(read: Read, module: Module) -> Code:
    try:
        ptx = _checked(read, module.ptx).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{module.ptx.name}: no UTF-8 text") from None
    others = (module.cubin, module.certificates)
    return Code(ptx, *(None if one is None else _checked(read, one) for one in others))


def _checked(read: Read, file: StoredFile) -> bytes:
    data = read(file.name)
    if _hash(data) != file.sha256:
        raise ConfigError(f"{file.name} is not what the manifest's sha256 says")
    return data


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
