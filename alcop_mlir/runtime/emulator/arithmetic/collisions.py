"""Read-modify-writes of which several may go to one element: one after the other.

The order among those of one element is the order of the entries; the results are those
of doing one at a time, bit for bit. What takes many at once is: additions and other
associative operations of integers, exchanges, counters with one limit. What depends on
its order, as additions of floats, goes through the longest queues one by one. Where
nobody asks what was there, NumPy's `ufunc.at` does most of them, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array, same_bits

Update = Callable[[Array, Array, Array], Array]
_ASSOCIATIVE: dict[str, Callable[[Array, Array], Array]] = {
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_LONG = 32  # queues of floats that are added up as rows of a matrix
_FEW = 16  # queues that are taken one by one
_ROUNDS = 4  # of compare-and-swap, in each of which a queue swaps once
# Those that NumPy's `at` does entry by entry, without a sort, faster than sorted.
_IN_PLACE: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(eq=False)
class _Queues:
    """Entries sorted by element: `order` of the entries, and one queue per element.

    `first`, `length` of each queue; whether a later access `recurs` to them.
    """

    order: Array
    first: Array
    length: Array
    recurs: bool = False

    @classmethod
    def of(cls, at: Array) -> _Queues:
        order = np.argsort(at, kind="stable")
        ordered = at.take(order)
        last = np.flatnonzero(ordered[1:] != ordered[:-1])
        first, length = np.empty((2, last.size + 1), np.intp)
        first[0], length[-1] = 0, at.size
        np.add(last, 1, out=first[1:])
        length[:-1] = first[1:]
        length -= first
        return cls(order, first, length)

    @cached_property
    def stop(self) -> Array:
        """Behind the last entry of each queue."""
        return self.first + self.length

    @cached_property
    def rank(self) -> Array:
        """Of each sorted entry, its number in its queue."""
        return np.arange(self.order.size) - self.first.repeat(self.length)

    def in_row(self, copies: int) -> _Queues:
        """The queues of all copies, one after the other."""
        step = np.arange(copies)[:, None] * self.order.size
        order, first = (self.order + step).reshape(-1), (self.first + step).reshape(-1)
        return _Queues(order, first, np.tile(self.length, copies))

    def unsorted(self, x: Array) -> Array:
        """What entries sorted by element have, x (copies, n), in their own order."""
        if self.recurs or len(x) > 1:
            return x.take(self.back, axis=1)
        out = np.empty_like(x)
        out[0][self.order] = x[0]
        return out

    @cached_property
    def alike(self) -> list[Array]:
        """The numbers of the queues, by the binary digits of their lengths."""
        _, digits = np.frexp(self.length)
        return [np.flatnonzero(digits == one) for one in np.unique(digits)]

    @cached_property
    def back(self) -> Array:
        """Of each entry, its number in `order`."""
        back = np.empty_like(self.order)
        back[self.order] = np.arange(self.order.size)
        return back

    def spread(self, x: Array) -> Array:
        """What each entry has of x (copies, queues)."""
        return x.repeat(self.length, axis=-1)


def _narrow(at: Array) -> Array:
    """From the least one on, as 8 or 16 bits if that will do.

    NumPy sorts these by radix, in one or two passes.
    """
    low = at.min()
    span = at.max() - low
    if span >= 1 << 16:
        return at - low
    return (at - low).astype(np.uint8 if span < 1 << 8 else np.uint16)


def _in_all(memory: Array, at: Array) -> Array:
    """Elements `at` of each copy, in the flat memory: (copies, n)."""
    if len(memory) == 1:
        return at[None]
    return at + np.arange(0, memory.size, memory.shape[1])[:, None]


def reduce_in_order(
    memory: Array, at: Array, name: str, update: Update, x: Array, y: Array
) -> None:
    """`update_in_order` where nobody asks what the entries found."""
    fn = _IN_PLACE.get(name)
    if fn is None or (name != "add" and memory.dtype.kind == "f"):
        update_in_order(memory, at, name, update, x, y)
        return
    every = _in_all(memory, at).reshape(-1)
    fn.at(memory.reshape(-1), every, _in_every_copy(x, memory).reshape(-1))


class LastQueues:
    """The queues of the last access: in a loop the next one is often the same.

    Or it goes elsewhere by one step for all entries, and so in the same order.
    """

    def __init__(self) -> None:
        self._at: Array | None = None
        self._queues: _Queues | None = None

    def of(self, at: Array) -> _Queues:
        """Those of entries that go to `at`."""
        if self._queues is not None and _same_but_for_a_step(self._at, at):
            self._queues.recurs = True
            return self._queues
        self._at, self._queues = at, _Queues.of(_narrow(at))
        return self._queues


def _same_but_for_a_step(known: Array | None, at: Array) -> bool:
    if known is None or known.size != at.size:
        return False
    step = at[0] - known[0]
    if at[-1] - known[-1] != step:
        return False
    return bool((known == (at - step if step else at)).all())


def update_in_order(
    memory: Array,
    at: Array,
    name: str,
    update: Update,
    x: Array,
    y: Array,
    known: LastQueues | None = None,
) -> Array:
    """Does `memory[at] = update(memory[at], x, y)` entry by entry, in each copy.

    name: of the operation, as PTX has it; memory: (copies, elements); at: (n,); x, y:
    (1|copies, n), of its type; known: of the accesses before
    Returns what each entry found in memory, (copies, n).
    """
    if not at.size:
        return np.empty((len(memory), 0), memory.dtype)
    queues = (known or LastQueues()).of(at)
    if queues.first.size == at.size:
        flat, every = memory.reshape(-1), _in_all(memory, at)
        old = flat.take(every)
        flat[every] = update(old, x, y)
        return old
    order = queues.order
    place = at.take(order.take(queues.first))
    x = x.take(order, axis=1)
    start = memory.take(place, axis=1)
    is_integer = memory.dtype.kind in "iu"
    if name == "exch":
        found, end = _exchange(queues, start, x)
    elif name == "add" and is_integer:
        found, end = _sum(queues, start, x)
    elif name in _ASSOCIATIVE and is_integer:
        found, end = _scan(queues, start, x, _ASSOCIATIVE[name])
    elif name == "add" and queues.length.max() > _LONG:
        found, end = _add_by_rows(queues, start, x)
    elif name in ("inc", "dec") and _has_one_limit(queues, x):
        found, end = _count(queues, start, x, name)
    else:
        y = y.take(order, axis=1)
        swapped = _swap_in_rounds(queues, start, x, y) if name == "cas" else None
        if swapped is None:
            swapped = _one_by_one(queues, name, update, start, x, y)
        found, end = swapped
    memory[:, place] = end
    return queues.unsorted(found)


def _in_every_copy(x: Array, start: Array) -> Array:
    """Of (1|copies, n) what each of the copies of `start` has."""
    copies = len(start)
    return x if len(x) == copies else np.broadcast_to(x, (copies, x.shape[1]))


def _exchange(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    found = np.empty((len(start), x.shape[1]), x.dtype)
    found[:, 1:] = x[:, :-1]
    found[:, q.first] = start
    return found, x[:, q.stop - 1]


def _sum(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    """Integers wrap around, so that differences of running totals are exact."""
    before = np.empty((len(x), x.shape[1] + 1), x.dtype)
    before[:, 0] = 0
    np.cumsum(x, axis=1, dtype=x.dtype, out=before[:, 1:])
    change = before[:, q.stop] - before[:, q.first]
    found = q.spread(start - before[:, q.first])
    found += before[:, :-1]
    return found, start + change


def _add_by_rows(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    """Additions of floats, rounded entry by entry.

    The queues of about the same length are the rows of a matrix, filled up with zeros.
    """
    shapes, q = (x.shape[1], start.shape), q.in_row(len(start))
    x, start = _in_every_copy(x, start).reshape(-1), start.reshape(-1)
    found, end = np.empty_like(x), np.empty_like(start)
    for queues in q.alike:
        length = q.length[queues]
        at, row = _ranges(q.first[queues], q.stop[queues])
        width = int(length.max()) + 1
        cell = row * width + (at - q.first[queues][row])
        rows = np.zeros((queues.size, width), x.dtype)
        rows[:, 0] = start[queues]
        rows.reshape(-1)[cell + 1] = x[at]
        np.add.accumulate(rows, axis=1, out=rows)
        found[at] = rows.reshape(-1)[cell]
        end[queues] = rows[np.arange(queues.size), length]
    return found.reshape(-1, shapes[0]), end.reshape(shapes[1])


def _scan(
    q: _Queues, start: Array, x: Array, fn: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Running values within each queue, in log2 of the longest steps."""
    value, rank = _in_every_copy(x, start).copy(), q.rank
    value[:, q.first] = fn(start, x[:, q.first])
    step = 1
    while step < int(q.length.max()):
        joined = fn(value[:, :-step], value[:, step:])
        value[:, step:] = np.where(rank[step:] >= step, joined, value[:, step:])
        step *= 2
    return _exchange(q, start, value)


