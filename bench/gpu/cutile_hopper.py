"""cuTile's matmul for Hopper: TMA and wgmma; needs cuda-tile with tileiras only.

usage: python -m bench.gpu.cutile_hopper '{"block": [128, 128, 64], "n_by_k": true}'

Prints what cuTile makes of the kernel, as JSON: its cubin, in base64. The kernel is a
block's tile, a loop over K and a store, as its compiler wants it: stages, warps and
their roles it chooses itself. Sizes and strides are multiples of 8 elements.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from importlib import metadata
from typing import Any

import cuda.tile as ct  # pyright: ignore[reportMissingImports]
from cuda.tile import compilation  # pyright: ignore[reportMissingImports]

_TARGET = "sm_90"  # whose code runs on this architecture only, as that of sm_90a
_ALIGNED = 8  # elements of f16 of 16 bytes


@ct.kernel
def matmul(
    a_array,
    b_array,
    c_array,
    block_m: ct.Constant[int],
    block_n: ct.Constant[int],
    block_k: ct.Constant[int],
    n_by_k: ct.Constant[bool],
):
    """C[m, n] = A[m, k] * B, of f16, in f32."""
    columns = ct.cdiv(c_array.shape[1], block_n)
    row, column = ct.bid(0) // columns, ct.bid(0) % columns
    total = ct.full((block_m, block_n), 0, dtype=ct.float32)
    for step in range(ct.num_tiles(a_array, axis=1, shape=(block_m, block_k))):
        a = ct.load(a_array, index=(row, step), shape=(block_m, block_k))
        if n_by_k:
            b = ct.load(b_array, index=(column, step), shape=(block_n, block_k))
            b = ct.transpose(b)
        else:
            b = ct.load(b_array, index=(step, column), shape=(block_k, block_n))
        total = ct.mma(a, b, total)
    ct.store(c_array, index=(row, column), tile=ct.astype(total, c_array.dtype))


def compiled(block: tuple[int, int, int], n_by_k: bool) -> dict[str, Any]:
    """What cuTile makes of it, of arrays with rows of whole 16 bytes."""
    array = compilation.ArrayConstraint(
        ct.float16,
        2,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=(None, 1),
        stride_divisible_by=(_ALIGNED, 1),
        shape_divisible_by=(_ALIGNED, _ALIGNED),
        base_addr_divisible_by=16,
    )
    constants = [compilation.ConstantConstraint(one) for one in (*block, n_by_k)]
    signature = compilation.KernelSignature(
        [array, array, array, *constants],
        compilation.CallingConvention.cutile_python_v1(),
        symbol="matmul",
    )
    made = io.BytesIO()
    compilation.export_kernel(
        matmul, [signature], made, gpu_code=_TARGET, output_format="cubin"
    )
    return {
        "compiler": f"cuTile {metadata.version('cuda-tile')}",
        "cubin": base64.b64encode(made.getvalue()).decode(),
    }


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    print(json.dumps(compiled(tuple(fields["block"]), fields["n_by_k"])))
