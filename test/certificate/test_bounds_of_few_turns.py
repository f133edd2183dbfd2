"""Accesses in loops of few turns, which end where a counter is a number.

That the turns are few is shown by induction; rows are `16 * turn | tile + 2`, of which
no bit is in both while the turn is below 4.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from test_global_bounds import SIZE, bounded, kernel

from alcop_mlir.certificate.linear import Linear, Symbols
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.certificate.uniform_arithmetic import NoTerm, UniformArithmetic
from alcop_mlir.certificate.values import Uniform
from alcop_mlir.checker.machine import bits

# Of each tile of 64 rows, one thread's rows 2, 18, 34 and 50; the last one is short.
_TILES = """
mov.u64 %d2, 0;
TILE:
sub.s64 %d3, %k, %d2;
min.s64 %d3, %d3, 64;
or.b64 %d4, %d2, 2;
mov.u64 %d5, 0;
mov.u64 %d6, 0;
TURN:
add.s64 %d7, %d3, %d5;
cvt.u32.u64 %r5, %d7;
setp.lt.s32 %p1, %r5, 3;
@%p1 bra NEXT;
shl.b64 %d8, %d6, 4;
or.b64 %d9, %d8, %d4;
shl.b64 %d10, %d9, 2;
add.s64 %d11, %a, %d10;
ld.global.f32 %f1, [%d11];
NEXT:
add.s64 %d6, %d6, 1;
add.s64 %d5, %d5, -16;
setp.ne.b64 %p2, %d5, -64;
@%p2 bra TURN;
add.s64 %d2, %d2, 64;
setp.lt.s64 %p3, %d2, %k;
@%p3 bra TILE;
"""
# Two turns: rows 0 to 31 and 32 to 63, by a number that is set, and by a pointer.
_HALVES = """
and.b64 %d1, %d1, 31;
shl.b64 %d4, %d1, 2;
add.s64 %d5, %a, %d4;
mov.u64 %d2, 0;
mov.pred %p2, -1;
TURN:
mov.pred %p1, %p2;
or.b64 %d6, %d2, %d1;
shl.b64 %d7, %d6, 2;
add.s64 %d8, %a, %d7;
ld.global.f32 %f1, [%d8];
ld.global.f32 %f1, [%d5];
add.s64 %d5, %d5, 128;
mov.u64 %d2, 32;
mov.pred %p2, 0;
@%p1 bra TURN;
"""
ONE = Requirement(1, 2**31 - 1)
ROWS = Preconditions({"a": Array(((4, ("k",)),))}, {}, {"k": SIZE}, {})


def is_bounded(old: str = "", new: str = "") -> bool:
    assert not old or _TILES.count(old) == 1
    return bounded(kernel(_TILES.replace(old, new) if old else _TILES, "a k"), ROWS)


def test_few_turns() -> None:
    assert is_bounded()
    assert is_bounded("setp.ne.b64", "setp.eq.b64")  # one turn


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r5, 3", "%r5, 2"),
        ("%d2, 2", "%d2, 3"),
        ("%d5, -64", "%d5, -72"),
        ("%d5, -16", "%d5, -8"),
        ("%d6, 4", "%d6, 5"),
        ("%d3, %d5", "%d3, %d6"),
        ("mov.u64 %d6, 0", "mov.u64 %d6, 1"),
        ("mov.u64 %d5, 0", "mov.u64 %d5, 16"),
        ("mov.u64 %d5, 0", "mov.u64 %d5, -80"),
        ("add.s64 %d2, %d2, 64", "add.s64 %d2, %d2, 32"),
    ],
)
def test_few_turns_that_are_wrong(old: str, new: str) -> None:
    """Rows or turns are others than the guard takes them for."""
    assert not is_bounded(old, new)


def are_halves(old: str = "", new: str = "", number: str = "n") -> bool:
    """Of 64 elements times a size, so that no thread is gone through by itself."""
    assert not old or _HALVES.count(old) == 1
    text = kernel(_HALVES.replace(old, new) if old else _HALVES, "a n")
    words = Array(((256, ()),), (((1, (number,)),),))
    return bounded(text, Preconditions({"a": words}, {}, {"n": ONE}, {}))


def test_two_turns() -> None:
    assert are_halves()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mov.u64 %d2, 32", "mov.u64 %d2, 64"),
        ("mov.u64 %d2, 0", "mov.u64 %d2, 64"),
        ("mov.pred %p2, 0", "mov.pred %p2, -1"),
        ("%d5, 128", "%d5, 256"),
        ("@%p1 bra", "@!%p2 bra"),
    ],
)
def test_two_turns_that_are_wrong(old: str, new: str) -> None:
    assert not are_halves(old, new)


def test_an_or_that_is_a_sum() -> None:
    """Of numbers that share no bit, whether ranges are known or not, as of a prover."""
    rng, met = random.Random(1), 0
    for _ in range(2000):
        steps = [rng.choice((1, 2, 3, 4, 8, 12, 16, 64)) for _ in "xy"]
        offsets = [rng.choice((0, 1, 2, 5, 16, 32, 48, -16)) for _ in "xy"]
        lasts = [rng.randrange(6) for _ in "xy"]
        every = [
            [offset + step * n for n in range(last + 1)]
            for step, offset, last in zip(steps, offsets, lasts, strict=True)
        ]
        held = [
            {name: step, "": offset}
            for name, step, offset in zip("xy", steps, offsets, strict=True)
        ]
        terms = [
            Linear({name: step}, offset)
            for name, step, offset in zip("xy", steps, offsets, strict=True)
        ]
        last = dict(zip("xy", lasts, strict=True))
        for known in (
            bits.room(held[0], held[1], lambda name, last=last: (0, last[name])),
            bits.room(held[0], held[1], lambda _: (-9, 9)),
            _room_of_prover(terms),
        ):
            below = [a for a in every[0] if 0 <= a < known]
            assert all(a | b == a + b for a in below for b in every[1])
        met += bool(below)
    assert met > 500


def _room_of_prover(terms: list[Linear]) -> int:
    """Below what the first may be for the prover to take their `or` for a sum."""
    rules = UniformArithmetic(Symbols())
    other = Uniform(terms[1], -(1 << 40), 1 << 40)
    room = 1
    for power in range(1, 12):
        one = Uniform(terms[0], 0, (1 << power) - 1)
        with suppress(NoTerm):
            found = rules.compute(("or", "b64"), [one, other])
            assert found.term == terms[0] + terms[1]
            room = 1 << power
    return room
