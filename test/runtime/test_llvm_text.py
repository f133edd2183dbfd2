"""runtime/llvm_text.py: what is hidden from LLVM, and what it cannot parse."""

from __future__ import annotations

import pytest

from alcop_mlir.runtime.llvm_text import for_llvmlite


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fadd float %5, 1.000000e-01", "fadd float %5, 0x3FB99999A0000000"),
        ("fmul float %4, f0x3B000000", "fmul float %4, 0x3F60000000000000"),
        ("fadd half %8, 9.997550e-02", "fadd half %8, 0xH2E66"),
        ("store half +inf, ptr %1", "store half 0xH7C00, ptr %1"),
        ("fadd bfloat %1, 1.000980e-01", "fadd bfloat %1, 0xR3DCD"),
        ("fadd double %1, 1.000000e-01", "fadd double %1, 1.000000e-01"),
        ("fadd double %1, f0x3FB3B13B13B13B14", "fadd double %1, 0x3FB3B13B13B13B14"),
        ("fadd double %1, -inf", "fadd double %1, 0xFFF0000000000000"),
        ("store float +qnan, ptr %1", "store float 0x7FF8000000000000, ptr %1"),
        ("store bfloat f0x7FC0, ptr %1", "store bfloat 0xR7FC0, ptr %1"),
        (
            "select i1 %c, float -0.5, half 0.5",
            "select i1 %c, float 0xBFE0000000000000, half 0xH3800",
        ),
    ],
)
def test_constants_are_written_for_the_older_parser(line: str, expected: str) -> None:
    assert for_llvmlite(line) == expected


def test_extensions_of_bfloat_are_shifts() -> None:
    assert for_llvmlite("  %3 = fpext bfloat %2 to float\n").splitlines() == [
        "  %bf16.3.h = bitcast bfloat %2 to i16",
        "  %bf16.3.w = zext i16 %bf16.3.h to i32",
        "  %bf16.3.s = shl i32 %bf16.3.w, 16",
        "  %3 = bitcast i32 %bf16.3.s to float",
    ]


def test_extensions_of_vectors_and_to_double() -> None:
    line = "%x = fpext <2 x bfloat> %v to <2 x double>, !dbg !7"
    *_, shifted, single, double = for_llvmlite(line).splitlines()
    assert shifted == "%bf16.x.s = shl <2 x i32> %bf16.x.w, splat (i32 16)"
    assert single == "%bf16.x.f = bitcast <2 x i32> %bf16.x.s to <2 x float>"
    assert double == "%x = fpext <2 x float> %bf16.x.f to <2 x double>, !dbg !7"


def test_a_bit_is_truncated_from_an_integer() -> None:
    """LLVM 22's NVPTX compares a float with 0 instead."""
    assert for_llvmlite("  %3 = fptosi <2 x float> %2 to <2 x i1>\n").splitlines() == [
        "  %bit.3 = fptosi <2 x float> %2 to <2 x i32>",
        "  %3 = trunc <2 x i32> %bit.3 to <2 x i1>",
    ]


def test_wide_integers_are_rounded_to_bfloat_once() -> None:
    """Each element of a vector; the rounding towards zero is declared, once."""
    lines = for_llvmlite(
        "  %3 = uitofp i64 %2 to bfloat\n"
        "  %4 = uitofp nneg <2 x i64> %v to <2 x bfloat>\n"
    ).splitlines()
    assert lines[0] == "  %odd.3.z = call float @llvm.nvvm.ull2f.rz(i64 %2)"
    assert lines[7] == "  %3 = fptrunc float %odd.3.f to bfloat"
    assert lines[-2].startswith("  %4 = insertelement <2 x bfloat> %odd.4.0.all, ")
    assert lines[-1] == "declare float @llvm.nvvm.ull2f.rz(i64)"
    assert len(lines) == 8 + 2 * 10 + 1


@pytest.mark.parametrize(
    "line",
    [
        "%x = sitofp i16 %v to bfloat",
        "%x = fpext half %v to float",
        "%x = fptrunc float %v to bfloat",
    ],
)
def test_other_conversions_stay(line: str) -> None:
    assert for_llvmlite(line) == line


def test_long_structs_are_written_once() -> None:
    """As of the results of a wgmma, from which each is taken apart."""
    many, more = ("{ " + ", ".join([kind] * 128) + " }" for kind in ("float", "i32"))
    text = (
        'source_filename = "kernel"\n'
        "@memory = external addrspace(3) global [0 x i8]\n"
        f"declare {many} @sums({more})\n"
        f"  %2 = extractvalue {many} %1, 0\n"
        f"  %3 = extractvalue {{ float, float }} %1, 0\n"
        f'  %4 = call {more} asm "{{ mov %r1, %r2; }}", "=r"()\n'
    )
    assert for_llvmlite(text).splitlines() == [
        'source_filename = "kernel"',
        f"%alcop.struct.0 = type {many}",
        f"%alcop.struct.1 = type {more}",
        "@memory = external addrspace(3) global [0 x i8]",
        "declare %alcop.struct.0 @sums(%alcop.struct.1)",
        "  %2 = extractvalue %alcop.struct.0 %1, 0",
        "  %3 = extractvalue { float, float } %1, 0",
        '  %4 = call %alcop.struct.1 asm "{ mov %r1, %r2; }", "=r"()',
    ]
