"""The functions and kernels of a bundle, as alcop-compile and alcop-run show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from alcop_mlir.extents import names
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Blocks, Kernel, Launch, Variant, block_counts
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
    for launch in function.launches:
        yield from _launch_rows(launch)


def _launch_rows(launch: Launch) -> Rows:
    """The rows of each kernel; of several variants, when each of them runs."""
    number = len(launch.variants)
    for position, variant in enumerate(launch.variants, 1):
        if number > 1:
            yield "variant", [f"{position} of {number}: {guard_text(variant)}"]
        for kernel in variant.kernels:
            yield from kernel_rows(kernel)


def guard_text(variant: Variant) -> str:
    """The conditions under which a variant runs, if none before it does."""
    return ", ".join(map(str, variant.guard)) or "otherwise"


def variants_run(function: Function, numbers: Sequence[int]) -> Iterator[str]:
    """A line for each launch that has several variants; `numbers`: those that ran."""
    for launch, ran in zip(function.launches, numbers, strict=True):
        if len(launch.variants) > 1:
            names = ", ".join(kernel.name for kernel in launch.variants[ran].kernels)
            yield f"variant {ran + 1} of {len(launch.variants)}: {names or 'no kernel'}"


def _workspace(function: Function) -> str:
    """The memory that a call takes for intermediate buffers."""
    number = len(function.intermediates)
    buffers = f"{number} intermediate buffer{'s' if number > 1 else ''}"
    named = {
        size
        for one in function.intermediates
        for extent in one.shape
        for size in names(extent)
    }
    if named:
        return f"{buffers}; bytes depend on {', '.join(sorted(named))}"
    has_one_way = all(len(launch.variants) == 1 for launch in function.launches)
    total = plan(function.intermediates, function.kernels, {}).bytes
    return f"{'' if has_one_way else 'at most '}{total} bytes for {buffers}"


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


def extent(parts: Sequence[Blocks]) -> str:
    """`16 x 8` for 16, 8, 1; numbers are multiplied as `2 * ceil(M / 64)`."""
    texts = [" * ".join(map(str, block_counts(part))) for part in parts]
    while len(texts) > 1 and texts[-1] == "1":
        texts.pop()
    return " x ".join(texts)