def _has_one_limit(q: _Queues, limit: Array) -> bool:
    return bool((limit == q.spread(limit[:, q.first])).all())


def _count(q: _Queues, start: Array, limit: Array, name: str) -> tuple[Array, Array]:
    """inc counts 0, 1, ... limit, 0, ...; dec the other way round."""
    first = start.astype(np.int64)
    top = _in_every_copy(limit[:, q.first], start).astype(np.int64)
    outside = first > top
    # The count after what is outside its range begins anew.
    origin = np.where(outside, -1 if name == "inc" else top + 1, first)
    sign = 1 if name == "inc" else -1

    def after(steps: Array, origin: Array, top: Array) -> Array:
        return (origin + sign * steps) % (top + 1)

    found = after(q.rank, q.spread(origin), q.spread(top))
    found[:, q.first] = first
    end = after(q.length, origin, top)
    return found.astype(start.dtype), end.astype(start.dtype)


def _swap_in_rounds(
    q: _Queues, start: Array, x: Array, y: Array
) -> tuple[Array, Array] | None:
    """compare-and-swap where each queue swaps a few times; None where one does more.

    A round goes from one swap of each queue to its next one: all behind it finds what
    was swapped in. An atomic read is written as a swap of some value for itself, which
    changes nothing and takes no round. x and y are sorted.
    """
    value, found = start.copy(), q.spread(start)
    left = np.arange(x.shape[1], 0, -1, dtype=np.int32)  # entries from each one on
    changes = ~same_bits(x, y)
    hit = same_bits(x, found) & changes
    for _ in range(_ROUNDS):
        if not hit.any():
            return found, value
        swap = np.maximum.reduceat(hit * left, q.first, axis=1)  # 0: there is none
        queue = np.flatnonzero(swap)
        entry = x.shape[1] - swap.take(queue)
        entry += 0 if len(y) == 1 else queue // swap.shape[1] * x.shape[1]
        value.reshape(-1)[queue] = y.take(entry)
        behind = left < q.spread(swap)
        found = np.where(behind, q.spread(value), found)
        hit = same_bits(x, found)
        hit &= changes
        hit &= behind
    return None if hit.any() else (found, value)


