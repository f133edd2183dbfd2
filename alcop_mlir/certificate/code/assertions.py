"""Branches to `__assertfail`, which does not return: the run ends with an error.

Of a run in which an assertion fails nothing is said, so that a branch of which one side
does nothing but to fail is a jump to the other one, and the call itself an end. That is
assumed.
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Name, PtxKernel

NO_FAILURE = "no assertion fails: a call of __assertfail ends the run"
_CALLED = Name("__assertfail")
_Text = tuple[list[Instruction], dict[str, int]]  # a kernel's code and labels


def without_failures(kernel: PtxKernel) -> _Text | None:
    """Its code and labels, without the branches to what fails; None where nothing
    does.
    """
    code, labels = kernel.instructions, kernel.labels
    if not any(map(_is_failure, code)):
        return None
    failing = [_fails(kernel, pc) for pc in range(len(code))] + [False]
    found = [_ended(one) if failing[pc] else one for pc, one in enumerate(code)]
    jumps = {**labels}
    for pc, ins in enumerate(found):
        if ins.parts[0] != "bra" or ins.guard is None:
            continue
        sides = failing[_target(ins, labels)], failing[pc + 1]
        if sides == (True, False):
            jumps[f"@{pc}"] = pc + 1  # no name in the text has this form
            found[pc] = ins._replace(guard=None, operands=(Name(f"@{pc}"),))
        elif sides == (False, True):
            found[pc] = ins._replace(guard=None)
    return found, jumps


def _target(ins: Instruction, labels: dict[str, int]) -> int:
    operand = ins.operands[0]
    return labels.get(operand.name, -1) if isinstance(operand, Name) else -1


def _ended(ins: Instruction) -> Instruction:
    return ins._replace(parts=("exit",), operands=(), guard=None)


def _is_failure(ins: Instruction) -> bool:
    is_call = ins.parts[0] == "call" and ins.guard is None
    return is_call and ins.operands[:1] == (_CALLED,)


def _fails(kernel: PtxKernel, pc: int) -> bool:
    """Whether threads that come here do nothing but to call it."""
    met: set[int] = set()
    while 0 <= pc < len(kernel.instructions) and pc not in met:
        met.add(pc)
        ins = kernel.instructions[pc]
        if _is_failure(ins):
            return True
        is_jump = ins.parts[0] == "bra"
        if ins.guard is not None or not (is_jump or _is_argument(ins)):
            return False
        pc = _target(ins, kernel.labels) if is_jump else pc + 1
    return False


def _is_argument(ins: Instruction) -> bool:
    return ins.parts[0] in ("mov", "cvta") or ins.parts[:2] == ("st", "param")
