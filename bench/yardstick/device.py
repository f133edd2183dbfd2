"""A launch: waves of blocks, the last of them, and the kernel that adds up parts of K.

The blocks of a wave start together, and share L2 and DRAM evenly. The last wave has
fewer blocks, on some SMs one more than on others: it lasts as long as the fullest SM.
"""

from __future__ import annotations

from math import ceil

from yardstick import kernel as needs
from yardstick import memory, roles, warps
from yardstick.kernel import Kernel
from yardstick.machines import Machine
from yardstick.memory import Wave
from yardstick.warps import Feed

_SIMILAR = 50.0  # steps that parts of bytes are rounded to, so that waves are alike
_SECTOR = 32  # bytes
_LANES = 32


def seconds(kernel: Kernel, machine: Machine) -> float:
    """Seconds of one launch, from the first block on; without `machine.launch`."""
    held = needs.resident(kernel, machine)
    spread = min(held, ceil(kernel.blocks / machine.sms))
    at_once = spread * machine.sms
    known: dict[tuple[int, float, float], float] = {}
    total = 0.0
    for count, wave in memory.waves(kernel, at_once, machine.l2_size):
        key = (
            wave.blocks,
            round(wave.missed * _SIMILAR) / _SIMILAR,
            round(wave.cold * _SIMILAR) / _SIMILAR,
        )
        if key not in known:
            known[key] = _wave_cycles(kernel, machine, Wave(*key))
        total += count * known[key]
    return total / machine.clock + _adding(kernel, machine)


def _wave_cycles(kernel: Kernel, machine: Machine, wave: Wave) -> float:
    """Cycles from the start of a wave's blocks until the last has stored its tile."""
    blocks = ceil(wave.blocks / machine.sms)
    share = (
        blocks / wave.blocks
    )  # of the fullest SM, whose blocks get as much as others
    dram = machine.dram / machine.clock * share
    l2 = min(machine.l2_port, machine.l2_all * share)
    # Half of the lines are in the other partition.
    near = machine.l2_latency * (1 + machine.far) / 2
    latency = near + wave.cold * (machine.dram_latency - machine.l2_latency)
    feed = Feed(l2, dram, latency, wave.missed)
    follow = roles.loop_cycles if kernel.wgmma else warps.loop_cycles
    loop = follow(kernel, machine, blocks, feed)
    spills = needs.spilled(kernel) * kernel.warps * _LANES * blocks
    spilled = 2 * spills * kernel.steps / machine.shared_bytes
    return machine.block_start + loop + spilled + _store(kernel, machine, feed, blocks)


def _store(kernel: Kernel, machine: Machine, feed: Feed, blocks: int) -> float:
    """Cycles in which an SM's blocks store their tiles of C, or of a part of it."""
    m, n, _ = kernel.block
    size = kernel.accumulator if kernel.parts > 1 else kernel.out
    columns = min(n, kernel.n)
    row = ceil(columns * size / _SECTOR) * _SECTOR
    if columns * size % _SECTOR:
        row += _SECTOR  # rows begin anywhere
    stored = blocks * min(m, kernel.m) * row
    issued = blocks * m * n * size / (16 * _LANES) / machine.quarters * 6
    return max(stored / min(feed.l2, 64.0), issued) + machine.l2_latency


def _adding(kernel: Kernel, machine: Machine) -> float:
    """Seconds of the kernel that adds up the parts; 0 where there are none."""
    if kernel.parts == 1:
        return 0.0
    elements = kernel.batch * kernel.m * kernel.n
    read = elements * kernel.accumulator * kernel.parts
    moved = read + elements * kernel.out
    at_once = machine.threads_per_sm * machine.sms
    waves = ceil(elements / at_once)
    latency = machine.block_start / 2 + 2.5 * machine.l2_latency
    working = min(machine.sms, ceil(elements / 256))
    l2 = min(machine.l2_all, working * machine.l2_port)
    cycles = waves * latency + moved / l2
    beyond = max(0.0, read - machine.l2_size)
    return machine.next_launch + max(
        cycles / machine.clock, (2 * beyond + elements * kernel.out) / machine.dram
    )
