"""A kernel as blocks, loops and registers: what a proof asks about its code.

Numbers of instructions (`pc`) are those of the parser; the end of the kernel is the
number after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property

from alcop_mlir.certificate.code.assertions import without_failures
from alcop_mlir.certificate.code.operands import registers, results, sources
from alcop_mlir.certificate.verdicts import Outside
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Module,
    Name,
    PtxKernel,
)

ENDS = ("ret", "exit", "trap")
# They move data to or from shared memory, or order such moves.
_SYNCHRONIZING = (
    "bar",
    "barrier",
    "cp",
    "ldmatrix",
    "stmatrix",
    "mbarrier",
    "wgmma",
    "tcgen05",
)
# Instructions that order nothing here: a fence adds to what barriers already do.
_LANE = ("%tid.x", "%tid.y", "%tid.z", "%laneid", "%warpid")


def decides(ins: Instruction) -> tuple[str, ...]:
    """The registers that it reads, but for what it stores."""
    if ins.parts[0] not in ("st", "stmatrix"):
        return sources(ins)
    places = [o for o in ins.operands if isinstance(o, Address)]
    guard = [] if ins.guard is None else [ins.guard[0]]
    return (*guard, *(r for one in places for r in registers(one)))


def touches_shared(ins: Instruction) -> bool:
    """Whether it reads or writes shared memory."""
    return _touches_shared(ins.parts)


@cache
def _touches_shared(parts: tuple[str, ...]) -> bool:
    if parts[0] in ("ldmatrix", "stmatrix"):
        return True
    if any(part.split("::")[0] == "shared" for part in parts):
        return parts[0] not in ("cvta", "isspacep", "mapa")
    return False


def is_generic(ins: Instruction) -> bool:
    """Whether it is a load or store whose state space only its address tells."""
    return _is_generic(ins.parts)


@cache
def _is_generic(parts: tuple[str, ...]) -> bool:
    spaces = ("shared", "global", "param", "local", "const")
    return parts[0] in ("ld", "st", "atom", "red") and not any(
        part.split("::")[0] in spaces for part in parts
    )


def synchronizes(ins: Instruction) -> bool:
    """Whether threads may not part ways around it."""
    if ins.parts[:2] == ("bar", "warp"):
        return False
    return ins.parts[0] in _SYNCHRONIZING or touches_shared(ins)


def is_barrier(ins: Instruction) -> bool:
    """Whether all threads have to execute it, or waits for groups of copies."""
    if ins.parts[0] in ("bar", "barrier"):
        return ins.parts[1] != "warp"
    return ins.parts[:2] == ("cp", "async") and not touches_shared(ins)


def is_group(ins: Instruction) -> bool:
    """Whether it commits or waits for groups of copies, each thread its own."""
    return ins.parts[:2] == ("cp", "async") and is_barrier(ins)


@dataclass
class Code:
    """The instructions of one entry, with what is known of them before any run."""

    module: Module
    kernel: PtxKernel
    instructions: list[Instruction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.labels = self.kernel.labels
        self.instructions, self.may_fail = without_failures(self.kernel)
        self.end = len(self.instructions)
        self.written = [results(i) for i in self.instructions]
        self.read = [sources(i) for i in self.instructions]
        self._find_blocks()

    def target(self, pc: int) -> int:
        """Where the branch at `pc` goes."""
        ins = self.instructions[pc]
        operand = ins.operands[0]
        name = operand.name if isinstance(operand, Name) else ""
        if ins.parts[0] != "bra" or name not in self.labels:
            raise Outside(f"a branch to no label: {ins.text}", ins.line)
        return self.labels[name]

    def _next(self, pc: int) -> list[int]:
        """What may follow the instruction, the target of a branch first."""
        ins = self.instructions[pc]
        if ins.parts[0] in ("bra", "brx"):
            return [self.target(pc)] + ([pc + 1] if ins.guard else [])
        if ins.parts[0] in ENDS:
            return ([pc + 1] if ins.guard else []) + [self.end]
        return [pc + 1]

    def _find_blocks(self) -> None:
        starts = {0, self.end, *self.labels.values()}
        jumps = ("bra", "brx", *ENDS)
        starts |= {
            p + 1 for p, i in enumerate(self.instructions) if i.parts[0] in jumps
        }
        ordered = sorted(starts)
        self.stop = dict(zip(ordered, [*ordered[1:], self.end], strict=True))
        self.block_of = [0] * (self.end + 1)
        for start, stop in self.stop.items():
            self.block_of[start:stop] = [start] * (stop - start)
        self.block_of[self.end] = self.end
        self.following = {
            b: self._next(self.stop[b] - 1) if b < self.end else [] for b in ordered
        }
        self._walk()

    def _walk(self) -> None:
        """Blocks that are reached, as a walk in depth leaves them; and loops."""
        open_, self.left, back = {0}, [], set()
        met, stack = {0}, [(0, iter(self.following[0]))]
        while stack:
            block, rest = stack[-1]
            for one in rest:
                if one in open_:
                    back.add((block, one))
                elif one not in met:
                    met.add(one)
                    open_.add(one)
                    stack.append((one, iter(self.following[one])))
                    break
            else:
                open_.discard(block)
                self.left.append(block)
                stack.pop()
        self.before: dict[int, list[int]] = {}
        for block in self.left:
            for one in self.following[block]:
                self.before.setdefault(one, []).append(block)
        self.loops: dict[int, set[int]] = {}
        for block, head in sorted(back):
            self._add_loop(head, block)

    def _add_loop(self, head: int, last: int) -> None:
        body = self.loops.setdefault(head, {head})
        pending = [last]
        while pending:
            block = pending.pop()
            if block not in body:
                body.add(block)
                pending += self.before.get(block, [])
        if head and 0 in body:
            line = self.instructions[head].line
            raise Outside("a loop with two ways in", line)

    def is_innermost(self, head: int) -> bool:
        """Whether no other loop is inside of the loop."""
        return self.loops[head] & self.loops.keys() == {head}

    def pcs(self, blocks: set[int]) -> Iterator[int]:
        """All instructions of some blocks."""
        for block in blocks:
            yield from range(block, self.stop[block] if block < self.end else block)

    @cached_property
    def exits(self) -> set[int]:
        """The blocks right behind loops, in none themselves, and where ways from
        there meet others.
        """
        bodies = set().union(*self.loops.values())
        behind = {n for block in bodies for n in self.following[block]}
        behind -= bodies | {self.end}
        meet = {self.after[block] for block in behind}
        return (behind | meet) - bodies - {self.end}

    @cached_property
    def changed(self) -> dict[int, set[str]]:
        """By head, the registers that its loop writes."""
        return {
            head: {r for pc in self.pcs(body) for r in self.written[pc]}
            for head, body in self.loops.items()
        }

    @cached_property
    def after(self) -> dict[int, int]:
        """By block, where all ways from it meet again: its immediate postdominator."""
        every = frozenset(self.left)
        found = {b: every for b in self.left}
        found[self.end] = frozenset([self.end])
        is_open = True
        while is_open:
            is_open = False
            for block in self.left:
                if block == self.end:
                    continue
                ways = [found[n] for n in self.following[block]]
                new = frozenset.intersection(*ways) | {block}
                if new != found[block]:
                    found[block], is_open = new, True
        return {
            b: max(ways - {b}, key=lambda x: len(found[x]), default=self.end)
            for b, ways in found.items()
            if b != self.end
        }

    def width(self, register: str) -> int:
        """The bits of a register, by its declaration."""
        if register in self.kernel.registers:
            return max(8 * self.kernel.registers[register].size, 1)
        stem = register.split("#")[0].rstrip("0123456789")
        found = self.kernel.register_ranges.get(stem)
        return 32 if found is None else max(8 * found[0].size, 1)

    def between(self, block: int) -> set[int]:
        """The blocks after `block` and before all its ways meet."""
        join, found = self.after[block], set()
        pending = list(self.following[block])
        while pending:
            one = pending.pop()
            if one != join and one not in found:
                found.add(one)
                pending += self.following[one]
        return found

    @cached_property
    def live(self) -> dict[int, set[str]]:
        """By block, the registers that are read from there on before being written."""
        return self._live([set(one) for one in self.read])

    @cached_property
    def decisive(self) -> dict[int, set[str]]:
        """Of live registers those of which ways and addresses may depend."""
        return self._live(
            [
                set(decides(ins)) if pc in self.matters else set()
                for pc, ins in enumerate(self.instructions)
            ]
        )

    def _live(self, read: list[set[str]]) -> dict[int, set[str]]:
        uses, kills = {}, {}
        for block in self.left:
            used, killed = set(), set()
            for pc in self.pcs({block}):
                used.update(r for r in read[pc] if r not in killed)
                if self.instructions[pc].guard is None:
                    killed.update(self.written[pc])
                else:
                    used.update(r for r in self.written[pc] if r not in killed)
            uses[block], kills[block] = used, killed
        found: dict[int, set[str]] = {b: set() for b in self.left}
        is_open = True
        while is_open:
            is_open = False
            for block in self.left:
                out = set().union(*(found[n] for n in self.following[block]), set())
                new = uses[block] | (out - kills[block])
                if new != found[block]:
                    found[block], is_open = new, True
        return found

    @cached_property
    def matters(self) -> set[int]:
        """The instructions that act or access memory, and those of which it depends
        whether, and where.
        """
        found = {
            pc
            for pc, ins in enumerate(self.instructions)
            if ins.parts[0] in ("bra", "brx", "bar", "call", *ENDS)
            or synchronizes(ins)
            or any(isinstance(o, Address) for o in ins.operands)
        }
        names = {name for pc in found for name in decides(self.instructions[pc])}
        is_open = True
        while is_open:
            is_open = False
            for pc in range(self.end - 1, -1, -1):
                if pc not in found and not names.isdisjoint(self.written[pc]):
                    found.add(pc)
                    names.update(self.read[pc])
                    is_open = True
        return found

    def slice_of(self, names: set[str]) -> set[str]:
        """The registers from which those are computed, and themselves."""
        found = set(names)
        is_open = True
        while is_open:
            is_open = False
            for written, read, ins in zip(
                self.written, self.read, self.instructions, strict=True
            ):
                if ins.parts[0] != "ld" and found.intersection(written):
                    new = set(read) - found
                    if ins.parts[0] == "selp":  # which one is a way of its own
                        choice = set(registers(ins.operands[3]))
                        new -= choice - self.varying
                    found |= new
                    is_open = is_open or bool(new)
        return found

    @cached_property
    def needed(self) -> set[str]:
        """Registers of which shared addresses and guards by thread are computed."""
        names: set[str] = set()
        for ins in self.instructions:
            if not synchronizes(ins):
                continue
            place = next((o for o in ins.operands if isinstance(o, Address)), None)
            names.update(registers(place) if place is not None else ())
            if ins.guard and ins.guard[0] in self.varying:
                names.add(ins.guard[0])
        for block in self.left:
            pc = self.stop[block] - 1
            guard = self.instructions[pc].guard if block < self.end else None
            if guard and guard[0] in self.varying and self.is_loud(block):
                names.add(guard[0])
        return self.slice_of(names)

    def is_loud(self, block: int) -> bool:
        """Whether something between the block and its join synchronizes."""
        return any(
            synchronizes(self.instructions[pc]) for pc in self.pcs(self.between(block))
        )

    @cached_property
    def varying(self) -> set[str]:
        """Registers that may differ between threads."""
        found: set[str] = set(_LANE)
        is_open = True
        while is_open:
            is_open = False
            for written, read, ins in zip(
                self.written, self.read, self.instructions, strict=True
            ):
                differs = ins.parts[0] in (
                    "shfl",
                    "mma",
                    "ldmatrix",
                    "atom",
                    "activemask",
                )
                differs = differs or (ins.parts[0] == "ld" and "shared" in ins.parts)
                if differs or found.intersection(read):
                    new = set(written) - found
                    found |= new
                    is_open = is_open or bool(new)
        return found
