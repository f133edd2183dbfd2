"""What a kernel computes, as certificates state it: one contraction of known extents,
and element-wise ops on its result. Plain JSON values, as of promises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_letters
from typing import Any

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Constant, Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Kernel, Pointer, block_counts
from alcop_mlir.reference.steps import Einsum, Map, operand_maps

_Array = Parameter | Intermediate | Constant


class Unstated(Exception):
    """Why there is no statement."""


def statement(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any]:
    """What the kernel computes; raises Unstated where that is no such contraction.

    parameters: the names of those of the kernel
    """
    given = dict(zip(parameters, kernel.arguments, strict=False))
    pointers = {
        one.array: name for name, one in given.items() if isinstance(one, Pointer)
    }
    return _Statement(function, pointers).of(kernel)


def stated(
    function: Function, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any] | None:
    """The statement, or None where there is none."""
    try:
        return statement(function, kernel, parameters)
    except Unstated:
        return None


class _Statement:
    """Of one kernel.

    loops:   of arrays that are used, those that index each
    results: elements of the sum, and what is made of them: loops, and what is read
    part:    of a sum that is made in parts: the loop of the sum, that of the parts, and
             how many there are
    """

    def __init__(self, function: Function, pointers: Mapping[str, str]):
        self.function, self.pointers = function, pointers
        self.arrays = {one.name: one for one in _arrays(function)}
        self.loops: dict[str, str] = {}
        self.results: dict[str, tuple[str, set[str]]] = {}
        self.part: tuple[str, str, int] | None = None

    def of(self, kernel: Kernel) -> dict[str, Any]:
        """The one contraction of its arrays, or what adds up its parts."""
        steps = [one for one in self.function.reference if isinstance(one, Einsum)]
        found = [one for one in steps if {one.lhs, one.rhs} <= self.pointers.keys()]
        adds = not found
        if adds:
            found = [one for one in steps if self._parts(one)]
        if len(found) != 1:
            raise Unstated(f"the manifest has {len(found)} contractions of its arrays")
        (step,) = found
        out = operand_maps(step)[1]
        self.results[step.out] = out, set()
        for other in self.function.reference:
            if isinstance(other, Map):
                self._follow(other)
        outputs = {n: r for n, (_, r) in self.results.items() if n in self.pointers}
        for name in outputs:
            self.loops[name] = self.results[name][0]
        if adds:
            return self._added(step, outputs, kernel)
        return self._multiplied(step, outputs, kernel)

    def _multiplied(
        self, step: Einsum, outputs: dict[str, set[str]], kernel: Kernel
    ) -> dict[str, Any]:
        """Of both operands; where parts are made, without what the sum starts from."""
        (lhs, rhs), out = operand_maps(step)
        self.loops |= {step.lhs: lhs, step.rhs: rhs}
        init, parts = step.init, self._parts(step)
        if not outputs and parts is not None:
            name, count = parts
            free = next(one for one in ascii_letters if one not in lhs + rhs + out)
            (summed,) = {*lhs} - {*out}
            self.part = summed, free, count
            out, init, outputs = free + out, None, {name: set()}
            self.loops[name] = out
        if init is not None:
            self.loops[init] = out
        return self._written(step.lhs, step.rhs, init, out, outputs, kernel)

    def _added(
        self, step: Einsum, outputs: dict[str, set[str]], kernel: Kernel
    ) -> dict[str, Any]:
        """Of the parts that another kernel has made."""
        (lhs, rhs), out = operand_maps(step)
        parts = self._parts(step)
        if parts is None:
            raise Unstated("it reads or writes no array of the contraction")
        free = next(one for one in ascii_letters if one not in lhs + rhs + out)
        self.loops[parts[0]] = free + out
        if step.init is not None:
            self.loops[step.init] = out
        return self._written(parts[0], None, step.init, out, outputs, kernel)

    def _parts(self, step: Einsum) -> tuple[str, int] | None:
        """The array of parts of a sum that the kernel has, and how many these are."""
        (lhs, rhs), out = operand_maps(step)
        sizes: dict[str, Extent] = {}
        for name, loops in ((step.lhs, lhs), (step.rhs, rhs)):
            if name in self.arrays:
                sizes.update(zip(loops, self.arrays[name].shape, strict=False))
        shape = [sizes.get(loop) for loop in out]
        found = [
            (one.name, one.shape[0])
            for one in self.function.intermediates
            if one.name in self.pointers and [*one.shape[1:]] == shape
        ]
        if len(found) != 1 or len({*lhs} - {*out}) != 1:
            return None
        ((name, count),) = found
        return (name, count) if isinstance(count, int) else None

    def _written(
        self,
        lhs: str,
        rhs: str | None,
        init: str | None,
        order: str,
        outputs: dict[str, set[str]],
        kernel: Kernel,
    ) -> dict[str, Any]:
        if not outputs or not self.loops.keys() <= self.pointers.keys():
            raise Unstated("it reads or writes no array of the contraction")
        return {
            "extents": self._extents(),
            "arrays": {self.pointers[n]: self._array(n) for n in sorted(self.loops)},
            "lhs": self.pointers[lhs],
            "rhs": None if rhs is None else self.pointers[rhs],
            "init": None if init is None else self.pointers[init],
            "order": order,
            "outputs": {
                self.pointers[n]: sorted(self.pointers[r] for r in reads)
                for n, reads in sorted(outputs.items())
            },
            "grid": [_number(one) for one in kernel.grid],
        }

    def _follow(self, step: Map) -> None:
        """An element-wise op on results makes other results."""
        inputs, out = operand_maps(step)
        mine = [n for n in step.inputs if n in self.results]
        if not mine or not all(
            n in self.results or n in self.pointers for n in step.inputs
        ):
            return
        names: dict[str, str] = {}
        for name, own in zip(step.inputs, inputs, strict=True):
            if name in self.results:
                names.update(zip(own, self.results[name][0], strict=True))
        if not set("".join(inputs) + out) <= names.keys():
            return
        reads: set[str] = set()
        for name, own in zip(step.inputs, inputs, strict=True):
            if name in self.results:
                reads |= self.results[name][1]
            else:
                reads.add(name)
                self.loops[name] = "".join(names[n] for n in own)
        self.results[step.out] = "".join(names[n] for n in out), reads

    def _extents(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, loops in self.loops.items():
            shape = self.arrays[name].shape
            if len(shape) != len(loops):
                raise Unstated(f"array {name} has another rank")
            for loop, extent in zip(loops, shape, strict=True):
                if not isinstance(extent, int):
                    raise Unstated("sizes that are not known")
                if found.setdefault(loop, extent) != extent:
                    raise Unstated(f"array {name} is of another shape")
        if self.part is not None:
            summed, _, count = self.part
            if found[summed] % count:
                raise Unstated("parts of a sum that are not as long as each other")
            found[summed] //= count
        return found

    def _array(self, name: str) -> list[Any]:
        """Loops, elements between neighbours along each, bytes of an element."""
        array = self.arrays[name]
        given = array.strides if isinstance(array, Parameter) else None
        shape = [int(str(extent)) for extent in array.shape]
        strides = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
        if given is not None:
            strides = [_number(one) for one in given]
        loops = self.loops[name]
        if self.part is not None and self.part[0] in loops:
            summed, part, count = self.part
            at = loops.index(summed)
            loops, strides = loops + part, [*strides, strides[at] * shape[at] // count]
        return [loops, strides, element_bytes(array.dtype)]


def _arrays(function: Function) -> Iterator[_Array]:
    yield from function.parameters
    yield from function.intermediates
    yield from function.constants


def _number(value: Any) -> int:
    """A number of blocks, or a stride."""
    found = 1
    for one in block_counts(value):
        if not isinstance(one, int):
            raise Unstated("sizes that are not known")
        found *= one
    return found
