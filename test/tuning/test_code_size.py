"""The estimate of code, beside what is compiled."""

from __future__ import annotations

import re

import pytest
from tuning_cases import TARGET

pytest.importorskip("torch_mlir", exc_type=ImportError)

from alcop_mlir.compilation import inputs
from alcop_mlir.compilation.compiler import Options, compile_source
from alcop_mlir.resources import Copies
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import code_size

MATMUL = """
func.func @matmul(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>) {
  linalg.matmul ins(%A, %B : memref<?x?xf16>, memref<?x?xf16>)
    outs(%C : memref<?x?xf32>)
  return
}
"""


def compiled(variants: int) -> tuple[Bundle, dict[str, int]]:
    """A bundle, and the lines of its kernels."""
    options = Options(TARGET, use_ptxas=False, variants=variants)
    bundle = compile_source(inputs.read(MATMUL), options)
    entries = [re.split(r"\.entry ", code.ptx)[1:] for code in bundle.code.values()]
    found = {
        re.match(r"[\w$]+", text)[0]: text.count("\n")  # pyright: ignore
        for some in entries
        for text in some
    }
    return bundle, found


def test_four_variants_are_three_times_one_kernel() -> None:
    bundle, four = compiled(4)
    _, one = compiled(1)
    assert len(four) == 4
    once = 190  # lines, in whose time all is done that is done once
    assert once + sum(four.values()) <= 3 * (once + sum(one.values()))
    (launch,) = bundle.functions[0].launches
    widths = [16, 16, 4, 2]
    for variant, width in zip(launch.variants, widths, strict=True):
        (kernel,) = variant.kernels
        assert kernel.schedule is not None
        expected = code_size.lines(kernel.schedule, 2, Copies((width, width)))
        assert 0.8 < expected / four[kernel.name] < 1.25


def test_what_code_grows_with() -> None:
    small = Schedule((64, 64, 32), (32, 32), (3, 2))
    wide, narrow = Copies(), Copies((4, 4))
    lines = code_size.lines(small, 2, wide)
    for larger in (
        Schedule((64, 64, 32), (32, 32), (4, 2)),
        Schedule((64, 64, 64), (32, 32), (3, 2)),
        Schedule((64, 64, 32), (64, 32), (3, 2)),
        Schedule((64, 64, 32), (32, 32), (3, 2), split_k=2),
    ):
        assert code_size.lines(larger, 2, wide) > lines
    assert code_size.lines(small, 2, narrow) > lines
    # What threads load by elements has a single slot, whatever the stages are.
    deep = Schedule((64, 64, 32), (32, 32), (4, 2))
    by_elements = Copies((2, 2))
    found = [code_size.lines(one, 2, by_elements) for one in (small, deep)]
    assert found[0] == found[1]
