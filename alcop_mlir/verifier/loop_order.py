"""Whether a plan leaves in order what a loop does to memory, for `plans.py`.

- `unordered`: two accesses of the same memory, of which one writes, that a barrier of
  the loop's own block is between, as in a cycle, and of those that are left none
- `overwritten`: an op that runs early reads what an earlier iteration writes

    memref.store %s, %P[%t] ; gpu.barrier ; memref.load %P[%u]    // must be left

Memory is the same where it has the same root: arguments are taken to be distinct, as
plans are made where that was promised too. Static subviews that do not overlap are
distinct, and what is on the stack of a kernel needs no order. An op that is not known
touches all memory. What is in an op's regions counts where that op is, less barriers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import READ, accessed, inside, root
from alcop_mlir.verifier.in_turn import is_read_first
from alcop_mlir.verifier.violations import Violation

_BARRIER = "gpu.barrier"
Segment = tuple[Any | None, list["Touch"]]  # a barrier, and what follows it


class Touch(NamedTuple):
    """`op` reads or writes a part of `root`, `memref`; None for any memory.

    box: the range of indices along each dimension; None where that is not known
    """

    op: Any
    root: Any | None
    box: tuple[range, ...] | None
    writes: bool
    memref: Any | None = None


class _Memory:
    """What was touched, each part of memory once, by its root."""

    def __init__(self, touches: Iterable[Touch] = ()):
        self._touches: dict[Any, dict[Any, Touch]] = {}
        self.add(touches)

    def add(self, touches: Iterable[Touch]) -> None:
        """Touch these parts too."""
        for one in touches:
            self._touches.setdefault(one.root, {})[one.box, one.writes] = one

    def met(self, touch: Touch) -> Touch | None:
        """One that `touch` must be in order with, or None."""
        roots = self._touches if touch.root is None else (touch.root, None)
        for one in (
            one for key in roots for one in self._touches.get(key, {}).values()
        ):
            is_apart = are_apart(one.box, touch.box)
            if (one.writes or touch.writes) and not is_apart:
                return one
        return None


def unordered(
    loop: ir.Operation,
    early: Collection[Any],
    rings: Collection[Any],
    kept: Collection[Any],
    at_start: bool,
) -> Iterator[Violation]:
    """Barriers that the plan of a loop drops, but that are needed.

    early:    ops that run in iterations before their own: not in order with barriers
    rings:    buffers that the pipeline itself puts in order
    kept:     barriers that the plan leaves
    at_start: whether the pipeline has one at the start of each iteration
    """
    segments = _segments(loop, early, rings)
    barriers = {barrier for barrier, _ in segments if barrier is not None}
    if barriers <= set(kept):
        return
    # By barriers for all memory and threads alone, then by all: what a dropped one
    # orders, no weaker one does.
    full = {barrier for barrier in barriers if _is_full(barrier)}
    found: set[Any] = set()
    for of_kind in (full, barriers):
        left = of_kind & set(kept)
        for barrier, first, second in _missing(segments, of_kind, left, at_start):
            if barrier not in found:
                found.add(barrier)
                yield Violation(barrier, _needed(first, second))


def overwritten(
    loop: ir.Operation, early: Collection[Any], rings: Collection[Any]
) -> Iterator[Violation]:
    """Reads of `early` ops of what earlier iterations write; rings' buffers may be."""
    ops = _made_early(loop, early)
    reads = [t for op in ops for t in touched_by(op, rings) if not t.writes]
    if not reads:
        return
    written = [touch for touch in touched_by(loop, rings) if touch.writes]
    for read in dict.fromkeys(reads):
        met = _Memory(w for w in written if not _is_read_first(loop, read, w)).met(read)
        if met is not None:
            why = f"runs early, and reads what '{met.op.name}' writes in the loop"
            yield Violation(read.op, why)


def _is_read_first(loop: ir.Operation, read: Touch, write: Touch) -> bool:
    roots = (read.root, write.root)
    if any(one is None for one in roots) or read.root != write.root:
        return False
    return is_read_first(loop, (read.op, read.memref), (write.op, write.memref))


def _needed(first: Touch, second: Touch) -> str:
    where = first.root or second.root
    what = "memory" if where is None else f"'{getattr(where, 'type', where)}'"
    return (
        f"is not in the plan, and no barrier is left between '{first.op.name}' and "
        f"'{second.op.name}' of {what}"
    )


