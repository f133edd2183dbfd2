"""The functions and kernels of a bundle, as alcop-compile and alcop-run show them."""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import CeilDiv, Kernel
from alcop_mlir.runtime.workspace import plan
from alcop_mlir.tools.command_line import Rows, aligned


def function_rows(function: Function) -> Rows:
    """Arrays and workspace, then the rows of each kernel."""
    arrays = [
        [p.name, "x".join(map(str, (*p.shape, p.dtype))), p.role]
        for p in function.parameters
    ]
    yield "arrays", aligned(arrays)
    if function.intermediates:
        yield "workspace", [_workspace(function)]
    if function.constants:
        number = len(function.constants)
        total = sum(one.bytes for one in function.constants)
        yield "constants", [f"{total} bytes of {number} array{'s'[: number > 1]}"]
    for kernel in function.kernels:
        yield from kernel_rows(kernel)


def _workspace(function: Function) -> str:
    """The memory that a call takes for intermediate buffers."""
    number = len(function.intermediates)
    buffers = f"{number} intermediate buffer{'s' if number > 1 else ''}"
    named = {
        size
        for one in function.intermediates
        for size in one.shape
        if isinstance(size, str)
    }
    if named:
        return f"{buffers}; bytes depend on {', '.join(sorted(named))}"
    return f"{plan(function, {}).bytes} bytes for {buffers}"


def kernel_rows(kernel: Kernel) -> Rows:
    """Launch, schedule, pipelines and resources."""
    blocks, threads = extent(kernel.grid), extent(kernel.block)
    yield "kernel", [f"{kernel.name}: {blocks} blocks of {threads} threads"]
    if kernel.fallback is not None:
        yield "schedule", ["none: SIMT fallback"]
    else:
        yield "schedule", _schedule(kernel)
        if kernel.schedule_source is not None:
            yield "from", [kernel.schedule_source]
        pipelines = [
            [one.buffer, one.level, f"{one.stages} stages"] for one in kernel.pipelines
        ]
        yield "pipelines", aligned(pipelines) or ["none"]
    yield "resources", [_resources(kernel)]


def _schedule(kernel: Kernel) -> list[str]:
    """What was decided, and what else was carried out."""
    if kernel.schedule is None:
        return ["none"]
    lines = [str(kernel.schedule)]
    levels = ("shared", "register")
    stages = tuple(
        max((one.stages for one in kernel.pipelines if one.level == level), default=1)
        for level in levels
    )
    if stages != kernel.schedule.stages:
        lines.append(f"carried out: stages={stages[0]},{stages[1]}")
    return lines


def _resources(kernel: Kernel) -> str:
    shared = kernel.shared_bytes + (kernel.static_shared_bytes or 0)
    if kernel.registers is None:
        return f"{shared} bytes shared (registers unknown: no ptxas)"
    return (
        f"{kernel.registers} registers, {kernel.spill_bytes} bytes spilled, "
        f"{shared} bytes shared"
    )


def extent(parts: Sequence[int | CeilDiv]) -> str:
    """`16 x 8` for 16, 8, 1."""
    texts = [str(part) for part in parts]
    while len(texts) > 1 and texts[-1] == "1":
        texts.pop()
    return " x ".join(texts)
