"""analysis/ir/memref_layouts.py: which layouts are those of the shape."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.ir.memref_layouts import follows_shape, open_strides
from alcop_mlir.bindings import ir


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("memref<5x8xf16>", True),
        ("memref<?x?xf16>", True),
        ("memref<5x8xf16, strided<[8, 1]>>", True),
        ("memref<8xf16, strided<[1]>>", True),
        ("memref<?x8xf16, strided<[8, 1]>>", True),
        ("memref<5x8xf16, strided<[9, 1]>>", False),
        ("memref<5x8xf16, strided<[8, 1], offset: 4>>", False),
        ("memref<5x8xf16, strided<[8, 1], offset: ?>>", False),
        ("memref<5x8xf16, strided<[?, 1]>>", False),
        ("memref<5x?xf16, strided<[?, 1]>>", False),
        ("memref<8xf16, strided<[2]>>", False),
        ("memref<5x8xf16, affine_map<(i, j) -> (j, i)>>", False),
    ],
)
def test_follows_shape(context: None, kind: str, expected: bool) -> None:
    assert follows_shape(ir.Type.parse(kind)) == expected


def test_strides_that_follow_from_the_shape_are_not_open(context: None) -> None:
    assert open_strides(ir.Type.parse("memref<8xf16, strided<[1]>>")) == []
    assert open_strides(ir.Type.parse("memref<4x8xf16, strided<[?, 1]>>")) == [0]
