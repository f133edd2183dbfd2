"""Branches to `__assertfail`, which does not return: the run ends with an error.

Of a run in which an assertion fails nothing is said, so that a branch of which one side
does nothing but to fail always goes to the other one, and the call itself is an end.
That is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from alcop_mlir.checker.ptx.instructions import Instruction

NO_FAILURE = "no assertion fails: a call of __assertfail ends the run"
_CALLED = "__assertfail"
_DECLARED = re.compile(rf"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?{_CALLED}\b")


def without_failures(
    code: list[Instruction], labels: Mapping[str, int], ptx: str
) -> list[Instruction] | None:
    """The code without the branches to what fails; None where nothing does."""
    if not any(map(_is_failure, code)) or not _DECLARED.search(ptx):
        return None
    failing = [_fails(code, labels, pc) for pc in range(len(code))] + [False]
    end = Instruction("", False, "exit", ())
    found = [end if fails else ins for ins, fails in zip(code, failing, strict=False)]
    for pc, ins in enumerate(found):
        if ins.parts[0] != "bra" or not ins.guard:
            continue
        sides = failing[labels.get(ins.operands[0], -1)], failing[pc + 1]
        if sides == (True, False):
            found[pc] = Instruction("", False, "nop", ())
        elif sides == (False, True):
            found[pc] = Instruction("", False, "bra", ins.operands)
    return found


def _is_failure(ins: Instruction) -> bool:
    return ins.parts[0] == "call" and not ins.guard and ins.operands[:1] == (_CALLED,)


def _fails(code: list[Instruction], labels: Mapping[str, int], pc: int) -> bool:
    """Whether threads that come here do nothing but to call it."""
    met: set[int] = set()
    while 0 <= pc < len(code) and pc not in met:
        met.add(pc)
        ins = code[pc]
        if _is_failure(ins):
            return True
        if ins.guard or not (_is_argument(ins) or ins.parts[0] == "bra"):
            return False
        pc = labels.get(ins.operands[0], -1) if ins.parts[0] == "bra" else pc + 1
    return False


def _is_argument(ins: Instruction) -> bool:
    """Whether it makes an argument of the call, and nothing else."""
    return ins.parts[0] in ("mov", "cvta") or ins.parts[:2] == ["st", "param"]
