"""Where the copies of a loop read, as addresses that the loop can carry.

Copies of one loop that have the source in common, and all indices but constants, read
at constant distances from each other, counted along each dimension: one address serves
all of them. It moves by a constant number of elements along each dimension from
iteration to iteration where the indices are linear in the loop's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.index_terms import Terms, terms, values_of
from alcop_mlir.analysis.ir.loops import body, bounds, constant, is_inside, is_loop
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.synchronisation import BARRIER
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

COPY, LOAD = "nvgpu.device_async_copy", "memref.load"
_INDEX = "index"  # stands for the loop's own index in terms
_Key = tuple[Any, tuple[Terms, ...]]

# A distance in elements along each dimension of a source.
Distance = tuple[int, ...]


@frozen
class AddressedCopy:
    """A copy, and how far from the indices of its group it reads."""

    op: Any
    offset: Distance


@frozen
class CopyGroup:
    """Copies that one address serves, in the order of the loop.

    indices: of the source, without constants; in all loops the loop's own index is one
             part
    step:    by which the loop's index grows
    """

    source: Any
    indices: tuple[Terms, ...]
    copies: tuple[AddressedCopy, ...]
    step: int

    @property
    def key(self) -> _Key:
        """Equal for groups of two loops that read alike at equal indices."""
        return self.source, self.indices

    @property
    def pace(self) -> Distance:
        """How far the address moves from one iteration to the next."""
        times = (dict(index.multiples).get(_INDEX, 0) for index in self.indices)
        return tuple(self.step * number for number in times)

    @property
    def is_async(self) -> bool:
        """Whether these are asynchronous copies, not loads."""
        return self.copies[0].op.name == COPY

    def stops(self) -> list[list[AddressedCopy]]:
        """The copies by offset along the dimensions whose strides are not constant."""
        found: dict[Distance, list[AddressedCopy]] = {}
        open_strides = dynamic_strides(self.source)
        for copy in self.copies:
            stop = tuple(copy.offset[number] for number in open_strides)
            found.setdefault(stop, []).append(copy)
        return list(found.values())


def copy_groups(loop: ir.Operation) -> list[CopyGroup]:
    """The copies of `loop`, but not of loops in it, by address.

    Of loads, only those of loops in which threads meet, and by addresses that move
    within an iteration.
    """
    step = constant(bounds(loop)[2])
    if step is None:
        return []
    found: dict[_Key, list[AddressedCopy]] = {}
    for op in walk(loop, *_kinds(loop)):
        if next(one for one in around(op) if is_loop(one)) != loop:
            continue
        source, at = read_by(op)
        indices = _indices(source, at, loop)
        if indices is None or is_workgroup(source.type):
            continue
        key = source, tuple(Terms(0, index.multiples) for index in indices)
        offset = tuple(index.constant for index in indices)
        found.setdefault(key, []).append(AddressedCopy(op, offset))
    groups = [CopyGroup(*key, tuple(copies), step) for key, copies in found.items()]
    return [one for one in groups if one.is_async or len(one.stops()) > 1]


def copies_after(group: CopyGroup, loop: ir.Operation) -> list[AddressedCopy]:
    """The copies between `loop` and the next loop that copies which the address that
    the group has after `loop` serves: at distances that are constants.

    Such are the last copies of a loop whose number of iterations is a constant.
    """
    start, end, step = map(constant, bounds(loop))
    if start is None or end is None or dynamic_strides(group.source):
        return []
    last = start + -(-(end - start) // (step or 1)) * (step or 1)
    named = [dict(index.multiples) for index in group.indices]
    times = [index.pop(_INDEX, 0) for index in named]
    found = []
    for op in _following(loop):
        if op.name != COPY or read_by(op)[0] != group.source:
            continue
        indices = [terms(index) for index in read_by(op)[1]]
        if [dict(index.multiples) for index in indices] == named:
            pairs = zip(indices, times, strict=True)
            offset = tuple(index.constant - last * count for index, count in pairs)
            found.append(AddressedCopy(op, offset))
    return found


def _following(loop: ir.Operation) -> Iterator[Any]:
    """The ops after `loop` in its block, up to another loop that copies."""
    ops = [op.operation for op in loop.block.operations]
    for op in ops[ops.index(loop.operation) + 1 :]:
        if is_loop(op) and walk(op, COPY):
            return
        yield op


def dynamic_strides(memref: ir.Value) -> list[int]:
    """The dimensions of `memref` whose strides are not constants."""
    kind = memref.type
    strides, _ = kind.get_strides_and_offset()
    return [
        number
        for number, stride in enumerate(strides)
        if kind.is_dynamic_stride_or_offset(stride)
    ]


def difference(one: Sequence[int], other: Sequence[int]) -> Distance:
    """`one` less `other`."""
    return tuple(left - right for left, right in zip(one, other, strict=True))


def read_by(op: ir.Operation) -> tuple[Any, list[Any]]:
    """The memref that a copy or load reads, and the indices."""
    if op.name == COPY:
        return op.opview.src, list(op.opview.srcIndices)
    source, *indices = op.operands
    return source, indices


def _kinds(loop: ir.Operation) -> tuple[str, ...]:
    return (COPY, LOAD) if walk(loop, BARRIER) else (COPY,)


def _indices(
    source: ir.Value, at: Sequence[ir.Value], loop: ir.Operation
) -> list[Terms] | None:
    """The indices of the source; None where they are not linear in the loop's own."""
    if _is_made_in(source, loop):
        return None
    own = body(loop).arguments[0]
    indices = [terms(index) for index in at]
    parts = {part for index in indices for part, _ in index.multiples} - {own}
    values = {value for part in parts for value in values_of(part)}
    if any(_is_made_in(value, loop) for value in values):
        return None
    return [_named(index, own) for index in indices]


def _named(index: Terms, own: ir.Value) -> Terms:
    """`index` with a name for the loop's own."""
    multiples = ((_INDEX if part == own else part, n) for part, n in index.multiples)
    return Terms(index.constant, frozenset(multiples))


def _is_made_in(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` is made in an iteration of `loop`."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        holder = owner.owner.operation
        return holder == loop or is_inside(holder, loop)
    return is_inside(owner.operation, loop)
