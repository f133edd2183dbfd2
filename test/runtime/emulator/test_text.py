"""Ways to write the same PTX: what compilers and people put around instructions."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from fixture_kernels import fixture
from kernel_text import launch, module

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import api, parse_ptx
from alcop_mlir.runtime.emulator.ptx.literals import constant_expression
from alcop_mlir.runtime.emulator.ptx.syntax import Module

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def result_of(text: str, kernel: str | None = None) -> list[int]:
    """What a kernel with one pointer parameter leaves in two words."""
    out = np.zeros(2, np.uint32)
    launch(text, kernel, (1,), (1,), [out])
    return out.tolist()


SEVEN = "mov.u32 %r, 7; ld.param.u64 %p, [p0]; st.global.u32 [%p], %r; ret;"
REGISTERS = ".reg .b32 %r; .reg .b64 %p;"


@pytest.mark.parametrize(
    "text",
    [
        HEADER + f".visible .entry k(.param .u64 p0) {{ {REGISTERS} {SEVEN} }}",
        HEADER + f".entry k\n(\n.param .u64 p0\n)\n{{{REGISTERS}{SEVEN}}}",
        HEADER + f".weak .entry k(.param .b64 p0) {{ {REGISTERS} {SEVEN} }}",
        HEADER
        + ".visible .entry k(.param .u64 .ptr .global .align 16 p0)\n"
        + f".maxntid 128\n.minnctapersm 2\n{{ {REGISTERS} {SEVEN} }}",
        HEADER
        + ".visible .entry k(.param .u64 .ptr .align 1 p0)\n"
        + f".reqntid 1, 1, 1\n.maxnreg 64\n{{ {REGISTERS} {SEVEN} }}",
        "// a comment\n/* and\n   another */ "
        + HEADER
        + f".visible .entry k(.param .u64 p0) /* here; { {'}'} } */ {{ {REGISTERS}\n"
        + SEVEN.replace(";", "; // bra AWAY;\n")
        + "}",
        HEADER.replace("\n", "\r\n")
        + f".visible .entry k(.param .u64 p0)\r\n{{\r\n{REGISTERS}\r\n{SEVEN}\r\n}}",
        HEADER.replace("sm_80", "sm_80, debug")
        + f".visible .entry k(.param .u64 p0) {{ {REGISTERS} {SEVEN} }}",
        HEADER
        + ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
        + f".visible .entry k(.param .u64 p0) {{ {REGISTERS} {SEVEN} }}",
        HEADER.replace("\n", " ")
        + f".visible.entry k(.param.u64 p0){{.reg.b32%r;.reg.b64%p;{SEVEN}}}",
        HEADER
        + ".global .u32 a = 1; .visible.global.u32 b = 7; .const .u32 c;"
        + f".entry k(.param .u64 p0) {{ {REGISTERS} "
        + SEVEN.replace("mov.u32 %r, 7", "ld.global.u32 %r, [b]")
        + "}",
    ],
    ids=[
        "one line",
        "bare entry",
        "weak, bits",
        "ptr, maxntid",
        "reqntid",
        "comments",
        "crlf",
        "debug target",
        "declaration",
        "header of one line, no blanks",
        "variables of one line",
    ],
)
def test_same_kernel(text: str) -> None:
    assert result_of(text) == [7, 0]


def body(instructions: str) -> str:
    return module(f"{REGISTERS}\nld.param.u64 %p, [p0];\n{instructions}", ["u64"])


@pytest.mark.parametrize(
    "instructions",
    [
        "mov.u32\t%r ,\t7 ;st.global.u32[%p],%r;",
        "mov.u32 %r, 7;\n\nst.global.u32 [ %p + 0 ], %r;",
        "mov.u32\n  %r,\n  7\n;\nst.global.u32 [%p+0x0], %r;",
        "add.u64 %p, %p, 16; mov.u32 %r, 7; st.global.u32 [%p+-16], %r;",
        "{ mov.u32 %r, 7; }\n{ { st.global.u32 [%p], %r; } }",
        "$L__BB0_1: mov.u32 %r, 7;\n$two: $three: st.global.u32 [%p], %r;",
        '.pragma "nounroll";\nmov.u32 %r, 7;\n.loc 1 2 3\nst.global.u32 [%p], %r;',
        ".reg .f32 %f<3>, %g; mov.f32 %g, 0f40E00000; cvt.rzi.u32.f32 %r, %g;"
        "st.global.u32 [%p], %r;",
        "mov.u32 %r, (3 + 4); st.global.u32 [%p], %r;",
        ".reg .pred %q; setp.eq.u32 %q, 1, 1; @%q bra.uni L; bra M;\n"
        "L: mov.u32 %r, 7; st.global.u32 [%p], %r;\nM:",
        "atom.global.add.u32 _, [%p], 3; mov.u32 %r, 7; st.global.u32 [%p], %r;",
    ],
)
def test_same_body(instructions: str) -> None:
    assert result_of(body(instructions)) == [7, 0]


def test_register_ranges_start_at_zero() -> None:
    instructions = ".reg .u32 %x<3>;\nmov.u32 %x0, 3; mov.u32 %x2, 4;\n"
    instructions += "add.u32 %r, %x0, %x2; st.global.u32 [%p], %r;"
    assert result_of(body(instructions)) == [7, 0]


def test_several_kernels() -> None:
    kernels = "".join(
        f".visible .entry k{n}(.param .u64 p0) {{ {REGISTERS} mov.u32 %r, {n};"
        "ld.param.u64 %p, [p0]; st.global.u32 [%p+4], %r; ret; }\n"
        for n in range(1, 4)
    )
    for n in range(1, 4):
        assert result_of(HEADER + kernels, f"k{n}") == [0, n]


def test_trailing_debug_sections() -> None:
    """What nvcc -G appends is no code."""
    text = body("mov.u32 %r, 7; st.global.u32 [%p], %r;")
    text += '.file 1 "a.cu"\n.section .debug_str\n{\ninfo_string0:\n.b8 95,90,0\n}\n'
    assert result_of(text) == [7, 0]


def test_parse_gives_kernels_with_parameters_and_lines() -> None:
    text = fixture("mma_types")
    kernels = parse_ptx(text).kernels
    assert list(kernels) == ["product_bf16", "product_tf32", "product_s8"]
    for name, kernel in kernels.items():
        assert kernel.name == name
        assert len(kernel.parameters) == 3
        for instruction in kernel.instructions:
            line = text.split("\n")[instruction.line - 1]
            assert instruction.opcode in line


def many_kernels(count: int) -> str:
    """A module of short kernels with source positions and a variable between them."""
    kernels = (
        f".visible .entry k{i}(.param .u64 p0)\n{{\n{REGISTERS}\n.loc 1 {i + 1} 0\n"
        f"{SEVEN}\n}}\n.global .u32 g{i};\n"
        for i in range(count)
    )
    return HEADER + '.file 1 "many.cu"\n' + "".join(kernels)


def test_a_module_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of its kernels run, and however often."""
    parsed: list[str] = []

    def noted(text: str) -> Module:
        parsed.append(text)
        return parse_ptx(text)

    monkeypatch.setattr(api, "parse_ptx", noted)
    text = many_kernels(3) + "// of this test alone\n"
    for kernel in ("k0", "k1", "k2", "k1"):
        assert result_of(text, kernel) == [7, 0]
    assert parsed == [text]


