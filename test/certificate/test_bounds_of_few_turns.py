"""Accesses in loops of few turns, which end where a counter is a number.

That the turns are few is shown by induction; rows are `16 * turn | tile + 2`, of which
no bit is in both while the turn is below 4.
"""

from __future__ import annotations

import random

import pytest
from test_global_bounds import SIZE, bounded, kernel

from alcop_mlir.certificate import uniform_arithmetic
from alcop_mlir.certificate.bounds.preconditions import Array, Preconditions
from alcop_mlir.certificate.linear import Linear
from alcop_mlir.certificate.values import Uniform
from alcop_mlir.checker.machine import arithmetic
from alcop_mlir.checker.machine.arithmetic import Same

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


def test_an_or_that_is_a_sum() -> None:
    """Numbers of which none has a bit of the other; and at the next power of two one
    has.
    """
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
            Same({name: step, "": offset}, min(one), max(one))
            for name, step, offset, one in zip("xy", steps, offsets, every, strict=True)
        ]
        terms = [
            Linear({name: step}, offset)
            for name, step, offset in zip("xy", steps, offsets, strict=True)
        ]
        first, second = (
            Uniform(term, one.low, one.high)
            for term, one in zip(terms, held, strict=True)
        )
        room = arithmetic.room(*held)
        assert room == uniform_arithmetic.room(first, second)
        below = [a for a in every[0] if 0 <= a < room]
        assert all(a | b == a + b for a in below for b in every[1])
        met += bool(below)
    assert met > 500
