"""Times inside an SM that `Target` does not hold, in clock cycles unless noted.

Sources: [T] arXiv 2206.02874, measured on A100; [WP] NVIDIA's A100 white paper; [S]
Accel-Sim's configuration of an Ampere GPU; [L] arXiv 2402.13499, measured on A100 and
H100; [E] an estimate of ours; [C] calibrated on times of Triton's matmuls on A100 and
H100 (PyTorch's AutoHeuristic data), on one half of the problems, see
`bench/bench_choosing.py`, LINE and LOADED with the yardstick in view too; [DS] data
sheets; [P] counted in kernels, `bench/bench_hopper.py`; [F] fitted to published times
of one kernel on an H100 at 8192 cubed (fast.cu: 777 TFLOP/s without multicast, 799 with
it); [CC] CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions";
[A] calibrated on times of attention on A100 (tokamax), on one half of the problems, see
`bench/bench_measured_kernels.py`. Figures of the A100 also stand for GPUs without
published measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alcop_mlir.target import SHARED_BANK_BYTES, SHARED_BANKS, Target

SUB_CORES = 4  # schedulers of an SM, each with a tensor core; [WP]
SHARED_BYTES_PER_CYCLE = SHARED_BANKS * SHARED_BANK_BYTES
L2_BYTES_PER_CYCLE = 64  # most that one SM reads from or writes to L2; [WP]
SHARED_LATENCY = 29.0  # ldmatrix.x4 until its registers may be read; [T]
MMA_LATENCY = 32.0  # mma.m16n8k16 until a dependent one may start; [T]
BARRIER = 30.0  # bar.sync of a block whose warps have all come; [E]
BLOCK_START = 700.0  # a block's launch, parameters and addresses; [E]
LAUNCH = 5000.0  # an empty kernel; [S] gpgpu_kernel_launch_latency
NEXT_LAUNCH = 1500.0  # from the end of a kernel to the start of the next; [E]
L2_KEPT = 0.75  # part of L2 that holds inputs until a later wave reads them; [E]
LOAD_STORE_LANES = 8  # of a sub-core, that access memory in one cycle; [WP]
LINE_BYTES = 128  # of a cache line of L1; CUDA Best Practices Guide, 9.2.1
LINE = 0.4  # of L1, to look up a cache line for a copy; [C]
DRAM_REACHED = 0.9  # part of DRAM's bandwidth, of copies; [L]
# From the first copy of a tile until all warps may use it: that many times the latency
# of one load alone; [C], on a few SMs as on all
LOADED = 2.25
# Fragments of C fill cache lines in part, and their addresses are computed: stores take
# that much longer than the bytes alone; [C]
STORED = 2.0
# Of wgmma, a cycle and SM: multiplications and additions, of elements of two bytes;
# 989.5e12 a second on 132 SMs at 1.83 GHz. [DS]
WGMMA_RATE, RATED_BYTES = 4096, 2
WGMMA_LATENCY = 128.0  # from the end of a group to a wgmma that waits for it; [E]
# Instructions of a warp in a K step: of those that multiply, for each wgmma, and of the
# one that copies; [P]
STEP_ISSUE, WGMMA_ISSUE, COPY_ISSUE = 31.0, 3.0, 32.0
CLUSTER_START = 300.0  # until all blocks of a cluster have met; [E]
ALONE = 2  # warpgroups that compute and leave no room for another block
EXPONENTIALS = 16  # that an SM begins in a cycle; [CC], on all targets
# Of attention: instructions of f32 for each score beside its exponential, and for each
# accumulator in each tile of keys; the part of the time that fragments of keys and
# values take which no other warp hides, of one warp on a sub-core; [A]
SCORE_INSTRUCTIONS, RESCALED_INSTRUCTIONS, FRAGMENTS_SEEN = 2.5, 2.0, 0.5
SHUFFLE = 30.0  # shfl.sync until its register may be read; [E], as of shared memory
ROW_INSTRUCTIONS = 6.0  # for each element of a row; [E]
WATTS = {"NVIDIA H100 80GB HBM3": 700.0, "NVIDIA H200": 700.0}  # [DS]
IDLE_WATTS = 100.0  # [E]
OPERATION_JOULES = 0.58e-12  # of elements of two bytes; [F]
L2_JOULES = 5.4e-12  # a byte between L2 and an SM; [F]
SHARED_JOULES = 4e-12  # a byte of shared memory; [E]
DRAM_JOULES = 30e-12  # a byte; [E]


@dataclass(frozen=True)
class Rates:
    """One SM of a target, in seconds and bytes per second; `flops` of one sub-core."""

    flops: float
    shared: float
    l2_most: float
    l2_latency: float
    dram_latency: float
    cycle: float

    def latency(self, missing: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Seconds until a tile comes, of which `missing` is the part not in L2."""
        return self.l2_latency + missing * (self.dram_latency - self.l2_latency)


def rates(target: Target) -> Rates:
    """The rates of one SM, from `Target` and this file."""
    return Rates(
        flops=target.tensor_f16_flops / target.sms / SUB_CORES,
        shared=SHARED_BYTES_PER_CYCLE * target.clock_hz,
        l2_most=L2_BYTES_PER_CYCLE * target.clock_hz,
        l2_latency=target.l2_latency / target.clock_hz,
        dram_latency=target.dram_latency / target.clock_hz,
        cycle=1.0 / target.clock_hz,
    )


def l2_share(target: Target) -> float:
    """Bytes in a cycle between L2 and an SM where all SMs are at work."""
    each = target.l2_bytes_per_second / target.clock_hz / target.sms
    return min(L2_BYTES_PER_CYCLE, each)