def test_positions_in_a_module_of_many_kernels() -> None:
    text = many_kernels(40)
    read = parse_ptx(text)
    lines = text.split("\n")
    assert list(read.variables) == [f"g{i}" for i in range(40)]
    for i, kernel in enumerate(read.kernels.values()):
        assert f".entry k{i}(" in lines[kernel.line - 1]
        first = kernel.instructions[0]
        assert first.source == f"many.cu:{i + 1}"
        assert lines[first.line - 1].startswith(first.text)


def test_the_line_of_a_variable_after_many_kernels() -> None:
    text = many_kernels(40) + ".global .wrong name;\n"
    at = text.count("\n")
    with pytest.raises(EmulationError, match=f"^PTX line {at}: cannot read the var"):
        parse_ptx(text)


def test_time_to_parse_grows_with_the_text() -> None:
    """Eight times the kernels take about eight times as long, not sixty-four."""

    def seconds(text: str) -> float:
        start = process_time()
        parse_ptx(text)
        return process_time() - start

    few, many = many_kernels(50), many_kernels(400)
    least = min(seconds(few) for _ in range(5))
    assert min(seconds(many) for _ in range(3)) < 20 * least


# What ptxas makes of them: the first words of the variable x, and its alignment.
DECLARED = {
    ".global .attribute(.managed) .align 8 .u32 x = 5;": (8, [5]),
    ".global .align 8 .attribute(.managed) .u32 x = 5;": (8, [5]),
    ".global .attribute(.managed, .unified(19, 95)) .u32 x[2] = {6, 7};": (4, [6, 7]),
    ".global .v4 .u8 x = {1, 2, 3, 4};": (4, [0x04030201]),
    ".global .v2 .f32 x[1] = {1.0, .5};": (8, [0x3F800000, 0x3F000000]),
    ".global .f32 x[2] = {1e3, 0d3FF8000000000000};": (4, [0x447A0000, 0x3FC00000]),
    ".global .b32 x = 1.5;": (4, [0x3FC00000]),
    ".global .f64 x = 0f3F800000;": (8, [0, 0x3FF00000]),
    ".global .u32 w = 1, x[2] = {2, 3}, y;": (4, [2, 3]),
    ".global .u32 x[2] = {(1<<4)|3, 5*7 + WARP_SZ};": (4, [19, 67]),
    ".global .b32 x[2][3] = {{1, 2}, {4}};": (4, [1, 2, 4, 0, 0, 0]),
    ".global .texref t; .global .surfref s; .global .u32 x = 8;": (4, [8]),
}


