"""The body of an entry or a function: declarations, instructions, scopes, labels.

PTX ISA "Syntax", "State Spaces, Types, and Variables". All names of inner scopes get
names of their own, so that a body has one flat table of each kind.
"""

from __future__ import annotations

import re

from alcop_mlir.runtime.emulator.ptx.declarations import (
    fail,
    read_parameters,
    read_prototype,
)
from alcop_mlir.runtime.emulator.ptx.literals import (
    constant_expression,
    integer,
    is_integer,
    read_literal,
)
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.spelling import ordered
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Minus,
    Name,
    Negated,
    Operand,
    Pair,
    PtxKernel,
    Selected,
    Vector,
)
from alcop_mlir.runtime.emulator.ptx.variables import read_variables

# Text may be hostile: no expression below looks at a character more than a few times.
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
_ADDRESS = re.compile(r"\[\s*([%$\w.]+)\s*(?:([+-])\s*(-?)\s*([^\]]+))?\]$")
_NAME = re.compile(r"[%$_A-Za-z][\w$%]*(?:\.[xyzwrgba])?$")
_COLOURS = dict(zip("rgba", "xyzw", strict=True))
_SELECTED = re.compile(r"([%$_A-Za-z][\w$%]*)\.([bh][0-7]{1,4})$")
_MINUS = re.compile(r"-\s*([%$_A-Za-z][\w$%]*(?:\.[bh][0-7]{1,4})?)$")
_DECLARATION = re.compile(r"\.reg\s*(?:\.v([24])\s*)?\.(\w+)\s*(.*)", re.S)
_REGISTER = re.compile(r"\s*([%$\w]+)(?:<(\d+)>)?\s*(?:,|$)")
_DROPPED = (".pragma", ".alignas", ".noreturn")


