"""What a kernel computes, as certificates state it: a contraction of known extents, and
element-wise ops on its result; or such ops alone. Plain JSON values, as of promises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters
from typing import Any, NamedTuple

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.held_values import Array, Held, Operand, Shape, Values
from alcop_mlir.manifest.kernels import Kernel, Pointer, block_counts
from alcop_mlir.manifest.moved_values import Moved, moves
from alcop_mlir.manifest.open_statements import open_members
from alcop_mlir.reference.steps import Einsum, Map, Reshape, operand_maps


class Unstated(Exception):
    """Why there is no statement."""


def statement(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any]:
    """What the kernel computes; raises Unstated where that is no such contraction.

    parameters: the names of those of the kernel
    """
    found = _of_function(function)[kernel]
    if isinstance(found, Unstated):
        raise found
    given = dict(zip(parameters, kernel.arguments, strict=False))
    names = {one.array: name for name, one in given.items() if isinstance(one, Pointer)}
    lhs, rhs, init = (found[n] for n in ("lhs", "rhs", "init"))
    return {
        **found,
        "arrays": {names[n]: one for n, one in found["arrays"].items()},
        "lhs": None if lhs is None else names[lhs],
        "rhs": None if rhs is None else names[rhs],
        "init": None if init is None else names[init],
        "outputs": {
            names[n]: sorted(names[r] for r in reads)
            for n, reads in found["outputs"].items()
        },
    }


def stated(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any] | None:
    """The statement, or None where there is none."""
    try:
        return statement(function, kernel, parameters)
    except Unstated:
        return None


@lru_cache(maxsize=4)
def _of_function(function: Function) -> dict[Kernel, dict[str, Any] | Unstated]:
    """Of each kernel, as they are launched one after the other, by names of arrays."""
    held = Held(Values(function))
    found: dict[Kernel, dict[str, Any] | Unstated] = {}
    for launch in function.launches:
        before = held
        for variant in launch.variants:
            held = before.fork()
            for kernel in variant.kernels:
                try:
                    found[kernel] = _of_kernel(kernel, held)
                except Unstated as why:
                    held.forget(_arrays(kernel))
                    found.setdefault(kernel, why)
    return found


def _arrays(kernel: Kernel) -> list[str]:
    every = (one.array for one in kernel.arguments if isinstance(one, Pointer))
    return list(dict.fromkeys(every))


def _of_kernel(kernel: Kernel, held: Held) -> dict[str, Any]:
    """The one contraction of its arrays, or what adds up its parts; `held` is changed
    to what they hold behind it.
    """
    arrays = _arrays(kernel)
    steps = [one for one in held.values.function.reference if isinstance(one, Einsum)]
    count = 0
    for kind in (_Products, _GuessedProducts, _Sums):
        found: list[_Statement] = []
        for step in steps:
            one = kind(held.fork(), arrays, step)
            if one.is_there():
                found.append(one)
        if len(found) > 1:
            found = [one for one in found if one.uses_all()]
        count = count or len(found)
        if len(found) == 1:
            (one,) = found
            made = one.written(kernel)
            one.store(held)
            return made
    moved = moves(held, arrays) if not count else None
    if moved is None:
        raise Unstated(f"the manifest has {count} contractions of its arrays")
    made = _moved(moved, held.values, kernel)
    held.store(moved.array, moved.values)
    return made


def _moved(moved: Moved, values: Values, kernel: Kernel) -> dict[str, Any]:
    """What is computed element by element, as JSON values: nothing is summed."""
    used = {moved.array: Operand(moved.array, moved.shape, moved.loops), **moved.read}
    extents: dict[str, int] = {}
    for one in used.values():
        for loop, extent in zip(one.loops, one.shape, strict=True):
            if extents.setdefault(loop, _known(extent)) != extent:
                raise Unstated(f"array {one.array} is of another shape")
    arrays = {
        name: [one.loops, _strides(values.arrays[name], one.shape), one_bytes]
        for name, one in sorted(used.items())
        for one_bytes in [element_bytes(values.arrays[name].dtype)]
    }
    return {
        "extents": extents,
        "arrays": arrays,
        "lhs": None,
        "rhs": None,
        "init": None,
        "order": moved.loops,
        "outputs": {moved.array: sorted(moved.read)},
        "grid": [_number(one) for one in kernel.grid],
    }


def _strides(array: Array, shape: Shape) -> list[int]:
    """Elements between neighbours along each dimension of a view."""
    if isinstance(array, Parameter) and array.strides is not None:
        return [_number(one) for one in array.strides]
    numbers = [_known(extent) for extent in shape]
    return [math.prod(numbers[n + 1 :]) for n in range(len(numbers))]


class _Result(NamedTuple):
    """Elements of the sum, or what is made of them: its loops, and the arrays that are
    read besides; whether its own shape is another one.
    """

    loops: str
    reads: frozenset[str]
    is_flat: bool = False


class _Statement:
    """Of one kernel and one contraction.

    read:    arrays that are read
    results: by value
    outputs: by array, the value that is stored
    part:    of a sum that is made in parts: the loop of the sum, that of the parts, and
             how many there are
    """

    guesses = False

    def __init__(self, held: Held, arrays: Sequence[str], step: Einsum):
        self.held, self.values, self.arrays = held, held.values, arrays
        self.step = step
        self.read: dict[str, Operand] = {}
        self.results: dict[str, _Result] = {}
        self.outputs: dict[str, str] = {}
        self.part: tuple[str, str, int] | None = None
        self.written_loops: dict[str, str] = {}

    def is_there(self) -> bool:
        """Whether the kernel has arrays for what is read and stored."""
        if not self._reads():
            return False
        loops = operand_maps(self.step)[1]
        self.results[self.step.out] = _Result(loops, frozenset())
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
        return self._finish()

    def uses_all(self) -> bool:
        """Whether it is all that the kernel does with its arrays."""
        return {*self.read, *self.outputs, *self.written_loops} == {*self.arrays}

    def store(self, held: Held) -> None:
        """What arrays hold when the kernel is done: a result, or what is made of it
        alone.
        """
        held.take(self.held)
        for array, value in self.outputs.items():
            mine = self.results[value][:2]
            same = [n for n, r in self.results.items() if r[:2] == mine]
            held.store(array, [n for n in same if held.fits(array, n)] or [value])

    def _reads(self) -> bool:
        raise NotImplementedError

    def _finish(self) -> bool:
        return bool(self.outputs)

    def _operand(self, name: str, loops: str) -> Operand | None:
        """An array that is read, as long as it is read in one way."""
        found = self.held.operand(name, loops, self.arrays, self.guesses)
        if found is None or self.read.get(found.array, found) != found:
            return None
        self.read[found.array] = found
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
        root = self.values.root(name)
        array = self.held.known(self.arrays).get(root)
        if array is None:
            found = self._operand(name, "")
            array = None if found is None else found.array
            self.read.pop(array or "", None)
        one = None if array is None else self.values.arrays[array]
        if one is None or (isinstance(one, Parameter) and one.strides is not None):
            return None
        sizes = self._sizes()
        assert array is not None
        viewed = Operand(array, tuple(sizes[n] for n in loops), loops)
        if self.read.get(array, viewed) != viewed:
            return None
        self.read[array] = viewed
        return viewed

    def _sizes(self) -> dict[str, Extent]:
        """How many turns each loop has."""
        found: dict[str, Extent] = {}
        for one in self.read.values():
            for loop, extent in zip(one.loops, one.shape, strict=True):
                if found.setdefault(loop, extent) != extent:
                    raise Unstated(f"array {one.array} is of another shape")
        return found

    # Writing.

    def written(self, kernel: Kernel) -> dict[str, Any]:
        """As JSON values."""
        raise NotImplementedError

    def _written(
        self,
        operands: tuple[str, str | None, str | None],
        order: str,
        kernel: Kernel,
    ) -> dict[str, Any]:
        sizes = self._sizes()
        used = {n: (one.shape, one.loops) for n, one in self.read.items()}
        for array, value in self.outputs.items():
            loops = self.results[value].loops
            shape = tuple(sizes[n] for n in loops)
            own = self.values.arrays[array]
            if isinstance(own, Parameter) and own.strides is not None:
                shape = own.shape
            used[array] = shape, loops
        for array, loops in self.written_loops.items():
            used[array] = self.values.arrays[array].shape, loops
        sizes = self._all_sizes(used)
        lhs, rhs, init = operands
        reads = {n: self.results[v].reads for n, v in self.outputs.items()}
        reads |= {n: frozenset() for n in self.written_loops if n not in self.read}
        stated = {
            "lhs": lhs,
            "rhs": rhs,
            "init": init,
            "order": order,
            "outputs": {n: sorted(r) for n, r in sorted(reads.items())},
        }
        if (
            rhs
            and not self.part
            and not all(isinstance(n, int) for n in sizes.values())
        ):
            found = open_members(sizes, self.values.arrays, used)
            if found is None:
                raise Unstated("rows with steps of their own, of sizes not known")
            return {**stated, **found}
        extents = {n: _known(one) for n, one in sizes.items()}
        if self.part is not None:
            summed, _, count = self.part
            if extents[summed] % count:
                raise Unstated("parts of a sum that are not as long as each other")
            extents[summed] //= count
        return {
            **stated,
            "extents": extents,
            "arrays": {n: self._array(n, *used[n]) for n in sorted(used)},
            "grid": [_number(one) for one in kernel.grid],
        }

    def _all_sizes(self, used: dict[str, tuple[Shape, str]]) -> dict[str, Extent]:
        found: dict[str, Extent] = {}
        for name, (shape, loops) in used.items():
            if len(shape) != len(loops):
                raise Unstated(f"array {name} has another rank")
            for loop, extent in zip(loops, shape, strict=True):
                if found.setdefault(loop, extent) != extent:
                    raise Unstated(f"array {name} is of another shape")
        return found

    def _array(self, name: str, shape: Shape, loops: str) -> list[Any]:
        """Loops, elements between neighbours along each, bytes of an element."""
        array = self.values.arrays[name]
        strides = _strides(array, shape)
        if self.part is not None and self.part[0] in loops:
            summed, part, count = self.part
            at = loops.index(summed)
            loops, strides = (
                loops + part,
                [*strides, strides[at] * _known(shape[at]) // count],
            )
        return [loops, strides, element_bytes(array.dtype)]

    def _parts(self) -> tuple[str, int] | None:
        """The array of parts of a sum that the kernel has, and how many these are."""
        (lhs, _), out = operand_maps(self.step)
        shape = self.values.shapes.get(self.step.out)
        found = [
            (one.name, one.shape[0])
            for one in self.values.function.intermediates
            if one.name in self.arrays and one.shape[1:] == shape
        ]
        if len(found) != 1 or len({*lhs} - {*out}) != 1:
            return None
        ((name, count),) = found
        return (name, count) if isinstance(count, int) else None


class _Products(_Statement):
    """The contraction, or parts of its sum."""

    init: str | None = None

    def _reads(self) -> bool:
        step, ((lhs, rhs), out) = self.step, operand_maps(self.step)
        first, second = self._operand(step.lhs, lhs), self._operand(step.rhs, rhs)
        if first is None or second is None:
            return False
        self.operands = first.array, second.array
        if step.init is not None and not self._has_parts():
            start = self._operand(step.init, out)
            self.init = None if start is None else start.array
            return start is not None
        return True

    def _has_parts(self) -> bool:
        """Whether parts are stored; another kernel adds them to what is there."""
        return self.step.out not in self.arrays and self._parts() is not None

    def _finish(self) -> bool:
        parts = self._parts()
        if self.outputs or parts is None:
            return bool(self.outputs)
        (lhs, rhs), out = operand_maps(self.step)
        name, count = parts
        free = next(one for one in ascii_letters if one not in lhs + rhs + out)
        (summed,) = {*lhs} - {*out}
        self.part = summed, free, count
        self.written_loops[name] = free + out
        return True

    def written(self, kernel: Kernel) -> dict[str, Any]:
        """As JSON values."""
        order = operand_maps(self.step)[1]
        if self.part is not None:
            order = self.part[1] + order
        return self._written((*self.operands, self.init), order, kernel)


class _GuessedProducts(_Products):
    """The same, of arrays of which it is not known what they hold."""

    guesses = True


class _Sums(_Statement):
    """Of the parts that another kernel has made."""

    init: str | None = None

    def _reads(self) -> bool:
        (lhs, rhs), out = operand_maps(self.step)
        parts = self._parts()
        if parts is None:
            return False
        self.source = parts[0]
        free = next(one for one in ascii_letters if one not in lhs + rhs + out)
        shape = self.values.arrays[self.source].shape
        self.read[self.source] = Operand(self.source, shape, free + out)
        if self.step.init is not None:
            start = self._operand(self.step.init, out)
            self.init = None if start is None else start.array
            return start is not None
        return True

    def written(self, kernel: Kernel) -> dict[str, Any]:
        """As JSON values."""
        order = operand_maps(self.step)[1]
        return self._written((self.source, None, self.init), order, kernel)


def _known(extent: Any) -> int:
    if not isinstance(extent, int):
        raise Unstated("sizes that are not known")
    return extent


def _number(value: Any) -> int:
    """A number of blocks, or a stride."""
    found = 1
    for one in block_counts(value):
        found *= _known(one)
    return found
