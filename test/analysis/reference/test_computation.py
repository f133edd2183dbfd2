"""What a function computes, read from its linalg ops."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.reference.computation import Computation, computation
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.errors import LaunchError
from alcop_mlir.polynomials import collected
from alcop_mlir.reference.expressions import Argument, Constant, Operation
from alcop_mlir.reference.step_values import step_values
from alcop_mlir.reference.steps import (
    Einsum,
    Fold,
    Gather,
    Insert,
    Iota,
    Map,
    Pad,
    Reduction,
    Reshape,
    ScatteredViews,
    Slice,
    Step,
    WindowViews,
    with_sizes,
)

A, B, C = "memref<8x4xf16>", "memref<4x16xf16>", "memref<8x16xf32>"
MATMUL = f"linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C})"
ARGUMENTS = f"%a: {A}, %b: {B}, %c: {C}"


def read(text: str, allow_tf32: bool = False) -> Computation:
    with make_context():
        module = ir.Module.parse(text)
    (func,) = host_functions(module)
    return computation(func, allow_tf32)


def steps(arguments: str, body: str, results: str = "") -> tuple[Step, ...]:
    """Of a function with this body."""
    found = read(f"func.func @f({arguments}) {results} {{ {body} }}")
    assert found.unknown is None
    return found.steps


def test_a_contraction_is_added_to_what_the_output_holds() -> None:
    """The old contents are the initial value."""
    assert steps(ARGUMENTS, f"{MATMUL} return") == (
        Einsum("arg0", "arg1", "arg2", "mk,kn->mn", "arg2"),
    )


def test_a_fill_is_an_initial_value() -> None:
    """Zero leaves none; another number is an array of its own."""
    fill = f"%z = arith.constant 0.0 : f32 linalg.fill ins(%z : f32) outs(%c : {C})"
    assert steps(ARGUMENTS, f"{fill} {MATMUL} return") == (
        Einsum("arg0", "arg1", "arg2", "mk,kn->mn", None),
    )
    assert steps(ARGUMENTS, f"{fill.replace('0.0', '1.5')} {MATMUL} return") == (
        Map((), "->ij", "%0", Constant(1.5), (8, 16)),
        Einsum("arg0", "arg1", "arg2", "mk,kn->mn", "%0"),
    )


def test_a_copy_gives_the_initial_value() -> None:
    """From another array."""
    copy = f"memref.copy %d, %c : {C} to {C}"
    assert steps(f"{ARGUMENTS}, %d: {C}", f"{copy} {MATMUL} return") == (
        Einsum("arg0", "arg1", "arg2", "mk,kn->mn", "arg3"),
    )


def test_results_of_tensor_functions_have_names() -> None:
    """`result` if there is one, else numbered."""
    a, b, c = (kind.replace("memref", "tensor") for kind in (A, B, C))
    product = f"linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}"
    arguments = f"%a: {a}, %b: {b}, %c: {c}"
    one = steps(arguments, f"%d = {product} return %d : {c}", f"-> {c}")
    assert one == (Einsum("arg0", "arg1", "result", "mk,kn->mn", "arg2"),)
    two = steps(
        arguments,
        f"%d = {product} %e = {product.replace('%c', '%d')} return %e, %d : {c}, {c}",
        f"-> ({c}, {c})",
    )
    assert two == (
        Einsum("arg0", "arg1", "result1", "mk,kn->mn", "arg2"),
        Einsum("arg0", "arg1", "result0", "mk,kn->mn", "result1"),
    )


@pytest.mark.parametrize(
    ("maps", "shapes", "expected"),
    [
        ("(i,j,k) -> (i,k) (k,j) (i,j)", "8x4 4x16 8x16", "mk,kn->mn"),
        ("(i,j,k) -> (i,k) (j,k) (i,j)", "8x4 16x4 8x16", "mk,nk->mn"),
        ("(k,i,j) -> (k,i) (k,j) (j,i)", "4x8 4x16 16x8", "km,kn->nm"),
        ("(q,i,j,k) -> (q,i,k) (q,k,j) (q,i,j)", "2x8x4 2x4x16 2x8x16", "bmk,bkn->bmn"),
        (
            "(i,l,j,k,o) -> (i,l,k,o) (k,o,j) (i,l,j)",
            "2x3x4x5 4x5x6 2x3x6",
            "mpkx,kxn->mpn",
        ),
    ],
)
def test_loops_are_named_by_what_they_do(maps: str, shapes: str, expected: str) -> None:
    """m, n: rows and columns of the output; k: reduced; b: in all three."""
    loops, *operands = maps.replace("-> ", "").split(" ")
    lhs, rhs, out = shapes.split(" ")
    a, b, c = f"memref<{lhs}xf16>", f"memref<{rhs}xf16>", f"memref<{out}xf32>"
    affine = ", ".join(f"affine_map<{loops} -> {operand}>" for operand in operands)
    kinds = ", ".join(
        '"parallel"' if loop in operands[2] else '"reduction"'
        for loop in loops.strip("()").split(",")
    )
    text = f"""linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}}
      ins(%a, %b : {a}, {b}) outs(%c : {c}) {{
      ^body(%x: f16, %y: f16, %z: f32):
        %wide = arith.extf %y : f16 to f32
        %other = arith.extf %x : f16 to f32
        %p = arith.mulf %wide, %other : f32
        %s = arith.addf %p, %z : f32
        linalg.yield %s : f32
      }} return"""
    first = steps(f"%a: {a}, %b: {b}, %c: {c}", text)[0]
    assert isinstance(first, Einsum)
    assert first.maps == expected


def square_contraction(first: str, second: str, yielded: str = "%s") -> Computation:
    """Of a linalg.generic over the loops of a contraction, with that body."""
    square = "memref<4x4xf32>"
    maps = ", ".join(
        f"affine_map<(m, n, k) -> ({dims})>" for dims in ("m, k", "k, n", "m, n")
    )
    return read(f"""
      func.func @f(%a: {square}, %b: {square}, %c: {square}) {{
        linalg.generic {{indexing_maps = [{maps}],
          iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%a, %b : {square}, {square}) outs(%c : {square}) {{
          ^body(%x: f32, %y: f32, %z: f32):
            %p = arith.{first} : f32
            %s = arith.{second} : f32
            linalg.yield {yielded} : f32
          }}
        return
      }}""")


def operation(name: str, *operands: Any, dtype: str = "f32") -> Operation:
    return Operation(name, dtype, operands)


@pytest.mark.parametrize(
    ("first", "second", "yielded"),
    [
        ("mulf %x, %y", "subf %z, %p", "%s"),
        ("mulf %x, %y", "addf %p, %p", "%s"),
        ("mulf %x, %y", "addf %p, %z", "%p"),
        ("mulf %x, %z", "addf %p, %z", "%s"),
    ],
)
def test_other_bodies_over_these_loops(first: str, second: str, yielded: str) -> None:
    """No combining op of the output: one iteration after the other."""
    *_, found = square_contraction(first, second, yielded).steps
    assert isinstance(found, Fold)
    assert (found.starts, found.order, found.result) == (("arg2",), "k", 0)


def test_a_loop_that_only_the_output_has() -> None:
    """An input of its numbers tells how long it is."""
    count, found = square_contraction("mulf %x, %x", "addf %p, %z", "%s").steps
    assert count == Iota("%0", 4)
    assert isinstance(found, Reduction)
    assert found.inputs == ("arg0", "%0")


def test_reductions_that_are_no_contractions() -> None:
    """The distance of all rows from all columns."""
    found = square_contraction("subf %x, %y", "maximumf %z, %p")
    difference = operation("arith.subf", Argument(0), Argument(1))
    assert found.steps == (
        Reduction(
            ("arg0", "arg1"),
            "ik,kj->ij",
            "arg2",
            difference,
            "arith.maximumf",
            "f32",
            "arg2",
        ),
    )


def test_what_is_not_understood_is_named() -> None:
    """The first such op."""
    found = read(f"""
      func.func @f({ARGUMENTS}) {{
        %0 = arith.constant 0 : index
        %1 = memref.load %a[%0, %0] : {A}
        return
      }}""")
    assert found.unknown is not None
    assert found.unknown.name == "memref.load"


def test_contractions_of_integers() -> None:
    a, b, c = "memref<8x4xi8>", "memref<4x16xi8>", "memref<8x16xi32>"
    body = f"""
      %z = arith.constant 0 : i32
      linalg.fill ins(%z : i32) outs(%c : {c})
      linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
      return"""
    assert steps(f"%a: {a}, %b: {b}, %c: {c}", body) == (
        Einsum("arg0", "arg1", "arg2", "mk,kn->mn", None, dtype="i32", sums="i32"),
    )


def test_contractions_of_f32_round_to_tf32_only_on_request() -> None:
    square = "memref<4x4xf32>"
    text = f"""func.func @f(%a: {square}, %b: {square}, %c: {square}) {{
      linalg.matmul ins(%a, %b : {square}, {square}) outs(%c : {square}) return }}"""
    assert [step.precision for step in einsums(read(text))] == [None]
    assert [step.precision for step in einsums(read(text, True))] == ["tf32"]


def einsums(found: Computation) -> list[Einsum]:
    return [step for step in found.steps if isinstance(step, Einsum)]


def test_operand_transforms_in_the_body() -> None:
    """Exact conversions are nothing; others, and arithmetic, are a step before."""
    found = read("""
      func.func @f(%a: memref<8x4xi8>, %b: memref<4x16xf16>, %c: memref<8x16xf32>) {
        linalg.generic {
          indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
            affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
          iterator_types = ["parallel", "parallel", "reduction"]
        } ins(%a, %b : memref<8x4xi8>, memref<4x16xf16>) outs(%c : memref<8x16xf32>) {
        ^body(%x: i8, %y: f16, %z: f32):
          %u = arith.sitofp %x : i8 to f32
          %v = arith.extf %y : f16 to f32
          %p = arith.mulf %u, %v : f32
          %s = arith.addf %z, %p : f32
          linalg.yield %s : f32
        }
        return
      }""")
    assert found.steps == (
        Map(("arg0",), "ij->ij", "%0", operation("arith.sitofp", Argument(0)), (8, 4)),
        Einsum("%0", "arg1", "arg2", "mk,kn->mn", "arg2"),
    )


ROWS, ROW = "tensor<8x16xf32>", "tensor<16xf32>"


@pytest.mark.parametrize(
    ("text", "maps", "expression"),
    [
        (
            f"linalg.add ins(%a, %b : {ROWS}, {ROWS}) outs(%c : {ROWS}) -> {ROWS}",
            "ij,ij->ij",
            operation("arith.addf", Argument(0), Argument(1)),
        ),
        (
            f"linalg.map {{ math.exp }} ins(%a : {ROWS}) outs(%c : {ROWS})",
            "ij->ij",
            operation("math.exp", Argument(0)),
        ),
        (
            f"linalg.broadcast ins(%r : {ROW}) outs(%c : {ROWS}) dimensions = [0]",
            "j->ij",
            Argument(0),
        ),
        (
            f"linalg.transpose ins(%t : tensor<16x8xf32>) outs(%c : {ROWS}) "
            "permutation = [1, 0]",
            "ji->ij",
            Argument(0),
        ),
        (
            "linalg.elementwise kind=#linalg.elementwise_kind<mul> "
            f"ins(%a, %b : {ROWS}, {ROWS}) outs(%c : {ROWS}) -> {ROWS}",
            "ij,ij->ij",
            operation("arith.mulf", Argument(0), Argument(1)),
        ),
        (
            "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, "
            "affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], "
            'iterator_types = ["parallel", "parallel"]} '
            f"ins(%u, %half : tensor<8x1xf32>, f32) outs(%b : {ROWS}) {{ "
            "^body(%x: f32, %y: f32, %z: f32): %p = arith.mulf %x, %y : f32 "
            "%s = arith.subf %p, %z : f32 linalg.yield %s : f32 } "
            f"-> {ROWS}",
            "i.,ij->ij",
            operation(
                "arith.subf",
                operation("arith.mulf", Argument(0), Constant(0.5)),
                Argument(1),
            ),
        ),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_maps(text: str, maps: str, expression: Any) -> None:
    """Ops whose loops are all parallel; an operand is `.` where it is indexed by 0."""
    arguments = (
        f"%a: {ROWS}, %b: {ROWS}, %c: {ROWS}, %r: {ROW}, %t: tensor<16x8xf32>, "
        "%u: tensor<8x1xf32>"
    )
    body = f"%half = arith.constant 0.5 : f32 %x = {text} return %x : {ROWS}"
    (found,) = steps(arguments, body, f"-> {ROWS}")
    assert isinstance(found, Map)
    assert (found.maps, found.expression) == (maps, expression)
    assert (found.out, found.shape) == ("result", (8, 16))


@pytest.mark.parametrize(("start", "init"), [("0.0", None), ("1.0", "%0")])
def test_reductions(start: str, init: str | None) -> None:
    """What makes no difference is no initial value."""
    arguments = "%a: memref<8x16xf32>, %c: memref<8xf32>"
    body = f"""
      %z = arith.constant {start} : f32
      linalg.fill ins(%z : f32) outs(%c : memref<8xf32>)
      linalg.reduce ins(%a : memref<8x16xf32>) outs(%c : memref<8xf32>) dimensions = [1]
        (%x: f32, %y: f32) {{
          %p = math.absf %x : f32
          %s = arith.addf %y, %p : f32
          linalg.yield %s : f32
        }}
      return"""
    found = steps(arguments, body)[-1]
    size = operation("math.absf", Argument(0))
    assert found == Reduction(
        ("arg0",), "ij->i", "arg1", size, "arith.addf", "f32", init
    )


def test_parts_and_shapes() -> None:
    """What is read and written through views."""
    arguments = "%a: memref<4x8xf32>, %b: memref<32xf32>, %c: memref<6x8xf32>"
    body = """
      %v = memref.collapse_shape %a [[0, 1]] : memref<4x8xf32> into memref<32xf32>
      memref.copy %v, %b : memref<32xf32> to memref<32xf32>
      %u = memref.subview %a[0, 2] [4, 3] [1, 2]
        : memref<4x8xf32> to memref<4x3xf32, strided<[8, 2], offset: 2>>
      %w = memref.subview %c[2, 0] [4, 3] [1, 1]
        : memref<6x8xf32> to memref<4x3xf32, strided<[8, 1], offset: 16>>
      memref.copy %u, %w : memref<4x3xf32, strided<[8, 2], offset: 2>>
        to memref<4x3xf32, strided<[8, 1], offset: 16>>
      return"""
    assert steps(arguments, body) == (
        Reshape("arg0", "arg1", (32,)),
        Slice("arg0", "%1", (0, 2), (4, 3), (1, 2)),
        Insert("%1", "arg2", "arg2", (2, 0), (4, 3), (1, 1)),
    )


def test_the_end_of_two_arrays_that_hold_one_value() -> None:
    """It is copied: a name stands for one array."""
    arguments = f"{ARGUMENTS}, %d: {C}"
    body = f"{MATMUL} memref.copy %c, %d : {C} to {C} return"
    assert steps(arguments, body) == (
        Einsum("arg0", "arg1", "arg2", "mk,kn->mn", "arg2"),
        Map(("arg2",), "ij->ij", "arg3", Argument(0), (8, 16)),
    )


def test_sizes_known_at_run_time_have_the_names_of_the_arguments() -> None:
    """An array of a size that no argument has is not understood."""
    kind = "tensor<?x16xf32>"
    body = f"""
      %zero = arith.constant 0 : index
      %z = arith.constant 0.0 : f32
      %n = tensor.dim %a, %zero : {kind}
      %n1 = arith.addi %n, %n : index
      %e = tensor.empty(SIZE) : {kind}
      %d = linalg.fill ins(%z : f32) outs(%e : {kind}) -> {kind}
      %c = linalg.exp ins(%a : {kind}) outs(%d : {kind}) -> {kind}
      return %c : {kind}"""
    (found,) = steps(f"%a: {kind}", body.replace("SIZE", "%n"), f"-> {kind}")
    assert isinstance(found, Map)
    assert found.shape == ("arg0_0", 16)


def test_arrays_of_constants() -> None:
    """One number everywhere."""
    kind = "tensor<8x16xf32>"
    body = f"""
      %k = arith.constant dense<2.5> : {kind}
      %c = linalg.mul ins(%a, %k : {kind}, {kind}) outs(%a : {kind}) -> {kind}
      return %c : {kind}"""
    (found,) = steps(f"%a: {kind}", body, f"-> {kind}")
    assert isinstance(found, Map)
    assert found.expression == operation("arith.mulf", Argument(0), Constant(2.5))


@pytest.mark.parametrize(
    "body",
    [
        "%0 = linalg.index 0 : index %1 = arith.index_castui %0 : index to i32 "
        "%2 = arith.sitofp %1 : i32 to f32 linalg.yield %2 : f32",
        "%0 = arith.bitcast %x : f32 to i32 %1 = arith.sitofp %0 : i32 to f32 "
        "linalg.yield %1 : f32",
        "%0 = arith.fptosi %x : f32 to i8 %1 = arith.uitofp %0 : i8 to f32 "
        "linalg.yield %1 : f32",
    ],
)
def test_bodies_that_expressions_cannot_say(body: str) -> None:
    """Unsigned casts and bit patterns that they do not have."""
    found = read(f"""
      func.func @f(%a: memref<8x16xf32>) {{
        linalg.map ins(%a : memref<8x16xf32>) outs(%a : memref<8x16xf32>)
          (%x: f32, %y: f32) {{ {body} }}
        return
      }}""")
    assert found.unknown is not None
    assert found.unknown.name == "linalg.map"


def test_convolutions() -> None:
    """Their input has two dimensions where a position and a tap index one."""
    a, w, c = "memref<2x11x4xf32>", "memref<3x4x8xf32>", "memref<2x5x8xf32>"
    body = f"""
      linalg.conv_1d_nwc_wcf {{strides = dense<2> : tensor<1xi64>}}
        ins(%a, %w : {a}, {w}) outs(%c : {c})
      return"""
    assert steps(f"%a: {a}, %w: {w}, %c: {c}", body) == (
        WindowViews("arg0", "%0", 1, 5, 2, 3, 1),
        Einsum("%0", "arg1", "arg2", "mpkx,kxn->mpn", "arg2"),
    )


def test_convolutions_of_open_sizes() -> None:
    """The number of positions has the name of the output's size."""
    a, w, c = "memref<2x?x4xf32>", "memref<3x4x8xf32>", "memref<2x?x8xf32>"
    body = f"""
      linalg.conv_1d_nwc_wcf ins(%a, %w : {a}, {w}) outs(%c : {c})
      return"""
    assert steps(f"%a: {a}, %w: {w}, %c: {c}", body) == (
        WindowViews("arg0", "%0", 1, "arg2_1", 1, 3, 1),
        Einsum("%0", "arg1", "arg2", "mpkx,kxn->mpn", "arg2"),
    )


def test_reversed_and_shifted_indices() -> None:
    """As in the gradient of an image: the filter backwards, from the last tap on."""
    a, w, c = "memref<16xf32>", "memref<3xf32>", "memref<13xf32>"
    body = f"""
      linalg.generic {{indexing_maps = [affine_map<(p, r) -> (p + r + 1)>,
                                        affine_map<(p, r) -> (2 - r)>,
                                        affine_map<(p, r) -> (p)>,
                                        affine_map<(p, r) -> (r)>],
                       iterator_types = ["parallel", "reduction"]}}
        ins(%a, %w, %c : {a}, {w}, {c}) outs(%s : {w}) {{
      ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
        %0 = arith.mulf %x, %y : f32
        %1 = arith.addf %o, %0 : f32
        linalg.yield %1 : f32
      }}
      return"""
    assert steps(f"%a: {a}, %w: {w}, %c: {c}, %s: {w}", body)[:2] == (
        WindowViews("arg0", "%0", 0, 13, 1, 3, 1, 1),
        WindowViews("arg1", "%1", 0, 3, -1, None, 1, 2),
    )


def scattered(out: str) -> str:
    """Adds to windows of the output, of 5 steps and 3 taps."""
    return f"""
      linalg.generic {{indexing_maps = [affine_map<(h, r) -> (h)>,
                                        affine_map<(h, r) -> (r)>,
                                        affine_map<(h, r) -> ({out})>],
                       iterator_types = ["reduction", "reduction"]}}
        ins(%a, %w : memref<5xf32>, memref<3xf32>) outs(%c : memref<12xf32>) {{
      ^bb0(%x: f32, %y: f32, %o: f32):
        %0 = arith.mulf %x, %y : f32
        %1 = arith.addf %o, %0 : f32
        linalg.yield %1 : f32
      }}
      return"""


SCATTERED = "%a: memref<5xf32>, %w: memref<3xf32>, %c: memref<12xf32>"


@pytest.mark.parametrize("out", ["h * 2 + r + 1", "r + h * 2 + 1"])
def test_adding_to_windows_of_the_output(out: str) -> None:
    """For each output and tap, the element that the tap moves there, or zero."""
    assert steps(SCATTERED, scattered(out)) == (
        ScatteredViews("arg0", "%0", 0, 12, 2, 3, 1, 1),
        Einsum("%0", "arg1", "arg2", "mk,k->m", "arg2"),
    )


@pytest.mark.parametrize("changed", ["%x, %y", "%o, %0"])
def test_adding_something_else_to_windows(changed: str) -> None:
    """Has no reference: an element that is not there is no zero."""
    ops = {"%x, %y": ("mulf", "addf"), "%o, %0": ("addf", "maximumf")}[changed]
    old, new = (f"arith.{op} {changed}" for op in ops)
    text = scattered("h * 2 + r + 1").replace(old, new)
    found = read(f"func.func @f({SCATTERED}) {{ {text} }}")
    assert found.unknown is not None
    assert found.unknown.name == "linalg.generic"


def test_padding() -> None:
    """Of any number, by amounts that are computed of sizes; not by others."""
    text = """
      func.func @f(%a: tensor<2x?xf32>) -> tensor<3x?xf32> {{
        %n = arith.constant 1 : index
        %size = tensor.dim %a, %n : tensor<2x?xf32>
        %square = arith.muli %size, %size : index
        %less = arith.subi %square, %n : index
        %k = arith.maxsi %size, %square : index
        %z = arith.constant 2.0 : f32
        %p = tensor.pad %a low[0, 3] high[1, {high}] {{
        ^bb0(%i: index, %j: index):
          tensor.yield %z : f32
        }} : tensor<2x?xf32> to tensor<3x?xf32>
        return %p : tensor<3x?xf32>
      }}"""
    assert read(text.format(high="1")).steps == (
        Pad("arg0", "result", (0, 3), (1, 1), Constant(2.0)),
    )
    assert read(text.format(high="%n")) == read(text.format(high="1"))
    less = collected([(1, ("arg0_1", "arg0_1")), (-1, ())])
    (step,) = read(text.format(high="%less")).steps
    assert step == Pad("arg0", "result", (0, 3), (1, less), Constant(2.0))
    known = Pad("arg0", "result", (0, 3), (1, 8), Constant(2.0))
    assert with_sizes(step, {"arg0_1": 3}) == known
    arrays = {"arg0": np.ones((2, 0))}
    with pytest.raises(LaunchError, match=r"sizes or offsets are \[1, -1\]"):
        step_values([step], arrays, {}, {"arg0_1": 0})
    found = read(text.format(high="%k"))
    assert found.unknown is not None
    assert found.unknown.name == "tensor.pad"


def test_pooling() -> None:
    """The operand that only gives the window's size is not read."""
    a, c = "memref<2x10x4xf32>", "memref<2x4x4xf32>"
    body = f"""
      linalg.pooling_nwc_max {{strides = dense<2> : tensor<1xi64>}}
        ins(%a, %w : {a}, memref<3xf32>) outs(%c : {c})
      return"""
    found = steps(f"%a: {a}, %w: memref<3xf32>, %c: {c}", body)
    assert found == (
        WindowViews("arg0", "%0", 1, 4, 2, 3, 1),
        Reduction(
            ("%0",), "ijlk->ijk", "arg2", Argument(0), "arith.maximumf", "f32", "arg2"
        ),
    )


TABLE = """
  func.func @f(%t: tensor<50x6xf16>, %i: tensor<8xi64>) -> tensor<8x6xf16> {{
    %c50 = arith.constant 50 : i64
    %c0 = arith.constant 0 : i64
    %e = tensor.empty() : tensor<8x6xf16>
    %r = linalg.generic {{
      indexing_maps = [affine_map<(m, k) -> (m)>, affine_map<(m, k) -> (m, k)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%i : tensor<8xi64>) outs(%e : tensor<8x6xf16>) {{
    ^bb0(%a: i64, %o: f16):
      %k = linalg.index 1 : index
      {body}
      linalg.yield %v : f16
    }} -> tensor<8x6xf16>
    return %r : tensor<8x6xf16>
  }}"""
READ = "%v = tensor.extract %t[%n, %k] : tensor<50x6xf16>"
OWN, LOOP = Argument(0), Argument(2)


def test_rows_of_tables() -> None:
    """By a number, one that may count from the end, and what another table has."""
    cast = "%n = arith.index_cast {} : i64 to index"
    assert read(TABLE.format(body=f"{cast.format('%a')} {READ}")).steps == (
        Gather("arg0", ("arg1",), "i->ij", "result", (OWN, LOOP), (8, 6)),
    )
    wrapped = f"""
      %less = arith.cmpi slt, %a, %c0 : i64
      %more = arith.addi %a, %c50 : i64
      %b = arith.select %less, %more, %a : i64
      {cast.format("%b")} {READ}"""
    (step,) = read(TABLE.format(body=wrapped)).steps
    assert isinstance(step, Gather)
    is_less = Operation("arith.cmpi.slt", "i1", (OWN, Constant(0.0)))
    more = Operation("arith.addi", "i64", (OWN, Constant(50.0)))
    assert step.indices == (
        Operation("arith.select", "i64", (is_less, more, OWN)),
        LOOP,
    )
    nested = f"""
      %0 = arith.index_cast %a : i64 to index
      %b = tensor.extract %i[%0] : tensor<8xi64>
      {cast.format("%b")} {READ}"""
    assert read(TABLE.format(body=nested)).steps == (
        Gather("arg1", ("arg1",), "i->i", "%0", (OWN,), (8,)),
        Gather("arg0", ("%0",), "i->ij", "result", (OWN, LOOP), (8, 6)),
    )


def test_rows_of_tables_in_a_body_that_computes() -> None:
    """What is read is an operand of the rest."""
    body = f"""
      %n = arith.index_cast %a : i64 to index
      {READ.replace("%v", "%w")}
      %v = arith.addf %w, %w : f16"""
    both = Operation("arith.addf", "f16", (OWN, OWN))
    assert read(TABLE.format(body=body)).steps == (
        Gather("arg0", ("arg1",), "i->ij", "%0", (OWN, LOOP), (8, 6)),
        Map(("%0",), "ij->ij", "result", both, (8, 6)),
    )


def test_indices_that_expressions_cannot_say() -> None:
    """An unsigned cast."""
    unsigned = f"%n = arith.index_castui %a : i64 to index {READ}"
    assert read(TABLE.format(body=unsigned)).unknown is not None


def test_numbers_of_iterations() -> None:
    number = """
      %n = arith.index_cast %k : index to i16
      %v = arith.sitofp %n : i16 to f16"""
    count, found = read(TABLE.format(body=number)).steps
    assert count == Iota("%0", 6)
    assert isinstance(found, Map)
    assert (found.inputs, found.maps) == (("%0",), "j->ij")


def test_gathers() -> None:
    """Along two dimensions, and with the dimension of size 1 left."""
    found = read("""
      func.func @f(%t: tensor<9x5x4xf16>, %i: tensor<3x2xi32>, %j: tensor<3x1xi32>)
          -> (tensor<3x5xf16>, tensor<3x9x1x4xf16>) {
        %0 = tensor.gather %t[%i] gather_dims([0, 2])
          : (tensor<9x5x4xf16>, tensor<3x2xi32>) -> tensor<3x5xf16>
        %1 = tensor.gather %t[%j] gather_dims([1])
          : (tensor<9x5x4xf16>, tensor<3x1xi32>) -> tensor<3x9x1x4xf16>
        return %0, %1 : tensor<3x5xf16>, tensor<3x9x1x4xf16>
      }""")
    two = (OWN, Argument(3), Argument(1))
    one = (LOOP, OWN, Argument(4))
    assert found.steps == (
        Slice("arg1", "%0", (0, 0), (3, 1), (1, 1)),
        Slice("arg1", "%1", (0, 1), (3, 1), (1, 1)),
        Gather("arg0", ("%0", "%1"), "i.,i.->ij", "result0", two, (3, 5)),
        Gather("arg0", ("arg2",), "i.->ijkl", "result1", one, (3, 9, 1, 4)),
    )


def test_a_map_of_numbers_only() -> None:
    """An expression without arguments is computed for each element, too."""
    kind = "memref<8x16xf32>"
    body = f"""
      %z = arith.constant 2.0 : f32
      linalg.fill ins(%z : f32) outs(%a : {kind})
      linalg.exp ins(%a : {kind}) outs(%b : {kind})
      return"""
    found = steps(f"%a: {kind}, %b: {kind}", body)
    number = operation("math.exp", Constant(2.0))
    assert Map((), "->ij", "arg1", number, (8, 16)) in found


@pytest.mark.parametrize("body", ["linalg.yield %s : f32", "linalg.yield %t : f32"])
def test_a_loop_that_no_input_tells_the_length_of(body: str) -> None:
    """An input of its numbers does."""
    found = read(f"""
      func.func @f(%a: memref<8xf32>, %u: memref<5xf32>, %c: memref<8xf32>) {{
        %one = arith.constant 1.0 : f32
        linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
          iterator_types = ["parallel", "reduction"]}}
          ins(%a, %u : memref<8xf32>, memref<5xf32>) outs(%c : memref<8xf32>) {{
          ^body(%x: f32, %y: f32, %z: f32):
            %s = arith.addf %z, %x : f32
            %t = arith.addf %z, %one : f32
            {body}
          }}
        return
      }}""")
    assert Iota("%0", 8 if "%t" in body else 5) in found.steps
    assert isinstance(found.steps[-1], Reduction)


def test_integers_of_64_bits() -> None:
    """They are copied, though float64 does not hold all."""
    found = read("""
      func.func @f(%a: memref<8xi64>, %c: memref<8xi64>) {
        memref.copy %a, %c : memref<8xi64> to memref<8xi64>
        return
      }""")
    assert found.steps == (Map(("arg0",), "i->i", "arg1", Argument(0), (8,)),)


def test_constant_arrays_have_names_of_their_own() -> None:
    """Equal ones one name, by type and contents; those that no step reads none."""
    found = read("""
      func.func @f(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
        %v = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
        %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
        %unused = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
        %m = linalg.matmul ins(%a, %v : tensor<2x2xf32>, tensor<2x2xf32>)
          outs(%w : tensor<2x2xf32>) -> tensor<2x2xf32>
        return %m : tensor<2x2xf32>
      }""")
    (array,) = found.constants
    assert (array.dtype, array.shape) == ("f32", (2, 2))
    assert array.data == struct.pack("<4f", 1, 2, 3, 4)
    assert found.steps == (
        Einsum("arg0", array.name, "result", "mk,kn->mn", array.name),
    )
