"""A small bundle made by hand, for tests of storing and launching."""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    AtMost,
    CeilDiv,
    Kernel,
    Launch,
    PipelinedBuffer,
    Pointer,
    SizeValue,
    unguarded,
)
from alcop_mlir.polynomials import constant, size
from alcop_mlir.reference.steps import Einsum
from alcop_mlir.runtime.bundle import Bundle, Code
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
        "module": "matmul",
        "arguments": (*pointers("A", "B", "C"), *sizes(m)),
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
        launches=(unguarded(Kernel(**{**launch, **kernel})),),
        reference=(Einsum("A", "B", "C", "mk,kn->mn", None),),
    )


def chain(rows: int | str = 4) -> Function:
    """Three kernels in a row: `A` to `x`, `x` to `y`, `y` to `C`; 8 columns of f32."""

    def launch(name: str, *arrays: str) -> Launch:
        covered = CeilDiv(size(rows) * constant(8), 256) if isinstance(rows, str) else 1
        grid, block = (covered, 1, 1), (256, 1, 1)
        return unguarded(
            Kernel(name, "chain", pointers(*arrays), grid, block, 0, fallback="")
        )

    return Function(
        name="chain",
        parameters=(
            Parameter("A", "f32", (rows, 8), "in"),
            Parameter("C", "f32", (rows, 8), "out"),
        ),
        launches=(
            launch("k0", "A", "x"),
            launch("k1", "x", "y"),
            launch("k2", "y", "C"),
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
    modules = {kernel.module for function in functions for kernel in function.kernels}
    return Bundle(
        target=find_target(target),
        compiler="alcop_mlir 0",
        source_hash="ab" * 32,
        functions=functions,
        code={name: Code(ptx, cubin) for name in modules},
    )


def pointers(*arrays: str) -> tuple[Pointer, ...]:
    """The arguments of a kernel that takes these arrays."""
    return tuple(map(Pointer, arrays))


def sizes(*given: int | str) -> tuple[SizeValue, ...]:
    """The arguments of a kernel that takes those sizes that have names."""
    return tuple(SizeValue(one) for one in given if isinstance(one, str))


def arrays(m: int = 64, n: int = 32, k: int = 48) -> list[np.ndarray[Any, Any]]:
    """What `matmul(m, n, k)` takes."""
    return [
        np.ones((m, k), np.float16),
        np.ones((k, n), np.float16),
        np.zeros((m, n), np.float32),
    ]
