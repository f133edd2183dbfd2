"""A latency model of chains: attention and the like as one kernel, from Target alone.

A kernel is a launch and waves of blocks; a block is a start, a loop over tiles of keys
and values, and the store of its rows. Of a tile the tensor cores multiply twice; the
lanes of f32 scale, compare, add and round the scores, and multiply accumulators by what
the new largest score makes of them; the special function units compute exponentials. A
warp does these after each other, as each needs the one before, and on A100 the warps of
a block, which wait for each other at each tile, overlap little of it: the times add up.
Fragments of keys and values are loaded beside them, hidden the more warps a sub-core
has. Copies of tiles are begun early, and are seen where they take longer.

Where columns are in parts, a second kernel merges what these leave. Times are in
seconds. Constants are in `hardware.py`; three of them are fitted to measured times of
attention, and `bench/bench_measured_kernels.py` shows the error on the other half.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

from alcop_mlir import hardware
from alcop_mlir.frozen import frozen
from alcop_mlir.target import (
    SHARED_BYTES_RESERVED_PER_BLOCK,
    WARP_SIZE,
    Target,
)
from alcop_mlir.tuning.fused.chain_problem import (
    ELEMENT_BYTES,
    HELD_HEAD,
    ChainSizes,
    ChainTiles,
    block_count,
    mean_column_tiles,
    merge_bytes,
    registers,
    shared_bytes,
)

PARTS = (
    "launch",
    "start",  # of the blocks, until the first tile is there
    "tensor cores",
    "scores",  # exponentials, and what is computed beside them
    "rescaling",  # accumulators, by what a new largest score makes of them
    "shared memory",  # fragments that no other warp hides, or its bandwidth
    "synchronisation",  # barriers of a tile
    "copies",  # tiles that come too late
    "last blocks",  # SMs that wait for those
    "epilogue",  # results to memory
    "dram",  # its bandwidth
    "merge",  # of parts, by a kernel of its own
)
_BARRIERS = 2  # of a tile: when it has come, and when all have used it
_REGISTERS_AT_ONCE = 8  # of a thread, that are allocated together; [CC]


@frozen
class ChainTime:
    """What a kernel takes.

    parts: seconds by name of `PARTS`; they add up
    resident: blocks on an SM
    """

    parts: Mapping[str, float]
    resident: int

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(self.parts.values())


@frozen
class Slots:
    """How tiles of keys and values are copied.

    count: that shared memory has room for
    lookahead: tiles that are on their way while one is used
    """

    count: int = 2
    lookahead: int = 1


def predict(
    sizes: ChainSizes, tiles: ChainTiles, target: Target, slots: Slots | None = None
) -> ChainTime | None:
    """The time of a chain with these tiles; None where a block does not fit."""
    slots = slots or Slots()
    most = most_resident(sizes, tiles, target, slots)
    if most == 0:
        return None
    blocks = block_count(sizes, tiles) * tiles.parts
    resident = min(most, math.ceil(blocks / target.sms))
    wave = functools.partial(_wave, sizes, tiles, target, slots)
    if sizes.last is None:
        full, rest = divmod(blocks, target.sms * resident)
        tail = math.ceil(rest / target.sms)
        cycles = _sum(full, wave(resident), 1, wave(tail) if tail else {})
    else:
        # Blocks end one by one, and the last are twice as long as the mean.
        waves = blocks / (target.sms * resident)
        cycles = _sum(waves, wave(resident), 0, {})
        longest = 1.0 if waves > 1 else 2.0 - waves
        cycles["last blocks"] = longest * sum(wave(resident).values())
    parts = {name: time / target.clock_hz for name, time in cycles.items()}
    least = _dram_bytes(sizes) / (hardware.DRAM_REACHED * target.dram_bytes_per_second)
    parts["dram"] = max(least - sum(parts.values()), 0.0)
    parts["launch"] = hardware.LAUNCH / target.clock_hz
    parts["merge"] = _merge(sizes, tiles.parts, target)
    return ChainTime({name: parts.get(name, 0.0) for name in PARTS}, resident)


def _sum(
    count: float,
    one: Mapping[str, float],
    other_count: float,
    other: Mapping[str, float],
) -> dict[str, float]:
    return {
        name: count * time + other_count * other.get(name, 0.0)
        for name, time in one.items()
    }


def _wave(
    sizes: ChainSizes, tiles: ChainTiles, target: Target, slots: Slots, resident: int
) -> dict[str, float]:
    """Cycles of a wave of so many blocks on each SM, of mean length, by part."""
    length = mean_column_tiles(sizes, tiles) / tiles.parts
    tile = _tile(sizes, tiles, target, slots, resident)
    return {
        "start": _start(sizes, tiles, target),
        **{name: length * time for name, time in tile.items()},
        "epilogue": _epilogue(sizes, tiles, target, resident),
    }


def most_resident(
    sizes: ChainSizes, tiles: ChainTiles, target: Target, slots: Slots
) -> int:
    """Blocks that an SM has room for; 0 where a block does not fit."""
    shared = shared_bytes(sizes, tiles, slots.count)
    if shared > target.shared_bytes_per_block:
        return 0
    threads = tiles.warps * WARP_SIZE
    allocated = -(-registers(sizes, tiles) // _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
    return min(
        target.shared_bytes_per_sm // (shared + SHARED_BYTES_RESERVED_PER_BLOCK),
        target.registers_per_sm // (allocated * threads),
        target.threads_per_sm // threads,
        target.blocks_per_sm,
    )


def _tile(
    sizes: ChainSizes, tiles: ChainTiles, target: Target, slots: Slots, resident: int
) -> dict[str, float]:
    """Cycles in which all blocks of an SM use a tile each, by part."""
    rows, columns, elements = tiles.block_rows, tiles.columns, sizes.k + sizes.d
    rate = target.tensor_f16_flops / target.sms / target.clock_hz
    warps = resident * tiles.warps / hardware.SUB_CORES
    times = resident * math.ceil(warps) / warps  # sub-cores without a warp do nothing
    multiplied = times * 2 * rows * columns * elements / rate
    scores = rescaled = 0.0
    if sizes.of_rows:
        each = (hardware.SCORE_INSTRUCTIONS + sizes.extra) / target.float_lanes
        scores = times * rows * columns * (each + 1 / hardware.EXPONENTIALS)
        each = hardware.RESCALED_INSTRUCTIONS / target.float_lanes
        rescaled = times * rows * sizes.d * each
    loaded = resident * _fragment_bytes(sizes, tiles) / hardware.SHARED_BYTES_PER_CYCLE
    computed = multiplied + scores + rescaled
    seen = max(loaded - computed, 0.0)
    seen += hardware.FRAGMENTS_SEEN * loaded / math.ceil(warps)
    waited = _BARRIERS * hardware.BARRIER / resident
    busy = computed + seen + waited
    moved = resident * columns * elements * ELEMENT_BYTES / hardware.l2_share(target)
    latency = hardware.LOADED * target.l2_latency
    late = (latency + moved) / resident
    if slots.lookahead:
        late = max((latency + moved) / slots.lookahead, moved) - busy
    return {
        "tensor cores": multiplied,
        "scores": scores,
        "rescaling": rescaled,
        "shared memory": seen,
        "synchronisation": waited,
        "copies": max(late, 0.0),
    }


def _fragment_bytes(sizes: ChainSizes, tiles: ChainTiles) -> float:
    """Of shared memory, that the warps of a block read for a tile.

    Each reads all keys and values of it; and its queries, where registers hold none.
    """
    elements = tiles.warps * tiles.columns * (sizes.k + sizes.d)
    if sizes.k > HELD_HEAD:
        elements += tiles.block_rows * sizes.k
    return float(elements * ELEMENT_BYTES)


def _start(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> float:
    """Cycles until a block computes: queries and the first tile have come."""
    read = tiles.block_rows * sizes.k + tiles.columns * (sizes.k + sizes.d)
    arriving = read * ELEMENT_BYTES / hardware.l2_share(target)
    return hardware.BLOCK_START + hardware.LOADED * target.l2_latency + arriving


def _epilogue(
    sizes: ChainSizes, tiles: ChainTiles, target: Target, resident: int
) -> float:
    stored = resident * tiles.block_rows * sizes.d * ELEMENT_BYTES
    return hardware.STORED * stored / hardware.l2_share(target) + target.l2_latency


def _dram_bytes(sizes: ChainSizes) -> float:
    """Each array once; L2 keeps keys and values for all blocks of a matrix."""
    elements = sizes.m * (sizes.k + sizes.d) + sizes.n * (sizes.k + sizes.d)
    return float(sizes.batch * elements * ELEMENT_BYTES)


def _merge(sizes: ChainSizes, parts: int, target: Target) -> float:
    """Seconds of the kernel that merges parts; 0 where there is one."""
    if parts == 1:
        return 0.0
    cycle = 1 / target.clock_hz
    waiting = hardware.NEXT_LAUNCH + hardware.BLOCK_START + 2 * target.l2_latency
    moved = merge_bytes(sizes, parts)
    kept = moved <= hardware.L2_KEPT * target.l2_bytes
    rate = target.l2_bytes_per_second if kept else target.dram_bytes_per_second
    return waiting * cycle + moved / rate
