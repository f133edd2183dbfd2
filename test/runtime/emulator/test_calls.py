"""Calls: by name, by address, of themselves, with all that is passed, and the stack."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import launch, module

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result

ADD = """
.func (.param .b32 r) add (.param .b32 a, .param .b32 b)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [a];
    ld.param.u32 %r2, [b];
    add.s32 %r3, %r1, %r2;
    st.param.b32 [r], %r3;
    ret;
}
"""
MULTIPLY = ADD.replace("add", "mul").replace("mul.s32", "mul.lo.s32")
FIBONACCI = """
.func (.param .b32 r) fib (.param .b32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    ld.param.u32 %r8, [n];
    setp.lt.s32 %p1, %r8, 2;
    @%p1 bra DONE;
    add.s32 %r4, %r8, -1;
    { .param .b32 a; .param .b32 b;
    st.param.b32 [a+0], %r4;
    call.uni (b), fib, (a);
    ld.param.b32 %r5, [b+0]; }
    add.s32 %r6, %r8, -2;
    { .param .b32 a; .param .b32 b;
    st.param.b32 [a+0], %r6;
    call.uni (b), fib, (a);
    ld.param.b32 %r7, [b+0]; }
    add.s32 %r8, %r7, %r5;
DONE:
    st.param.b32 [r], %r8;
    ret;
}
"""
# An array of its own in each call: a[i] = n * i; a[n % 8] + sum(n - 1).
WITH_ARRAY = """
.func (.param .b32 r) sum (.param .b32 n)
{
    .local .align 16 .b8 depot[32];
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;
    ld.param.u32 %r1, [n];
    mov.u64 %rd1, depot;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
FILL:
    st.local.u32 [%rd1], %r3;
    add.u64 %rd1, %rd1, 4;
    add.u32 %r3, %r3, %r1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 8;
    @%p1 bra FILL;
    mov.u32 %r5, 0;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra DONE;
    sub.u32 %r4, %r1, 1;
    { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r4;
    call (b), sum, (a);
    ld.param.b32 %r5, [b]; }
DONE:
    and.b32 %r6, %r1, 7;
    mul.wide.u32 %rd2, %r6, 4;
    mov.u64 %rd1, depot;
    add.u64 %rd2, %rd1, %rd2;
    ld.local.u32 %r7, [%rd2];
    add.u32 %r8, %r7, %r5;
    st.param.b32 [r], %r8;
    ret;
}
"""
HEAD = """
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
"""
CALL_ONE = """
    { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r1;
    call (b), NAME, (a);
    ld.param.b32 %r2, [b]; }
    st.global.u32 [%rd3], %r2;
    ret;
"""
CALL_TWO = """
    mov.u32 %r4, 5;
    { .param .b32 a; .param .b32 b; .param .b32 c;
    st.param.b32 [a], %r1;
    st.param.b32 [b], %r4;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);
    call (c), WHOM, (a, b)LIST;
    ld.param.b32 %r2, [c]; }
    st.global.u32 [%rd3], %r2;
    ret;
