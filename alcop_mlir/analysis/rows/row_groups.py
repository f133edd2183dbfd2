"""Which linalg ops on memrefs can be one kernel that computes row by row.

A *row group* are reductions along rows, and element-wise ops on the same rows or with
one element a row: all have the same loops over rows, and one loop along a row, of the
same length. What one of them writes the others read at the same place, so that a row,
once read, can stay in registers until it is written. Nothing is asked of names or of an
order: softmax, layer norm and what is added in front of or behind them are such groups.

A group grows from a reduction: by the ops that write what it reads, and by those below
that share memory with it, as long as every op of the group could as well run where the
last one does. Ops that read rows across, as transposes do, stay apart, and so do those
that look up memory in their bodies, keep elements of their output, or write what the
group has read. Arguments are taken not to overlap where one is written: the launcher
refuses such. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.analysis.ir.memory import is_own_allocation, may_alias, touches_in
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import touches_no_memory
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg import kept_elements, loop_nests
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Loops, Operand
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.analysis.rows.warp_reductions import combining_of
from alcop_mlir.bindings import ir
from alcop_mlir.target import WARP_SIZE

# Of a row, in registers of a thread: as many elements as it computes on at a time, and
# all of them that are alive at once, of the 255 registers that it can have.
_MOST_ELEMENTS = 32
_MOST_LIVE = 128
_WARPS = (1, 2, 4, 8, 16)  # of a row

_Sizes = tuple[object, ...]  # of the loops over rows, then of the one along a row


@dataclass(frozen=True)
class RowGroup:
    """Ops that can be one kernel.

    members: in the order of the program; all can run where the last one does
    rows:    how many loops go over rows
    columns: the length of a row
    warps:   that share a row, so that its elements fit into their registers
    """

    members: tuple[Member, ...]
    rows: int
    columns: int
    warps: int

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
    """The row groups of a block, and reductions whose rows are too long for one."""
    return list(_Groups([op.operation for op in block.operations]).all())


class _Groups:
    """Finds the groups of the ops of a block."""

    def __init__(self, ops: list[ir.Operation]) -> None:
        self._ops = ops
        self._number = {op: number for number, op in enumerate(ops)}
        self._nests: dict[Any, Nest | None] = {}
        self._touched: dict[Any, list[Any]] = {}
        self._taken: set[Any] = set()

    def all(self) -> Iterator[RowGroup | Rejected]:
        for op in self._ops:
            nest = None if op in self._taken else self._nest(op)
            if nest is None or len(nest.reductions) != 1:
                continue
            found = self._group(op, nest)
            if found is not None:
                yield found
            if isinstance(found, RowGroup):
                self._taken.update(found.ops)

    def _group(self, op: ir.Operation, nest: Nest) -> RowGroup | Rejected | None:
        """The group that grows from a reduction; None if that is alone."""
        sizes = tuple(_size(nest, loop) for loop in (*nest.points, *nest.reductions))
        members = self._grown([], [op], sizes)
        if members is None:
            return None
        members = self._below(self._above(members, sizes), sizes)
        members = self._above(members, sizes)
        if sum(1 for member in members if _reads_memory(member)) < 2:
            return None
        return _checked(members, nest)

    def _below(self, members: list[Member], sizes: _Sizes) -> list[Member]:
        """The group with ops below the first one of it."""
        start = self._number[members[0].nest.op] + 1
        for op in self._ops[start:]:
            if touches_no_memory(op) or op in _ops(members):
                continue
            more = self._grown(members, [op], sizes)
            if more is not None:
                members = more
            elif any(self._conflict(member, op) for member in members):
                break
        return members

    def _above(self, members: list[Member], sizes: _Sizes) -> list[Member]:
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
            members = self._grown(members, wanted[:1], sizes) or members

    def _grown(
        self, members: list[Member], ops: list[ir.Operation], sizes: _Sizes
    ) -> list[Member] | None:
        """The group with these ops, and what reductions among them start from."""
        ours = {value for one in members for value in _memrefs(one)}
        more = [self._member(op, sizes) for op in ops]
        added = [one for one in more if one is not None]
        if len(added) < len(ops):
            return None
        if members and not any(ours & set(_memrefs(one)) for one in added):
            return None
        present = {*_ops(members), *ops}
        for member in list(added):
            if member.combine is None:
                continue
            start = self._writer(member.nest.outputs[0].value, member.nest.op)
            if start is None:
                return None
            if start not in present:
                initial = self._member(start, sizes)
                if initial is None:
                    return None
                added.append(initial)
        every = sorted((*members, *added), key=lambda one: self._number[one.nest.op])
        return every if _holds(every) and self._can_move(every) else None

    def _member(self, op: ir.Operation, sizes: _Sizes) -> Member | None:
        """An op as a member of a group with loops of these sizes, the last on rows."""
        nest = None if op in self._taken else self._nest(op)
        if nest is None:
            return None
        combine = combining_of(nest) if nest.reductions else None
        if nest.reductions and (len(nest.reductions) > 1 or combine is None):
            return None
        member = Member(nest, len(sizes) - 1, combine)
        own = tuple(_size(nest, loop) for loop in member.loops)
        if own == sizes:
            return member
        return member if own == sizes[:-1] and not nest.reductions else None

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
    return (one.value for one in member.nest.operands if one.is_memref)


def _reads_memory(member: Member) -> bool:
    return any(operand.is_memref for operand in member.nest.inputs)


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
    return op.name in ("linalg.index", "linalg.yield") or touches_no_memory(op)


def _size(nest: Nest, loop: int) -> Any:
    """The size of a loop: equal ones are equal."""
    known = nest.static_size(loop)
    if known is not None:
        return known
    memref, number = nest.sizes[loop]
    size = extent(memref, number)
    dim = None if size is None else made_by(size, "memref.dim")
    if dim is not None and (position := constant(dim.operands[1])) is not None:
        return dim.operands[0], position
    return (memref, number) if size is None else size


def _holds(members: Sequence[Member]) -> bool:
    """Whether rows can stay in registers from member to member."""
    held: dict[Any, Loops] = {}
    loaded: set[Any] = set()
    for member in members:
        starts = [
            one.value for one in member.nest.outputs if member.combine is not None
        ]
        for operand in member.reads:
            if operand.value in held:
                if member.place(operand) != held[operand.value]:
                    return False
            elif operand.value in starts or not member.is_along_rows(operand):
                return False
            else:
                loaded.add(operand.value)
        for output in member.nest.outputs:
            if output.value in loaded:
                return False
            held[output.value] = member.place(output)
    every = loaded | set(held)
    return not any(
        one != other and may_alias(one, other, True) for one in held for other in every
    )


def _checked(members: list[Member], nest: Nest) -> RowGroup | Rejected:
    """The group of these members, if its rows fit into registers."""
    columns = nest.static_size(nest.reductions[0])
    if columns is None:
        return Rejected(
            nest.op,
            "the length of its rows is known at run time only, expected a number",
        )
    live = _live(members)
    for warps in _WARPS:
        elements = -(-columns // (WARP_SIZE * warps))
        if elements <= _MOST_ELEMENTS and elements * live <= _MOST_LIVE:
            return RowGroup(tuple(members), len(nest.points), columns, warps)
    most = min(_MOST_ELEMENTS, _MOST_LIVE // live) * WARP_SIZE * _WARPS[-1]
    return Rejected(
        nest.op,
        f"its rows have {columns} elements, and {live} of them are needed at once: "
        f"expected at most {most}, which the registers of a block hold",
    )


def _live(members: Sequence[Member]) -> int:
    """How many rows are alive at once, at most."""
    first: dict[Any, int] = {}
    last: dict[Any, int] = {}
    for number, member in enumerate(members):
        for operand in (*member.reads, *member.nest.outputs):
            if member.has_columns and member.rows in member.place(operand):
                first.setdefault(operand.value, number)
                last[operand.value] = number
    return max(
        sum(1 for value in first if first[value] <= number <= last[value])
        for number in range(len(members))
    )
