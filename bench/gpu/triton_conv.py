"""A 2-D convolution as an implicit GEMM in Triton; needs Triton only.

One loop along K goes over the taps of the filter and the channels of each: a step lies
in one tap, and reads pixels where a mask says that they are inside of the image.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def conv(
    x_ptr,
    w_ptr,
    y_ptr,
    H: tl.constexpr,
    W: tl.constexpr,
    C: tl.constexpr,
    OUT_H: tl.constexpr,
    OUT_W: tl.constexpr,
    F: tl.constexpr,
    TAPS: tl.constexpr,
    STRIDE: tl.constexpr,
    BORDER: tl.constexpr,
    W_K: tl.constexpr,
    W_F: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Y = the convolution of X with square filters, f32 accumulators.

    x_ptr: images, N x H x W x C; zeros lie BORDER pixels wide around each
    w_ptr: filters of TAPS x TAPS x C; W_K and W_F are the strides, in elements, of taps
        and channels as one dimension, and of filters
    y_ptr: N x OUT_H x OUT_W x F
    BLOCK_M, BLOCK_N, BLOCK_K divide N * OUT_H * OUT_W, F and C
    """
    place = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    of_f = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    of_k = tl.arange(0, BLOCK_K)
    top = place // OUT_W % OUT_H * STRIDE - BORDER
    left = place % OUT_W * STRIDE - BORDER
    image = place // (OUT_W * OUT_H)
    corner = ((image * H + top) * W + left) * C
    x = x_ptr + (corner[:, None] + of_k[None, :])
    w = w_ptr + (of_k[:, None] * W_K + of_f[None, :] * W_F)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, TAPS * TAPS * C // BLOCK_K):
        tap = step // (C // BLOCK_K)
        channel = step % (C // BLOCK_K) * BLOCK_K
        down, right = tap // TAPS, tap % TAPS
        h, v = top + down, left + right
        inside = (h >= 0) & (h < H) & (v >= 0) & (v < W)
        offset = (down * W + right) * C + channel
        lhs = tl.load(x + offset, mask=inside[:, None], other=0.0)
        total = tl.dot(lhs, tl.load(w), total)
        w += BLOCK_K * W_K
    tl.store(y_ptr + (place[:, None] * F + of_f[None, :]), total)
