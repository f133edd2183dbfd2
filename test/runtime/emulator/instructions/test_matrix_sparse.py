"""mma.sp: half of each row of A is stored, and metadata says where it belongs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from warp_multiply import placed, registers, run

# type: bits of an element, elements of a group, of which half are stored
GROUPS = {
    "f16": (16, 4),
    "bf16": (16, 4),
    "tf32": (32, 2),
    "s8": (8, 4),
    "u8": (8, 4),
    "s4": (4, 8),
    "u4": (4, 8),
    "e4m3": (8, 4),
}
# type, depth, and how many lanes of four give the metadata
SHAPES = [
    ("f16", 16, 1),
    ("f16", 32, 2),
    ("bf16", 16, 1),
    ("bf16", 32, 2),
    ("tf32", 8, 1),
    ("tf32", 16, 2),
    ("s8", 32, 2),
    ("u8", 64, 4),
    ("s4", 64, 2),
    ("u4", 128, 4),
    ("e4m3", 64, 4),
]
CASES = [
    (kind, depth, lanes, selector)
    for kind, depth, lanes in SHAPES
    for selector in range(4 // lanes)
]


def c_place(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


def a_place(per: int, lane: int, i: int) -> tuple[int, int]:
    """Of what is stored, as the dense A of half the depth."""
    register, within = divmod(i, per)
    row = (lane >> 2) + (8 if register % 2 else 0)
    return row, register // 2 * 4 * per + lane % 4 * per + within


def b_place(per: int, lane: int, i: int) -> tuple[int, int]:
    register, within = divmod(i, per)
    return register * 4 * per + lane % 4 * per + within, lane >> 2


def choose(
    generator: np.random.Generator, kind: str, depth: int
) -> tuple[np.ndarray, np.ndarray]:
    """The dense columns that are stored (16, depth / 2), and four bits a group."""
    size = GROUPS[kind][1]
    columns = np.zeros((16, depth // 2), int)
    fields = np.zeros((16, depth // size), int)
    pairs = list(combinations(range(4), 2))
    for row in range(16):
        at = 0
        for group in range(depth // size):
            start = group * size
            if kind == "tf32":
                place = int(generator.integers(2))
                fields[row, group] = 0b1110 if place else 0b0100
                chosen = [start + place]
            else:
                first, second = pairs[int(generator.integers(len(pairs)))]
                fields[row, group] = first | second << 2
                chosen = [start + first, start + second]
                if size == 8:  # neighbours are stored together
                    chosen = [
                        start + 2 * p + q for p in (first, second) for q in (0, 1)
                    ]
            for column in chosen:
                columns[row, at] = column
                at += 1
    return columns, fields


def metadata(fields: np.ndarray, kind: str, lanes: int, selector: int) -> np.ndarray:
    """The word of each lane; those that do not count hold other bits."""
    words = np.full(32, 0x5A5AA5A5, np.uint64)
    for group in range(8):
        rows = fields[group], fields[group + 8]
        for number in range(lanes):
            if GROUPS[kind][0] >= 16:  # 16 bits of either row
                part = [row[4 * number : 4 * number + 4] for row in rows]
                bits = [*part[0], *part[1]]
            else:  # one row; the lanes take turns
                half = 8 * (number // 2)
                bits = list(rows[number % 2][half : half + 8])
            word = sum(int(field) << 4 * place for place, field in enumerate(bits))
            words[4 * group + selector * lanes + number] = word
    return words.astype(np.uint32).reshape(32, 1)


def numbers(
    generator: np.random.Generator, kind: str, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers: their bits, and what they mean."""
    if kind in ("s4", "s8", "u4", "u8"):
        bits, low = int(kind[1:]), 0 if kind[0] == "u" else -(2 ** (int(kind[1:]) - 1))
        value = generator.integers(low, low + 2**bits, shape)
        return value & (2**bits - 1), value
    value = generator.integers(-4, 5, shape)
    if kind == "e4m3":
        table = {0: 0, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48}
        sizes = np.vectorize(table.__getitem__)(np.abs(value))
        return sizes | (value < 0) * 0x80, value
    if kind == "f16":
        return value.astype(np.float16).view(np.uint16), value
    bits = value.astype(np.float32).view(np.uint32)
    return (bits >> 16 if kind == "bf16" else bits), value


@pytest.mark.parametrize("ordered", ["", "::ordered_metadata"])
@pytest.mark.parametrize(("kind", "depth", "lanes", "selector"), CASES)
def test_sparse(kind: str, depth: int, lanes: int, selector: int, ordered: str) -> None:
    generator = np.random.default_rng(depth + selector)
    width = GROUPS[kind][0]
    per = 32 // width
    columns, fields = choose(generator, kind, depth)
    a_bits, a = numbers(generator, kind, (16, depth // 2))
    b_bits, b = numbers(generator, kind, (depth, 8))
    dense = np.zeros((16, depth), np.int64)
    np.put_along_axis(dense, columns, a, axis=1)
    is_integer = kind[0] in "su"
    dtype = np.int32 if is_integer else np.float32
    c = generator.integers(-99, 100, (16, 8)).astype(dtype)
    given = [
        registers(a_bits, width, depth // 4, lambda lane, i: a_place(per, lane, i)),
        registers(b_bits, width, depth // 4, lambda lane, i: b_place(per, lane, i)),
        registers(c.view(np.uint32), 32, 4, c_place),
        metadata(fields, kind, lanes, selector),
    ]
    out = "s32" if is_integer else "f32"
    opcode = f"mma.sp{ordered}.sync.aligned.m16n8k{depth}.row.col.{out}.{kind}.{kind}"
    words = run(
        f"{opcode}.{out}", given, 4, tail=f", %x0, {selector:#x}", target="sm_89"
    )
    np.testing.assert_array_equal(placed(words, dtype, (16, 8), c_place), dense @ b + c)
