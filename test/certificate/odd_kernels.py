"""Kernels that misbehave where a predicate holds: an access is outside of its array, a
barrier is left out.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.certificate.api import Report
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.compilation.certification import certified
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import emulate

THREADS, WORDS, SIZE = 32, 64, 16
ANY_SIZE = Requirement(1, 2**31 - 1)
_KERNEL = """
.version 8.3
.target sm_80
.address_size 64
{functions}
.visible .entry f(.param .u64 a, .param .u64 n)
.reqntid 32, 1, 1
{{
.reg .pred %p<9>;
.reg .f32 %f<9>;
.reg .b16 %h<9>;
.reg .b32 %r<20>;
.reg .b64 %d<20>, %a, %n;
.shared .align 16 .b8 buffer[1024];
ld.param.u64 %a, [a];
ld.param.u64 %n, [n];
mov.u32 %r1, %tid.x;
{body}
ret;
}}
"""
# The first is outside of the array where %p1 holds; the second reads of others what
# they have stored, with no barrier.
BEHIND = """
selp.b64 %d18, 0x10000, 0, %p1;
add.s64 %d19, %a, %d18;
ld.global.u32 %r19, [%d19];
"""
NO_BARRIER = """
mov.u32 %r16, buffer;
shl.b32 %r17, %r1, 2;
xor.b32 %r18, %r17, 4;
add.u32 %r17, %r16, %r17;
add.u32 %r18, %r16, %r18;
st.shared.u32 [%r17], %r1;
@%p1 bra PAST;
bar.sync 0;
PAST:
ld.shared.u32 %r19, [%r18];
"""


def kernel(body: str, functions: str = "") -> str:
    """With registers of all widths, a pointer %a, a size %n, and %r1, the thread."""
    return _KERNEL.format(body=body, functions=functions)


def outcome(text: str, value: int = 0) -> str:
    """Of runs where copies land late and early: clean, or what is the first fault.

    value: of each word of the array
    """
    for visibility in ("late", "early"):
        words = np.full(WORDS, value, np.uint32)
        launch = "f", (1, 1, 1), (THREADS, 1, 1), [words, SIZE]
        try:
            result = emulate(text, *launch, visibility=visibility)
        except EmulationError as error:
            return str(error)
        if result.hazards:
            return str(result.hazards[0])
    return "clean"


def verdict(text: str, is_open: bool) -> Report:
    """By numbers of all threads, or, with an open size, by one that stands for all."""
    lengths = (((1, ("n",)),),) if is_open else ()
    arrays = {"a": Array(((4 * WORDS, ()),), lengths)}
    grid = {f"%ctaid.{axis}": ((((1, ()),), 1),) for axis in "xyz"}
    given = Preconditions(arrays, {}, {"n": ANY_SIZE}, grid)
    return certified(text, "f", None, None, {}, 60, given)
