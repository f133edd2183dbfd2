"""What a launch may ask for: checked before anything is laid out, one line each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from alcop_mlir import limits
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.warps import Dim3, Shape
from alcop_mlir.runtime.emulator.ptx.syntax import Module, PtxKernel

MAX_BLOCK_THREADS = 1024  # CUDA: threads of a block
MAX_BLOCK = (1024, 1024, 64)
# The threads of an A100 at once: 108 multiprocessors with 2048 each (CUDA C++
# Programming Guide, "Technical Specifications per Compute Capability").
MAX_COOPERATIVE = 108 * 2048
MAX_GRID = (2**31 - 1, 65535, 65535)
# CUDA C++ Programming Guide, "Thread Block Clusters": 8 blocks, or 16 where the kernel
# opts in to sizes that are not portable, as H100 has them.
MAX_CLUSTER_BLOCKS = 16
FIRST_TARGET = 90  # PTX ISA "Cluster Dimension Directives": sm_90 has them
MAX_CLUSTER = (MAX_CLUSTER_BLOCKS, MAX_CLUSTER_BLOCKS, MAX_CLUSTER_BLOCKS)
# Bytes of parameters before PTX ISA 8.1, as ptxas says; the parser knows those since.
_MAX_OLD_PARAMETERS = 4352
_MAX_SHOWN = 80  # characters of what was given


def check_options(
    visibility: str,
    max_reports: int,
    instruction_limit: int | None,
    time_limit: float | None,
) -> None:
    """Raise `EmulationError` for options of `emulate` that mean nothing."""
    if visibility not in ("late", "early"):
        raise EmulationError(
            f'expected a visibility of "late" or "early", got {shown(visibility)}'
        )
    if not _is_whole(max_reports) or max_reports < 0:
        raise EmulationError(
            f"expected max_reports of 0 or more, got {shown(max_reports)}"
        )
    if instruction_limit is not None and (
        not _is_whole(instruction_limit) or instruction_limit < 1
    ):
        raise EmulationError(
            f"expected an instruction_limit of 1 or more, got "
            f"{shown(instruction_limit)}"
        )
    is_number = isinstance(time_limit, (int, float, np.number))
    if time_limit is not None and not (is_number and time_limit >= 0):
        raise EmulationError(
            f"expected a time_limit of 0 seconds or more, got {shown(time_limit)}"
        )


def check_arguments(args: Sequence[object], symbols: object) -> None:
    """Raise `EmulationError` unless there is a sequence of them, and a dict."""
    if not isinstance(args, Sequence) or isinstance(args, (str, bytes)):
        raise EmulationError(f"expected a list of arguments, got {shown(args)}")
    if symbols is not None and not isinstance(symbols, Mapping):
        raise EmulationError(f"expected symbols by their names, got {shown(symbols)}")
    if isinstance(symbols, Mapping):
        for name, array in symbols.items():
            if not isinstance(array, np.ndarray):
                raise EmulationError(
                    f"variable {shown(name)}: expected an array, got {shown(array)}"
                )


def check_kernel(module: Module, kernel: PtxKernel) -> None:
    """Raise `EmulationError` where the module's version has no such parameters."""
    size = max((p.offset + p.size for p in kernel.parameters), default=0)
    if size > _MAX_OLD_PARAMETERS and module.version < (8, 1):
        raise EmulationError(
            f"kernel {kernel.name} has {size} bytes of parameters; before PTX ISA 8.1 "
            f"it may have at most {_MAX_OLD_PARAMETERS}"
        )


