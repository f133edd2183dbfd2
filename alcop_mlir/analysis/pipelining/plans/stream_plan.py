"""The pipeline of a loop as a value: `StreamPlan`, and its form as an attribute.

    #alcop.pipeline<{
      streams = [{name = "copy", lead = 2}, {name = "load", steps = 1},
                 {name = "compute"}],
      rings = [{slots = 3}],
      ops = [{op = 0, name = "memref.copy", stream = "copy", kind = "fill", ring = 0},
             {op = 2, name = "scf.for", stream = "compute", kind = "loop"},
             {op = 1, name = "vector.transfer_read", stream = "load", kind = "read",
              ring = 0}],
      tail = "wrap"}>

`op = 1` is the op that has `alcop.op = 1`, in the loop's block or in that of an inner
loop of the plan: a position would name another op once a pass inserts or erases one.
`ops` are in the order of the steady state. The last stream is the arithmetic, with no
lead: what `ops` does not name belongs to it. Ops without effects belong to each stream
that needs them. What is 0 or the default is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import cached_property
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.schedule import MAX_SHARED_STAGES

COPY, LOAD, COMPUTE = "copy", "load", "compute"
# What an op of a plan does with its ring; or else.
FILL, READ = "fill", "read"
ACQUIRE, COMMIT, WAIT, RELEASE = "acquire", "commit", "wait", "release"
STORE = "store"  # fills a ring by ordinary stores, not asynchronously
FETCH = "fetch"  # a load from global memory into registers
LOOP = "loop"  # an inner loop, whose iterations are fragment steps
EFFECT = "effect"
WITH_RING = (FILL, STORE, ACQUIRE, COMMIT, WAIT, RELEASE)
KINDS = (*WITH_RING, READ, FETCH, LOOP, EFFECT)
GROUPS, MBARRIER = "groups", "mbarrier"
SYNCHRONISATIONS = (GROUPS, MBARRIER)
PREDICATED, WRAP = "predicated", "wrap"
TAILS = (PREDICATED, WRAP)


@frozen
class Stream:
    """Ops that run at one lead: so long before the arithmetic of their iteration.

    lead, steps: iterations, and fragment steps beyond these
    warps:       of the role that alone runs the stream; 0 where all threads run it
    in_flight:   groups of matrix multiplications that it leaves unfinished (wgmma)
    turns:       groups of as many warps as compute a tile, which take tiles in turn
    """

    name: str
    lead: int = 0
    steps: int = 0
    warps: int = 0
    in_flight: int = 0
    turns: int = 1

    @property
    def tiles(self) -> int:
        """Iterations of the lead, a part of one counting as one."""
        return self.lead + (self.steps > 0)

    @property
    def is_early(self) -> bool:
        """Whether it runs before the arithmetic."""
        return self.tiles > 0


@frozen
class Ring:
    """The slots of the buffers that are filled and freed together, and what orders it.

    sync: "groups": commit groups and barriers; "mbarrier": a full and an empty one per
          slot
    """

    slots: int
    sync: str = GROUPS


@frozen
class StreamOp:
    """An op of a plan: the number that it has as `alcop.op`, and what the op must be.

    ring: of `StreamPlan.rings`; -1 for none
    """

    op: int
    name: str
    stream: str
    kind: str
    ring: int = -1


@frozen
class StreamPlan:
    """How the streams of a loop run; `ops` in the order of the steady state.

    tail: "predicated", or "wrap": at its end a stream starts again at the first tile
    noalias: whether arguments of the kernel never overlap, which whoever planned knew
    """

    streams: tuple[Stream, ...]
    ops: tuple[StreamOp, ...]
    rings: tuple[Ring, ...] = ()
    tail: str = PREDICATED
    noalias: bool = False

    def stream(self, op: StreamOp) -> Stream:
        """The stream that `op` belongs to."""
        return self._by_name[op.stream]

    @cached_property
    def _by_name(self) -> dict[str, Stream]:
        return {stream.name: stream for stream in self.streams}

    @property
    def has_roles(self) -> bool:
        """Whether streams are roles of warps."""
        return any(stream.warps for stream in self.streams)


def to_parameters(part: Any) -> dict[str, Any]:
    """The parameters of `#alcop.pipeline<{...}>`, which `from_parameters` reads.

    part: a plan, or a part of one; fields that have the default are left out
    """
    return {
        one.name: list(map(to_parameters, value)) if type(value) is tuple else value
        for one in fields(part)
        if (value := getattr(part, one.name)) != one.default
    }


def from_parameters(loop: ir.Operation, parameters: dict[str, Any]) -> StreamPlan:
    """The plan; PassError at `loop` where it is not one."""
    parts = {"streams": Stream, "ops": StreamOp, "rings": Ring}
    given: dict[str, Any] = {"ops": [], **parameters}
    for name, kind in parts.items():
        items = given.get(name, [])
        if not isinstance(items, list):
            raise wrong(loop, f"{name} is {items}, expected a list")
        given[name] = tuple(
            _part(loop, f"{name}[{number}]", kind, item)
            for number, item in enumerate(items)
        )
    plan = _part(loop, "", StreamPlan, given)
    _check(loop, plan)
    return plan


def _part(loop: ir.Operation, where: str, kind: type, given: Any) -> Any:
    """A value of the dataclass `kind` of the fields in `given`."""
    if not isinstance(given, dict):
        raise wrong(loop, f"{where} is {given}, expected a dictionary")
    known = _KNOWN[kind]
    for name, value in given.items():
        at = f"{where}.{name}".lstrip(".")
        wanted = known.get(name)
        if wanted is None:
            raise wrong(loop, f"has '{at}', expected {', '.join(known)}")
        if type(value) is not wanted or (wanted is int and value < 0):
            raise wrong(loop, f"{at} is {value}, expected {_TYPE_TEXT[wanted]}")
    missing = [name for name in _REQUIRED[kind] if name not in given]
    if missing:
        raise wrong(loop, f"{where} lacks {', '.join(missing)}".lstrip())
    return kind(**given)


_TYPES = {"bool": bool, "int": int, "str": str}
_TYPE_TEXT = {
    bool: "true or false",
    int: "an integer from 0 on",
    str: "a string",
    tuple: "a list",
}
# The types of each part's fields.
_KNOWN = {
    kind: {one.name: _TYPES.get(str(one.type), tuple) for one in fields(kind)}
    for kind in (Stream, Ring, StreamOp, StreamPlan)
}
_REQUIRED = {
    kind: [one.name for one in fields(kind) if one.default is MISSING]
    for kind in _KNOWN
}


def _check(loop: ir.Operation, plan: StreamPlan) -> None:
    """PassError where parts of the plan do not fit each other."""
    names = [stream.name for stream in plan.streams]
    for what, values in (
        ("streams of one name", names),
        ("ops of one number", [op.op for op in plan.ops]),
    ):
        if len(set(values)) != len(values):
            raise wrong(loop, f"has {what}: {', '.join(map(str, values))}")
    if not names or plan.streams[-1].is_early:
        raise wrong(loop, "has no stream without a lead at the end of its streams")
    _check_one_of(loop, "tail", plan.tail, " or ", TAILS)
    for number, ring in enumerate(plan.rings):
        where = f"rings[{number}]"
        if not 2 <= ring.slots <= MAX_SHARED_STAGES:
            expected = f"an integer from 2 to {MAX_SHARED_STAGES}"
            raise wrong(loop, f"{where}.slots is {ring.slots}, expected {expected}")
        _check_one_of(loop, f"{where}.sync", ring.sync, " or ", SYNCHRONISATIONS)
    for number, op in enumerate(plan.ops):
        where, rings = f"ops[{number}]", len(plan.rings)
        _check_one_of(loop, f"{where}.kind", op.kind, ", ", KINDS)
        _check_one_of(loop, f"{where}.stream", op.stream, ", ", names)
        if op.ring >= rings:
            raise wrong(loop, f"{where}.ring is {op.ring}, there are {rings} rings")
        if op.kind in WITH_RING and op.ring < 0:
            raise wrong(loop, f"{where}, '{op.kind}', lacks ring")


def _check_one_of(
    loop: ir.Operation, where: str, value: str, joint: str, known: Sequence[str]
) -> None:
    if value not in known:
        expected = ("one of " if joint == ", " else "") + joint.join(known)
        raise wrong(loop, f"{where} is '{value}', expected {expected}")


def wrong(loop: ir.Operation, why: str) -> PassError:
    """The error of a plan that cannot be read."""
    return PassError(loop, f"alcop.pipeline: {why}")
