"""What instructions leave in registers and memory: elements, or others made of such."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from alcop_mlir.checker.machine.arithmetic import Unknown, Value, is_equal
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.machine.registers import WARP
from alcop_mlir.checker.placed import bitwise
from alcop_mlir.checker.placed.addresses import Addresses
from alcop_mlir.checker.placed.blocks import Blocks
from alcop_mlir.checker.placed.chains import done_in_chain
from alcop_mlir.checker.placed.elements import joined, shifted, widened
from alcop_mlir.checker.placed.gathers import Gathers
from alcop_mlir.checker.placed.kinds import Element, Whole
from alcop_mlir.checker.placed.rows import done
from alcop_mlir.checker.placed.tags import NUMBER, UNKNOWN, ZERO, Book, chosen
from alcop_mlir.checker.ptx.instructions import Instruction, integer, items, place_of

if TYPE_CHECKING:
    from alcop_mlir.checker.machine.machine import Machine

_TYPE = re.compile(r"(?:[subf]|bf|tf)(8|16|32|64)(x2)?|pred|e[45]m[23](x2)?")


@cache
def names_of(operand: str) -> tuple[str, ...]:
    """The operands in braces, or the one."""
    return tuple(items(operand))


@cache
def type_bytes(part: str) -> tuple[int, int] | None:
    """Bytes of an element, 0 for a predicate, and how many there are; None: no type."""
    found = _TYPE.fullmatch(part)
    if found is None:
        return None
    if part == "pred":
        return 0, 1
    count = 2 if part.endswith("x2") else 1
    return int(found[1] or 8) // 8, count


class Moves:
    """Of one machine; `registers` and `shared` are those of its state.

    numbers: registers that hold nothing of memory
    """

    def __init__(
        self,
        machine: Machine,
        book: Book,
        blocks: Blocks,
        numbers: frozenset[str] = frozenset(),
        gathers: Gathers | None = None,
    ):
        self.machine, self.book, self.grain = machine, book, book.grain
        self.addresses = Addresses(machine, book, blocks, gathers)
        self.threads, self.numbers = machine.threads, numbers
        lane = np.arange(self.threads) % WARP
        self._lane, self._warp = lane, np.arange(self.threads) - lane
        self._gathers: dict[Any, np.ndarray] = {}
        self._granules: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self._same: dict[tuple[int, int], Tags] = {}

    # Operands.

    def operand(self, name: str, bytes_: int) -> Tags:
        """What an operand holds."""
        known = self.machine.state.data.registers.get(name)
        width = max(bytes_ // self.grain, 1)
        if known is not None and known.number.shape[1] == width:
            return known
        value = self.machine.value(name)
        if known is None and value is None and name in self.numbers:
            return self.nothing(bytes_, NUMBER)
        return self.of_number(None if known else value, width)

    def stored(self, name: str, bytes_: int) -> Tags:
        """So many bytes of a register, the lower ones."""
        width = max(self.machine.kernel.width(name) // 8, 1)
        if width <= bytes_:
            return self.operand(name, bytes_)
        tags = self.operand(name, width)
        if bytes_ < width and (self.book.whole(tags, width).number > NUMBER).any():
            return self.book.packed(self.book.whole(tags, width), bytes_)
        count = max(bytes_ // self.grain, 1)
        return Tags(tags.number[:, :count], tags.place[:, :count])

    def of_number(self, value: Value, width: int) -> Tags:
        """Of a register that holds no element."""
        if value is None:
            number = np.full((self.threads, width), UNKNOWN, np.int32)
        elif isinstance(value, np.ndarray):
            lanes = np.broadcast_to(value, (self.threads,))
            number = np.where(lanes == 0, ZERO, NUMBER)[:, None]
            number = np.repeat(number, width, axis=1).astype(np.int32)
        else:
            number = np.full((self.threads, width), NUMBER, np.int32)
        return Tags(number, np.zeros((self.threads, width), np.int64))

    def has_tags(self, ins: Instruction) -> bool:
        """Whether an operand holds something of an array."""
        registers = self.machine.state.data.registers
        return any(name in registers for name in ins.reads)

    # Memory.

    def shared_granules(self, operand: str, count: int) -> np.ndarray:
        """The granules of shared memory that each thread accesses."""
        register, offset = place_of(operand) or ("", 0)
        value = self.machine.value(register)
        if not isinstance(value, np.ndarray):
            raise Unknown
        key = id(value), offset, count
        if key not in self._granules:
            places = np.broadcast_to(value.astype(np.int64) + offset, (self.threads,))
            granules = places[:, None] // self.grain + np.arange(count // self.grain)
            # Threads that do not access may have any address.
            most = self.machine.shared_bytes // self.grain
            # With the value, so that it keeps its id.
            granules = np.clip(granules, 0, most)
            if self.machine.cases > 1:
                case = np.arange(self.threads) * self.machine.cases // self.threads
                granules = granules + (most + 1) * case[:, None]
            self._granules[key] = value, granules
        return self._granules[key][1]

    def store(self, granules: np.ndarray, tags: Tags, lanes: np.ndarray) -> None:
        """Shared memory gets these tags."""
        data = self.machine.state.data
        if not data.is_own:
            data.shared, data.is_own = Tags(*(one.copy() for one in data.shared)), True
        every = slice(None) if lanes.all() else lanes
        granules = granules[every]
        data.shared.number[granules] = tags.number[every]
        data.shared.place[granules] = tags.place[every]

    def copied(self, ins: Instruction, lanes: np.ndarray) -> None:
        """`cp.async`; what it does not read of the source is 0."""
        to, source, size, *rest = ins.operands
        count = integer(size)
        found = self.addresses.loaded(source, count)
        if found is None or self.is_stored(found):
            found = self.nothing(count, UNKNOWN)
        if rest and not self.addresses.is_gathered(self.machine.state.pc):
            found = self._filled(found, count, rest[0])
        self.store(self.shared_granules(to, count), found, lanes)

    def _filled(self, tags: Tags, count: int, size: str) -> Tags:
        """Where it reads nothing of the source."""
        value = self.machine.value(size)
        is_size = self.machine.kernel.width(size) > 1
        if not isinstance(value, np.ndarray) or not is_size:
            return self.nothing(count, UNKNOWN)
        lanes = np.broadcast_to(value, (self.threads,)).astype(np.int64)
        if (lanes == count).all():
            return tags
        found = chosen(lanes == 0, self.nothing(count, ZERO), tags)
        is_part = (lanes != 0) & (lanes != count)
        return chosen(is_part, self.nothing(count, UNKNOWN), found)

    def nothing(self, count: int, number: int) -> Tags:
        """So many bytes of no array; nobody changes them."""
        key = max(count // self.grain, 1), number
        if key not in self._same:
            shape = (self.threads, key[0])
            numbers, places = (
                np.full(shape, number, np.int32),
                np.zeros(shape, np.int64),
            )
            self._same[key] = Tags(numbers, places)
        return self._same[key]

    def matrices(self, ins: Instruction) -> list[Tags]:
        """`ldmatrix`: of each matrix the elements that each lane gets."""
        count = {"x1": 1, "x2": 2, "x4": 4}
        many = max([count[p] for p in ins.parts if p in count], default=1)
        granules = self.shared_granules(ins.operands[1], 2)
        key = ins, granules.tobytes()
        if key not in self._gathers:
            row, column = self._lane // 4, 2 * (self._lane % 4)[:, None]
            halves = column + np.arange(2)
            across, down = halves, np.repeat(row[:, None], 2, axis=1)
            if "trans" in ins.parts:
                across, down = down, across
            places = [granules[self._warp[:, None] + 8 * m + down] for m in range(many)]
            each = granules.shape[1]
            self._gathers[key] = np.array(
                [
                    (p + across[:, :, None] * each).reshape(self.threads, -1)
                    for p in places
                ]
            )
        shared = self.machine.state.data.shared
        at = self._gathers[key]
        return [Tags(shared.number[one], shared.place[one]) for one in at]

    # Registers.

    def shuffled(self, ins: Instruction) -> Tags | None:
        """`shfl` between all lanes of whole warps."""
        source = self.operand(ins.operands[1], 4)
        by = self.machine.value(ins.operands[2])
        clamp = self.machine.value(ins.operands[3])
        if not isinstance(by, np.ndarray) or not isinstance(clamp, np.ndarray):
            return None
        lanes = np.broadcast_to(by.astype(np.int64), (self.threads,))
        if "bfly" in ins.parts and (clamp == WARP - 1).all():
            to = self._lane ^ lanes
        elif "idx" in ins.parts and (clamp == WARP - 1).all():
            to = lanes % WARP
        else:
            return None
        if (to >= WARP).any() or self.threads % WARP:
            return None
        found = Tags(source.number[self._warp + to], source.place[self._warp + to])
        statement = self.book.statement
        if (statement.row_loops or statement.chain) and "bfly" in ins.parts:
            # Columns that are all there would be folded again.
            is_done = (done_in_chain if statement.chain else done)(self.book, found)
            number = np.where(is_done, UNKNOWN, found.number)
            return Tags(number.astype(np.int32), found.place)
        return found

    def selected(self, ins: Instruction, bytes_: int) -> Tags:
        """`selp`: by threads, or by what is computed of elements."""
        one, other, test = ins.operands[1:]
        both = self.operand(one, bytes_), self.operand(other, bytes_)
        return self._one_of(*both, test, bytes_)

    def _one_of(self, a: Tags, b: Tags, test: str, bytes_: int) -> Tags:
        value = self.machine.value(test)
        if test not in self.machine.state.data.registers:
            if isinstance(value, np.ndarray):
                mask = np.broadcast_to(value != 0, (self.threads,))
                return chosen(mask, a, b)
            return self.nothing(bytes_, UNKNOWN)
        parts = [self.book.whole(t, bytes_) for t in (a, b)]
        parts.append(self.book.whole(self.operand(test, 0), 0))
        return self.book.packed(joined(self.book, parts), bytes_)

    def permuted(self, ins: Instruction) -> Tags | None:
        """`prmt` with a number of each thread that says which bytes."""
        how = self.machine.value(ins.operands[3])
        if len(ins.parts) > 2 or not isinstance(how, np.ndarray):
            return None
        one, other = (self.operand(name, 4) for name in ins.operands[1:3])
        return bitwise.permuted(one, other, how, self.grain)

    def converted(self, ins: Instruction) -> Tags | None:
        """`cvt` of one element, or of two that are put together."""
        types = [t for t in map(type_bytes, ins.parts) if t is not None]
        if len(types) != 2:
            return None
        (to, count), (of, one) = types
        if count == 1 and one == 1:
            whole = self.book.whole(self.operand(ins.operands[1], of), of)
            return self.book.packed(whole, to)
        if one != 1 or len(ins.operands) != 3:
            return None
        halves = [
            self.book.whole(self.operand(name, of), of)
            for name in (ins.operands[2], ins.operands[1])
        ]
        both = Whole(
            np.concatenate([h.number for h in halves], axis=1),
            np.concatenate([h.at for h in halves], axis=1),
        )
        return self.book.packed(both, to)

    def shifted(self, ins: Instruction, out: int) -> Tags | None:
        """`shl` and `shr` by whole granules; others are ops on one element."""
        by = self.machine.value(ins.operands[2])
        types = [type_bytes(p) for p in ins.parts[1:]]
        if types != [(out, 1)] or not isinstance(by, np.ndarray) or not is_equal(by):
            return self.computed(ins, out)
        count, rest = divmod(int(by[0]), 8 * self.grain)
        if rest or ins.parts[-1][0] == "s":
            return self.computed(ins, out)
        tags = self.operand(ins.operands[1], out)
        return shifted(tags, count if ins.parts[0] == "shl" else -count)

    def masked(self, ins: Instruction, out: int) -> Tags | None:
        """`and`, `or`, `xor`: by bytes, as far as these stay what they are."""
        names = ins.operands[1:3]
        pair = [self.operand(name, out) for name in names]
        known = self.machine.state.data.registers
        numbers = [None if n in known else self.machine.value(n) for n in names]
        found = bitwise.combined(self.book, ins.parts[0], pair, numbers)
        return self.computed(ins, out) if found is None else found

    def computed(self, ins: Instruction, out: int) -> Tags | None:
        """Any other instruction, element by element; out: bytes of the register."""
        types = [t for t in map(type_bytes, ins.parts) if t is not None]
        if not types or "hi" in ins.parts or "wide" in ins.parts:
            return None
        size, count = types[-1]
        parts = [
            bitwise.in_part(self.book, self.operand(name, size * count), size)
            for operand in ins.operands[1:]
            for name in names_of(operand)
        ]
        if not parts or len({p.number.shape for p in parts}) != 1:
            return None
        is_test = ins.parts[0] == "setp"
        if is_test and count > 1:
            return None
        found = joined(self.book, parts, ins.parts[0])
        return self.book.packed(found, 0 if is_test else size)

    # One instruction.

    def results(self, ins: Instruction) -> list[Tags | None]:
        """By register that it writes."""
        names = names_of(ins.operands[0])
        widths = [self.machine.kernel.width(n) // 8 for n in names]
        if "pred" in ins.parts or ins.parts[0] == "setp":
            widths = [0] * len(names)
        if ins.parts[0] in ("ld", "ldu"):
            return self._of_load(ins, names)
        if ins.parts[0] == "ldmatrix":
            return list(self.matrices(ins))
        if not self.has_tags(ins):
            return [None] * len(names)
        if ins.parts[0] == "mov":
            return self._moved(ins, widths)
        handlers: dict[str, Callable[[], Tags | None]] = {
            "shfl": lambda: self.shuffled(ins),
            "selp": lambda: self.selected(ins, widths[0]),
            "prmt": lambda: self.permuted(ins),
            "cvt": lambda: self.converted(ins),
            "shl": lambda: self.shifted(ins, widths[0]),
            "shr": lambda: self.shifted(ins, widths[0]),
            **dict.fromkeys(bitwise.OPS, lambda: self.masked(ins, widths[0])),
        }
        name = ins.parts[0] if "pred" not in ins.parts else ""
        handler = handlers.get(name, lambda: self.computed(ins, widths[0]))
        found = handler()
        first = found if found is not None else self.nothing(widths[0], UNKNOWN)
        return [first, *(self.nothing(w, UNKNOWN) for w in widths[1:])]

    def _of_load(self, ins: Instruction, names: Sequence[str]) -> list[Tags | None]:
        """Loads, of vectors too; of what is no array nothing is known."""
        kind = type_bytes(ins.parts[-1])
        size = 0 if kind is None else kind[0]
        if "param" in ins.parts or not size:
            return [None] * len(names)
        found: Tags | None = None
        if "shared" in ins.parts:
            granules = self.shared_granules(ins.operands[1], size * len(names))
            shared = self.machine.state.data.shared
            found = Tags(shared.number[granules], shared.place[granules])
        elif "global" in ins.parts:
            found = self._of_global(ins, size * len(names))
            active = self.machine.state.lanes
            if found is not None and active is not None:
                nothing = self.nothing(size * len(names), UNKNOWN)
                found = chosen(active, found, nothing)
            if found is not None and self.is_stored(found):
                found = None
        if found is None or size < self.grain or (found.number == UNKNOWN).all():
            return [None] * len(names)
        many = [max(self.machine.kernel.width(n) // 8, size) for n in names]
        parts = self._split(found, [size] * len(names))
        if all(one == size for one in many):
            return parts
        if ins.parts[-1][0] == "s":
            return [None] * len(names)
        wide = zip(parts, many, strict=True)
        return [widened(t, n // self.grain) if t else None for t, n in wide]

    def _of_global(self, ins: Instruction, count: int) -> Tags | None:
        if not ins.is_choice:
            return self.addresses.loaded(ins.operands[1], count)
        both = [self.addresses.loaded(one, count) for one in ins.operands[1:3]]
        a, b = (one or self.nothing(count, UNKNOWN) for one in both)
        return self._one_of(a, b, ins.operands[3], count)

    def is_stored(self, tags: Tags) -> bool:
        """Whether it is of an array to which results have been stored."""
        stored = {array for array, *_ in self.machine.state.data.stored}
        kinds = [self.book.kinds[n] for n in np.unique(tags.number)] if stored else []
        return any(isinstance(k, Element) and k.array in stored for k in kinds)

    def _split(self, tags: Tags, sizes: list[int]) -> list[Tags | None]:
        at = np.cumsum([max(s // self.grain, 1) for s in sizes])[:-1]
        numbers = np.split(tags.number, at, axis=1)
        places = np.split(tags.place, at, axis=1)
        return [Tags(n, p) for n, p in zip(numbers, places, strict=True)]

    def _moved(self, ins: Instruction, widths: list[int]) -> list[Tags | None]:
        """`mov`, of vectors too."""
        names = [n for o in ins.operands[1:] for n in names_of(o)]
        total = sum(widths)
        each = total // len(names)
        parts = [self.operand(n, each) for n in names]
        if len(parts) == len(widths) == 1:
            return [parts[0]]
        number = np.concatenate([p.number for p in parts], axis=1)
        place = np.concatenate([p.place for p in parts], axis=1)
        return self._split(Tags(number, place), widths)
