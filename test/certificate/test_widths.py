"""Numbers in registers that are wider than what was loaded, converted or read; and
modifiers of opcodes.

Each kernel skips its waits where a predicate holds, which it does with the arguments
here: it is proven nowhere, and the certificate of one without the skip is not its.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from ring_kernels import THREADS, Ring

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.checker.machine.registers import UNIFORM_LOADS
from alcop_mlir.errors import CertificateError
from alcop_mlir.runtime.emulator import emulate

TURNS = 5
SIZE = {"n": Requirement(0, 2**31 - 1)}
LARGE = 200 + (200 << 8) + (200 << 16) + (200 << 24)  # each byte is above 127
DECLARED = """.reg .pred %p<12>;
  .reg .b16 %rs<4>;
  .reg .b32 %x<4>;
  .reg .b64 %xd<4>;"""

LOADS = [
    "ld.global.u8 %x1, [%rd1]; setp.gt.s32 %p9, %x1, 127;",
    "ld.global.u16 %x1, [%rd1]; setp.gt.s32 %p9, %x1, 32767;",
    "ld.global.u32 %xd1, [%rd1]; setp.gt.s64 %p9, %xd1, 2147483647;",
    "ld.global.u32 %x1, [%rd1]; cvt.u64.u32 %xd1, %x1; "
    "setp.gt.s64 %p9, %xd1, 2147483647;",
    "ld.global.u32 %x1, [%rd1]; and.b32 %x1, %x1, 255; cvt.s32.s8 %x2, %x1; "
    "setp.ne.s32 %p9, %x1, %x2;",
    "ld.global.u32 %x1, [%rd1]; and.b32 %x1, %x1, 65535; cvt.s32.s16 %x2, %x1; "
    "setp.ne.s32 %p9, %x1, %x2;",
    "ld.global.u16 %rs1, [%rd1]; add.u16 %rs2, %rs1, 1; cvt.u32.u16 %x2, %rs2; "
    "setp.gt.s32 %p9, %x2, 32767;",
]
PARAMETERS = [
    "ld.param.u8 %x1, [c]; setp.gt.s32 %p9, %x1, 127;",
    "ld.param.u64 %xd1, [m]; ld.param.s32 %x1, [m]; cvt.s64.s32 %xd2, %x1; "
    "setp.ne.s64 %p9, %xd1, %xd2;",
]
NUMBERS = [
    "mov.b32 %x1, 2147483647; add.sat.s32 %x2, %x1, 1; setp.gt.s32 %p9, %x2, 0;",
    "mov.b32 %x1, 300; cvt.sat.u8.s32 %x2, %x1; setp.eq.s32 %p9, %x2, 255;",
    "mov.b32 %x1, 200; cvt.s8.s32 %x2, %x1; setp.lt.s32 %p9, %x2, 0;",
]


def kernel(setup: str) -> str:
    """A ring that waits unless `%p9`."""
    text = Ring(3, 1).text()
    text = text.replace("cp.async.wait_group 1;", "@!%p9 cp.async.wait_group 1;")
    text = text.replace("mov.b32 %r5, 0;", f"mov.b32 %r5, 0;\n  {setup}", 1)
    text = text.replace(".param .u64 n)", ".param .u64 n, .param .u64 m, .param .u8 c)")
    return text.replace(".reg .pred %p<8>;", DECLARED)


def hazards(text: str) -> int:
    """Of a run in which copies land late."""
    data = np.full((TURNS + 1) * THREADS, LARGE, np.uint32)
    arguments = [data, np.zeros(THREADS, np.int32), TURNS, (1 << 33) + 5, 200]
    grid, block = (1, 1, 1), (THREADS, 1, 1)
    return len(emulate(text, "ring", grid, block, arguments, visibility="late").hazards)


@pytest.mark.parametrize("setup", [*LOADS, *PARAMETERS, *NUMBERS])
def test_what_skips_its_waits_is_not_proven(setup: str) -> None:
    text = kernel(setup)
    assert hazards(text)
    assert certify(text, requirements=SIZE).status != "proven"
    never = setup[: setup.rindex("setp")] + "setp.ne.s32 %p9, 0, 0;"
    found = certify(kernel(never), requirements=SIZE).certificate
    assert found is not None
    digest = hashlib.sha256(text.encode()).hexdigest()
    found["assumes"] = [*found["assumes"], UNIFORM_LOADS]
    with pytest.raises(CertificateError):
        check(text, sealed({**found, "ptx_sha256": digest}), Found())


@pytest.mark.parametrize("high", [2**31, 2**40])
def test_half_of_a_parameter_is_any_number(high: int) -> None:
    text = kernel("ld.param.s32 %x1, [m]; setp.lt.s32 %p9, %x1, 0;")
    needs = {**SIZE, "m": Requirement(0, high)}
    assert certify(text, requirements=needs).status != "proven"


def test_a_vote_is_no_copy_of_its_operand() -> None:
    setup = "setp.eq.s32 %p8, %r1, 99; vote.sync.all.pred %p9, %p8, -1;"
    assert certify(kernel(setup), requirements=SIZE).status != "proven"
