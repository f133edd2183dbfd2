"""Elements that a thread of a SIMT fallback loads, combines, and stores."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.kept_elements import KeptElements
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import affine, arith, ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.target import WARP_SIZE


def element_of(operand: Operand, index_of: dict[int, ir.Value]) -> Any:
    """The element of an operand at an iteration; a scalar operand itself."""
    if not operand.is_memref:
        return operand.value
    return memref.load(operand.value, indices_of(operand, index_of))


def indices_of(operand: Operand, index_of: dict[int, ir.Value]) -> list[Any]:
    """The indices at which an operand is accessed."""
    rank = operand.map.n_dims
    found = []
    for index in operand.indices:
        if index.loop is not None:
            found.append(index_of[index.loop])
        elif index.constant is not None:
            found.append(build.index(index.constant))
        else:
            loops = [index_of[loop] for loop in range(rank)]
            one = ir.AffineMap.get(rank, 0, [index.expression])
            found.append(affine.apply(one, loops))
    return found


def loop_sizes(nest: Nest) -> list[Any]:
    """The sizes of all loops of a nest: numbers, or values asked of a memref."""
    known = map(nest.static_size, range(nest.rank))
    return [
        build.dim(*nest.sizes[loop]) if size is None else size
        for loop, size in enumerate(known)
    ]


def combined(combine: ir.Operation, left: ir.Value, right: ir.Value) -> Any:
    """`combine` on two other values."""
    mapping = dict(zip(combine.operands, (left, right), strict=True))
    return edit.clone(combine, mapping).results[0]


def combined_by_warp(combine: ir.Operation, part: ir.Value) -> Any:
    """What `combine` makes of the parts of all lanes of a warp, in each of them."""
    distance = WARP_SIZE // 2
    while distance:
        part = combined(combine, part, build.shuffle(part, distance))
        distance //= 2
    return part


@frozen
class SomeElements:
    """Builds what a thread does of a nest that keeps elements of its output.

    sizes: of all loops
    """

    nest: Nest
    kept: KeptElements
    sizes: list[Any]

    @property
    def points(self) -> list[Any]:
        """The sizes of the loops that a thread has a point of."""
        return [self.sizes[loop] for loop in self._free()]

    def element(self, point: list[ir.Value]) -> None:
        """Store the element at a point, if it changes."""
        index_of = dict(zip(self._free(), point, strict=True))
        is_there: Any = None
        for loop, number in self.kept.only_at.items():
            place = self._place(number)
            # As an unsigned number, one below zero is large.
            below = arith.cmpi(
                arith.CmpIPredicate.ult, place, build.value(self.sizes[loop])
            )
            is_there = build.both(is_there, below)
            index_of[loop] = place
        if is_there is None:
            self._change(index_of)
        else:
            build.branch(is_there, lambda: self._change(index_of))

    def _free(self) -> list[int]:
        """The loops whose index is not given by the condition."""
        return [loop for loop in self.nest.points if loop not in self.kept.only_at]

    def _place(self, number: ir.Value) -> Any:
        """A number of the body, computed in front of it, as an index."""
        ops, arguments = backward_slice([number], self.nest.block)
        mapping = {
            operand.argument: element_of(operand, {})
            for operand in self.nest.inputs
            if operand.argument in arguments
        }
        for op in ops:
            edit.clone(op, mapping)
        found = mapping.get(number, number)
        kind = ir.IndexType.get()
        return found if found.type == kind else arith.index_cast(kind, found)

    def _change(self, index_of: dict[int, ir.Value]) -> None:
        """Store the new value where the condition holds."""
        (output,) = self.nest.outputs
        condition, one, other = self.kept.select.operands
        mapping = {
            operand.argument: element_of(operand, index_of)
            for operand in self.nest.inputs
            if operand.is_read
        }
        for op in walk(self.nest.op, "linalg.index"):
            mapping[op.results[0]] = index_of[op.attributes["dim"].value]
        # What chooses needs the old value, and is not copied.
        mapping[self.kept.select.results[0]] = condition
        edit.inline(self.nest.block, mapping)
        new = one if self.kept.is_new else other
        indices = indices_of(output, index_of)

        def store() -> None:
            memref.store(mapping.get(new, new), output.value, indices)

        ways = (store, lambda: None) if self.kept.is_new else (lambda: None, store)
        build.branch(mapping.get(condition, condition), *ways)
