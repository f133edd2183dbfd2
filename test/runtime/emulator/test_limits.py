"""PTX and launches that would take all memory or time: refused in one line, at once."""

from __future__ import annotations

import time

import numpy as np
import pytest

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError, EmulationError
from alcop_mlir.runtime.emulator import Struct, emulate

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
        ("mov.u32 %r1, 5/(2-2);", r"cannot read the operand `5/\(2-2\)`"),
        ("mov.u32 %r1, 1<<-1 2;", "cannot read the operand `1<<-1 2`"),
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
            "1000000000000 bytes of local memory; a thread may have at most 524288",
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
    started = time.process_time()
    with pytest.raises(EmulationError, match=r"time limit of 0\.2 seconds .*line 8; "):
        run("L: bra L;", time_limit=0.2)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 2**19,
        "/*" * 2**18,
        ".global\n" * 2**16,
        ".entry a(" * 2**16,
        HEAD + ".visible .entry k() {" + " " * 2**19,
        HEAD + ".visible .entry k() {" + "a" * 2**19,
        HEAD
        + ".visible .entry k() {"
        + "".join(f"l{i}: bra l{i};" for i in range(2**14))
        + "}",
        HEAD
        + ".visible .entry k() {{"
        + "".join(f"l{i}: bra l{i};" for i in range(2**14))
        + "}}",
        HEAD + ".global .b8 x[] = {" + "1," * 2**16 + "};",
    ],
)
def test_reading_takes_time_by_the_length_only(text: str) -> None:
    """Each of these took the square of its length, which is minutes."""
    started = time.process_time()
    with pytest.raises(EmulationError):
        emulate(text, "none", (1, 1, 1), (32, 1, 1), [])
    assert time.process_time() - started < 10


def test_a_text_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALCOP_MAX_PTX", "100")
    with pytest.raises(EmulationError, match=r"the PTX text: .* expected at most 100;"):
        run(top="// read by no other test\n")
    monkeypatch.setenv("ALCOP_MAX_PTX", "many")
    with pytest.raises(ConfigError, match="ALCOP_MAX_PTX is 'many', expected a whole"):
        run(top="// read by no other test\n")
    monkeypatch.delenv("ALCOP_MAX_PTX")
    run()
    monkeypatch.setenv("ALCOP_MAX_PTX", "100")  # also for a text that was read before
    with pytest.raises(EmulationError, match="the PTX text"):
        run()


def test_numbers_of_any_size_are_shown() -> None:
    """Python refuses to print those of more than 4,300 digits."""
    assert limits.number(10**5000) == "more than 2^16609"
    with pytest.raises(ConfigError, match=r"x: more than 2\^16609 bytes, expected"):
        limits.ARRAYS.check(10**5000, "x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": (1.5, 1, 1)}, r"expected a grid of three numbers .* got \(1\.5"),
        ({"grid": ("a", 1, 1)}, r"expected a grid of three numbers"),
        ({"grid": None}, "expected a grid of three numbers .* got None"),
        ({"grid": (0, 1, 1)}, "expected a grid of three numbers from 1 to"),
        ({"dynamic_shared": 1.5}, "expected dynamic_shared of 0 bytes or more, got 1"),
        ({"dynamic_shared": "a"}, "expected dynamic_shared of 0 bytes or more, got 'a"),
        ({"dynamic_shared": -1}, "expected dynamic_shared of 0 bytes or more, got -1"),
        (
            {"dynamic_shared": 10**15},
            "needs 1000000000000000 bytes a block; sm_80 offe",
        ),
        (
            {"instruction_limit": "x"},
            "expected an instruction_limit of 1 or more, got ",
        ),
        ({"time_limit": "x"}, "expected a time_limit of 0 seconds or more, got 'x'"),
        ({"time_limit": -1}, "expected a time_limit of 0 seconds or more, got -1"),
        ({"time_limit": float("nan")}, "expected a time_limit of 0 seconds or more"),
        ({"max_reports": "x"}, "expected max_reports of 0 or more, got 'x'"),
        ({"schedule": None}, "expected a schedule of lockstep, .* got 'None'"),
        ({"visibility": None}, 'expected a visibility of "late" or "early", got None'),
        ({"symbols": [1]}, r"expected symbols by their names, got \[1\]"),
        ({"symbols": {"x": 1}}, "variable 'x': expected an array, got 1"),
    ],
)
def test_options_of_other_kinds(options: dict, message: str) -> None:
    with pytest.raises(EmulationError, match=message) as caught:
        run(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [None, "a", 5])
