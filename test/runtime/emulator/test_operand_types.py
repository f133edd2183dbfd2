"""Operands of the wrong size or kind: refused where ptxas refuses, taken where it does.

PTX ISA "Operand Type Information", "Operand Size Exceeding Instruction-Type Size".
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.ptx import find_ptxas

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 p0) {
  .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  .reg .f32 %f<8>; .reg .f64 %d<4>; .reg .u32 %u<4>;
  .shared .align 16 .b8 tile[64];
  ld.param.u64 %rd1, [p0]; mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u16 %h1, 3;
  mov.f32 %f1, 0f3f800000; mov.f64 %d1, 0d3ff0000000000000; mov.u32 %u1, 1;
  setp.eq.u32 %p1, %r1, 1;
  st.shared.u32 [tile], %r1;
  CODE
  ret;
}
"""
INTEGER, FLOAT = "an integer, the operand a float", "a float, the operand an integer"
REFUSED = {
    "add.u32 %r3, %rd1, 3;": "%rd1 has 64 bits, the operand 32",
    "add.u16 %r3, %h1, 1;": "%r3 has 32 bits, the operand 16",
    "mov.u32 %r3, %rd1;": "%rd1 has 64 bits, the operand 32",
    "mov.u16 %h2, %r1;": "%r1 has 32 bits, the operand 16",
    "mul.lo.u32 %rd3, %r1, %r2;": "%rd3 has 64 bits, the operand 32",
    "shl.b32 %r3, %r1, %rd1;": "%rd1 has 64 bits, the operand 32",
    "clz.b32 %rd3, %r1;": "%rd3 has 64 bits, the operand 32",
    "fma.rn.f32 %f3, %f1, %f1, %d1;": "%d1 has 64 bits, the operand 32",
    "activemask.b32 %rd3;": "%rd3 has 64 bits, the operand 32",
    "ld.shared.f32 %d2, [tile];": "%d2 has 64 bits, the operand 32",
    "st.shared.f32 [tile], %d1;": "%d1 has 64 bits, the operand 32",
    "cvt.rn.f32.u32 %d2, %r1;": "%d2 has 64 bits, the operand 32",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4}, [tile];": (
        "expected a vector of 4 registers"
    ),
    "setp.lt.and.f32 %p2, %f1, %f1;": "expected 4 operands",
    "setp.lt.f32 %p2, %f1, %f1, %p1;": "expected 3 operands",
    "add.u32 %r3, %f1, 1;": f"%f1 is {FLOAT}",
    "setp.lt.s32 %p2, %f1, %r1;": f"%f1 is {FLOAT}",
    "abs.s32 %r3, %f1;": f"%f1 is {FLOAT}",
    "abs.f32 %f3, %u1;": f"%u1 is {INTEGER}",
    "add.f32 %f3, %f1, %u1;": f"%u1 is {INTEGER}",
    "add.f32 %f3, %f1, 1;": f"its constant is {INTEGER}",
    "setp.lt.f32 %p2, %f1, 0;": f"its constant is {INTEGER}",
    "rcp.rn.f32 %f3, 2;": f"its constant is {INTEGER}",
    "mov.u32 %r3, 0f3f800000;": f"its constant is {FLOAT}",
    "add.u32 %r3, %r1, 1.0;": f"its constant is {FLOAT}",
}
TAKEN = (
    # ld, st and cvt take wider registers of bits or integers.
    "ld.shared.u8 %r3, [tile];",
    "ld.shared.f32 %rd2, [tile];",
    "ld.shared.b16 %f3, [tile];",
    "st.shared.u16 [tile], %r1;",
    "st.shared.b32 [tile], %d1;",
    "cvt.rzi.u32.f32 %rd3, %f1;",
    "cvt.rn.f32.u32 %f3, %rd1;",
    "cvt.u32.u16 %r3, %r1;",
    # Bits agree with any type of their size.
    "add.f32 %f3, %f1, %r1;",
    "add.u32 %r3, %u1, %r1;",
    "mov.b32 %r3, %f1;",
    "mov.b32 %r3, 0f3f800000;",
    "and.b32 %f3, %f1, %r1;",
    "shl.b32 %f3, %f1, %r1;",
    "popc.b32 %r3, %f1;",
    "prmt.b32 %r3, %f1, %r2, %r1;",
    "shfl.sync.bfly.b32 %f3, %f1, 1, 31, -1;",
    "atom.global.exch.b32 %f3, [%rd1], %f1;",
    "add.s32 %r3, %r1, 0xffffffff;",
    "mov.u32 %r3, %tid.w;",
)


def run(code: str) -> None:
    text = KERNEL.replace("CODE", code)
    emulate(text, "kernel", (1, 1, 1), (32, 1, 1), [np.zeros(64, np.uint32)])


@pytest.mark.parametrize("code", REFUSED)
def test_refused(code: str) -> None:
    with pytest.raises(EmulationError) as caught:
        run(code)
    assert f"{code.removesuffix(';')} ({REFUSED[code]})" in str(caught.value)


@pytest.mark.parametrize("code", TAKEN)
def test_taken(code: str) -> None:
    run(code)


@pytest.mark.parametrize("code", [*REFUSED, *TAKEN])
def test_as_ptxas_does(code: str, tmp_path: Path) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("needs ptxas")
    source, made = tmp_path / "code.ptx", tmp_path / "code.cubin"
    source.write_text(KERNEL.replace("CODE", code), encoding="utf-8")
    command = [str(ptxas), "-arch=sm_80", "-o", str(made), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (code in TAKEN), done.stdout + done.stderr
