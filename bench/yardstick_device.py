"""Kernels of this compiler on the yardstick: its words for a problem and a schedule."""

from __future__ import annotations

from collections.abc import Iterable

from yardstick import device, machines
from yardstick.kernel import Kernel
from yardstick.machines import Machine

from alcop_mlir.schedule import WGMMA, Schedule
from alcop_mlir.tuning.problem import Problem

# The machine that stands for each target.
MACHINES = {"sm_80": machines.A100, "sm_90": machines.H100, "sm_90a": machines.H100}


def kernel_of(problem: Problem, schedule: Schedule) -> Kernel:
    """What `schedule` makes of `problem`; windows, sweeps and rectangles are left out.

    Raises ValueError for a contraction of windows, which the yardstick does not know.
    """
    if problem.taps is not None:
        raise ValueError(f"{problem} has windows, expected a matmul")
    a, b = problem.layout.split(",")
    return Kernel(
        problem.m,
        problem.n,
        problem.k,
        problem.batch,
        problem.element_bytes,
        problem.out_bytes,
        problem.accumulator_bytes,
        schedule.block,
        schedule.warp,
        *schedule.stages,
        group=schedule.raster,
        parts=schedule.split_k,
        along_k=(a.endswith("k"), b.endswith("k")),
        aligned=problem.copies.at_once,
        wgmma=schedule.engine == WGMMA,
    )


def seconds(
    problem: Problem, schedules: Iterable[Schedule], machine: Machine
) -> list[float]:
    """Of each schedule, without the launch of an empty kernel."""
    return [device.seconds(kernel_of(problem, one), machine) for one in schedules]