@pytest.mark.parametrize("text", DECLARED)
def test_variables_are_declared(text: str) -> None:
    align, words = DECLARED[text]
    module_of = HEADER + "DECLARED\n.entry k(.param .u64 p0) { ret; }"
    found = parse_ptx(module_of.replace("DECLARED", text.replace("; ", ";\n")))
    variable = found.variables["x"]
    data = (variable.data or b"").ljust(variable.size, b"\0")
    assert (variable.align, variable.size) == (align, 4 * len(words))
    assert np.frombuffer(data, "<u4").tolist() == words
    assert not {"t", "s"} & set(found.variables)


@pytest.mark.parametrize(
    "text",
    [
        ".global .attribute(.managed .u32 x;",
        ".global .v3 .u32 x;",
        ".global .u32 x, ;",
        ".global .u32 x = {1, y};",
        ".global .b16 x = 1.5;",
    ],
)
def test_variables_that_cannot_be_read(text: str) -> None:
    with pytest.raises(EmulationError, match=r"line 4: cannot read the (var|init)"):
        parse_ptx(HEADER + text + "\n.entry k() { ret; }")


def test_variables_of_scopes_side_by_side() -> None:
    """They have one name, and do not overlap."""
    text = """.entry k(.param .u64 p0) {
    .reg .b64 %p, %q; .reg .b32 %r, %s; ld.param.u64 %p, [p0];
    .shared .b32 x;
    st.shared.b32 [x], 1;
    { .shared .b32 x[4]; st.shared.b32 [x+12], 2; mov.u32 %s, x+12; }
    { .local .b32 x; st.local.b32 [x], 3; ld.local.b32 %r, [x]; }
    ld.shared.b32 %s, [%s]; mad.lo.u32 %r, %r, 10, %s;
    st.global.b32 [%p], %r;
    ld.shared.b32 %r, [x]; st.global.b32 [%p+4], %r; ret; }"""
    assert result_of(HEADER + text) == [32, 1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 ? 5 : 6", 5),
        ("(1 < 2) + (5 == 5) * 2 + !0 * 4", 7),
        ("WARP_SZ * 2 - 3 % 2", 63),
        ("0 || 2 && !3 ? 1 : 4 ? 8 : 9", 8),
        ("-7 / 2 * 10 - 7 % -4", -33),
        # What ptxas makes of these: unsigned by U and ~, shifts by 64 at most.
        ("-5U > 5U", 1),
        ("(~12 < 5)", 0),
        ("-7 >> 100", -1),
        ("(5U | 32) < -2", 1),
        ("1 |", None),
        ("(1 ? 2)", None),
        ("4 / (2 - 2)", None),
        ("1 2", None),
    ],
)
def test_constant_expressions(text: str, value: int | None) -> None:
    """Values are those of ptxas 13."""
    assert constant_expression(text) == value


def test_vector_registers() -> None:
    """Their elements, all of them, in inner scopes too."""
    text = """.entry k(.param .u64 p0) {
    .reg .b64 %p, %q; .reg .v4 .b32 %v; .reg .v2 .b32 w; .reg .b32 %r;
    ld.param.u64 %p, [p0];
    mov.v4.u32 %v, %ntid; mov.u32 %v.y, 40;
    { .reg .v2 .b32 %v; mov.u32 %v.x, 7; mov.u32 %v.g, 8; mov.b64 %q, %v; }
    mov.b64 {%r, w.x}, %q; mad.lo.u32 w.x, w.x, 100, %r;
    add.u32 w.x, w.x, %v.y; mov.u32 w.y, %v.r; add.u32 w.y, w.y, %v.w;
    st.global.v2.u32 [%p + (4 - 4)], w; ret; }"""
    assert result_of(HEADER + text) == [847, 1]
