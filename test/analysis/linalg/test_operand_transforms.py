"""What bodies multiply, and what becomes of the zeros that fill tiles up."""

from __future__ import annotations

from typing import Any

import pytest

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.contractions import Contraction, classify
from alcop_mlir.analysis.linalg.operand_transforms import find_operand_transforms
from alcop_mlir.analysis.linalg.view import view_of
from alcop_mlir.analysis.linalg.zero_fill import why_fill_disturbs
from alcop_mlir.bindings import ir, make_context

TEXT = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#none = affine_map<(m, n, k) -> ()>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @f(%A: memref<64x{k}x{a}>, %B: memref<64x{k}x{b}>, %S: memref<f16>,
             %C: memref<64x64xf32>, %outside: f32) {{
  %one = arith.constant 1.0 : f32
  linalg.generic {{indexing_maps = [#mk, #nk, #none, #mn],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%A, %B, %S : memref<64x{k}x{a}>, memref<64x{k}x{b}>, memref<f16>)
      outs(%C : memref<64x64xf32>) {{
  ^bb0(%a: {a}, %b: {b}, %s: f16, %c: f32):
    {body}
    %p = arith.mulf %l, %r : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  }}
  return
}}"""
RIGHT = "%r = arith.extf %b : f16 to f32"
HALF = """%h = arith.truncf %a : f32 to f16
          %l = arith.extf %h : f16 to f32"""
BYTE = "%l = arith.sitofp %a : i8 to f32"
WORD = "%l = arith.sitofp %a : i32 to f32"
PLAIN = "%l = arith.extf %a : f16 to f32"
TRUNCF, SITOFP = "arith.truncf", "arith.sitofp"
SCALED = """%h = arith.truncf %a : f32 to f16
            %x = arith.mulf %h, %s : f16
            %l = arith.extf %x : f16 to f32"""


def contraction(module: Any) -> Any:
    (function,) = module.body.operations
    return list(function.regions[0].blocks[0].operations)[1].operation


def parsed(body: str, a: str = "f32", b: str = "f16", k: str = "128") -> Any:
    return ir.Module.parse(TEXT.format(a=a, b=b, k=k, body=body))


@pytest.mark.parametrize(
    ("a", "b", "body", "kind", "ops"),
    [
        ("f32", "f16", HALF, "f16", ([TRUNCF], [])),
        ("f32", "f16", SCALED, "f16", ([TRUNCF, "arith.mulf"], [])),
        # Exact in f16 as in f32.
        ("i8", "f16", BYTE, "f16", ([SITOFP], [])),
        # Not exact: multiplied as f32, both.
        ("i32", "f16", WORD, "f32", ([SITOFP], ["arith.extf"])),
        ("f16", "f16", PLAIN, "f16", ([], [])),
    ],
)
def test_what_is_multiplied(a, b, body, kind, ops) -> None:
    with make_context():
        module = parsed(f"{body}\n{RIGHT}", a, b)
        transforms = find_operand_transforms(view_of(contraction(module)))
        assert [str(transform.kind) for transform in transforms] == [kind, kind]
        assert [transform.operand for transform in transforms] == [0, 1]
        assert (
            tuple([op.name for op in transform.ops] for transform in transforms) == ops
        )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("%l = arith.mulf %a, %outside : f32\n" + RIGHT, "value that is not constant"),
        ("%l = arith.addf %a, %c : f32\n" + RIGHT, "each read one input"),
        (
            "%l = arith.extf %s : f16 to f32\n" + RIGHT,
            "has an output loop that no input has",
        ),
        ("%l = arith.extf %b : f16 to f32\n" + RIGHT, "multiply its two inputs"),
        (
            "%i = linalg.index 2 : index\n%n = arith.index_cast %i : index to i32\n"
            "%f = arith.sitofp %n : i32 to f32\n%l = arith.mulf %a, %f : f32\n" + RIGHT,
            "'linalg.index' in an operand transform, expected arithmetic",
        ),
    ],
)
def test_unsupported_bodies(body: str, reason: str) -> None:
    with make_context():
        module = parsed(body)
        answer = classify(contraction(module), allow_tf32=True)
        assert isinstance(answer, Rejected)
        assert reason in answer.reason


def left(*lines: str) -> str:
    return "\n".join([*lines, "%l = arith.extf %x : f16 to f32"])


def right(line: str) -> str:
    return f"{line}\n%r = arith.extf %y : f16 to f32"


ZERO_A = left("%x = arith.negf %a : f16")
ONE_A = left("%o = arith.constant 1.0 : f16", "%x = arith.addf %a, %o : f16")
INFINITE_A = left("%o = arith.constant 1.0 : f16", "%x = arith.divf %o, %a : f16")
COS_A = left("%x = math.cos %a : f16")
SINE_A = left("%x = math.sin %a : f16")
SCALED_A = left("%x = arith.mulf %a, %s : f16")
LARGE_A = left("%o = arith.constant 6.0e+04 : f16", "%x = arith.addf %a, %o : f16")
ZERO_B = right("%y = math.absf %b : f16")
ONE_B = right("%q = arith.constant 1.0 : f16\n%y = arith.subf %q, %b : f16")


@pytest.mark.parametrize(
    ("body", "is_safe"),
    [
        (f"{ZERO_A}\n{ONE_B}", True),
        (f"{ONE_A}\n{ZERO_B}", True),
        (f"{ONE_A}\n{RIGHT}", True),
        (f"{COS_A}\n{RIGHT}", True),
        (f"{ONE_A}\n{ONE_B}", False),
        (f"{INFINITE_A}\n{RIGHT}", False),
        # What is approximated may come out only near zero; what is large, infinite.
        (f"{SINE_A}\n{ONE_B}", False),
        (f"{LARGE_A}\n{RIGHT}", False),
        # The scalar may be infinite, and 0 * inf is no zero.
        (f"{SCALED_A}\n{RIGHT}", False),
    ],
)
def test_zeros_that_fill_up(body: str, is_safe: bool) -> None:
    """Where the sum may end within a step; any sum of whole steps is right."""
    with make_context():
        module = parsed(body, "f16")
        op = contraction(module)
        why = why_fill_disturbs(
            op.regions[0].blocks[0], find_operand_transforms(view_of(op))
        )
        assert (why is None) == is_safe
        assert isinstance(classify(op), Contraction)
        ragged = classify(contraction(module := parsed(body, "f16", k="100")))
        assert isinstance(ragged, Contraction if is_safe else Rejected)
