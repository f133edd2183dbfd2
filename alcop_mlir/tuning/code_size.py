"""How much code a kernel is, by an estimate: lines of its PTX.

What it takes to compile and to store a kernel is nearly proportional to these: of 108
kernels on sm_80 a bundle's PTX took 2.9 bytes for each line, packed, and 1.7 KB more,
within 5 %; a compile 0.37 ms of CPU time for each, within 15 to 22 %, and 70 ms more,
on a busy machine. So the estimate counts what there is several times in a kernel: the
stages that the K loop is unrolled by, before it, in it and after it. Its constants are
the least squares of relative errors over these kernels, drawn from those that variants
are chosen from, f16 in three layouts, tf32 and s8, of open sizes, with rows of 16 and 4
bytes and of any: within 6 % (root mean square), 15 % at most. C is read and written.
"""

from __future__ import annotations

from collections.abc import Iterable

from alcop_mlir import resources
from alcop_mlir.resources import Copies
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import CP_ASYNC_BYTES, WARP_SIZE, mma_shape

_KERNEL = 300.0  # its arguments, its indices, and the control around all
_PARTS = 600.0  # where K is in parts: the kernel that adds these up, in time
_MMA = 5.7  # with its share of ldmatrix and addresses
_WORD_OF_B = 3.3  # a load of 4 bytes, where ldmatrix cannot transpose them
_CP_ASYNC = 5.7  # with its address and what it is compared with
_ELEMENT = 15.5  # in all three places: loaded, compared, put into a word
_ELEMENT_WORD = 18.0  # in all three places: stored
_ACCUMULATOR = 9.0  # set, loaded, stored
_STAGED = 16.0  # more for an accumulator that goes through shared memory
_WORD_BYTES, _STAGED_ROWS, _STAGED_GAP = 4, 8, 8  # as in staged_stores.py


def lines(schedule: Schedule, element_bytes: int, copies: Copies) -> float:
    """Of a kernel's PTX, with open sizes, whose copies are `copies`.

    element_bytes: of an element of A and B
    """
    parts = _PARTS if schedule.split_k > 1 else 0.0
    return (
        _KERNEL
        + parts
        + _multiplied(schedule, element_bytes, copies)
        + sum(_copied(schedule, element_bytes, copies))
        + _stored(schedule, element_bytes, copies)
    )


def _multiplied(schedule: Schedule, element_bytes: int, copies: Copies) -> float:
    """The mma.sync's of a K step, once for each slot, and in the tail."""
    (warp_m, warp_n), (m, n, k) = schedule.warp, mma_shape(element_bytes)
    slots = 1 if copies.are_by_elements else schedule.stages[0]
    columns, steps = warp_n // n, schedule.block[2] // k
    words = 2 * columns * steps if element_bytes == _WORD_BYTES else 0
    return (slots + 1) * (_MMA * warp_m // m * columns * steps + _WORD_OF_B * words)


def _copied(schedule: Schedule, element_bytes: int, copies: Copies) -> Iterable[float]:
    """Of A and of B: what a thread copies in a K step, wherever that is done.

    cp.async fills the slots before the loop, in it, and once more in the tail.
    """
    for extent, width in zip(schedule.block, copies.at_once, strict=False):
        count = extent * schedule.block[2] * element_bytes / schedule.threads
        if width < min(CP_ASYNC_BYTES):
            yield _ELEMENT * count / width + _ELEMENT_WORD * count / _WORD_BYTES
        else:
            yield _CP_ASYNC * (2 * schedule.stages[0] + 1) * count / width


def _stored(schedule: Schedule, element_bytes: int, copies: Copies) -> float:
    """Accumulators of a thread; through shared memory where rows are not aligned."""
    warps = schedule.threads // WARP_SIZE
    row = (schedule.warp[1] + _STAGED_GAP) * _WORD_BYTES
    room = resources.shared_bytes(schedule, element_bytes, copies=copies)
    is_staged = copies.are_narrow and _STAGED_ROWS * row * warps <= room
    each = _ACCUMULATOR + (_STAGED if is_staged else 0.0)
    return each * schedule.warp[0] * schedule.warp[1] / WARP_SIZE
