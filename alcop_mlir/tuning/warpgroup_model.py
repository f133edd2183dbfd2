"""What a schedule for wgmma takes: the parts of its time that differ from mma.sync's.

A K step of the blocks on an SM takes as long as what is slowest of it: the tensor
cores; the port to shared memory, by which these read and TMA writes; the issue of
instructions; L2, of which a cluster reads once what it shares; and the latency of
copies, as far as slots do not hide it. That one port is for both, that nothing else is
in its way, and how near to its limits each comes is not measured. Blocks that go
through several tiles start once, and copies of the next begin while one is stored; with
mode=pingpong the other warpgroup multiplies then, too.

Power: all that moves and is multiplied takes energy, of which a GPU has so much in a
second. What takes less of it than its limits allow is not slowed down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir import hardware
from alcop_mlir.schedule import WGMMA
from alcop_mlir.target import MMA_K_BYTES, WARP_SIZE, WARPGROUP, WGMMA_M, Target
from alcop_mlir.tuning import traffic
from alcop_mlir.tuning.candidates import ENGINES, Candidates, FloatArray

Parts = dict[str, FloatArray]


def is_by_wgmma(candidates: Candidates) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each candidate is for wgmma."""
    return candidates.axis("engine") == ENGINES[WGMMA]


def parts(
    problem: Any, candidates: Candidates, target: Target, grid: traffic.Grid
) -> Parts:
    """Seconds of each part, by candidate or by size and candidate."""
    full, tail = (
        _wave(problem, candidates, target, grid, resident)
        for resident in (grid.resident, grid.tail_resident)
    )
    waves = grid.full_waves + (grid.tail_resident > 0)
    found = {name: grid.full_waves * full[name] + tail[name] for name in full}
    computing = candidates.costs[:, 0] - WARPGROUP * WARP_SIZE
    alone = computing >= hardware.ALONE * WARPGROUP * WARP_SIZE
    again = alone & (grid.blocks > target.sms)  # blocks go through several tiles
    once = np.maximum(full["start"], tail["start"])
    found["start"] = np.where(again, once, found["start"])
    # While one tile is stored in turn, the next is multiplied.
    multiplied = sum(
        (found[name] for name in found if name not in ("start", "epilogue")),
        np.zeros(grid.shape),
    )
    stored, many = found["epilogue"], np.maximum(waves, 1.0)
    behind = stored / many + np.maximum(stored - multiplied, 0.0) * (1 - 1 / many)
    in_turn = candidates.axis("turns") > 1
    found["epilogue"] = np.where(in_turn, behind, stored)
    return found


def _wave(
    problem: Any,
    candidates: Candidates,
    target: Target,
    grid: traffic.Grid,
    resident: FloatArray,
) -> Parts:
    """Of `resident` blocks on each SM; zeros where there are none."""
    rates, steps = hardware.rates(target), grid.steps
    step = k_step(problem, candidates, target, grid, resident)
    busy = np.maximum(step["tensor"], step["shared"])
    most = np.maximum(busy, step["issue"])
    held = np.minimum(_ahead(candidates), steps)
    load = hardware.LOADED * rates.latency(grid.missing) + step["l2"]
    waited = np.maximum(step["l2"], load / np.maximum(held, 1.0))
    drained = np.where(candidates.axis("register_stages") > 1, 0.0, step["drain"])
    stored = hardware.STORED * resident * grid.out_bytes / grid.l2_share
    clusters = np.where(candidates.axis("cluster") > 1, hardware.CLUSTER_START, 0.0)
    found = {
        "start": (hardware.BLOCK_START + clusters) * rates.cycle + load,
        "tensor cores": steps * step["tensor"],
        "register loads": np.zeros(grid.shape),
        "shared memory": steps * (busy - step["tensor"]),
        "issue": steps * (most - busy),
        "synchronisation": steps * drained,
        "narrow copies": np.zeros(grid.shape),
        "cache lines": np.zeros(grid.shape),
        "copies": steps * np.maximum(waited - most - drained, 0.0),
        "epilogue": stored + rates.l2_latency,
    }
    return {name: np.where(resident > 0, part, 0.0) for name, part in found.items()}


def k_step(
    problem: Any,
    candidates: Candidates,
    target: Target,
    grid: traffic.Grid,
    resident: FloatArray,
) -> Parts:
    """Seconds that the blocks on an SM keep each unit busy in one K step.

    drain: from the end of one group of wgmma to the start of the next that waits for it
    """
    axis, cycle = candidates.axis, 1.0 / target.clock_hz
    rows, columns = axis("block_m"), axis("block_n")
    run = axis("block_k") * problem.element_bytes  # bytes along K
    rate = hardware.WGMMA_RATE * hardware.RATED_BYTES  # bytes along K of operations
    read = rows / WGMMA_M * (WGMMA_M + columns) * run
    written = (rows + columns) * run
    warps = rows / axis("warp_m")
    wgmmas = axis("warp_m") * WARPGROUP / WGMMA_M * run / MMA_K_BYTES
    issued = np.ceil(resident * warps / hardware.SUB_CORES)
    issued = issued * (hardware.STEP_ISSUE + hardware.WGMMA_ISSUE * wgmmas)
    from_l2 = (rows + columns / axis("cluster")) * run
    return {
        "tensor": resident * 2 * rows * columns * run / rate * cycle,
        "shared": resident * (read + written) / hardware.SHARED_BYTES_PER_CYCLE * cycle,
        "issue": (issued + resident * hardware.COPY_ISSUE) * cycle,
        "l2": resident * from_l2 / grid.l2_share,
        "drain": np.full(len(candidates), hardware.WGMMA_LATENCY * cycle),
    }


def _ahead(candidates: Candidates) -> FloatArray:
    """Copies of a block that are under way: slots, without those of unfinished groups.

    Two warpgroups in turn share the slots.
    """
    return candidates.axis("shared_stages") - candidates.axis("register_stages") + 1


def power(
    problem: Any, candidates: Candidates, target: Target, grid: traffic.Grid
) -> FloatArray:
    """The least seconds that the GPU's power leaves; zeros where that is not known."""
    watts = hardware.WATTS.get(target.device)
    if watts is None:
        return np.zeros(grid.shape)
    axis, total = candidates.axis, grid.blocks * grid.steps
    rows, columns = axis("block_m"), axis("block_n")
    run = axis("block_k") * problem.element_bytes
    moved = rows / WGMMA_M * (WGMMA_M + columns) + rows + columns
    multiplied = 2 * rows * columns * run / hardware.RATED_BYTES
    joules = total * (
        multiplied * hardware.OPERATION_JOULES
        + moved * run * hardware.SHARED_JOULES
        + (rows + columns / axis("cluster")) * run * hardware.L2_JOULES
    )
    joules = joules + (grid.read_bytes + grid.written_bytes) * hardware.DRAM_JOULES
    return joules / (watts - hardware.IDLE_WATTS)
