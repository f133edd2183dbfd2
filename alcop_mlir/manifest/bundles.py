"""A stored bundle: its functions, and the files that hold code and data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from alcop_mlir.codec_forms import Written
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.ranges import FileName, Identifier, Sha256

SCHEMA = 3
OLDER = (2,)  # read as well, see `upgraded`


@frozen
class StoredFile:
    """A file of the bundle, and the hash of its contents, in hexadecimal."""

    name: FileName
    sha256: Sha256


@frozen
class Module:
    """The code of some kernels: PTX, and a cubin where ptxas was there.

    certificates: verdicts on the kernels, and the certificates of what is proven
    """

    name: Identifier
    ptx: StoredFile
    cubin: StoredFile | None = None
    certificates: StoredFile | None = None


@frozen
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


def upgraded(value: Any, schema: int) -> Any:
    """What schema `schema` has as JSON values, as the current one has it.

    In schema 2 a variant is one kernel. What is not as expected stays: it is refused
    where the value is decoded.
    """
    if schema == SCHEMA:
        return value
    for function in _objects(value, "functions"):
        for launch in _objects(function, "launches"):
            for variant in _objects(launch, "variants"):
                if "kernel" in variant:
                    variant["kernels"] = [variant.pop("kernel")]
    return {**value, "schema": SCHEMA}


def _objects(value: dict[str, Any], member: str) -> Iterator[dict[str, Any]]:
    """The objects in a list that is a member of `value`."""
    items = value.get(member)
    if isinstance(items, list):
        yield from (one for one in items if isinstance(one, dict))
