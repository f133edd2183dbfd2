"""Which tiles `mma.sync` multiplies, and to which accumulators it adds them.

PTX ISA "Matrix Fragments for mma.m16n8k..": which element each register of a lane has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.checker import terms
from alcop_mlir.checker.instructions import Instruction
from alcop_mlir.checker.moves import Moves, names_of, type_bytes
from alcop_mlir.checker.registers import WARP
from alcop_mlir.checker.tags import UNKNOWN, ZERO, Element, Misplaced, Result, Tags
from alcop_mlir.checker.terms import Term

_SHAPE = re.compile(r"m16n8k(\d+)")
_ROWS, _COLUMNS = 16, 8
_NONE = -1  # instead of an index: a zero


@dataclass(frozen=True, eq=False)
class Tile:
    """Of each warp: what its lines are, and where they are along the sum.

    lines: by loop that is not summed, a term and a number for each line; equal ones
           are one object
    along: by position along the sum, the term of the index there and a number
    first: the least of these numbers; count: how many there are, of which all follow:
           at other positions there are zeros
    """

    array: str
    lines: dict[str, tuple[Term, np.ndarray]]
    term: Term
    along: np.ndarray
    first: int
    count: int


class Tiles:
    """Of one machine; turns: numbers of turns that are known."""

    def __init__(self, moves: Moves):
        self.moves, self.book = moves, moves.book
        self._tiles: dict[Any, tuple[list[Tags], Tile]] = {}
        self._sums: dict[Any, tuple[Any, Term, np.ndarray]] = {}
        self._places: dict[Any, list[np.ndarray]] = {}
        self._lines: dict[Any, dict[str, tuple[Term, np.ndarray]]] = {}
        self._at: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self._same: dict[bytes, np.ndarray] = {}
        self._numbers: dict[Any, np.ndarray] = {}
        lane = np.arange(moves.threads) % WARP
        self._group, self._place = lane // 4, lane % 4
        self._warp = np.arange(moves.threads) // WARP

    def multiplied(self, ins: Instruction, turns: dict[str, Term]) -> list[Tags]:
        """What `mma.sync` leaves; Misplaced where it adds what it should not."""
        found = next(filter(None, map(_SHAPE.fullmatch, ins.parts)), None)
        types = [type_bytes(p) for p in ins.parts[-4:]]
        is_plain = {"row", "col"} <= set(ins.parts) and "sp" not in ins.parts
        if found is None or None in types or not is_plain or len(ins.operands) != 4:
            raise Misplaced(f"not modelled: {ins.opcode}")
        (out, _), (size, _), (other, _), (start, _) = (t or (0, 0) for t in types)
        depth = int(found[1])
        if size != other or out != start or self.moves.threads % WARP:
            raise Misplaced(f"not modelled: {ins.opcode}")
        a = self._tile(names_of(ins.operands[1]), size, depth, _ROWS)
        b = self._tile(names_of(ins.operands[2]), size, depth, _COLUMNS)
        return self._summed(ins, a, b, out, turns)

    def _tile(self, names: Sequence[str], size: int, depth: int, lines: int) -> Tile:
        tags = [self.moves.operand(n, 4) for n in names]
        key = (lines, size, *map(id, tags))
        if key not in self._tiles:
            self._tiles[key] = tags, self._read(tags, size, depth, lines)
        return self._tiles[key][1]

    def _read(self, tags: list[Tags], size: int, depth: int, lines: int) -> Tile:
        each, statement = 4 // size, self.book.statement
        if len(tags) * each * WARP != lines * depth:
            raise Misplaced("not modelled: registers of a tile")
        numbers = np.concatenate([t.number for t in tags], axis=1)
        places = np.concatenate([t.place for t in tags], axis=1)
        whole = self.book.whole(Tags(numbers, places), size)
        number = self._spread(whole.number, each, depth, lines)
        index = self._spread(whole.at, each, depth, lines)
        zero = number[0, 0] == ZERO
        if ((number == ZERO) != zero).any():
            raise Misplaced("it multiplies rows of which some have zeros")
        if zero.all():
            return Tile("", {}, {}, np.full(index.shape[::2], _NONE), 0, 0)
        kind = self.book.kinds[int(number[0, 0, ~zero][0])]
        is_one = (number[:, :, ~zero] == number[0, 0, ~zero][0]).all()
        if not isinstance(kind, Element) or not is_one:
            raise Misplaced("it multiplies what is not known to be of one array")
        if kind.array not in (statement.lhs, statement.rhs):
            raise Misplaced(f"it multiplies elements of {kind.array}")
        loops = self.book.loops(kind, index)
        term, found = loops.pop(statement.reduced)
        along = np.where(zero, _NONE, found[:, 0, :])
        if (found[:, :, ~zero] != found[:, :1, ~zero]).any():
            raise Misplaced("rows of a tile are at several places along the sum")
        order = np.sort(along[:, ~zero], axis=1)
        first, count = int(order.min()), order.shape[1]
        if (order - first != np.arange(count)).any():
            raise Misplaced("a tile has no neighbours along the sum")
        loops = {n: (t, v[:, :, ~zero]) for n, (t, v) in loops.items()}
        if any((v != v[:, :, :1]).any() for _, v in loops.values()):
            raise Misplaced("a row of a tile is of several rows of an array")
        rows = {n: (t, v[:, :, 0]) for n, (t, v) in loops.items()}
        key = tuple((n, terms.frozen(t), v.tobytes()) for n, (t, v) in rows.items())
        rows = self._lines.setdefault((kind.array, lines, key), rows)
        return Tile(kind.array, rows, term, along, first, count)

    def _spread(
        self, held: np.ndarray, each: int, depth: int, lines: int
    ) -> np.ndarray:
        """By warp, line and position along the sum, from registers of lanes."""
        key = each, depth, lines
        if key not in self._at:
            item = np.arange(held.shape[1])
            register, halves = item // each, lines // 8
            line = self._group[:, None] + 8 * (register % halves)
            at = self._place[:, None] * each + item % each
            self._at[key] = line, at + 4 * each * (register // halves)
        found = np.zeros((self.moves.threads // WARP, lines, depth), np.int64)
        line, at = self._at[key]
        found[self._warp[:, None], line, at] = held
        return found

    def _summed(
        self, ins: Instruction, a: Tile, b: Tile, size: int, turns: dict[str, Term]
    ) -> list[Tags]:
        if terms.frozen(a.term) != terms.frozen(b.term) or (a.along != b.along).any():
            raise Misplaced("it multiplies elements of several indices of the sum")
        if not a.count:
            return [self.moves.operand(name, 4) for name in names_of(ins.operands[3])]
        term, index = self._sum_of(a, b)
        before = terms.plus(a.term, terms.number(a.first))
        after = terms.plus(before, terms.number(a.count))
        places = self._expected(a, b, index, size, len(names_of(ins.operands[3])))
        kinds = {
            self._started(name, size, terms.frozen(term), place)
            for name, place in zip(names_of(ins.operands[3]), places, strict=True)
        }
        if len(kinds) != 1:
            raise Misplaced("accumulators that do not belong together")
        ((upto, reads),) = kinds
        less = terms.minus(dict(upto), before)
        if terms.frozen(terms.replaced(less, turns)):
            raise Misplaced("a sum that leaves something out, or adds it again")
        kind = Result(terms.frozen(term), size, terms.frozen(after), reads)
        return [self._tags(kind, place) for place in places]

    def _expected(
        self, a: Tile, b: Tile, index: np.ndarray, size: int, count: int
    ) -> list[np.ndarray]:
        """By register, the offsets of what two tiles make; equal ones are one."""
        key = id(a.lines), id(b.lines), size, count
        if key not in self._places:
            many, grain = 4 // size, self.book.grain
            inside = np.arange(size // grain) * grain
            found = []
            for number in range(count):
                flat = number * many
                row = self._group + 8 * (flat // 2)
                columns = (2 * self._place + (flat + i) % 2 for i in range(many))
                mine = np.stack([index[self._warp, row, c] for c in columns], axis=1)
                place = (mine[:, :, None] * size + inside).reshape(len(mine), -1)
                found.append(self._same.setdefault(place.tobytes(), place))
            self._places[key] = found
        return self._places[key]

    def _sum_of(self, a: Tile, b: Tile) -> tuple[Term, np.ndarray]:
        """The elements of the sum that two tiles are for."""
        key = id(a.lines), id(b.lines)
        if key not in self._sums:
            statement = self.book.statement
            if {a.array, b.array} != {statement.lhs, statement.rhs}:
                raise Misplaced("it multiplies elements of one array")
            loops: dict[str, tuple[Term, Any]] = {}
            for name, (term, value) in b.lines.items():
                loops[name] = term, value[:, None, :]
            for name, (term, value) in a.lines.items():
                own = term, value[:, :, None]
                other, number = loops.get(name, own)
                if (
                    terms.frozen(other) != terms.frozen(term)
                    or (number != own[1]).any()
                ):
                    raise Misplaced(f"it multiplies elements of several {name}")
                loops[name] = own
            term, index = self.book.result(loops)
            shape = (self.moves.threads // WARP, _ROWS, _COLUMNS)
            self._sums[key] = (
                (a.lines, b.lines),
                dict(term),
                np.broadcast_to(index, shape),
            )
        _, term, index = self._sums[key]
        return term, index

    def _started(
        self, name: str, size: int, term: Any, place: np.ndarray
    ) -> tuple[Any, frozenset[str]]:
        """Up to where a sum has come, and what it has read."""
        tags = self.moves.operand(name, 4)
        number = int(tags.number[0, 0])
        if number == UNKNOWN or (tags.number != number).any():
            raise Misplaced("a sum of what is not known")
        if number == ZERO:
            return (), frozenset()
        kind = self.book.kinds[number]
        if kind is None or kind.size != size:
            raise Misplaced("a sum that starts from a number")
        if isinstance(kind, Result):
            if kind.term != term or not _is_equal(tags.place, place):
                raise Misplaced("a tile is added to another element's sum")
            return kind.upto, kind.reads
        if kind.array != self.book.statement.init:
            raise Misplaced(f"a sum that starts from {kind.array}")
        whole = self.book.whole(tags, size)
        own, index = self.book.result(self.book.loops(kind, whole.at))
        first = place[:, :: size // self.book.grain] // size
        if (whole.number != number).any() or own != term or (index != first).any():
            raise Misplaced("a sum starts from another element")
        return (), frozenset({kind.array})

    def _tags(self, kind: Result, place: np.ndarray) -> Tags:
        key = self.book.number(kind), place.shape
        if key not in self._numbers:
            self._numbers[key] = np.full(place.shape, key[0], np.int32)
        return Tags(self._numbers[key], place)


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one is other or np.array_equal(one, other)
