"""What `and`, `or`, `xor`, `prmt` leave in registers of several elements, by bytes.

Bytes that only one operand has stay what they are, and those that `and` takes away are
0: so bytes of a register are taken apart and put together, as where weights are made
wider. Of an element of which bits change an element is computed.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker.machine.arithmetic import Value
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.placed.elements import joined
from alcop_mlir.checker.placed.kinds import Whole
from alcop_mlir.checker.placed.tags import NUMBER, UNKNOWN, ZERO, Book

OPS = ("and", "or", "xor")


def combined(
    book: Book, name: str, pair: list[Tags], numbers: list[Value]
) -> Tags | None:
    """What an op of `OPS` leaves; None where elements are of several sizes.

    numbers: what operands hold that have no elements
    """
    kept = np.zeros(pair[0].number.shape, bool)
    for n, value in enumerate(numbers):
        if isinstance(value, np.ndarray):
            pair[n], kept = _of_bytes(value, pair[n], book.grain)
    one, other = pair
    present = np.unique(np.concatenate([one.number, other.number]))
    sizes = {kind.size for n in present.tolist() if (kind := book.kinds[n]) is not None}
    if len(sizes) != 1 or not sizes <= {book.grain, 2, 4, 8}:
        return None
    (size,) = sizes
    moved, is_moved = _moved(name, one, other, kept)
    count = size // book.grain
    if moved.number.shape[1] % count:
        return None
    if is_moved.all() and (moved.number != ZERO).all():
        return moved
    parts = [book.whole(tags, size) for tags in (one, other)]
    found = book.packed(joined(book, parts), size)
    each = (len(moved.number), -1, count)
    whole = moved.number.reshape(each)
    # Of an element all or nothing is moved.
    is_whole = (whole != ZERO).all(axis=2) | (whole == ZERO).all(axis=2)
    is_moved = is_moved.reshape(each).all(axis=2) & is_whole
    mask = np.repeat(is_moved, count, axis=1)
    number = np.where(mask, moved.number, found.number)
    return Tags(number, np.where(mask, moved.place, found.place))


def _of_bytes(values: np.ndarray, tags: Tags, grain: int) -> tuple[Tags, np.ndarray]:
    """A number that each thread has, byte by byte; and where all bits are set."""
    threads, width = tags.number.shape
    each = np.arange(width, dtype=np.uint64) * np.uint64(8 * grain)
    mask = np.uint64((1 << 8 * grain) - 1)
    lanes = np.broadcast_to(values.astype(np.uint64), (threads,))
    found = lanes[:, None] >> each & mask
    number = np.where(found == 0, ZERO, NUMBER).astype(np.int32)
    return Tags(number, np.zeros_like(tags.place)), found == mask


def _moved(
    name: str, one: Tags, other: Tags, kept: np.ndarray
) -> tuple[Tags, np.ndarray]:
    """Bytes of one operand that come through, or 0, and where that is so."""
    first, second = one.number == ZERO, other.number == ZERO
    if name == "and":
        is_zero = first | second
        is_element = one.number > NUMBER
        number = np.where(is_element, one.number, other.number)
        place = np.where(is_element, one.place, other.place)
        number = np.where(is_zero, ZERO, number)
        return Tags(number, np.where(is_zero, 0, place)), is_zero | kept
    number = np.where(first, other.number, one.number)
    return Tags(number, np.where(first, other.place, one.place)), first | second


def permuted(one: Tags, other: Tags, how: np.ndarray, grain: int) -> Tags | None:
    """What `prmt` takes of two registers, by a number of each thread; None where that
    is no granules.
    """
    nibbles = how.astype(np.int64)[:, None] >> 4 * np.arange(4) & 15
    granules = nibbles[:, ::grain] // grain
    whole = granules[:, :, None] * grain + np.arange(grain)
    if nibbles.max() > 7 or (whole.reshape(nibbles.shape) != nibbles).any():
        return None
    both = (np.concatenate(pair, axis=1) for pair in zip(one, other, strict=True))
    return Tags(*(np.take_along_axis(part, granules, axis=1) for part in both))


def in_part(book: Book, tags: Tags, size: int) -> Whole:
    """Elements of so many bytes; those of fewer count, where the rest are numbers."""
    found = book.whole(tags, size)
    unknown = found.number == UNKNOWN
    if not unknown.any() or size <= book.grain:
        return found
    number, at = found.number.copy(), found.at.copy()
    each = (len(tags.number), -1, size // book.grain)
    numbers, places = (one.reshape(each) for one in tags)
    is_number = (numbers == ZERO) | (numbers == NUMBER)
    for less in (n for n in (1, 2, 4) if book.grain <= n < size):
        count = less // book.grain
        for first in range(0, each[2], count):
            inside = slice(first, first + count)
            piece = Tags(numbers[:, :, inside], places[:, :, inside])
            flat = Tags(*(one.reshape(each[0], -1) for one in piece))
            whole = book.whole(flat, less)
            rest = np.delete(is_number, np.s_[inside], axis=2).all(axis=2)
            here = unknown & rest & (whole.number > NUMBER)
            number[here], at[here] = whole.number[here], whole.at[here]
    return book.resized(Whole(number, at), size)
