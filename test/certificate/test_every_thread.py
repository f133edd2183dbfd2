"""Accesses of kernels that take no sizes: by the numbers of all threads.

Masks, shifts and turns that threads go through at their own pace; what is off by one is
not shown.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alcop_mlir.certificate import exact_arithmetic
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.checker.check import check
from alcop_mlir.checker.machine.exact import exact
from alcop_mlir.compilation.certification import certified

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES
from test_global_bounds import kernel

ROWS, COLUMNS = 24, 32  # of an image; a block has 4 rows of it


def image(blocks: int = ROWS // 4, rows: int = ROWS, size: str = "") -> Preconditions:
    """An image of words; and one number for each thread, of each block."""
    counts = {"%ctaid.x": blocks, "%ctaid.y": 1, "%ctaid.z": 1}
    grid = {axis: ((((n, ()),), 1),) for axis, n in counts.items()}
    bytes_ = ((4 * rows * COLUMNS, (size,) if size else ()),)
    return Preconditions({"a": Array(bytes_)}, grid=grid)


# In turn n the row n - 1 below the thread's own: of the first row not in turn 0, of the
# last not in turn 2. The mask has a bit for each turn.
_TAPS = """
shr.u64 %d2, %d1, 5;
and.b64 %d3, %d1, 31;
mul.wide.u32 %d4, %r2, 4;
add.s64 %d5, %d4, %d2;
setp.eq.b64 %p1, %d5, 0;
selp.b32 %r5, 1, 0, %p1;
setp.eq.b64 %p2, %d5, 23;
selp.b32 %r6, 4, 0, %p2;
or.b32 %r7, %r5, %r6;
add.s64 %d6, %d5, -1;
mad.lo.s64 %d7, %d6, 32, %d3;
shl.b64 %d7, %d7, 2;
add.s64 %d8, %a, %d7;
mov.u32 %r8, 1;
TURN:
and.b32 %r4, %r8, %r7;
setp.ne.b32 %p3, %r4, 0;
@%p3 bra SKIP;
ld.global.f32 %f1, [%d8];
SKIP:
add.s64 %d8, %d8, 128;
shl.b32 %r8, %r8, 1;
setp.lt.u32 %p4, %r8, 8;
@%p4 bra TURN;
"""
# Of thread t: t + 1 turns, in which it reads words 0 to t; the last thread reads 128.
PACES = """
mov.u64 %d2, 0;
TURN:
shl.b64 %d3, %d2, 2;
add.s64 %d4, %a, %d3;
ld.global.f32 %f1, [%d4];
add.s64 %d2, %d2, 1;
setp.le.u64 %p1, %d2, %d1;
@%p1 bra TURN;
"""


def is_bounded(text: str, promised: Preconditions) -> bool:
    """Whether it is shown, by numbers."""
    report = certified(text, "f", None, None, {}, 60, promised)
    assert report.status == "proven", report.verdict
    assert report.certificate is not None
    check(text, report.certificate)
    bounds = report.certificate["bounds"]
    assert bool(report.loose) == (bounds is None)
    return bounds is not None and bounds["by_numbers"]


def test_masks_by_bits_of_the_turn() -> None:
    assert is_bounded(kernel(_TAPS, "a"), image())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("selp.b32 %r5, 1", "selp.b32 %r5, 2"),
        ("selp.b32 %r6, 4", "selp.b32 %r6, 8"),
        ("%r8, 8;", "%r8, 16;"),
        ("%d5, 23", "%d5, 22"),
        ("or.b32", "and.b32"),
        ("[%d8]", "[%d8+4]"),
        ("[%d8]", "[%d8+-4]"),
        ("ld.global.f32 %f1,", "ld.global.v2.f32 {%f1, %f2},"),
    ],
)
def test_masks_that_are_wrong(old: str, new: str) -> None:
    assert _TAPS.count(old) == 1
    assert not is_bounded(kernel(_TAPS.replace(old, new), "a"), image())


def test_more_blocks_than_rows() -> None:
    assert not is_bounded(kernel(_TAPS, "a"), image(ROWS // 4 + 1))
    assert not is_bounded(kernel(_TAPS, "a"), image(rows=ROWS - 1))


def test_threads_at_their_own_pace() -> None:
    text, words = kernel(PACES, "a"), {"a": Array(((4 * 128, ()),))}
    assert is_bounded(text, replace(image(), arrays=words))
    less = {"a": Array(((4 * 127, ()),))}
    assert not is_bounded(text, replace(image(), arrays=less))


@pytest.mark.parametrize(("old", "ends"), [("", True), ("%d2, 1;", False)])
def test_the_end_of_threads_at_their_own_pace(old: str, ends: bool) -> None:
    """All are run to it; where a counter stands still, nobody gets there."""
    text = kernel(PACES.replace(old, "%d2, 0;") if old else PACES, "a")
    given = replace(image(), arrays={"a": Array(((4 * 128, ()),))})
    assert certified(text, "f", None, None, {}, 60, given).is_ending == ends


# Threads below 64 read one array, others another one, which begins with theirs.
_BRANCH = """
mov.u64 %d8, %a;
setp.lt.u64 %p1, %d1, 64;
@%p1 bra SAME;
sub.s64 %d2, %d1, 64;
mov.u64 %d8, %b;
SAME:
"""
_SELECTED = """
setp.lt.u64 %p1, %d1, 64;
selp.b64 %d8, %a, %b, %p1;
sub.s64 %d3, %d1, 64;
selp.b64 %d2, %d1, %d3, %p1;
"""
_READ = """
shl.b64 %d3, %d2, 2;
add.s64 %d4, %d8, %d3;
ld.global.f32 %f1, [%d4];
"""


@pytest.mark.parametrize("chosen", ["mov.u64 %d2, %d1;" + _BRANCH, _SELECTED])
@pytest.mark.parametrize(("first", "second"), [(64, 64), (63, 64), (64, 63), (128, 0)])
def test_addresses_of_two_arrays(chosen: str, first: int, second: int) -> None:
    """Each thread's is of one of them: as a compiler joins two copies."""
    arrays = {n: Array(((4 * w, ()),)) for n, w in (("a", first), ("b", second))}
    given = replace(image(), arrays=arrays)
    fits = (first, second) == (64, 64)
    assert is_bounded(kernel(chosen + _READ, "a b"), given) == fits


