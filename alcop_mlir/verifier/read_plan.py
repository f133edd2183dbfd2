"""Plans as the verifier reads them: the attribute of a loop, and the ops that it names.

    scf.for ... attributes {alcop.pipeline = #alcop.pipeline<{streams, rings, ops}>} {
      ... {alcop.op = 0}      // the op that is named 0

Each op that is named is there once, in the loop or in one that the plan names too, and
is what the plan says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.violations import Violation

PLAN, NUMBER = "alcop.pipeline", "alcop.op"
KEPT = "effect"  # the kind of an op that is run as it is
IN_PLACE = (KEPT, "store")
FETCH = "fetch"
LOOP = "loop"


@dataclass(frozen=True)
class Lead:
    """How early an op runs: iterations, and whether by a part of one more."""

    whole: int = 0
    part: bool = False


@dataclass(frozen=True)
class Entry:
    """What a plan says of one op; `place` is its number in the order."""

    number: int
    name: str
    kind: str
    ring: int
    lead: Lead
    place: int


@dataclass
class Plan:
    """A plan as this file reads it."""

    loop: Any
    entries: list[Entry]
    slots: list[int]
    last_in_flight: int


def dictionary(attribute: Any) -> dict[str, Any]:
    """The fields of a dictionary or of the attribute around it; none of another."""
    parameters = getattr(attribute, "parameters", attribute).maybe_downcast()
    if not isinstance(parameters, ir.DictAttr):
        return {}
    return {named.name: named.attr.maybe_downcast() for named in parameters}


def read_plan(loop: ir.Operation, parameters: dict[str, Any]) -> Plan:
    """The plan of a loop.

    Raises KeyError, AttributeError, TypeError, IndexError: it is none of ours.
    """
    leads: dict[str, Lead] = {}
    in_flight = 0
    for item in parameters["streams"]:
        stream = dictionary(item)
        steps = _number(stream, "steps")
        leads[stream["name"].value] = Lead(_number(stream, "lead"), steps > 0)
        in_flight = _number(stream, "in_flight")
    entries = [
        Entry(
            _number(op, "op"),
            op["name"].value,
            op["kind"].value,
            _number(op, "ring", -1),
            leads[op["stream"].value],
            place,
        )
        for place, op in enumerate(map(dictionary, parameters.get("ops", [])))
    ]
    rings = map(dictionary, parameters.get("rings", []))
    slots = [_number(ring, "slots") for ring in rings]
    if min(slots, default=1) < 1:
        raise TypeError(f"{min(slots)} slots")
    return Plan(loop, entries, slots, in_flight)


def _number(fields: dict[str, Any], name: str, default: int = 0) -> int:
    value = fields[name].value if name in fields else default
    if type(value) is not int:
        raise TypeError(f"{name} is {value}")
    return value


def named_ops(plan: Plan) -> tuple[list[Violation], dict[Any, Entry]]:
    """The ops that the plan names; what is wrong with numbers and names."""
    entries = {entry.number: entry for entry in plan.entries}
    if len(entries) != len(plan.entries):
        return [Violation(plan.loop, "its plan names an op twice")], {}
    found: dict[int, Any] = {}
    wrong: list[Violation] = []
    for op in inside(plan.loop):
        if NUMBER not in op.attributes or not _is_of(op, plan.loop, found):
            continue
        number = op.attributes[NUMBER].value
        if number in found:
            wrong.append(Violation(op, f"is numbered {number}, as another op"))
        elif number not in entries:
            wrong.append(Violation(op, f"is numbered {number}, which no plan names"))
        elif entries[number].name != op.name:
            wrong.append(Violation(op, f"is planned as '{entries[number].name}'"))
        found[number] = op
    wrong += [
        Violation(plan.loop, f"its plan names op {number}, which is not there")
        for number in entries
        if number not in found
    ]
    return wrong, {op: entries[number] for number, op in found.items() if not wrong}


def _is_of(op: ir.Operation, loop: ir.Operation, found: dict[int, Any]) -> bool:
    """Whether `op` is in the loop's block, or in that of a loop that the plan names."""
    parent = op.parent.operation
    return parent == loop or (parent.name == "scf.for" and parent in found.values())


def is_in(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether `op` is in a region of `loop`, however deep."""
    parent = op.parent
    while parent is not None:
        if parent.operation == loop:
            return True
        parent = parent.operation.parent
    return False