def check_launch(
    kernel: PtxKernel, grid: Dim3, block: Dim3, dynamic: int, cooperative: bool
) -> None:
    """Raise `EmulationError` for a grid or block that cannot be launched."""
    for what, dims, most in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        if not _has_dimensions(dims, most):
            raise EmulationError(
                f"expected a {what} of three numbers from 1 to {most}, got "
                f"{shown(dims)}"
            )
    threads = math.prod(block)
    if threads > MAX_BLOCK_THREADS:
        raise EmulationError(
            f"a block of {block} has {threads} threads, more than {MAX_BLOCK_THREADS}"
        )
    _check_block(kernel, block, threads)
    if not _is_whole(dynamic) or dynamic < 0:
        raise EmulationError(
            f"expected dynamic_shared of 0 bytes or more, got {shown(dynamic)}"
        )
    blocks = math.prod(grid)
    if cooperative and blocks * threads > MAX_COOPERATIVE:
        raise EmulationError(
            f"a cooperative launch of {blocks * threads} threads: expected at "
            f"most {MAX_COOPERATIVE}, which are there at once"
        )
    limits.BLOCKS.check(blocks, f"a grid of {grid}", EmulationError)


def shape_of(
    module: Module, kernel: PtxKernel, grid: Dim3, block: Dim3, cluster: Dim3 | None
) -> Shape:
    """The sizes of a checked launch, with the clusters that the kernel or it asks for.

    PTX ISA "Cluster Dimension Directives". Raises `EmulationError` for clusters that
    cannot be launched.
    """
    required = kernel.required_cluster
    if cluster is not None and not _has_dimensions(cluster, MAX_CLUSTER):
        raise EmulationError(
            f"expected a cluster of three numbers from 1 to {MAX_CLUSTER}, got "
            f"{shown(cluster)}"
        )
    if cluster is not None and required is not None and tuple(cluster) != required:
        raise EmulationError(
            f"kernel {kernel.name} requires clusters of {required} "
            f"(.reqnctapercluster), got {tuple(cluster)}"
        )
    chosen = required if cluster is None else cluster
    if chosen is None and kernel.needs_cluster:
        raise EmulationError(
            f"kernel {kernel.name} has to be launched with clusters (.explicitcluster)"
        )
    if chosen is None:
        return Shape(grid, block)
    _check_cluster(module, kernel, grid, chosen)
    x, y, z = chosen
    return Shape(grid, block, (x, y, z), is_explicit=True)


def _check_cluster(
    module: Module, kernel: PtxKernel, grid: Dim3, cluster: Dim3
) -> None:
    size = math.prod(cluster)
    if size > MAX_CLUSTER_BLOCKS:
        raise EmulationError(
            f"a cluster of {tuple(cluster)} has {size} blocks, more than "
            f"{MAX_CLUSTER_BLOCKS}"
        )
    if kernel.max_cluster is not None and size > kernel.max_cluster:
        raise EmulationError(
            f"a cluster of {tuple(cluster)} has {size} blocks, more than the "
            f".maxclusterrank {kernel.max_cluster} of kernel {kernel.name}"
        )
    if size > 1 and int(module.target.strip("smaf_")) < FIRST_TARGET:
        raise EmulationError(
            f"a cluster of {tuple(cluster)}: {module.target} has no clusters"
        )
    if any(n % c for n, c in zip(grid, cluster, strict=True)):
        raise EmulationError(
            f"a grid of {tuple(grid)} cannot be divided into clusters of "
            f"{tuple(cluster)}"
        )


def _check_block(kernel: PtxKernel, block: Dim3, threads: int) -> None:
    if kernel.max_threads is not None and threads > math.prod(kernel.max_threads):
        most = ", ".join(map(str, kernel.max_threads))
        raise EmulationError(
            f"a block of {block} has {threads} threads, more than the .maxntid "
            f"{most} of kernel {kernel.name}"
        )
    if kernel.required_threads is not None and tuple(block) != kernel.required_threads:
        raise EmulationError(
            f"kernel {kernel.name} requires blocks of {kernel.required_threads} "
            f"(.reqntid), got {tuple(block)}"
        )


def _has_dimensions(dims: object, most: Dim3) -> bool:
    return (
        isinstance(dims, Sequence)
        and len(dims) == 3
        and all(
            _is_whole(n) and 1 <= n <= top for n, top in zip(dims, most, strict=True)
        )
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer))


def shown(value: object) -> str:
    """A value for a message, not all of it where it is long."""
    if isinstance(value, int):
        return limits.number(value)
    text = repr(value) if not isinstance(value, np.ndarray) else "an array"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
