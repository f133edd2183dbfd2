"""How far apart index values are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from alcop_mlir.analysis.ir.index_terms import distance, element, terms
from alcop_mlir.bindings import ir, make_context

PROGRAM = """
func.func @f(%x: index, %y: index, %n: i32, %m: memref<64x64xf32>) {{
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %t = gpu.thread_id x
  %t8 = arith.addi %t, %c8 : index
  {body}
  "test.use"(%one, %other) : ({kind}, {kind}) -> ()
  return
}}
"""


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with make_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        yield


def parsed(body: str, kind: str = "index") -> ir.Module:
    return ir.Module.parse(PROGRAM.format(body=body, kind=kind))


def used(module: ir.Module) -> list[ir.Value]:
    """%one and %other; only as long as the module lives."""
    (function,) = module.body.operations
    *_, use, _ = function.regions[0].blocks[0].operations
    return list(use.operands)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("arith.addi %x, %c4 : index", "arith.subi %x, %c4 : index", 8),
        ("arith.muli %x, %c4 : index", "arith.addi %x, %x : index", None),
        ("affine.apply affine_map<(d0)[s0] -> (d0 * 2 + s0 + 5)>(%x)[%y]",
         "affine.apply affine_map<()[s0, s1] -> (s0 + s1 * 2)>()[%y, %x]", 5),
        ("affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%x)",
         "affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%x)", 0),
        ("affine.apply affine_map<(d0) -> ((d0 * 4 + 9) floordiv 4)>(%x)",
         "affine.apply affine_map<(d0) -> (d0 + 1)>(%x)", 1),
        ("affine.apply affine_map<(d0) -> ((d0 + 8) mod 4)>(%x)",
         "affine.apply affine_map<(d0) -> (d0 mod 4)>(%x)", 0),
        ("arith.divui %x, %c4 : index", "arith.divui %x, %c4 : index", None),
        ("arith.divui %t8, %c4 : index", "arith.divui %t, %c4 : index", 2),
        ("arith.remsi %t8, %c4 : index", "arith.remsi %t, %c4 : index", 0),
        ("arith.muli %x, %y : index", "arith.addi %x, %y : index", None),
        ("arith.constant 7 : index", "arith.constant 3 : index", 4),
    ],
)  # fmt: skip
def test_distance(one: str, other: str, expected: int | None) -> None:
    module = parsed(f"%one = {one}\n  %other = {other}")
    first, second = used(module)
    assert distance(terms(first), terms(second)) == expected


def test_sums_of_narrow_integers_are_not_followed() -> None:
    """They may wrap around: 2^32 - 1 + 1 is 0, not 2^32."""
    body = """%c1 = arith.constant 1 : i32
  %next = arith.addi %n, %c1 : i32
  %one = arith.index_cast %next : i32 to index
  %other = arith.index_cast %n : i32 to index"""
    module = parsed(body)
    first, second = used(module)
    assert distance(terms(first), terms(second)) is None


def test_elements_of_views() -> None:
    body = """%one = memref.subview %m[%x, 8] [4, 4] [1, 1] : memref<64x64xf32>
      to memref<4x4xf32, strided<[64, 1], offset: ?>>
  %other = memref.subview %m[4, 8] [4, 4] [1, 1] : memref<64x64xf32>
      to memref<4x4xf32, strided<[64, 1], offset: ?>>"""
    body = body.replace("[4, 8] [4", "[%y, 8] [4")
    module = parsed(body, "memref<4x4xf32, strided<[64, 1], offset: ?>>")
    first, second = used(module)
    (root, one), (other_root, other) = element(first, [0, 1]), element(second, [0, 3])
    assert root == other_root
    assert [distance(a, b) for a, b in zip(one, other, strict=True)] == [None, -2]