class Body:
    """Reads one kernel body: statements, nested scopes, labels, source positions."""

    def __init__(self, kernel: PtxKernel, text: str, files: dict[str, str]):
        self.kernel = kernel
        self.text = text
        self.files = files
        self.scopes: list[dict[str, str]] = [{}]
        self.passed = [0]  # bytes of `.param`, up to the end of each open scope
        for one in (*kernel.results, *kernel.parameters):
            if one.in_register:
                kernel.registers[one.name] = one.type
        self.opened: list[int] = []  # first instruction of each inner scope
        self.renames = 0
        self.vectors: dict[str, tuple[Name, ...]] = {}  # of `.reg .v4`, their elements
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
                self.label(found["label"], line)
            elif kind == "loc":
                self.location(found["loc"])
            elif kind == "bad":
                fail(line, f"cannot read `{self.text[start : start + 40].strip()}`")
            elif found["brace"] == "{" and len(self.scopes) > _MAX_SCOPES:
                fail(line, f"expected at most {_MAX_SCOPES} scopes in each other")
            elif found["brace"] == "{":
                self.scopes.append({})
                self.passed.append(self.passed[-1])
                self.opened.append(len(self.kernel.instructions))
            else:
                self.scopes.pop()
                self.passed.pop()
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
            parts = self.parts[opcode] = ordered(tuple(opcode.split(".")))
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
        if text.startswith(".reg"):
            self.declare(text, line)
        elif text.startswith(".param"):
            self.declare_passed(text, line)
        elif text.startswith((".shared", ".local", ".global", ".const")):
            for variable in read_variables(text, line):
                name = self.own_name(variable.name)
                self.kernel.variables[name] = variable._replace(name=name)
        elif text.startswith((".branchtargets", ".calltargets")):
            listed = text.split(None, 1)[-1].split(",")
            name = self.label_before(text, line)
            self.kernel.targets[name] = [item.strip() for item in listed]
        elif text.startswith(".callprototype"):
            name = self.label_before(text, line)
            self.kernel.prototypes[name] = read_prototype(text, line)
        elif not text.startswith(_DROPPED):
            fail(line, f"directive not supported by the emulator: {text}")

    def label_before(self, text: str, line: int) -> str:
        """The label to which a directive belongs, just before it."""
        here = len(self.kernel.instructions)
        names = [n for n, at in self.kernel.labels.items() if at == here]
        if not names:
            fail(line, f"expected a label before `{text}`")
        return names[-1]

    def declare(self, text: str, line: int) -> None:
        """Reads `.reg`: single registers, or a range such as `%r<9>`."""
        found = _DECLARATION.match(text)
        if found is None:
            fail(line, f"cannot read the declaration `{text}`")
        scalar = SCALARS.get(found[2])
        if scalar is None:
            fail(line, f"register type not supported by the emulator: {text}")
        for name, count in _REGISTER.findall(found[3]):
            name = self.own_name(name)
            if found[1] and not count:
                parts = tuple(Name(f"{name}.{one}") for one in "xyzw"[: int(found[1])])
                self.vectors[name] = parts
                self.kernel.registers.update((part.name, scalar) for part in parts)
            elif count:
                self.kernel.register_ranges[name] = (scalar, int(count))
            else:
                self.kernel.registers[name] = scalar

    def declare_passed(self, text: str, line: int) -> None:
        """Reads `.param` in a body: what a call takes or returns."""
        for one in read_parameters(text, line, self.passed[-1]):
            self.kernel.passed[self.own_name(one.name)] = one
            self.passed[-1] = one.offset + one.size
        self.kernel.passed_size = max(self.kernel.passed_size, self.passed[-1])

    def named(self, name: str) -> Operand:
        """A register or variable; of a vector all elements, or one such as `v.x`."""
        stem, _, element = name.partition(".")
        parts = self.vectors.get(stem)
        if parts is None:
            return Name(name)
        if element:
            return parts["xyzw".index(_COLOURS.get(element, element))]
        return Vector(parts)

    def own_name(self, name: str) -> str:
        """The name of what the innermost scope declares, another one if it is inner."""
        if len(self.scopes) > 1:
            self.renames += 1
            self.scopes[-1][name] = f"{name}#{self.renames}"
            return self.scopes[-1][name]
        return name

    def label(self, name: str, line: int) -> None:
        """A label inside `{ }` is known there only, also before it is declared."""
        if name in (self.scopes[-1] if len(self.scopes) > 1 else self.kernel.labels):
            fail(line, f"`{name}` is declared twice")
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
            vector, _, element = name.partition(".")
            if element and vector in scope:
                return f"{scope[vector]}.{element}"
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
            return self.named(self.resolve(text) if len(self.scopes) > 1 else text)
        value = read_literal(text)
        if isinstance(value, Integer) and value.value.bit_length() > 64:
            fail(line, f"a number of more than 64 bits: `{text}`")
        if value is not None:
            return value
        if text.startswith("["):
            return self.address(text, line)
        if text.startswith("{"):
            items = text[1:-1].split(",")
            return Vector(tuple(self.read_operand(i.strip(), line) for i in items))
        if text.startswith("!") and constant_expression(text) is None:
            return Negated(self.read_operand(text[1:].strip(), line))
        found = _SELECTED.match(text)
        if found is not None:
            return Selected(self.read_operand(found[1], line), found[2])
        found = _MINUS.match(text)
        if found is not None:
            return Minus(self.read_operand(found[1], line))
        value = constant_expression(text)
        if value is not None:
            return Integer(value)
        if text.startswith("("):
            items = text[1:-1].split(",")
            items = [item.strip() for item in items if item.strip()]
            return Vector(tuple(self.read_operand(item, line) for item in items))
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
                return Address("&" + self.resolve(base), integer(offset))
        fail(line, f"cannot read the operand `{text}`")

    def address(self, text: str, line: int) -> Operand:
        """Reads `[base + offset]`, or `[base + offset, {x, y}]` of a tensor."""
        base, comma, rest = text[1:-1].partition(",")
        if comma:
            items = (f"[{base.strip()}]", rest.strip())
            return Vector(tuple(self.read_operand(item, line) for item in items))
        found = _ADDRESS.match(text)
        if found is None:
            fail(line, f"cannot read the address `{text}`")
        base, sign, minus, offset = found.groups()
        value = constant_expression(offset) if offset else 0
        if value is None:
            fail(line, f"cannot read the address `{text}`")
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
