"""PTX text as a list of instructions: a reader for checking, not for running.

PTX ISA "Syntax". Registers of inner scopes get names of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from alcop_mlir.checker.ptx.assertions import without_failures
from alcop_mlir.checker.ptx.instructions import NAME, Instruction, split
from alcop_mlir.checker.ptx.selected_loads import loads_of_both
from alcop_mlir.errors import CertificateError

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_TOKEN = re.compile(
    r"\s*(?:(?P<brace>[{}])|(?P<skip>\.(?:loc|file)\b[^\n;]*\n)"
    r"|(?P<label>[\w$%]+)\s*:(?!:)|(?P<text>[^;{}]*(?:\{[^{}]*\}[^;{}]*)*);)"
)
_SHARED = re.compile(
    r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.([bsuf])(\d+)\s+([\w$%]+)((?:\[\d*\])*)"
)
_THREADS = re.compile(
    r"\.(?:reqntid|maxntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?"
)
_PARAMETER = re.compile(r"\.([a-z]+)(\d+)\b[^,]*?([\w$%]+)(?:\[(\d+)\])?\s*(?:,|$)")
_REGISTERS = re.compile(r"\.reg\s*\.(\w+)\s+(.*)", re.S)
_REGISTER = re.compile(r"([\w$%]+?)(<\d+>)?")
_INSTRUCTION = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
# Directives in a body that say nothing of what an instruction does.
_OTHERS = "local global const pragma branchtargets calltargets callprototype".split()
_Declared = dict[str, tuple[int, int]]  # bits, and how many: of `%r<5>` by `%r<`


@dataclass
class Kernel:
    """An entry: parameters with their bytes, shared variables with alignment and bytes,
    registers by the number of the scope that declares them, "" for the outermost;
    may_fail: whether branches to a failure are left out.
    """

    threads: int
    parameters: list[str] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    shared: list[tuple[str, int, int]] = field(default_factory=list)
    registers: dict[str, _Declared] = field(default_factory=lambda: {"": {}})
    may_fail: bool = False
    _widths: dict[str, int] = field(default_factory=dict)  # all are declared then

    def width(self, register: str) -> int:
        """The bits of a register, by its declaration."""
        if register not in self._widths:
            name, _, scope = register.partition("@")
            declared = self.registers.get("" if scope == "0" else scope, {})
            found = declared.get(_declaration(name, declared), (64, 1))
            self._widths[register] = found[0]
        return self._widths[register]

    def has_register(self, name: str) -> bool:
        """Whether a register of any scope has that name."""
        return any(_declaration(name, one) for one in self.registers.values())


def read_kernel(ptx: str, entry: str) -> Kernel:
    """The entry of that name; CertificateError where there is none."""
    text = _COMMENT.sub(lambda m: "\n" * m.group().count("\n"), ptx)
    found = re.search(rf"\.entry\s+{re.escape(entry)}\s*[({{.]", text)
    start = -1 if found is None else text.find("{", found.end() - 1)
    if found is None or start < 0:
        raise CertificateError(f"the PTX has no kernel '{entry}'")
    head = text[found.end() - 1 : start]
    limits = _THREADS.search(head)
    threads = 1
    for place, count in enumerate(limits.groups() if limits else ("0",)):
        if place and int(count or 1) != 1:
            raise CertificateError("a block of more than one dimension")
        threads *= int(count or 1)
    kernel = Kernel(threads)
    if head.startswith("("):
        listed = head[1 : head.index(")")]
        for _, bits, name, count in _PARAMETER.findall(listed):
            kernel.parameters.append(name)
            kernel.sizes[name] = int(bits) // 8 * int(count or 1)
    for other in _SHARED.finditer(_outside(text)):
        kernel.shared.append(_variable(other))
    _Reader(kernel).read(text, start + 1)
    less = without_failures(kernel.code, kernel.labels, text)
    kernel.code, kernel.may_fail = less or kernel.code, less is not None
    kernel.code = loads_of_both(kernel.code, kernel.labels)
    return kernel


def _declaration(name: str, declared: _Declared) -> str:
    """What declares a register of that name in a scope, or nothing."""
    if name in declared:
        return name
    stem = name.rstrip("0123456789")
    for end in range(len(stem), len(name)):
        number, key = name[end:], f"{name[:end]}<"
        if key in declared and int(number) < declared[key][1]:
            if number == "0" or number[0] != "0":
                return key
    return ""


def _outside(text: str) -> str:
    """The text without the bodies of entries and functions."""
    kept, depth, last = [], 0, 0
    for brace in re.finditer(r"[{}]", text):
        if brace.group() == "{":
            if not depth:
                kept.append(text[last : brace.start()])
            depth += 1
        else:
            depth -= 1
            last = brace.end()
    return "".join([*kept, text[last:]])


def _variable(found: re.Match[str]) -> tuple[str, int, int]:
    align, _, bits, name, dims = found.groups()
    count = int(bits) // 8
    for dim in re.findall(r"\[(\d*)\]", dims):
        count *= int(dim or 0)
    return name, int(align or int(bits) // 8), count


class _Reader:
    """Reads a body; `scopes` are the numbers of those that are open."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.scopes: list[str] = []
        self.opened = 0

    def read(self, text: str, position: int) -> None:
        line, counted = 1, 0
        while True:
            found = _TOKEN.match(text, position)
            if found is None:
                raise CertificateError("the PTX cannot be read")
            position = found.end()
            if found["brace"] == "{":
                self.opened += 1
                self.scopes.append(str(self.opened))
                self.kernel.registers[self.scopes[-1]] = {}
            elif found["brace"] == "}":
                if not self.scopes:
                    return
                self.scopes.pop()
            elif found["label"]:
                self.label(found["label"])
            elif found["text"]:
                line += text.count("\n", counted, found.start("text"))
                counted = found.start("text")
                self.statement(" ".join(found["text"].split()), line)

    def label(self, name: str) -> None:
        if name in self.kernel.labels:
            raise CertificateError("a label of several scopes")
        self.kernel.labels[name] = len(self.kernel.code)

    def statement(self, text: str, line: int) -> None:
        if text.startswith("."):
            self.declaration(text)
            return
        found = _INSTRUCTION.fullmatch(text)
        if found is None:
            raise CertificateError(f"line {line}: not understood: `{text[:60]}`")
        negated, guard, opcode, rest = found.groups()
        operands = tuple(split(rest))
        if self.scopes:
            operands = tuple(
                NAME.sub(lambda m: self.named(m.group()), o) for o in operands
            )
        guard = self.named(guard) if guard else ""
        self.kernel.code.append(
            Instruction(guard, bool(negated), opcode, operands, line, text)
        )

    def declaration(self, text: str) -> None:
        kind = NAME.findall(text)[0]
        found = _REGISTERS.fullmatch(text)
        shared = _SHARED.match(text)
        if found is not None:
            self.declare(found[1], found[2])
        elif shared is not None:
            if self.scopes:
                raise CertificateError("a shared variable in an inner scope")
            self.kernel.shared.append(_variable(shared))
        elif kind == "param":
            if not {*NAME.findall(text)}.isdisjoint(self.kernel.parameters):
                raise CertificateError("a parameter of a call is named as the kernel's")
        elif kind not in _OTHERS:
            raise CertificateError(f"not understood: `{text[:60]}`")

    def declare(self, kind: str, names: str) -> None:
        """Registers of that type."""
        bits = "1" if kind == "pred" else kind.lstrip("subf").split("x")[0]
        if not bits.isdigit():
            raise CertificateError(f"registers of type {kind}")
        declared = self.kernel.registers[self.scopes[-1] if self.scopes else ""]
        for name in names.replace(" ", "").split(","):
            found = _REGISTER.fullmatch(name)
            if found is None:
                raise CertificateError(f"no register: `{name[:40]}`")
            key, count = found[1], 1
            if found[2]:
                key, count = f"{key}<", int(found[2][1:-1])
            if key in declared:
                raise CertificateError(f"{found[1]} is declared twice")
            declared[key] = int(bits), count

    def named(self, name: str) -> str:
        """The name after renaming by the innermost scope that declares it."""
        for number in reversed(self.scopes):
            if _declaration(name, self.kernel.registers[number]):
                return f"{name}@{number}"
        return name
