"""Triton's matmul and the configurations that it is tuned over; needs Triton only.

The kernel has the structure of the one in Triton's tutorial: blocks in groups for the
L2 cache, and a K loop that Triton pipelines.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl

GROUP = 8  # rows of blocks that run together


@dataclass(frozen=True)
class Config:
    """M, N, K of a block's tile, stages, warps."""

    block: tuple[int, int, int]
    stages: int
    warps: int

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.block))
        return f"block={sizes} num_stages={self.stages} num_warps={self.warps}"


CONFIGS = (
    Config((128, 256, 64), 3, 8),
    Config((256, 128, 64), 3, 8),
    Config((128, 128, 64), 3, 4),
    Config((128, 128, 64), 4, 8),
    Config((128, 128, 32), 4, 4),
    Config((128, 64, 64), 4, 4),
    Config((64, 128, 64), 4, 4),
    Config((64, 64, 64), 4, 4),
    Config((64, 64, 128), 3, 4),
    Config((64, 32, 64), 5, 4),
    Config((32, 64, 64), 5, 4),
    Config((16, 64, 128), 4, 4),
)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_batch,
    a_m,
    a_k,
    b_batch,
    b_k,
    b_n,
    c_batch,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    """C = A * B, row-major, f32 accumulators; strides in elements.

    EVEN_K: whether BLOCK_K divides k
    """
    number = tl.program_id(0)
    rows, columns = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    in_group = GROUP * columns
    first = number // in_group * GROUP
    height = min(rows - first, GROUP)
    row = first + number % in_group % height
    column = number % in_group // height
    batch = tl.program_id(1).to(tl.int64)
    of_m = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    of_n = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    of_k = tl.arange(0, BLOCK_K)
    a = a_ptr + batch * a_batch + (of_m[:, None] * a_m + of_k[None, :] * a_k)
    b = b_ptr + batch * b_batch + (of_k[:, None] * b_k + of_n[None, :] * b_n)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        if EVEN_K:
            lhs, rhs = tl.load(a), tl.load(b)
        else:
            left = k - step * BLOCK_K
            lhs = tl.load(a, mask=of_k[None, :] < left, other=0.0)
            rhs = tl.load(b, mask=of_k[:, None] < left, other=0.0)
        total = tl.dot(lhs, rhs, total)
        a += BLOCK_K * a_k
        b += BLOCK_K * b_k
    to_m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    to_n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    c = c_ptr + batch * c_batch + to_m[:, None].to(tl.int64) * n + to_n[None, :]
    inside = (to_m[:, None] < m) & (to_n[None, :] < n)
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=inside)
