"""Which instructions access global memory, where and how much, by their text."""

from __future__ import annotations

from alcop_mlir.certificate.program import Code, is_generic, registers
from alcop_mlir.certificate.values import width_of
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Integer,
    Operand,
)

_MEMORY = ("ld", "ldu", "st", "atom", "red")
# They name a state space, or an address, and access nothing.
_HARMLESS = (
    "cvta isspacep mov prefetch prefetchu discard applypriority createpolicy membar "
    "fence".split()
)


def accesses_global(ins: Instruction) -> bool:
    """Whether it may access global memory, at an address of a register."""
    if ins.parts[0] in _HARMLESS:
        return False
    return "global" in ins.parts or is_generic(ins) or ins.parts[0] == "call"


def address_of(ins: Instruction) -> Address | None:
    """Of the access to global memory; None where it is of a kind that is not known."""
    is_copy = ins.parts[:2] == ("cp", "async") and ins.parts[2] in ("ca", "cg")
    if ins.parts[0] not in _MEMORY and not is_copy:
        return None
    if "async" in ins.parts and not is_copy:
        return None
    places = [one for one in ins.operands if isinstance(one, Address)]
    return places[1 if is_copy else 0] if len(places) > is_copy else None


def most_bytes(ins: Instruction) -> int:
    """How many bytes it accesses; a copy with a size of its source may read less."""
    if ins.parts[0] == "cp":
        size = ins.operands[2]
        return size.value if isinstance(size, Integer) else 16
    count = next((int(p[1:]) for p in ins.parts if p in ("v2", "v4", "v8")), 1)
    return max(width_of(ins.parts[-1]) // 8, 1) * count


def source_size(ins: Instruction) -> Operand | None:
    """What says how many bytes a copy reads, or that it reads none, where that is
    given.
    """
    if ins.parts[0] != "cp":
        return None
    is_hinted = any("cache_hint" in part for part in ins.parts)
    others = ins.operands[3 : len(ins.operands) - is_hinted]
    return others[0] if others else None


def needed(code: Code) -> set[str]:
    """Registers that addresses, sizes and guards of accesses are computed of."""
    names: set[str] = set()
    for ins in code.instructions:
        if accesses_global(ins):
            places = [o for o in ins.operands if isinstance(o, Address)]
            sizes = ins.operands[3:] if ins.parts[0] == "cp" else ()
            for operand in (*places, *sizes):
                names.update(registers(operand))
        if ins.guard and (ins.parts[0] == "bra" or accesses_global(ins)):
            names.add(ins.guard[0])
    is_open = True
    while is_open:
        before = len(names)
        for pc in range(code.end - 1, -1, -1):
            ins = code.instructions[pc]
            if ins.parts[0] != "ld" and not names.isdisjoint(code.written[pc]):
                names.update(code.read[pc])
        is_open = len(names) > before
    return names
