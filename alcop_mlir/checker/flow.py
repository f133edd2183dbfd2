"""Blocks, loops, and where ways meet again, of a kernel that is checked."""

from __future__ import annotations

from collections.abc import Iterable

from alcop_mlir.checker.effects import is_generic, orders, results
from alcop_mlir.checker.text import Instruction, Kernel, names_in
from alcop_mlir.errors import CertificateError

ENDS = ("ret", "exit", "trap", "brkpt")


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
        self._order()
        self._join: dict[int, int] = {}

    def target(self, ins: Instruction) -> int:
        """Where a branch goes."""
        name = ins.operands[0]
        if ins.parts[0] != "bra" or name not in self.kernel.labels:
            raise CertificateError(f"not modelled: {ins.opcode}")
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
        self.loops: dict[int, set[int]] = {}
        for last, head in backs:
            body, pending = self.loops.setdefault(head, {head}), [last]
            while pending:
                block = pending.pop()
                if block not in body:
                    body.add(block)
                    pending += before.get(block, [])
            if head and 0 in body:
                raise CertificateError("a loop with two ways in")

    def join(self, block: int) -> int:
        """The first block that every way from a block to the end goes through."""
        if not self._join:
            self._find_joins()
        return self._join[block]

    def matters(self, known: Iterable[str], kept: frozenset[int]) -> set[int]:
        """The instructions that are not just results which decide nothing.

        known: registers of which listed states say something; kept: some that matter
        """
        found = {pc for pc, i in enumerate(self.code) if self._acts(i)} | kept
        needed, before = set(known), -1
        for pc in found:
            needed |= _read(self.code[pc])
        while before < len(found):
            before = len(found)
            for pc in range(self.end - 1, -1, -1):
                ins = self.code[pc]
                if pc not in found and not needed.isdisjoint(results(ins)):
                    found.add(pc)
                    needed |= _read(ins)
        return found

    @staticmethod
    def _acts(ins: Instruction) -> bool:
        is_jump = ins.parts[0] in ("bra", "brx", "bar", *ENDS)
        return bool(ins.guard) or is_jump or orders(ins) or is_generic(ins)

    def _find_joins(self) -> None:
        """Immediate postdominators, from the end backwards (Cooper, Harvey, Kennedy,
        "A Simple, Fast Dominance Algorithm", 2001).
        """
        before: dict[int, list[int]] = {}
        for block in self.reached:
            for one in self.next[block]:
                before.setdefault(one, []).append(block)
        order = self._leaving(self.end, before)
        rank = {block: number for number, block in enumerate(order)}
        found = {self.end: self.end}
        changes = True
        while changes:
            changes = False
            for block in reversed(order[:-1]):
                ways = [b for b in self.next[block] if b in found]
                new = ways[0]
                for other in ways[1:]:
                    new = _meet(new, other, found, rank)
                if found.get(block) != new:
                    found[block], changes = new, True
        for block in self.reached:
            if block not in found:
                raise CertificateError("a loop without an end")
        self._join = found

    @staticmethod
    def _leaving(start: int, ways: dict[int, list[int]]) -> list[int]:
        """Blocks as a walk in depth leaves them."""
        met, order, stack = {start}, [], [(start, list(ways.get(start, [])))]
        while stack:
            block, left = stack[-1]
            if left:
                one = left.pop()
                if one not in met:
                    met.add(one)
                    stack.append((one, list(ways.get(one, []))))
            else:
                order.append(block)
                stack.pop()
        return order

    def between(self, block: int) -> list[int]:
        """The instructions after a block, before its ways meet."""
        join, found = self.join(block), set()
        pending = list(self.next[block])
        while pending:
            one = pending.pop()
            if one != join and one not in found:
                found.add(one)
                pending += self.next[one]
        return [pc for one in found for pc in range(one, self.stop[one])]

    def is_quiet(self, block: int) -> bool:
        """Whether nothing between the block and the join orders accesses."""
        return not any(orders(self.code[pc]) for pc in self.between(block))

    def written(self, block: int) -> set[str]:
        """The registers that are written before the ways meet."""
        return {r for pc in self.between(block) for r in results(self.code[pc])}


def _read(ins: Instruction) -> set[str]:
    """The names of what an instruction reads."""
    operands = ins.operands[1:] if results(ins) else ins.operands
    return {ins.guard}.union(*map(names_in, operands))


def _meet(a: int, b: int, found: dict[int, int], rank: dict[int, int]) -> int:
    while a != b:
        while rank[a] < rank[b]:
            a = found[a]
        while rank[b] < rank[a]:
            b = found[b]
    return a
