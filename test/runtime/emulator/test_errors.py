"""Bad input: one clear error each, before anything runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fixture_kernels import fixture
from kernel_text import line_of, module

from alcop_mlir.errors import AlcopError, EmulationError
from alcop_mlir.runtime.emulator import emulate, parse_ptx

BODY = ".reg .b64 %p; .reg .b32 %r;\nld.param.u64 %p, [p0];\nst.global.u32 [%p], %r;"


def fails(match: str, text: str, *arguments: Any, **options: Any) -> None:
    """`emulate` refuses with this message, which fits on a few lines."""
    call = {
        "kernel": "kernel",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "args": [],
    } | options
    with pytest.raises(AlcopError, match=match) as caught:
        emulate(
            text,
            call.pop("kernel"),
            call.pop("grid"),
            call.pop("block"),
            call.pop("args"),
            **call,
        )
    assert len(str(caught.value)) < 600
    assert not isinstance(caught.value.__cause__, (KeyError, IndexError, TypeError))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "hello world",
        "; ModuleID = 'x'\ndefine void @kernel() { ret void }",
        "\x7fELF\x02\x01",
        "module { func.func @kernel() { return } }",
    ],
)
def test_not_ptx(text: str) -> None:
    fails("(?i)not PTX", text)


def test_missing_kernel_lists_those_there_are() -> None:
    fails(r"nothing.*product_bf16", fixture("mma_types"), kernel="nothing")


def test_no_name_takes_the_only_kernel() -> None:
    out = np.ones(32, np.uint32)
    emulate(module(BODY, ["u64"]), None, (1, 1, 1), (1, 1, 1), [out])


def test_no_name_but_several_kernels() -> None:
    fails(r"product_bf16.*product_tf32.*product_s8", fixture("mma_types"), kernel=None)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_arguments(count: int) -> None:
    text = module(BODY, ["u64", "u32"])
    fails(rf"2 .*{count}|{count} .*2", text, args=[np.zeros(4, np.uint32)] * count)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("u32", 2**32),
        ("s32", -(2**31) - 1),
        ("u8", 256),
        ("s8", -129),
        ("u64", 2**64),
        ("u16", 70000),
    ],
)
def test_scalar_that_does_not_fit(kind: str, value: int) -> None:
    fails(rf"p0.*\b{kind}\b.*{value}", module("ret;", [kind]), args=[value])


@pytest.mark.parametrize(("kind", "value"), [("u32", -7), ("s32", 2**32 - 7)])
def test_either_sign_fits_an_integer(kind: str, value: int) -> None:
    """nvcc declares `int` parameters as .u32: signs are the kernel's affair."""
    body = ".reg .b64 %p; .reg .b32 %r;\nld.param.u64 %p, [p0];\n"
    body += f"ld.param.{kind} %r, [p1];\nst.global.u32 [%p], %r;"
    out = np.zeros(1, np.int32)
    text = module(body, ["u64", kind])
    emulate(text, "kernel", (1, 1, 1), (1, 1, 1), [out, value])
    assert out[0] == -7


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("u32", np.zeros(4, np.uint32)),
        ("f32", np.zeros(4, np.float32)),
        ("u32", "seven"),
        ("u64", None),
        ("u32", 1.5),
    ],
)
def test_argument_of_the_wrong_sort(kind: str, value: Any) -> None:
    fails("p0", module("ret;", [kind]), args=[value])


def test_strided_and_overlapping_arrays_are_memory() -> None:
    """A pointer to a view's first element; views of one array share its bytes."""
    body = """
    .reg .b64 %a, %b; .reg .b32 %r;
    ld.param.u64 %a, [p0]; ld.param.u64 %b, [p1];
    ld.global.u32 %r, [%a+8];
    st.global.u32 [%b], %r;
    ld.global.u32 %r, [%a+12];
    st.global.u32 [%a], %r;
    """
    whole = np.arange(8, dtype=np.uint32)
    text = module(body, ["u64", "u64"])
    emulate(text, "kernel", (1, 1, 1), (1, 1, 1), [whole[::2], whole[3:]])
    # element 2 went to element 3, and from there to element 0
    assert whole.tolist() == [2, 1, 2, 2, 4, 5, 6, 7]


def test_array_that_cannot_be_written() -> None:
    array = np.zeros(32, np.uint32)
    array.flags.writeable = False
    fails("(?i)read-only|writ", module(BODY, ["u64"]), args=[array])


def test_array_that_is_only_read_may_be_read_only() -> None:
    body = ".reg .b64 %p; .reg .b32 %r;\nld.param.u64 %p, [p0];\n"
    array = np.zeros(32, np.uint32)
    array.flags.writeable = False
    emulate(
        module(body + "ld.global.u32 %r, [%p];", ["u64"]),
        "kernel",
        (1, 1, 1),
        (32, 1, 1),
        [array],
    )


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 1, -1), (), (1, 1, 1, 1)])
def test_bad_grid(grid: tuple[int, ...]) -> None:
    fails("(?i)grid", module("ret;"), grid=grid)


