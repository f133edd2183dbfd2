"""A GPU through CuPy: arrays, launches, cuBLAS, and times that exclude the CPU.

Only documented interfaces of CuPy are used, versions 13 and 14. CuPy is passed in, so
that tests can pass in something else.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.errors import AlcopError
from alcop_mlir.runtime.launch import Program
from alcop_mlir.tuning.problem import Problem
from bench.gpu.device import Arrays, Call, Dim3, storage
from bench.gpu.maps import Map
from bench.gpu.spec import extents

_PROBES = Path(__file__).parent / "probes"
_FIRST_DELAY = 1e-3  # seconds that the GPU waits while the CPU enqueues a round
_LONGEST_DELAY = 0.05
_TRIES = 4  # of a round whose calls were not all enqueued in time
_SMI_FIELDS = "clocks.sm,clocks.mem,temperature.gpu,power.draw"
_SMI_SECONDS = 10.0


class CudaDevice:
    """The current GPU of CuPy; see device.Device."""

    name = "cuda"

    def __init__(self, cupy: Any):
        cuda = cupy.cuda
        self.module = self._cupy = cupy
        self.capability = int(cuda.Device().compute_capability)
        self.failures: tuple[type[BaseException], ...] = (
            AlcopError,
            MemoryError,  # CuPy's OutOfMemoryError is one
            cuda.runtime.CUDARuntimeError,
            cuda.driver.CUDADriverError,
            *_library_errors(cupy),
        )
        self._delay = _FIRST_DELAY
        self._events: list[Any] = []
        self._spin: Callable[..., None] | None = None
        self.late_rounds = 0

    def about(self) -> dict[str, Any]:
        """GPU, memory, driver, versions."""
        runtime = self._cupy.cuda.runtime
        device = self._cupy.cuda.Device()
        properties = runtime.getDeviceProperties(device.id)
        name = properties["name"]
        return {
            "gpu": name.decode() if isinstance(name, bytes) else str(name),
            "capability": self.capability,
            "sms": int(properties["multiProcessorCount"]),
            "memory_bytes": int(runtime.memGetInfo()[1]),
            "l2_bytes": self.cache_bytes(),
            "driver": _query("driver_version") or "unknown",
            "cuda_driver": runtime.driverGetVersion(),
            "cuda_runtime": runtime.runtimeGetVersion(),
            "cupy": self._cupy.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }

    def state(self) -> dict[str, Any]:
        """The readings of nvidia-smi, if any, and the rounds enqueued too late."""
        values = _query(_SMI_FIELDS).split(", ")
        names = ("sm_mhz", "memory_mhz", "celsius", "watts")
        found: dict[str, Any] = {"late_rounds": self.late_rounds}
        if len(values) == len(names):
            found |= {
                name: float(value)
                for name, value in zip(names, values, strict=True)
                if value.replace(".", "", 1).isdigit()
            }
        return found

    def free_bytes(self) -> int:
        """Free memory of the GPU, that of CuPy's pool included."""
        self._cupy.get_default_memory_pool().free_all_blocks()
        return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def cache_bytes(self) -> int:
        """Bytes of the L2 cache."""
        return int(self._cupy.cuda.Device().attributes["L2CacheSize"])

    def array(self, host: np.ndarray[Any, Any]) -> Any:
        """A copy on the GPU."""
        return self._cupy.array(host)

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy in main memory."""
        return array.get()

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array of bytes 0xFF."""
        array = self._cupy.empty(shape, storage(dtype))
        array.data.memset(0xFF, array.nbytes)
        return array

    def program(self, program: Program) -> Callable[..., None]:
        """The program itself: it takes CuPy arrays."""
        return program

    def kernel(
        self, ptx: str, name: str
    ) -> Callable[[Dim3, Dim3, Sequence[Any]], None]:
        """A kernel of PTX text, assembled by the driver."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"{name}.ptx")
            path.write_text(ptx)
            loaded = self._cupy.RawModule(path=str(path)).get_function(name)
        return lambda grid, block, arguments: loaded(grid, block, tuple(arguments))

    def tensor_map(self, one: Map, array: Any) -> Any:
        """The driver's."""
        return one.encoded(array.data.ptr)

    def library(self, problem: Problem) -> Callable[[Arrays], None]:
        """cuBLAS with its own choice of kernel, accumulating in f32."""
        return Cublas(self._cupy, problem)

    def copy(self, source: Any, to: Any) -> None:
        """One cudaMemcpyAsync."""
        stream = self._cupy.cuda.get_current_stream()
        to.data.copy_from_device_async(source.data, source.nbytes, stream)

    def seconds(self, calls: Sequence[Call]) -> list[float]:
        """Times by events between the calls, all enqueued while the GPU waits.

        Otherwise the time that the CPU needs to launch a kernel, tens of microseconds,
        would count for kernels that take less than that.
        """
        events = self._take_events(len(calls) + 1)
        for _ in range(_TRIES):
            self._wait_on_gpu()
            start = time.perf_counter()
            events[0].record()
            for call, event in zip(calls, events[1:], strict=True):
                call()
                event.record()
            in_time = not events[0].done
            spent = time.perf_counter() - start
            events[-1].synchronize()
            if in_time:
                break
            self._delay = min(_LONGEST_DELAY, 2 * max(self._delay, spent))
        else:
            self.late_rounds += 1
        elapsed = self._cupy.cuda.get_elapsed_time
        return [elapsed(first, second) / 1e3 for first, second in pairwise(events)]

    def wait(self) -> None:
        """Synchronise the current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    def is_lost(self) -> bool:
        """After a fault in a kernel every call of the process fails."""
        try:
            self.wait()
            self._cupy.cuda.runtime.memGetInfo()
        except self.failures:
            return True
        return False

    def _take_events(self, count: int) -> list[Any]:
        while len(self._events) < count:
            self._events.append(self._cupy.cuda.Event())
        return self._events[:count]

    def _wait_on_gpu(self) -> None:
        if self._spin is None:
            self._spin = self.kernel((_PROBES / "delay.ptx").read_text(), "delay")
        nanoseconds = np.uint64(self._delay * 1e9)
        self._spin((1, 1, 1), (1, 1, 1), (nanoseconds,))


class Cublas:
    """One matmul by cuBLAS, called with (A, B, C).

    cuBLAS is column-major: C^T = B^T * A^T in its layout is our row-major C.
    """

    def __init__(self, cupy: Any, problem: Problem):
        # CuPy loads cuBLAS when the module is first asked for; may raise ImportError.
        self._cupy, self._cublas = cupy, cupy.cuda.cublas
        self._problem = problem
        runtime = cupy.cuda.runtime
        types = {
            "f16": runtime.CUDA_R_16F,
            "bf16": runtime.CUDA_R_16BF,
            "f32": runtime.CUDA_R_32F,
        }
        a, b, _, c = problem.dtypes
        self._types = types[a], types[b], types[c]
        # Held here: cuBLAS is given their addresses.
        self._one, self._zero = np.ones(1, np.float32), np.zeros(1, np.float32)

    def __call__(self, arrays: Arrays) -> None:
        """Enqueue it on the current stream."""
        cublas, problem = self._cublas, self._problem
        a, b, c = arrays
        lhs, rhs = problem.layout.split(",")
        m, n, k = problem.m, problem.n, problem.k
        shapes = [shape[-2:] for shape in extents(problem)]
        a_type, b_type, c_type = self._types
        handle = self._cupy.cuda.device.get_cublas_handle()
        stream = self._cupy.cuda.get_current_stream()
        cublas.setStream(handle, stream.ptr)
        no, transposed = cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_T
        b_way = no if rhs == "kn" else transposed
        a_way = no if lhs == "mk" else transposed
        b_part = (b.data.ptr, b_type, shapes[1][1])
        a_part = (a.data.ptr, a_type, shapes[0][1])
        c_part = (c.data.ptr, c_type, n)
        one, zero = self._one.ctypes.data, self._zero.ctypes.data
        how = (cublas.CUBLAS_COMPUTE_32F, cublas.CUBLAS_GEMM_DEFAULT_TENSOR_OP)
        start = (handle, b_way, a_way, n, m, k, one)
        if problem.batch == 1:
            cublas.gemmEx(*start, *b_part, *a_part, zero, *c_part, *how)
            return
        strides = (n * k, m * k, m * n)  # elements from one batch element to the next
        cublas.gemmStridedBatchedEx(
            *start,
            *(*b_part, strides[0]),
            *(*a_part, strides[1]),
            zero,
            *(*c_part, strides[2]),
            problem.batch,
            *how,
        )


def _library_errors(cupy: Any) -> tuple[type[BaseException], ...]:
    """The errors of cuBLAS, and those of loading it where it is missing."""
    try:
        return (cupy.cuda.cublas.CUBLASError, ImportError)
    except (ImportError, AttributeError):
        return (ImportError,)


def _query(fields: str) -> str:
    """Values that nvidia-smi reads off the first GPU; "" where it is not there."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = [tool, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_SMI_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout.strip() else ""
