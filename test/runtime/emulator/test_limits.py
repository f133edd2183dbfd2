"""PTX and launches that would take all memory or time: refused in one line, at once."""

from __future__ import annotations

import time

import numpy as np
import pytest

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError, EmulationError
from alcop_mlir.runtime.emulator import emulate

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
KERNEL = """.visible .entry k(.param .u64 a) {
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [a];
  CODE
  ret;
}
"""


def run(code: str = "", top: str = "", **options) -> None:
    """Run a kernel with `code`, in a module with `top` besides."""
    text = HEAD + top + KERNEL.replace("CODE", code)
    given = {"grid": (1, 1, 1), **options}
    emulate(text, "k", given.pop("grid"), (32, 1, 1), [np.zeros(64)], **given)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("mov.u32 %r1, (1<<99999999999);", "cannot read the operand `1<<99999999999`"),
        ("mov.u32 %r1, 1<<-1;", "cannot read the operand `1<<-1`"),
        ("st.global.u32 38912], %r1;", "cannot read the operand `38912]`"),
        ("st.global.u32 [%rd1+], %r1;", r"cannot read the address `\[%rd1\+\]`"),
        ("st.global.u32 [%rd1+x], %r1;", r"cannot read the address `\[%rd1\+x\]`"),
        ("mov.u32 %r1, 08;", "cannot read the operand `08`"),
        (f"mov.u32 %r1, {'9' * 5000};", r"a number that is too long: `9{32}\.\.\.`"),
        (f"mov.u32 %r1, {'(' * 5000}1{')' * 5000};", "an operand that is too long"),
        (f"mov.u32 %r1, {'!' * 5000}1;", "an operand that is too long"),
        (f"mov.u32 %r1, {'%r1|' * 5000};", "an instruction of 200.. characters"),
        ("{" * 20 + "ret;" + "}" * 20, None),
        ("{\n.reg .b32 x;\n" * 200, "expected at most 100 scopes in each other"),
        ("mov.b128 %r1, {%rd1, %rd2};", "%r1 is too narrow"),
        (".reg .b128 %p1; @%p1 bra X; X:", "%p1 is not a predicate"),
        ("{.reg.b16 x; mov.b16 x, 1;}", None),
        (".reg;", r"cannot read the declaration `\.reg`"),
        (".branchtargets A;", r"expected a label before `\.branchtargets A`"),
        (".shared .align 0 .b8 x[4];", "expected .align of a power of two, got 0"),
        (
            ".local .b8 x[1000000000000];",
            "local memory of all threads: 32000000000000 bytes, expected at most "
            "1073741824; ALCOP_MAX_MEMORY=N allows more",
        ),
    ],
)
def test_damaged_or_huge_code(code: str, message: str | None) -> None:
    """One line that says where; what is right runs."""
    if message is None:
        run(code)
        return
    with pytest.raises(EmulationError, match=message) as caught:
        run(code)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_variable_of_a_terabyte() -> None:
    with pytest.raises(EmulationError, match="arrays and variables of the kernel: 10"):
        run(top=".global .b8 x[1000000000000];\n")


def test_a_grid_that_would_run_for_years() -> None:
    """Allowed by CUDA, which is faster; `ALCOP_MAX_BLOCKS` allows it here."""
    with pytest.raises(EmulationError, match=r"9223090559730712575 blocks, expected"):
        run(grid=(2**31 - 1, 65535, 65535))


def test_a_loop_without_an_end_meets_the_time_limit() -> None:
    started = time.perf_counter()
    with pytest.raises(EmulationError, match=r"time limit of 0\.2 seconds .*line 8; "):
        run("L: bra L;", time_limit=0.2)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 2**19,
        "/*" * 2**18,
        ".global\n" * 2**16,
        ".entry a(" * 2**16,
        HEAD + ".visible .entry k() {" + " " * 2**19,
        HEAD + ".visible .entry k() {" + "a" * 2**19,
        HEAD + ".visible .entry k() {" + "l: bra l;" * 2**14 + "}",
        HEAD + ".visible .entry k() {{" + "l: bra l;" * 2**14 + "}}",
        HEAD + ".global .b8 x[] = {" + "1," * 2**16 + "};",
    ],
)
def test_reading_takes_time_by_the_length_only(text: str) -> None:
    """Each of these took the square of its length, which is minutes."""
    started = time.perf_counter()
    with pytest.raises(EmulationError):
        emulate(text, "none", (1, 1, 1), (32, 1, 1), [])
    assert time.perf_counter() - started < 10


def test_a_text_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALCOP_MAX_PTX", "100")
    with pytest.raises(EmulationError, match=r"the PTX text: .* expected at most 100;"):
        run()
    monkeypatch.setenv("ALCOP_MAX_PTX", "many")
    with pytest.raises(ConfigError, match="ALCOP_MAX_PTX is 'many', expected a whole"):
        run()
    monkeypatch.delenv("ALCOP_MAX_PTX")
    run()


def test_numbers_of_any_size_are_shown() -> None:
    """Python refuses to print those of more than 4,300 digits."""
    assert limits.number(10**5000) == "more than 2^16609"
    with pytest.raises(ConfigError, match=r"x: more than 2\^16609 bytes, expected"):
        limits.ARRAYS.check(10**5000, "x")
