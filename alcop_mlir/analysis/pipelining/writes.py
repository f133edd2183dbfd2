"""Which elements copies write, and whether one iteration may write an element twice.

A thread's asynchronous copies have no order among each other, nor with its stores:
where two of them write one element, either may be the last. Nothing is changed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.index_terms import (
    Known,
    Terms,
    distance,
    element,
    single,
    terms,
    values_of,
)
from alcop_mlir.analysis.ir.loops import (
    block_of,
    body,
    bounds,
    constant,
    is_inside,
    is_loop,
    trip_count,
)
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_ANY = 1 << 62  # the size of a dimension that is known at run time only


@frozen
class Write:
    """What `op` writes: along each dimension of `base` so many elements from an index.

    root:   the op of the loop's block that has `op` in it, or is it
    buffer: an allocation
    base:   the buffer, or a view of it that is not followed
    copies: whether it is a copy, which has no order among others
    """

    op: Any
    root: Any
    buffer: Any
    base: Any
    begin: tuple[Terms, ...]
    sizes: tuple[int, ...]
    copies: bool

    @property
    def elements(self) -> tuple[Any, ...]:
        """Equal for writes of the same elements."""
        return self.base, self.begin, self.sizes


def writes_of(form: CopyForm) -> list[Write]:
    """All that `form` writes."""
    known = counted_indices(form.op)
    return [
        Write(
            op,
            form.op,
            memory.root(target),
            *box(target, indices, shape, known),
            copies,
        )
        for op, target, indices, shape, copies in (
            *((m.op, m.target, m.target_indices, m.shape, True) for m in form.moves),
            *((op, *stored(op), False) for op in form.fills),
        )
    ]


def meetings(forms: Collection[CopyForm]) -> dict[Any, tuple[Any, Any]]:
    """Of forms of one loop's block, by their op: two ops that may write one element.

    One of the two at least is a copy; both may be one op, which a loop repeats.
    """
    filled = Counter(memory.root(target) for form in forms for target in form.targets)
    # A single copy that is alone in its buffer meets no other, nor itself.
    met = [f for f in forms if f.is_region or any(filled[b] > 1 for b in f.buffers)]
    writes = [write for form in met for write in writes_of(form)]
    pairs = [*((one, one) for one in writes), *combinations(writes, 2)]
    found: dict[Any, tuple[Any, Any]] = {}
    for one, other in pairs:
        if (one.copies or other.copies) and not _are_apart(one, other):
            for write in (one, other):
                found.setdefault(write.root, (one.op, other.op))
    return found


def stored(store: ir.Operation) -> tuple[Any, list[Any], tuple[int, ...]]:
    """Of a store the memref, the indices, and the shape of what it stores."""
    value, target, *indices = store.operands
    shape = value.type.shape if isinstance(value.type, ir.VectorType) else [1]
    return target, indices[: target.type.rank], tuple(shape)


def counted_indices(op: ir.Operation) -> Known:
    """The indices of the loops in `op`, by the numbers of their iterations.

    The argument stands for that number; where the step is not known, for what the index
    has grown by.
    """
    known: dict[Any, Terms] = {}
    for loop in walk(op, "scf.for"):
        lower, _, step = bounds(loop)
        index = body(loop).arguments[0]
        stride = constant(step) or 1
        known[index] = terms(lower, known).plus(single(index), stride)
    return known


def box(
    target: ir.Value, indices: Sequence[ir.Value], shape: tuple[int, ...], known: Known
) -> tuple[Any, tuple[Terms, ...], tuple[int, ...]]:
    """Base, begin and sizes of so many elements at the indices; of all for no shape."""
    rank = target.type.rank
    if not shape:
        shape = tuple(_ANY if size < 0 else size for size in target.type.shape)
    sizes = [*[1] * rank, *shape][len(shape) :]
    base, begin = element(target, list(indices) or [0] * rank, known)
    (_, first), (_, end) = element(target, [0] * rank), element(target, sizes)
    lengths = (distance(b, a) or 1 for a, b in zip(first, end, strict=True))
    return base, tuple(begin), tuple(lengths)


# -- whether two writes meet ---------------------------------------------------------

# How often loops run, by the arguments that count their iterations; None for any.
_Counters = Mapping[Any, int | None]


def _are_apart(one: Write, other: Write) -> bool:
    """Whether the two write no element in common, in one iteration of the loop.

    Of one op, in two iterations of the loops around it in its root.
    """
    if one.buffer != other.buffer:
        return True
    if one.base != other.base:
        return False
    loops, others = _loops_around(one), _loops_around(other)
    counters = {body(loop).arguments[0]: trip_count(loop) for loop in {*loops, *others}}
    told: set[Any] = set()
    for number, size in enumerate(one.sizes):
        mine = _Index.of(one.begin[number], one, counters)
        theirs = _Index.of(other.begin[number], other, counters)
        if mine is None or theirs is None or mine.fixed != theirs.fixed:
            continue
        sizes = size, other.sizes[number]
        if _never_meet(mine, theirs, sizes, counters):
            return True
        if mine == theirs and _tells(mine.strides, max(sizes), counters):
            told |= mine.strides.keys()
    is_once = one.op == other.op or _are_alternatives(one.op, other.op)
    repeated = {body(loop).arguments[0] for loop in loops}
    return is_once and loops == others and repeated <= told


@frozen
class _Index:
    """An index: a number, what is the same in the root, and strides of its loops."""

    begin: int
    fixed: frozenset[tuple[Any, int]]
    strides: Mapping[Any, int]

    @classmethod
    def of(cls, form: Terms, write: Write, counters: _Counters) -> _Index | None:
        """None where it changes in other ways with the loops in the root."""
        fixed = frozenset((a, c) for a, c in form.multiples if a not in counters)
        inside = {value for a, _ in fixed for value in values_of(a)}
        if any(_changes(value, write.root) for value in inside):
            return None
        strides = {a: c for a, c in form.multiples if a in counters}
        return cls(form.constant, fixed, strides)


def _changes(value: ir.Value, root: ir.Operation) -> bool:
    """Whether a value may have several values while `root` runs once."""
    holders = {block_of(value).owner.operation, *around(block_of(value).owner)}
    inner = {one for one in holders if one == root or is_inside(one, root)}
    return any(is_loop(one) for one in inner)


def _never_meet(
    one: _Index, other: _Index, sizes: tuple[int, int], counters: _Counters
) -> bool:
    """Whether the elements at both indices are apart, whatever the iterations."""
    apart = one.begin - other.begin
    low, high = float(apart), float(apart)
    pairs = [*one.strides.items(), *((a, -c) for a, c in other.strides.items())]
    for counter, stride in pairs:
        reach = stride * _most(counter, counters)
        low, high = low + min(0, reach), high + max(0, reach)
    if low >= sizes[1] or high <= -sizes[0]:
        return True
    width = max(sizes)
    is_between = one.strides == other.strides and abs(apart) >= width
    return is_between and _tells(one.strides, abs(apart) + width, counters)


def _most(counter: Any, counters: _Counters) -> float:
    """The largest number that a loop's counter reaches."""
    trips = counters[counter]
    return float("inf") if trips is None else max(0, trips - 1)


