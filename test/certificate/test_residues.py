"""Low bits of addresses, by residues of symbols, in the prover and the checker."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from alcop_mlir.certificate import spread
from alcop_mlir.certificate.values import Exact, Spread
from alcop_mlir.checker.machine import mixed
from alcop_mlir.checker.machine.arithmetic import Mixed

THREADS = 8
Residues = dict[str, tuple[int, int]]
TYPES = [("b", 32)]


def drawn(seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """Coefficients of two symbols, constants, and a mask of low bits."""
    rng = random.Random(seed)
    step = rng.choice((1, 2, 4, 8))
    parts = {
        name: np.array([step * rng.randrange(-4, 5) for _ in range(THREADS)])
        for name in (".a", ".b")
    }
    constant = np.array([rng.randrange(64) for _ in range(THREADS)])
    return parts, constant, rng.randrange(1, 8)


def wanted(seed: int, symbols: dict[str, int]) -> np.ndarray:
    parts, constant, mask = drawn(seed)
    return (constant + sum(parts[s] * x for s, x in symbols.items())) & mask


def cases(
    moduli: dict[str, int],
) -> list[tuple[dict[str, int], Residues]]:
    """Numbers for both symbols, and the residues that these have."""
    found = []
    for a, b in itertools.product(range(24), range(5, 13)):
        numbers = {".a": a, ".b": b}
        known = {s: (numbers[s] % m, m) for s, m in moduli.items()}
        found.append((numbers, known))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_checker_knows_low_bits(seed: int) -> None:
    parts, constant, mask = drawn(seed)
    a = Mixed(parts, constant, -1000, 1000, 32)
    low = np.full(THREADS, mask, np.uint64)
    moduli = mixed.open_symbols(a, mixed.mixed(low, 32, THREADS), {})
    for numbers, known in cases(moduli):
        found = mixed.computed(["and", "b32"], TYPES, [a, low], THREADS, (known, "u"))
        assert isinstance(found, np.ndarray)
        assert (found == wanted(seed, numbers)).all(), (numbers, known)
        assert not mixed.open_symbols(a, mixed.mixed(low, 32, THREADS), known)


@pytest.mark.parametrize("seed", range(12))
def test_the_prover_knows_low_bits(seed: int) -> None:
    parts, constant, mask = drawn(seed)
    a = Spread(parts, constant, -1000, 1000, 32)
    low = Exact(np.full(THREADS, mask, np.uint64))
    moduli = spread.open_residues(a, mask.bit_length())
    for numbers, known in cases(moduli):
        found = spread.compute(("and", "b32"), [a, low], known, "u")
        assert isinstance(found, Exact)
        assert (found.lanes == wanted(seed, numbers)).all(), (numbers, known)


def test_half_a_residue_is_not_enough() -> None:
    one = np.ones(THREADS, np.int64)
    a = Mixed({".a": one}, one, 0, 1000, 32)
    low = np.full(THREADS, 7, np.uint64)
    task = (["and", "b32"], TYPES, [a, low], THREADS)
    with pytest.raises(mixed.Unknown):
        mixed.computed(*task, ({".a": (1, 4)}, "u"))
    asked = mixed.open_symbols(a, mixed.mixed(low, 32, THREADS), {".a": (1, 4)})
    assert asked == {".a": 8}


def test_the_range_of_a_sum_is_that_of_its_symbols() -> None:
    one = np.arange(THREADS)
    a = Mixed({".a": one, "n3": one * 0 + 64}, one, -(1 << 70), 1 << 70, 64)
    ranges = {".a": (-2, 10), "n3": (0, 1 << 62)}
    assert mixed.narrowed(a, ranges) == (-14, 77 + (64 << 62))
    assert mixed.narrowed(a, {".a": (-2, 10)}) == (a.low, a.high)
    near = Mixed({".a": one}, one, 3, 5, 64)
    assert mixed.narrowed(near, ranges) == (3, 5)
