"""Branches to `__assertfail`, which does not return: nobody goes there.

Of a run in which an assertion fails nothing is said; that is assumed.
"""

from __future__ import annotations

from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Name, PtxKernel

NO_FAILURE = "no assertion fails: a call of __assertfail ends the run"
_CALLED = Name("__assertfail")


def without_failures(kernel: PtxKernel) -> tuple[list[Instruction], bool]:
    """Its code, in which no branch goes where threads do nothing but to fail; and
    whether any may.
    """
    found, failing = [*kernel.instructions], _failing(kernel)
    for pc, ins in enumerate(found):
        if ins.parts[0] != "bra" or ins.guard is None:
            continue
        jumps, goes_on = (one in failing for one in (_target(kernel, ins), pc + 1))
        if jumps and not goes_on:
            found[pc] = ins._replace(parts=("nop",), operands=(), guard=None)
        elif goes_on and not jumps:
            found[pc] = ins._replace(guard=None)
    return found, bool(failing)


def _failing(kernel: PtxKernel) -> set[int]:
    """The instructions from which on all that is done is to make arguments of it."""
    found: set[int] = set()
    count = -1
    while len(found) > count:
        count = len(found)
        for pc, ins in enumerate(kernel.instructions):
            kind, following = ins.parts[0], pc + 1
            if kind == "bra":
                following = _target(kernel, ins)
            is_step = kind in ("bra", "mov", "cvta") or ins.parts[:2] == ("st", "param")
            is_failure = kind == "call" and ins.operands[:1] == (_CALLED,)
            if ins.guard is None and (is_failure or (is_step and following in found)):
                found.add(pc)
    return found


def _target(kernel: PtxKernel, ins: Instruction) -> int:
    operand = ins.operands[0]
    return kernel.labels.get(operand.name, -1) if isinstance(operand, Name) else -1
