"""What is known of each cell of shared memory: who wrote it, who may read it.

A cell is as many bytes as the smallest access has. Rules follow PTX ISA "cp.async",
"cp.async.wait_group" and "bar": a copy's bytes are there for the thread that waited,
and for the others after a barrier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from alcop_mlir.certificate.sources import STORED as STORED_SOURCE
from alcop_mlir.certificate.values import WARP
from alcop_mlir.certificate.verdicts import Alarm, Finding, Outside
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

NEVER, IN_FLIGHT, WAITED, STORED, LANDED = range(5)
STATUS = (
    "never written",
    "in flight",
    "waited for by its thread only",
    "stored with no barrier since",
    "landed",
)
NOBODY, MANY = -1, -2  # instead of a thread
_FIRST_WARP = -10  # instead of a thread: any of warp 0; -11: of warp 1, ...
STORE_AGE = -2  # of what a thread stored, not a copy
MOST_AGE = 12  # commits: beyond it ages are the same
MOST_GROUPS = 10  # in flight


@dataclass(frozen=True, eq=False)
class Touch:
    """Cells that one instruction accesses, and by which thread each.

    single: of threads whose cells nobody else accesses with it
    """

    cells: np.ndarray
    threads: np.ndarray
    is_single: bool
    shared_cells: np.ndarray  # accessed by several threads


def touch(places: np.ndarray, bytes_: int, mask: np.ndarray, grain: int) -> Touch:
    """The cells of `bytes_` at each thread's place, in bytes, where the mask is set."""
    lanes = np.flatnonzero(mask)
    count = bytes_ // grain
    cells = (places[lanes, None] // grain + np.arange(count)).ravel()
    threads = np.repeat(lanes, count).astype(np.int16)
    found, counts = np.unique(cells, return_counts=True)
    return Touch(cells, threads, len(found) == len(cells), found[counts > 1])


def _warps(threads: np.ndarray) -> np.ndarray:
    """What stands for any thread of these threads' warps."""
    return (_FIRST_WARP - threads // WARP).astype(np.int16)


class SharedState:
    """The cells; `age` is how many groups were committed since a copy was issued.

    late: groups that some threads have committed, in an arm of a branch, and that
        landed cells are not yet older by
    source, place: where copied bytes come from, see `Sources`
    """

    __slots__ = (
        "age",
        "late",
        "owner",
        "place",
        "read_at",
        "reader",
        "source",
        "status",
        "written_at",
    )

    def __init__(self, cells: int):
        self.status = np.full(cells, NEVER, np.uint8)
        self.owner = np.full(cells, NOBODY, np.int16)
        self.reader = np.full(cells, NOBODY, np.int16)
        self.age = np.full(cells, STORE_AGE, np.int16)
        self.late = 0
        self.source = np.full(cells, STORED_SOURCE, np.int32)
        self.place = np.zeros(cells, np.int64)
        # For messages only.
        self.written_at = np.full(cells, -1, np.int32)
        self.read_at = np.full(cells, -1, np.int32)

    def copy(self) -> SharedState:
        """One that changes apart."""
        new = SharedState.__new__(SharedState)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(new, name, value if name == "late" else value.copy())
        return new

    def digest(self) -> str:
        """The same for states that no rule distinguishes."""
        owners = np.where(self.status == LANDED, NOBODY, self.owner)
        parts = (self.status, owners, self.reader, self.age)
        data = b"".join(one.tobytes() for one in parts)
        return hashlib.sha256(data).hexdigest()

    def sources_digest(self) -> str:
        """The same where cells of one source are those, and have the same places;
        sources go by where they come first.
        """
        _, first, which = np.unique(self.source, return_index=True, return_inverse=True)
        parts = (first[which.ravel()].astype(np.int64), self.place)
        return hashlib.sha256(b"".join(one.tobytes() for one in parts)).hexdigest()

    def write(
        self,
        at: Touch,
        status: int,
        pc: int,
        ins: Instruction,
        shares: bool = False,
    ) -> None:
        """A store or a copy; an alarm where others may still read or write there.

        shares: several threads may store to one place, which none of them reads then
        """
        if not at.is_single and not shares:
            cell = at.shared_cells[0]
            pair = at.threads[at.cells == cell][:2]
            self._alarm(
                "race", "two threads write the same bytes", cell, ins, tuple(pair)
            )
        before, owner = self.status[at.cells], self.owner[at.cells]
        reader = self.reader[at.cells]
        warps = _warps(at.threads)
        read = (reader != NOBODY) & (reader != at.threads) & (reader != warps)
        if read.any():
            at_ = int(np.flatnonzero(read)[0])
            what = "overwrites what another thread may still read"
            pair = (at.threads[at_], reader[at_])
            self._alarm("overwrite", what, at.cells[at_], ins, pair, self.read_at)
        foreign = (owner != at.threads) & (owner != warps)
        bad = (before == IN_FLIGHT) | (
            ((before == WAITED) | (before == STORED)) & foreign
        )
        if bad.any():
            at_ = int(np.flatnonzero(bad)[0])
            what = f"overwrites what is {STATUS[before[at_]]}"
            pair = (at.threads[at_], owner[at_])
            self._alarm("overwrite", what, at.cells[at_], ins, pair, self.written_at)
        self.status[at.cells] = status
        self.owner[at.cells] = at.threads
        self.owner[at.shared_cells] = NOBODY
        self.reader[at.cells] = NOBODY
        self.age[at.cells] = 0 if status == IN_FLIGHT else STORE_AGE
        self.written_at[at.cells] = pc
        self.source[at.cells], self.place[at.cells] = STORED_SOURCE, 0

    def read(
        self, at: Touch, by_warp: bool, pc: int, ins: Instruction
    ) -> frozenset[int]:
        """A load; the ages of what it reads, or an alarm where that has not landed.

        by_warp: what a thread's address names may go to any lane of its warp
        """
        status = self.status[at.cells]
        own = self.owner[at.cells] == _warps(at.threads)
        if not by_warp:
            own |= self.owner[at.cells] == at.threads
        there = (status == LANDED) | (((status == WAITED) | (status == STORED)) & own)
        if not there.all():
            at_ = int(np.flatnonzero(~there)[0])
            cell = at.cells[at_]
            pair = (at.threads[at_], self.owner[cell])
            what = f"reads what is {STATUS[status[at_]]}"
            self._alarm("not landed", what, cell, ins, pair, self.written_at)
        before = self.reader[at.cells]
        mine = np.full(len(at.cells), MANY, np.int16) if by_warp else at.threads
        is_first = (before == NOBODY) | (before == mine)
        self.reader[at.cells] = np.where(is_first, mine, MANY)
        self.reader[at.shared_cells] = MANY
        self.read_at[at.cells] = pc
        age, landed = self.age[at.cells], status == LANDED
        age = np.where(landed & (age >= 0), np.minimum(age + self.late, MOST_AGE), age)
        return frozenset(np.unique(age).tolist())

    def commit(self, ins: Instruction, lanes: np.ndarray) -> None:
        """`cp.async.commit_group` in these threads: a group ends."""
        counted = (self.age >= 0) & self._of(lanes, ins)
        self.age[counted] = np.minimum(self.age[counted] + 1, MOST_AGE)
        self.late += not lanes.all()
        if ((self.status == IN_FLIGHT) & (self.age > MOST_GROUPS)).any():
            raise Outside(f"more than {MOST_GROUPS} groups in flight", ins.line)

    def join(self) -> None:
        """All threads go on; each has committed as many groups."""
        counted = (self.age >= 0) & (self.status == LANDED)
        self.age[counted] = np.minimum(self.age[counted] + self.late, MOST_AGE)
        self.late = 0

    def _of(self, lanes: np.ndarray, ins: Instruction) -> np.ndarray:
        """The cells of copies of these threads; landed ones are everybody's."""
        if lanes.all():
            return np.ones(len(self.owner), bool)
        flying = (self.status != LANDED) & (self.age >= 0)
        if (self.owner[flying] < 0).any():
            raise Outside("groups of some threads after a barrier of a warp", ins.line)
        found = np.zeros(len(self.owner), bool)
        found[flying] = lanes[self.owner[flying]]
        return found

    def wait(self, groups: int, lanes: np.ndarray, ins: Instruction) -> None:
        """`cp.async.wait_group` in these threads: all but their last `groups` are done;
        -1 for all.
        """
        done = (self.status == IN_FLIGHT) & (self.age > groups)
        self.status[done & self._of(lanes, ins)] = WAITED

    def barrier(self) -> None:
        """All threads of the block have come so far."""
        self.status[(self.status == WAITED) | (self.status == STORED)] = LANDED
        self.reader[:] = NOBODY

    def warp_barrier(self) -> None:
        """`bar.warp.sync` by all threads: what a thread waited for, stored or read has
        been waited for, stored or read by its warp.
        """
        is_done = (self.owner >= 0) & (self.status != IN_FLIGHT)
        self.owner[is_done] = _warps(self.owner[is_done])
        is_thread = self.reader >= 0
        self.reader[is_thread] = _warps(self.reader[is_thread])

    def end(self, ins: Instruction) -> None:
        """The thread ends: an alarm for copies in flight."""
        flying = np.flatnonzero(self.status == IN_FLIGHT)
        if len(flying):
            cell = flying[0]
            what = "the kernel ends with a copy in flight"
            pair = (self.owner[cell],)
            self._alarm("in flight", what, cell, ins, pair, self.written_at)

    def _alarm(
        self,
        rule: str,
        what: str,
        cell: int,
        ins: Instruction,
        threads: Iterable[Any],
        other: np.ndarray | None = None,
    ) -> NoReturn:
        place = None if other is None or other[cell] < 0 else int(other[cell])
        raise Alarm(
            Finding(
                rule,
                what,
                ins.line,
                ins.text,
                place,  # a number of an instruction: the machine makes a line of it
                tuple(int(t) for t in threads if t >= 0),
                int(cell),
            )
        )
