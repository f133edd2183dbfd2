"""Triton as a competitor: the fastest of its configurations at a shape.

Needs Triton and torch; imported only where both are installed. To test whether they
work here, run: python -m bench.gpu.triton_matmul
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import triton

from alcop_mlir.tuning.problem import Problem
from bench.gpu.cuda_device import CudaDevice
from bench.gpu.device import Arrays, Device, Pool
from bench.gpu.operations import distance, tolerance
from bench.gpu.spec import LAYOUTS, Spec
from bench.gpu.triton_kernel import CONFIGS, GROUP, Config, matmul

_TRIES = 3  # times of each configuration while it is chosen


class TritonMatmul:
    """Finds the fastest configuration at a shape; RuntimeError if torch has no GPU."""

    # The errors of configurations that do not fit or do not compile.
    failures: tuple[type[BaseException], ...] = (RuntimeError, triton.TritonError)

    def __init__(self, device: Device):
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU")
        # CuPy and torch both use CUDA's legacy default stream unless told otherwise.
        self._device = device

    def tuned(
        self, device: Device, problem: Problem, sets: Sequence[Arrays]
    ) -> tuple[Callable[[Arrays], object], str]:
        """The call that was fastest, and its configuration.

        Raises one of `failures` where none runs.
        """
        _TENSORS.clear()  # they keep the arrays of the shape before alive
        best: tuple[float, Config] | None = None
        refused: BaseException = RuntimeError("no configuration")
        for config in CONFIGS:
            call = partial(_launch, problem, config)
            try:
                call(sets[0])
                times = [
                    device.seconds([partial(call, sets[i % len(sets)])])[0]
                    for i in range(_TRIES)
                ]
            except self.failures as error:
                refused = error
                continue
            if best is None or min(times) < best[0]:
                best = min(times), config
        if best is None:
            raise refused
        return partial(_launch, problem, best[1]), str(best[1])


def _launch(problem: Problem, config: Config, arrays: Arrays) -> None:
    a, b, c = (
        _tensor(array, dtype)
        for array, dtype in zip(
            arrays, (*problem.dtypes[:2], problem.dtypes[3]), strict=True
        )
    )
    m, n, k, batch = problem.sizes
    lhs, rhs = problem.layout.split(",")
    a_strides = (k, 1) if lhs == "mk" else (1, m)
    b_strides = (n, 1) if rhs == "kn" else (1, k)
    block_m, block_n, block_k = config.block
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n), batch)
    matmul[grid](
        a,
        b,
        c,
        m,
        n,
        k,
        m * k,
        *a_strides,
        k * n,
        *b_strides,
        m * n,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP=GROUP,
        EVEN_K=k % block_k == 0,
        num_stages=config.stages,
        num_warps=config.warps,
    )


_TENSORS: dict[tuple[int, str], Any] = {}


def _tensor(array: Any, dtype: str) -> Any:
    """`array` as a torch tensor of the same memory."""
    key = (array.data.ptr, dtype)
    found = _TENSORS.get(key)
    if found is None or found.shape != array.shape:
        found = torch.from_dlpack(array)
        if dtype == "bf16":
            found = found.view(torch.bfloat16)
        _TENSORS[key] = found
    return found


def main() -> int:
    """Check small matmuls in all layouts against cuBLAS."""
    cupy = importlib.import_module("cupy")
    device = CudaDevice(cupy)
    TritonMatmul(device)
    pool = Pool(device, size=4999)
    for layout in LAYOUTS.values():
        for batch, op in ((1, "matmul"), (3, "batch_matmul")):
            problem = Spec(op, layout=layout).problem((batch, 160, 96, 80))
            arrays = pool.operands(problem)
            expected = device.empty(arrays[2].shape, "f32")
            device.library(problem)((*arrays[:2], expected))
            _launch(problem, CONFIGS[-1], arrays)
            off = distance(device, problem, arrays[2], expected)
            if off > 2 * tolerance(problem):
                print(f"off from cuBLAS by {off:.2e}: {problem}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
