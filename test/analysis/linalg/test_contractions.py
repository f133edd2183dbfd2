"""analysis/linalg/contractions.py: loops, sizes, roles; what C starts from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations

import pytest

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.accumulator_init import find_accumulator_init
from alcop_mlir.analysis.linalg.contractions import (
    Contraction,
    classify,
    structured_ops,
)
from alcop_mlir.bindings import ir, make_context

GENERIC = """
func.func @f(%first: memref<{first}xf16>, %second: memref<{second}xf16>,
             %out: memref<32x64xf32>) {{
  linalg.generic {{
    indexing_maps = [affine_map<({loops}) -> ({first_map})>,
                     affine_map<({loops}) -> ({second_map})>,
                     affine_map<({loops}) -> (m, n)>],
    iterator_types = [{kinds}]
  }} ins(%first, %second : memref<{first}xf16>, memref<{second}xf16>)
    outs(%out : memref<32x64xf32>) {{
  ^bb0(%x: f16, %y: f16, %z: f32):
    %0 = arith.extf %x : f16 to f32
    %1 = arith.extf %y : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %z, %2 : f32
    linalg.yield %3 : f32
  }}
  return
}}
"""
SIZES = {"m": 32, "n": 64, "k": 16}

FILLED = """
func.func private @unknown()
func.func @f(%a: memref<32x32xf16>, %c: memref<32x32xf32>, %d: memref<32x32xf32>,
             %i: index) {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %own = memref.alloc() : memref<32x32xf32>
  {before}
  linalg.matmul ins(%a, %a : memref<32x32xf16>, memref<32x32xf16>)
                outs({out} : memref<32x32xf32>)
  return
}}
"""
ZERO = "linalg.fill ins(%zero : f32) outs({} : memref<32x32xf32>)"
ONE = "linalg.fill ins(%one : f32) outs(%c : memref<32x32xf32>)"
COPY = "memref.copy {}, {} : memref<32x32xf32> to memref<32x32xf32>"
LOAD = "%v = memref.load {}[%i, %i] : memref<32x32xf32>"


@contextmanager
def last_structured_op(text: str) -> Iterator[ir.Operation]:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        *_, last = structured_ops(module)
        yield last


def of_generic(loops: str, first: str, second: str) -> Contraction | Rejected:
    """What `classify` says of a generic op with these loops and operands."""

    def shape(letters: str) -> str:
        return "x".join(str(SIZES[letter]) for letter in letters)

    kinds = ", ".join('"reduction"' if i == "k" else '"parallel"' for i in loops)
    text = GENERIC.format(
        first=shape(first),
        second=shape(second),
        loops=", ".join(loops),
        first_map=", ".join(first),
        second_map=", ".join(second),
        kinds=kinds,
    )
    with last_structured_op(text) as op:
        return classify(op)


@pytest.mark.parametrize("loops", ["".join(order) for order in permutations("mnk")])
@pytest.mark.parametrize("rhs", ["kn", "nk"])
@pytest.mark.parametrize("swapped", [False, True])
def test_loops_by_role(loops: str, rhs: str, swapped: bool) -> None:
    inputs = (rhs, "mk") if swapped else ("mk", rhs)
    found = of_generic(loops, *inputs)
    assert isinstance(found, Contraction)
    assert (found.lhs, found.rhs, found.swapped) == ("mk", rhs, swapped)
    assert (found.m, found.n, found.k) == (32, 64, 16)
    types = (found.lhs_type, found.rhs_type, found.out_type)
    assert types == ("f16", "f16", "f32")


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (("mk", "mn"), "reduces a loop of one input alone, expected a loop of both"),
        (("mk", "mk"), "has an output loop that no input has"),
        (("mk", "kk"), "uses a loop twice in an operand, expected matrices"),
        (("kk", "kk"), "uses a loop twice in an operand, expected matrices"),
    ],
)
def test_rejected_roles(inputs: tuple[str, str], reason: str) -> None:
    found = of_generic("mnk", *inputs)
    assert isinstance(found, Rejected)
    assert found.reason == reason


def zero(name: str) -> str:
    return ZERO.format(name)


def copy(source: str, target: str) -> str:
    return COPY.format(source, target)


@pytest.mark.parametrize(
    ("out", "before", "kind"),
    [
        ("%c", [], "read"),
        ("%c", [zero("%c")], "zero"),
        ("%c", [ONE], "read"),
        ("%c", [zero("%c"), ONE], "read"),
        ("%c", [ONE, zero("%c")], "zero"),
        # Pure ops, and accesses to what cannot be C, stand in nobody's way.
        ("%c", [zero("%c"), "%n = arith.addi %i, %i : index"], "zero"),
        ("%c", [zero("%c"), zero("%own")], "zero"),
        ("%own", [zero("%own"), zero("%c")], "zero"),
        ("%own", [zero("%own"), LOAD.format("%c")], "zero"),
        # What may read or write C does: arguments may alias.
        ("%c", [zero("%c"), LOAD.format("%c")], "read"),
        ("%c", [zero("%c"), LOAD.format("%d")], "read"),
        ("%c", [zero("%c"), copy("%c", "%d")], "read"),
        ("%c", [zero("%c"), "call @unknown() : () -> ()"], "read"),
        ("%c", [zero("%c"), "scf.if %go { func.call @unknown() : () -> () }"], "read"),
        ("%c", [copy("%d", "%c")], "copy"),
        ("%c", [zero("%c"), copy("%d", "%c")], "copy"),
        ("%c", [copy("%d", "%c"), zero("%c")], "zero"),
        # The source must still hold what was copied.
        ("%own", [copy("%d", "%own"), zero("%c")], "read"),
        ("%own", [copy("%d", "%own"), "call @unknown() : () -> ()"], "read"),
        ("%c", [copy("%c", "%c")], "read"),
    ],
)
def test_init(out: str, before: list[str], kind: str) -> None:
    lines = ["%go = arith.constant true", *before]
    with last_structured_op(FILLED.format(before="\n".join(lines), out=out)) as op:
        contraction = classify(op)
        assert isinstance(contraction, Contraction)
        init = find_accumulator_init(contraction)
        assert init.kind == kind
        name = None if init.writer is None else init.writer.operation.name
        writers = {"zero": "linalg.fill", "copy": "memref.copy", "read": None}
        assert name == writers[kind]


def test_structured_ops_stay_outside_of_bodies() -> None:
    text = """
    func.func @f(%a: memref<4xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
                      iterator_types = ["parallel"]} outs(%a : memref<4xf32>) {
      ^bb0(%x: f32):
        %i = linalg.index 0 : index
        linalg.yield %x : f32
      }
      return
    }"""
    with last_structured_op(text) as op:
        assert op.name == "linalg.generic"
