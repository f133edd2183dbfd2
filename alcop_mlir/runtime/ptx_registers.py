"""PTX in which registers are used again once their values are dead.

LLVM's back end gives each value a register of its own:

    Before:  add.s64 %rd7, %rd5, 64;  ld.global.b32 %r3, [%rd7];
             add.s64 %rd8, %rd5, 96;  ld.global.b32 %r4, [%rd8];
    After:   add.s64 %rd3, %rd2, 64;  ld.global.b32 %r1, [%rd3];
             add.s64 %rd3, %rd2, 96;  ld.global.b32 %r2, [%rd3];

ptxas, which allocates registers itself, makes the same instructions of it. The text is
a tenth shorter, and compressed a third: copies of an unrolled loop, and like parts of
several kernels, are the same text then.

This is linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", 1999) over
as many registers as it takes: the first one that is free is taken.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_BODY = re.compile(r"(?<=^\{\n).*?(?=^\}$)", re.M | re.S)
_COMMENT = re.compile(r"^[ \t]*//.*\n|[ \t]*//.*", re.M)
_STATEMENT = re.compile(r"\s*(?:[\w$]+:(?!:)|[^;]*;)")
_DECLARED = re.compile(r"(\.reg\s+\.\w+\s+%)([a-z]+)<\d+>")
_FORM = re.compile(r"\s*(?P<guard>@!?%\w+\s+)?(?P<op>[a-z]\w*)[\w.:]*\s*")
_FIRST = re.compile(r"\{[^}]*\}|[^,;]*")  # of the operands
_LABEL = re.compile(r"\s*([\w$]+):$")
_TARGET = re.compile(r"([\w$]+)\s*;$")
# Scopes of their own, as calls have, jumps through tables, and what goes on after the
# statement: such bodies stay.
_UNKNOWN = re.compile(r"\s*(?:[{}]|(?:@!?%\w+\s+)?(?:call|brx|wgmma|tcgen05)\b)")
# They write their first operand. Others read all, which makes registers live longer.
_WRITING = frozenset(
    "abs add and atom bfe bfi brev clz copysign cos cvt cvta div ex2 fma ld ldmatrix "
    "lg2 lop3 mad max min mma mov mul neg not or popc prmt rcp rem rsqrt selp set setp "
    "shf shfl shl shr sin sqrt sub tanh vote xor".split()
)
_LEAVING = ("ret", "exit")


def reuse(ptx: str) -> str:
    """`ptx` with registers used again, and without comments in kernels.

    A body with calls, scopes, jumps through tables or wgmma keeps its registers.
    """
    return _BODY.sub(lambda found: _reused(_COMMENT.sub("", found[0])), ptx)


@dataclass(frozen=True)
class _Statement:
    """pieces: its text, registers at odd places; read, written: registers.

    op: what it begins with, empty of a label
    """

    pieces: list[str]
    read: Sequence[str]
    written: Sequence[str]
    op: str = ""
    guarded: bool = False


@dataclass(frozen=True)
class _Block:
    """Statements from `begin` to before `end`, and the blocks that may follow."""

    begin: int
    end: int
    followers: Sequence[int]


@dataclass
class _Interval:
    """From when to when a register is in use: before statement i is 2 * i, behind it
    2 * i + 1.
    """

    first: int
    last: int

    def add(self, time: int) -> None:
        """It is in use then."""
        self.first, self.last = min(self.first, time), max(self.last, time)


def _reused(body: str) -> str:
    classes = [found[2] for found in _DECLARED.finditer(body)]
    texts = _STATEMENT.findall(body)
    if not classes or any(map(_UNKNOWN.match, texts)):
        return body
    register = re.compile(rf"%((?:{'|'.join(classes)})\d+)\b")
    statements = [_statement(text, register) for text in texts]
    names = _names(_intervals(statements))
    counts: dict[str, int] = defaultdict(int)
    for kind, number in names.values():
        counts[kind] = max(counts[kind], number)
    for pieces in (one.pieces for one in statements):
        pieces[1::2] = ["%{}{}".format(*names[name]) for name in pieces[1::2]]
    renamed = "".join(piece for one in statements for piece in one.pieces)
    return _DECLARED.sub(
        lambda found: f"{found[1]}{found[2]}<{counts[found[2]] + 1}>", f"{renamed}\n"
    )


def _statement(text: str, register: re.Pattern[str]) -> _Statement:
    pieces = register.split(text)
    names = pieces[1::2]
    form = _FORM.match(text)
    if form is None:  # a label, or a directive
        return _Statement(pieces, names, ())
    guards = 1 if form["guard"] else 0
    first = _FIRST.match(text, form.end())
    count = 0
    if first is not None and form["op"] in _WRITING:
        count = len(register.findall(first[0]))
    written = names[guards : guards + count]
    # What a guard may leave as it was is read.
    read = names if guards else names[count:]
    return _Statement(pieces, read, written, form["op"], bool(guards))


def _names(intervals: Mapping[str, _Interval]) -> dict[str, tuple[str, int]]:
    """The class and the number that each register gets."""
    found: dict[str, tuple[str, int]] = {}
    free: dict[str, list[int]] = defaultdict(list)
    used: dict[str, list[tuple[int, int]]] = defaultdict(list)  # until when
    highest: dict[str, int] = defaultdict(int)
    for name, one in sorted(intervals.items(), key=lambda item: item[1].first):
        kind = name.rstrip("0123456789")
        while used[kind] and used[kind][0][0] < one.first:
            heapq.heappush(free[kind], heapq.heappop(used[kind])[1])
        if not free[kind]:
            highest[kind] += 1
            free[kind].append(highest[kind])
        number = heapq.heappop(free[kind])
        heapq.heappush(used[kind], (one.last, number))
        found[name] = kind, number
    return found


def _intervals(statements: Sequence[_Statement]) -> dict[str, _Interval]:
    """By register, in the order in which they are first named."""
    found: dict[str, _Interval] = {}
    for i, one in enumerate(statements):
        for time, names in ((2 * i, one.read), (2 * i + 1, one.written)):
            for name in names:
                if name in found:
                    found[name].last = time
                else:
                    found[name] = _Interval(time, time)
    bits = {name: 1 << number for number, name in enumerate(found)}
    every, edges = [*found], [*_live_at(statements, _blocks(statements), bits)]
    # Each register at the first and the last edge where it is live: few of many.
    for order in (edges, reversed(edges)):
        seen = 0
        for time, live in order:
            for name in _named(live & ~seen, every):
                found[name].add(time)
            seen |= live
    return found


def _live_at(
    statements: Sequence[_Statement],
    blocks: Sequence[_Block],
    bits: Mapping[str, int],
) -> Iterator[tuple[int, int]]:
    """When blocks begin and end, and which registers are live then, as bits."""
    own = [_read_and_written(statements[one.begin : one.end], bits) for one in blocks]
    before = [read for read, _ in own]
    behind = [0 for _ in blocks]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            for follower in blocks[number].followers:
                behind[number] |= before[follower]
            read, written = own[number]
            live = read | behind[number] & ~written
            changed |= live != before[number]
            before[number] = live
    for number, block in enumerate(blocks):
        yield 2 * block.begin, before[number]
        yield 2 * block.end - 1, behind[number]


def _read_and_written(
    statements: Iterable[_Statement], bits: Mapping[str, int]
) -> tuple[int, int]:
    """What is read before it is written here, and what is written."""
    read = written = 0
    for one in statements:
        for name in one.read:
            read |= bits[name] & ~written
        for name in one.written:
            written |= bits[name]
    return read, written


def _blocks(statements: Sequence[_Statement]) -> list[_Block]:
    labels: dict[str, int] = {}
    starts = {0}
    for i, one in enumerate(statements):
        if label := _LABEL.match(one.pieces[0]):
            labels[label[1]] = i
            starts.add(i)
        elif one.op == "bra" or one.op in _LEAVING:
            starts.add(i + 1)
    begins = sorted(starts - {len(statements)})
    numbers = {begin: number for number, begin in enumerate(begins)}
    ends = [*begins[1:], len(statements)]
    return [
        _Block(begin, end, [*_followers(statements[end - 1], end, labels, numbers)])
        for begin, end in zip(begins, ends, strict=True)
    ]


def _followers(
    last: _Statement, end: int, labels: Mapping[str, int], numbers: Mapping[int, int]
) -> Iterator[int]:
    if last.op == "bra" and (target := _TARGET.search(last.pieces[-1])):
        yield numbers[labels[target[1]]]
    goes_on = last.guarded or last.op not in ("bra", *_LEAVING)
    if goes_on and end in numbers:
        yield numbers[end]


def _named(bits: int, names: Sequence[str]) -> Iterator[str]:
    while bits:
        yield names[(bits & -bits).bit_length() - 1]
        bits &= bits - 1
