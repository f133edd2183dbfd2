"""What a kernel of two contractions computes, of which the second one multiplies what
element-wise ops and reductions of rows make of the first one: as attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from string import ascii_letters
from typing import Any

from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.contraction_statement import Contraction
from alcop_mlir.manifest.held_values import Held
from alcop_mlir.manifest.indices import Split, loops_of
from alcop_mlir.manifest.read_values import Reads
from alcop_mlir.reference.steps import Einsum, operand_maps

SCORES = "*"  # what the first contraction makes, as an array


class ChainStatement(Contraction):
    """The second contraction; the first one's result is an array of its own.

    chain: what is said of the first one, by names of arrays
    """

    def __init__(self, held: Held, arrays: Sequence[str], first: Einsum, step: Einsum):
        values = copy(held.values)
        shape = values.shapes[first.out]
        scores = Intermediate(SCORES, first.dtype, shape)
        values.arrays = {**values.arrays, SCORES: scores}
        inner = held.fork()
        inner.values = values
        inner.store(SCORES, [first.out])
        super().__init__(inner, [*arrays, SCORES], step)
        self.first, self.before = first, held
        self.chain: dict[str, Any] = {}

    def multiplies(self) -> bool:
        """Whether the kernel has arrays for what is multiplied, and what is stored."""
        if self.step.init is not None or self.first.init is not None:
            return False
        try:
            return self._has_scores() and self._has_operands()
        except Split:
            return False

    def _has_scores(self) -> bool:
        """Whether lhs is made of the first contraction's result, in one way."""
        turns = {loop: self.turns[loop] for loop in self.lhs if loop in self.turns}
        reads = Reads(self.held.fork(), self.arrays, False, turns)
        if not reads.reads(self.step.lhs, loops_of(self.lhs), is_made=True):
            return False
        scores, summed = reads.read.get(SCORES), {*self.lhs} - {*self.out}
        if scores is None or scores.strides or {*reads.read} != reads.own:
            return False
        if not {*reads.row_loops} <= summed or reads.part_loop:
            return False
        self.read.update(reads.read)
        self.chain = {
            "order": scores.loops,
            "reads": sorted({*reads.read} - {SCORES}),
            "is_row": SCORES in reads.rows,
        }
        return True

    def _has_operands(self) -> bool:
        """Whether both contractions are of arrays, which are read in one way each."""
        (lhs, rhs), out = operand_maps(self.first)
        order = self.chain["order"]
        if len(order) != len(out):
            return False
        names = dict(zip(out, order, strict=True))
        taken = {*self.turns, *order}
        free = (one for one in ascii_letters if one not in taken)
        names |= {loop: next(free) for loop in dict.fromkeys(lhs) if loop not in out}
        pair = (self.first.lhs, lhs), (self.first.rhs, rhs)
        shapes = self.values.shapes
        for name, loops in pair:
            for loop, extent in zip(loops, shapes.get(name, ()), strict=False):
                self.turns.setdefault(names.get(loop, ""), extent)
        found = [
            self._operand(name, "".join(names.get(loop, "") for loop in loops))
            for name, loops in pair
        ]
        other = self._operand(self.step.rhs, self.rhs)
        if None in found or other is None:
            return False
        one, two = (one.array for one in found if one is not None)
        self.chain |= {"lhs": one, "rhs": two}
        self.operands = SCORES, other.array, None
        self._store()
        return len({one, two, other.array}) == 3 and bool(self.outputs)

    def uses_all(self) -> bool:
        """Whether it is all that the kernel does with its arrays."""
        return {*self.read, *self.outputs} == {*self.arrays}

    def written(self, grid: Sequence[Any]) -> dict[str, Any]:
        """As JSON values, by names of arrays."""
        found = super().written(grid)
        found["arrays"].pop(SCORES)
        return {**found, "chain": self.chain}

    def store(self) -> None:
        """Arrays hold a result when the kernel is done."""
        super().store()
        self.held.values = self.before.values
        self.held.drop(SCORES)


def chains(held: Held, arrays: Sequence[str]) -> Iterator[ChainStatement]:
    """Those of a kernel with these arrays."""
    every = held.values.contractions
    for number, step in enumerate(every):
        for first in every[:number]:
            if first.out not in held.values.shapes:
                continue
            found = ChainStatement(held, arrays, first, step)
            if found.multiplies() and found.uses_all():
                yield found
