"""What a PTX kernel declares: parameters, thread limits, variables in memory.

Follows PTX ISA "State Spaces, Types, and Variables" and "Performance-Tuning
Directives".
"""

from __future__ import annotations

import re
from typing import NoReturn

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.literals import read_literal
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Float,
    Integer,
    PtxKernel,
    PtxParameter,
    Variable,
)

_VARIABLE = re.compile(
    r"(?P<links>(?:\.(?:visible|extern|weak|common)\s+)*)"
    r"\.(?P<space>shared|local|global|const)\s+"
    r"(?:\.align\s+(?P<align>\d+)\s+)?(?:\.attribute\([^)]*\)\s*)?"
    r"\.(?P<type>\w+)\s+(?P<name>[\w$%]+)\s*(?P<dims>(?:\[\s*\d*\s*\])*)"
    r"(?:\s*=\s*(?P<data>.*))?$",
    re.S,
)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+"
    r"(?:\.ptr\s*(?:\.(?:global|const|shared|local)\s*)?(?:\.align\s+\d+\s+)?)?"
    r"(?:\.align\s+(\d+)\s+)?([\w$%]+)(?:\[(\d+)\])?$"
)
_MAX_PARAMETERS = 32764  # bytes; PTX ISA "Kernel Function Parameters"
_MAX_ALIGN = 2**16
_MAX_SHOWN = 300  # characters
_THREADS = re.compile(r"\.(maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def fail(line: int, why: str) -> NoReturn:
    """EmulationError at that line."""
    if len(why) > _MAX_SHOWN:
        why = f"{why[: _MAX_SHOWN // 2]}...{why[-_MAX_SHOWN // 2 :]}"
    raise EmulationError(f"PTX line {line}: {why}")


def read_parameters(kernel: PtxKernel, text: str, line: int) -> None:
    """The list between the parentheses of an entry, with the offset of each."""
    offset = 0
    for part in text.split(","):
        part = " ".join(part.split())
        if not part:
            continue
        found = _PARAMETER.match(part)
        if found is None or found[2] not in SCALARS:
            fail(line, f"cannot read the parameter `{part}`")
        scalar = SCALARS[found[2]]
        size = scalar.size * int(found[5] or 1)
        align = max(_align(found[1] or "1", line), scalar.size)
        offset = -(-offset // align) * align
        if offset + size > _MAX_PARAMETERS:
            fail(line, f"parameters of more than {_MAX_PARAMETERS} bytes")
        kernel.parameters.append(PtxParameter(found[4], scalar, size, offset))
        offset += size


def read_limits(kernel: PtxKernel, text: str) -> None:
    """The block sizes that the entry allows or requires."""
    for kind, *dims in _THREADS.findall(text):
        x, y, z = (int(d or 1) for d in dims)
        if kind == "reqntid":
            kernel.required_threads = (x, y, z)
        else:
            kernel.max_threads = (x, y, z)


def read_variable(text: str, line: int) -> Variable:
    """A variable in shared, local, global or constant memory."""
    text = " ".join(text.split())
    found = _VARIABLE.match(text)
    if found is None or found["type"] not in SCALARS:
        fail(line, f"cannot read the variable `{text}`")
    scalar = SCALARS[found["type"]]
    dims = re.findall(r"\[\s*(\d*)\s*\]", found["dims"])
    count = 1
    for dim in dims:
        count *= int(dim or 0)
    data = None
    if found["data"] is not None:
        data = _initial_bytes(found["data"], found["type"], line)
    align = _align(found["align"] or str(scalar.size), line)
    size = max(count * scalar.size, len(data or b""))
    extern = ".extern" in found["links"]
    return Variable(found["name"], found["space"], align, size, extern, data)


def _initial_bytes(text: str, type_name: str, line: int) -> bytes:
    dtype = SCALARS[type_name].dtype
    out = bytearray()
    for item in re.findall(r"[^\s,{}]+", text):
        value = read_literal(item)
        if isinstance(value, Integer):
            mask = (1 << (8 * dtype.itemsize)) - 1
            out += (value.value & mask).to_bytes(dtype.itemsize, "little")
        elif isinstance(value, Float):
            out += value.bits.to_bytes(value.size, "little")
        else:
            fail(line, f"cannot read the initial value `{item}`")
    return bytes(out)


def _align(text: str, line: int) -> int:
    align = int(text)
    if align.bit_count() != 1 or align > _MAX_ALIGN:
        fail(line, f"expected .align of a power of two, got {align}")
    return align
