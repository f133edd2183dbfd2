"""Where an alarm is: the other line, the byte, and the turns of the loops around."""

from __future__ import annotations

from dataclasses import replace

from alcop_mlir.certificate.heads import turn_symbol
from alcop_mlir.certificate.linear import Linear
from alcop_mlir.certificate.machine import Machine
from alcop_mlir.certificate.verdicts import Alarm


def placed(alarm: Alarm, machine: Machine) -> Alarm:
    """The alarm with the line that it meets, and the turns of loops around it."""
    found = alarm.finding
    other = found.other
    line = None if other is None else machine.code.instructions[other].line
    block = machine.code.block_of[min(machine.pc, machine.code.end)]
    turns = tuple(
        (machine.code.instructions[head].line, _turn(machine, head))
        for head, body in sorted(machine.code.loops.items())
        if block in body
    )
    address = found.address
    if address is not None and found.rule not in ("bounds", "alignment"):
        address *= machine.grain  # of a cell
    return Alarm(replace(found, other=line, address=address, turns=turns))


def _turn(machine: Machine, head: int) -> str:
    """In which turn the state is, as far as its facts tell."""
    state = machine.state
    turn = Linear({turn_symbol(head): 1})
    refuted = machine.refuter.refuted
    for number in range(16):
        if not refuted(state.facts, state.clauses, ((-turn + number,),)):
            is_only = refuted(state.facts, state.clauses, ((turn - number - 1,),))
            return f"turn {number}" if is_only else f"turn {number} or later"
    return "a later turn"