"""


def run(
    before: str, body: str, threads: int = 64, **options: str
) -> tuple[np.ndarray, Result]:
    """What each thread stores in its own element."""
    out = np.zeros(threads, np.uint32)
    text = module(HEAD + body, ["u64"], before=before)
    result = launch(text, "kernel", (1,), (threads,), [out], **options)
    assert result.hazards == ()
    return out, result


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_a_function_is_called_by_name() -> None:
    out, _ = run(ADD, CALL_TWO.replace("WHOM", "add").replace("LIST", ""))
    np.testing.assert_array_equal(out, np.arange(64) + 5)


def test_a_function_may_stand_after_its_caller() -> None:
    body = HEAD + CALL_TWO.replace("WHOM", "add").replace("LIST", "")
    declared = ADD[: ADD.index("{")].rstrip() + ";\n"
    text = module(body, ["u64"], before=declared) + ADD
    out = np.zeros(32, np.uint32)
    launch(text, "kernel", (1,), (32,), [out])
    np.testing.assert_array_equal(out, np.arange(32) + 5)


@pytest.mark.parametrize("listed", ["", ", prototype"])
def test_functions_are_called_by_their_addresses(listed: str) -> None:
    """Lanes of one warp call different functions, from a table in memory."""
    table = ".global .align 8 .u64 table[2] = {add, mul};"
    body = """
    and.b32 %r3, %r1, 1;
    mul.wide.u32 %rd4, %r3, 8;
    mov.u64 %rd5, table;
    add.u64 %rd5, %rd5, %rd4;
    ld.global.u64 %rd6, [%rd5];
    """ + CALL_TWO.replace("WHOM", "%rd6").replace("LIST", listed)
    out, _ = run(ADD + MULTIPLY + table, body)
    i = np.arange(64)
    np.testing.assert_array_equal(out, np.where(i % 2, i * 5, i + 5))


def test_the_address_of_a_function_is_a_value() -> None:
    body = """
    mov.u64 %rd6, mul;
    setp.lt.u32 %p1, %r1, 10;
    @%p1 mov.u64 %rd6, add;
    """ + CALL_TWO.replace("WHOM", "%rd6").replace("LIST", "")
    out, _ = run(ADD + MULTIPLY, body)
    i = np.arange(64)
    np.testing.assert_array_equal(out, np.where(i < 10, i + 5, i * 5))


@pytest.mark.parametrize("schedule", ["lockstep", "descending", "random(3)"])
def test_a_function_may_call_itself_twice(schedule: str) -> None:
    body = "and.b32 %r1, %r1, 7;" + CALL_ONE.replace("NAME", "fib")
    out, _ = run(FIBONACCI, body, schedule=schedule)
    np.testing.assert_array_equal(out, [fibonacci(i & 7) for i in range(64)])


def test_each_call_has_variables_of_its_own() -> None:
    def model(n: int) -> int:
        return (n & 7) * n + (model(n - 1) if n else 0)

    out, _ = run(WITH_ARRAY, CALL_ONE.replace("NAME", "sum"), threads=40)
    np.testing.assert_array_equal(out, [model(i) for i in range(40)])


def test_functions_may_call_each_other() -> None:
    """even(n) is odd(n - 1), which is 1 - even(n - 1) by way of even."""
    one = """
.func (.param .b32 r) NAME (.param .b32 n)
{
    .reg .pred %p1;
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, START;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    sub.u32 %r3, %r1, 1;
    { .param .b32 a; .param .b32 b;
    st.param.b32 [a], %r3;
    call (b), OTHER, (a);
    ld.param.b32 %r2, [b]; }
DONE:
    st.param.b32 [r], %r2;
    ret;
}
"""
    even = one.replace("NAME", "even").replace("OTHER", "odd").replace("START", "1")
    odd = one.replace("NAME", "odd").replace("OTHER", "even").replace("START", "0")
    body = CALL_ONE.replace("NAME", "even")
    out, _ = run(odd[: odd.index("{")] + ";" + even + odd, body, threads=33)
    np.testing.assert_array_equal(out, 1 - np.arange(33) % 2)


def test_structures_registers_and_numbers_are_passed() -> None:
    """A structure of 12 bytes in, one of 16 out; a register and a number."""
    function = """
.func (.param .align 8 .b8 r[16]) mix (.param .align 4 .b8 s[12], .reg .b32 k,
                                       .param .b32 n)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u32 %r1, [s];
    ld.param.v2.u32 {%r2, %r3}, [s+4];
    ld.param.u32 %r4, [n];
    add.u32 %r1, %r1, k;
    add.u32 %r5, %r2, %r3;
    st.param.u32 [r], %r1;
    st.param.u32 [r+4], %r5;
    cvt.u64.u32 %rd1, %r4;
    st.param.u64 [r+8], %rd1;
    ret;
}
"""
    function = function.replace(
        "ld.param.v2.u32 {%r2, %r3}, [s+4]",
        ("ld.param.u32 %r2, [s+4]; ld.param.u32 %r3, [s+8]"),
    )
    body = """
    { .param .align 4 .b8 s[12]; .param .align 8 .b8 b[16];
    st.param.u32 [s], %r1;
    st.param.u32 [s+4], 100;
    st.param.u32 [s+8], 7;
    mov.u32 %r9, 1000;
    call (b), mix, (s, %r9, 33);
    ld.param.u32 %r2, [b];
    ld.param.u32 %r3, [b+4];
    ld.param.u64 %rd5, [b+8]; }
    cvt.u32.u64 %r4, %rd5;
    mad.lo.u32 %r2, %r3, 10000, %r2;
    mad.lo.u32 %r2, %r4, 100000000, %r2;
    st.global.u32 [%rd3], %r2;
    ret;
    """
    out, _ = run(function, body, threads=32)
    wanted = 1000 + np.arange(32) + 107 * 10000 + 33 * 100000000
    np.testing.assert_array_equal(out, wanted.astype(np.uint32))


def test_a_barrier_inside_a_function_orders_the_block() -> None:
    function = """
