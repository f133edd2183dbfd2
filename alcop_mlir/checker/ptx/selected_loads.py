"""Loads from one of two addresses, as loads of both of which one is selected.

Before:  selp.b64 %rd3, %rd1, %rd2, %p1;  ld.global.b16 %rs1, [%rd3];
After:   selp.b64 ...;                    ld.global.b16 %rs1, [%rd1], [%rd2], %p1;

Both leave the same where both addresses may be read, which is asked of what comes of
it. So it is done where nobody knows the predicate: where it is of what is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from alcop_mlir.checker.ptx.instructions import ENDS, Instruction, made_of, place_of


def loads_of_both(
    code: list[Instruction], labels: Mapping[str, int]
) -> list[Instruction]:
    """The code of a kernel, instruction by instruction."""
    if not any(ins.opcode == "selp.b64" for ins in code):
        return code
    loads = (i for i in code if i.parts[0] == "ld" and "param" not in i.parts)
    loaded = made_of((name for ins in loads for name in ins.results), code)
    found = [*code]
    for pc, ins in enumerate(code):
        choice = _choice(code, labels, pc)
        if choice is not None and choice.operands[3] in loaded:
            (name, place), (old, *new, test) = ins.operands, choice.operands
            both = (place.replace(old, one, 1) for one in new)
            found[pc] = replace(ins, operands=(name, *both, test))
    return found


def _choice(
    code: list[Instruction], labels: Mapping[str, int], pc: int
) -> Instruction | None:
    """What chose the address of a load before, in its block, and still says it."""
    ins = code[pc]
    if ins.parts[:2] != ["ld", "global"] or ins.guard or len(ins.operands) != 2:
        return None
    place = place_of(ins.operands[1])
    if place is None or ins.operands[0][:1] != "%":
        return None
    starts = {*labels.values()}
    written: set[str] = set()
    while pc > 0 and pc not in starts:
        pc -= 1
        before = code[pc]
        if before.parts[0] in ("bra", "brx", *ENDS):
            return None
        if place[0] in before.results:
            is_choice = before.opcode == "selp.b64" and not before.guard
            written.update(ins.results)
            return before if is_choice and written.isdisjoint(before.reads) else None
        written.update(before.results)
    return None
