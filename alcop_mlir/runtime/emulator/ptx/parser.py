"""From PTX text to `syntax.Module`, in one pass of one regular expression.

Follows PTX ISA "Syntax" and "State Spaces, Types, and Variables". Comments, debug
sections and pragmas are dropped; `.loc` and `.file` are kept as the source position of
the instructions that follow. A `.func` that cannot be read is an error only for a
kernel that may reach it, see `program`.
"""

from __future__ import annotations

import re

from alcop_mlir import limits
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.body import Body
from alcop_mlir.runtime.emulator.ptx.declarations import (
    fail,
    read_limits,
    read_parameters,
)
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Module,
    PtxKernel,
)
from alcop_mlir.runtime.emulator.ptx.variables import read_variables

# The subset: ISA versions with cp.async, ldmatrix and mma.sync; Ampere to Hopper.
VERSIONS = ((7, 0), (9, 99))
TARGETS = tuple(f"sm_{n}" for n in (80, 86, 87, 88, 89, 90, 100, 120))

# Text may be hostile: no expression below looks at a character more than a few times.
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.S)
_LONG_NUMBER = re.compile(r"\d{65}")  # of 64 bits there are 64 digits, in binary
_NESTING = re.compile(r"(?:[({!\[]\s*){32}")
_ENTRY = re.compile(r"\.(entry|func)\s+(?:\(([^()]*)\)\s*)?([\w$%]+)\s*(\(|(?=[{.;]))")
_BODY = re.compile(r"[{;]")
_BRACE = re.compile(r"[{}]")


def parse_ptx(text: str) -> Module:
    """Parses a PTX module.

    Raises `EmulationError` for text that is not PTX, an ISA version or a target
    outside the subset, or a statement that cannot be read (with its line).
    """
    if not isinstance(text, str):
        raise EmulationError(f"expected PTX text as a str, got {type(text).__name__}")
    limits.PTX.check(len(text), "the PTX text", EmulationError)
    clean = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    for pattern, what in ((_LONG_NUMBER, "a number"), (_NESTING, "an operand")):
        found = pattern.search(clean)
        if found is not None:
            line = clean.count("\n", 0, found.start()) + 1
            start = "".join(found.group()[:32].split())
            fail(line, f"{what} that is too long: `{start}...`")
    version, target = _header(clean)
    module = Module(version, target, {}, {}, text.split("\n"))
    _read_top(module, clean)
    return module


def _header(text: str) -> tuple[tuple[int, int], str]:
    found = re.search(r"^[ \t]*\.version\s+(\d+)\.(\d+)", text, re.M)
    if found is None:
        raise EmulationError("this is not PTX: no .version directive was found")
    version = (int(found[1]), int(found[2]))
    low, high = VERSIONS
    if not low <= version <= high:
        raise EmulationError(
            f"PTX ISA version {version[0]}.{version[1]} is outside the emulator's "
            f"subset (7.0 to 9.x)"
        )
    found = re.search(r"^[^;{}]*?\.target\s+([\w]+)", text)
    if found is None:
        raise EmulationError("this is not PTX: no .target directive was found")
    target = found[1]
    if target.rstrip("af") not in TARGETS:
        raise EmulationError(
            f"target {target} is outside the emulator's subset ({', '.join(TARGETS)})"
        )
    if re.search(r"^[^;{}]*?\.address_size\s+32", text):
        raise EmulationError("expected .address_size 64, got 32")
    return version, target


def _read_top(module: Module, text: str) -> None:
    """Reads entries and functions with their bodies, then the variables between."""
    spans: list[tuple[int, int]] = []
    files = _files(text)
    line, counted, stop = 1, 0, 0
    for found in _ENTRY.finditer(text):
        if found.start() < stop:
            continue
        line += text.count("\n", counted, found.start())
        counted = found.start()
        kernel = PtxKernel(found[3], line, found[1] == "entry")
        if kernel.is_entry:
            stop = _read_code(kernel, text, found, files)
            module.kernels[kernel.name] = kernel
        else:
            stop = _read_function(module, kernel, text, found, files)
        spans.append((found.start(), stop))
    _read_variables(module, text, spans)


def _read_function(
    module: Module,
    function: PtxKernel,
    text: str,
    found: re.Match[str],
    files: dict[str, str],
) -> int:
    """Adds a function that has a body to the module; returns where it ends."""
    try:
        stop = _read_code(function, text, found, files)
    except EmulationError as error:
        module.functions[function.name] = error
        return _end_of_body(text, found.end())
    if text[stop - 1] == "}":
        module.functions[function.name] = function
    return stop


def _read_code(
    code: PtxKernel, text: str, found: re.Match[str], files: dict[str, str]
) -> int:
    """Reads what follows the name; returns the end of the body, or of a declaration."""
    line, after = code.line, found.end()
    code.results = read_parameters(found[2] or "", line)
    if found[4] == "(":
        close = text.find(")", after)
        if close < 0:
            fail(line, "parameter list without an end")
        code.parameters = read_parameters(text[after:close], line)
        after = close
    start = _BODY.search(text, after)
    if start is None or (start.group() == ";" and code.is_entry):
        fail(line, f"kernel {code.name} has no body")
    if start.group() == ";":
        return start.end()
    read_limits(code, text[after : start.start()])
    first = line + text.count("\n", found.start(), start.start())
    return Body(code, text, files).read(start.end(), first)


def _end_of_body(text: str, position: int) -> int:
    """The end of the function whose body, or `;`, comes next."""
    start = _BODY.search(text, position)
    if start is None or start.group() == ";":
        return len(text) if start is None else start.end()
    depth = 0
    for found in _BRACE.finditer(text, start.start()):
        depth += 1 if found.group() == "{" else -1
        if not depth:
            return found.end()
    return len(text)


def _files(text: str) -> dict[str, str]:
    """The names that `.file` gives to the numbers in `.loc`."""
    return dict(re.findall(r'^[ \t]*\.file\s+(\d+)\s+"([^"]*)"', text, re.M))


def _read_variables(module: Module, text: str, spans: list[tuple[int, int]]) -> None:
    position, line, counted = 0, 1, 0
    for start, stop in [*spans, (len(text), len(text))]:
        outside = text[position : text.rfind(";", position, start) + 1]
        for found in re.finditer(
            r"(?:^|(?<=;))[ \t]*((?:\.(?:visible|extern|weak|common)\s*)*"
            r"\.(?:shared|global|const)\b[^;]*);",
            outside,
            re.M,
        ):
            at = position + found.start(1)
            line += text.count("\n", counted, at)
            counted = at
            for variable in read_variables(found[1], line):
                module.variables[variable.name] = variable
        position = stop
