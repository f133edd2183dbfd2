"""Operations on a kernel of the bundle that checks, benchmarks and collection share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.reference.contraction_values import F32_STEP
from alcop_mlir.runtime.launch import Program
from alcop_mlir.tuning.problem import Problem
from bench.gpu.device import Arrays, Device, to_f64
from bench.gpu.pack import Kit
from bench.gpu.spec import Shape, Spec, array_bytes

_CHUNK = 2**25  # elements of C that are compared at once, in float64
_COMPARED_BYTES = 8 * 4  # of each: exact and got, their difference, its size


@dataclass(frozen=True)
class Loaded:
    """A kernel of the bundle, ready to be called with arrays of a device."""

    spec: Spec
    program: Program
    call: Callable[..., None]

    @property
    def kernel(self) -> Kernel:
        """The first; functions of the lists have one."""
        return self.program.function.kernels[0]

    @property
    def schedule(self) -> str:
        """The schedule that it was compiled with, in text form; "" if not known."""
        return str(self.kernel.schedule or self.spec.schedule)


def load(kit: Kit, spec: Spec, device: Device) -> Loaded:
    """Load a kernel; ConfigError where the bundle is damaged."""
    program = Program(kit.load(spec), None, "auto")
    return Loaded(spec, program, device.program(program))


def check_memory(device: Device, problem: Problem, sets: int = 1) -> None:
    """LaunchError where the arrays, and what checking them takes, do not fit."""
    compared = min(_CHUNK, problem.batch * problem.m * problem.n)
    needed = sets * array_bytes(problem) + compared * _COMPARED_BYTES
    free = device.free_bytes()
    if needed > free:
        raise LaunchError(
            f"{problem} needs {needed / 2**30:.1f} GiB of GPU memory, "
            f"{free / 2**30:.1f} are free"
        )


def errors(
    device: Device, problem: Problem, arrays: Arrays, others: tuple[Any, ...] = ()
) -> list[float]:
    """Relative error of C, then of each of `others`, against float64.

    The float64 reference is computed on the device, a part of the rows at a time. An
    element that is NaN gives an infinite error.
    """
    module = device.module
    a, b, c = arrays
    lhs, rhs = problem.layout.split(",")
    right = to_f64(b, problem.dtypes[1])
    right = right if rhs == "kn" else module.swapaxes(right, -1, -2)
    step = max(1, _CHUNK // problem.n) if problem.batch == 1 else problem.m
    results = (c, *others)
    worst, scale = [0.0] * len(results), 0.0
    for first in range(0, problem.m, step):
        rows = slice(first, min(first + step, problem.m))
        left = a[..., rows, :] if lhs == "mk" else a[..., :, rows]
        left = to_f64(module.ascontiguousarray(left), problem.dtypes[0])
        left = left if lhs == "mk" else module.swapaxes(left, -1, -2)
        exact = module.matmul(left, right)
        scale = max(scale, float(module.abs(exact).max()))
        for number, result in enumerate(results):
            part = module.ascontiguousarray(result[..., rows, :])
            got = to_f64(part, problem.dtypes[3])
            distance = float(module.abs(got - exact).max())
            # The maximum of NaN and a number is NaN.
            worst[number] = max(worst[number], _finite(distance))
    return [error / scale if scale else error for error in worst]


def tolerance(problem: Problem) -> float:
    """Largest relative error of a contraction; the rule of runtime/checking.py."""
    return problem.k * F32_STEP + dtypes.ROUNDING[problem.dtypes[3]]


def shape_name(shape: Shape) -> str:
    """As in `12x512x64x512`."""
    return "x".join(map(str, shape))


def row_key(kind: str, spec: Spec, shape: Shape) -> str:
    """What a row is called."""
    at = "" if spec.shape else f" at {shape_name(shape)}"
    return f"{kind} {spec.key}{at}"


def distance(device: Device, problem: Problem, one: Any, two: Any) -> float:
    """Largest difference of two results, by the largest element of the second."""
    module, dtype = device.module, problem.dtypes[3]
    flat_one, flat_two = one.reshape(-1), two.reshape(-1)
    worst = scale = 0.0
    for first in range(0, flat_one.size, _CHUNK):
        part = slice(first, first + _CHUNK)
        got, expected = (to_f64(flat[part], dtype) for flat in (flat_one, flat_two))
        worst = max(worst, _finite(float(module.abs(got - expected).max())))
        scale = max(scale, float(module.abs(expected).max()))
    return worst / scale if scale else worst


def _finite(value: float) -> float:
    return value if value < float("inf") else float("inf")
