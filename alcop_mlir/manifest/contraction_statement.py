"""What a kernel of one contraction computes: which arrays it reads and stores, and how.

The sum is of elements of two arrays, or of parts that another kernel has made; what is
stored is the sum, or what element-wise ops make of it and of other arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from string import ascii_letters
from typing import Any, NamedTuple

from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.held_values import Held, Operand, Order, elements
from alcop_mlir.manifest.indices import Shape, Split, loops_of
from alcop_mlir.manifest.read_values import Reads
from alcop_mlir.manifest.stated_arrays import (
    Part,
    is_known,
    known_members,
    merged,
    open_members,
    sizes_of,
)
from alcop_mlir.manifest.windows import fused, windowed
from alcop_mlir.reference.steps import (
    Einsum,
    Map,
    Reshape,
    WindowViews,
    operand_maps,
)


class _Result(NamedTuple):
    """Elements of the sum, or what is made of them: its loops, and the arrays that are
    read besides; whether its own shape is another one.
    """

    loops: str
    reads: frozenset[str]
    is_flat: bool = False


class Contraction:
    """Of one kernel, by which `held` is changed to what arrays hold behind it.

    guesses:  whether an array of which nothing is known may be read
    turns:    of each loop
    read:     arrays that are read
    operands: those that are multiplied, or added up, and that the sum starts from
    results:  by value
    outputs:  by array, the value that is stored
    parts:    the array where parts of the sum are put, if it is made in parts
    """

    def __init__(
        self, held: Held, arrays: Sequence[str], step: Einsum, guesses: bool = False
    ):
        self.held, self.values, self.arrays = held, held.values, arrays
        self.step, self.guesses = step, guesses
        (self.lhs, self.rhs), self.out = operand_maps(step)
        self.turns = self._turns()
        self.read: dict[str, Operand] = {}
        self.operands: tuple[str, str | None, str | None]
        self.results: dict[str, _Result] = {}
        self.outputs: dict[str, str] = {}
        self.parts: Operand | None = None

    def _turns(self) -> dict[str, Extent]:
        """By loop that indexes what is multiplied."""
        shapes = self.values.shapes
        both = ((self.step.lhs, self.lhs), (self.step.rhs, self.rhs))
        return {
            loop: extent
            for name, loops in both
            for loop, extent in zip(loops, shapes.get(name, ()), strict=False)
        }

    def multiplies(self) -> bool:
        """Whether the kernel has arrays for what is multiplied, and what is stored."""
        step, parts = self.step, self._parts()
        first, second = (
            self._operand(step.lhs, self.lhs),
            self._operand(step.rhs, self.rhs),
        )
        if first is None or second is None:
            return False
        # Another kernel adds parts to what is there.
        is_part = parts is not None and step.out not in self.arrays
        init = None if is_part else self._start()
        if step.init is not None and not is_part and init is None:
            return False
        self.operands = first.array, second.array, init
        self._store()
        if self.outputs and parts is not None:
            return False  # it adds parts up, and does not read what it is given besides
        if not self.outputs:
            self.parts = parts
        return bool(self.outputs or self.parts)

    def adds_parts(self) -> bool:
        """Whether the kernel has an array of parts that another kernel has made."""
        parts = self._parts()
        if parts is None:
            return False
        self.read[parts.array] = parts
        init = self._start()
        if self.step.init is not None and init is None:
            return False
        self.operands = parts.array, None, init
        self._store()
        return bool(self.outputs)

    def _start(self) -> str | None:
        """The array that the sum starts from."""
        if self.step.init is None:
            return None
        found = self._operand(self.step.init, self.out)
        return None if found is None else found.array

    def _store(self) -> None:
        """What is made of the sum, and where it is stored."""
        self.results[self.step.out] = _Result(self.out, frozenset())
        for other in self.values.function.reference:
            if isinstance(other, Reshape) and other.source in self.results:
                source = self.results[other.source]
                self.results[other.out] = source._replace(is_flat=True)
            elif isinstance(other, Map):
                self._follow(other)
        for array in self.arrays:
            value = self._stored(array)
            if value is not None:
                self.outputs[array] = value

    def uses_all(self) -> bool:
        """Whether it is all that the kernel does with its arrays."""
        parts = () if self.parts is None else (self.parts.array,)
        return {*self.read, *self.outputs, *parts} == {*self.arrays}

    def store(self) -> None:
        """Arrays hold a result when the kernel is done, or what is made of it alone."""
        for array, value in self.outputs.items():
            mine = self.results[value][:2]
            same = [n for n, r in self.results.items() if r[:2] == mine]
            fits = [n for n in same if self.held.fits(array, n)] or [value]
            self.held.store(array, fits, self._order(array, mine[0]))

    def _order(self, array: str, loops: str) -> Order:
        """In which order an array of the function's own has dimensions of a result: as
        what windows are moved over has them, with channels last or first.
        """
        is_own = isinstance(self.values.arrays[array], Intermediate)
        for one in self.read.values() if is_own else ():
            every = "".join(loop for index in one.indices for loop, _ in index.factors)
            if one.indices and every[-1] not in loops:
                # Channels are last, and filters so too.
                rows = [loop for loop in every if loop in loops]
                rest = [loop for loop in loops if loop not in rows]
                return tuple(map(loops.index, [*rows, *rest]))
        return ()

    def _operand(self, name: str, loops: str) -> Operand | None:
        """An array that is read, as long as it is read in one way."""
        for guesses in (False, True)[: 1 + self.guesses]:
            reads = Reads(self.held.fork(), self.arrays, guesses, self.turns)
            with suppress(Split):
                is_read = reads.reads(name, loops_of(loops)) and reads.has_parts()
                if is_read and len(reads.read) == 1 and not reads.rows:
                    (found,) = reads.read.values()
                    break
            reads = Reads(self.held.fork(), self.arrays, guesses, self.turns)
            found = windowed(reads.held, name, loops, self.arrays, guesses)
            if found is not None:
                break
        else:
            return None
        if self.read.setdefault(found.array, found) != found:
            return None
        self.held = reads.held
        return found

    def _stored(self, array: str) -> str | None:
        """The last of the results that an array may be for."""
        if isinstance(self.values.arrays[array], Parameter):
            return array if array in self.results else None
        if array in self.read:
            return None
        fits = [n for n in self.results if self.held.fits(array, n)]
        return fits[-1] if fits else None

    def _follow(self, step: Map) -> None:
        """An element-wise op on results makes other results."""
        inputs, out = operand_maps(step)
        mine = [self.results[n] for n in step.inputs if n in self.results]
        if not mine:
            return
        names: dict[str, str] = {}
        if any(one.is_flat for one in mine):
            if {*inputs} != {out} or len({one.loops for one in mine}) > 1:
                return
            loops = mine[0].loops
        else:
            for name, own in zip(step.inputs, inputs, strict=True):
                if name in self.results:
                    for letter, loop in zip(own, self.results[name].loops, strict=True):
                        if names.setdefault(letter, loop) != loop:
                            return
            if not set("".join(inputs) + out) <= names.keys():
                return
            loops = "".join(names[n] for n in out)
        before = dict(self.read)
        reads = frozenset[str]().union(*(one.reads for one in mine))
        for name, own in zip(step.inputs, inputs, strict=True):
            if name in self.results:
                continue
            if names:
                read = self._operand(name, "".join(names[n] for n in own))
            else:
                read = self._flat(name, loops)
            if read is None:
                self.read = before
                return
            reads |= {read.array}
        self.results[step.out] = _Result(loops, reads, not names)

    def _flat(self, name: str, loops: str) -> Operand | None:
        """An array that is read with the loops of a result of another shape."""
        array = self.held.holder(name, self.arrays, self.guesses)
        if array is None:
            return None
        sizes = sizes_of(self.read.values())
        viewed = self.held.viewed(array, tuple(sizes[n] for n in loops), loops)
        if viewed is None or self.read.setdefault(array, viewed) != viewed:
            return None
        return viewed

    def written(self, grid: Sequence[Any]) -> dict[str, Any]:
        """As JSON values, by names of arrays."""
        sizes, used = sizes_of(self.read.values()), dict(self.read)
        reads = {n: self.results[v].reads for n, v in self.outputs.items()}
        for array, value in self.outputs.items():
            used[array] = self.stored_as(array, value, sizes)
        order = self.out
        if self.parts is not None:
            used[self.parts.array] = self.parts
            reads[self.parts.array], order = frozenset(), self.parts.loops
        lhs, rhs, init = self.operands
        arrays, windows = self.values.arrays, dict[str, Any]()
        if any(one.indices for one in used.values()):
            used, order, windows = fused(used, order, arrays)
        elif rhs is None:
            used, order = merged(used, order, arrays)
        part: Part | None = None
        if self.parts is not None:
            (summed,) = {*used[lhs].loops} - {*order}
            part = summed, self.parts.loops[0], int(str(self.parts.shape[0]))
        if is_known(used):
            members = known_members(used, arrays, grid, part)
        else:
            members = open_members(used, arrays, part)
        return {
            **members,
            **({"windows": windows} if windows else {}),
            "lhs": lhs,
            "rhs": rhs,
            "init": init,
            "order": order,
            "outputs": {n: sorted(r) for n, r in sorted(reads.items())},
        }

    def stored_as(self, array: str, value: str, sizes: Mapping[str, Extent]) -> Operand:
        """An output, by the loops of a result that it holds."""
        loops, own = self.results[value].loops, self.values.arrays[array]
        is_apart = isinstance(own, Parameter) and own.strides is not None
        shape = own.shape if is_apart else tuple(sizes[n] for n in loops)
        stored, order = Operand(array, shape, loops), self._order(array, loops)
        return stored.ordered(order) if order else stored

    def _parts(self) -> Operand | None:
        """The array of parts of a sum that the kernel has: the first loop is theirs."""
        shape = self.values.shapes.get(self.step.out)
        found = [
            one
            for one in self.values.function.intermediates
            if one.name in self.arrays and self._has_parts(one, shape)
        ]
        if len(found) != 1 or not {*self.lhs} - {*self.out}:
            return None
        (one,), taken = found, self.lhs + self.rhs + self.out
        free = next(letter for letter in ascii_letters if letter not in taken)
        is_number = isinstance(one.shape[0], int)
        whole = one.shape[0], *(shape or ())
        return Operand(one.name, whole, free + self.out) if is_number else None

    def _has_parts(self, one: Intermediate, shape: Shape | None) -> bool:
        """Whether an array has room for parts of a value of that shape; those of what
        windows see have rows of all positions.
        """
        views = (self.values.steps.get(n) for n in (self.step.lhs, self.step.rhs))
        if not any(isinstance(view, WindowViews) for view in views):
            return one.shape[1:] == shape
        is_one = one.shape[0] == 1
        return bool(shape) and not is_one and elements(one.shape[1:]) == elements(shape)
