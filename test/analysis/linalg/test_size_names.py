"""Names of sizes that are known at run time only."""

from __future__ import annotations

import pytest

from alcop_mlir.analysis.linalg.size_names import named_sizes
from alcop_mlir.bindings import ir, make_context

MATMUL = """
  linalg.matmul ins(%a, %b : memref<{a}xf16>, memref<{b}xf16>)
    outs(%c : memref<{c}xf32>)"""


def sizes(arguments: str, body: str, returned: str = "") -> dict[str, list[int | str]]:
    """By argument, a size for each dimension."""
    text = f"func.func @f({arguments}) {{ {body} return }}"
    if returned:
        kinds = returned.split(" : ")[1]
        text = f"func.func @f({arguments}) -> {kinds} {{ {body} return {returned} }}"
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        func = module.body.operations[0].operation
        block = func.regions[0].blocks[0]
        names = {value: f"arg{n}" for n, value in enumerate(block.arguments)}
        for value in list(block.operations)[-1].operation.operands:
            names[value] = "result"
        found: dict[str, list[int | str]] = {}
        for (name, number), size in sorted(named_sizes(func, names).items()):
            assert len(found.setdefault(name, [])) == number
            found[name].append(size)
        return found


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (("?x?", "?x?", "?x?"), [["M", "K"], ["K", "N"], ["M", "N"]]),
        (("?x64", "?x?", "8x?"), [[8, 64], [64, "N"], [8, "N"]]),
        (("4x8", "8x16", "4x16"), [[4, 8], [8, 16], [4, 16]]),
    ],
)
def test_a_product(shapes: tuple[str, ...], expected: list[list[int | str]]) -> None:
    """By its loops; a size that is constant in one memref is so in all."""
    a, b, c = shapes
    arguments = f"%a: memref<{a}xf16>, %b: memref<{b}xf16>, %c: memref<{c}xf32>"
    found = sizes(arguments, MATMUL.format(a=a, b=b, c=c))
    assert list(found.values()) == expected


def test_a_second_product() -> None:
    """Its own sizes are called after the argument; shared ones keep their name."""
    arguments = (
        "%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, "
        "%d: memref<?x?xf16>, %e: memref<?x?xf32>, %x: memref<?xf32>"
    )
    body = (
        MATMUL.format(a="?x?", b="?x?", c="?x?")
        + """
      linalg.matmul ins(%a, %d : memref<?x?xf16>, memref<?x?xf16>)
        outs(%e : memref<?x?xf32>)"""
    )
    found = sizes(arguments, body)
    assert found["arg3"] == ["K", "arg3_1"]
    assert found["arg4"] == ["M", "arg3_1"]
    assert found["arg5"] == ["arg5_0"]


def test_batches_vectors_and_copies() -> None:
    arguments = (
        "%a: memref<?x?x?xf16>, %b: memref<?x?x?xf16>, %c: memref<?x?x?xf32>, "
        "%d: memref<?x?x?xf32>"
    )
    body = """
      memref.copy %d, %c : memref<?x?x?xf32> to memref<?x?x?xf32>
      linalg.batch_matmul ins(%a, %b : memref<?x?x?xf16>, memref<?x?x?xf16>)
        outs(%c : memref<?x?x?xf32>)"""
    found = sizes(arguments, body)
    assert found["arg0"] == ["B", "M", "K"]
    assert found["arg3"] == ["B", "M", "N"]
    body = """linalg.matvec ins(%a, %x : memref<?x?xf16>, memref<?xf16>)
                outs(%y : memref<?xf32>)"""
    arguments = "%a: memref<?x?xf16>, %x: memref<?xf16>, %y: memref<?xf32>"
    found = sizes(arguments, body)
    assert list(found.values()) == [["N", "K"], ["K"], ["N"]]


def test_several_batch_loops() -> None:
    arguments = (
        "%a: memref<?x?x?x?xf16>, %b: memref<?x?x?xf16>, %c: memref<?x?x?x?xf32>"
    )
    body = """
      linalg.contract indexing_maps = [
          affine_map<(b, h, m, n, k) -> (b, m, h, k)>,
          affine_map<(b, h, m, n, k) -> (h, n, k)>,
          affine_map<(b, h, m, n, k) -> (b, h, m, n)>]
        ins(%a, %b : memref<?x?x?x?xf16>, memref<?x?x?xf16>)
        outs(%c : memref<?x?x?x?xf32>)"""
    found = sizes(arguments, body)
    assert found["arg0"] == ["B", "M", "B2", "K"]
    assert found["arg1"] == ["B2", "N", "K"]


def test_results_of_tensors() -> None:
    """By the op that makes them, and by the sizes that an empty tensor is made with."""
    body = """
      %c1 = arith.constant 1 : index
      %n = tensor.dim %a, %c1 : tensor<?x?xf16>
      %e = tensor.empty(%n) : tensor<4x?xf16>
      %r = linalg.copy ins(%a : tensor<?x?xf16>) outs(%b : tensor<?x?xf16>)
        -> tensor<?x?xf16>"""
    found = sizes(
        "%a: tensor<?x?xf16>, %b: tensor<?x?xf16>", body, "%e : tensor<4x?xf16>"
    )
    assert found["arg0"] == found["arg1"] == ["arg0_0", "arg0_1"]
    assert found["result"] == [4, "arg0_1"]
