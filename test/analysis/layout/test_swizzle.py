"""The swizzle formula against a model of the banks, for every row length up to 1 KB."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.layout.swizzle import CHUNK_BYTES, Swizzle, find_swizzle
from alcop_mlir.bindings import ir, make_context

CHUNKS_AT_ONCE = 8  # 32 banks of 4 bytes


def places(swizzle: Swizzle | None, row_chunks: int, row: int) -> list[int]:
    """Where the chunks of a row lie, as chunk numbers within the buffer."""
    phase = 0 if swizzle is None else row // swizzle.rows % swizzle.phases
    return [row * row_chunks + (chunk ^ phase) for chunk in range(row_chunks)]


def swizzle_of(row_chunks: int, element: str = "f16", bytes_of_one: int = 2):
    columns = row_chunks * CHUNK_BYTES // bytes_of_one
    with make_context():
        text = f"memref<3x64x{columns}x{element}, #gpu.address_space<workgroup>>"
        return find_swizzle(ir.MemRefType(ir.Type.parse(text)))


@pytest.mark.parametrize("row_chunks", range(1, 65))
def test_neither_columns_nor_rows_collide(row_chunks: int) -> None:
    swizzle = swizzle_of(row_chunks)
    rows = [places(swizzle, row_chunks, row) for row in range(64)]
    for row, where in enumerate(rows):
        assert sorted(where) == list(range(row * row_chunks, (row + 1) * row_chunks))
    for first in range(0, 64, CHUNKS_AT_ONCE):
        for chunk in range(row_chunks):  # a phase of ldmatrix
            column = [rows[first + r][chunk] for r in range(CHUNKS_AT_ONCE)]
            assert len({place % CHUNKS_AT_ONCE for place in column}) == CHUNKS_AT_ONCE
    along = [place % CHUNKS_AT_ONCE for where in rows for place in where]
    for first in range(0, len(along), CHUNKS_AT_ONCE):  # a quarter warp that stores
        assert len(set(along[first : first + CHUNKS_AT_ONCE])) == CHUNKS_AT_ONCE


@pytest.mark.parametrize(
    ("row_chunks", "rows", "phases"),
    [(2, 4, 2), (4, 2, 4), (6, 4, 2), (8, 1, 8), (12, 2, 4), (16, 1, 8), (24, 1, 8)],
)
def test_formula(row_chunks: int, rows: int, phases: int) -> None:
    assert swizzle_of(row_chunks) == Swizzle(rows, phases, elements=8)


@pytest.mark.parametrize("row_chunks", [1, 3, 5, 7, 9])
def test_odd_rows_need_no_swizzle(row_chunks: int) -> None:
    assert swizzle_of(row_chunks) is None


def test_elements_of_a_chunk_follow_the_type() -> None:
    assert swizzle_of(8, "f32", 4) == Swizzle(1, 8, elements=4)
    assert swizzle_of(8, "f64", 8) == Swizzle(1, 8, elements=2)
    assert swizzle_of(8, "i8", 1) == Swizzle(1, 8, elements=16)


@pytest.mark.parametrize(
    "text",
    [
        "memref<64xf16, 3>",
        "memref<2x2x64x32xf16, 3>",
        "memref<64x?xf16, 3>",
        "memref<64x32xf16, strided<[40, 1]>, 3>",
        "memref<64x33xf16, 3>",
        "memref<64x32xi4, 3>",
        "memref<64x32xindex, 3>",
    ],
)
def test_other_buffers_are_left(text: str) -> None:
    with make_context():
        assert find_swizzle(ir.MemRefType(ir.Type.parse(text))) is None