.shared .align 4 .b8 room[256];
.func (.reg .b32 r) turn (.reg .b32 i)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    mov.u64 %rd1, room;
    mul.wide.u32 %rd2, i, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.shared.u32 [%rd2], i;
    BARRIER
    sub.u32 %r1, 63, i;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    ld.shared.u32 r, [%rd2];
    ret;
}
"""
    body = HEAD + "call (%r2), turn, (%r1); st.global.u32 [%rd3], %r2; ret;"
    out = np.zeros(64, np.uint32)
    for barrier, kinds in (("bar.sync 0;", []), ("", ["read-after-write"])):
        text = module(body, ["u64"], before=function.replace("BARRIER", barrier))
        result = launch(text, "kernel", (1,), (64,), [out])
        assert [hazard.kind for hazard in result.hazards] == kinds
        if barrier:
            np.testing.assert_array_equal(out, np.arange(64)[::-1])


def test_threads_make_room_on_their_stacks() -> None:
    """alloca of as many bytes as each wants, given back by stackrestore."""
    body = """
    stacksave.u64 %rd8;
    add.u32 %r3, %r1, 1;
    mul.wide.u32 %rd4, %r3, 4;
    alloca.u64 %rd5, %rd4, 16;
    alloca.u64 %rd6, 16;
    st.local.u32 [%rd6], 77;
    mov.u32 %r4, 0;
    mov.u64 %rd7, %rd5;
NEXT:
    st.local.u32 [%rd7], %r4;
    add.u64 %rd7, %rd7, 4;
    add.u32 %r4, %r4, 1;
    setp.le.u32 %p1, %r4, %r1;
    @%p1 bra NEXT;
    ld.local.u32 %r5, [%rd7+-4];
    ld.local.u32 %r6, [%rd6];
    stackrestore.u64 %rd8;
    alloca.u64 %rd9, 16;
    setp.ne.u64 %p2, %rd9, %rd5;
    @%p2 trap;
    mad.lo.u32 %r5, %r6, 1000, %r5;
    st.global.u32 [%rd3], %r5;
    ret;
    """
    out, _ = run("", body, threads=48)
    np.testing.assert_array_equal(out, 77000 + np.arange(48))


# The device runtime -------------------------------------------------------------------

DECLARED = """
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc (.param .b64 a);
.extern .func free (.param .b64 a);
"""


def text_of(name: str, text: str) -> str:
    data = ", ".join(str(byte) for byte in text.encode())
    return f".global .align 1 .b8 {name}[{len(text) + 1}] = {{{data}, 0}};\n"


def test_printf_prints_for_each_thread() -> None:
    form = "%d:%5.2f|%s|%x%%|%c|%lld|%-4u|%*d;\n"
    body = """
    .local .align 8 .b8 values[64];
    mov.u64 %rd4, values;
    cvta.local.u64 %rd5, %rd4;
    neg.s32 %r2, %r1;
    st.local.u32 [%rd4], %r2;
    st.local.u64 [%rd4+8], 0d400921FB54442D18;
    mov.u64 %rd6, word;
    st.local.u64 [%rd4+16], %rd6;
    st.local.u32 [%rd4+24], 255;
    st.local.u32 [%rd4+28], 65;
    st.local.u64 [%rd4+32], -5000000000;
    st.local.u32 [%rd4+40], 7;
    st.local.u32 [%rd4+44], 6;
    st.local.u32 [%rd4+48], 12;
    mov.u32 %r3, 99;
    setp.gt.u32 %p1, %r1, 1;
    @%p1 bra DONE;
    mov.u64 %rd7, form;
    { .param .b64 a; .param .b64 b; .param .b32 c;
    st.param.b64 [a], %rd7;
    st.param.b64 [b], %rd5;
    call.uni (c), vprintf, (a, b);
    ld.param.b32 %r3, [c]; }
