"""What the parser hands over: operands, instructions, variables, kernels, a module.

All names are those of the PTX text. A register that a `{ ... }` scope declares again
gets a name of its own (`%p1#2`), so that one flat name table is enough afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar

_MAX_SHOWN = 300  # characters of an instruction, in a message
_MOST_GROUPS = 2**31 - 1  # that a wait may leave in flight
SPACES = ("shared", "local", "global", "const", "param")


class Name(NamedTuple):
    """A register, a special register, a label, a parameter or a variable."""

    name: str


class Integer(NamedTuple):
    """An integer literal (not yet cut to the width of its use)."""

    value: int


class Float(NamedTuple):
    """A float literal by its bits: `0f3F800000` (size 4) or `0d...` (size 8)."""

    bits: int
    size: int


class Address(NamedTuple):
    """`[base + offset]`; `base` is a name or None for an absolute address."""

    base: str | None
    offset: int


class Vector(NamedTuple):
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


class Pair(NamedTuple):
    """`a|b`, two destinations."""

    first: Operand
    second: Operand


class Negated(NamedTuple):
    """`!p`."""

    operand: Operand


class Minus(NamedTuple):
    """`-%r1`, an operand of a video instruction."""

    operand: Operand


class Selected(NamedTuple):
    """`%r1.h10`: bytes or half-words of a register, in a video instruction."""

    operand: Operand
    part: str


Operand = Name | Integer | Float | Address | Vector | Pair | Negated | Minus | Selected


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The elements of a vector operand, or the operand alone."""
    return operand.items if isinstance(operand, Vector) else (operand,)


class Instruction(NamedTuple):
    """One instruction; `parts` is its opcode split at the dots, in the PTX ISA's order.

    `guard` is `(predicate register, is negated)` or None; `source` is the `.loc` in
    force as "file:line", or None.
    """

    parts: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: tuple[str, bool] | None
    line: int
    text: str
    source: str | None

    @property
    def opcode(self) -> str:
        """The opcode with its dots."""
        return ".".join(self.parts)

    @property
    def type(self) -> Scalar:
        """The scalar type that the last part of the opcode names."""
        found = SCALARS.get(self.parts[-1])
        if found is None:
            raise unsupported(self)
        return found


class PtxParameter(NamedTuple):
    """One `.param` of a kernel, function or call; `size` and `offset` in bytes.

    `in_register`: a function takes or returns it as a `.reg`.
    """

    name: str
    type: Scalar
    size: int
    offset: int
    in_register: bool = False


class Prototype(NamedTuple):
    """What a function returns and takes: a `.callprototype`."""

    results: tuple[PtxParameter, ...]
    parameters: tuple[PtxParameter, ...]


class Reference(NamedTuple):
    """An initial value that is the address of `name`, plus `addend`.

    `offset`, `size` are those of the value in its variable, in bytes.
    """

    offset: int
    size: int
    name: str
    addend: int


class Variable(NamedTuple):
    """A `.shared`, `.local`, `.global` or `.const` variable.

    `size` in bytes, 0 for `extern` arrays of unknown size; `data` are its initial
    bytes or None, with zeros where the `references` go.
    """

    name: str
    space: str
    align: int
    size: int
    extern: bool
    data: bytes | None
    references: tuple[Reference, ...] = ()


@dataclass
class PtxKernel:
    """One `.entry` or `.func`: parameters, variables, code in the order of the text.

    `results`: what a function returns; `passed`: the `.param` in the body, with their
    offsets in an area of `passed_size` bytes, which scopes side by side share.
    """

    name: str
    line: int
    is_entry: bool = True
    parameters: list[PtxParameter] = field(default_factory=list)
    results: list[PtxParameter] = field(default_factory=list)
    passed: dict[str, PtxParameter] = field(default_factory=dict)
    passed_size: int = 0
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    registers: dict[str, Scalar] = field(default_factory=dict)
    register_ranges: dict[str, tuple[Scalar, int]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    required_cluster: tuple[int, int, int] | None = None
    needs_cluster: bool = False  # .explicitcluster
    max_cluster: int | None = None  # blocks
    max_registers: int | None = None


@dataclass(frozen=True)
class Module:
    """A parsed PTX module; a function that cannot be read is its error."""

    version: tuple[int, int]
    target: str
    kernels: dict[str, PtxKernel]
    variables: dict[str, Variable]
    lines: list[str]
    functions: dict[str, PtxKernel | EmulationError] = field(default_factory=dict)


def space_of(parts: tuple[str, ...]) -> str | None:
    """The state space that an opcode names, without its ::cta part."""
    for part in parts:
        name = part.split("::")[0]
        if name in SPACES:
            return name
    return None


def unsupported(ins: Instruction, why: str = "") -> EmulationError:
    """The error for an instruction outside the subset."""
    tail = f" ({why})" if why else ""
    text = ins.text
    if len(text) > _MAX_SHOWN:
        text = f"{text[:_MAX_SHOWN]}..."
    return EmulationError(
        f"PTX line {ins.line}: instruction not supported by the emulator: {text}{tail}"
    )


def groups_left(ins: Instruction) -> int:
    """How many groups a wait_group, of any kind of copy, may leave in flight."""
    count = ins.operands[0]
    if not isinstance(count, Integer) or not 0 <= count.value <= _MOST_GROUPS:
        raise unsupported(ins, f"expected a number from 0 to {_MOST_GROUPS}")
    return count.value
