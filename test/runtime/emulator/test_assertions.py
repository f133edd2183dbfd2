"""Kernels that call `__assertfail`."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import launch, module

from alcop_mlir.errors import EmulationError

FUNCTION = ".extern .func __assertfail (.param .b64 a, .param .b32 b) .noreturn;"
TEXTS = """
.global .align 1 .b8 what[7] = {110, 111, 32, 50, 32, 33};
.global .align 1 .b8 file[4] = {102, 46, 99};
"""
# Thread i asserts that element i is not 2, then stores one more.
BODY = """
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    setp.ne.u32 %p1, %r2, 2;
    @%p1 bra GOOD;
    {
    .param .b64 param0;
    .param .b64 param1;
    .param .b32 param2;
    .param .b64 param3;
    .param .b64 param4;
    mov.b64 %rd4, what;
    cvta.global.u64 %rd5, %rd4;
    st.param.b64 [param0], %rd5;
    mov.b64 %rd6, file;
    cvta.global.u64 %rd7, %rd6;
    st.param.b64 [param1], %rd7;
    st.param.b32 [param2], 34;
    st.param.b64 [param3], %rd7;
    st.param.b64 [param4], 1;
    call.uni __assertfail, (param0, param1, param2, param3, param4);
    }
    exit;
    GOOD:
    add.u32 %r2, %r2, 1;
    st.global.u32 [%rd3], %r2;
    ret;
"""


def run(values: np.ndarray, body: str = BODY) -> np.ndarray:
    text = module(body, ["u64"], before=FUNCTION + TEXTS)
    values = values.copy()
    launch(text, "kernel", (1,), (len(values),), [values])
    return values


def test_an_assertion_that_holds_costs_nothing() -> None:
    values = np.arange(3, 67, dtype=np.uint32)
    np.testing.assert_array_equal(run(values), values + 1)


def test_one_that_does_not_stops_the_run() -> None:
    """With its message, where it is in the source, and which thread it was."""
    values = np.arange(10, 74, dtype=np.uint32)
    values[[37, 40]] = 2
    with pytest.raises(
        EmulationError,
        match=r"^assertion failed: no 2 ! \(f\.c:34\) at block \(0, 0, 0\) warp 1",
    ):
        run(values)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("call.uni __assertfail", "call.uni other", "function other has no body"),
        (
            "(param0, param1, param2, param3, param4)",
            "(param0)",
            "__assertfail takes more arguments",
        ),
        ("[param1], %rd7", "[param1+4], %rd7", "misaligned 8-byte local access"),
        ("[param1], %rd7", "[p0], %rd7", "the param space cannot be written"),
    ],
)
def test_others_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        run(np.full(32, 2, np.uint32), BODY.replace(old, new))
