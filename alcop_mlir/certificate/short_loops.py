"""Loops of which the text says how many turns they make, few: these are told apart.

      mov.b64 %i, 0;
    LOOP: ...
      add.s64 %i, %i, -16;
      setp.ne.b64 %p, %i, -64;
      @%p bra LOOP;

The counter of such a loop stays a number, as those are of which addresses are computed:
where it was a term, the turn in which the loop is left would be forgotten, as `ne` says
nothing of later ones. Of two turns compilers make a predicate that is a number in each:

      mov.pred %q, -1;
    LOOP: mov.pred %p, %q;
      ...
      mov.pred %q, 0;
      @%p bra LOOP;
"""

from __future__ import annotations

from alcop_mlir.certificate.program import Code
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Integer, Name

MOST_TURNS = 16


def short_counters(code: Code, head: int) -> set[str]:
    """The counters of a loop with few turns: of each test at its end."""
    found: set[str] = set()
    for block in code.loops[head]:
        guard = code.instructions[code.stop[block] - 1].guard
        if head not in code.following[block] or guard is None:
            continue
        for pc in code.pcs(code.loops[head]):
            if guard[0] in code.written[pc]:
                name, end = _tested(code.instructions[pc])
                if name and 0 < _turns(code, head, name, end) <= MOST_TURNS:
                    found.add(name)
                found |= _flags(code, code.instructions[pc])
    return found


def _flags(code: Code, ins: Instruction) -> set[str]:
    """The predicate that an instruction copies, if only numbers are written to it."""
    if ins.parts != ("mov", "pred") or not isinstance(ins.operands[1], Name):
        return set()
    name = ins.operands[1].name
    every = zip(code.instructions, code.written, strict=True)
    numbers = [_last_number(i, name, False) for i, written in every if name in written]
    return set() if None in numbers else {name}


def _tested(ins: Instruction) -> tuple[str, int]:
    """The register that goes on until it is a number, and that number."""
    if ins.parts[:2] == ("setp", "ne") and len(ins.operands) == 3:
        _, counter, end = ins.operands
        if isinstance(counter, Name) and isinstance(end, Integer):
            return counter.name, end.value
    return "", 0


def _turns(code: Code, head: int, name: str, end: int) -> int:
    """How many turns a counter makes until it is `end`; 0 where that is not known."""
    inside = set(code.pcs(code.loops[head]))
    starts, steps = [], []
    for pc, written in enumerate(code.written):
        if name not in written:
            continue
        number = _last_number(code.instructions[pc], name, pc in inside)
        if number is None:
            return 0
        (steps if pc in inside else starts).append(number)
    if len(steps) != 1 or not steps[0] or not starts:
        return 0
    counts = [divmod(end - start, steps[0]) for start in starts]
    return 0 if any(rest for _, rest in counts) else max(turns for turns, _ in counts)


def _last_number(ins: Instruction, name: str, is_step: bool) -> int | None:
    """What is added to the register, or what it is set to; None for anything else."""
    last = ins.operands[-1]
    if ins.guard is not None or not isinstance(last, Integer):
        return None
    if not is_step:
        return last.value if ins.parts[0] == "mov" else None
    own = ins.operands[1]
    is_own = isinstance(own, Name) and own.name == name
    return last.value if ins.parts[0] == "add" and is_own else None
