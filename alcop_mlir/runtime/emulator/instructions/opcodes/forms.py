"""Whether an opcode takes its modifiers, each of them and all together.

    add.xyz.u32    `add` takes no `.xyz`
    add.ftz.f64    `add` takes no `.ftz` here
    mul.u32        `mul` lacks `.lo`, `.hi` or `.wide`

What an opcode takes is in `form_rows`. Words that come in any order may stand anywhere;
types, spaces and layouts each stay in the order of their row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from alcop_mlir.runtime.emulator.instructions.opcodes.form_rows import GROUPS, ROWS
from alcop_mlir.runtime.emulator.ptx.spelling import ordered_kind
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, unsupported

_GROUP = re.compile(r"<(\w+)>")
_MOST_NAMED = 4  # words of a group, in a message


class Group(NamedTuple):
    """Modifiers of which a form has one, or at most one."""

    words: tuple[str, ...]
    is_optional: bool


class Match(NamedTuple):
    """How far modifiers fit a row: the words and the groups that are left over."""

    words: tuple[str, ...]
    groups: tuple[Group, ...]


Row = tuple[Group, ...]


def check_form(ins: Instruction) -> None:
    """Raises `EmulationError` for modifiers that ptxas would refuse, with their word.

    An opcode of which no form is known is left to the table of opcodes.
    """
    name, *words = ins.parts
    rows = _rows(name)
    matches = [match(row, words) for row in rows]
    if rows and Match((), ()) not in matches:
        raise unsupported(ins, _reason(name, words, rows, matches))


def match(row: Row, words: Sequence[str]) -> Match:
    """Each word takes the first group left that has it, behind others of its kind."""
    left = list(enumerate(row))
    strange: list[str] = []
    last: dict[str, int] = {}  # of each kind, the group of the word before
    for word in words:
        kind = ordered_kind(word)
        for at, group in left:
            if word in group.words and (not kind or at >= last.get(kind, 0)):
                left.remove((at, group))
                last[kind] = at
                break
        else:
            strange.append(word)
    missing = tuple(group for _, group in left if not group.is_optional)
    return Match(tuple(strange), missing)


def _reason(
    name: str, words: Sequence[str], rows: Sequence[Row], matches: Sequence[Match]
) -> str:
    """What is wrong, by the row that lacks least."""
    if "" in words:
        return "a dot with no word behind it"
    known = {word for row in rows for group in row for word in group.words}
    for word in words:
        if word not in known:
            return f"`{name}` takes no `.{word}`"
    best = min(matches, key=lambda one: len(one.words) + len(one.groups))
    if best.words:
        return f"`{name}` takes no `.{best.words[0]}` here"
    return f"`{name}` lacks {_alternatives(best.groups[0].words)}"


def _alternatives(words: Sequence[str]) -> str:
    named = [f"`.{word}`" for word in words[:_MOST_NAMED]]
    if len(named) < len(words):
        return f"one of {', '.join(named)}, ..."
    return " or ".join(filter(None, (", ".join(named[:-1]), named[-1])))


@cache
def _rows(name: str) -> tuple[Row, ...]:
    return tuple(_row(text) for text in _texts().get(name, ()))


@cache
def _texts() -> dict[str, list[str]]:
    """The text of the rows of each opcode."""
    found: dict[str, list[str]] = {}
    for line in filter(None, ROWS.splitlines()):
        names, _, text = line.partition(":")
        for name in names.split():
            found.setdefault(name, []).append(text)
    return found


def _row(text: str) -> Row:
    return tuple(_groups(text))


def _groups(text: str) -> Iterator[Group]:
    for item in text.split():
        words = _GROUP.sub(lambda found: GROUPS[found[1]], item.removesuffix("?"))
        yield Group(tuple(words.split("|")), item.endswith("?"))
