"""What an instruction reads and writes, by its text."""

from __future__ import annotations

from collections.abc import Iterator

from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    elements,
)

# Opcodes whose first operand is no destination.
_NO_RESULT = frozenset(
    "st bra bar barrier cp ret exit trap brkpt membar fence red prefetch prefetchu "
    "griddepcontrol discard applypriority nanosleep pmevent setmaxnreg stmatrix "
    "brx stackrestore".split()
)


def registers(operand: Operand) -> Iterator[str]:
    """The names in an operand, special registers and symbols too."""
    if isinstance(operand, Name):
        yield operand.name
    elif isinstance(operand, Address):
        if operand.base:
            yield operand.base.lstrip("&")
    elif isinstance(operand, Pair):
        yield from registers(operand.first)
        yield from registers(operand.second)
    elif isinstance(operand, Negated):
        yield from registers(operand.operand)
    else:
        for item in elements(operand):
            if item is not operand:
                yield from registers(item)


def results(ins: Instruction) -> tuple[str, ...]:
    """The registers that it writes; `_` too, so that others keep their number."""
    first = ins.parts[0]
    if first in _NO_RESULT or not ins.operands:
        return ()
    if first == "call" and isinstance(ins.operands[0], Name):
        return ()
    if first == "wgmma" and ins.parts[1] != "mma_async":
        return ()
    return tuple(registers(ins.operands[0]))


def sources(ins: Instruction) -> tuple[str, ...]:
    """The registers that it reads, its guard first."""
    start = 1 if results(ins) else 0
    found = [] if ins.guard is None else [ins.guard[0]]
    for operand in ins.operands[start:]:
        found += registers(operand)
    return tuple(found)
