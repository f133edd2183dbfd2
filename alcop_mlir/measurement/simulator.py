"""A discrete-event simulation of an SM: the device called `simulated`.

It runs the loop that the compiler emits, fragment by fragment: warps issue in order,
wait at one barrier per K tile, queue for the tensor core of their sub-core, for the
port of shared memory and for the SM's share of L2 and DRAM. It shares the hardware's
numbers with the analytical model, not its formulas, so it tests whether the formulas
describe such a machine; only a GPU can show whether a GPU is one. Its figures are
called `simulated` wherever they appear, and are kept apart from measured ones.

The events themselves are in `events.py`.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir import hardware
from alcop_mlir.hardware import SUB_CORES
from alcop_mlir.measurement import chain_simulator
from alcop_mlir.measurement.events import (
    COPY_BYTES,
    COPY_ISSUE,
    Loops,
    Roles,
    run,
    run_roles,
)
from alcop_mlir.target import MMA_F16_SHAPE, MMA_K_BYTES, WARP_SIZE, Target, mma_shape
from alcop_mlir.tuning import traffic, warpgroup_model
from alcop_mlir.tuning.candidates import AXES, Candidates, FloatArray
from alcop_mlir.tuning.problem import Problem


def simulate(problem: Problem, candidates: Candidates, target: Target) -> FloatArray:
    """Seconds of each candidate's kernel on the simulated device."""
    if problem.chain is not None:
        return chain_simulator.simulate(problem, candidates, target)
    by_wgmma = warpgroup_model.is_by_wgmma(candidates)
    found = np.zeros(len(candidates))
    for engine, compute in ((False, _by_mma), (True, _by_wgmma)):
        rows = np.flatnonzero(by_wgmma == engine)
        if len(rows):
            found[rows] = compute(problem, candidates.take(rows), target)
    return found


def _by_wgmma(problem: Problem, candidates: Candidates, target: Target) -> FloatArray:
    """Seconds where warps have roles: tiles of an SM one after the other."""
    grid = traffic.grid(problem, candidates, target)
    resident = grid.resident
    step = warpgroup_model.k_step(problem, candidates, target, grid, resident)
    rates, axis, table = hardware.rates(target), candidates.axis, candidates.table
    store = hardware.STORED * resident * grid.out_bytes / grid.l2_share
    cycles = run_roles(
        Roles(
            stages=table[:, AXES.index("shared_stages")],
            in_flight=table[:, AXES.index("register_stages")] - 1,
            turns=table[:, AXES.index("turns")],
            steps=np.ceil(grid.steps).astype(np.int64),
            tiles=np.ceil(grid.blocks / target.sms / resident),
            tensor=step["tensor"] / rates.cycle,
            port=step["shared"] / rates.cycle,
            issue=step["issue"] / rates.cycle,
            copy=step["l2"] / rates.cycle,
            latency=rates.latency(grid.missing) / rates.cycle,
            drain=step["drain"] / rates.cycle,
            store=(store + rates.l2_latency) / rates.cycle,
        )
    )
    clusters = np.where(axis("cluster") > 1, hardware.CLUSTER_START, 0.0)
    total = hardware.LAUNCH + hardware.BLOCK_START + clusters + cycles
    moved = (grid.read_bytes + grid.written_bytes) / target.dram_bytes_per_second
    power = warpgroup_model.power(problem, candidates, target, grid)
    least = np.maximum(moved, power) / rates.cycle + hardware.LAUNCH
    total = np.maximum(total, least)
    return (total + _adding_up(problem, grid, target)) * rates.cycle


