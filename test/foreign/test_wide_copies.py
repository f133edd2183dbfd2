"""Copies of more than 16 bytes per thread are pipelined, by several at a time."""

from __future__ import annotations

import numpy as np
import pytest
from differential import (
    SCHEDULES,
    VISIBILITIES,
    Both,
    Compiled,
    Settings,
    compile_both,
    launch,
)

# Each thread copies 8 f32 of a row, by a mask only the first %left of them; the sum of
# what its neighbour copied is stored.
KERNEL = """
#ws = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @kernel(%A: memref<5x128xf32>, %C: memref<16xf32>, %n: index, %left: index)
        workgroup(%a : memref<128xf32, #ws>)
        kernel attributes {known_block_size = array<i32: 16, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %c15 = arith.constant 15 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %at = arith.muli %t, %c8 : index
      %other = arith.subi %c15, %t : index
      %from = arith.muli %other, %c8 : index
      %zeros = arith.constant dense<0.0> : vector<8xf32>
      %mask = vector.create_mask %left : vector<8xi1>
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%old = %zero) -> (f32) {
        %v = LOAD
        vector.store %v, %a[%at] : memref<128xf32, #ws>, vector<8xf32>
        gpu.barrier
        %x = vector.load %a[%from] : memref<128xf32, #ws>, vector<8xf32>
        %y = vector.reduction <add>, %x, %old : vector<8xf32> into f32
        gpu.barrier
        scf.yield %y : f32
      }
      memref.store %sum, %C[%t] : memref<16xf32>
      gpu.return
    }
  }
}
"""
WHOLE = "vector.load %A[%k, %at] : memref<5x128xf32>, vector<8xf32>"
MASKED = """vector.maskedload %A[%k, %at], %mask, %zeros
            : memref<5x128xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>"""


@pytest.mark.parametrize("load", [WHOLE, MASKED], ids=["whole", "masked"])
def test_two_copies_of_16_bytes(load: str) -> None:
    both = compiled(KERNEL.replace("LOAD", load))
    assert both.pipelined.levels == {"shared"}
    modes = [(seen, order) for seen in VISIBILITIES for order in SCHEDULES]
    for left in (0, 3, 4, 6, 8, 9) if load == MASKED else (8,):
        for number, trips in enumerate((0, 1, 2, 5)):
            expected = sums(both.plain, trips, left, modes[0])
            mode = modes[(number + left) % len(modes)]
            assert sums(both.pipelined, trips, left, mode) == expected


def test_more_than_eight_are_refused() -> None:
    wide = KERNEL.replace("LOAD", WHOLE).replace("vector<8xf32>", "vector<36xf32>")
    assert not compiled(wide).pipelined.levels


def compiled(text: str) -> Both:
    both = compile_both(text, Settings((3, 1), noalias=True))
    assert both.wrong == ()
    return both


def sums(kernel: Compiled, trips: int, left: int, mode: tuple[str, str]) -> bytes:
    """The bits of what the block stores."""
    tile = np.random.default_rng(0).uniform(-1, 1, (5, 128)).astype("f4")
    out = np.zeros(16, "f4")
    assert launch(kernel, (1, 1, 1), (16, 1, 1), [tile, out, trips, left], mode) == ()
    return out.tobytes()
