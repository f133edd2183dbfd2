"""How kernels of this folder are launched, and what they should compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BOUND = 2e-3  # of errors, absolute and relative


@dataclass(frozen=True)
class Launch:
    """A grid, arguments as declared, the number of that which is the result.

    matmul: where that is one of the first two: nn, or nt if the second is transposed
    """

    blocks: tuple[int, int, int]
    arguments: tuple[Any, ...]
    result: int
    expected: Array
    matmul: str = ""


def _floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.uniform(-1, 1, shape).astype(np.float32)


def _halves(rng: np.random.Generator, *shape: int) -> Array:
    return _floats(rng, *shape).astype(np.float16)


def _integers(rng: np.random.Generator, low: int, high: int, *shape: int) -> Array:
    return rng.integers(low, high, shape).astype(np.int32)


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _product(a: Array, b: Array) -> Array:
    return a.astype(np.float32) @ b.astype(np.float32)


def softmax(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 4, 500)
    return Launch((4, 1, 1), (x, np.zeros_like(x), 500), 1, _softmax(x))


def layer_norm(rng: np.random.Generator) -> Launch:
    x, w = _floats(rng, 4, 500), _floats(rng, 500)
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    expected = (x - mean) / np.sqrt(variance + 1e-5) * w
    return Launch((4, 1, 1), (x, w, np.zeros_like(x), 500), 2, expected)


def matmul(rng: np.random.Generator) -> Launch:
    a, b, c = _halves(rng, 96, 160), _halves(rng, 160, 80), np.zeros((96, 80), "f4")
    return Launch((2, 2, 1), (a, b, c, 96, 80, 160), 2, _product(a, b), "nn")


def int8_dot(rng: np.random.Generator) -> Launch:
    a = _integers(rng, -128, 128, 64, 256).astype(np.int8)
    b = _integers(rng, -128, 128, 256, 64).astype(np.int8)
    expected = a.astype(np.int32) @ b.astype(np.int32)
    c = np.zeros((64, 64), "i4")
    return Launch((1, 1, 1), (a, b, c, 256), 2, expected, "nn")


def attention(rng: np.random.Generator) -> Launch:
    q, k, v = (_halves(rng, 128, 64) for _ in range(3))
    expected = _softmax(_product(q, k.T) * 0.125) @ v.astype(np.float32)
    out = np.zeros((128, 64), np.float32)
    return Launch((2, 1, 1), (q, k, v, out, 128, 0.125), 3, expected)


def histogram(rng: np.random.Generator) -> Launch:
    x = _integers(rng, 0, 16, 1000)
    expected = np.bincount(x, minlength=16)
    return Launch((4, 1, 1), (x, np.zeros(16, "i4"), 1000), 1, expected)


def scan(rng: np.random.Generator) -> Launch:
    x = _integers(rng, -99, 99, 1024)
    return Launch((1, 1, 1), (x, np.zeros_like(x)), 1, np.cumsum(x))


def sort(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 256)
    return Launch((1, 1, 1), (x, np.zeros_like(x)), 1, np.sort(x))


def argmax(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 4, 500)
    return Launch((4, 1, 1), (x, np.zeros(4, "i4"), 500), 1, x.argmax(1))


def gather(rng: np.random.Generator) -> Launch:
    x, at = _floats(rng, 256), _integers(rng, 0, 256, 256)
    return Launch((1, 1, 1), (x, at, np.zeros_like(x)), 2, x[at])


def transpose(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 64, 64)
    return Launch((1, 1, 1), (x, np.zeros_like(x)), 1, x.T)


def to_f8(rng: np.random.Generator) -> Launch:
    """Of numbers that e5m2 has."""
    x = rng.integers(4, 8, 256) * 0.25 * 2.0 ** rng.integers(-10, 10, 256)
    x = x.astype(np.float32)
    return Launch((1, 1, 1), (x, np.zeros_like(x)), 1, x)


def persistent(rng: np.random.Generator) -> Launch:
    a, b, c = _halves(rng, 256, 96), _halves(rng, 96, 64), np.zeros((256, 64), "f4")
    return Launch((3, 1, 1), (a, b, c, 4, 96, 3), 2, _product(a, b), "nn")


def row_totals(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 8, 128)
    return Launch((8, 1, 1), (x, np.zeros(8, "f4")), 1, x.sum(1))


def columns(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 16, 512)
    expected = x.sum(0)[(np.arange(128) * 4 + 5) % 512]
    return Launch((1, 1, 1), (x, np.zeros(128, "f4")), 1, expected)


def overwritten(rng: np.random.Generator) -> Launch:
    """Each row as it was before the copy of the next one: the first row twice."""
    x = _halves(rng, 8, 1024)
    expected = np.concatenate([x[:1], x[:-1]])
    return Launch((1, 1, 1), (x, np.zeros_like(x)), 1, expected)


def contraction(rng: np.random.Generator) -> Launch:
    a, b, c = _halves(rng, 256, 256), _halves(rng, 256, 256), np.zeros((256, 256), "f4")
    return Launch((2, 2, 1), (a, b, c), 2, _product(a, b), "nn")


def normalised(rng: np.random.Generator) -> Launch:
    x = _floats(rng, 8, 1024)
    return Launch((8, 1, 1), (x, np.zeros_like(x)), 1, _softmax(x))


def twice(rng: np.random.Generator) -> Launch:
    """What the first matmul gives is rounded to f16."""
    a, b, c = _halves(rng, 256, 64), _halves(rng, 64, 64) / 8, np.zeros((256, 64), "f4")
    b = b.astype(np.float16)
    expected = _product(_product(a, b).astype(np.float16), b)
    return Launch((2, 1, 1), (a, b, c), 2, expected)


def multistage_nt(rng: np.random.Generator) -> Launch:
    a, b, c = _halves(rng, 96, 136), _halves(rng, 72, 136), np.zeros((96, 72), "f4")
    return Launch((2, 2, 1), (a, b, c, 96, 72, 136), 2, _product(a, b.T), "nt")


def multistage_nn(rng: np.random.Generator) -> Launch:
    a, b, c = _halves(rng, 96, 136), _halves(rng, 136, 72), np.zeros((96, 72), "f4")
    return Launch((2, 2, 1), (a, b, c, 96, 72, 136), 2, _product(a, b), "nn")


def specialised(rng: np.random.Generator) -> Launch:
    """What the grid is, the kernel's own program says."""
    a, b, c = _halves(rng, 256, 256), _halves(rng, 256, 256), np.zeros((256, 256), "f4")
    return Launch((1, 1, 1), (a, b, c), 2, _product(a, b.T))


_EVERY: tuple[Callable[[np.random.Generator], Launch], ...] = (
    softmax, layer_norm, matmul, int8_dot, attention, histogram, scan, sort, argmax,
    gather, transpose, to_f8, persistent, row_totals, columns, overwritten, contraction,
    normalised, twice, multistage_nt, multistage_nn, specialised,
)  # fmt: skip


def launch(name: str) -> Launch:
    """Of a kernel, whose name may end with its stages; always the same numbers."""
    by_name = {one.__name__: one for one in _EVERY}
    by_name |= dict.fromkeys(("cooperative", "pingpong", "cluster"), specialised)
    known = by_name.get(name) or by_name[name.rstrip("01234")]
    return known(np.random.default_rng(1))
