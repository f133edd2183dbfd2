"""Mutants of a kernel's PTX: each changes one line of what moves data or orders it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

STRICTER = "wait stricter"  # the one kind that never does harm
_WAIT = re.compile(r"(wait_group\s+)(\d+)")
_COPY = re.compile(
    r"(cp\.async\.c[ag]\.shared\.global \[%\w+)(\+\d+)?\], \[(%\w+)(\+\d+)?\]"
)
_READ = re.compile(r"((?:ldmatrix|ld\.shared|st\.shared)\S* .*?\[[%\w]+)(\+\d+)?\]")
_LOAD = re.compile(r"(ld\.global\S* .*?\[%\w+)(\+\d+)?\]")
_SHUFFLE = re.compile(r"(shfl\.sync\.\w+\.b32\s+%\w+, %\w+), (\d+),")
_WRAP = re.compile(r"(setp\.\w+\.[bs]64\s+%p\d+, %rd\d+, )([1-8]);")
_COMPARED = re.compile(r"setp\.(lt|le|gt|ge|eq|ne)\.")
_ARITHMETIC = re.compile(
    r"((?:add|sub|mul|mad|shl|shr|and|or|xor|mov)\.\S*\s+"
    r"%r[ds]?\d+,(?: %r\w+,)? )(\d+);"
)
_GUARD = re.compile(r"@(!?)(%p\d+)")
_SELECTED = re.compile(r"(selp\.b(?:32|64)\s+%r\w+), (\S+), (\S+), (%p\d+);")
_OTHER = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}
_MOVED = ("wait_group", "commit_group", "bar.sync")
_SHIFTS = (16, 64, 1024)  # bytes: a chunk, a row, a tile or so


@dataclass(frozen=True)
class Mutant:
    """kind: what was done; line: of the text, from 1; text: the whole PTX."""

    kind: str
    line: int
    text: str


def mutants(ptx: str, entry: str, most: int, seed: int = 1) -> list[Mutant]:
    """Up to `most` of one entry's: of each kind as many, where there are as many."""
    by_kind: dict[str, list[Mutant]] = {}
    for mutant in every_mutant(ptx, entry):
        by_kind.setdefault(mutant.kind, []).append(mutant)
    rng = random.Random(seed)
    for listed in by_kind.values():
        rng.shuffle(listed)
    found: list[Mutant] = []
    for turn in range(max(map(len, by_kind.values()), default=0)):
        found += [one[turn] for one in by_kind.values() if turn < len(one)]
    return found[:most]


def every_mutant(ptx: str, entry: str) -> Iterator[Mutant]:
    """All of one entry's."""
    lines = ptx.split("\n")
    first = next(n for n, line in enumerate(lines) if f".entry {entry}(" in line)
    rest = (n for n in range(first + 1, len(lines)) if ".entry" in lines[n])
    end = next(rest, len(lines))
    # What comes after the last access of shared memory is arithmetic on results.
    accesses = (n for n in range(first, end) if _is_access(lines[n]))
    end = 1 + max(accesses, default=end - 1)
    for number in range(first, end):
        for kind, new in changes(lines[number]):
            text = "\n".join([*lines[:number], new, *lines[number + 1 :]])
            yield Mutant(kind, number + 1, text)
        if _names(lines[number], _MOVED):
            yield from _moved(lines, number, end)


def _is_access(line: str) -> bool:
    """Whether it moves data of shared memory, or orders that."""
    return _names(line, (*_MOVED, "cp.async", "ldmatrix", "ld.shared", "st.shared"))


def _names(line: str, names: Sequence[str]) -> bool:
    return any(name in line for name in names)


def _moved(lines: list[str], number: int, end: int) -> Iterator[Mutant]:
    """The line behind the next one that moves data or orders it."""
    for after in range(number + 1, end):
        line = lines[after]
        if ":" in line or "bra" in line:
            return
        if _is_access(line):
            new = [*lines[:number], *lines[number + 1 : after + 1], lines[number]]
            yield Mutant("order", number + 1, "\n".join([*new, *lines[after + 1 :]]))
            return


def changes(line: str) -> Iterator[tuple[str, str]]:
    """What a line may become, each with its kind."""
    yield from _of_synchronization(line)
    yield from _of_addresses(line)
    yield from _of_slots(line)
    yield from _of_predicates(line)


def _of_synchronization(line: str) -> Iterator[tuple[str, str]]:
    if (wait := _WAIT.search(line)) is not None:
        groups = int(wait[2])
        yield "wait left out", ""
        yield "wait weakened", line.replace(wait[0], f"{wait[1]}{groups + 1}")
        if groups:
            yield STRICTER, line.replace(wait[0], f"{wait[1]}{groups - 1}")
    if "bar.sync" in line:
        yield "barrier left out", ""
    if "commit_group" in line:
        yield "commit left out", ""
        yield "commit twice", f"{line}{line}"


def _of_addresses(line: str) -> Iterator[tuple[str, str]]:
    if (copy := _COPY.search(line)) is not None:
        to, of = (int((copy[n] or "+0")[1:]) for n in (2, 4))
        yield "copy left out", ""
        for by in _SHIFTS:
            moved = f"{copy[1]}+{to + by}], [{copy[3]}+{of}]"
            yield "copy to elsewhere", line.replace(copy[0], moved)
            moved = f"{copy[1]}+{to}], [{copy[3]}+{of + by}]"
            yield "copy from elsewhere", line.replace(copy[0], moved)
    elif (read := _READ.search(line)) is not None:
        place = int((read[2] or "+0")[1:])
        kind = "store" if "st.shared" in line else "read"
        for by in _SHIFTS:
            yield f"{kind} elsewhere", line.replace(read[0], f"{read[1]}+{place + by}]")
    elif (load := _LOAD.search(line)) is not None:
        place = int((load[2] or "+0")[1:])
        for by in _SHIFTS:
            yield "load elsewhere", line.replace(load[0], f"{load[1]}+{place + by}]")


def _of_slots(line: str) -> Iterator[tuple[str, str]]:
    if (wrap := _WRAP.search(line)) is not None:
        for to in (int(wrap[2]) - 1, int(wrap[2]) + 1):
            yield "wrap moved", line.replace(wrap[0], f"{wrap[1]}{to};")
    if (shuffle := _SHUFFLE.search(line)) is not None:
        for lanes in (0, int(shuffle[2]) ^ 24):
            yield "shuffle", line.replace(shuffle[0], f"{shuffle[1]}, {lanes},")
    if (number := _ARITHMETIC.search(line)) is not None:
        value = int(number[2])
        for to in (value + 1, value * 2 or 2, value ^ 16):
            yield "number", line.replace(number[0], f"{number[1]}{to};")


def _of_predicates(line: str) -> Iterator[tuple[str, str]]:
    if (compared := _COMPARED.search(line)) is not None:
        name = compared[1]
        other = line.replace(compared[0], f"setp.{_OTHER[name]}.", 1)
        yield "comparison", other
    if (guard := _GUARD.search(line)) is not None:
        sign = "" if guard[1] else "!"
        yield "guard turned", line.replace(guard[0], f"@{sign}{guard[2]}", 1)
        yield "guard left out", line.replace(guard[0], "", 1)
    if (chosen := _SELECTED.search(line)) is not None:
        one, other, p = chosen[2], chosen[3], chosen[4]
        swapped = f"{chosen[1]}, {other}, {one}, {p};"
        yield "selection turned", line.replace(chosen[0], swapped)
