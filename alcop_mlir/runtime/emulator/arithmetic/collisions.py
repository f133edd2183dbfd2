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

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array

Update = Callable[[Array, Array, Array], Array]
_ASSOCIATIVE: dict[str, Callable[[Array, Array], Array]] = {
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_FEW = 16  # queues that are taken one by one
_ROUNDS = 4  # of compare-and-swap, in each of which a queue swaps once
# Those that NumPy's `at` does entry by entry, without a sort, faster than sorted.
_IN_PLACE: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True)
class _Queues:
    """Entries sorted by element: `order` of the entries, and one queue per element.

    `first`, `length` of each queue.
    """

    order: Array
    first: Array
    length: Array

    @classmethod
    def of(cls, at: Array, elements: int) -> _Queues:
        at = _narrow(at, elements)
        order = np.argsort(at, kind="stable")
        ordered = at.take(order)
        begins = np.empty(at.size, bool)
        begins[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        first = np.flatnonzero(begins)
        return cls(order, first, np.diff(first, append=at.size))

    @property
    def rank(self) -> Array:
        """Of each sorted entry, its number in its queue."""
        return np.arange(self.order.size) - self.first.repeat(self.length)

    def in_row(self, copies: int) -> _Queues:
        """The queues of all copies, one after the other."""
        step = np.arange(copies)[:, None] * self.order.size
        order, first = (self.order + step).reshape(-1), (self.first + step).reshape(-1)
        return _Queues(order, first, np.tile(self.length, copies))

    def spread(self, x: Array) -> Array:
        """What each entry has of x (copies, queues)."""
        return x.repeat(self.length, axis=-1)


def _narrow(at: Array, elements: int) -> Array:
    """As 16-bit numbers of the same order, if they are: NumPy sorts these by radix."""
    if elements <= 1 << 16:
        return at.astype(np.uint16)
    low = at.min()
    return (at - low).astype(np.uint16) if at.max() - low < 1 << 16 else at


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
    fn.at(memory.reshape(-1), _in_all(memory, at).reshape(-1), x.reshape(-1))


def update_in_order(
    memory: Array, at: Array, name: str, update: Update, x: Array, y: Array
) -> Array:
    """Does `memory[at] = update(memory[at], x, y)` entry by entry, in each copy.

    name: of the operation, as PTX has it; memory: (copies, elements); at: (n,); x, y:
    (copies, n), of its type
    Returns what each entry found in memory, (copies, n).
    """
    if not at.size:
        return np.empty((len(memory), 0), memory.dtype)
    queues = _Queues.of(at, memory.shape[1])
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
    elif name in ("inc", "dec") and _has_one_limit(queues, x):
        found, end = _count(queues, start, x, name)
    else:
        y = y.take(order, axis=1)
        known = _swap_in_rounds(queues, start, x, y) if name == "cas" else None
        found, end = known or _one_by_one(queues, name, update, start, x, y)
    memory[:, place] = end
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return found.take(back, axis=1)


def _exchange(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    found = np.empty_like(x)
    found[:, 1:] = x[:, :-1]
    found[:, q.first] = start
    return found, x[:, q.first + q.length - 1]


def _sum(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    """Integers wrap around, so that differences of running totals are exact."""
    total = np.cumsum(x, axis=1, dtype=x.dtype)
    total -= x
    total += q.spread(start - total.take(q.first, axis=1))
    last = q.first + q.length - 1
    return total, total.take(last, axis=1) + x.take(last, axis=1)


def _scan(
    q: _Queues, start: Array, x: Array, fn: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Running values within each queue, in log2 of the longest steps."""
    value, rank = x.copy(), q.rank
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
    first, top = start.astype(np.int64), limit[:, q.first].astype(np.int64)
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

    A round goes from one swap of each queue to its next one: entries between find the
    same.
    """
    number, end = np.arange(x.shape[1], dtype=np.int32), x.shape[1]
    value, found = start.copy(), q.spread(start)
    hits = x == found
    for _ in range(_ROUNDS):
        swap = np.minimum.reduceat(
            np.where(hits, number, np.int32(end)), q.first, axis=1
        )
        copy, queue = np.nonzero(swap < end)
        if not copy.size:
            return found, value
        value[copy, queue] = y[copy, swap[copy, queue]]
        behind = number > q.spread(swap)
        found = np.where(behind, q.spread(value), found)
        hits = behind & (x == found)
    return None


def _one_by_one(
    q: _Queues, name: str, update: Update, start: Array, x: Array, y: Array
) -> tuple[Array, Array]:
    """By rank, all queues at once, while there are many; then queue by queue."""
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
    if name == "add" and x.dtype.kind == "f":
        total = np.add.accumulate(np.concatenate([[start], x]), dtype=x.dtype)
        return total[:-1], total[-1]
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
        hits = x[at : at + chunk] == value
        if not hits.any():
            at += hits.size
            chunk *= 2
            continue
        at += int(hits.argmax())
        yield at
        value = y[at]
        at, chunk = at + 1, 64
