"""What is left by code of which it is not known which threads run it.

Each register that it writes is made of all that may flow there, and of what decides
whether it runs: elements of the same indices, or nobody knows.
"""

from __future__ import annotations

from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.placed.elements import joined
from alcop_mlir.checker.placed.kinds import Whole
from alcop_mlir.checker.placed.moves import Moves
from alcop_mlir.checker.placed.tags import UNKNOWN
from alcop_mlir.checker.ptx.flow import Region
from alcop_mlir.checker.ptx.instructions import Instruction

_OTHERS = ("ld", "atom", "shfl", "mma", "call")  # that leave what others have


def left(
    moves: Moves, region: Region, test: str, live: set[str] | None
) -> dict[str, Tags]:
    """By register that it writes.

    test: the predicate that decides whether it runs
    live: registers of which it may leave, or use, what they held before; None where
          nobody knows
    """
    found: dict[str, Tags] = {}
    known: dict[frozenset[str], Whole] = {}
    nothing: dict[str, frozenset[str] | None] = dict.fromkeys(region.written)
    every = nothing if live is None else _sources(region, live)
    for name, sources in every.items():
        size = moves.machine.kernel.width(name) // 8
        if sources is None:
            found[name] = moves.nothing(size, UNKNOWN)
            continue
        key = sources | {test.lstrip("!")}
        if key not in known:
            known[key] = joined(moves.book, [_whole(moves, one) for one in sorted(key)])
        found[name] = moves.book.packed(known[key], size)
    return found


def _whole(moves: Moves, name: str) -> Whole:
    """The one element that a register holds."""
    size = moves.machine.kernel.width(name) // 8
    return moves.book.whole(moves.operand(name, size), size)


def _sources(region: Region, live: set[str]) -> dict[str, frozenset[str] | None]:
    """By register that is written, those from outside that may flow there; None: what
    is loaded may.
    """
    found: dict[str, frozenset[str] | None] = {
        name: frozenset({name} & live) for name in region.written
    }
    grows = True
    while grows:
        grows = False
        for ins in region.code:
            more = _read(ins, found)
            for name in ins.results:
                before = found[name]
                after = None if before is None or more is None else before | more
                grows |= after != before
                found[name] = after
    tests = [_of(ins.guard.lstrip("!"), found) for ins in region.code if ins.guard]
    if None in tests:
        return dict.fromkeys(found)
    every = frozenset[str]().union(*(one for one in tests if one is not None))
    return {n: None if one is None else one | every for n, one in found.items()}


def _read(
    ins: Instruction, found: dict[str, frozenset[str] | None]
) -> frozenset[str] | None:
    if ins.parts[0].startswith(_OTHERS):
        return None
    every = [_of(name, found) for name in ins.reads]
    if None in every:
        return None
    return frozenset[str]().union(*(one for one in every if one is not None))


def _of(name: str, found: dict[str, frozenset[str] | None]) -> frozenset[str] | None:
    return found.get(name, frozenset({name} if name[:1] == "%" else ()))
