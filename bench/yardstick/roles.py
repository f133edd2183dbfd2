"""An SM whose warpgroups multiply by wgmma what one warp copies by TMA.

A copy of a tile is asked for when its slot is free; no other warp issues for it. A
warpgroup waits for its tile, multiplies 64 rows at a time for each step of K, and frees
the slot of the tile whose group of wgmma has ended, some groups behind.
All warpgroups of an SM share its tensor cores, and these the port of shared memory with
what TMA writes.
"""

from __future__ import annotations

from heapq import heappop, heappush

from yardstick import copies
from yardstick.kernel import MMA_BYTES, Kernel
from yardstick.machines import Machine
from yardstick.warps import Feed

_ROWS = 64  # of one wgmma; PTX ISA
_GROUP = 4  # warps of a warpgroup
_FILL = 3  # K steps, besides those that fill the ring, until the loop repeats
_PERIOD = 6  # K steps that are counted
_HANDOVER = 40.0  # cycles from a freed slot to the copy into it; an estimate
_DRAIN = 60.0  # cycles until the first wgmma of a group gives its result [L]
_SWINGS = 16


def loop_cycles(kernel: Kernel, machine: Machine, blocks: int, feed: Feed) -> float:
    """Cycles of the K loops of `blocks` blocks that start together on one SM."""
    full = kernel.slots + _FILL + _PERIOD  # then the ring runs empty
    followed = min(kernel.steps, full + kernel.slots)
    ends = _run(kernel, machine, blocks, feed, followed)
    if followed == kernel.steps:
        return ends[-1]
    period = (ends[full - 1] - ends[full - 1 - _PERIOD]) / _PERIOD
    return ends[-1] + (kernel.steps - followed) * period


def _run(
    kernel: Kernel, machine: Machine, blocks: int, feed: Feed, steps: int
) -> list[float]:
    """The cycle at which all blocks have ended each K step."""
    moved = copies.of_step(kernel)
    multiply, width = _multiply_cycles(kernel, machine)
    groups = max(1, kernel.warps // _GROUP)
    in_flight = max(0, kernel.registers - 1)
    tensor = way = share = 0.0
    freed = [[0.0] * groups for _ in range(blocks)]
    arrived = [[0.0] * steps for _ in range(blocks)]
    freeing = [[0] * steps for _ in range(blocks)]
    done = [[[0.0] * steps for _ in range(groups)] for _ in range(blocks)]
    ends = [0.0] * steps
    # A copy: (time, 0, block, 0, tile); a tile of a warpgroup: (time, 1, block, ...).
    first = min(kernel.slots, steps)
    events = [
        (0.0, 0, block, 0, tile) for block in range(blocks) for tile in range(first)
    ]
    events.sort()
    while events:
        now, kind, block, group, tile = heappop(events)
        if kind == 0:
            way = max(way, now) + moved.moved / feed.l2
            share = max(share, now) + moved.moved * feed.missed / feed.dram
            swing = ((block * 5 + tile * 11) * 7 % _SWINGS) / _SWINGS - 0.5
            latency = feed.latency * (1 + machine.swing * swing) + machine.tma
            arrived[block][tile] = max(way, share) + latency
            for one in range(groups):
                if tile == 0:
                    heappush(events, (arrived[block][0], 1, block, one, 0))
                elif freed[block][one] < 0:  # it waits for this tile
                    start = max(-freed[block][one], arrived[block][tile])
                    freed[block][one] = 0.0
                    heappush(events, (start, 1, block, one, tile))
            continue
        tensor = max(tensor, now) + multiply * width
        done[block][group][tile] = tensor
        ends[tile] = max(ends[tile], tensor + _DRAIN)
        oldest = tile - in_flight
        if oldest >= 0:
            freeing[block][oldest] += 1
            if freeing[block][oldest] == groups and oldest + kernel.slots < steps:
                at = max(done[block][one][oldest] for one in range(groups))
                at = max(at, now) + _HANDOVER
                heappush(events, (at, 0, block, 0, oldest + kernel.slots))
        # The next tile's wgmma are issued while these run, if groups may be in flight.
        after = now + multiply if in_flight else tensor + _DRAIN
        after = max(after, done[block][group][oldest] if oldest >= 0 else 0.0)
        if tile + 1 < steps:
            if arrived[block][tile + 1] > 0:
                start = max(after, arrived[block][tile + 1])
                heappush(events, (start, 1, block, group, tile + 1))
            else:
                freed[block][group] = -after
    return ends


def _multiply_cycles(kernel: Kernel, machine: Machine) -> tuple[float, float]:
    """Cycles of one K step of a warpgroup, and how much its shared memory adds.

    Both operands come from shared memory: A's 64 rows for each wgmma, all of B's
    columns.
    """
    group_rows = kernel.warp[0] * _GROUP
    columns = kernel.warp[1]
    depth = MMA_BYTES // kernel.size
    at_once = max(1.0, group_rows / _ROWS)
    macs = _ROWS * columns * depth * 2 / kernel.size
    tensor = macs * kernel.size / 2 / (machine.wgmma * 2 / kernel.size)
    read = (_ROWS + columns) * MMA_BYTES
    one = max(tensor, read / machine.shared_bytes)
    total = one * at_once * kernel.fragments
    written = sum(kernel.tile_bytes) / machine.shared_bytes
    groups = max(1, kernel.warps // _GROUP)
    reading = read * at_once * kernel.fragments / machine.shared_bytes
    crowded = (reading + written / groups) / total
    return total, max(1.0, crowded)
