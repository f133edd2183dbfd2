"""The description of a compiled function in a bundle: roles, sizes, checks."""

from __future__ import annotations

import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import AtMost, CeilDiv
from alcop_mlir.polynomials import size

OPAQUE = """
  // What no reference is known for: a pass through a scf.parallel of one's own.
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
    {body}
    scf.reduce
  }}"""


def compiled(arguments: str, body: str) -> Function:
    text = f"func.func @f({arguments}) {{ {body} return }}"
    options = compiler.Options(use_ptxas=False)
    return compiler.compile_source(inputs.read_text(text.encode()), options).function()


@pytest.mark.parametrize(
    ("body", "roles"),
    [
        (
            "%x = memref.load %a[%i] : memref<8xf32> "
            "memref.store %x, %b[%i] : memref<8xf32>",
            ["in", "out"],
        ),
        (
            "%x = memref.load %b[%i] : memref<8xf32> "
            "memref.store %x, %b[%i] : memref<8xf32>",
            ["in", "inout"],
        ),
    ],
)
def test_roles_are_what_kernels_do(body: str, roles: list[str]) -> None:
    """Where they do not follow from the function's own ops."""
    loops = OPAQUE.format(body=body)
    function = compiled("%a: memref<8xf32>, %b: memref<8xf32>", loops)
    assert function.reference == ()
    assert [parameter.role for parameter in function.parameters] == roles


def test_an_array_that_a_later_kernel_reads_is_still_an_output() -> None:
    """Its initial contents are not read."""
    write = "memref.store %z, %a[%i] : memref<8xf32>"
    read = (
        "%x = memref.load %a[%i] : memref<8xf32> "
        "memref.store %x, %b[%i] : memref<8xf32>"
    )
    zero = "%z = arith.constant 0.0 : f32"
    loops = OPAQUE.format(body=write) + OPAQUE.format(body=read).replace("%c", "%d")
    function = compiled("%a: memref<8xf32>, %b: memref<8xf32>", zero + loops)
    assert [parameter.role for parameter in function.parameters] == ["out", "out"]


def test_sizes_have_the_names_of_the_function() -> None:
    """Grids multiply them; a check that always holds is left out."""
    function = compiled(
        "%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?xf32>",
        """linalg.exp ins(%a : memref<?x?xf32>) outs(%b : memref<?x?xf32>)
        %flat = memref.collapse_shape %a [[0, 1]] : memref<?x?xf32> into memref<?xf32>
        linalg.exp ins(%flat : memref<?xf32>) outs(%c : memref<?xf32>)""",
    )
    rows, columns = size("arg0_0"), size("arg0_1")
    first, second = function.kernels
    assert first.grid[0] == CeilDiv(rows * columns, 256)
    assert second.grid[0] == CeilDiv(rows * columns, 256)
    assert function.checks == (AtMost(rows * columns, size("arg2_0")),)
