"""A stored bundle: its functions, and the files that hold code and data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from alcop_mlir.codec import Written
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.ranges import FileName, Identifier, Sha256

SCHEMA = 2


@dataclass(frozen=True)
class StoredFile:
    """A file of the bundle, and the hash of its contents, in hexadecimal."""

    name: FileName
    sha256: Sha256


@dataclass(frozen=True)
class Module:
    """The code of some kernels: PTX, and a cubin where ptxas was there."""

    name: Identifier
    ptx: StoredFile
    cubin: StoredFile | None = None


@dataclass(frozen=True)
class Manifest:
    """All of a bundle but the contents of its files.

    compiler:      name and version of what made it
    source_sha256: of what it was made from, in hexadecimal
    target:        by name
    data:          files with the contents of constants
    """

    compiler: str
    source_sha256: str
    target: str
    modules: tuple[Module, ...]
    functions: tuple[Function, ...]
    data: tuple[StoredFile, ...] = ()
    schema: Annotated[int, Written] = SCHEMA
