"""CUDA source of small kernels by TileLang, as JSON. Runs where TileLang is installed.

    python bench/findings/tilelang_kernels.py CAPABILITY        # 80 or 90

No GPU is needed. `programs.py` runs it, by the Python of such an environment.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import tilelang
import tilelang.language as T

ROWS, WIDTH = 8, 1024
SIZE, TILE, STEP, INNER = 256, 128, 32, 64


def overwritten(stages: int) -> Any:
    """Row i of b is what the buffer held: row i - 1 of a, or row 0 at first."""

    @T.prim_func
    def kernel(
        a: T.Tensor((ROWS, WIDTH), "float16"),
        b: T.Tensor((ROWS, WIDTH), "float16"),
    ):
        with T.Kernel(1, threads=128):
            buffer = T.alloc_shared((WIDTH,), "float16")
            T.copy(a[0, 0], buffer)
            for i in T.Pipelined(ROWS, num_stages=stages):
                T.copy(buffer, b[i, 0])
                T.copy(a[i, 0], buffer)

    return kernel


def contraction(stages: int) -> Any:
    """A matmul, whose buffers are filled before they are read."""

    @T.prim_func
    def kernel(
        a: T.Tensor((SIZE, SIZE), "float16"),
        b: T.Tensor((SIZE, SIZE), "float16"),
        c: T.Tensor((SIZE, SIZE), "float32"),
    ):
        with T.Kernel(SIZE // TILE, SIZE // TILE, threads=128) as (x, y):
            left = T.alloc_shared((TILE, STEP), "float16")
            right = T.alloc_shared((STEP, TILE), "float16")
            total = T.alloc_fragment((TILE, TILE), "float32")
            T.clear(total)
            for k in T.Pipelined(SIZE // STEP, num_stages=stages):
                T.copy(a[y * TILE, k * STEP], left)
                T.copy(b[k * STEP, x * TILE], right)
                T.gemm(left, right, total)
            T.copy(total, c[y * TILE, x * TILE])

    return kernel


def normalised(stages: int) -> Any:
    """Softmax of rows, one by each block."""

    @T.prim_func
    def kernel(
        a: T.Tensor((ROWS, WIDTH), "float32"),
        b: T.Tensor((ROWS, WIDTH), "float32"),
    ):
        with T.Kernel(ROWS, threads=128) as row:
            values = T.alloc_fragment((1, WIDTH), "float32")
            most = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(a[row, 0], values)
            T.reduce_max(values, most, dim=1)
            for i, j in T.Parallel(1, WIDTH):
                values[i, j] = T.exp(values[i, j] - most[i])
            T.reduce_sum(values, total, dim=1)
            for i, j in T.Parallel(1, WIDTH):
                values[i, j] = values[i, j] / total[i]
            T.copy(values, b[row, 0])

    return kernel


def twice(stages: int) -> Any:
    """(a b) b for rows of a tile: one matmul behind the other."""

    @T.prim_func
    def kernel(
        a: T.Tensor((SIZE, INNER), "float16"),
        b: T.Tensor((INNER, INNER), "float16"),
        c: T.Tensor((SIZE, INNER), "float32"),
    ):
        with T.Kernel(SIZE // TILE, threads=128) as x:
            left = T.alloc_shared((TILE, INNER), "float16")
            right = T.alloc_shared((INNER, INNER), "float16")
            first = T.alloc_fragment((TILE, INNER), "float32")
            total = T.alloc_fragment((TILE, INNER), "float32")
            T.copy(a[x * TILE, 0], left)
            T.copy(b[0, 0], right)
            T.clear(first)
            T.gemm(left, right, first)
            T.copy(first, left)
            T.clear(total)
            T.gemm(left, right, total)
            T.copy(total, c[x * TILE, 0])

    return kernel


def parameters(made: Any) -> list[Any]:
    """What each parameter is: the name of an array, or the tensor map of one."""
    maps: dict[str, dict[str, Any]] = {}
    for function in made.host_mod.functions.values():
        known = (function.attrs or {}).get("tma_descriptor_args", {})
        for name, given in known.items():
            # Encoder, map, type, rank, array; sizes, strides, box, steps; four modes.
            rank, values = int(given[3]), [int(one) for one in given[5:]]
            maps[name.name] = {
                "array": given[4].name,
                "box": values[2 * rank : 3 * rank][::-1],
                "swizzle": [0, 32, 64, 128][values[4 * rank + 1]],
            }
    head = re.search(r"kernel_kernel\(([^)]*)\);", made.kernel_source)
    assert head is not None
    names = [one.split()[-1].lstrip("*") for one in head[1].split(",")]
    return [maps.get(name, name) for name in names]


def compiled(make: Any, stages: int, target: Any) -> dict[str, Any]:
    """The kernel's record: how it is launched, and its source."""
    made = tilelang.lower(make(stages), target=target)
    source = made.kernel_source
    bounds = re.search(r"__launch_bounds__\((\d+)", source)
    assert bounds is not None
    shared = 2 * max(TILE * INNER + INNER * INNER, 2 * TILE * STEP * max(stages, 1))
    return {
        "name": f"{make.__name__}{stages}",
        "entry": None,
        "threads": int(bounds[1]),
        "shared": shared,
        "parameters": parameters(made),
        "source": source,
    }


def main(capability: str) -> None:
    """Of each kernel its name, launch, parameters and source; where headers are."""
    suffix = "a" if capability == "90" else ""
    target = tilelang.tvm.target.Target(
        {"kind": "cuda", "arch": f"sm_{capability}{suffix}"}
    )
    cases = [(make, n) for make in (overwritten, contraction) for n in (0, 2, 3)]
    with target:
        kernels = [
            compiled(*case, target) for case in (*cases, (normalised, 0), (twice, 0))
        ]
    home = Path(tilelang.__file__).parent
    folders = [str(home / "src"), str(home / "3rdparty" / "cutlass" / "include")]
    name = f"TileLang {tilelang.__version__}, sm_{capability}"
    print(json.dumps({"compiler": name, "include": folders, "kernels": kernels}))


if __name__ == "__main__":
    main(sys.argv[1])