def test_arrays_without_elements() -> None:
    arrays = {"a": Array(((4 * ROWS * COLUMNS, ()),), (((0, ()),),))}
    assert not is_bounded(kernel(_TAPS, "a"), replace(image(), arrays=arrays))


@pytest.mark.parametrize("more", ["@%p5 bra DONE;", "selp.b64 %d8, %d8, %a, %p5;"])
def test_what_is_loaded_is_not_known(more: str) -> None:
    """Nobody knows who goes on, and which of two was selected."""
    loaded = "TURN:\nld.global.u64 %d9, [%a];\nsetp.eq.b64 %p5, %d9, 0;\n"
    text = _TAPS.replace("TURN:", loaded + more, 1)
    assert not is_bounded(kernel(text, "a"), image())


@pytest.mark.parametrize("test", ["%d9, 0", "%d1, 64"])
def test_what_is_written_under_a_guard(test: str) -> None:
    """Is known where the guard is, and what was there before elsewhere."""
    guarded = f"""
ld.global.u64 %d9, [%a];
mov.u64 %d2, 1024;
setp.ge.u64 %p1, {test};
@%p1 mov.u64 %d2, 512;
mad.lo.s64 %d3, %d1, 4, %d2;
add.s64 %d4, %a, %d3;
ld.global.f32 %f1, [%d4];
"""
    words = {"a": Array(((1024 + 4 * 64, ()),))}
    given = replace(image(), arrays=words)
    assert is_bounded(kernel(guarded, "a"), given) == (test == "%d1, 64")


def test_other_numbers_than_addresses() -> None:
    """Half of an address, and one array's from another's, are no address."""
    for more in ("and.b64 %d8, %d8, -2;", "add.s64 %d8, %d8, %a;", "neg.s64 %d8, %d8;"):
        text = _TAPS.replace("TURN:", more + "\nTURN:", 1)
        assert not is_bounded(kernel(text, "a"), image())


def test_convolutions() -> None:
    """The one of the bench; and with its mask shifted, in each of the loop's copies."""
    (case,) = (one for one in CASES if one.name.startswith("convolution"))
    one, text = case.launched, case.ptx
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    report = certified(text, *given, one.promised)
    assert report.is_bounded, report.loose
    old = "setp.eq.b32 \t%p"
    assert text.count(old) >= 6
    for ptx in (text.replace(old, "setp.ne.b32 \t%p", n) for n in (1, 6)):
        assert not certified(ptx, *given, one.promised).is_bounded


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_upper_halves_of_products(kind: str) -> None:
    width = int(kind[1:])
    random.seed(kind)
    ends = [0, 1, 2**width - 1, 2 ** (width - 1), 2 ** (width - 1) - 1]
    numbers = [random.getrandbits(width) for _ in range(500)] + ends * 20
    first, second = (random.sample(numbers, 600) for _ in range(2))

    def read(number: int) -> int:
        return number - (number >> (width - 1) << width) * (kind[0] == "s")

    expected = [
        (read(a) * read(b) >> width) % 2**width
        for a, b in zip(first, second, strict=True)
    ]
    lanes = [np.array(one, np.uint64).reshape(2, 300) for one in (first, second)]
    found = exact_arithmetic.compute(("mul", "hi", kind), lanes)
    assert found is not None
    assert found.lanes.ravel().tolist() == expected
    other = exact(["mul", "hi", kind], lanes)
    assert other is not None
    assert other.ravel().tolist() == expected
