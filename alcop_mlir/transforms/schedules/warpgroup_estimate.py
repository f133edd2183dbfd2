"""An estimate of the cycles that a schedule for wgmma takes, by which one is chosen.

A K step of a block takes as long as what is slowest of it: the tensor cores; the port
to shared memory, which they read by and TMA writes by; the reads from L2, of which a
cluster reads what it shares once. Blocks that run on an SM together share all three.
That both use one port is not measured, nor how near to its limits each comes: the
estimate ranks tiles, and predicts no time.

4096 operations of f16 and 128 bytes a cycle and SM are those of an H100 (989.5e12 a
second on 132 SMs at 1.83 GHz; CUDA programming guide, shared memory); elements of half
the bytes have twice the operations. L2 is the target's.

Blocks that go through several tiles store one while the copies of the next begin; with
mode=pingpong while the other warpgroup multiplies the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from alcop_mlir import resources
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.element_types import element_bytes
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import WARP_SIZE, WARPGROUP, WGMMA_M, Target

_OPERATIONS, _SHARED_BYTES = 4096, 128  # a cycle and SM
_BYTES_OF_OPERATIONS = 2  # of an element that is multiplied at that rate
# Cycles from the launch of a block to its first wgmma, and to add up parts of K.
_START = 1500.0
_STORED_BYTES = 24.0  # of C, a cycle and SM: 4.8e12 a second on 132 SMs at 1.83 GHz
_ALONE = 2 * WARPGROUP * WARP_SIZE  # threads that leave no room for another block


@dataclass(frozen=True)
class Estimate:
    """Cycles. Of a K step of the blocks on an SM, what is slowest counts.

    tensor_cores, shared_memory, l2: of a K step
    stores: of the C of the blocks on an SM
    total:  of all blocks
    """

    tensor_cores: float
    shared_memory: float
    l2: float
    stores: float
    total: float

    @property
    def limit(self) -> str:
        """What a K step waits for."""
        parts = {
            "tensor cores": self.tensor_cores,
            "shared memory": self.shared_memory,
            "L2": self.l2,
        }
        return max(parts, key=parts.__getitem__)


def blocks_of(contraction: Contraction, schedule: Schedule) -> int:
    """Tiles of C, of all matrices; sizes are known."""
    sizes = zip((contraction.m or 0, contraction.n or 0), schedule.block, strict=False)
    return math.prod(-(-size // extent) for size, extent in sizes) * (
        contraction.batch or 1
    )


def is_persistent(schedule: Schedule, blocks: int, target: Target) -> bool:
    """Whether blocks go through several tiles: see alcop-make-persistent."""
    return schedule.threads * schedule.turns >= _ALONE and blocks > target.sms


def estimate(contraction: Contraction, target: Target, schedule: Schedule) -> Estimate:
    """Of a contraction of known sizes, on a target with wgmma."""
    rows, columns, step = schedule.block
    size = contraction.element_bytes
    blocks = blocks_of(contraction, schedule) * schedule.split_k
    steps = -(-(contraction.k or 0) // (step * schedule.split_k))
    together = resources.cost(schedule, target, size).blocks_per_sm
    at_once = min(together, -(-blocks // target.sms))
    rate = _OPERATIONS * _BYTES_OF_OPERATIONS / size
    products = 2 * rows * columns * step / rate
    read = rows / WGMMA_M * (WGMMA_M + columns) * step * size
    written = (rows + columns) * step * size
    from_l2 = (rows + columns / schedule.cluster) * step * size
    of_l2 = target.l2_bytes_per_second / target.clock_hz / min(target.sms, blocks or 1)
    parts = (products, (read + written) / _SHARED_BYTES, from_l2 / of_l2)
    stored = rows * columns * element_bytes(contraction.out_type) / _STORED_BYTES
    waves = -(-blocks // (target.sms * at_once))
    multiplied = steps * max(parts) * at_once
    stores = stored * at_once
    if schedule.turns > 1:
        total = waves * max(multiplied, stores) + min(multiplied, stores) + _START
    elif is_persistent(schedule, blocks, target):
        total = waves * (multiplied + stores) + _START
    else:
        total = waves * (multiplied + stores + _START)
    total += _START if schedule.split_k > 1 else 0.0
    tensor_cores, shared_memory, l2 = (part * at_once for part in parts)
    return Estimate(tensor_cores, shared_memory, l2, stores, total)
