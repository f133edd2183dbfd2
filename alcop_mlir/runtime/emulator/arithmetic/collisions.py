"""Read-modify-writes of which several may go to one element: one after the other.

The order among those of one element is the order of the entries; the results are those
of doing one at a time, bit for bit. What takes many at once is: additions and other
associative operations of integers, exchanges, counters with one limit. What depends on
its order, as additions of floats, goes through the longest queues one by one.
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


@dataclass(frozen=True)
class _Queues:
    """Entries sorted by element: `order` of the entries, and one queue per element.

    `first`, `length` of each queue; `rank` of each sorted entry in its queue.
    """

    order: Array
    first: Array
    length: Array
    rank: Array

    @classmethod
    def of(cls, at: Array) -> _Queues:
        order = np.argsort(at, kind="stable")
        ordered = at[order]
        first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
        length = np.diff(first, append=at.size)
        return cls(order, first, length, np.arange(at.size) - first.repeat(length))


def update_in_order(
    memory: Array, at: Array, name: str, update: Update, x: Array, y: Array
) -> Array:
    """Does `memory[at] = update(memory[at], x, y)` entry by entry.

    name: of the operation, as PTX has it; memory, x, y: of one type; at, x, y: (n,)
    Returns what each entry found in memory, (n,).
    """
    if not at.size:
        return np.empty(0, memory.dtype)
    queues = _Queues.of(at)
    if queues.first.size == at.size:
        old = memory[at]
        memory[at] = update(old, x, y)
        return old
    order, place = queues.order, at[queues.order[queues.first]]
    x, y, start = x[order], y[order], memory[place]
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
        found, end = _one_by_one(queues, start, name, update, x, y)
    memory[place] = end
    old = np.empty_like(found)
    old[order] = found
    return old


def _exchange(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    found = np.empty_like(x)
    found[1:] = x[:-1]
    found[q.first] = start
    return found, x[q.first + q.length - 1]


def _sum(q: _Queues, start: Array, x: Array) -> tuple[Array, Array]:
    """Integers wrap around, so that differences of running totals are exact."""
    total = np.cumsum(x, dtype=x.dtype)
    before = total - x
    found = before + (start - before[q.first]).repeat(q.length)
    last = q.first + q.length - 1
    return found, found[last] + x[last]


def _scan(
    q: _Queues, start: Array, x: Array, fn: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Running values within each queue, in log2 of the longest steps."""
    value = x.copy()
    value[q.first] = fn(start, x[q.first])
    step = 1
    while step < int(q.length.max()):
        joined = fn(value[:-step], value[step:])
        value[step:] = np.where(q.rank[step:] >= step, joined, value[step:])
        step *= 2
    return _exchange(q, start, value)


def _has_one_limit(q: _Queues, limit: Array) -> bool:
    return bool((limit == limit[q.first].repeat(q.length)).all())


def _count(q: _Queues, start: Array, limit: Array, name: str) -> tuple[Array, Array]:
    """inc counts 0, 1, ... limit, 0, ...; dec the other way round."""
    first, top = start.astype(np.int64), limit[q.first].astype(np.int64)
    outside = first > top
    # The count after what is outside its range begins anew.
    origin = np.where(outside, -1 if name == "inc" else top + 1, first)
    sign = 1 if name == "inc" else -1

    def after(steps: Array, origin: Array, top: Array) -> Array:
        return (origin + sign * steps) % (top + 1)

    wide = origin.repeat(q.length), top.repeat(q.length)
    found = after(q.rank, *wide)
    found[q.first] = first
    end = after(q.length, origin, top)
    return found.astype(start.dtype), end.astype(start.dtype)


def _one_by_one(
    q: _Queues, start: Array, name: str, update: Update, x: Array, y: Array
) -> tuple[Array, Array]:
    """By rank, all queues at once, while there are many; then queue by queue."""
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
    return found, end


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
