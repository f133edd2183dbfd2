"""What was measured of two GPUs, in clock cycles and bytes; each number has its source.

[A]  Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture through
     Microbenchmarking and Instruction-level Analysis", arXiv 2208.11174
[S]  Sun et al., "Dissecting Tensor Cores via Microbenchmarks", arXiv 2206.02874
[L]  Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture",
     arXiv 2402.13499, and its longer version, arXiv 2501.12084
[J]  Jia and Van Sandt, "Dissecting the Ampere GPU Architecture through
     Microbenchmarking", GTC 2021, S33322
[V]  Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
     arXiv 1804.06826; for what no one has published of later GPUs
[WA] NVIDIA A100 Tensor Core GPU Architecture (white paper); [WH] that of H100
[G]  CUDA C++ Programming Guide, compute capabilities 8.0 and 9.0
[E]  an estimate of ours, where nothing is published
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """One GPU.

    clock: cycles per second
    sms, quarters: SMs, and parts of one, each with a scheduler and a tensor core
    mma: cycles between two mma.m16n8k16 of f16 in one tensor core
    mma_latency: until one that adds to its result may start
    shared_latency: of ldmatrix until its registers may be read
    shared_bytes: per cycle, of an SM's shared memory
    l2_latency, dram_latency: of a load that hits or misses in L2
    far: of the L2 latency, for lines of the other partition of L2
    l2_port, l2_all: bytes per cycle of one SM, of all
    dram: bytes per second that are reached
    l2_size: bytes of lines that differ, which L2 keeps
    launch: seconds of an empty kernel; next_launch: of one that waits in the queue
    block_start: cycles from a block's launch to its first copy
    barrier: cycles, from the last warp's arrival on
    unroll: instructions of a K step besides copies, ldmatrix and mma, in one warp
    address: instructions for each copy besides itself
    tags: cache lines that L1 looks up per cycle for the copies of an SM
    queue: cycles of work that the load and store units accept before a warp stalls
    swing: part of a latency by which it varies from tile to tile
    wgmma: multiply-adds of an SM per cycle by wgmma; 0 where there is none
    tma: cycles that a copy by TMA takes longer than a load
    """

    name: str
    clock: float
    sms: int
    mma: float
    mma_latency: float
    shared_latency: float
    l2_latency: float
    dram_latency: float
    l2_port: float
    l2_all: float
    dram: float
    l2_size: float
    shared_per_sm: int
    registers_per_sm: int = 65536  # [G]
    threads_per_sm: int = 2048  # [G]
    blocks_per_sm: int = 32  # [G]
    quarters: int = 4  # [WA], [WH]
    shared_bytes: float = 128.0  # 32 banks of 4 bytes; [V] 4.1, [S] ldmatrix
    far: float = 1.75  # [J]: the other partition against the near one
    launch: float = 2.2e-6  # [E]
    next_launch: float = 1.1e-6  # [E]
    block_start: float = 900.0  # [E]
    barrier: float = 24.0  # [E]
    unroll: float = 22.0  # [E]
    address: float = 1.5  # [E]
    tags: float = 1.0  # [V] 3.2: L1 serves a line of 128 bytes at a time
    queue: float = 160.0  # [E]
    swing: float = 0.3  # [E]
    wgmma: float = 0.0
    tma: float = 0.0


A100 = Machine(
    name="A100-SXM4-80GB",
    clock=1.41e9,  # boost; [WA] table 1
    sms=108,  # [WA]
    mma=8.0,  # 256 multiply-adds a cycle of one tensor core [WA]; reached in [S]
    mma_latency=33.0,  # [S] table 3, m16n8k16 with f32 accumulators
    shared_latency=23.0,  # [A] table 4
    l2_latency=200.0,  # [A] table 4
    dram_latency=290.0 + 200.0,  # [A] table 4, a miss in L2 after the hit's way
    l2_port=64.0,  # [WA]
    l2_all=5120.0 * 0.7,  # [WA], of which copies reach so much [E]
    dram=2039e9 * 0.905,  # [WA]; [L] reaches 90.5 % of an A100's peak
    # 40 MB [WA] in two partitions, which keep a line each if SMs of both read it [J].
    l2_size=20e6,
    shared_per_sm=164 * 1024,  # [G]
)

H100 = Machine(
    name="H100-SXM5-80GB",
    clock=1.755e9,  # that its tensor figures are for; [WH]
    sms=132,  # [WH]
    # 512 a cycle [WH], of which mma.sync reaches 62.9 % [L].
    mma=2048 / (512 * 0.629),
    mma_latency=32.0,  # [L], m16n8k16 with f32 accumulators
    shared_latency=29.0,  # [L] memory latencies
    l2_latency=263.0,  # [L]
    dram_latency=478.8,  # [L]
    l2_port=64.0,  # as A100; [WH] names no other
    l2_all=5120.0 * 0.75,  # as A100 [E]
    dram=3352e9 * 0.91,  # [WH]; [L] reaches 91 % of an H100's peak
    l2_size=25e6,  # 50 MB [WH] in two partitions, as A100
    shared_per_sm=228 * 1024,  # [G]
    far=1.6,  # [E]
    wgmma=2048.0,  # 989.4e12 flops a second, 132 SMs, 1.83 GHz; [WH], reached in [L]
    tma=170.0,  # [E]
)

MACHINES = {"A100": A100, "H100": H100}