def _tells(strides: Mapping[Any, int], width: int, counters: _Counters) -> bool:
    """Whether indices of two iterations differ by `width` at least: a mixed radix."""
    reached: float = width
    for counter, stride in sorted(strides.items(), key=lambda one: abs(one[1])):
        if abs(stride) < reached:
            return False
        reached += abs(stride) * _most(counter, counters)
    return True


def _loops_around(write: Write) -> list[Any]:
    """The loops around a write in its root."""
    holders = [one for one in around(write.op) if is_loop(one)]
    root = write.root
    return [one for one in holders if one == root or is_inside(one, root)]


def _are_alternatives(one: ir.Operation, other: ir.Operation) -> bool:
    """Whether both are in an scf.if, in different branches of it."""
    branches = {holder: region for holder, region in branches_around(one)}
    return any(
        holder in branches and branches[holder] != region
        for holder, region in branches_around(other)
    )


def branches_around(op: ir.Operation) -> list[tuple[Any, int]]:
    """Each scf.if around `op`, with the number of the region that it is in."""
    inner, found = op, []
    for holder in around(op):
        if holder.name == "scf.if":
            blocks = [
                region.blocks[0] for region in holder.regions if len(region.blocks)
            ]
            found.append((holder, blocks.index(inner.block)))
        inner = holder
    return found
