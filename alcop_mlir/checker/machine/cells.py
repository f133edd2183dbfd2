"""Cells of shared memory: status, writer, reader and age of each.

PTX ISA "cp.async", "cp.async.wait_group", "bar"; as the certificate's format has it.
"""

from __future__ import annotations

import hashlib
from copy import copy

import numpy as np

from alcop_mlir.errors import CertificateError

NEVER, FLYING, WAITED, STORED, LANDED = range(5)
_NOBODY, _MANY, _STORE = -1, -2, -2
_WARPS = -10  # from there on down numbers are of warps
_MOST_AGE, _MOST_GROUPS = 12, 10


def _warps(threads: np.ndarray) -> np.ndarray:
    """A number, instead of a thread, for all of its warp."""
    return (_WARPS - threads // 32).astype(np.int16)


class Cells:
    """What is known of each cell."""

    def __init__(self, count: int):
        self.status = np.full(count, NEVER, np.uint8)
        self.writer = np.full(count, _NOBODY, np.int16)
        self.reader = np.full(count, _NOBODY, np.int16)
        self.age = np.full(count, _STORE, np.int16)
        self.source = np.ones(count, np.int32)  # see `Sources`
        self.place = np.zeros(count, np.int64)
        self.late = 0  # groups in an arm of a branch that landed cells do not count yet

    def __copy__(self) -> Cells:
        """One that changes apart."""
        new = Cells(0)
        vars(new).update({name: copy(value) for name, value in vars(self).items()})
        return new

    def repeated(self, many: int, threads: int) -> Cells:
        """So many times, one behind the other, each with so many threads of its own."""
        new = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(new, name, np.tile(value, many))
        case = np.repeat(np.arange(many), len(self.status)) * threads
        for one in (new.writer, new.reader):
            one += np.where(one >= 0, case, 0).astype(np.int16)
            one -= np.where(one <= _WARPS, case // 32, 0).astype(np.int16)
        return new

    def digest(self) -> str:
        """The hash that a certificate gives."""
        writer = np.where(self.status == LANDED, _NOBODY, self.writer)
        parts = (self.status, writer.astype(np.int16), self.reader, self.age)
        return hashlib.sha256(b"".join(p.tobytes() for p in parts)).hexdigest()

    def sources_digest(self) -> str:
        """Of which cells have one source, each by its first, and of offsets."""
        _, first, which = np.unique(self.source, return_index=True, return_inverse=True)
        firsts = first.astype(np.int64)[which]
        return hashlib.sha256(firsts.tobytes() + self.place.tobytes()).hexdigest()

    def write(
        self, cells: np.ndarray, threads: np.ndarray, twice: np.ndarray, is_copy: bool
    ) -> None:
        """Cells, and the thread that writes each; some by several, which may not read
        them then.
        """
        status = self.status[cells]
        warp, reader = _warps(threads), self.reader[cells]
        busy = (reader != _NOBODY) & (reader != threads) & (reader != warp)
        busy |= status == FLYING
        mine = (self.writer[cells] == threads) | (self.writer[cells] == warp)
        busy |= ((status == WAITED) | (status == STORED)) & ~mine
        if busy.any():
            raise CertificateError("something is overwritten that may be in use")
        self.status[cells] = FLYING if is_copy else STORED
        self.writer[cells] = threads
        self.writer[twice] = _NOBODY
        self.reader[cells] = _NOBODY
        self.age[cells] = 0 if is_copy else _STORE
        self.source[cells], self.place[cells] = 1, 0

    def read(
        self, cells: np.ndarray, threads: np.ndarray, twice: np.ndarray, by_warp: bool
    ) -> set[int]:
        """The ages of what is read; some cells twice, by several threads."""
        status = self.status[cells]
        landed = status == LANDED
        if not landed.all():
            writer = self.writer[cells]
            own = writer == _warps(threads)
            if not by_warp:
                own |= writer == threads
            own &= (status == WAITED) | (status == STORED)
            if not (landed | own).all():
                raise CertificateError("something is read that may not be there")
        if by_warp:
            self.reader[cells] = _MANY
        else:
            before = self.reader[cells]
            kept = (before == _NOBODY) | (before == threads)
            self.reader[cells] = np.where(kept, threads, _MANY)
            self.reader[twice] = _MANY
        age = self.age[cells]
        if self.late:
            age = age + np.where(landed & (age >= 0), self.late, 0)
        is_one = not (age != age[:1]).any()
        return {
            min(one, _MOST_AGE) for one in set(age[: 1 if is_one else None].tolist())
        }

    def commit(self, lanes: np.ndarray) -> None:
        """A group of these threads ends."""
        self.age[(self.age >= 0) & self._of(lanes)] += 1
        np.minimum(self.age, _MOST_AGE, out=self.age)
        self.late += int(not lanes.all())
        if ((self.status == FLYING) & (self.age > _MOST_GROUPS)).any():
            raise CertificateError("too many groups in flight")

    def _of(self, lanes: np.ndarray) -> np.ndarray:
        """The cells whose groups these threads count; all, if all threads do."""
        if lanes.all():
            return np.full(len(self.age), True)
        if ((self.writer < 0) & (self.status != LANDED) & (self.age >= 0)).any():
            raise CertificateError("it is not known which thread counts a group")
        return (self.status != LANDED) & (self.writer >= 0) & lanes[self.writer]

    def wait(self, groups: int, lanes: np.ndarray) -> None:
        """All but the last groups of these threads have landed for them."""
        done = (self.status == FLYING) & (self.age > groups)
        self.status[done & self._of(lanes)] = WAITED

    def join(self) -> None:
        """Two arms meet, which have committed as many groups."""
        if self.late:
            counted = (self.status == LANDED) & (self.age >= 0)
            self.age[counted] += self.late
            np.minimum(self.age, _MOST_AGE, out=self.age)
        self.late = 0

    def barrier(self) -> None:
        """What was waited for or stored is there for all."""
        self.status[(self.status == WAITED) | (self.status == STORED)] = LANDED
        self.reader[:] = _NOBODY

    def warp_barrier(self) -> None:
        """Of all warps, each for itself: what its threads did, it did; for what is
        still in flight each has to wait, before a later one.
        """
        done = (self.writer >= 0) & (self.status != FLYING)
        self.writer[done] = _warps(self.writer[done])
        known = self.reader >= 0
        self.reader[known] = _warps(self.reader[known])

    def end(self) -> None:
        """The kernel ends."""
        if (self.status == FLYING).any():
            raise CertificateError("the kernel ends with a copy in flight")
