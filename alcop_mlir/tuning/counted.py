"""The records that count: of one device, target and GPU, with times that can be.

They are found by the indices of the files: `of` decodes those of one problem.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from alcop_mlir.target import Target
from alcop_mlir.tuning import record_index as indices
from alcop_mlir.tuning.candidates import IntArray
from alcop_mlir.tuning.open_problem import OpenProblem
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.record_book import Book
from alcop_mlir.tuning.records import Record

BoolArray = npt.NDArray[np.bool_]


_OF_PROBLEM = 16  # records of a sample: errors of a model are alike within a problem
Part = tuple[Book, BoolArray]  # a file, and which of its entries


@dataclass(frozen=True, eq=False)
class Counted:
    """Those of some files that count, without failures, in their order.

    notes: a line for each thing in the files that is damaged or impossible
    left_out: a line for the records of each other GPU
    key: another one where other records count
    """

    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    key: str

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(mask)) for _, mask in self.parts)

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All that count."""
        return tuple(r for part in self.parts for r in _records(*part))

    def of(self, problem: Problem) -> tuple[Record, ...]:
        """Those of one problem, as it is recorded."""
        return self._where(lambda book, _: book.index.groups_of(problem))

    def covered(self, problem: OpenProblem) -> tuple[Record, ...]:
        """Those of sizes that `problem` may have."""

        def groups(book: Book, mask: BoolArray) -> list[int]:
            found: list[int] = _numbers(book, mask).nonzero()[0].tolist()
            return [one for one in found if problem.covers(book.index.problem(one))]

        return self._where(groups)

    def sample(self, most: int) -> tuple[Record, ...]:
        """All that count, or about `most` of them: of problems of all sizes the fastest
        of each, and slower ones at even distances.
        """
        share = most / max(1, len(self))
        if share >= 1:
            return self.records
        return tuple(
            record
            for book, mask in self.parts
            for record in book.records(_sampled(book, mask, share))
        )

    def _where(
        self, groups: Callable[[Book, BoolArray], Sequence[int] | IntArray]
    ) -> tuple[Record, ...]:
        found: list[Record] = []
        for book, mask in self.parts:
            wanted = np.zeros(len(book.index.groups), np.bool_)
            wanted[groups(book, mask)] = True
            if wanted.any():
                found += _records(book, mask & wanted[book.index.entries.group])
        return tuple(found)


def count(
    books: Sequence[Book], target: Target, device: str, gpu: Callable[[], str] | None
) -> Counted:
    """The records that count for `target` on `device`.

    gpu: whose, asked for once there are some; None where all do
    """
    timed = [(book, _timed(book, target, device)) for book in books]
    left_out, name = (), ""
    if gpu is not None and any(mask.any() for _, mask in timed):
        name = gpu()
        left_out = _left_out(timed, name)
        timed = [(book, mask & _of_gpu(book, name)) for book, mask in timed]
    parts, wrong = _possible(timed, target, name)
    notes = (*(note for book in books for note in book.notes), *_impossible(wrong))
    return Counted(parts, notes, left_out, _key(timed, target, name))


def count_elsewhere(
    books: Sequence[Book], targets: Iterable[Target], device: str, gpu: str
) -> dict[Target, Counted]:
    """The records of other GPUs, of each target that there are some for.

    Which GPU it was does not matter: a time counts as far as any of the target's can.
    """
    found: dict[Target, Counted] = {}
    for target in targets:
        timed = [(book, _timed(book, target, device)) for book in books]
        others = [(book, mask & ~_of_gpu(book, gpu)) for book, mask in timed]
        parts = _possible(others, target, "")[0]
        known = Counted(parts, (), (), _key(others, target, f"not {gpu}"))
        if len(known):
            found[target] = known
    return found


def _possible(
    timed: Sequence[Part], target: Target, gpu: str
) -> tuple[tuple[Part, ...], list[Part]]:
    """Of these entries those that can be, and those that cannot."""
    parts: list[Part] = []
    wrong: list[Part] = []
    for book, mask in timed:
        entries = book.index.entries
        least = indices.least_seconds(book.index, target, gpu)
        can_be = entries.seconds >= least[entries.group]
        parts.append((book, mask & can_be))
        wrong.append((book, mask & ~can_be))
    return tuple(parts), wrong


def _timed(book: Book, target: Target, device: str) -> BoolArray:
    """Which entries are of that device and target, and did not fail."""
    wanted = [
        (one.target, one.device) == (target.name, device) for one in book.index.settings
    ]
    return _of_settings(book, wanted) & (book.index.entries.seconds > 0)


