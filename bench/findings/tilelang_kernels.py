"""CUDA source of small kernels by TileLang, as JSON. Runs where TileLang is installed.

    python bench/findings/tilelang_kernels.py

No GPU is needed. `bench_findings.py` runs it, by the Python of such an environment, and
expects parameters in the order of their names, in which TileLang has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tilelang
import tilelang.language as T

ROWS, WIDTH = 8, 1024
SIZE, TILE, STEP = 256, 128, 32


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


def product(stages: int) -> Any:
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


def main() -> None:
    """Of each kernel: its name, stages and source; where its headers are."""
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    kernels = []
    with target:
        for make in (overwritten, product):
            for stages in (0, 2, 3):
                made = tilelang.lower(make(stages), target=target)
                name, source = make.__name__, made.kernel_source
                kernels.append({"name": name, "stages": stages, "source": source})
    home = Path(tilelang.__file__).parent
    folders = [str(home / "src"), str(home / "3rdparty" / "cutlass" / "include")]
    found = {"compiler": f"TileLang {tilelang.__version__}", "include": folders}
    print(json.dumps({**found, "kernels": kernels}))


if __name__ == "__main__":
    main()