DONE:
    st.global.u32 [%rd3], %r3;
    ret;
    """
    data = text_of("form", form) + text_of("word", "word")
    out, result = run(DECLARED + data, body, threads=32)
    lines = [f"{-i}: 3.14|word|ff%|A|-5000000000|7   |    12;" for i in range(2)]
    assert result.printed.splitlines() == lines
    np.testing.assert_array_equal(out, [9, 9] + [99] * 30)


ALLOCATE = """
    { .param .b64 a; .param .b64 b;
    st.param.b64 [a], SIZE;
    call (b), malloc, (a);
    ld.param.b64 %rd4, [b]; }
"""
RELEASE = """
    { .param .b64 a;
    st.param.b64 [a], %rd4;
    call free, (a); }
"""


def test_threads_allocate_memory_of_their_own() -> None:
    use = "st.u32 [%rd4+12], %r1; ld.u32 %r2, [%rd4+12]; st.global.u32 [%rd3], %r2;"
    body = ALLOCATE.replace("SIZE", "16") + use + RELEASE + "ret;"
    out, _ = run(DECLARED, body)
    np.testing.assert_array_equal(out, np.arange(64))


def test_a_full_heap_gives_null() -> None:
    body = ALLOCATE.replace("SIZE", "1000000")
    body += "setp.ne.u64 %p1, %rd4, 0; selp.u32 %r2, 1, 0, %p1;"
    out, _ = run(DECLARED, body + "st.global.u32 [%rd3], %r2; ret;", threads=32)
    np.testing.assert_array_equal(out, [1] * 8 + [0] * 24)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ALLOCATE + "st.u32 [%rd4+16], %r1;", "0 bytes past the end of allocation 0"),
        (ALLOCATE + RELEASE + "st.u32 [%rd4], %r1;", "of malloc, freed"),
        (ALLOCATE + RELEASE + RELEASE, "free of address .* or which is free"),
        ("add.u64 %rd4, %rd1, 0;" + RELEASE, "free of address"),
    ],
)
def test_misuse_of_allocated_memory_is_a_fault(body: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message) as error:
        run(DECLARED, body.replace("SIZE", "16") + "ret;")
    assert "\n" not in str(error.value)


# Mistakes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "body", "message"),
    [
        (
            ".extern .func (.param .b32 r) other (.param .b32 a);",
            CALL_ONE.replace("NAME", "other"),
            r"not supported by the emulator: call .* \(function other has no body\)",
        ),
        (
            FIBONACCI.replace("add.s32 %r4, %r8, -1", "mov.u32 %r4, %r8"),
            "mov.u32 %r1, 3;" + CALL_ONE.replace("NAME", "fib"),
            "calls in each other, 1024 deep, PTX line",
        ),
        (
            WITH_ARRAY.replace("[32]", "[8192]").replace("%r1, 1;", "%r1, 0;"),
            "mov.u32 %r1, 3;" + CALL_ONE.replace("NAME", "sum"),
            "the stack of a thread is full: .* bytes of local memory, of 524288",
        ),
        (
            ADD,
            "mov.u64 %rd6, %rd1;"
            + CALL_TWO.replace("WHOM", "%rd6").replace("LIST", ", prototype"),
            "a call of address 0x70.*, where no function begins at block",
        ),
        (ADD, CALL_ONE.replace("NAME", "add"), "the function has other parameters"),
        (
            ADD.replace("add.s32", "tex.3d"),
            CALL_TWO.replace("WHOM", "add").replace("LIST", ""),
            "not supported by the emulator: tex.3d",
        ),
        (
            ADD.replace("add.s32", ".surfref x; add.s32"),
            CALL_TWO.replace("WHOM", "add").replace("LIST", ""),
            "directive not supported by the emulator",
        ),
        ("", "alloca.u64 %rd4, 99999999; ret;", "the stack of a thread is full"),
    ],
)
def test_mistakes_are_one_line(before: str, body: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message) as error:
        run(before, body, threads=32)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "function",
    [
        ADD.replace("add.s32", "tex.3d"),
        ADD.replace("add.s32", ".surfref x; add.s32"),
        ADD.replace("ld.param.u32 %r1, [a]", "call (%r1), missing, ()"),
    ],
)
def test_what_a_kernel_does_not_reach_does_not_stop_it(function: str) -> None:
    out, _ = run(function, "st.global.u32 [%rd3], %r1; ret;")
    np.testing.assert_array_equal(out, np.arange(64))
