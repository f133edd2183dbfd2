"""Loads from one of two addresses, as two loads of which one is selected.

Before:  selp.b64 %rd3, %rd1, %rd2, %p1;  ld.global.b16 %rs1, [%rd3];
After:   selp.b64 ...;  ld.global.b16 %rs1, [%rd1];  ld.global.b16 %rs1@0, [%rd2];
         selp.b16 %rs1, %rs1, %rs1@0, %p1;

Both leave the same where both addresses may be read, which is asked of what comes of
it. So it is done where nobody knows the predicate: where it is of what is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from alcop_mlir.checker.ptx.instructions import ENDS, PLACE, Instruction

_Text = tuple[list[Instruction], dict[str, int]]  # a kernel's code and labels


def loads_of_both(
    code: list[Instruction], labels: dict[str, int], width: Callable[[str], int]
) -> _Text:
    """The code and labels of a kernel; width: of a register, and so of its copy."""
    if not any(ins.opcode == "selp.b64" for ins in code):
        return code, labels
    loaded = _loaded(code)
    found: list[Instruction] = []
    places: list[int] = []
    for pc, ins in enumerate(code):
        places.append(len(found))
        choice = _choice(code, labels, pc)
        if choice is None or choice.operands[3] not in loaded:
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
            if is_load or not found.isdisjoint(ins.reads):
                found.update(ins.results)
    return found


def _choice(
    code: list[Instruction], labels: Mapping[str, int], pc: int
) -> Instruction | None:
    """What chose the address of a load before, in its block, and still says it."""
    ins = code[pc]
    if ins.parts[:2] != ["ld", "global"] or ins.guard or "@" in ins.operands[0]:
        return None
    place = PLACE.fullmatch(ins.operands[1])
    if place is None or ins.operands[0][:1] != "%":
        return None
    starts = {*labels.values()}
    written: set[str] = set()
    while pc > 0 and pc not in starts:
        pc -= 1
        before = code[pc]
        if before.parts[0] in ("bra", "brx", *ENDS):
            return None
        if place[1] in before.results:
            is_choice = before.opcode == "selp.b64" and not before.guard
            written.update(ins.results)
            return before if is_choice and written.isdisjoint(before.reads) else None
        written.update(before.results)
    return None


def _both(
    ins: Instruction, choice: Instruction, width: Callable[[str], int]
) -> list[Instruction]:
    """Two loads, and which of them it is."""
    name, place = ins.operands
    first, second, test = choice.operands[1:]
    other = f"{name}@0"  # the scopes of the text have numbers from 1 on
    old = choice.operands[0]
    return [
        replace(ins, operands=(name, place.replace(old, first, 1))),
        replace(ins, operands=(other, place.replace(old, second, 1))),
        Instruction("", False, f"selp.b{width(name)}", (name, name, other, test)),
    ]
