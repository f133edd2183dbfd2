"""The properties of a GPU by which schedules are chosen and checked.

Sources: [CC] CUDA C++ Programming Guide, "Compute Capabilities" (technical
specifications per compute capability), and the Blackwell Tuning Guide; [PTX] PTX ISA,
the instruction's own section; [WP] NVIDIA's architecture white papers (A100, GA102,
AD102, H100 SXM, RTX Blackwell); [DS] NVIDIA's data sheet of the device; [H] arXiv
2402.13499, measured on A100 and RTX 4090; [B] chipsandcheese.com, "Nvidia's B200".
Rates are dense, at boost clock.
"""

from __future__ import annotations

import re
from dataclasses import replace

from alcop_mlir.errors import check_known
from alcop_mlir.frozen import frozen

MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks along x, y, z; CUDA, all GPUs
WARP_SIZE = 32  # lanes; [CC]
CP_ASYNC_BYTES = (4, 8, 16)  # bytes per thread; [PTX] cp.async, cp-size
# Bytes: constants added to a global address, in the instruction, are less. Seen with
# ptxas 13: it adds 0x1000 by instructions of their own, 0xf80 not.
CP_ASYNC_REACH = 0x1000
CP_ASYNC_BYPASS_L1_BYTES = 16  # [PTX] cp.async.cg takes 16 only
SHARED_BANKS = 32  # banks of 4 bytes; [CC] shared memory
SHARED_BANK_BYTES = 4
SHARED_SPACE = 3  # of addresses; LLVM, NVPTX usage
SECTOR_BYTES = 32  # granularity of a global access; CUDA Best Practices, 9.2.1
MAX_REGISTERS_PER_THREAD = 255  # [CC]
STATIC_SHARED_LIMIT = 48 * 1024  # bytes; above it shared memory must be dynamic; [CC]
SHARED_BYTES_RESERVED_PER_BLOCK = 1024  # bytes, kept by the system on sm_80+; [CC]
MMA_F16_SHAPE = (16, 8, 16)  # m, n, k of one mma.sync; [PTX] mma.sync.m16n8k16
# Along k, of one mma.sync whatever its operands' type: m16n8k16 of f16 and bf16,
# m16n8k8 of tf32 (4 bytes each), m16n8k32 of s8; [PTX] "Matrix Fragments for mma"
MMA_K_BYTES = 32
WARPGROUP = 4  # warps that execute a wgmma together; [PTX] wgmma
WGMMA_M = 64  # rows of one wgmma; [PTX] wgmma.mma_async, "Register fragments"
MAX_WGMMA_N = 256  # columns; the same


TENSOR_MAP_BYTES = 128  # CUDA driver API, CUtensorMap
TENSOR_MAP_ALIGNMENT = 64  # bytes, of a parameter; the same
TENSOR_MAP_RANK = 5  # dimensions at most; CUDA driver API, cuTensorMapEncodeTiled
TENSOR_MAP_EXTENT = 1 << 32  # elements along each, at most; the same
TENSOR_MAP_DISTANCE = 1 << 40  # bytes: those of rows are less, above 0; the same
_NAME = re.compile(r"sm_(\d+)([a-z]?)")


@frozen
class Target:
    """One kind of GPU. Times in seconds, sizes in bytes, rates per second.

    Sources where the row names no other.
    """

    name: str  # "sm_80"; "sm_90a" with the feature set "a"
    device: str  # the GPU that the rates are for, as its driver names it
    sms: int  # [WP]; of H200 [DS]
    shared_bytes_per_block: int  # most a block may ask for, dynamic; [CC]
    shared_bytes_per_sm: int  # [CC]
    threads_per_sm: int  # [CC]
    blocks_per_sm: int  # [CC]
    clock_hz: float  # [WP]
    tensor_f16_flops: float  # mma.sync, f16 or bf16 in, f32 accumulate; [WP]
    dram_bytes_per_second: float  # [DS]
    l2_bytes_per_second: float
    l2_bytes: int  # [WP]
    registers_per_sm: int = 65536  # of 32 bits; [CC]
    threads_per_block: int = 1024  # [CC]
    # Additions and multiplications of f32 that an SM begins in a cycle; [CC],
    # "Throughput of Native Arithmetic Instructions"
    float_lanes: int = 128
    # L2 hit, miss to DRAM, in cycles; of an A100 [H] where nobody measured
    l2_latency: float = 262.0
    dram_latency: float = 466.0
    # Element types that mma.sync multiplies here and not on all targets, at twice the
    # rate of f16 [WP]: QMMA on sm_89 and sm_120. [PTX] has them from sm_89 on, but for
    # sm_90 and sm_100 ptxas 13.5 makes each two HMMA of f16, and twelve conversions
    multiplied: tuple[str, ...] = ()
    # Letters of the feature sets that code for this architecture alone may use; [PTX]
    # .target, "architecture-specific features"
    features: str = ""

    @property
    def architecture(self) -> str:
        """The name without a feature set: "sm_90" for sm_90a."""
        return f"sm_{self.compute_capability}"

    @property
    def is_specific(self) -> bool:
        """Whether its code runs on GPUs of this architecture only."""
        return self.name != self.architecture

    @property
    def compute_capability(self) -> int:
        """80 for sm_80."""
        return int(_parsed(self.name)[0])

    @property
    def has_wgmma(self) -> bool:
        """Whether warpgroups multiply by wgmma: sm_90a; [PTX] wgmma.mma_async."""
        return self.name == "sm_90a"

    def runs_on(self, capability: int) -> bool:
        """Whether its PTX runs on a GPU of that compute capability."""
        if self.is_specific:
            return capability == self.compute_capability
        return capability >= self.compute_capability