def _ranges(start: Array, stop: Array) -> tuple[Array, Array]:
    """All numbers of the ranges [start, stop), and the number of the range of each."""
    length = stop - start
    owner = np.arange(length.size).repeat(length)
    before = length.cumsum() - length
    return np.arange(owner.size) + (start - before).repeat(length), owner


def _one_by_one(
    q: _Queues, name: str, update: Update, start: Array, x: Array, y: Array
) -> tuple[Array, Array]:
    """By rank, all queues at once, while there are many; then queue by queue."""
    x, y = _in_every_copy(x, start), _in_every_copy(y, start)
    shapes, q = (x.shape, start.shape), q.in_row(len(x))
    start, x, y = start.reshape(-1), x.reshape(-1), y.reshape(-1)
    found = np.empty_like(x)
    longest = np.argsort(-q.length, kind="stable")
    length, first = q.length[longest], q.first[longest]
    value = start[longest]
    rank = 0
    while rank < length[0]:
        left = int(np.searchsorted(-length, -rank, side="left"))
        if left <= _FEW:
            break
        at = first[:left] + rank
        found[at] = value[:left]
        value[:left] = update(value[:left], x[at], y[at])
        rank += 1
    else:
        left = 0
    for i in range(left):
        queue = slice(first[i] + rank, first[i] + length[i])
        found[queue], value[i] = _queue(value[i], name, update, x[queue], y[queue])
    end = np.empty_like(start)
    end[longest] = value
    return found.reshape(shapes[0]), end.reshape(shapes[1])


def _queue(
    start: np.generic, name: str, update: Update, x: Array, y: Array
) -> tuple[Array, np.generic]:
    """One queue: what each entry finds, and what is there in the end."""
    if name == "cas":
        return _compare_and_swap(start, x, y)
    found = np.empty_like(x)
    value = np.array([start])
    for i in range(x.size):
        found[i] = value[0]
        value = update(value, x[i : i + 1], y[i : i + 1])
    return found, value[0]


def _compare_and_swap(
    start: np.generic, x: Array, y: Array
) -> tuple[Array, np.generic]:
    """From one swap to the next one, all entries find the same."""
    found = np.empty_like(x)
    value, at = start, 0
    for stop in _swaps(x, y, start):
        found[at : stop + 1] = value
        value, at = y[stop], stop + 1
    found[at:] = value
    return found, value


def _swaps(x: Array, y: Array, value: np.generic) -> Iterator[int]:
    """The entries that find what they compare with."""
    at, chunk = 0, 64
    while at < x.size:
        hits = same_bits(x[at : at + chunk], np.asarray(value))
        if not hits.any():
            at += hits.size
            chunk *= 2
            continue
        at += int(hits.argmax())
        yield at
        value = y[at]
        at, chunk = at + 1, 64
