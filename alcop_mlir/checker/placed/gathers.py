"""Which elements accesses are of, where windows are moved over an array.

Where all threads of all blocks are gone through, each access to such an array is
looked at: in block b, thread j and turn n it has to be of row `b's row + j's row` and
of column `j's column + n * step`, as the window has it, and reads nothing where that is
outside of the array. Which columns the answers of a certificate say; rows follow from
addresses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from alcop_mlir.checker.bounds.every_thread import Access
from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.ptx.instructions import Instruction, most_bytes
from alcop_mlir.errors import NotPlacedError

_READS = ("ld", "cp")


class Columns(NamedTuple):
    """Where along the sum what each thread accesses begins: `start`, and a `step` more
    after each `every` threads, `many` times; and what more blocks in x, y and z, and
    turns of loops, by their heads, add. From `most` columns on threads have zeros.
    """

    start: int
    step: int
    every: int
    many: int
    most: int
    blocks: tuple[int, int, int]
    turns: dict[int, int]


class Found(NamedTuple):
    """What one instruction accesses: numbers of elements, as the statement has them, of
    blocks in x, y and z, with what threads add, and turns; others have zeros.
    """

    array: str
    others: np.ndarray
    blocks: np.ndarray
    threads: np.ndarray
    turns: dict[int, int]


class _Site(NamedTuple):
    """One instruction.

    rows:    what they add to the index of each dimension
    columns: in the first turn, and `along` the sum, of which they are a part
    inside:  of rows, and parts of the sum, that there are
    """

    found: Found
    rows: list[np.ndarray]
    columns: np.ndarray
    along: np.ndarray
    inside: np.ndarray


class _Seen(NamedTuple):
    """One access, by block in x, y and z, and thread: the number of the first element,
    bytes that are read, and who does; how many elements there may be.
    """

    first: np.ndarray
    read: np.ndarray
    runs: np.ndarray
    most: int


class Gathers:
    """Of one kernel: its accesses to arrays that windows are moved over."""

    def __init__(self, statement: Statement, answers: Answers):
        self.statement, self.answers = statement, answers
        self._sites: dict[int, _Site] = {}

    def found(self, pc: int) -> Found | None:
        """What an instruction accesses, if it is of such an array."""
        return self._sites[pc].found if pc in self._sites else None

    def see(self, pc: int, ins: Instruction, access: Access | None) -> None:
        """NotPlacedError where one is not of the elements that the first one says."""
        if access is None or (
            pc in self._sites and access.array != self._sites[pc].found.array
        ):
            raise NotPlacedError(ins.told("not known of which array"))
        if access.array not in self.statement.windows:
            return
        if access.shape[2::-1] != self.statement.grid:
            raise NotPlacedError("as many blocks are not stated")
        if ins.parts[0] not in _READS or None in access.turns.values():
            raise NotPlacedError(ins.told("not known where in a window"))
        size = self.statement.arrays[access.array].bytes
        if most_bytes(ins) % size or (access.runs & (access.offset % size != 0)).any():
            raise NotPlacedError(f"parts of elements of {access.array}")
        seen = _seen(access, size, most_bytes(ins) // size)
        if pc not in self._sites:
            self._sites[pc] = self._begun(pc, access, seen)
        self._check(self._sites[pc], access, seen)

    # Rows.

    def _begun(self, pc: int, access: Access, seen: _Seen) -> _Site:
        """What the first turn says of the rows of blocks and threads."""
        array, extents = access.array, self.statement.extents
        said = Columns(*self.answers.columns(pc))
        if not access.turns.keys() >= said.turns.keys():
            raise NotPlacedError("columns of turns of no such loop")
        place = np.arange(seen.first.shape[3])
        more = place // said.every % said.many * said.step
        others, threads = more >= said.most, said.start + more
        grid = np.indices(self.statement.grid)
        blocks = np.tensordot(said.blocks, grid, 1)[..., None]
        along = blocks + threads + _turned(said.turns, access)
        rows = self._rows(array, seen.first, along)
        own, more = _parted(rows, seen.runs & ~others)
        mine = own + blocks[..., 0], np.where(others, 0, more + threads)
        found = Found(array, others, *mine, said.turns)
        at, along = self._loops(array, found.blocks[..., None], found.threads)
        inside = np.ones(seen.runs.shape, bool)
        for loop, number in at.items():
            inside &= (number >= 0) & (number < extents[loop])
        window = self.statement.windows[array]
        named, columns = {part.loop for _, part in window.parts()}, along
        for loop, stride in self.statement.arrays[array].strides.items():
            if loop in at.keys() - named:  # a part of the sum
                columns = columns + at[loop] * stride
        return _Site(found, window.indices(at), columns, along, inside)

    def _rows(self, array: str, number: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Of the numbers of elements, of these columns."""
        window, reduced = self.statement.windows[array], self.statement.reduced
        strides = self.statement.arrays[array].strides
        columns = window.indices({reduced: along})
        for one, index in zip(window.dimensions, columns, strict=True):
            number = number - one.stride * (one.first + index)
        parts = [(by, part) for by, part in window.parts() if part.loop != reduced]
        row = np.zeros_like(number)
        for by, part in sorted(parts, reverse=True, key=lambda one: one[0]):
            row += number // by * part.divisor * strides[part.loop]
            number = number % by
        return row

    def _loops(
        self, array: str, blocks: np.ndarray, threads: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The numbers of loops, as tags have them: of blocks and threads apart; that of
        the sum, along which turns go on, by itself.
        """
        found: dict[str, np.ndarray] = {}
        for loop, stride in self.statement.arrays[array].strides.items():
            if loop != self.statement.reduced:
                found[loop] = blocks // stride + threads // stride
                blocks, threads = blocks % stride, threads % stride
        return found, blocks + threads

    # Each access.

    def _check(self, site: _Site, access: Access, seen: _Seen) -> None:
        """Each element is that of its row and column, or 0 where there is none."""
        array, turned = access.array, _turned(site.found.turns, access)
        if (seen.runs & site.found.others & (seen.read > 0)).any():
            raise NotPlacedError(f"more columns of {array} than a tile has")
        looked = seen.runs & site.inside & ~site.found.others
        end = self.statement.extents
        for more in (0, turned):
            first, last = site.along + more, site.along + more + seen.most - 1
            is_beyond = (first < 0) | (last >= end[self.statement.reduced])
            if (looked & is_beyond).any():
                raise NotPlacedError(f"columns of {array} beyond the end of the sum")
        columns, size = site.columns + turned, self.statement.arrays[array].bytes
        step = seen.most if self._has_neighbours(array, columns, seen.most) else 1
        for number in range(0, seen.most, step):
            index, is_there = self._element(site, columns + number)
            is_unread = seen.read < (number + step) * size
            is_other = is_unread | (index != seen.first + number)
            is_wrong = np.where(is_there, is_other, seen.read > number * size)
            if (looked & is_wrong).any():
                raise NotPlacedError(f"other elements of {array} than a window's")

    def _element(self, site: _Site, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of elements in these columns, and whether they are there."""
        window = self.statement.windows[site.found.array]
        more = window.indices({self.statement.reduced: along})
        number, is_there = np.zeros(1, np.int64), np.ones(1, bool)
        for one, rows, columns in zip(window.dimensions, site.rows, more, strict=True):
            index = rows + (columns + one.first)
            is_there = is_there & (index >= 0) & (index < one.extent)
            number = number + index * one.stride
        return number, is_there

    def _has_neighbours(self, array: str, along: np.ndarray, count: int) -> bool:
        """Whether so many columns are neighbours in one dimension, and all in it."""
        for one in self.statement.windows[array].dimensions:
            if len(one.parts) == 1 and one.stride == 1 and not one.first:
                (part,) = one.parts
                is_plain = part.divisor == part.factor == 1
                if is_plain and part.loop == self.statement.reduced:
                    is_inside = part.many <= one.extent
                    last = along % part.many + count
                    return is_inside and bool((last <= part.many).all())
        return False


def _seen(access: Access, size: int, count: int) -> _Seen:
    every = (access.offset // size, access.size, access.runs)
    first, read, runs = (
        np.broadcast_to(one, access.shape).transpose(2, 1, 0, 3) for one in every
    )
    return _Seen(first, read, runs, count)


def _turned(turns: dict[int, int], access: Access) -> int:
    """What turns add to columns."""
    return sum(step * (access.turns[head] or 0) for head, step in turns.items())


def _parted(rows: np.ndarray, runs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of blocks, and what threads add, of those that execute it."""
    grid, threads = rows.shape[:3], rows.shape[3]
    flat, here = rows.reshape(-1, threads), runs.reshape(-1, threads)
    most = int(here.sum(axis=1).argmax())
    lead = int(here[most].argmax())
    of_thread, is_known = flat[most] - flat[most, lead], here[most].copy()
    usual = here & is_known
    at = usual.argmax(axis=1)
    of_block = flat[np.arange(len(flat)), at] - of_thread[at]
    goes = usual.any(axis=1)
    base = of_block[goes.argmax()]  # so that those of all instructions are the same
    of_block = np.where(goes, of_block - base, 0)
    of_thread = of_thread + base
    rest = here & goes[:, None] & ~is_known
    which = rest.argmax(axis=0)
    other = flat[which, np.arange(threads)] - of_block[which]
    of_thread = np.where(is_known, of_thread, np.where(rest.any(axis=0), other, 0))
    return of_block.reshape(grid), of_thread
