"""From PTX text to `syntax.Module`, in one pass of one regular expression.

Follows PTX ISA "Syntax" and "State Spaces, Types, and Variables". Comments, debug
sections and pragmas are dropped; `.loc` and `.file` are kept as the source position of
the instructions that follow. Only what a single kernel needs is read: the bodies of
`.func` are skipped, and a `call` of them is refused later, when it is translated. The
`.param` of a call is read as a register, and a store to it as a move.
"""

from __future__ import annotations

import re

from alcop_mlir import limits
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.declarations import (
    fail,
    read_limits,
    read_parameters,
    read_variable,
)
from alcop_mlir.runtime.emulator.ptx.literals import (
    constant_expression,
    integer,
    is_integer,
    read_literal,
)
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Module,
    Name,
    Negated,
    Operand,
    Pair,
    PtxKernel,
    Vector,
)

# The subset: ISA versions with cp.async, ldmatrix and mma.sync; Ampere to Hopper.
VERSIONS = ((7, 0), (9, 99))
TARGETS = tuple(f"sm_{n}" for n in (80, 86, 87, 88, 89, 90))

# Text may be hostile: no expression below looks at a character more than a few times.
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.S)
_LONG_NUMBER = re.compile(r"\d{65}")  # of 64 bits there are 64 digits, in binary
_NESTING = re.compile(r"(?:[({!\[]\s*){32}")
_STATEMENT = re.compile(
    r"(?P<space>\s*)(?=\S)(?:(?P<loc>\.(?:loc|file)\b[^\n]*)"
    r"|(?P<label>[\w$%]+)\s*:(?!:)"
    r"|(?P<brace>[{}])"
    r"|(?P<text>[^;{}]*(?:\{[^{}]*\}[^;{}]*)*);"
    r"|(?P<bad>\S))"
)
_MAX_SCOPES = 100
_MAX_STATEMENT = 2**14  # characters of an instruction
_CODE = re.compile(r"(?:@\s*(!?)\s*([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
_SPLIT = re.compile(r"\s*((?:[^,\[{(]|\[[^\]]*\]|\{[^}]*\}|\([^)]*\))+)\s*(?:,|$)")
_ADDRESS = re.compile(r"\[\s*([%$\w.]+)\s*(?:([+-])\s*(-?)\s*(\w+))?\s*\]$")
_NAME = re.compile(r"[%$_A-Za-z][\w$%]*(?:\.[xyzw])?$")
_DECLARATION = re.compile(r"\.(?:reg|param)\s*\.(\w+)\s+(.*)", re.S)
_REGISTER = re.compile(r"\s*([%$\w]+)(?:<(\d+)>)?\s*(?:,|$)")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(\(|(?=\{|\.))")
_DROPPED = (".pragma", ".alignas", ".noreturn")


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
    found = re.search(r"^[ \t]*\.target\s+([\w]+)", text, re.M)
    if found is None:
        raise EmulationError("this is not PTX: no .target directive was found")
    target = found[1]
    if target.rstrip("af") not in TARGETS:
        raise EmulationError(
            f"target {target} is outside the emulator's subset ({', '.join(TARGETS)})"
        )
    if re.search(r"^[ \t]*\.address_size\s+32", text, re.M):
        raise EmulationError("expected .address_size 64, got 32")
    return version, target


def _read_top(module: Module, text: str) -> None:
    """Reads the entries with their bodies, then the variables between them."""
    spans: list[tuple[int, int]] = []
    files = _files(text)
    line, counted = 1, 0
    for found in _ENTRY.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        kernel = PtxKernel(found[1], line)
        after = found.end()
        if found[2] == "(":
            close = text.find(")", after)
            if close < 0:
                fail(line, "parameter list without an end")
            read_parameters(kernel, text[after:close], line)
            after = close
        start = text.find("{", after)
        if start < 0:
            fail(line, f"kernel {kernel.name} has no body")
        read_limits(kernel, text[after:start])
        first = line + text.count("\n", counted, start)
        stop = _Body(kernel, text, files).read(start + 1, first)
        spans.append((found.start(), stop))
        module.kernels[kernel.name] = kernel
    _read_variables(module, text, spans)


def _files(text: str) -> dict[str, str]:
    """The names that `.file` gives to the numbers in `.loc`."""
    return dict(re.findall(r'^[ \t]*\.file\s+(\d+)\s+"([^"]*)"', text, re.M))


def _read_variables(module: Module, text: str, spans: list[tuple[int, int]]) -> None:
    position, line, counted = 0, 1, 0
    for start, stop in [*spans, (len(text), len(text))]:
        outside = text[position : text.rfind(";", position, start) + 1]
        for found in re.finditer(
            r"^[ \t]*((?:\.(?:visible|extern|weak|common)\s+)*"
            r"\.(?:shared|global|const)\b[^;]*);",
            outside,
            re.M,
        ):
            at = position + found.start(1)
            line += text.count("\n", counted, at)
            counted = at
            variable = read_variable(found[1], line)
            module.variables[variable.name] = variable
        position = stop


class _Body:
    """Reads one kernel body: statements, nested scopes, labels, source positions."""

    def __init__(self, kernel: PtxKernel, text: str, files: dict[str, str]):
        self.kernel = kernel
        self.text = text
        self.files = files
        self.scopes: list[dict[str, str]] = [{}]
        self.opened: list[int] = []  # first instruction of each inner scope
        self.renames = 0
        self.branches: dict[str, list[int]] = {}  # by label, where they stand
        self.source: str | None = None
        self.memo: dict[str, Operand] = {}
        self.parts: dict[str, tuple[str, ...]] = {}

    def read(self, position: int, line: int) -> int:
        """Reads from just after the opening brace, which is on `line`.

        Returns the end of the body.
        """
        text, match = self.text, _STATEMENT.match
        while True:
            found = match(text, position)
            if found is None:
                fail(self.kernel.line, f"kernel {self.kernel.name} has no end")
            start = found.end("space")
            line += text.count("\n", position, start)
            position = found.end()
            kind = found.lastgroup
            if kind == "text":
                self.statement(found["text"], line)
            elif kind == "label":
                self.label(found["label"])
            elif kind == "loc":
                self.location(found["loc"])
            elif kind == "bad":
                fail(line, f"cannot read `{self.text[start : start + 40].strip()}`")
            elif found["brace"] == "{" and len(self.scopes) > _MAX_SCOPES:
                fail(line, f"expected at most {_MAX_SCOPES} scopes in each other")
            elif found["brace"] == "{":
                self.scopes.append({})
                self.opened.append(len(self.kernel.instructions))
            else:
                self.scopes.pop()
                if self.opened:
                    self.opened.pop()
                if not self.scopes:
                    return position
            line += text.count("\n", start, position)

    def statement(self, text: str, line: int) -> None:
        """Reads what ends with `;`: a directive or an instruction."""
        text = " ".join(text.split())
        if not text:
            return
        if text[0] == ".":
            self.directive(text, line)
            return
        if len(text) > _MAX_STATEMENT:
            fail(line, f"an instruction of {len(text)} characters: `{text}`")
        found = _CODE.match(text)
        if found is None:
            fail(line, f"cannot read the statement `{text}`")
        negated, guard, opcode, operands = found.groups()
        parts = self.parts.get(opcode)
        if parts is None:
            parts = self.parts[opcode] = tuple(opcode.split("."))
        read = self.operand
        given = tuple([read(item, line) for item in _SPLIT.findall(operands)])
        if len(given) == 1 and self.opened and isinstance(given[0], Name):
            here = len(self.kernel.instructions)
            self.branches.setdefault(given[0].name, []).append(here)
        self.kernel.instructions.append(
            Instruction(
                parts,
                given,
                (self.resolve(guard), bool(negated)) if guard else None,
                line,
                text,
                self.source,
            )
        )

    def directive(self, text: str, line: int) -> None:
        """Reads a declaration; drops what does not change a result."""
        if text.startswith((".reg", ".param")):
            self.declare(text, line)
        elif text.startswith((".shared", ".local", ".global", ".const")):
            variable = read_variable(text, line)
            self.kernel.variables[variable.name] = variable
        elif text.startswith(".branchtargets"):
            self.targets(text, line)
        elif not text.startswith((*_DROPPED, ".callprototype")):
            fail(line, f"directive not supported by the emulator: {text}")

    def targets(self, text: str, line: int) -> None:
        """`.branchtargets A, B` belongs to the label just before it."""
        here = len(self.kernel.instructions)
        names = [n for n, at in self.kernel.labels.items() if at == here]
        listed = [item.strip() for item in text[len(".branchtargets") :].split(",")]
        if not names:
            fail(line, f"expected a label before `{text}`")
        self.kernel.targets[names[-1]] = listed

    def declare(self, text: str, line: int) -> None:
        """Reads `.reg`: single registers, or a range such as `%r<9>`; or `.param`."""
        found = _DECLARATION.match(text)
        if found is None:
            fail(line, f"cannot read the declaration `{text}`")
        scalar = SCALARS.get(found[1])
        if scalar is None:
            fail(line, f"register type not supported by the emulator: {text}")
        for name, count in _REGISTER.findall(found[2]):
            if len(self.scopes) > 1:
                self.renames += 1
                self.scopes[-1][name] = f"{name}#{self.renames}"
                name = self.scopes[-1][name]
            if count:
                self.kernel.register_ranges[name] = (scalar, int(count))
            else:
                self.kernel.registers[name] = scalar

    def label(self, name: str) -> None:
        """A label inside `{ }` is known there only, also before it is declared."""
        if len(self.scopes) > 1:
            self.renames += 1
            inner = f"{name}#{self.renames}"
            self.rename_since(self.opened[-1], name, inner)
            self.scopes[-1][name] = name = inner
        self.kernel.labels[name] = len(self.kernel.instructions)

    def rename_since(self, start: int, old: str, new: str) -> None:
        """Branches to `old` in the scope that is open go to `new`."""
        code = self.kernel.instructions
        places = self.branches.get(old, [])
        while places and places[-1] >= start:
            i = places.pop()
            code[i] = code[i]._replace(operands=(Name(new),))

    def resolve(self, name: str) -> str:
        """The name after renaming by the scopes that are open."""
        for scope in reversed(self.scopes[1:]):
            if name in scope:
                return scope[name]
            stem = name.rstrip("0123456789")
            if stem != name and stem in scope:
                return scope[stem] + name[len(stem) :]
        return name

    def operand(self, text: str, line: int) -> Operand:
        """Reads one operand; outside of scopes a text always means the same."""
        if len(self.scopes) > 1:  # a name may mean another register here
            return self.read_operand(text.strip(), line)
        found = self.memo.get(text)
        if found is None:
            found = self.memo[text] = self.read_operand(text.strip(), line)
        return found

    def read_operand(self, text: str, line: int) -> Operand:
        """Reads one operand that was not met before."""
        if _NAME.match(text):
            return Name(self.resolve(text) if len(self.scopes) > 1 else text)
        value = read_literal(text)
        if value is not None:
            return value
        if text.startswith("["):
            return self.address(text, line)
        if text.startswith("{"):
            items = text[1:-1].split(",")
            return Vector(tuple(self.read_operand(i.strip(), line) for i in items))
        if text.startswith("!"):
            return Negated(self.read_operand(text[1:].strip(), line))
        value = constant_expression(text)
        if value is not None:
            return Integer(value)
        if text.startswith("("):
            items = text[1:-1].split(",")
            return Vector(tuple(self.read_operand(i.strip(), line) for i in items if i))
        if "|" in text:
            first, second = text.split("|", 1)
            if "|" not in second:
                return Pair(
                    self.read_operand(first.strip(), line),
                    self.read_operand(second.strip(), line),
                )
        if "+" in text:  # variable+offset as a value, as in `mov.u64 %rd1, buf+16`
            base, offset = (item.strip() for item in text.split("+", 1))
            if is_integer(offset):
                return Address("&" + base, integer(offset))
        fail(line, f"cannot read the operand `{text}`")

    def address(self, text: str, line: int) -> Operand:
        """Reads `[base + offset]`."""
        found = _ADDRESS.match(text)
        if found is None:
            fail(line, f"cannot read the address `{text}`")
        base, sign, minus, offset = found.groups()
        if offset and not is_integer(offset):
            fail(line, f"cannot read the address `{text}`")
        value = integer(offset) if offset else 0
        if (sign == "-") != (minus == "-"):
            value = -value
        if is_integer(base):
            return Address(None, integer(base) + value)
        return Address(self.resolve(base), value)

    def location(self, text: str) -> None:
        """Reads `.loc`: the source position of the instructions that follow."""
        words = text.replace(",", " ").split()
        if words[0] == ".loc" and len(words) > 2:
            name = self.files.get(words[1], words[1])
            self.source = f"{name}:{words[2]}" if words[2] != "0" else None
