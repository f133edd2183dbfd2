"""What divides an index, and what an address is aligned to."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.ir.alignment import (
    BASE_ALIGNMENT,
    address_alignment,
    divisor,
    without_casts,
)
from alcop_mlir.bindings import ir, make_context

# Arguments that every function below has, and a value that is a multiple of 24.
HEAD = """
func.func @f(%n: index, %p: i1, %A: memref<64x40xf16>,
             %B: memref<?x64xf16, strided<[?, 1], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %m = arith.muli %n, %c24 : index
"""


def marked(body: str, check):
    """`check` of the operand of "test.mark" in a function of that body."""
    with make_context(allow_unregistered=True), ir.Location.unknown():
        module = ir.Module.parse(HEAD + body + "\n return }")
        found = []

        def visit(op):
            if op.name == "test.mark":
                found.append(op.operands[0])
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        (value,) = found
        return check(value)


def mark(expression: str, kind: str = "index") -> str:
    return f'%x = {expression}\n "test.mark"(%x) : ({kind}) -> ()'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("arith.constant 40 : index", 40),
        ("arith.addi %n, %c16 : index", 1),
        ("arith.addi %m, %c16 : index", 8),
        ("arith.subi %m, %c6 : index", 6),
        ("arith.muli %m, %c16 : index", 384),
        ("arith.muli %n, %c0 : index", 0),
        ("arith.remui %m, %c16 : index", 8),
        ("arith.divui %m, %c6 : index", 4),
        ("arith.divui %m, %c16 : index", 1),
        ("arith.shli %n, %c3 : index", 8),
        ("arith.shli %n, %n : index", 1),
        ("arith.andi %n, %c24 : index", 8),
        ("arith.andi %m, %c3 : index", 8),
        ("arith.xori %m, %c16 : index", 8),
        ("arith.ori %m, %n : index", 1),
        ("arith.select %p, %m, %c16 : index", 8),
        ("arith.minsi %m, %c6 : index", 6),
        ("affine.apply affine_map<(d)[s] -> (d * 4 + s)>(%n)[%c16]", 4),
        ("affine.apply affine_map<(d) -> (d mod 16)>(%m)", 8),
        ("affine.apply affine_map<(d) -> (d floordiv 8)>(%m)", 1),
        ("affine.apply affine_map<(d) -> (d ceildiv 8)>(%m)", 1),
    ],
)
def test_arithmetic(expression: str, expected: int) -> None:
    assert marked(mark(expression), divisor) == expected


def test_branches() -> None:
    branch = """scf.if %p -> index {
        scf.yield %m : index
      } else {
        scf.yield %c6 : index
      }"""
    assert marked(mark(branch), divisor) == 6


def test_induction_variable() -> None:
    body = 'scf.for %i = %c16 to %n step %c24 { "test.mark"(%i) : (index) -> () }'
    assert marked(body, divisor) == 8


@pytest.mark.parametrize(
    ("start", "step", "expected"),
    [("%c0", "%c24", 24), ("%c16", "%c24", 8), ("%c16", "%n", 1), ("%n", "%c24", 1)],
)
def test_carried_value(start: str, step: str, expected: int) -> None:
    body = f"""
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = {start}) -> index {{
        "test.mark"(%v) : (index) -> ()
        %w = arith.addi %v, {step} : index
        scf.yield %w : index
      }}"""
    assert marked(body, divisor) == expected


def test_values_carried_round_each_other() -> None:
    body = """
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %c16, %w = %c24)
          -> (index, index) {
        scf.yield %w, %v : index, index
      }
      "test.mark"(%r#0) : (index) -> ()"""
    assert marked(body, divisor) == 8


@pytest.mark.parametrize(
    ("offsets", "kind", "expected"),
    [
        ("[%n, %c16]", "memref<8x8xf16, strided<[40, 1], offset: ?>>", 16),
        ("[%n, %m]", "memref<8x8xf16, strided<[40, 1], offset: ?>>", 16),
        ("[0, 4]", "memref<8x8xf16, strided<[40, 1], offset: 4>>", 8),
        ("[0, %n]", "memref<8x8xf16, strided<[40, 1], offset: ?>>", 2),
    ],
)
def test_subview(offsets: str, kind: str, expected: int) -> None:
    view = f"memref.subview %A{offsets} [8, 8] [1, 1] : memref<64x40xf16> to {kind}"
    aligned = marked(mark(view, kind), lambda v: address_alignment(v, [1, 8]))
    assert aligned == expected


def test_unknown_layout_is_aligned_to_its_elements() -> None:
    body = '"test.mark"(%B) : (memref<?x64xf16, strided<[?, 1], offset: ?>>) -> ()'
    assert marked(body, lambda v: address_alignment(v, [1, 8])) == 2


def test_argument_is_aligned_as_the_kernel_abi_asks() -> None:
    body = '"test.mark"(%A) : (memref<64x40xf16>) -> ()'
    assert marked(body, lambda v: address_alignment(v, [1, 8])) == BASE_ALIGNMENT
    assert marked(body, lambda v: address_alignment(v, [1, 2])) == 4


def test_casts_that_forget_are_seen_through() -> None:
    cast = "memref.cast %A : memref<64x40xf16> to memref<?x40xf16>"
    body = mark(cast, "memref<?x40xf16>")
    assert marked(body, lambda v: str(without_casts(v).type)) == "memref<64x40xf16>"


@pytest.mark.parametrize(
    ("source", "size", "expected"),
    [
        ("%Z : memref<?x?xf16>", "%m", 16),
        ("%Z : memref<?x?xf16>", "%c24", 16),
        ("%Z : memref<?x?xf16>", "%c6", 4),
        ("%Z : memref<?x?xf16>", "%n", 2),
        # Where a memref begins at an unknown offset, only elements are aligned.
        ("%B : memref<?x64xf16, strided<[?, 1], offset: ?>>", "%m", 2),
    ],
)
def test_rows_as_long_as_a_value(source: str, size: str, expected: int) -> None:
    """A distance known at run time only, through views and casts."""
    name, kind = source.split(" : ")
    body = f"""
      %Z = memref.alloc(%n, %n) : memref<?x?xf16>
      %r = memref.reinterpret_cast {name} to offset: [0], sizes: [%n, {size}],
        strides: [{size}, 1] : {kind} to memref<?x?xf16, strided<[?, 1]>>
      %v = memref.subview %r[%n, %c16] [%n, 8] [1, 1] : memref<?x?xf16,
        strided<[?, 1]>> to memref<?x8xf16, strided<[?, 1], offset: ?>>
      %x = memref.cast %v : memref<?x8xf16, strided<[?, 1], offset: ?>>
        to memref<?x?xf16, strided<[?, 1], offset: ?>>
      "test.mark"(%x) : (memref<?x?xf16, strided<[?, 1], offset: ?>>) -> ()"""
    assert marked(body, lambda v: address_alignment(v, [1, 8])) == expected


@pytest.mark.parametrize(
    ("kind", "promise", "expected"),
    [
        ("memref<?x?xf16, strided<[?, 1]>>", "", 2),
        ("memref<?x?xf16, strided<[?, 1]>>", "{alcop.row_alignment = 8 : i64}", 8),
        ("memref<64x?xf16, strided<[?, 1]>>", "{alcop.row_alignment = 64 : i64}", 16),
        ("memref<?x?xf16>", "{alcop.row_alignment = 16 : i64}", 16),
        ("memref<?x24xf16>", "", 16),
    ],
)
def test_promised_strides(kind: str, promise: str, expected: int) -> None:
    """As of an argument, so through views of it."""
    text = f"""
      func.func @f(%X: {kind} {promise}, %n: index) {{
        "test.mark"(%X) : ({kind}) -> ()
        return
      }}"""
    with make_context(allow_unregistered=True), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        (argument, _) = function.regions[0].blocks[0].arguments
        assert address_alignment(argument, [1, 8]) == expected


@pytest.mark.parametrize(
    ("view", "kind", "expected"),
    [
        (
            "memref.expand_shape %Z [[0], [1, 2]] output_shape [%n, 8, 24] "
            ": memref<?x192xf16> into memref<?x8x24xf16>",
            "memref<?x8x24xf16>",
            16,
        ),
        (
            "memref.expand_shape %Y [[0, 1], [2]] output_shape [4, 16, 40] "
            ": memref<64x40xf16, strided<[?, 1]>> "
            "into memref<4x16x40xf16, strided<[?, ?, 1]>>",
            "memref<4x16x40xf16, strided<[?, ?, 1]>>",
            16,
        ),
        (
            "memref.collapse_shape %W [[0, 1], [2]] "
            ": memref<4x16x40xf16, strided<[?, ?, 1]>> "
            "into memref<64x40xf16, strided<[?, 1]>>",
            "memref<64x40xf16, strided<[?, 1]>>",
            16,
        ),
    ],
)
def test_dimensions_split_or_joined(view: str, kind: str, expected: int) -> None:
    body = f"""
      %Z = memref.alloc(%n) : memref<?x192xf16>
      %Y = memref.reinterpret_cast %A to offset: [0], sizes: [64, 40],
        strides: [%m, 1] : memref<64x40xf16> to memref<64x40xf16, strided<[?, 1]>>
      %W = memref.reinterpret_cast %A to offset: [0], sizes: [4, 16, 40],
        strides: [%m, %m, 1] : memref<64x40xf16>
        to memref<4x16x40xf16, strided<[?, ?, 1]>>
      %x = {view}
      "test.mark"(%x) : ({kind}) -> ()"""

    def aligned(value) -> int:
        return address_alignment(value, [1] * (value.type.rank - 1) + [8])

    assert marked(body, aligned) == expected


def test_one_of_several_matrices() -> None:
    """The dimension that a view drops is no row."""
    body = """
      %Z = memref.alloc(%n) : memref<?x24x40xf16>
      %x = memref.subview %Z[%n, 0, 0] [1, 24, 40] [1, 1, 1]
        : memref<?x24x40xf16> to memref<24x40xf16, strided<[40, 1], offset: ?>>
      "test.mark"(%x) : (memref<24x40xf16, strided<[40, 1], offset: ?>>) -> ()"""
    assert marked(body, lambda v: address_alignment(v, [1, 8])) == 16


@pytest.mark.parametrize(("strides", "expected"), [("96, 32", 16), ("99, 33", 2)])
def test_rows_of_any_distances(strides: str, expected: int) -> None:
    """What is viewed decides, not the matrix, whose rows have no gaps."""
    kind = f"memref<4x3x8xf16, strided<[{strides}, 1]>>"
    body = f"""
      %y = "test.made"() : () -> {kind}
      %C = "alcop.rows"(%y) : ({kind}) -> memref<12x8xf16>
      "test.mark"(%C) : (memref<12x8xf16>) -> ()"""
    assert marked(body, lambda rows: address_alignment(rows, [8, 8])) == expected