@pytest.mark.parametrize(
    "block", [(0, 1, 1), (32, 0, 1), (-32, 1, 1), (), (1, 1, 1, 1)]
)
def test_bad_block(block: tuple[int, ...]) -> None:
    fails("(?i)block", module("ret;"), block=block)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"visibility": "sometimes"}, "late.*early.*sometimes"),
        ({"schedule": "backwards"}, "lockstep.*ascending.*descending.*backwards"),
        ({"schedule": "random(x)"}, r"(?s)random\(x\)"),
        ({"dynamic_shared": -1}, "-1"),
        ({"instruction_limit": 0}, "0"),
        ({"max_reports": -1}, "-1"),
    ],
)
def test_bad_option(options: dict[str, Any], match: str) -> None:
    fails(match, module("ret;"), **options)


@pytest.mark.parametrize("version", ["99.0", "12.7"])
def test_version_beyond_the_subset(version: str) -> None:
    fails(rf"{re.escape(version)}", module("ret;", version=version))


@pytest.mark.parametrize("target", ["sm_101", "sm_110a", "sm_70", "gfx90a"])
def test_target_beyond_the_subset(target: str) -> None:
    fails(rf"(?s){target}.*sm_80", module("ret;", target=target, version="8.7"))


@pytest.mark.parametrize(
    "target",
    ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"],
)
def test_target_within_the_subset(target: str) -> None:
    text = module("ret;", target=target, version="8.0")
    emulate(text, "kernel", (1, 1, 1), (32, 1, 1), [])


@pytest.mark.parametrize(
    "unknown",
    [
        "frobnicate.u32 %r, %r;",
        "add.u33 %r, %r, 1;",
        "tex.2d.v4.f32.s32 {%r}, [%p];",
        "mma.sync.aligned.m99n8k16.row.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, {%r};",
        "cvt.rn.f99.f32 %r, %r;",
        "tcgen05.fence::before_thread_sync;",
    ],
)
def test_unknown_instruction_names_itself_and_its_line(unknown: str) -> None:
    text = module(f".reg .b32 %r; .reg .b64 %p;\nmov.u32 %r, 1;\n{unknown}\nret;")
    line = line_of(text, unknown)
    fails(
        rf"(?s){re.escape(unknown.split()[0].rstrip(';'))}.*\b{line}\b"
        rf"|\b{line}\b.*{re.escape(unknown.split()[0].rstrip(';'))}",
        text,
    )


def test_unknown_instruction_is_found_even_if_it_is_never_reached() -> None:
    text = module("bra END;\nfrobnicate.u32 1, 2;\nEND:\nret;")
    fails("frobnicate", text)


def test_cp_async_size_that_does_not_exist() -> None:
    body = ".reg .b32 %a; .reg .b64 %p;\ncp.async.cg.shared.global [%a], [%p], 8;"
    fails("cp.async.cg.*", module(body))


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("mov.u32 %nothing, 1;", "%nothing"),
        (".reg .b32 %r; mov.u32 %r, nothing;", "nothing"),
        (".reg .pred %p; bra NOWHERE;", "NOWHERE"),
        (".reg .b32 %r; add.u32 %r, %r", "(?i)line"),
        (".reg .b32 %r; add.u32 %r;", "add.u32"),
        ("L: trap;\nL: ret;", "`L` is declared twice"),
        ("{ L: trap; L: ret; }", "`L` is declared twice"),
        ("bar.sync 99999999999999999999;", "a number of more than 64 bits: `9+`"),
        ("cp.async.wait_group 4294967296;", "a number from 0 to 2147483647"),
        (".reg .b32 %r<3>; ld.v3.u32 {%r0, %r1, %r2}, [8];", "`ld` takes no `.v3`"),
        (".reg .b32 %r<3>; ld.v4.u32 {%r0, %r1}, [8];", ".v4 of 2 registers"),
        (".reg .b32 %r<3>; st.u32 [8], {%r0, %r1};", ".v1 of 2 registers"),
    ],
)
def test_text_that_does_not_parse(body: str, match: str) -> None:
    fails(match, module(body))


def test_endless_kernel_stops_at_the_limit() -> None:
    text = module("AGAIN:\nbra AGAIN;")
    fails(r"(?i)limit.*1000\b|1000\b.*limit", text, instruction_limit=1000)


def test_endless_loop_of_one_lane_stops_at_the_limit() -> None:
    body = ".reg .b32 %i; .reg .pred %p;\nmov.u32 %i, %tid.x;\nAGAIN:\n"
    body += "setp.eq.u32 %p, %i, 7;\n@%p bra AGAIN;"
    fails(
        "(?i)instruction limit.*5000|5000.*instruction",
        module(body),
        instruction_limit=5000,
    )


def test_the_limit_lets_a_finite_kernel_end() -> None:
    body = ".reg .b32 %i; .reg .pred %p;\nmov.u32 %i, 0;\nAGAIN:\n"
    body += "add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 50;\n@%p bra AGAIN;"
    result = emulate(
        module(body), "kernel", (1, 1, 1), (32, 1, 1), [], instruction_limit=400
    )
    # 50 rounds of three instructions, the start and the end of the one warp
    assert 151 <= result.warp_instructions <= 153
    fails("(?i)limit", module(body), instruction_limit=100)


def test_parse_ptx_gives_every_kernel() -> None:
    parsed = parse_ptx(fixture("mma_types"))
    for name in ("product_bf16", "product_tf32", "product_s8"):
        assert name in str(parsed) or name in getattr(parsed, "kernels", {})


def test_errors_are_emulation_errors() -> None:
    with pytest.raises(EmulationError):
        emulate("hello", "kernel", (1, 1, 1), (1, 1, 1), [])
