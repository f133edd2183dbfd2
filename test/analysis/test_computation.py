"""What a function computes, read from its linalg ops."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.computation import Computation, Step, computation
from alcop_mlir.analysis.host import host_functions
from alcop_mlir.bindings import ir, make_context

A, B, C = "memref<8x4xf16>", "memref<4x16xf16>", "memref<8x16xf32>"
MATMUL = f"linalg.matmul ins(%a, %b : {A}, {B}) outs(%c : {C})"
ARGUMENTS = f"%a: {A}, %b: {B}, %c: {C}"


def read(text: str) -> Computation:
    with make_context():
        module = ir.Module.parse(text)
    (func,) = host_functions(module)
    return computation(func)


def steps(arguments: str, body: str, results: str = "") -> tuple[Step, ...]:
    """Of a function with this body."""
    found = read(f"func.func @f({arguments}) {results} {{ {body} }}")
    assert found.unknown is None
    return found.steps


def test_a_product_is_added_to_what_the_output_holds() -> None:
    """The old contents are the initial value."""
    assert steps(ARGUMENTS, f"{MATMUL} return") == (
        Step("arg0", "arg1", "arg2", "mk,kn->mn", "arg2"),
    )


def test_a_zero_fill_leaves_no_initial_value() -> None:
    """A fill with anything else is not understood."""
    fill = f"%z = arith.constant 0.0 : f32 linalg.fill ins(%z : f32) outs(%c : {C})"
    assert steps(ARGUMENTS, f"{fill} {MATMUL} return") == (
        Step("arg0", "arg1", "arg2", "mk,kn->mn", None),
    )
    one = read(f"func.func @f({ARGUMENTS}) {{ {fill.replace('0.0', '1.0')} return }}")
    assert one.steps == ()
    assert one.unknown is not None
    assert one.unknown.name == "linalg.fill"


def test_a_copy_gives_the_initial_value() -> None:
    """From another array."""
    copy = f"memref.copy %d, %c : {C} to {C}"
    assert steps(f"{ARGUMENTS}, %d: {C}", f"{copy} {MATMUL} return") == (
        Step("arg0", "arg1", "arg2", "mk,kn->mn", "arg3"),
    )


def test_results_of_tensor_functions_have_names() -> None:
    """`result` if there is one, else numbered."""
    a, b, c = (kind.replace("memref", "tensor") for kind in (A, B, C))
    product = f"linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}"
    arguments = f"%a: {a}, %b: {b}, %c: {c}"
    one = steps(arguments, f"%d = {product} return %d : {c}", f"-> {c}")
    assert one == (Step("arg0", "arg1", "result", "mk,kn->mn", "arg2"),)
    two = steps(
        arguments,
        f"%d = {product} %e = {product.replace('%c', '%d')} return %e, %d : {c}, {c}",
        f"-> ({c}, {c})",
    )
    assert two == (
        Step("arg0", "arg1", "result1", "mk,kn->mn", "arg2"),
        Step("arg0", "arg1", "result0", "mk,kn->mn", "result1"),
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
    assert steps(f"%a: {a}, %b: {b}, %c: {c}", text)[0].maps == expected


@pytest.mark.parametrize(
    ("first", "second", "yielded"),
    [
        ("addf %x, %y", "addf %p, %z", "%s"),
        ("mulf %x, %x", "addf %p, %z", "%s"),
        ("mulf %x, %y", "subf %z, %p", "%s"),
        ("mulf %x, %y", "addf %p, %p", "%s"),
        ("mulf %x, %y", "addf %p, %z", "%p"),
    ],
)
def test_other_bodies_are_no_contractions(
    first: str, second: str, yielded: str
) -> None:
    """Only `z + x * y`; anything else is not understood."""
    square = "memref<4x4xf32>"
    maps = ", ".join(
        f"affine_map<(m, n, k) -> ({dims})>" for dims in ("m, k", "k, n", "m, n")
    )
    found = read(f"""
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
    assert found.steps == ()
    assert found.unknown is not None
    assert found.unknown.name == "linalg.generic"


def test_an_array_overwritten_before_its_last_use_gives_no_steps() -> None:
    """Names stand for one value each: rather no reference than a wrong one."""
    square = "memref<4x4xf16>"
    product = f"linalg.matmul ins(%a, %b : {square}, {square}) outs(%b : {square})"
    arguments = f"%a: {square}, %b: {square}"
    assert len(steps(arguments, f"{product} return")) == 1
    keep = f"memref.copy %b, %c : {square} to {square}"
    again = f"linalg.matmul ins(%a, %c : {square}, {square}) outs(%a : {square})"
    body = f"{keep} {product} {again} return"
    assert steps(f"{arguments}, %c: {square}", body) == ()


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


def test_transposed_tensors_are_read_as_they_lie() -> None:
    a, b, c = "tensor<4x8xf16>", "tensor<16x4xf16>", "tensor<8x16xf32>"
    body = f"""
      %0 = tensor.empty() : tensor<8x4xf16>
      %1 = tensor.empty() : tensor<4x16xf16>
      %at = linalg.transpose ins(%a : {a}) outs(%0 : tensor<8x4xf16>)
        permutation = [1, 0]
      %bt = linalg.transpose ins(%b : {b}) outs(%1 : tensor<4x16xf16>)
        permutation = [1, 0]
      %r = linalg.matmul ins(%at, %bt : tensor<8x4xf16>, tensor<4x16xf16>)
        outs(%c : {c}) -> {c}
      return %r : {c}"""
    assert steps(f"%a: {a}, %b: {b}, %c: {c}", body, f"-> {c}") == (
        Step("arg0", "arg1", "result", "km,nk->mn", "arg2"),
    )


def test_products_of_integers() -> None:
    a, b, c = "memref<8x4xi8>", "memref<4x16xi8>", "memref<8x16xi32>"
    body = f"""
      %z = arith.constant 0 : i32
      linalg.fill ins(%z : i32) outs(%c : {c})
      linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
      return"""
    assert steps(f"%a: {a}, %b: {b}, %c: {c}", body) == (
        Step("arg0", "arg1", "arg2", "mk,kn->mn", None),
    )
