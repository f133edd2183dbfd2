"""Each target by the instructions of sm_80, or of sm_90a where these are chosen: LLVM
knows it, ptxas takes the PTX, and the emulator, which has limits of its own for each,
runs it right.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime import ptx
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target, target_names

SIZE, DEPTH = 64, 256
# PTX ISA, ".target": the first version with the target; 8.4 for f8 by mma.sync, 8.6
# for tensor copies to a block's own memory.
VERSIONS = {"sm_80": 7.0, "sm_86": 7.1, "sm_89": 7.8, "sm_90": 7.8, "sm_90a": 8.0}
VERSIONS |= {"sm_100": 8.6, "sm_120": 8.7}
EIGHT_BITS = ("sm_89", "sm_120")  # ptxas has one QMMA for an mma.sync
ONE = {"f16": 1.0, "i8": 1, "f8E4M3FN": 0x38}
NUMPY = {"f16": np.float16, "i8": np.int8, "f8E4M3FN": np.uint8}


def text(kind: str, out: str) -> str:
    a, b, c = (
        f"memref<{rows}x{columns}x{one}>"
        for rows, columns, one in (
            (SIZE, DEPTH, kind),
            (DEPTH, SIZE, kind),
            (SIZE, SIZE, out),
        )
    )
    zero = "0" if out == "i32" else "0.0"
    return f"""
      func.func @f(%A: {a}, %B: {b}, %C: {c}) {{
        %z = arith.constant {zero} : {out}
        linalg.fill ins(%z : {out}) outs(%C : {c})
        linalg.matmul ins(%A, %B : {a}, {b}) outs(%C : {c})
        return
      }}"""


@pytest.mark.parametrize("kind", ONE)
@pytest.mark.parametrize("name", target_names())
def test_programs_run_and_assemble(name: str, kind: str) -> None:
    target, out = find_target(name), "i32" if kind == "i8" else "f32"
    options = compiler.Options(target=target, use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text(kind, out)), options)
    (kernel,) = bundle.functions[0].kernels
    code = bundle.code_of(kernel).ptx
    assert f".target {name}\n" in code
    found = re.search(r"\.version (\S+)", code)
    is_f8 = kind.startswith("f8") and name in EIGHT_BITS
    by_tma = name == "sm_90a" and kind == "f16"
    assert found
    least = 8.6 if by_tma else 8.4 if is_f8 else 0
    assert float(found[1]) == max(VERSIONS[name], least)
    assert ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" in code) is is_f8
    assert ("cp.async.bulk.tensor" if by_tma else "cp.async.cg.shared.global") in code
    if ptx.find_ptxas() is not None:
        cubin = ptx.assemble(code, target)
        assert cubin is not None
        assert cubin.spill_bytes == 0
    random = np.random.default_rng(1)
    a = random.integers(-2, 3, (SIZE, DEPTH))
    b = np.eye(DEPTH, SIZE, dtype=int)
    c = np.zeros((SIZE, SIZE), np.int32 if out == "i32" else np.float32)
    values = np.array([0xC0, 0xB8, 0, 0x38, 0x40]) if kind.startswith("f8") else None
    stored = a if values is None else values[a + 2]
    unit = b if values is None else b * ONE[kind]
    dtype = NUMPY[kind]
    Program(bundle, device="emulator")(
        stored.astype(np.uint8 if values is not None else dtype), unit.astype(dtype), c
    )
    assert np.array_equal(c, a[:, :SIZE])


SCALED = f"""
func.func @f(%A: memref<{SIZE}x{DEPTH}xf16>, %B: memref<{DEPTH}x{SIZE}xf16>,
             %s: memref<{SIZE}xf32>, %C: memref<{SIZE}x{SIZE}xf32>) {{
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%C : memref<{SIZE}x{SIZE}xf32>)
  linalg.matmul ins(%A, %B : memref<{SIZE}x{DEPTH}xf16>, memref<{DEPTH}x{SIZE}xf16>)
                outs(%C : memref<{SIZE}x{SIZE}xf32>)
  linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%s : memref<{SIZE}xf32>) outs(%C : memref<{SIZE}x{SIZE}xf32>) {{
  ^bb0(%scale: f32, %c: f32):
    %d = arith.mulf %c, %scale : f32
    %e = math.fma %d, %scale, %scale : f32
    linalg.yield %e : f32
  }}
  return
}}"""


@pytest.mark.parametrize("name", ["sm_90", "sm_100", "sm_120"])
def test_neighbours_are_computed_together(name: str) -> None:
    """LLVM packs two f32 into one instruction from sm_100 on."""
    options = compiler.Options(target=find_target(name), use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(SCALED), options)
    (kernel,) = bundle.functions[0].kernels
    code = bundle.code_of(kernel).ptx
    assert (".f32x2" in code) is (name != "sm_90")
    random = np.random.default_rng(1)
    a, b = (
        random.standard_normal(shape).astype(np.float16)
        for shape in ((SIZE, DEPTH), (DEPTH, SIZE))
    )
    scale, c = random.random(SIZE, np.float32), np.zeros((SIZE, SIZE), np.float32)
    Program(bundle, device="emulator")(a, b, scale, c)
    exact = (a.astype(float) @ b.astype(float)) * scale * scale + scale
    assert np.abs(c - exact).max() < 1e-3


@pytest.mark.parametrize(("name", "bytes_"), [("sm_100", 232448), ("sm_120", 101376)])
def test_shared_memory_is_that_of_the_target(name: str, bytes_: int) -> None:
    """One line says what is needed, and what there is."""
    schedule = Schedule((128, 128, 64), (64, 64), (8, 1))
    options = compiler.Options(
        target=find_target(name), schedule=schedule, use_ptxas=False
    )
    large = text("f16", "f32").replace("64x", "4096x").replace("256x", "4096x")
    with pytest.raises(CompileError) as caught:
        compiler.compile_source(inputs.read(large), options)
    said = f"needs 262144 bytes of shared memory, {name} has {bytes_} per block"
    assert said in str(caught.value)
