"""Whether a later iteration, or the same one, reads what a loop has stored."""

from __future__ import annotations

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.in_turn import is_read_first

LOAD = "%v = memref.load %A[%from] : memref<64xf32>"
STORE = "memref.store %zero, %A[%k] : memref<64xf32>"


@pytest.mark.parametrize(
    ("distance", "body", "expected"),
    [
        (0, (LOAD, STORE), True),
        (0, (STORE, LOAD), False),  # in the same iteration
        (1, (LOAD, STORE), True),
        (1, (STORE, LOAD), True),
        (-1, (LOAD, STORE), False),  # one iteration later
    ],
)
def test_in_one_iteration_or_a_later_one(
    context: None, distance: int, body: tuple[str, str], expected: bool
) -> None:
    module = ir.Module.parse(f"""
      gpu.module @kernels {{
        gpu.func @kernel(%A: memref<64xf32>, %n: index) kernel {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %far = arith.constant {distance} : index
          %zero = arith.constant 0.0 : f32
          scf.for %k = %c0 to %n step %c1 {{
            %from = arith.addi %k, %far : index
            {body[0]}
            {body[1]}
          }}
          gpu.return
        }}
      }}""")
    kernel = module.body.operations[0].regions[0].blocks[0].operations[0]
    loop = list(kernel.regions[0].blocks[0].operations)[-2].operation
    ops = {
        op.operation.name: op.operation for op in loop.regions[0].blocks[0].operations
    }
    load, store = ops["memref.load"], ops["memref.store"]
    read, written = (load, load.operands[0]), (store, store.operands[1])
    assert is_read_first(loop, read, written) == expected
