"""A kernel together with the functions that it may call, as one sequence of code.

Callees come before their callers and the kernel is last, so that of diverged lanes
those inside a call go on first (see `schedule`), and meet the others where it returns.
PTX ISA "Control Flow Instructions: call", "Kernel and Function Directives: .func".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Module,
    Name,
    Operand,
    PtxKernel,
    Vector,
    unsupported,
)

_CALL, _ALLOCA = "call", "alloca"


class Call(NamedTuple):
    """The operands of a call; `listed`: its prototype or list of targets, or None."""

    results: tuple[Operand, ...]
    target: str
    arguments: tuple[Operand, ...]
    listed: str | None


def read_call(ins: Instruction) -> Call:
    """`call (results), target, (arguments), prototype`; only the target is a must."""
    left = list(ins.operands)
    results = left.pop(0) if left and not isinstance(left[0], Name) else Vector(())
    target = left.pop(0) if left else None
    arguments = left.pop(0) if left and not isinstance(left[0], Name) else Vector(())
    listed = left.pop(0) if left else None
    if not isinstance(target, Name) or not isinstance(listed, Name | None) or left:
        raise unsupported(ins, "expected (results), function, (arguments)")
    name = listed.name if listed else None
    return Call(_items(results), target.name, _items(arguments), name)


def _items(operand: Operand) -> tuple[Operand, ...]:
    """What is listed in parentheses; `(5)` is read as a number."""
    return operand.items if isinstance(operand, Vector) else (operand,)


@dataclass(frozen=True)
class Part:
    """A function at instructions [start, stop) of a program.

    on_stack: its variables lie in a frame made for each call, as it may call itself,
    or makes room on the stack
    """

    function: PtxKernel
    start: int
    stop: int
    on_stack: bool


@dataclass(frozen=True)
class Program:
    """The code of a kernel and its functions.

    addresses: of all functions of the module; calls: whom each function may call at
    any depth, by name
    """

    parts: tuple[Part, ...]
    code: tuple[Instruction, ...]
    addresses: dict[str, int]
    calls: dict[str, frozenset[str]]

    @property
    def kernel(self) -> PtxKernel:
        """The entry, which is the last part."""
        return self.parts[-1].function

    @property
    def entry(self) -> int:
        """The first instruction that runs."""
        return self.parts[-1].start

    @cached_property
    def part_of(self) -> dict[str, int]:
        """The number of the part of each function, by name."""
        return {p.function.name: i for i, p in enumerate(self.parts[:-1])}

    @cached_property
    def labels(self) -> set[int]:
        """Where the straight code of any part may begin."""
        starts = {part.start for part in self.parts}
        for part in self.parts:
            starts.update(part.start + at for at in part.function.labels.values())
        return starts

    def names(self, function: str) -> bool:
        """Whether any of the code calls that function by its name."""
        return any(
            ins.parts[0] == _CALL and read_call(ins).target == function
            for ins in self.code
        )

    def saves(self, caller: str, callee: str) -> bool:
        """Whether the callee may come back to its caller before it has returned."""
        return caller == callee or caller in self.calls.get(callee, ())


# Far from all memory: a load or store of a function is out of bounds.
_FUNCTIONS, _STEP = 0x5_0000_0000, 0x100


def link(module: Module, kernel: PtxKernel) -> Program:
    """Puts the kernel and all functions that it may call together.

    Raises `EmulationError` if one of these cannot be read. A function without a body
    is left out: to call it is an error where that happens.
    """
    addresses = {n: _FUNCTIONS + _STEP * i for i, n in enumerate(module.functions)}
    named = _Named(module, kernel)
    order = _callees_first(kernel, named)
    edges = {f.name: named.callees(f) for f in order if not f.is_entry}
    calls = {name: _reached(name, edges) for name in edges}
    parts: list[Part] = []
    code: list[Instruction] = []
    for function in order:
        start = len(code)
        code += function.instructions
        if not function.is_entry:
            code.append(Instruction(("ret",), (), None, function.line, "ret", None))
        moves = any(ins.parts[0] == _ALLOCA for ins in function.instructions)
        again = not function.is_entry and function.name in calls[function.name]
        on_stack = not function.is_entry and (moves or again)
        parts.append(Part(function, start, len(code), on_stack))
    return Program(tuple(parts), tuple(code), addresses, calls)


class _Named:
    """Whom functions name: those that they call, and those whose address is taken."""

    def __init__(self, module: Module, kernel: PtxKernel):
        self.functions = module.functions
        self.indirect: set[str] = set()  # those that call by an address
        self.taken: dict[str, None] = {}
        self.direct: dict[str, list[str]] = {}
        for variable in (*module.variables.values(), *kernel.variables.values()):
            self._take(reference.name for reference in variable.references)

    def _take(self, names: Iterable[str]) -> None:
        known = (n for n in names if isinstance(self.functions.get(n), PtxKernel))
        self.taken.update(dict.fromkeys(known))

    def read(self, function: PtxKernel) -> None:
        """Notes whom a function calls, and whose address it takes."""
        names: dict[str, None] = {}
        for ins in function.instructions:
            if ins.parts[0] != _CALL:
                self._take(_names(ins))
                continue
            target = read_call(ins).target
            if target in self.functions:
                names[target] = None
            elif target in function.registers or target.startswith("%"):
                self.indirect.add(function.name)
        self.direct[function.name] = list(names)

    def callees(self, function: PtxKernel) -> list[str]:
        """The functions that a function may call, by name."""
        if function.name not in self.direct:
            self.read(function)
        more = self.taken if function.name in self.indirect else {}
        return [*self.direct[function.name], *more]


def _names(ins: Instruction) -> Iterator[str]:
    for operand in ins.operands:
        if isinstance(operand, Name):
            yield operand.name
        elif isinstance(operand, Address) and operand.base:
            yield operand.base.lstrip("&")


def _callees_first(kernel: PtxKernel, named: _Named) -> list[PtxKernel]:
    """All that the kernel may call, each before its callers, and then the kernel."""
    if not named.functions:
        return [kernel]
    order: list[PtxKernel] = []
    known = -1
    # A callee that is read late may take the address of one more.
    while known != len(named.taken):
        known = len(named.taken)
        order = _walk(kernel, named)
    return order


def _walk(kernel: PtxKernel, named: _Named) -> list[PtxKernel]:
    """The functions in the order in which a walk in depth leaves them."""
    order: list[PtxKernel] = []
    met = {kernel.name}
    pending = [(kernel, iter(named.callees(kernel)))]
    while pending:
        last, left = pending[-1]
        name = next((n for n in left if n not in met), None)
        if name is None:
            pending.pop()
            order.append(last)
            continue
        met.add(name)
        callee = named.functions[name]
        if isinstance(callee, EmulationError):
            raise callee
        pending.append((callee, iter(named.callees(callee))))
    return order


def _reached(name: str, edges: dict[str, list[str]]) -> frozenset[str]:
    """All whom a function may call, at any depth."""
    found: set[str] = set()
    left: list[str] = list(edges[name])
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += edges.get(one, [])
    return frozenset(found)
