"""CUDA programs and what they compute: one row each, in NumPy.

All take `(const T *x, T *y, int n)`. Each has a source file here, is built by nvcc when
the tests run, and is launched with blocks of 128 threads unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
BLOCKS = 3
TARGETS = {"clusters.cu": "sm_90"}  # where it is not sm_80


@dataclass(frozen=True)
class Program:
    """A kernel of a file, its launch, and `y` after it as a function of x, y and n.

    per: elements of x that a block takes; n: how many count, None for all; size: of y,
    None for that of x
    """

    file: str
    name: str
    model: Callable[[Array, Array, int], Array]
    dtype: str = "i4"
    threads: int = 128
    per: int = 128
    n: int | None = None
    size: int | None = None
    to: str | None = None
    blocks: int = BLOCKS
    shared: int = 0
    cooperative: bool = False

    def arrays(self) -> tuple[Array, Array, int]:
        """x, y before the launch, and n."""
        generator = np.random.default_rng(len(self.name))
        count = self.per * self.blocks
        kind = np.dtype(self.dtype)
        if kind.kind == "u":
            x = generator.integers(0, 1 << (8 * kind.itemsize), count, np.uint64)
        else:
            x = generator.integers(-50, 50, count)
        y = np.zeros(count if self.size is None else self.size, self.to or self.dtype)
        return x.astype(kind), y, count if self.n is None else self.n


def _divide_wide(x: Array, y: Array, n: int) -> Array:
    words = [int(word) for word in x]
    for i in range(n):
        a = b = 0
        for j in range(4):
            a = a << 32 | words[(i + j) % n]
        b = words[(i + 5) % n] << (i % 128 & 63) | 1
        for part, value in enumerate(divmod(a, b)):
            for j in range(4):
                y[8 * i + 4 * part + j] = value >> 32 * j & 0xFFFFFFFF
    return y


def _plain(name: str, model: Callable, **more) -> Program:
    return Program("plain.cu", name, model, **more)


def _cluster(name: str, model: Callable, **more) -> Program:
    return Program("clusters.cu", name, model, **{"blocks": 8, **more})


def _cub(name: str, model: Callable, **more) -> Program:
    return Program("cub_blocks.cu", name, model, **{"per": 512, **more})


def _sums(each: int) -> Callable:
    return lambda x, y, n: x.reshape(-1, each).sum(1, dtype=x.dtype)


def _scans(each: int) -> Callable:
    return lambda x, y, n: x.reshape(-1, each).cumsum(1, dtype=x.dtype).reshape(-1)


def _sorts(each: int) -> Callable:
    def model(x: Array, y: Array, n: int) -> Array:
        parts = [np.sort(x[i : min(i + each, n)]) for i in range(0, n, each)]
        return np.concatenate([*parts, y[n:]])

    return model


def _exchanged(x: Array, y: Array, n: int) -> Array:
    return x.reshape(-1, 2, 128)[:, ::-1].reshape(-1)


def _round(x: Array, y: Array, n: int) -> Array:
    blocks = x.reshape(-1, 3, 128)
    turns = [(k + 1) * np.roll(blocks, k, axis=1) for k in range(3)]
    return np.sum(turns, axis=0).reshape(-1)


def _transposed(x: Array, y: Array, n: int) -> Array:
    return x.reshape(-1, 32, 32).swapaxes(1, 2).reshape(-1)


def _product(x: Array, y: Array, n: int) -> Array:
    a = x.reshape(32, 32)
    return (a @ a).reshape(-1)


def _stencil(x: Array, y: Array, n: int) -> Array:
    wide = np.concatenate([[0], x, [0]])
    return wide[:-2] - 2 * wide[1:-1] + wide[2:]


def _partial_sums(x: Array, y: Array, n: int) -> Array:
    return np.array([x[i : min(i + 128, n)].sum() for i in range(0, x.size, 128)])


def _compacted(x: Array, y: Array, n: int) -> Array:
    warps = x.reshape(-1, 32)
    return np.concatenate([[*w[w & 1 == 1], *w[w & 1 == 0]] for w in warps])


def _collatz(x: Array, y: Array, n: int) -> Array:
    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v, count = (3 * v + 1 if v & 1 else v // 2), count + 1
        return count

    return np.array([steps(i + 1) for i in range(x.size)])


def _extremes(x: Array, y: Array, n: int) -> Array:
    return np.array([min(0, x.min()), max(0, x.max()), np.bitwise_xor.reduce(x)])


def _async_sums(x: Array, y: Array, n: int) -> Array:
    parts = np.roll(x.reshape(-1, 4, 128), -37, axis=2)
    return (parts * np.arange(1, 5)[:, None]).sum(1).reshape(-1)


def _fibonacci(x: Array, y: Array, n: int) -> Array:
    return np.array([0, 1, 1, 2, 3, 5, 8, 13])[x & 7]


def _table(x: Array, y: Array, n: int) -> Array:
    return np.where(np.arange(x.size) & 1, x * x, 2 * x)


def _on_stack(x: Array, y: Array, n: int) -> Array:
    i, steps = np.arange(x.size)[:, None], np.arange(16)
    room = x[(i + steps) % n]
    picked = (x[:, None] + steps * steps) & 15
    return np.take_along_axis(room, picked, axis=1).sum(1)


def _moved(by_thread: Callable[[Array], Array]) -> Callable:
    """Twice x plus the number of the thread that holds it, up to n."""

    def model(x: Array, y: Array, n: int) -> Array:
        out = 2 * x + by_thread(np.arange(x.size))
        out[n:] = 0
        return out

    return model


def _neighbours(each: int, fn: Callable[[Array, Array], Array], first: int | None):
    """fn of every element and the one before, in each block; `first`: of the first."""

    def model(x: Array, y: Array, n: int) -> Array:
        rows = x.reshape(-1, each)
        out = rows.copy()
        out[:, 1:] = fn(rows[:, 1:], rows[:, :-1])
        if first is not None:
            out[:, 0] = first
        return out.reshape(-1)

    return model


def _shifted(x: Array, y: Array, n: int) -> Array:
    rows = x.reshape(-1, 128)
    return np.concatenate([rows[:, 1:], np.full((len(rows), 1), -1)], 1).reshape(-1)


_COUNTS = {"dtype": "u1", "size": 256, "to": "u4"}
_TYPES = {"i": "i4", "f": "f4", "d": "f8"}
PROGRAMS = (
    *(
        _plain(
            f"axpy_{t}",
            lambda x, y, n: np.where(np.arange(x.size) < n, 3 * x, 0),
            dtype=d,
            n=300,
        )
        for t, d in _TYPES.items()
    ),
    *(
        _plain(f"transpose_{t}", _transposed, dtype=d, per=1024)
        for t, d in {**_TYPES, "h": "u2"}.items()
        if t != "i"
    ),
    *(_plain(f"tree_{t}", _sums(128), dtype=d, size=BLOCKS) for t, d in _TYPES.items()),
    *(
        _plain(f"product_{t}", _product, dtype=d, per=256, threads=256, blocks=4)
        for t, d in _TYPES.items()
    ),
    _plain("histogram", lambda x, y, n: np.bincount(x & 15, minlength=16), size=16),
    _plain("any_negative", lambda x, y, n: (x.reshape(-1, 128) < 0).any(1).repeat(128)),
    _plain("stencil", _stencil),
    _plain("scan", _scans(128)),
    _plain("bitonic", _sorts(128)),
    _plain("warp_sums", lambda x, y, n: _sums(32)(x, y, n).repeat(32)),
    _plain("compact", _compacted),
    _plain("collatz", _collatz),
    _plain("extremes", _extremes, size=3),
    _plain("async_sums", _async_sums, per=512, size=128 * BLOCKS),
    _plain(
        "reverse", lambda x, y, n: x.reshape(-1, 128)[:, ::-1].reshape(-1), shared=512
    ),
    _plain("recursion", _fibonacci),
    _plain("wide_division", _divide_wide, dtype="u4", size=8 * 128 * BLOCKS),
    _plain("table", _table),
    _plain("lists", lambda x, y, n: x + 1),
    _plain("on_stack", _on_stack),
    _plain("grid_sums", lambda x, y, n: x + np.roll(x, -128), cooperative=True),
    *(_cub(f"red_{k}", _sums(512), size=BLOCKS) for k in ("rake", "rake_comm", "warp")),
    _cub("red_warp_f", _sums(512), dtype="f4", size=BLOCKS),
    _cub("red_warp_d", _sums(192), dtype="f8", threads=64, per=192, size=BLOCKS),
    _cub("red_partial", _partial_sums, per=128, n=300, size=BLOCKS),
    *(_cub(f"scan_{k}", _scans(512)) for k in ("rake", "rake_mem", "warp")),
    _cub("scan_f", _scans(288), dtype="f4", threads=96, per=288),
    _cub("sort_i", _sorts(512)),
    _cub("sort_u", _sorts(512), dtype="u4", threads=64),
    _cub("sort_f", _sorts(512), dtype="f4"),
    _cub("sort_l", _sorts(256), dtype="i8", threads=64, per=256),
    _cub("msort", _sorts(512), n=1300),
    _cub("wmsort", _sorts(128)),
    *(
        _cub(f"hist_{k}", lambda x, y, n: np.bincount(x, minlength=256), **_COUNTS)
        for k in ("atomic", "sort")
    ),
    *(
        _cub(f"io_{k}", _moved(lambda i: i % 512 // 4), n=1300)
        for k in ("direct", "trans", "wtrans", "wts", "vec")
    ),
    _cub("io_striped", _moved(lambda i: i % 128), n=1300),
    *(_cub(f"wred{w}", _sums(w), per=128, size=128 * BLOCKS // w) for w in (32, 16, 8)),
    _cub(
        "wred5",
        lambda x, y, n: x.reshape(-1, 32)[:, :5].sum(1),
        threads=32,
        per=32,
        size=BLOCKS,
    ),
    _cub("wscan", _scans(32), per=128),
    _cub("exch", lambda x, y, n: x + np.arange(x.size) % 4),
    _cub("adjdiff", _neighbours(512, np.subtract, None)),
    _cub("heads", _neighbours(512, np.not_equal, 1)),
    _cub("shuf", _shifted, per=128),
    _cluster("cluster_exchange", _exchanged),
    _cluster("cluster_sums", _sums(512), size=2),
    _cluster(
        "cluster_histogram",
        lambda x, y, n: np.bincount(x & 31, minlength=32),
        dtype="u4",
        size=32,
    ),
    _cluster("cluster_ring", _round, blocks=6),
    _cluster("cluster_scan", _scans(256)),
)
