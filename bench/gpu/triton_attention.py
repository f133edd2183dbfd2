"""Attention as one kernel in Triton; needs Triton only.

A block has a tile of queries of one head, and goes through tiles of keys and values
with the largest score and the total of weights of each row so far. Causal attention
goes through the tiles before the diagonal first, without a mask.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def attend(
    q,
    acc,
    largest,
    total,
    k_ptr,
    v_ptr,
    first,
    last,
    rows,
    SCALE: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Output, largest scores and totals of weights after the keys `first` to `last`."""
    along = tl.arange(0, HEAD)
    across = tl.arange(0, BLOCK_N)
    for start in tl.range(first, last, BLOCK_N):
        columns = start + across
        k = tl.load(k_ptr + columns[None, :] * HEAD + along[:, None])
        scores = tl.dot(q, k)
        if MASKED:
            scores = tl.where(columns[None, :] <= rows[:, None], scores, -1.0e30)
        new = tl.maximum(largest, tl.max(scores, 1) * SCALE)
        weights = tl.exp2(scores * SCALE - new[:, None])
        change = tl.exp2(largest - new)
        total = total * change + tl.sum(weights, 1)
        acc = acc * change[:, None]
        v = tl.load(v_ptr + columns[:, None] * HEAD + along[None, :])
        acc = tl.dot(weights.to(v.dtype), v, acc)
        largest = new
    return acc, largest, total


@triton.jit
def attention(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    SIZE: tl.constexpr,
    HEAD: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    """softmax(Q K' * scale) V of one head; the scale is that of powers of two."""
    start = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1) * SIZE * HEAD
    rows = start + tl.arange(0, BLOCK_M)
    along = tl.arange(0, HEAD)
    place = head + rows[:, None] * HEAD + along[None, :]
    q = tl.load(q_ptr + place)
    acc = tl.zeros((BLOCK_M, HEAD), tl.float32)
    largest = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    unmasked = start if CAUSAL else SIZE
    acc, largest, total = attend(
        q, acc, largest, total, k_ptr + head, v_ptr + head, 0, unmasked, rows,
        SCALE, HEAD, BLOCK_N, False,
    )  # fmt: skip
    if CAUSAL:
        acc, largest, total = attend(
            q, acc, largest, total, k_ptr + head, v_ptr + head, start, start + BLOCK_M,
            rows, SCALE, HEAD, BLOCK_N, True,
        )  # fmt: skip
    acc = acc / total[:, None]
    tl.store(o_ptr + place, acc.to(o_ptr.dtype.element_ty))
