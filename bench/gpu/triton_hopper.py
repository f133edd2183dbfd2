"""Triton's matmul for Hopper: TMA and wgmma, as many blocks as SMs; needs Triton only.

usage: python -m bench.gpu.triton_hopper '{"block": [128, 256, 64], "stages": 3, ...}'

Prints what Triton makes of the kernel, as JSON: its PTX, the bytes of shared memory.
The structure is that of the persistent matmul in Triton's tutorials: tiles in groups of
rows, in a loop that Triton may specialise warps for. With Triton 3.9 it does so for 4
warps (to which it adds others) and for descriptors that the kernel makes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import triton
import triton.language as tl

GROUP = 8  # rows of tiles that run together


@dataclass(frozen=True)
class Config:
    """A kernel of f16.

    block:    M, N, K of a tile
    n_by_k:   whether B is stored N x K, else K x N
    has_roles: whether warps are specialised
    """

    block: tuple[int, int, int]
    stages: int
    warps: int
    n_by_k: bool
    has_roles: bool


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    N_BY_K: tl.constexpr,
    HAS_ROLES: tl.constexpr,
):
    """C[m, n] = A[m, k] * B, of f16, in f32."""
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    if N_BY_K:
        b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
    else:
        b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    rows = tl.cdiv(m, BLOCK_M)
    columns = tl.cdiv(n, BLOCK_N)
    steps = tl.cdiv(k, BLOCK_K)
    first, apart = tl.program_id(0), tl.num_programs(0)
    for tile in tl.range(first, rows * columns, apart, warp_specialize=HAS_ROLES):
        group = tile // (GROUP * columns)
        here = min(rows - group * GROUP, GROUP)
        row = (group * GROUP + tile % (GROUP * columns) % here) * BLOCK_M
        column = tile % (GROUP * columns) // here * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(steps):
            x = a.load([row, step * BLOCK_K])
            if N_BY_K:
                y = b.load([column, step * BLOCK_K]).T
            else:
                y = b.load([step * BLOCK_K, column])
            total = tl.dot(x, y, total)
        c.store([row, column], total.to(tl.float16))


def compiled(config: Config) -> dict[str, Any]:
    """What Triton makes of it for an H100, of sizes that are multiples of 16."""
    from bench_side_by_side import Tile, triton_code

    block_m, block_n, block_k = config.block
    constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    constants |= {"GROUP": GROUP, "N_BY_K": config.n_by_k}
    # Triton knows a tile by its warps and stages.
    tile = Tile(config.block, (block_m // config.warps, block_n), config.stages)
    made = triton_code(
        ("bench.gpu.triton_hopper", "matmul"),
        {name: "*fp16" for name in ("a_ptr", "b_ptr", "c_ptr")},
        {**constants, "HAS_ROLES": config.has_roles},
        tile,
        "sm_90",
    )
    return {
        "compiler": f"Triton {metadata.version('triton')}",
        "ptx": made.asm["ptx"],
        "shared_bytes": made.metadata.shared,
    }


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    fields["block"] = tuple(fields["block"])
    print(json.dumps(compiled(Config(**fields))))
