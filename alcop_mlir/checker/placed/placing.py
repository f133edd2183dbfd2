"""That each result is made of the right elements, and is stored where it belongs.

Registers and shared memory hold tags, see `Tags`, on the same ways that the check goes
anyway: of a listed state those that come first, and all that arrive later have to be
the same. Blocks of which a guard holds for other threads go their own way (`Classes`).
At the end, what blocks have stored has to be each output once (`Cover`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.arithmetic import Unknown, Value
from alcop_mlir.checker.machine.cases import Cases
from alcop_mlir.checker.machine.held import NO_TAGS, Held, Tags
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.predicates import is_same_value, symbols_of
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.addresses import is_stable
from alcop_mlir.checker.placed.blocks import Classes
from alcop_mlir.checker.placed.chains import kept
from alcop_mlir.checker.placed.cover import Cover
from alcop_mlir.checker.placed.gathers import Gathers
from alcop_mlir.checker.placed.kinds import Element, Fold, Result
from alcop_mlir.checker.placed.moves import Moves, names_of, type_bytes
from alcop_mlir.checker.placed.origins import Misplaced
from alcop_mlir.checker.placed.rows import stored
from alcop_mlir.checker.placed.skips import left
from alcop_mlir.checker.placed.stores import placed
from alcop_mlir.checker.placed.tags import (
    NUMBER,
    UNKNOWN,
    ZERO,
    Book,
    chosen,
    is_same,
    nothing,
)
from alcop_mlir.checker.placed.tiles import Tiles
from alcop_mlir.checker.placed.turns import (
    around,
    bounds,
    counted,
    known,
    pin,
    turn_of,
)
from alcop_mlir.checker.ptx.flow import Flow, Region, counters, numbers
from alcop_mlir.checker.ptx.instructions import Instruction, may_write
from alcop_mlir.errors import NotPlacedError


class Placing:
    """Of one check.

    first: by listed state, and blocks, the tags that came first
    cases: residues that are gone through at once, if they may be
    """

    cases: Cases | None = None

    def __init__(
        self,
        machine: Machine,
        flow: Flow,
        statement: Statement,
        gathers: Gathers | None = None,
    ):
        self.machine, self.flow, self.statement = machine, flow, statement
        every = [p for i in flow.code for p in i.parts[1:]]
        is_fine = any(t is not None and t[0] == 1 for t in map(type_bytes, every))
        is_fine |= any(one.bytes == 1 for one in statement.arrays.values())
        self.book = Book(statement, 1 if is_fine else 2)
        self.classes = Classes(machine, self.book.origins, statement.windows.keys())
        here = machine, self.book, self.classes.blocks
        self.moves = Moves(*here, numbers(flow), gathers)
        self.tiles = Tiles(self.moves)
        self.first: dict[tuple[int, bytes], Held] = {}
        self.cover = Cover(self.book)
        self.live = flow.live
        self.counters = {head: counters(flow, head) for head in flow.loops}
        self.carriers = flow.carriers

    def go(self, machine: Machine) -> None:
        """To another machine, of as many cases as it has."""
        self.machine = machine

    def start(self) -> Held:
        """Of the entry."""
        count = self.machine.shared_bytes // self.book.grain + 1
        shared = nothing(np.zeros(count))
        return Held({}, shared, blocks=self.classes.blocks.every)

    # Instructions.

    def execute(self, ins: Instruction, lanes: np.ndarray) -> None:
        """The instruction in some threads, before registers change."""
        self.book.origins.go(self.machine.state.data.blocks)
        try:
            self._execute(ins, lanes)
        except Misplaced as error:
            raise NotPlacedError(ins.told(f"{error}")) from None
        except Unknown:
            raise NotPlacedError(ins.told("not known")) from None

    def _execute(self, ins: Instruction, lanes: np.ndarray) -> None:
        first = ins.parts[0]
        if may_write(ins):
            self._write(ins, lanes)
        elif first == "cp" and ins.is_access:
            self.moves.copied(ins, lanes)
        elif ins.results:
            self.book.turns = known(self.machine.state, self.flow.loops)
            if first == "mma":
                found: list[Tags | None] = [
                    *self.tiles.multiplied(ins, self.book.turns)
                ]
            else:
                found = self.moves.results(ins)
            names = names_of(ins.operands[0])
            if len(names) < len(found) or first == "shfl":
                names = (ins.operands[0].split("|")[0].strip(),)
            for name, tags in zip(names, found, strict=False):
                self._set(name, tags, lanes)

    def _set(self, name: str, tags: Tags | None, lanes: np.ndarray) -> None:
        registers = self.machine.state.data.registers
        active = self.machine.state.lanes
        is_all = lanes is active or lanes is self.machine.every or lanes.all()
        is_all = is_all or (active is not None and lanes[active].all())
        before = registers.pop(name, None)
        if is_all or (before is None and tags is None):
            if tags is not None:
                registers[name] = tags
            return
        width = (tags or before).number.shape[1]  # type: ignore[union-attr]
        if before is None:
            before = self.moves.operand(name, width * self.book.grain)
        if tags is None or tags.number.shape != before.number.shape:
            tags = nothing(before.number)
        registers[name] = chosen(lanes, tags, before)

    def _write(self, ins: Instruction, lanes: np.ndarray) -> None:
        kind = type_bytes(ins.parts[-1])
        size = 0 if kind is None else kind[0] * kind[1]
        if ins.parts[0] != "st" or size < self.book.grain:
            raise Misplaced("not modelled")
        if not lanes.any():
            return
        names = names_of(ins.operands[1])
        parts = [self.moves.stored(n, size) for n in names]
        tags = Tags(
            np.concatenate([p.number for p in parts], axis=1),
            np.concatenate([p.place for p in parts], axis=1),
        )
        if "shared" in ins.parts:
            granules = self.moves.shared_granules(ins.operands[0], size * len(names))
            self.moves.store(granules, tags, lanes)
        elif "global" in ins.parts:
            self._put(ins, tags, lanes)
        else:
            raise Misplaced("not modelled")

    def _put(self, ins: Instruction, tags: Tags, lanes: np.ndarray) -> None:
        """A store to an output: each result where it belongs."""
        count = tags.number.shape[1] * self.book.grain
        to = self.moves.addresses.loaded(ins.operands[0], count)
        number = UNKNOWN if to is None else int(to.number[lanes][0, 0])
        kind = self.book.kinds[number]
        if to is None or not isinstance(kind, Element):
            raise Misplaced("a store to what is not known")
        if kind.array not in self.statement.outputs:
            raise Misplaced(f"a store to {kind.array}")
        place, what = self.book.whole(to, kind.size), self.book.whole(tags, kind.size)
        if (place.number[lanes] != number).any():
            raise Misplaced("a store to several arrays")
        numbers = what.number[lanes]
        if self.statement.lhs is None:
            numbers = np.where(numbers == ZERO, NUMBER, numbers)
        number, at = int(numbers.flat[0]), what.at[lanes]
        is_one = bool((numbers == number).all())
        loops = self.book.loops(kind, place.at[lanes])
        if self.statement.lhs is None:
            number, at = stored(self.book, number, at, loops, kind.size)
        result = self.book.kinds[number]
        if is_one and isinstance(result, Fold):
            term, index = kept(self.book, kind.array, number, at, loops)
        elif is_one and isinstance(result, Result):
            term, index = placed(self.book, kind.array, result, at, loops)
        else:
            raise Misplaced(f"it is not known what is stored to {kind.array}")
        data = self.machine.state.data
        each = self.cases and self.cases.parts(index, lanes)
        data.stored = (*data.stored, (kind.array, term, each or (index.ravel(),)))

    # Ways.

    def counted(self, ins: Instruction, value: Value, lanes: np.ndarray) -> Value:
        """Its result, before registers change."""
        return self.classes.counted(ins, value, lanes)

    def tell(self, state: State, ins: Instruction, is_skipped: bool) -> list[State]:
        """Before an instruction: other blocks' ways, where it does other things."""
        if not ins.guard and self.moves.addresses.is_gathered(state.pc):
            return []  # what it does not copy is 0, as it should be
        return self.classes.tell(state, ins, is_skipped)

    def narrow(self, state: State, clause: Clause) -> None:
        """What is assumed on a way holds for some blocks."""
        self.classes.narrow(state, clause)

    def skipped(self, state: State, region: Region) -> None:
        """What some threads may run, or none, that orders nothing."""
        if any(map(may_write, region.code)):
            raise NotPlacedError("which threads store them")
        for name in region.written:
            state.data.told.pop(name, None)
        block, ins = self.flow.block[state.pc], self.flow.code[state.pc]
        live: set[str] | None = None
        if region.code == [ins]:
            live = region.written
        elif ins.parts[0] == "bra" and self.flow.region(block) is region:
            starts = (self.flow.target(ins), state.pc + 1)
            live = set().union(*(self.live.get(pc, set()) for pc in starts))
        found = left(self.moves, region, ins.guard, live)
        data = state.data.registers
        data.update({n: t for n, t in found.items() if n in self.carriers})

    def unknown(self, state: State, ins: Instruction) -> None:
        """An instruction of which it is not known who executes it."""
        self.skipped(state, Region(0, [ins], frozenset()))

    def joined(
        self, mask: np.ndarray | None, arms: list[State], written: set[str]
    ) -> Held:
        """Behind two arms, that write these registers."""
        one, other = arms
        a, b = one.data, other.data
        found = dict(b.registers)
        for name in written & (a.registers.keys() | b.registers.keys()):
            first, second = a.registers.get(name), b.registers.get(name)
            width = (first or second or NO_TAGS).number.shape[1]
            first = first or self.moves.of_number(one.registers.get(name), width)
            second = second or self.moves.of_number(other.registers.get(name), width)
            if is_same(first, second):
                found[name] = first
            elif mask is None or first.number.shape != second.number.shape:
                found[name] = self.moves.of_number(None, width)
            else:
                found[name] = chosen(mask, first, second)
        told = {
            name: numbers
            for name, numbers in a.told.items()
            if b.told.get(name) is numbers
        }
        return replace(b, registers=found, told=told)

    def turned(self, state: State, is_back: bool) -> None:
        """At a head, or behind loops: symbols get other meanings."""
        pc, data = state.pc, state.data
        values, lost, turns = self._meanings(state, is_back)
        live = self.live[pc]
        for name in self.carriers & live & state.registers.keys():
            if name not in data.registers:
                width = self.machine.kernel.width(name) // 8
                data.registers[name] = self.moves.operand(name, width)
        names = [n for n in data.registers if n in live]
        every = [data.shared, *(data.registers[n] for n in names)]
        every = self.book.renamed(every, values, lost)
        turn = turn_of(f"n{pc}", state.turns.get(pc), state.facts)
        if is_back and turn is not None:
            every = self.book.in_turn(every, f"n{pc}", turn + 1)
        shared, *rest = every
        registers = dict(zip(names, rest, strict=True))
        body = self.flow.loops.get(pc, set())
        changed = {n for b in body for i in self._code(b) for n in i.results}
        same, outer = live - changed, around(state, self.flow.loops)
        is_outer = any(data.told[name].shape[3] > 1 for name in outer)
        told = {
            name: numbers
            for name, numbers in data.told.items()
            if name in same | outer or self._is_made_outside(name, body)
            if numbers.shape[3] == 1 or is_outer
        }
        kept = {
            name: value
            for name, value in state.registers.items()
            if name in same
            if all(is_stable(s) or s in told for s in symbols_of(value))
        } | self._counters(state, is_back, live)
        known = self._bounds(state) if is_back else []
        state.data = replace(
            data,
            registers=registers,
            shared=shared,
            kept=kept,
            turns=turns,
            given=[],
            bounds=known,
            told=told,
        )

    def _counters(
        self, state: State, is_back: bool, live: set[str]
    ) -> dict[str, Value]:
        every = self.counters.get(state.pc, {})
        mine = {name: step for name, step in every.items() if name in live}
        return counted(self.machine, state, mine, is_back)

    def _is_made_outside(self, symbol: str, body: set[int]) -> bool:
        """Whether it is what an instruction makes, which is not of these blocks."""
        is_made = symbol[:1] == "u" and symbol[1:].isdigit()
        return is_made and self.flow.block[int(symbol[1:])] not in body

    def _meanings(
        self, state: State, is_back: bool
    ) -> tuple[dict[str, Term], set[str], dict[str, Term]]:
        """What symbols of turns are from here on; those of which nobody knows it; and
        how many turns there were of loops that are done.
        """
        pc, data = state.pc, state.data
        values: dict[str, Term] = {}
        lost: set[str] = set()
        for head, body in self.flow.loops.items():
            name = f"n{head}"
            if head == pc and is_back:
                values[name] = {name: 1, "": -1}
            elif head == pc or pc not in body:
                turn = turn_of(name, state.turns.get(head), state.facts)
                if turn is None and name in data.turns and head != pc:
                    turn = data.turns[name][""]
                if turn is None:
                    lost.add(name)
                else:
                    values[name] = terms.number(turn)
        turns = {**data.turns, **{n: t for n, t in values.items() if n != f"n{pc}"}}
        turns = {n: t for n, t in turns.items() if n not in lost and n != f"n{pc}"}
        return values, lost, turns

    def _bounds(self, state: State) -> list[Term]:
        """What a turn that goes on says of how many there are."""
        return bounds(state)

    def pinned(self, state: State) -> None:
        """A listed state knows its turn too, and bounds of that."""
        pin(state, self.flow.loops)

    def _code(self, block: int) -> list[Instruction]:
        return self.flow.code[block : self.flow.stop[block]]

    def key(self, state: State) -> bytes:
        """Which blocks are here, and in which turns of loops around."""
        turns = sorted(around(state, self.flow.loops))
        every = (state.data.blocks, *(state.data.told[name] for name in turns))
        return b"".join(one.tobytes() for one in every)

    def matches(self, number: int, state: State) -> bool:
        """Whether tags are those of a listed state: those that came first."""
        key = number, self.key(state)
        data, first = state.data, self.first.setdefault(key, state.data)
        if data is first:
            return True
        told = data.told
        if any(
            n not in told or not np.array_equal(v, told[n])
            for n, v in first.told.items()
        ):
            return False
        if data.stored or first.stored or not is_same(data.shared, first.shared):
            return False
        if data.registers.keys() != first.registers.keys() or data.turns != first.turns:
            return False
        if not all(is_same_value(v, data.kept.get(n)) for n, v in first.kept.items()):
            return False
        ahead: dict[str, Term] = {f"n{state.pc}": {f"n{state.pc}": 1, "": 1}}
        follows = self.machine.facts.follows
        return all(
            follows(terms.replaced(f, ahead), state.facts, state.clauses)
            for f in first.bounds
        ) and all(is_same(t, first.registers[n]) for n, t in data.registers.items())

    def covers(self, key: tuple[int, bytes], state: State) -> bool:
        """Whether a state that was met before stands for this listed one too."""
        return False

    # The end.

    def end(self, state: State) -> None:
        """All threads of some blocks end."""
        self.cover.add(state.data.stored, state.data.blocks)

    def finish(self) -> None:
        """All ways have ended: each output has what belongs to each block."""
        try:
            self.cover.check()
        except Misplaced as error:
            raise NotPlacedError(f"{error}") from None
