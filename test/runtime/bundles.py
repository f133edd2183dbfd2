"""A small bundle made by hand, for tests of storing and launching."""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.polynomials import constant, size
from alcop_mlir.reference.steps import Einsum
from alcop_mlir.runtime.bundle import Bundle, Code
from alcop_mlir.runtime.manifest import (
    AtMost,
    CeilDiv,
    Function,
    Intermediate,
    Kernel,
    Parameter,
    PipelinedBuffer,
)
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

PTX = ".version 7.0\n.target sm_80\n.address_size 64\n// the kernel\n"
CUBIN = b"\x7fELF\x00cubin"


def matmul(
    m: int | str = 64, n: int = 32, k: int = 48, *, shared_bytes: int = 1024, **kernel
) -> Function:
    """`C = A @ B`, f16 in and f32 out, with one kernel."""
    launch = {
        "name": "matmul",
        "arguments": ("A", "B", "C") + ((m,) if isinstance(m, str) else ()),
        "grid": (2, 1, 1),
        "block": (128, 1, 1),
        "shared_bytes": shared_bytes,
        "schedule": Schedule(),
        "pipelines": (PipelinedBuffer("A 128x32xf16", "shared", 3),),
        "registers": 99,
        "spill_bytes": 0,
        "static_shared_bytes": 0,
    }
    return Function(
        name="matmul",
        parameters=(
            Parameter("A", "f16", (m, k), "in"),
            Parameter("B", "f16", (k, n), "in"),
            Parameter("C", "f32", (m, n), "out"),
        ),
        kernels=(Kernel(**{**launch, **kernel}),),
        reference=(Einsum("A", "B", "C", "mk,kn->mn", None),),
    )


def chain(rows: int | str = 4) -> Function:
    """Three kernels in a row: `A` to `x`, `x` to `y`, `y` to `C`; 8 columns of f32."""

    def kernel(name: str, *arguments: str) -> Kernel:
        covered = CeilDiv((rows, 8), 256) if isinstance(rows, str) else 1
        return Kernel(name, arguments, (covered, 1, 1), (256, 1, 1), 0, simt=True)

    return Function(
        name="chain",
        parameters=(
            Parameter("A", "f32", (rows, 8), "in"),
            Parameter("C", "f32", (rows, 8), "out"),
        ),
        kernels=(
            kernel("k0", "A", "x"),
            kernel("k1", "x", "y"),
            kernel("k2", "y", "C"),
        ),
        intermediates=(
            Intermediate("x", "f32", (rows, 8)),
            Intermediate("y", "i1", (rows, 8)),
        ),
        checks=(AtMost(constant(3), size(rows)),) if isinstance(rows, str) else (),
    )


def bundle(
    *functions: Function,
    target: str = "sm_80",
    ptx: str = PTX,
    cubin: bytes | None = CUBIN,
) -> Bundle:
    """A bundle of `functions`, or of one `matmul()`."""
    functions = functions or (matmul(),)
    kernels = {kernel.name for function in functions for kernel in function.kernels}
    return Bundle(
        target=find_target(target),
        compiler="alcop_mlir 0",
        source_hash="ab" * 32,
        functions=functions,
        code={name: Code(ptx, cubin) for name in kernels},
    )


def arrays(m: int = 64, n: int = 32, k: int = 48) -> list[np.ndarray[Any, Any]]:
    """What `matmul(m, n, k)` takes."""
    return [
        np.ones((m, k), np.float16),
        np.ones((k, n), np.float16),
        np.zeros((m, n), np.float32),
    ]
