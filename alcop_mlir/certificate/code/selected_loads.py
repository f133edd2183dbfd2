"""Loads from one of two addresses, as two loads of which one is selected.

Before:  selp.b64 %rd3, %rd1, %rd2, %p1;  ld.global.b16 %rs1, [%rd3];
After:   selp.b64 ...;  ld.global.b16 %rs1, [%rd1];  ld.global.b16 %rs1#0, [%rd2];
         selp.b16 %rs1, %rs1, %rs1#0, %p1;

Both leave the same where both addresses may be read, which is asked of what comes of
it. So it is done where nobody knows the predicate: where it is of what is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from alcop_mlir.certificate.code.operands import registers, results, sources
from alcop_mlir.runtime.emulator.ptx.syntax import Address, Instruction, Name

_Text = tuple[list[Instruction], dict[str, int]]  # a kernel's code and labels
_CHOICE = ("selp", "b64")
_JUMPS = ("bra", "brx", "ret", "exit", "trap")


def loads_of_both(
    code: list[Instruction], labels: dict[str, int], width: Callable[[str], int]
) -> _Text:
    """The code and labels of a kernel.

    width: of a register
    """
    if not any(ins.parts == _CHOICE for ins in code):
        return code, labels
    loaded = _loaded(code)
    found: list[Instruction] = []
    places: list[int] = []
    for pc, ins in enumerate(code):
        places.append(len(found))
        choice = _choice(code, labels, pc)
        if choice is None or loaded.isdisjoint(registers(choice.operands[3])):
            found.append(ins)
        else:
            found += _both(ins, choice, width)
    places.append(len(found))
    return found, {name: places[pc] for name, pc in labels.items()}


def _loaded(code: list[Instruction]) -> set[str]:
    """Registers that hold what is made of what was loaded."""
    found: set[str] = set()
    size = -1
    while len(found) > size:
        size = len(found)
        for ins in code:
            is_load = ins.parts[0] == "ld" and "param" not in ins.parts
            if is_load or not found.isdisjoint(sources(ins)):
                found.update(results(ins))
    return found


def _choice(
    code: list[Instruction], labels: Mapping[str, int], pc: int
) -> Instruction | None:
    """What chose the address of a load before, in its block, and still says it."""
    ins = code[pc]
    if ins.parts[:2] != ("ld", "global") or ins.guard is not None:
        return None
    name, place = ins.operands[:2]
    if not isinstance(name, Name) or not isinstance(place, Address) or "#" in name.name:
        return None
    starts = {*labels.values()}
    written: set[str] = set()
    while pc > 0 and pc not in starts:
        pc -= 1
        before = code[pc]
        if before.parts[0] in _JUMPS:
            return None
        if place.base in results(before):
            is_choice = before.parts == _CHOICE and before.guard is None
            written.update(results(ins))
            return before if is_choice and written.isdisjoint(sources(before)) else None
        written.update(results(before))
    return None


def _both(
    ins: Instruction, choice: Instruction, width: Callable[[str], int]
) -> list[Instruction]:
    """Two loads, and which of them it is."""
    name, place = ins.operands
    assert isinstance(name, Name)
    assert isinstance(place, Address)
    first, second, test = choice.operands[1:]
    other = Name(f"{name.name}#0")  # the scopes of the text have numbers from 1 on
    bits = width(name.name)
    return [
        ins._replace(operands=(name, place._replace(base=_base(first)))),
        ins._replace(operands=(other, place._replace(base=_base(second)))),
        ins._replace(parts=("selp", f"b{bits}"), operands=(name, name, other, test)),
    ]


def _base(operand: object) -> str | None:
    return operand.name if isinstance(operand, Name) else None
