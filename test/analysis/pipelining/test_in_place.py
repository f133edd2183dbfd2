"""What is loaded early is not what an earlier iteration stored: said, and played.

The analysis and the verifier share nothing. What the first claims the second, which
plays some iterations, must find; and of what is wrong neither may say that it is right.
"""

from __future__ import annotations

from typing import Any

import pytest

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.in_place import loaded, may_spoil
from alcop_mlir.bindings import ir
from alcop_mlir.verifier.in_turn import is_read_first

KERNEL = """
gpu.module @kernels {
gpu.func @kernel(%A: memref<?xf32>, %M: memref<?x64xf32>, %n: index, %m: index)
    kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
  %x = gpu.thread_id x
  %y = gpu.thread_id y
  %b = gpu.block_id x
  CONSTANTS
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  scf.for %k = LOWER to %n step STEP {
    BODY
  }
  gpu.return
}
}
"""
CONSTANTS = "\n".join(
    f"%c{number} = arith.constant {number} : index" for number in (0, 1, 4)
)

pytestmark = pytest.mark.usefixtures("context")


def load(index: str, memref: str = "%A") -> str:
    return f"%v = memref.load {memref}[{index}] : {_kind(memref)}"


def store(index: str, memref: str = "%A") -> str:
    return f"memref.store %zero, {memref}[{index}] : {_kind(memref)}"


def _kind(memref: str) -> str:
    return {"%A": "memref<?xf32>", "%M": "memref<?x64xf32>"}[memref]


def at(name: str, of: str) -> str:
    """An index: a sum in the form of an affine expression."""
    given = "affine.apply affine_map<(k, x, y, b, m)"
    return f"{name} = {given} -> ({of})>(%k, %x, %y, %b, %m)"


def judged(body: str, lower: str = "%c0", step: str = "%c1") -> tuple[bool, bool]:
    """Whether the analysis, and the verifier, say that the load may run early."""
    text = KERNEL.replace("BODY", body).replace("LOWER", lower).replace("STEP", step)
    module = ir.Module.parse(text.replace("CONSTANTS", CONSTANTS))
    (read,) = walk(module.operation, "memref.load", "vector.load")
    (write,) = walk(module.operation, "memref.store", "vector.store")
    loop: Any = walk(module.operation, "scf.for")[0]
    target = write.operands[1]
    said = not may_spoil(write, target, loaded(read), loop, True)
    played = is_read_first(loop, (read, read.operands[0]), (write, target))
    return said, played


ROW = "%k, %x"
AFTER = at("%after", "k + 1")
PART = at("%at", "64 * k + x")


@pytest.mark.parametrize(
    ("body", "is_right"),
    [
        ([load(ROW, "%M"), store(ROW, "%M")], True),
        ([store(ROW, "%M"), load(ROW, "%M")], False),
        ([AFTER, load("%after, %x", "%M"), store(ROW, "%M")], True),
        ([AFTER, store(ROW, "%M"), load("%after, %x", "%M")], True),
        ([AFTER, load(ROW, "%M"), store("%after, %x", "%M")], False),
        ([load("%k, %m", "%M"), store("%k, %x", "%M")], True),
        ([load("%m, %x", "%M"), store("%m, %x", "%M")], False),
        ([load("%k, %x", "%M"), store("%m, %x", "%M")], False),
        ([PART, load("%at"), store("%at")], True),
        ([at("%at", "63 * k + x"), load("%at"), store("%at")], False),
        ([at("%at", "64 * k + x + m + b"), load("%at"), store("%at")], True),
        ([at("%at", "64 * k + x + 64 * y"), load("%at"), store("%at")], False),
        ([at("%at", "128 * k + x + 64 * y"), load("%at"), store("%at")], True),
        ([at("%at", "-64 * k + x + 64 * m"), load("%at"), store("%at")], True),
        ([at("%at", "16 * k + x mod 16"), load("%at"), store("%at")], True),
        ([at("%at", "8 * k + x mod 16"), load("%at"), store("%at")], False),
        ([AFTER, load("%k"), store("%after")], False),
    ],
    ids=str,
)
def test_elements(body: list[str], is_right: bool) -> None:
    assert judged("\n".join(body)) == (is_right, is_right)


def test_bounds_of_the_loop() -> None:
    body = f"{load('%k')}\n{store('%k')}"
    assert judged(body, "%m", "%c4") == (True, True)
    assert judged(body, "%x") == (False, False)
    assert judged(body, step="%m") == (True, True)
    assert judged(body, step="%x") == (False, False)


def test_what_is_loaded_may_be_negative() -> None:
    """Of the index of a load a part that is computed in the loop."""
    body = f"""
    %bits = arith.index_cast %k : index to i32
    %flipped = arith.xori %bits, %bits : i32
    %far = arith.index_cast %flipped : i32 to index
    {at("%at", "64 * k")}
    %from = arith.addi %at, %far : index
    {load("%from")}
    {store("%at")}"""
    assert judged(body)[0] is False


@pytest.mark.parametrize(("stride", "is_right"), [(4, True), (3, False)])
def test_vectors_and_views(stride: int, is_right: bool) -> None:
    body = f"""
    {at("%at", f"{stride} * k")}
    %view = memref.subview %M[%at, 0] [{stride}, 64] [1, 1]
        : memref<?x64xf32> to memref<{stride}x64xf32, strided<[64, 1], offset: ?>>
    %v = vector.load %view[%c0, %c0]
        : memref<{stride}x64xf32, strided<[64, 1], offset: ?>>, vector<4xf32>
    scf.for %i = %c0 to %c4 step %c1 {{
      %row = arith.addi %at, %i : index
      vector.store %zeros, %M[%row, %c0] : memref<?x64xf32>, vector<4xf32>
    }}"""
    assert judged(body) == (is_right, is_right)
