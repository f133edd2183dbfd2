"""What a kernel of two contractions computes, of which the second one multiplies what
element-wise ops and reductions of rows make of the first one: as attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from string import ascii_letters
from typing import Any

from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Intermediate
from alcop_mlir.manifest.contraction_statement import Contraction
from alcop_mlir.manifest.held_values import Held, Operand, elements
from alcop_mlir.manifest.indices import Index, Linear, Shape, Split
from alcop_mlir.manifest.kernels import Kernel, Pointer
from alcop_mlir.manifest.promises import polynomial
from alcop_mlir.manifest.read_values import Reads
from alcop_mlir.manifest.stated_arrays import (
    Unstated,
    is_known,
    known_members,
    sizes_of,
)
from alcop_mlir.polynomials import constant
from alcop_mlir.reference.steps import Einsum, operand_maps

SCORES = "*"  # what the first contraction makes, as an array


class ChainStatement(Contraction):
    """The second contraction; the first one's result is an array of its own.

    chain: what is said of the first one, by names of arrays
    index: of each loop of the two contractions, what it is made of: heads that share
           keys are one loop there, and two here
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
        self.index = {loop: Linear(((loop, 1),)) for loop in self.turns}

    def multiplies(self) -> bool:
        """Whether the kernel has arrays for what is multiplied, and what is stored."""
        if self.step.init is not None or self.first.init is not None:
            return False
        while len(self.turns) + 4 < len(ascii_letters):  # a few more may be needed
            try:
                return self._has_scores() and self._has_operands()
            except Split as split:
                index, self.turns = split.loops((*self.index.values(),), self.turns)
                self.index = dict(zip(self.index, index, strict=True))
                self.read, self.results, self.outputs = {}, {}, {}
        return False

    def _has_scores(self) -> bool:
        """Whether lhs is made of the first contraction's result, in one way."""
        index = self._linear(self.lhs)
        loops = [loop for one in index for loop, _ in one.factors]
        turns = {loop: self.turns[loop] for loop in loops}
        reads = Reads(self.held.fork(), self.arrays, False, turns)
        if not reads.reads(self.step.lhs, index, is_made=True):
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
        shapes = self.values.shapes
        known = _dimensions(shapes[self.first.out], self.read[SCORES])
        if known is None or len(known) != len(out):
            return False
        names = dict(zip(out, known, strict=True))
        for name, loops in ((self.first.lhs, lhs), (self.first.rhs, rhs)):
            for loop, extent in zip(loops, shapes.get(name, ()), strict=False):
                if loop not in names:
                    names[loop] = self._summed(loop, extent)
        found = [
            self._read(self.first.lhs, tuple(names[loop] for loop in lhs)),
            self._read(self.first.rhs, tuple(names[loop] for loop in rhs)),
            self._operand(self.step.rhs, self.rhs),
        ]
        arrays = [one.array for one in found if one is not None]
        if len({*arrays}) != 3:
            return False
        self.chain |= {"lhs": arrays[0], "rhs": arrays[1]}
        self.operands = SCORES, arrays[2], None
        self._store()
        return bool(self.outputs) or self._has_parts_of_rows()

    def _has_parts_of_rows(self) -> bool:
        """Whether it has arrays for parts along the columns: of accumulators, of what
        each row is scaled by, and of totals, in this order.
        """
        every = [a for a in self.arrays if a not in self.read]
        found = [one for one in self.values.function.intermediates if one.name in every]
        if len(every) != 3 or len(found) != 3 or not self.chain["is_row"]:
            return False
        shapes = {one.name: one.shape for one in found}
        count = shapes[every[0]][0]
        free = [one for one in ascii_letters if one not in self.turns]
        if not free or not isinstance(count, int) or not is_known(self.read):
            return False
        loops = free[0] + self._split(self.out)
        rows = "".join(n for n in loops if n in free[0] + self.chain["order"])
        sizes = {**sizes_of(self.read.values()), free[0]: count}
        for array, own in zip(every, (loops, rows, rows), strict=True):
            operand = Operand(array, tuple(sizes[n] for n in own), own)
            if elements(operand.shape) != elements(shapes[array]):
                return False
            self.read[array] = operand
        self.parts = self.read.pop(every[0])
        self.chain["kept"] = every[1:]
        self.chain["order"] = free[0] + self.chain["order"]
        return True

    def _summed(self, loop: str, extent: Extent) -> Linear:
        """A loop of the first contraction alone."""
        own = f"first {loop}"
        if own not in self.index:
            new = next(one for one in ascii_letters if one not in self.turns)
            self.index[own], self.turns[new] = Linear(((new, 1),)), extent
        return self.index[own]

    def _linear(self, loops: str) -> Index:
        return tuple(self.index[loop] for loop in loops)

    def _operand(self, name: str, loops: str) -> Operand | None:
        return self._read(name, self._linear(loops))

    def _read(self, name: str, index: Index) -> Operand | None:
        """An array that is read, as long as it is read in one way."""
        reads = Reads(self.held.fork(), self.arrays, False, self.turns)
        if not reads.reads(name, index) or len(reads.read) != 1 or reads.rows:
            return None
        (found,) = reads.read.values()
        is_one_way = self.read.setdefault(found.array, found) == found
        return found if is_one_way else None

    def uses_all(self) -> bool:
        """Whether it is all that the kernel does with its arrays."""
        parts = () if self.parts is None else (self.parts.array,)
        return {*self.read, *self.outputs, *parts} == {*self.arrays}

    def written(self, grid: Sequence[Any]) -> dict[str, Any]:
        """As JSON values, by names of arrays."""
        if not is_known(self.read):
            raise Unstated("a chain of sizes that are known at run time only")
        found = Contraction.written(self._with_split_loops(), grid)
        found["arrays"].pop(SCORES)
        found["outputs"] |= {array: [] for array in self.chain.get("kept", ())}
        return {**found, "chain": self.chain}

    def merged(self, held: Held, kernel: Kernel) -> ChainStatement | None:
        """What another kernel makes of the parts, if it has arrays for that."""
        arrays = [one.array for one in kernel.arguments if isinstance(one, Pointer)]
        if self.parts is None or not {*self._made} <= {*arrays}:
            return None
        found = copy(self)
        found.held, found.values = held.fork(), held.values
        found.arrays = [array for array in arrays if array not in self._made]
        found.read, found.results, found.outputs = {}, {}, {}
        found._store()
        is_all = {*found.read, *found.outputs} == {*found.arrays}
        return found if is_all and len(found.outputs) == 1 else None

    def written_merge(self, parts: ChainStatement, grid: Sequence[Any]) -> Any:
        """As JSON values, what is made of these parts."""
        ((array, value),) = self.outputs.items()
        used = {**parts._made, **self.read}
        sizes, split = sizes_of(used.values()), self._with_split_loops()
        used[array] = split.stored_as(array, value, sizes)
        own = next(iter(parts._made.values())).loops
        return {
            **known_members(used, self.values.arrays, grid),
            **dict.fromkeys(("lhs", "rhs", "init")),
            "order": own[1:] + own[0],
            "outputs": {array: sorted(self.results[value].reads)},
            "rows": {"loops": own[0], "arrays": sorted(parts._made)},
        }

    @property
    def _made(self) -> dict[str, Operand]:
        """Arrays of parts, that of the accumulators first."""
        assert self.parts is not None
        rows = {name: self.read[name] for name in self.chain["kept"]}
        return {self.parts.array: self.parts, **rows}

    def _with_split_loops(self) -> ChainStatement:
        found = copy(self)
        found.out = self._split(self.out)
        found.results = {
            name: one._replace(loops=self._split(one.loops))
            for name, one in self.results.items()
        }
        return found

    def _split(self, loops: str) -> str:
        every = (self.index[loop].factors for loop in loops)
        return "".join(loop for factors in every for loop, _ in factors)

    def store(self) -> None:
        """Arrays hold a result when the kernel is done."""
        super().store()
        self.held.values = self.before.values
        self.held.drop(SCORES)
        self.held.parts = self if self.chain.get("kept") else None


def _dimensions(shape: Shape, operand: Operand) -> list[Linear] | None:
    """By dimension of a value, the loops of an array that holds it as it is."""
    left = [*zip(operand.loops, operand.shape, strict=True)]
    found: list[Linear] = []
    for extent in shape:
        mine: list[tuple[str, int]] = []
        size = constant(1)
        while left and (not mine or size != polynomial(extent)):
            loop, turns = left.pop(0)
            if mine and not isinstance(turns, int):
                return None
            mine = [(name, each * int(str(turns))) for name, each in mine]
            mine.append((loop, 1))
            size = size * polynomial(turns)
        if size != polynomial(extent):
            return None
        found.append(Linear(tuple(mine)))
    return None if left else found


def chains(held: Held, arrays: Sequence[str]) -> Iterator[ChainStatement]:
    """Those of a kernel with these arrays."""
    for first, step in held.values.chained:
        if first.out in held.values.shapes:
            found = ChainStatement(held, arrays, first, step)
            if found.multiplies() and found.uses_all():
                yield found
