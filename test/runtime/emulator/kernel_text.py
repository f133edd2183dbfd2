"""Small PTX kernels as text, and a run of one instruction over many operands.

`run_lanes` is what most instruction tests use: thread `i` loads element `i` of each
input into a register, runs the given instructions, and stores each output register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator import Result, emulate

# Bytes of a register of each type. A predicate travels as a 32-bit 0 or 1.
REGISTER_BYTES = {
    "b16": 2,
    "b32": 4,
    "b64": 8,
    "f32": 4,
    "f64": 8,
    "pred": 4,
}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def launch(
    text: str,
    kernel: str | None,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[Any],
    **options: Any,
) -> Result:
    """`emulate` with grids and blocks of fewer than three dimensions."""
    return emulate(text, kernel, three(grid), three(block), arguments, **options)


def three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def module(
    body: str,
    parameters: Sequence[str] = (),
    *,
    name: str = "kernel",
    before: str = "",
    directives: str = "",
    target: str = "sm_80",
    version: str = "7.8",
) -> str:
    """The PTX text of one kernel; `parameters` are types, named p0, p1, ..."""
    declared = ", ".join(f".param .{kind} p{i}" for i, kind in enumerate(parameters))
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{before}\n"
        f".visible .entry {name}({declared})\n{directives}\n{{\n{body}\n}}\n"
    )


def run_lanes(
    body: str,
    inputs: Mapping[str, tuple[str, np.ndarray]],
    outputs: Mapping[str, str],
    *,
    block: int = 128,
    target: str = "sm_80",
    version: str = "7.8",
) -> dict[str, np.ndarray]:
    """Run `body` in one thread per element, and return the output registers.

    `inputs` and `outputs` map a register's name (without `%`) to its type; results come
    back as unsigned bit patterns. The body may use the 32-bit registers %t0 to %t9, the
    64-bit %w0 to %w9 and the predicates %q0 to %q9 freely.
    """
    count = len(next(iter(inputs.values()))[1])
    assert count % block == 0, "every block must be full"
    text = lanes_text(body, inputs, outputs, target, version)
    given = [np.ascontiguousarray(values) for _, values in inputs.values()]
    results = {
        name: np.zeros(count, UNSIGNED[REGISTER_BYTES[kind]])
        for name, kind in outputs.items()
    }
    result = launch(
        text, "kernel", (count // block,), (block,), [*given, *results.values()]
    )
    assert result.hazards == ()
    return results


def lanes_text(
    body: str,
    inputs: Mapping[str, tuple[str, np.ndarray]],
    outputs: Mapping[str, str],
    target: str = "sm_80",
    version: str = "7.8",
) -> str:
    """The kernel of `run_lanes`."""
    lines = [
        ".reg .b32 %index_, %part_, %t<10>;",
        ".reg .b64 %at_, %base_, %w<10>;",
        ".reg .pred %q<10>;",
        "mov.u32 %index_, %ctaid.x;",
        "mov.u32 %part_, %ntid.x;",
        "mul.lo.u32 %index_, %index_, %part_;",
        "mov.u32 %part_, %tid.x;",
        "add.u32 %index_, %index_, %part_;",
    ]
    registers = {name: kind for name, (kind, _) in inputs.items()} | dict(outputs)
    for place, (name, kind) in enumerate(registers.items()):
        lines.append(f".reg .{kind} %{name};")
        if name in inputs:
            lines += _load(place, name, kind)
    lines.append(body)
    for place, (name, kind) in enumerate(registers.items()):
        if name in outputs:
            lines += _store(place, name, kind)
    lines.append("ret;")
    return module(
        "\n".join(lines), ["u64"] * len(registers), target=target, version=version
    )


def _address(place: int, size: int) -> list[str]:
    return [
        f"ld.param.u64 %base_, [p{place}];",
        f"mul.wide.u32 %at_, %index_, {size};",
        "add.u64 %at_, %base_, %at_;",
    ]


def _load(place: int, name: str, kind: str) -> list[str]:
    size = REGISTER_BYTES[kind]
    if kind == "pred":
        load = ["ld.global.b32 %part_, [%at_];", f"setp.ne.u32 %{name}, %part_, 0;"]
    else:
        load = [f"ld.global.b{8 * size} %{name}, [%at_];"]
    return _address(place, size) + load


def _store(place: int, name: str, kind: str) -> list[str]:
    size = REGISTER_BYTES[kind]
    if kind == "pred":
        store = [f"selp.u32 %part_, 1, 0, %{name};", "st.global.b32 [%at_], %part_;"]
    else:
        store = [f"st.global.b{8 * size} [%at_], %{name};"]
    return _address(place, size) + store


def run_kernel(
    body: str,
    parameters: Sequence[str],
    arguments: Sequence[Any],
    *,
    grid: Sequence[int] = (1,),
    block: Sequence[int] = (32,),
    before: str = "",
    directives: str = "",
    target: str = "sm_80",
    version: str = "7.8",
    **options: Any,
) -> Result:
    """Emulate one hand-written kernel body."""
    text = module(
        body,
        parameters,
        before=before,
        directives=directives,
        target=target,
        version=version,
    )
    return launch(text, "kernel", grid, block, arguments, **options)


LANE = """
    .reg .b32 %lane, %t<20>;
    .reg .b64 %in, %out, %w<20>;
    .reg .b16 %h<8>;
    .reg .f32 %f<8>;
    .reg .f64 %g<4>;
    .reg .pred %q<4>;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %in, [p0];
    ld.param.u64 %out, [p1];
"""


def run_warp(
    body: str,
    given: np.ndarray,
    wanted: np.ndarray,
    *,
    before: str = "",
    target: str = "sm_80",
    block: int = 32,
    visibility: str = "late",
) -> None:
    """Run one block on an input and an output array, and compare the output."""
    got = np.zeros_like(wanted)
    result = run_kernel(
        LANE + body,
        ["u64", "u64"],
        [given, got],
        before=before,
        block=(block,),
        target=target,
        visibility=visibility,
    )
    assert result.hazards == ()
    np.testing.assert_array_equal(got, wanted)


def random_bytes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)


def line_of(text: str, fragment: str, occurrence: int = 0) -> int:
    """The 1-based number of the line that holds the nth occurrence of `fragment`."""
    numbers = [
        number
        for number, line in enumerate(text.split("\n"), start=1)
        if fragment in line
    ]
    return numbers[occurrence]
