"""Which linalg ops on memrefs can be one kernel that computes row by row.

A *row group* are reductions along rows, and element-wise ops on the same rows or with
one element a row: all have the same loops over rows, and the same along a row, of the
same sizes. What one of them writes the others read at the same place, so that what is
computed of a row need not be in memory. Nothing is asked of names or of an order:
softmax, layer norm and what is added in front of or behind them are such groups. The
elements of a row are neighbours in memory, or those of neighbouring rows are, as in
statistics of the channels of an image.

A group grows from a reduction: by the ops that write what it reads, and by those below
that share memory with it, as long as every op of the group could as well run where the
last one does. Ops that read rows across, as transposes do, stay apart, and so do those
that look up memory in their bodies, but for one element of each row, or windows as of a
padded pool, where the group does not write, keep elements of their output, or write
what the group has read. A reduction alone is a group where several threads make it
faster than the SIMT fallback, see `row_layouts.py`. Arguments are taken not to
overlap where one is written: the launcher refuses such. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.memory import is_own_allocation, may_alias, touches_in
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import touches_no_memory
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg import kept_elements, loop_nests
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Loops, Operand
from alcop_mlir.analysis.rows.combinations import Terms, combination
from alcop_mlir.analysis.rows.row_layouts import (
    RowLayout,
    is_across,
    is_worthwhile,
    layout,
    looks_up_all,
)
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.analysis.rows.row_sizes import RowSizes
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class RowGroup:
    """Ops that can be one kernel.

    members: in the order of the program; all can run where the last one does
    layout:  how threads share rows
    """

    members: tuple[Member, ...]
    layout: RowLayout

    @property
    def ops(self) -> list[Any]:
        """The ops of the members."""
        return [member.nest.op for member in self.members]

    @property
    def stored(self) -> list[Operand]:
        """The outputs, each once, that others than the group may read."""
        outputs = {
            output.value: output
            for member in self.members
            for output in member.nest.outputs
        }
        return [one for one in outputs.values() if _is_used_outside(one, self.ops)]


def _is_used_outside(output: Operand, ops: list[ir.Operation]) -> bool:
    if not is_own_allocation(output.value):
        return True
    return any(use.owner.operation not in ops for use in output.value.uses)


def row_groups(block: ir.Block) -> list[RowGroup | Rejected]:
    """The row groups of a block, and reductions in it that threads cannot share.

    The latter where other ops read their results.
    """
    return list(_Groups([op.operation for op in block.operations]).all())


@frozen
class _Shape:
    """The rows of a group: sizes of loops, and how an op on all elements has them.

    rows:        the sizes of the loops over rows
    columns:     those of the loops along a row
    row_dims:    of an output with all elements, the dimensions of the loops over rows
    column_dims: and those of the loops along a row
    across:      whether elements of neighbouring rows are neighbours in memory
    """

    rows: tuple[object, ...]
    columns: tuple[object, ...]
    row_dims: tuple[int, ...]
    column_dims: tuple[int, ...]
    across: bool

    @property
    def innermost(self) -> int:
        """The loop along which threads are neighbours, by its position of a member."""
        count = len(self.rows)
        return count - 1 if self.across else count + len(self.columns) - 1

    def fits(self, member: Member, sizes: RowSizes) -> bool:
        """Whether the loops of a member have these sizes."""
        rows, columns = (
            tuple(sizes.of(member.nest, loop) for loop in loops)
            for loops in (member.rows, member.columns)
        )
        return rows == self.rows and columns in ((), self.columns)


def _shape(nest: Nest, sizes: RowSizes) -> _Shape:
    """The rows that a reduction goes over.

    In the order of what it reads, where all loops index that: channels may be last.
    """
    loops = (*nest.points, *nest.reductions)
    orders = [one.loops for one in nest.inputs if set(one.loops) == set(loops)]
    full = orders[0] if orders else loops
    rows, columns = (
        tuple(sizes.of(nest, loop) for loop in some)
        for some in (nest.points, nest.reductions)
    )
    row_dims, column_dims = (
        tuple(full.index(loop) for loop in some)
        for some in (nest.points, nest.reductions)
    )
    return _Shape(rows, columns, row_dims, column_dims, is_across(nest))


def _reduction(nest: Nest) -> Member | None:
    """A reduction as a member, if threads can share it.

    It must read something that all loops index: a contraction, which reads each element
    for many rows, is none. Its body may do so, where it combines terms alone.
    """
    combine = combination(nest)
    if isinstance(combine, Rejected):
        return None
    looks_up = isinstance(combine, Terms) and looks_up_all(nest)
    if not (looks_up or _reads_all(nest)):
        return None
    member = Member(nest, nest.points, nest.reductions, combine)
    return member if looks_up or not member.tables else None


def _reads_all(nest: Nest) -> bool:
    """Whether a reduction reads something that all loops index."""
    loops = {*nest.points, *nest.reductions}
    return any(
        loops == {loop for index in one.indices for loop in index.loops}
        for one in nest.inputs
        if one.is_memref and one.is_read
    )


_BODY_OPS = ("linalg.index", "linalg.yield", "memref.load")


class _Groups:
    """Finds the groups of the ops of a block."""

    def __init__(self, ops: list[ir.Operation]) -> None:
        self._ops = ops
        self._number = {op: number for number, op in enumerate(ops)}
        self._nests: dict[Any, Nest | None] = {}
        self._touched: dict[Any, list[Any]] = {}
        self._taken: set[Any] = set()
        nests = map(self._nest, ops)
        self._sizes = RowSizes(one for one in nests if one is not None)

    def all(self) -> Iterator[RowGroup | Rejected]:
        for op in self._ops:
            nest = None if op in self._taken else self._nest(op)
            if nest is None or not nest.reductions:
                continue
            found = self._rejected(nest) or self._group(op, nest)
            if isinstance(found, RowGroup):
                self._taken.update(found.ops)
            if found is not None:
                yield found

    def _rejected(self, nest: Nest) -> Rejected | None:
        """Why threads cannot share a reduction, of which other ops read the outputs."""
        combine = combination(nest)
        if not isinstance(combine, Rejected) or not _reads_all(nest):
            return None
        return combine if any(map(self._is_read, nest.outputs)) else None

    def _is_read(self, output: Operand) -> bool:
        users = [use.owner.operation for use in output.value.uses]
        nests = [self._nest(op) for op in users if op in self._number]
        return any(
            one.value == output.value
            for nest in nests
            if nest is not None
            for one in nest.inputs
        )

    def _group(self, op: ir.Operation, nest: Nest) -> RowGroup | None:
        """The group that grows from a reduction; None if that is alone."""
        shape = _shape(nest, self._sizes)
        seed = self._member(op, shape)
        members = self._grown([], [op], shape)
        if seed is None or members is None:
            return None
        members = self._below(self._above(members, shape), shape)
        members = self._above(members, shape)
        how = layout(members, seed, shape.across)
        return RowGroup(tuple(members), how) if is_worthwhile(members, how) else None

    def _below(self, members: list[Member], shape: _Shape) -> list[Member]:
        """The group with ops below the first one of it."""
        start = self._number[members[0].nest.op] + 1
        for op in self._ops[start:]:
            if touches_no_memory(op) or op in _ops(members):
                continue
            more = self._grown(members, [op], shape)
            if more is not None:
                members = more
            elif any(self._conflict(member, op) for member in members):
                break
        return members

    def _above(self, members: list[Member], shape: _Shape) -> list[Member]:
        """The group with ops that write what it reads."""
        tried: set[Any] = set()
        while True:
            wanted = [
                writer
                for member in members
                for operand in member.reads
                if (writer := self._writer(operand.value, member.nest.op)) is not None
                and writer not in tried
                and writer not in _ops(members)
            ]
            if not wanted:
                return members
            tried.add(wanted[0])
            more = self._grown(members, wanted[:1], shape)
            if more is not None:  # who read what others write may be a member now
                members = more
                tried.clear()

    def _grown(
        self, members: list[Member], ops: list[ir.Operation], shape: _Shape
    ) -> list[Member] | None:
        """The group with these ops, and what reductions among them start from."""
        ours = {value for one in members for value in _memrefs(one)}
        more = [self._member(op, shape) for op in ops]
        added = [one for one in more if one is not None]
        if len(added) < len(ops):
            return None
        if members and not any(ours & set(_memrefs(one)) for one in added):
            return None
        present = {*_ops(members), *ops}
        for member in list(added):
            if member.combine is None:
                continue
            for output in member.nest.outputs:
                start = self._writer(output.value, member.nest.op)
                if start is None:
                    return None
                if start not in present:
                    initial = self._member(start, shape)
                    if initial is None:
                        return None
                    added.append(initial)
                    present.add(start)
        every = sorted((*members, *added), key=lambda one: self._number[one.nest.op])
        return every if _computes_rows(every, shape) and self._can_move(every) else None

    def _member(self, op: ir.Operation, shape: _Shape) -> Member | None:
        """An op as a member of a group with rows of this shape."""
        nest = None if op in self._taken else self._nest(op)
        if nest is None:
            return None
        if nest.reductions:
            member = _reduction(nest)
            fits = member is not None and shape.fits(member, self._sizes)
            return member if fits else None
        member = Member(nest, nest.points, (), None)
        if member.tables and len(nest.points) != len(shape.rows):
            return None
        if len(nest.points) == len(shape.rows) + len(shape.columns):
            rows, columns = (
                tuple(nest.points[number] for number in numbers)
                for numbers in (shape.row_dims, shape.column_dims)
            )
            member = Member(nest, rows, columns, None)
        return member if shape.fits(member, self._sizes) else None

    def _nest(self, op: ir.Operation) -> Nest | None:
        if op not in self._nests:
            self._nests[op] = _supported(op)
        return self._nests[op]

    def _writer(self, memref: ir.Value, reader: ir.Operation) -> Any | None:
        """The op of the block that writes `memref` last before `reader` does so."""
        below = self._number[reader]
        found = [
            number
            for use in memref.uses
            if (number := self._number.get(use.owner.operation, below)) < below
            and self._is_writer(self._ops[number], memref)
        ]
        return self._ops[max(found)] if found else None

    def _is_writer(self, op: ir.Operation, memref: ir.Value) -> bool:
        nest = self._nest(op)
        return nest is not None and any(one.value == memref for one in nest.outputs)

    def _can_move(self, members: list[Member]) -> bool:
        """Whether all members can run where the last one does."""
        ops = _ops(members)
        first, last = self._number[ops[0]], self._number[ops[-1]]
        above: list[Member] = []
        position = 0
        for op in self._ops[first : last + 1]:
            if op == ops[position]:
                above.append(members[position])
                position += 1
            elif any(self._conflict(member, op) for member in above):
                return False
        return True

    def _conflict(self, member: Member, op: ir.Operation) -> bool:
        """Whether a member may not run after an op that stands below it."""
        if op not in self._touched:
            self._touched[op] = [] if _is_harmless(op) else touches_in(op)
        written = [output.value for output in member.nest.outputs]
        every = list(_memrefs(member))
        return any(
            touch.memref is None
            or any(
                may_alias(touch.memref, value, True)
                for value in (every if touch.writes else written)
            )
            for touch in self._touched[op]
        )


def _is_harmless(op: ir.Operation) -> bool:
    """Whether it asks for values only; asserted is what is so wherever it stands."""
    return op.name == "cf.assert" or touches_no_memory(op)


def _ops(members: Iterable[Member]) -> list[Any]:
    return [member.nest.op for member in members]


def _memrefs(member: Member) -> Iterator[Any]:
    yield from (one.value for one in member.nest.operands if one.is_memref)
    yield from member.tables


def _supported(op: ir.Operation) -> Nest | None:
    """The op as a nest of a group, None where it cannot be one."""
    if not op.name.startswith("linalg.") and op.name != "memref.copy":
        return None
    nest = loop_nests.read(op)
    if isinstance(nest, Rejected) or nest.is_empty:
        return None
    if any(output.loops != nest.points for output in nest.outputs):
        return None
    if kept_elements.read(nest) is not None:
        return None
    return nest if all(map(_is_computation, walk(op)[1:])) else None


def _is_computation(op: ir.Operation) -> bool:
    return op.name in _BODY_OPS or touches_no_memory(op)


def _computes_rows(members: Sequence[Member], shape: _Shape) -> bool:
    """Whether what members read is of the row that they compute."""
    written: dict[Any, Loops] = {}
    loaded: set[Any] = set()
    for member in members:
        starts = [
            one.value for one in member.nest.outputs if member.combine is not None
        ]
        for operand in member.reads:
            if operand.value in written:
                if member.place(operand) != written[operand.value]:
                    return False
            elif operand.value in starts or not _is_contiguous(member, operand, shape):
                return False
            else:
                loaded.add(operand.value)
        for output in member.nest.outputs:
            if output.value in loaded or not _is_contiguous(member, output, shape):
                return False
            written[output.value] = member.place(output)
    looked_up = {table for member in members for table in member.tables}
    every = loaded | set(written) | looked_up
    if looked_up & set(written):
        return False
    return not any(
        one != other and may_alias(one, other, True)
        for one in written
        for other in every
    )


def _is_contiguous(member: Member, operand: Operand, shape: _Shape) -> bool:
    """Whether neighbouring threads access neighbours along the last dimension."""
    if shape.innermost >= len(member.loops):
        return True
    return member.is_innermost(member.loops[shape.innermost], operand)
