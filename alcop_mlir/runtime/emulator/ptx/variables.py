"""What PTX declares in memory: variables and their initial values.

PTX ISA "State Spaces, Types, and Variables": `.space .align N .attribute(...) .v4 .u8`,
with what comes before the type in any order, then names with their dimensions and
initial values. Braces within each other are taken as one list, as ptxas takes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from alcop_mlir.runtime.emulator.ptx.declarations import fail, read_align
from alcop_mlir.runtime.emulator.ptx.literals import constant_expression, read_literal
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Float, Integer, Reference, Variable

_HEAD = re.compile(
    r"(?P<links>(?:\.(?:visible|extern|weak|common)\s*)*)"
    r"\.(?P<space>shared|local|global|const)\s*"
    r"(?P<how>(?:\.align\s+\d+\s*|\.v[24]\s+"
    r"|\.attribute\s*\((?:[^()]|\([^()]*\))*\)\s*)*)"
    r"\.(?P<type>\w+)\s*(?P<names>.*)",
    re.S,
)
_NAMED = re.compile(
    r"\s*(?P<name>[\w$%]+)\s*(?P<dims>(?:\[\s*\d*\s*\]\s*)*)(?:=\s*(?P<data>.*))?$",
    re.S,
)
_MARK = re.compile(r"[{},]")
_REFERENCE = re.compile(
    r"(?:generic\(\s*)?([A-Za-z_$%][\w$]*)\s*\)?\s*(?:\+\s*(\d+))?$"
)
_POINTER = 8  # bytes of an address
# PTX ISA "Texture Sampler and Surface Types": they have no bytes that could be read.
_OPAQUE = ("texref", "samplerref", "surfref")


def read_variables(text: str, line: int) -> Iterator[Variable]:
    """The variables in shared, local, global or constant memory of one declaration.

    Raises `EmulationError` for one that cannot be read, with `line`.
    """
    text = " ".join(text.split())
    found = _HEAD.match(text)
    if found is None or found["type"] not in (*SCALARS, *_OPAQUE):
        fail(line, f"cannot read the variable `{text}`")
    if found["type"] in _OPAQUE:
        return
    aligns = re.findall(r"\.align\s+(\d+)", found["how"])
    columns = re.findall(r"\.v([24])", found["how"])
    parts = int(columns[-1]) if columns else 1
    scalar = SCALARS[found["type"]]
    align = read_align(aligns[-1] if aligns else str(scalar.size * parts), line)
    for item in _declared(found["names"]):
        named = _NAMED.match(item)
        if named is None:
            fail(line, f"cannot read the variable `{text}`")
        dims = re.findall(r"\[\s*(\d*)\s*\]", named["dims"])
        count = parts
        for dim in dims:
            count *= int(dim or 0)
        data, references = None, ()
        if named["data"] is not None:
            data, references = _initial_bytes(named["data"], scalar, line)
            if "" not in dims and len(data) > count * scalar.size:
                fail(line, f"more initial values than elements: `{text}`")
        size = max(count * scalar.size, len(data or b""))
        is_extern = ".extern" in found["links"]
        yield Variable(
            named["name"], found["space"], align, size, is_extern, data, references
        )


def _declared(text: str) -> Iterator[str]:
    """What stands between commas that are not within braces."""
    start = depth = 0
    for mark in _MARK.finditer(text):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if mark[0] == "," and depth == 0:
            yield text[start : mark.start()]
            start = mark.end()
    yield text[start:]


def _initial_bytes(
    text: str, scalar: Scalar, line: int
) -> tuple[bytes, tuple[Reference, ...]]:
    """The initial bytes, with the addresses of variables and functions among them."""
    size = scalar.dtype.itemsize
    out = bytearray()
    references: list[Reference] = []
    for item in filter(None, map(str.strip, re.split(r"[,{}]", text))):
        value = read_literal(item)
        if value is None:
            number = constant_expression(item)
            value = None if number is None else Integer(number)
        if isinstance(value, Integer):
            mask = (1 << (8 * size)) - 1
            out += (value.value & mask).to_bytes(size, "little")
        elif isinstance(value, Float) and size in (4, 8):
            out += _float_bytes(value, size)
        else:
            match = _REFERENCE.match(item)
            if match is None or size != _POINTER:
                fail(line, f"cannot read the initial value `{item}`")
            place = len(out)
            references.append(Reference(place, size, match[1], int(match[2] or 0)))
            out += bytes(size)
    return bytes(out), tuple(references)


def _float_bytes(value: Float, size: int) -> bytes:
    """Those of a variable of so many bytes, whichever size the number is written in."""
    given = value.bits.to_bytes(value.size, "little")
    number = np.frombuffer(given, f"<f{value.size}")
    return given if value.size == size else number.astype(f"<f{size}").tobytes()
