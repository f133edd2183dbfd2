"""Blocks, loops, and where ways meet again, of a kernel that is checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_

from alcop_mlir.checker.ptx.instructions import (
    ENDS,
    NUMBER,
    Instruction,
    integer,
    items,
)
from alcop_mlir.checker.ptx.text import Kernel
from alcop_mlir.errors import CertificateError

_LOADS = ("ld", "ldmatrix")
_ACCESSES = (*_LOADS, "st", "stmatrix", "cp")  # that leave nothing, but for loads
_CALLS = ("call", "brx")


@dataclass(frozen=True)
class Region:
    """What is between a branch and the first block that all of its ways go through.

    loops: heads of loops in it
    """

    join: int
    code: list[Instruction]
    loops: frozenset[int]

    @cached_property
    def is_quiet(self) -> bool:
        """Whether nothing in it orders accesses."""
        return not any(ins.orders for ins in self.code)

    @cached_property
    def is_collective(self) -> bool:
        """Whether all threads have to execute something in it."""
        return any(ins.is_collective for ins in self.code)

    @cached_property
    def only_loads(self) -> bool:
        """Whether what orders accesses in it does but read."""
        return all(i.parts[0] in _LOADS for i in self.code if i.orders)

    @cached_property
    def written(self) -> set[str]:
        """The registers that are written in it."""
        return {name for ins in self.code for name in ins.results}


class Flow:
    """Of one kernel; a block is named by its first instruction, the end by len(code).

    loops: by head, the blocks of the loop
    """

    def __init__(self, kernel: Kernel):
        self.kernel, self.code = kernel, kernel.code
        self.end = len(kernel.code)
        starts = {0, self.end, *kernel.labels.values()}
        for pc, ins in enumerate(self.code):
            if ins.parts[0] in ("bra", "brx", *ENDS):
                starts.add(pc + 1)
        ordered = sorted(starts)
        self.stop = dict(zip(ordered, [*ordered[1:], self.end], strict=True))
        self.block = [s for s in ordered for _ in range(self.stop[s] - s)] + [self.end]
        self.next = {b: self._next(b) for b in ordered}
        self.loops: dict[int, set[int]] = {}
        self._order()
        self._regions: dict[int, Region] = {}
        self._joins: dict[int, int] = {}

    @cached_property
    def carriers(self) -> set[str]:
        """See `carriers`."""
        return carriers(self)

    @cached_property
    def live(self) -> dict[int, set[str]]:
        """See `live`."""
        return live(self)

    def target(self, ins: Instruction) -> int:
        """Where a branch goes."""
        name = ins.operands[0]
        if ins.parts[0] != "bra" or name not in self.kernel.labels:
            raise CertificateError(ins.told("not modelled"))
        return self.kernel.labels[name]

    def _next(self, block: int) -> list[int]:
        if block == self.end:
            return []
        pc = self.stop[block] - 1
        ins = self.code[pc]
        rest = [pc + 1] if ins.guard else []
        if ins.parts[0] in ("bra", "brx"):
            return [self.target(ins), *rest]
        return [*rest, self.end] if ins.parts[0] in ENDS else [pc + 1]

    def _order(self) -> None:
        """Loops: ways back to a block from which the walk has not returned."""
        state = {0: 1}
        stack = [(0, list(self.next[0]))]
        backs: list[tuple[int, int]] = []
        self.reached: list[int] = []
        while stack:
            block, left = stack[-1]
            if not left:
                stack.pop()
                state[block] = 2
                self.reached.append(block)
                continue
            one = left.pop(0)
            if state.get(one) == 1:
                backs.append((block, one))
            elif one not in state:
                state[one] = 1
                stack.append((one, list(self.next[one])))
        before: dict[int, list[int]] = {}
        for block in self.reached:
            for one in self.next[block]:
                before.setdefault(one, []).append(block)
        for last, head in backs:
            body, pending = self.loops.setdefault(head, {head}), [last]
            while pending:
                block = pending.pop()
                if block not in body:
                    body.add(block)
                    pending += before.get(block, [])
            if head and 0 in body:
                raise CertificateError("a loop with two ways in")

    def matters(self, known: Iterable[str], kept: frozenset[int]) -> set[int]:
        """The instructions that are not just results which decide nothing.

        known: registers of which listed states say something; kept: some that matter
        """
        found: set[int] = set()
        needed = set(known)
        grows = True
        while grows:
            grows = False
            for pc in range(self.end - 1, -1, -1):
                ins = self.code[pc]
                if pc not in found and (
                    pc in kept or ins.acts or not needed.isdisjoint(ins.results)
                ):
                    found.add(pc)
                    needed |= ins.decides
                    grows = True
        return found

    def inside(self, block: int) -> set[int]:
        """The blocks from the end of a block on until all ways meet."""
        self._joins = self._joins or self._all_joins()
        join, found, pending = self._joins[block], set[int](), [*self.next[block]]
        while pending:
            one = pending.pop()
            if one != join and one not in found:
                found.add(one)
                pending += self.next[one]
        return found

    def later(self, block: int) -> set[int]:
        """The blocks that a block leads to, and itself."""
        found, pending = {block}, [block]
        while pending:
            more = {*self.next[pending.pop()]} - found
            found |= more
            pending += more
        return found

    def past(self, first: int, block: int) -> list[tuple[int, int]]:
        """Edges on ways from the end of a first block until all meet, behind which
        another is not reached, of blocks from which it was; without loops.
        """
        inside = self.inside(first) | {first}
        leads = {block}
        for one in self.reached:
            if one in inside and not leads.isdisjoint(self.next[one]):
                leads.add(one)
        return [
            (one, to)
            for one in leads - {block}
            for to in self.next[one]
            if to not in leads
        ]

    def is_between(self, first: int, block: int, to: int) -> bool:
        """Whether all ways from the end of a first block lead to another through a
        third.
        """
        found, pending = {block}, [*self.next[first]]
        while pending:
            one = pending.pop()
            if one not in found:
                found.add(one)
                pending += self.next[one]
        return to not in found

    def region(self, block: int) -> Region:
        """From the end of a block on."""
        if block not in self._regions:
            found = self.inside(block)
            join = self._joins[block]
            code = [i for one in found for i in self.code[one : self.stop[one]]]
            loops = frozenset(self.loops.keys() & found)
            self._regions[block] = Region(join, code, loops)
        return self._regions[block]

    def _all_joins(self) -> dict[int, int]:
        """By block, the first one that all ways from it go through.

        The blocks that all ways from one go through are a chain, here as bits: without
        the block itself they are those of the first.
        """
        bits = {block: 1 << number for number, block in enumerate(self.reached)}
        every = 1 << len(bits)  # what has no way to the end keeps this bit
        every |= every - 1
        chains = {**dict.fromkeys(bits, every), self.end: bits.get(self.end, 0)}
        changes = True
        while changes:
            changes = False
            for block in self.reached:
                new = bits[block]
                if block != self.end:
                    new |= reduce(and_, (chains[one] for one in self.next[block]))
                changes |= new != chains[block]
                chains[block] = new
        if any(chain > every >> 1 for chain in chains.values()):
            raise CertificateError("a loop without an end")
        firsts = {chain: block for block, chain in chains.items()}
        return {b: firsts[c & ~bits[b]] for b, c in chains.items() if b != self.end}


def carriers(flow: Flow) -> set[str]:
    """Registers that may hold what is loaded or multiplied, or what is made of that;
    and those that are moved there.
    """
    found: set[str] = set()
    for ins in flow.code:
        if ins.parts[0] == "mma":
            found.update(items(ins.operands[3]))
        if ins.parts[0] in (*_LOADS, "mma") and "param" not in ins.parts:
            found.update(ins.results)
    grows = True
    while grows:
        before = len(found)
        for ins in flow.code:
            if ins.parts[0] not in _LOADS and not found.isdisjoint(ins.reads):
                found.update(ins.results)
            if ins.parts[0] == "mov" and not found.isdisjoint(ins.results):
                found.update(items(ins.operands[1]))
        grows = len(found) > before
    return found


def numbers(flow: Flow) -> frozenset[str]:
    """Registers that hold nothing of memory; none where that decides what runs, or
    other instructions than loads may read it.
    """
    carried = flow.carriers
    if any(i.guard.lstrip("!") in carried for i in flow.code if i.guard):
        return frozenset()
    for ins in flow.code:
        is_memory = any(operand.startswith("[") for operand in ins.operands)
        if ins.parts[0] in _CALLS or (is_memory and ins.parts[0] not in _ACCESSES):
            return frozenset()
    written = {name for ins in flow.code for name in ins.results}
    return frozenset(written - carried)


def counters(flow: Flow, head: int) -> dict[str, int]:
    """Registers to which each turn of a loop adds a number, where it goes back."""
    body = [b for b in flow.loops.get(head, ()) if flow.next[b]]
    written = Counter(
        name for b in body for i in flow.code[b : flow.stop[b]] for name in i.results
    )
    found: dict[str, int] = {}
    for block in (b for b in body if head in flow.next[b]):
        for ins in flow.code[block : flow.stop[block]]:
            is_one = ins.parts[0] == "add" and written[ins.operands[0]] == 1
            if is_one and not ins.guard and ins.operands[0] == ins.operands[1]:
                if NUMBER.fullmatch(ins.operands[2]):
                    found[ins.operands[0]] = integer(ins.operands[2])
    return found


def live(flow: Flow) -> dict[int, set[str]]:
    """By block, the registers that are read from there on before they are written."""
    uses: dict[int, set[str]] = {}
    kills: dict[int, set[str]] = {}
    for block in flow.reached:
        used, killed = uses.setdefault(block, set()), kills.setdefault(block, set())
        for pc in range(block, flow.stop[block] if block < flow.end else block):
            ins = flow.code[pc]
            used |= ins.reads - killed
            if ins.guard:
                used |= set(ins.results) - killed
            else:
                killed |= set(ins.results)
    found = {block: set(used) for block, used in uses.items()}
    grows = True
    while grows:
        grows = False
        for block in flow.reached:
            out = set().union(*(found[n] for n in flow.next[block] if n in found))
            new = uses[block] | (out - kills[block])
            if new != found[block]:
                found[block], grows = new, True
    return found