def test_arguments_that_are_no_list(given: object) -> None:
    text = HEAD + KERNEL.replace("CODE", "")
    with pytest.raises(EmulationError, match="expected a list of arguments, got"):
        emulate(text, "k", (1, 1, 1), (32, 1, 1), given)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**70])
def test_numbers_that_are_no_address(number: float) -> None:
    text = HEAD + KERNEL.replace("CODE", "")
    with pytest.raises(EmulationError, match=r"is a u64[;,]"):
        emulate(text, "k", (1, 1, 1), (32, 1, 1), [number])


@pytest.mark.parametrize("size", [0, -1, 10**12, "x"])
def test_a_structure_of_no_size(size: int) -> None:
    with pytest.raises(EmulationError, match="expected a structure of 1 to 32764 b"):
        Struct(size, {})


def test_constants_that_no_module_has() -> None:
    """As ptxas has it, of the whole module: 65,536 bytes are taken."""
    run(top=".const .b8 x[65536];\n")
    with pytest.raises(
        EmulationError, match="has 65540 bytes of constants; it may hav"
    ):
        run(top=".const .b8 x[65536];\n.const .b32 y;\n")


def test_more_initial_values_than_elements() -> None:
    run(top=".global .b8 x[3] = {1, 2, 3};\n.global .b8 y[] = {1, 2};\n")
    with pytest.raises(EmulationError, match="more initial values than elements: `"):
        run(top=".global .b8 x[2] = {1, 2, 3};\n")


def test_local_memory_that_no_thread_has() -> None:
    run(".local .b8 x[524288]; mov.u64 %rd2, x;")
    with pytest.raises(
        EmulationError, match="600000 bytes of local memory; a thread m"
    ):
        run(".local .b8 x[600000]; mov.u64 %rd2, x;")


def test_parameters_by_version() -> None:
    """4,352 bytes before PTX ISA 8.1, 32,764 since."""
    text = HEAD + ".visible .entry k(.param .b8 a[5000]) { ret; }"
    with pytest.raises(
        EmulationError, match="has 5000 bytes of parameters; before PTX"
    ):
        emulate(text, "k", (1, 1, 1), (32, 1, 1), [bytes(5000)])
    newer = text.replace(".version 7.8", ".version 8.1")
    emulate(newer, "k", (1, 1, 1), (32, 1, 1), [bytes(5000)])


def test_more_instructions_than_a_kernel_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALCOP_MAX_INSTRUCTIONS", "100")
    run("add.u32 %r1, %r1, 1;" * 98)
    with pytest.raises(
        EmulationError, match="k: 101 instructions, expected at most 10"
    ):
        run("add.u32 %r1, %r1, 1;" * 99)


def test_an_instruction_of_many_operands_is_not_shown_whole() -> None:
    with pytest.raises(EmulationError, match="not supported") as caught:
        run(f"ld.global.v4.u32 {{{','.join(['%r1'] * 1000)}}}, [%rd1];")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("code", "top"),
    [
        ("", "".join(f".global .b32 x{i};\n" for i in range(20_000))),
        (
            "".join(f"bra L{i};\nL{i}: add.u32 %r1, %r1, 1;\n" for i in range(10_000)),
            "",
        ),
        (".reg .b32 %q<1000000000>; mov.u32 %q999999999, 1;", ""),
        ("", ".global .b8 x[200000] = {" + "1," * 199_999 + "1};\n"),
        ("", "".join(f".func f{i}() {{ ret; }}\n" for i in range(3000))),
    ],
    ids=["variables", "branches", "registers", "initial values", "functions"],
)
def test_many_of_what_has_no_limit_of_its_own(code: str, top: str) -> None:
    """Their number is limited by that of the text's bytes: time grows with it only."""
    started = time.process_time()
    run(code, top)
    assert time.process_time() - started < 10
