"""Which tiles `mma.sync` multiplies, and to which accumulators it adds them.

PTX ISA "Matrix Fragments for mma.m16n8k..": which element each register of a lane has.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from alcop_mlir.checker.form.statement import SCORES
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen, Tags
from alcop_mlir.checker.machine.registers import WARP
from alcop_mlir.checker.placed.fragments import Fragments, Tile
from alcop_mlir.checker.placed.kinds import Element, Result
from alcop_mlir.checker.placed.moves import Moves, names_of, type_bytes
from alcop_mlir.checker.placed.origins import Misplaced
from alcop_mlir.checker.placed.tags import UNKNOWN, ZERO
from alcop_mlir.checker.ptx.instructions import Instruction

_SHAPE = re.compile(r"m16n8k(\d+)")
_ROWS, _COLUMNS = 16, 8
# Of a register, in each thread: offsets, and where they are known; None: everywhere.
_Places = tuple[np.ndarray, np.ndarray | None]


class Tiles:
    """Of one machine; turns: numbers of turns that are known."""

    def __init__(self, moves: Moves):
        self.moves, self.book, self.fragments = moves, moves.book, Fragments(moves)
        self._sums: dict[Any, tuple[Any, Frozen, np.ndarray, bool]] = {}
        self._made: dict[Any, tuple[Any, list[Term], list[Tags]]] = {}
        self._asked: list[Term] = []
        self._places: dict[Any, list[_Places]] = {}
        self._numbers: dict[Any, np.ndarray] = {}
        # Of arrays that `_numbers` keeps: the number, and where (None: everywhere).
        self._uniform: dict[int, tuple[int, np.ndarray | None]] = {}
        lane = np.arange(moves.threads) % WARP
        self._group, self._place = lane // 4, lane % 4
        self._warp = np.arange(moves.threads) // WARP

    def multiplied(self, ins: Instruction, turns: dict[str, Term]) -> list[Tags]:
        """What `mma.sync` leaves; Misplaced where it adds what it should not."""
        form = _form(ins.opcode)
        if form is None or len(ins.operands) != 4 or self.moves.threads % WARP:
            raise Misplaced("not modelled")
        depth, size, out = form
        a = self.fragments.tile(names_of(ins.operands[1]), size, depth, _ROWS)
        b = self.fragments.tile(names_of(ins.operands[2]), size, depth, _COLUMNS)
        held = [self.moves.operand(name, 4) for name in names_of(ins.operands[3])]
        return self._summed(a, b, held, out, turns)

    def _summed(
        self, a: Tile, b: Tile, held: list[Tags], size: int, turns: dict[str, Term]
    ) -> list[Tags]:
        """What accumulators hold afterwards: of the same ones and the same tiles the
        same, where what was asked then is so here too.
        """
        arrays = (id(array) for tags in held for array in tags)
        key = self.book.origins.key, size, id(a), id(b), *arrays
        if key in self._made:
            _, asked, found = self._made[key]
            if all(self._is_zero(less, turns) for less in asked):
                return found
        self._asked = []
        found = self._added(a, b, held, size, turns)
        # With what the key names, so that each keeps its id.
        self._made[key] = (a, b, held), self._asked, found
        return found

    def _is_zero(self, less: Term, turns: dict[str, Term]) -> bool:
        return self.book.origins.is_zero(terms.replaced(less, turns))

    def _added(
        self, a: Tile, b: Tile, held: list[Tags], size: int, turns: dict[str, Term]
    ) -> list[Tags]:
        if not a.count or not b.count:
            # The sum has ended; or lines are beyond the end of one of the arrays.
            nothing = self.moves.nothing(4, UNKNOWN)
            if a.count != b.count:
                return [nothing for _ in held]
            return [self._kept(a, b, tags, n, size) for n, tags in enumerate(held)]
        before, count = a.place
        if not self._are_together(a, b) or not self._meet(a.place, b.place, turns):
            raise Misplaced("it multiplies elements of several indices of the sum")
        term, index, is_score = self._sum_of(a, b)
        places = self._expected(a, b, index, size, len(held))
        of = is_score, a.scale or b.scale
        kind = Result(term, size, (), frozenset(), (), *of)
        every = list(zip(held, places, strict=True))
        if all(
            tags.number is held[0].number and tags.place is place and known is None
            for tags, (place, known) in every
        ):
            every = every[:1]  # which stands for all
        started = (self._started(tags, kind, place) for tags, place in every)
        kinds = {one for one in started if one is not None}
        if len(kinds) > 1:
            raise Misplaced("accumulators that do not belong together")
        upto, reads = kinds.pop() if kinds else (before, frozenset())
        reads |= {SCORES} if is_score else frozenset()
        if not self._meet((upto, count), a.place, turns):
            raise Misplaced("a sum that leaves something out, or adds it again")
        after = terms.plus(dict(before), terms.number(count))
        kind = Result(term, size, terms.frozen(after), reads, (), *of)
        number = self.book.number(kind)
        return self._tags(number, places)

    def _kept(self, a: Tile, b: Tile, tags: Tags, number: int, size: int) -> Tags:
        """An accumulator to which nothing is added, as far as both tiles are 0."""
        live = a.lines.good[:, :, None] & b.lines.good[:, None]
        row, columns = self._cells(number, 4 // size)
        known = np.stack([live[self._warp, row, c] for c in columns], axis=1)
        known = np.repeat(known, size // self.book.grain, axis=1)
        numbers = np.where(known, tags.number, UNKNOWN).astype(np.int32)
        return Tags(numbers, np.where(known, tags.place, 0))

    def _cells(self, number: int, many: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """By lane, the row and the columns of a register of an accumulator."""
        flat = number * many
        row = self._group + 8 * (flat // 2)
        return row, [2 * self._place + (flat + i) % 2 for i in range(many)]

    def _are_together(self, a: Tile, b: Tile) -> bool:
        """Whether in each warp positions of both go along the sum alike."""
        if a.along is b.along:
            return True
        both = a.lines.good.any(axis=1) & b.lines.good.any(axis=1)
        return np.array_equal(a.along[both], b.along[both])

    def _meet(
        self, one: tuple[Frozen, int], other: tuple[Frozen, int], turns: dict[str, Term]
    ) -> bool:
        """Whether both begin at one index along the sum, and go as far."""
        if one == other:
            return True
        less = terms.minus(dict(one[0]), dict(other[0]))
        self._asked.append(less)
        return one[1] == other[1] and self._is_zero(less, turns)

    def _expected(
        self, a: Tile, b: Tile, index: np.ndarray, size: int, count: int
    ) -> list[_Places]:
        """By register, the offsets of what two tiles make; equal ones are one."""
        key = id(a.lines), id(b.lines), size, count
        if key not in self._places:
            many, grain = 4 // size, self.book.grain
            inside = np.arange(size // grain) * grain
            live = a.lines.good[:, :, None] & b.lines.good[:, None]
            found: list[_Places] = []
            for number in range(count):
                row, columns = self._cells(number, many)
                mine = np.stack([index[self._warp, row, c] for c in columns], axis=1)
                place = (mine[:, :, None] * size + inside).reshape(len(mine), -1)
                known = None
                if not live.all():
                    each = [live[self._warp, row, c] for c in columns]
                    known = np.repeat(np.stack(each, axis=1), len(inside), axis=1)
                    place = np.where(known, place, 0)
                place = self.book.interned(place)
                found.append((place, known))
            self._places[key] = found
        return self._places[key]

    def _sum_of(self, a: Tile, b: Tile) -> tuple[Frozen, np.ndarray, bool]:
        """The elements of the sum that two tiles are for."""
        key = id(a.lines), id(b.lines)
        if key not in self._sums:
            chain, both = self.book.statement.chain, {a.array, b.array}
            is_score = chain is not None and both == {chain.lhs, chain.rhs}
            statement = self.book.statement
            if not is_score and both != {statement.lhs, statement.rhs}:
                raise Misplaced("it multiplies elements of one array")
            loops: dict[str, tuple[Term, Any]] = {}
            for name, (term, value) in b.lines.at.items():
                loops[name] = term, value[:, None, :]
            for name, (term, value) in a.lines.at.items():
                own = term, value[:, :, None]
                other, number = loops.get(name, own)
                if (
                    terms.frozen(other) != terms.frozen(term)
                    or (number != own[1]).any()
                ):
                    raise Misplaced(f"it multiplies elements of several {name}")
                loops[name] = own
            number = self.book.score if is_score else self.book.result
            term, index = number(loops)
            shape = (self.moves.threads // WARP, _ROWS, _COLUMNS)
            self._sums[key] = (
                (a.lines, b.lines),
                term,
                np.broadcast_to(index, shape),
                is_score,
            )
        return self._sums[key][1:]

    def _started(
        self, tags: Tags, of: Result, places: _Places
    ) -> tuple[Any, frozenset[str]] | None:
        """Up to where a sum has come, and what it has read; None: nobody knows of
        which elements it is. The sum is of that kind.
        """
        size, term = of.size, of.term
        place, known = places
        number, where = self._uniform.get(id(tags.number), (UNKNOWN, None))
        is_term = self.book.origins.is_same
        if number == UNKNOWN or (where is not None and where is not known):
            numbers = tags.number if known is None else tags.number[known]
            if not numbers.size:
                return None
            number = int(numbers.flat[0])
            if number == UNKNOWN or (numbers != number).any():
                raise Misplaced("a sum of what is not known")
        if number == ZERO:
            return (), frozenset()
        kind = self.book.kinds[number]
        if not isinstance(kind, Element | Result) or kind.size != size:
            raise Misplaced("a sum that starts from a number")
        if isinstance(kind, Result):
            if (kind.is_score, kind.scale) != (of.is_score, of.scale):
                raise Misplaced("a sum of what is computed with other columns")
            if kind.first:
                raise Misplaced("a sum that leaves something out, or adds it again")
            same, held = is_term(kind.term, term), tags.place
            less = 0 if same else self.book.origins.shift(kind.term, term)
            held = held + less * size if less else held
            if less is None or not _is_equal(held, place, known):
                raise Misplaced("a tile is added to another element's sum")
            return kind.upto, kind.reads
        if kind.array != self.book.statement.init:
            raise Misplaced(f"a sum that starts from {kind.array}")
        whole, each = self.book.whole(tags, size), size // self.book.grain
        own, index = self.book.result(self.book.loops(kind, whole.at))
        at = None if known is None else known[:, ::each]
        is_there = _is_equal(index, place[:, ::each] // size, at)
        is_one = _is_equal(whole.number, np.full_like(whole.number, number), at)
        if not is_one or not is_term(own, term) or not is_there:
            raise Misplaced("a sum starts from another element")
        return (), frozenset({kind.array})

    def _tags(self, number: int, places: list[_Places]) -> list[Tags]:
        """Of registers that hold elements of one kind; equal arrays are one object."""
        each = {id(known): (place.shape, known) for place, known in places}
        every = {one: self._numbered(number, *of) for one, of in each.items()}
        return [Tags(every[id(known)], place) for place, known in places]

    def _numbered(
        self, number: int, shape: tuple[int, ...], known: np.ndarray | None
    ) -> np.ndarray:
        key = number, shape, id(known)  # which `_places` keeps
        if key not in self._numbers:
            found = np.full(shape, number, np.int32)
            if known is not None:
                found[~known] = UNKNOWN
            self._numbers[key] = found
            self._uniform[id(found)] = number, known
        return self._numbers[key]


@cache
def _form(opcode: str) -> tuple[int, int, int] | None:
    """How far tiles go along the sum, and bytes of an element of them, and of the sum;
    None: not modelled.
    """
    parts = opcode.split(".")
    found = next(filter(None, map(_SHAPE.fullmatch, parts)), None)
    types = [type_bytes(p) for p in parts[-4:]]
    is_plain = {"row", "col"} <= set(parts) and "sp" not in parts
    if found is None or None in types or not is_plain:
        return None
    (out, _), (size, _), (other, _), (start, _) = (t or (0, 0) for t in types)
    return (int(found[1]), size, out) if size == other and out == start else None


def _is_equal(one: np.ndarray, other: np.ndarray, where: np.ndarray | None) -> bool:
    """Whether two are the same where they are looked at; None: everywhere."""
    if one is other:
        return True
    if where is None:
        return np.array_equal(one, other)
    return not (where & (one != other)).any()