def _by_mma(problem: Problem, candidates: Candidates, target: Target) -> FloatArray:
    grid = traffic.grid(problem, candidates, target)
    cycle = 1.0 / target.clock_hz
    later_waves = np.maximum(grid.full_waves - 1, 0) + (grid.tail_resident > 0)
    later = (grid.read_bytes / grid.wave_bytes - 1) / np.maximum(later_waves, 1)
    later = np.minimum(np.maximum(later, 0.0), 1.0)
    first = np.where(grid.full_waves > 0, later, 1.0)
    total = np.full(len(candidates), hardware.LAUNCH)
    for resident, count, missing in (
        (grid.resident, np.minimum(grid.full_waves, 1), np.ones(len(candidates))),
        (grid.resident, np.maximum(grid.full_waves - 1, 0), later),
        (grid.tail_resident, np.minimum(grid.tail_resident, 1), first),
    ):
        rows = np.flatnonzero(count)
        if len(rows):
            some = _loops(problem, candidates, target, grid, resident, missing)
            wave = hardware.BLOCK_START + run(some.take(rows))
            store = resident * grid.out_bytes / grid.l2_share
            store = store + hardware.rates(target).l2_latency
            total[rows] += count[rows] * (wave + store[rows] / cycle)
    least = (grid.read_bytes + grid.written_bytes) / target.dram_bytes_per_second
    total = np.maximum(total, least / cycle + hardware.LAUNCH)
    return (total + _adding_up(problem, grid, target)) * cycle


def _adding_up(problem: Problem, grid: traffic.Grid, target: Target) -> FloatArray:
    """Clock cycles of the kernel that adds up the parts of C, wave by wave.

    A wave's threads load their elements of all parts, wait, add and store.
    """
    elements = problem.batch * problem.m * problem.n
    threads = target.threads_per_sm * target.sms
    latency = hardware.rates(target).l2_latency * target.clock_hz
    per_element = grid.parts_bytes / elements + problem.out_bytes
    spent = np.full(len(per_element), hardware.NEXT_LAUNCH)
    for count, size in ((elements // threads, threads), (1, elements % threads)):
        moving = size * per_element / target.l2_bytes_per_second * target.clock_hz
        wave = hardware.BLOCK_START + latency + np.maximum(latency, moving)
        spent += count * wave * (size > 0)
    least = grid.parts_missing + float(elements * problem.out_bytes)
    least = least / target.dram_bytes_per_second * target.clock_hz
    return np.where(grid.parts_bytes > 0, np.maximum(spent, least), 0.0)


def _loops(
    problem: Problem,
    candidates: Candidates,
    target: Target,
    grid: traffic.Grid,
    resident: FloatArray,
    missing: FloatArray,
) -> Loops:
    """The K loop of one wave with `resident` blocks on each SM."""
    axis, rates = candidates.axis, hardware.rates(target)
    step_k = mma_shape(problem.element_bytes)[2]
    resident = np.maximum(resident, 1.0)
    block_warps = candidates.costs[:, 0] / WARP_SIZE
    warps = np.ceil(block_warps / SUB_CORES)
    blocks = np.ceil(resident * block_warps / SUB_CORES / warps)
    # The shares that blocks and warps outside of the simulation take.
    others, other_blocks = resident * block_warps / (blocks * warps), resident / blocks
    flops = 2 * axis("warp_m") * axis("warp_n") * MMA_F16_SHAPE[2]
    fragment = (axis("warp_m") + axis("warp_n")) * MMA_K_BYTES
    stored = grid.tile_bytes / block_warps / (axis("block_k") / step_k)
    working = np.minimum(grid.blocks, target.sms)
    dram = grid.wave_bytes / grid.steps / np.minimum(grid.blocks, resident * target.sms)
    dram = missing * dram * working / target.dram_bytes_per_second
    copy = np.maximum(grid.tile_bytes / grid.l2_share, dram)
    copies = grid.tile_bytes / COPY_BYTES / candidates.costs[:, 0]
    stages = candidates.table[:, AXES.index("shared_stages")]
    fragments = candidates.table[:, AXES.index("block_k")] // step_k
    registers = candidates.table[:, AXES.index("register_stages")]
    return Loops(
        blocks=blocks.astype(np.int64),
        warps=warps.astype(np.int64),
        stages=stages,
        # Fragments of a tile that no slot holds cannot be prefetched.
        registers=np.minimum(registers, np.maximum(1, (stages - 1) * fragments)),
        tiles=grid.steps.astype(np.int64),
        fragments=fragments,
        mma=flops / rates.flops / rates.cycle,
        fragment=(fragment + stored) * others / hardware.SHARED_BYTES_PER_CYCLE,
        copy=copy * other_blocks / rates.cycle,
        latency=rates.latency(missing) / rates.cycle,
        issue=np.ceil(copies) * COPY_ISSUE * warps,
    )
