"""Which matrix element each lane holds: the tables of the PTX ISA, written out.

A layout maps (lane, element) to (row, column); elements count through the lane's
registers in order, lower bits first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Place = tuple[int, int]
Layout = Callable[[int, int], Place]


@dataclass(frozen=True)
class Shape:
    """One mma shape: m, n, k and where the elements of A and B sit."""

    k: int
    a: Layout
    b: Layout
    a_elements: int
    b_elements: int


def accumulator(lane: int, i: int) -> Place:
    """C and D of every m16n8 shape, four elements a lane."""
    group, place = lane >> 2, lane % 4
    return group + (8 if i >= 2 else 0), place * 2 + (i & 1)


# 16-bit types -------------------------------------------------------------------------


def a_k8_16bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return (group if i < 2 else group + 8), place * 2 + (i & 1)


def b_k8_16bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return place * 2 + i, group


def a_k16_16bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    row = group if i < 2 or 4 <= i < 6 else group + 8
    return row, place * 2 + (i & 1) + (0 if i < 4 else 8)


def b_k16_16bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return place * 2 + (i & 1) + (0 if i < 2 else 8), group


# tf32 ---------------------------------------------------------------------------------


def a_k4_tf32(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return (group if i == 0 else group + 8), place


def b_k4_tf32(lane: int, i: int) -> Place:
    return lane % 4, lane >> 2


def a_k8_tf32(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return (group if i in (0, 2) else group + 8), (place if i < 2 else place + 4)


def b_k8_tf32(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return (place if i == 0 else place + 4), group


# 8-bit types --------------------------------------------------------------------------


def a_k16_8bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return (group if i < 4 else group + 8), place * 4 + (i & 3)


def b_k16_8bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return place * 4 + (i & 3), group


def a_k32_8bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    row = group if i < 4 or 8 <= i < 12 else group + 8
    return row, place * 4 + (i & 3) + (0 if i < 8 else 16)


def b_k32_8bit(lane: int, i: int) -> Place:
    group, place = lane >> 2, lane % 4
    return place * 4 + (i & 3) + (0 if i < 4 else 16), group


SHAPES = {
    ("m16n8k8", 16): Shape(8, a_k8_16bit, b_k8_16bit, 4, 2),
    ("m16n8k16", 16): Shape(16, a_k16_16bit, b_k16_16bit, 8, 4),
    ("m16n8k4", 32): Shape(4, a_k4_tf32, b_k4_tf32, 2, 1),
    ("m16n8k8", 32): Shape(8, a_k8_tf32, b_k8_tf32, 4, 2),
    ("m16n8k16", 8): Shape(16, a_k16_8bit, b_k16_8bit, 8, 4),
    ("m16n8k32", 8): Shape(32, a_k32_8bit, b_k32_8bit, 16, 8),
}


def to_lanes(matrix: np.ndarray, layout: Layout, elements: int) -> np.ndarray:
    """Registers of 32 lanes (32, r) as uint32, from a matrix of 1 to 4-byte items."""
    values = np.empty((32, elements), matrix.dtype)
    for lane in range(32):
        for i in range(elements):
            values[lane, i] = matrix[layout(lane, i)]
    return np.ascontiguousarray(values).view(np.uint32)


def from_lanes(registers: np.ndarray, dtype: type, shape: Place) -> np.ndarray:
    """The accumulator matrix that the lanes' registers hold."""
    values = np.ascontiguousarray(registers).view(dtype).reshape(32, 4)
    matrix = np.zeros(shape, dtype)
    for lane in range(32):
        for i in range(4):
            matrix[accumulator(lane, i)] = values[lane, i]
    return matrix
