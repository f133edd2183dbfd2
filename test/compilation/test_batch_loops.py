"""End to end: contractions with several batch loops, in any order of each operand.

They run on tensor cores, give NumPy's numbers, and the same bits at all stage counts;
the emulator finds no hazard. Sizes may be known at run time only.
"""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.runtime.launch import Program

TILE = "block=32,32,16 warp=16,16"
SIZES = {"b": 2, "h": 3, "g": 2, "m": 40, "n": 24, "k": 48}
LOOPS = "bhgmnk"


def shape(letters: str, dynamic: str, element: str) -> str:
    sizes = ("?" if one in dynamic else str(SIZES[one]) for one in letters)
    return f"memref<{'x'.join((*sizes, element))}>"


def contraction(einsum: str, dynamic: str = "", attributes: str = "") -> str:
    """C += A * B of a text as "bmhk,bnhk->bhmn"."""
    inputs, c = einsum.split("->")
    operands = [*inputs.split(","), c]
    used = [one for one in LOOPS if one in einsum]
    maps = ", ".join(
        f"affine_map<({', '.join(used)}) -> ({', '.join(one)})>" for one in operands
    )
    a, b, c = (
        shape(one, dynamic, element)
        for one, element in zip(operands, ("f16", "f16", "f32"), strict=True)
    )
    return f"""
      func.func @f(%A: {a}, %B: {b}, %C: {c}) {{
        linalg.contract indexing_maps = [{maps}] {attributes}
          ins(%A, %B : {a}, {b}) outs(%C : {c})
        return
      }}"""


def check(program: Program, einsum: str, **sizes: int) -> np.ndarray:
    """Run it; C as it is afterwards."""
    extents = {**SIZES, **sizes}
    inputs, c = einsum.split("->")
    draw = np.random.default_rng(len(einsum))
    arrays = [
        draw.uniform(-1, 1, [extents[one] for one in letters]).astype(kind)
        for letters, kind in zip(
            (*inputs.split(","), c), ("f2", "f2", "f4"), strict=True
        )
    ]
    a, b, start = (array.astype("f8") for array in arrays)
    program(*arrays)
    expected = start + np.einsum(einsum, a, b)
    np.testing.assert_allclose(arrays[2], expected, atol=1e-4, rtol=0)
    return arrays[2]


def compiled(text: str, stages: str) -> Program:
    return alcop_mlir.compile(text, schedule=f"{TILE} stages={stages}")


FORMS = [
    "bmhk,bnhk->bhmn",  # scores of attention, tokens before heads
    "bhmk,bkhn->bmhn",  # the values by their scores
    "bhgmk,bhnk->gbhmn",  # queries in groups that share a head of keys
    "mbk,hkn->hbmn",  # each operand lacks a loop
    "bhmk,hkn->bmn",  # summed over the heads
    "hbk,bkhn->bhn",  # vectors
]


@pytest.mark.parametrize("einsum", FORMS)
def test_known_and_open_sizes(einsum: str) -> None:
    known = compiled(contraction(einsum), "3,2")
    (kernel,) = known.function.kernels
    stages = {(one.level, one.stages) for one in kernel.pipelines}
    assert stages == {("shared", 3), ("register", 2)}
    found = check(known, einsum)
    opened = compiled(contraction(einsum, dynamic=LOOPS), "1,1")
    np.testing.assert_array_equal(check(opened, einsum), found)
    check(opened, einsum, b=3, h=1, m=7, n=8, k=8)
    check(opened, einsum, b=0)


SCORES = """
func.func @f(%q: tensor<2x40x3x16xf16>, %k: tensor<2x24x3x16xf16>,
             %bias: tensor<3x40x24xf32>) -> tensor<2x3x40x24xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x40x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3x40x24xf32>)
    -> tensor<2x3x40x24xf32>
  %s = linalg.contract indexing_maps = [
      affine_map<(b, h, m, n, k) -> (b, m, h, k)>,
      affine_map<(b, h, m, n, k) -> (b, n, h, k)>,
      affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
    ins(%q, %k : tensor<2x40x3x16xf16>, tensor<2x24x3x16xf16>)
    outs(%f : tensor<2x3x40x24xf32>) -> tensor<2x3x40x24xf32>
  %o = tensor.empty() : tensor<2x3x40x24xf16>
  %r = linalg.generic {indexing_maps = [
      affine_map<(b, h, m, n) -> (b, h, m, n)>,
      affine_map<(b, h, m, n) -> (h, m, n)>,
      affine_map<(b, h, m, n) -> (b, h, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%s, %bias : tensor<2x3x40x24xf32>, tensor<3x40x24xf32>)
    outs(%o : tensor<2x3x40x24xf16>) {
  ^bb0(%x: f32, %y: f32, %old: f16):
    %0 = arith.addf %x, %y : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  } -> tensor<2x3x40x24xf16>
  return %r : tensor<2x3x40x24xf16>
}"""


def test_one_kernel_with_a_bias_of_each_head() -> None:
    program = alcop_mlir.compile(SCORES)
    draw = np.random.default_rng(0)
    shapes = (2, 40, 3, 16), (2, 24, 3, 16)
    q, k = (draw.uniform(-1, 1, one).astype("f2") for one in shapes)
    bias = draw.uniform(-1, 1, (3, 40, 24)).astype("f4")
    expected = np.einsum("bmhk,bnhk->bhmn", q.astype("f8"), k.astype("f8")) + bias
    assert len(program.function.kernels) == 1
    assert program.function.reference is not None
    np.testing.assert_allclose(program(q, k, bias), expected, atol=2e-2, rtol=0)


def test_variants_by_the_number_of_matrices() -> None:
    """A limit of the batch is one of the sizes of all its loops, multiplied."""
    schedule = "{block = [16, 16, 16], warp = [16, 16]}"
    ways = (
        f'{{schedule = {schedule}, limits = [{{loops = "b", most = 4 : i64}}]}}, '
        f"{{schedule = {schedule}}}"
    )
    einsum = "bmhk,bnhk->bhmn"
    text = contraction(einsum, "bh", f"{{alcop.variants = [{ways}]}}")
    program = alcop_mlir.compile(text)
    check(program, einsum, b=2, h=2)
    assert program.last_variants == (0,)
    check(program, einsum, b=2, h=3)
    assert program.last_variants == (1,)