def _of_gpu(book: Book, gpu: str) -> BoolArray:
    """Which entries are of that GPU; none where it has no name."""
    wanted = [bool(gpu) and one.gpu == gpu for one in book.index.settings]
    return _of_settings(book, wanted)


def _of_settings(book: Book, wanted: Sequence[bool]) -> BoolArray:
    """Which entries are of the settings that are wanted."""
    index = book.index
    groups = np.array(wanted, np.bool_)[index.groups["setting"]]
    return groups[index.entries.group]


def _numbers(book: Book, mask: BoolArray) -> IntArray:
    """How many of these entries each group has."""
    index = book.index
    return np.bincount(index.entries.group[mask], minlength=len(index.groups))


def _of_each_setting(book: Book, mask: BoolArray) -> dict[int, int]:
    """How many of these entries each setting has, of those that have some."""
    index = book.index
    counts = np.zeros(len(index.settings), np.int64)
    np.add.at(counts, index.groups["setting"], _numbers(book, mask))
    return {one: int(counts[one]) for one in counts.nonzero()[0].tolist()}


def _left_out(parts: Sequence[Part], gpu: str) -> tuple[str, ...]:
    """A line for each other GPU that there are entries of, in their order."""
    others: Counter[str] = Counter()
    for book, mask in parts:
        settings = book.index.settings
        counts = _of_each_setting(book, mask)
        mine = [one for one in counts if settings[one].gpu != gpu]
        for one in sorted(mine, key=lambda one: _first(book, mask, one)):
            others[settings[one].gpu] += counts[one]
    return tuple(
        f"{number} record(s) of {other or 'a GPU without a name'} do not count, "
        f"only those of {gpu or 'a GPU with a name'}"
        for other, number in others.items()
    )


def _first(book: Book, mask: BoolArray, setting: int) -> int:
    """Where the first of these entries is that is of that setting."""
    wanted = [one == setting for one in range(len(book.index.settings))]
    return int((mask & _of_settings(book, wanted)).argmax())


def _impossible(parts: Sequence[Part]) -> tuple[str, ...]:
    """A line that names the first, if there is one."""
    number = sum(int(np.count_nonzero(mask)) for _, mask in parts)
    if not number:
        return ()
    book, mask = next((book, mask) for book, mask in parts if mask.any())
    (first,) = book.records(mask.nonzero()[0][:1])
    return (
        f"{number} recorded time(s) are impossible and not used: "
        f"{first.seconds:.3g} s for {first.problem}, at {first.time or 'no time'}",
    )


def _key(parts: Sequence[Part], target: Target, gpu: str) -> str:
    """Of the lines that these entries are of, and of what tells which can be."""
    digests = [
        book.index.digests[one]
        for book, mask in parts
        for one in _of_each_setting(book, mask)
    ]
    return hashlib.sha256(repr((digests, target, gpu)).encode()).hexdigest()


def _sampled(book: Book, mask: BoolArray, share: float) -> IntArray:
    """That part of the entries of a mask, in the order of the file."""
    entries, groups = book.index.entries, book.index.groups
    rows = mask.nonzero()[0]
    if not len(rows):
        return rows
    by_group = np.lexsort((entries.seconds[rows], entries.group[rows]))
    numbers = _numbers(book, mask)
    ends = np.cumsum(numbers)
    present = numbers.nonzero()[0]
    by_size = present[np.lexsort((groups["flops"][present], groups["kind"][present]))]
    each = min(_OF_PROBLEM, math.ceil(len(rows) / len(present)))
    many = max(1, round(share * len(rows) / each))
    taken: list[IntArray] = []
    for group in by_size[_evenly(len(by_size), many)].tolist():
        start, end = int(ends[group] - numbers[group]), int(ends[group])
        fast = min(end, start + each // 2)
        slower = fast + _evenly(end - fast, each - each // 2)
        taken.append(by_group[np.concatenate([np.arange(start, fast), slower])])
    return np.sort(rows[np.concatenate(taken)])


def _evenly(number: int, most: int) -> IntArray:
    """At most so many of the numbers below `number`, at even distances."""
    if number <= most:
        return np.arange(number)
    return np.arange(most) * (number - 1) // max(1, most - 1)


def _records(book: Book, mask: BoolArray) -> list[Record]:
    return book.records(mask.nonzero()[0])