TARGETS = (
    Target(
        name="sm_80",
        device="NVIDIA A100-SXM4-80GB",
        sms=108,
        shared_bytes_per_block=163 * 1024,
        shared_bytes_per_sm=164 * 1024,
        threads_per_sm=2048,
        blocks_per_sm=32,
        clock_hz=1.41e9,
        tensor_f16_flops=312e12,
        dram_bytes_per_second=2039e9,
        l2_bytes_per_second=5120 * 1.41e9,  # 5120 bytes a clock [WP]
        l2_bytes=40 * 2**20,
        float_lanes=64,
    ),
    Target(
        name="sm_86",
        device="NVIDIA GeForce RTX 3090",
        sms=82,
        shared_bytes_per_block=99 * 1024,
        shared_bytes_per_sm=100 * 1024,
        threads_per_sm=1536,
        blocks_per_sm=16,
        clock_hz=1.695e9,
        tensor_f16_flops=71e12,
        dram_bytes_per_second=936e9,
        l2_bytes_per_second=1536 * 1.695e9,  # 24 slices of 64 bytes a clock [WP]
        l2_bytes=6 * 2**20,
    ),
    Target(
        name="sm_89",
        device="NVIDIA GeForce RTX 4090",
        sms=128,
        shared_bytes_per_block=99 * 1024,
        shared_bytes_per_sm=100 * 1024,
        threads_per_sm=1536,
        blocks_per_sm=24,
        clock_hz=2.52e9,
        tensor_f16_flops=165.2e12,
        dram_bytes_per_second=1008e9,
        l2_bytes_per_second=2048 * 2.52e9,  # 32 slices of 64 bytes a clock [WP]
        l2_bytes=72 * 2**20,
        l2_latency=273.0,
        dram_latency=542.0,
        multiplied=("f8E4M3FN", "f8E5M2"),
    ),
    Target(
        name="sm_90",
        device="NVIDIA H200",
        sms=132,
        shared_bytes_per_block=227 * 1024,
        shared_bytes_per_sm=228 * 1024,
        threads_per_sm=2048,
        blocks_per_sm=32,
        clock_hz=1.83e9,  # [DS] 989.5e12 by 132 SMs of 4096 flops a clock [WP]
        # mma.sync reaches about 0.63 of wgmma's 989.5e12 (arXiv 2501.12084, 6.2)
        tensor_f16_flops=623e12,
        dram_bytes_per_second=4.8e12,
        l2_bytes_per_second=5120 * 1.83e9,  # as A100, per clock
        l2_bytes=50 * 2**20,
        features="a",
    ),
    Target(
        name="sm_100",
        device="NVIDIA B200",
        sms=148,  # [B]
        shared_bytes_per_block=227 * 1024,
        shared_bytes_per_sm=228 * 1024,
        threads_per_sm=2048,
        blocks_per_sm=32,
        clock_hz=1.85e9,  # [DS] 2.25e15 of f16 by 148 SMs of 8192 flops a clock
        # An estimate: as sm_90, per SM and clock, where HMMA.16816 is one instruction
        # too. Nobody has published a rate of mma.sync; tcgen05 is not used
        tensor_f16_flops=623e12 * (148 * 1.85e9) / (132 * 1.83e9),
        dram_bytes_per_second=8e12,
        l2_bytes_per_second=5120 * 1.85e9,  # an estimate: as A100, per clock
        l2_bytes=126 * 2**20,  # [B]
    ),
    Target(
        name="sm_120",
        device="NVIDIA GeForce RTX 5090",
        sms=170,
        shared_bytes_per_block=99 * 1024,
        shared_bytes_per_sm=100 * 1024,
        threads_per_sm=1536,
        blocks_per_sm=24,
        clock_hz=2.407e9,
        tensor_f16_flops=209.5e12,
        dram_bytes_per_second=1792e9,
        l2_bytes_per_second=2048 * 2.407e9,  # an estimate: as sm_89, per clock
        l2_bytes=96 * 2**20,
        multiplied=("f8E4M3FN", "f8E5M2"),
    ),
)

DEFAULT_TARGET = "sm_80"


def mma_shape(element_bytes: int) -> tuple[int, int, int]:
    """m, n, k of one mma.sync on operands of that size."""
    return (*MMA_F16_SHAPE[:2], MMA_K_BYTES // element_bytes)


def target_names() -> tuple[str, ...]:
    """Names that `find_target` knows, with feature sets after the one without."""
    return tuple(
        f"{target.name}{feature}"
        for target in TARGETS
        for feature in ("", *target.features)
    )


def find_target(name: str) -> Target:
    """The target called `name`. Raises ConfigError with the known names.

    A name with a feature set, such as "sm_90a", is the row of its architecture, for
    code that runs there only.
    """
    check_known("target", name, target_names())
    capability, feature = _parsed(name)
    row = next(target for target in TARGETS if target.name == f"sm_{capability}")
    return replace(row, name=name) if feature else row


def newest_target(capability: int) -> Target | None:
    """The newest known target that a GPU of that compute capability runs."""
    fitting = [target for target in TARGETS if target.runs_on(capability)]
    return max(fitting, key=lambda target: target.compute_capability, default=None)


def _parsed(name: str) -> tuple[str, str]:
    """Digits of the compute capability, and the feature set; "" where it is no name."""
    found = _NAME.fullmatch(name)
    return (found[1], found[2]) if found else ("", "")
