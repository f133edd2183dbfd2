"""What a PTX kernel declares: parameters, prototypes, thread limits.

Follows PTX ISA "State Spaces, Types, and Variables" and "Performance-Tuning
Directives".
"""

from __future__ import annotations

import re
from typing import NoReturn

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Prototype,
    PtxKernel,
    PtxParameter,
)

_PARAMETER = re.compile(
    r"\.(?P<space>param|reg)\s*(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.(?P<type>\w+)\s*"
    r"(?:\.ptr\s*(?:\.(?:global|const|shared|local)\s*)?(?:\.align\s+\d+\s+)?)?"
    r"(?:\.align\s+\d+\s+)?(?P<name>[\w$%]+)(?:\s*\[\s*(?P<count>\d+)\s*\])?$"
)
_PROTOTYPE = re.compile(r"\.callprototype\s*(?:\(([^()]*)\))?\s*_\s*(?:\(([^()]*)\))?")
MAX_PARAMETERS = 32764  # bytes; PTX ISA "Kernel Function Parameters"
_MAX_ALIGN = 2**16
_MAX_SHOWN = 300  # characters
_MAX_REGISTERS = re.compile(r"\.maxnreg\s+(\d{1,3})\b")
_THREADS = re.compile(r"\.(maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_MAX_CLUSTER = re.compile(r"\.maxclusterrank\s+(\d{1,9})\b")
_CLUSTER = re.compile(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def fail(line: int, why: str) -> NoReturn:
    """EmulationError at that line."""
    if len(why) > _MAX_SHOWN:
        why = f"{why[: _MAX_SHOWN // 2]}...{why[-_MAX_SHOWN // 2 :]}"
    raise EmulationError(f"PTX line {line}: {why}")


def read_parameters(text: str, line: int, start: int = 0) -> list[PtxParameter]:
    """The parameters that a list declares, each with its offset from `start` on."""
    found: list[PtxParameter] = []
    offset = start
    for part in text.split(","):
        part = " ".join(part.split())
        if not part:
            continue
        match = _PARAMETER.match(part)
        if match is None or match["type"] not in SCALARS:
            fail(line, f"cannot read the parameter `{part}`")
        scalar = SCALARS[match["type"]]
        size = scalar.size * int(match["count"] or 1)
        align = max(read_align(match["align"] or "1", line), scalar.size)
        offset = -(-offset // align) * align
        if offset + size - start > MAX_PARAMETERS:
            fail(line, f"parameters of more than {MAX_PARAMETERS} bytes")
        in_register = match["space"] == "reg"
        found.append(PtxParameter(match["name"], scalar, size, offset, in_register))
        offset += size
    return found


def read_prototype(text: str, line: int) -> Prototype:
    """`.callprototype (results) _ (parameters)`."""
    match = _PROTOTYPE.match(text)
    if match is None:
        fail(line, f"cannot read the prototype `{text}`")
    results, parameters = (read_parameters(m or "", line) for m in match.groups())
    return Prototype(tuple(results), tuple(parameters))


def read_limits(kernel: PtxKernel, text: str) -> None:
    """The sizes of blocks and clusters that the entry asks for, and its registers."""
    cluster = _CLUSTER.search(text)
    if cluster is not None:
        x, y, z = (int(size or 1) for size in cluster.groups())
        kernel.required_cluster = (x, y, z)
    kernel.needs_cluster = ".explicitcluster" in text
    most = _MAX_CLUSTER.search(text)
    if most is not None:
        kernel.max_cluster = int(most[1])
    registers = _MAX_REGISTERS.search(text)
    if registers is not None:
        kernel.max_registers = int(registers[1])
    for kind, *dims in _THREADS.findall(text):
        x, y, z = (int(d or 1) for d in dims)
        if kind == "reqntid":
            kernel.required_threads = (x, y, z)
        else:
            kernel.max_threads = (x, y, z)


def read_align(text: str, line: int) -> int:
    """The number of `.align`, a power of two."""
    align = int(text)
    if align.bit_count() != 1 or align > _MAX_ALIGN:
        fail(line, f"expected .align of a power of two, got {align}")
    return align