def _missing(
    segments: list[Segment],
    barriers: set[Any],
    left: set[Any],
    at_start: bool,
) -> Iterator[tuple[Any, Touch, Touch]]:
    """Dropped barriers, and two touches that nothing is left between."""
    before, here, dropped = _Memory(), list[Touch](), None
    # Round the cycle, where nothing separates iterations.
    for barrier, touches in segments if at_start else [*segments, *segments]:
        if barrier in left:
            before, here, dropped = _Memory(), [], None
        elif barrier in barriers:
            before.add(here)
            here, dropped = [], barrier
        here += touches
        pairs = ((before.met(touch), touch) for touch in touches)
        pair = next(((one, other) for one, other in pairs if one is not None), None)
        if pair is not None:
            yield dropped, *pair


def _segments(
    loop: ir.Operation, early: Collection[Any], rings: Collection[Any]
) -> list[Segment]:
    """What is touched before the first barrier, then each with what follows it."""
    segments: list[Segment] = [(None, [])]
    for op in loop.regions[0].blocks[0].operations:
        if op.operation.name == _BARRIER:
            segments.append((op.operation, []))
        elif op.operation not in early and not _goes_along(op.operation, early):
            segments[-1][1].extend(touched_by(op.operation, rings))
    return segments


def _goes_along(op: ir.Operation, early: Collection[Any]) -> bool:
    """Whether `op` is the load of copies that run early."""
    users = [use.owner.operation for result in op.results for use in result.uses]
    return bool(users) and all(user in early for user in users)


def _is_full(barrier: ir.Operation) -> bool:
    """Whether it is for all threads of the block, and all memory."""
    scope = barrier.attributes["scope"] if "scope" in barrier.attributes else ""
    return "subgroup" not in str(scope) and "address_spaces" not in barrier.attributes


def _made_early(loop: ir.Operation, early: Collection[Any]) -> list[Any]:
    """`early`, and the ops in the loop's block that make what these use."""
    block = loop.regions[0].blocks[0]
    pending, found = [*early], dict.fromkeys(early)
    while pending:
        op = pending.pop()
        for user in (op, *inside(op)):
            for value in user.operands:
                if isinstance(value.owner, ir.Block):
                    continue
                maker = value.owner.operation
                if maker.block == block and maker not in found:
                    found[maker] = None
                    pending.append(maker)
    return list(found)


# -- touches -------------------------------------------------------------------------


def touched_by(op: Any, rings: Collection[Any]) -> list[Touch]:
    """What `op` and its regions touch; not buffers of rings, nor private memory."""
    return [
        touch
        for touch in all_touched_by(op)
        if touch.root is None
        or isinstance(touch.root, str)
        or not (touch.root in rings or is_private(touch.root))
    ]


def all_touched_by(op: Any) -> list[Touch]:
    """What `op` and its regions touch."""
    return [touch for one in (op, *inside(op)) for touch in _touches_of(one)]


def _touches_of(op: Any) -> Iterator[Touch]:
    found = accessed(op)
    if found is None:
        yield Touch(op, None, None, True)
    for memref, kind in found or ():
        whole = root(memref)
        box = _box(memref, whole)
        yield Touch(op, _named(whole), box, kind != READ, memref)


def _named(memref: ir.Value) -> Any:
    """The name of a `memref.global`, of which each op makes another value."""
    owner = memref.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "memref.get_global":
        return memref
    return str(owner.operation.attributes["name"])


def is_private(memref: ir.Value) -> bool:
    """Whether each thread has a memory of its own there."""
    owner = memref.owner
    return not isinstance(owner, ir.Block) and owner.operation.name == "memref.alloca"


def _box(memref: ir.Value, whole: ir.Value) -> tuple[range, ...] | None:
    """The indices of a static subview of `whole`."""
    if memref == whole or isinstance(memref.owner, ir.Block):
        return None
    op = memref.owner.operation
    is_static = op.name == "memref.subview" and len(op.operands) == 1
    if not is_static or op.operands[0] != whole:
        return None
    kinds = ("static_offsets", "static_sizes", "static_strides")
    return tuple(
        range(offset, offset + (size - 1) * stride + 1)
        for offset, size, stride in zip(*(op.attributes[k] for k in kinds), strict=True)
    )


def are_apart(one: tuple[range, ...] | None, other: tuple[range, ...] | None) -> bool:
    if one is None or other is None:
        return False
    pairs = zip(one, other, strict=True)
    return any(a.stop <= b.start or b.stop <= a.start for a, b in pairs)
