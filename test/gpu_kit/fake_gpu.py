"""A stand-in for CuPy whose kernels run on the emulator, in main memory.

Arrays claim to be on a GPU and have the functions that the kit calls; cuBLAS is NumPy,
column-major like the real one. Times are those of the CPU and mean nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator import emulate

R_32F, R_16F, R_16BF = 0, 2, 14  # cudaDataType
_DTYPES = {R_32F: np.dtype(np.float32), R_16F: np.dtype(np.float16)}
_memory: dict[int, np.ndarray[Any, Any]] = {}  # by the address of the first byte
_blocks: list[np.ndarray[Any, Any]] = []  # of the pool


class GpuArray:
    """As `cupy.ndarray`, as far as the kit goes; `host` is where it really is."""

    def __init__(self, host: np.ndarray[Any, Any]):
        self.host = host
        self.shape, self.strides, self.dtype = host.shape, host.strides, host.dtype
        self.size, self.nbytes = host.size, host.nbytes
        address = host.ctypes.data
        known = _memory.get(address)
        if known is None or known.nbytes <= host.nbytes:
            _memory[address] = host
        self.data = SimpleNamespace(
            ptr=address,
            memset=lambda value, count: host.reshape(-1).view(np.uint8).fill(value),
            copy_from_device_async=self._copy_from,
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.data.ptr, False), "shape": self.shape}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def get(self) -> np.ndarray[Any, Any]:
        return self.host.copy()

    def __getitem__(self, key: Any) -> GpuArray:
        return GpuArray(self.host[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[key] = plain(value)

    def __sub__(self, other: Any) -> GpuArray:
        return GpuArray(self.host - plain(other))

    def __lshift__(self, bits: int) -> GpuArray:
        return GpuArray(self.host << bits)

    def __float__(self) -> float:
        return float(self.host)

    def __getattr__(self, name: str) -> Callable[..., GpuArray]:
        """reshape, astype, view, copy, max."""
        method = getattr(self.host, name)
        return lambda *given: GpuArray(np.asarray(method(*given)))

    def _copy_from(self, source: Any, size: int, stream: Any) -> None:
        self.host[...] = _memory[source.ptr].reshape(self.shape)


def array_at(address: int) -> np.ndarray[Any, Any]:
    """That of the GPU's memory which begins there."""
    return _memory[address]


def plain(value: Any) -> Any:
    return value.host if isinstance(value, GpuArray) else value


class FakeGpu(ModuleType):
    """The module `cupy`. The test decides what fails:

    faults: kernels by name that end with CUDA's error of an illegal address
    fatal: those after which nothing runs any more, until `lost` is set back
    spoilt: what kernels leave in their result's first element, by the kernel's name
    late: rounds whose calls were not enqueued before the GPU was ready for them
    free: bytes of memory that there are
    """

    def __init__(self, capability: str = "90"):
        super().__init__("cupy")
        self.__version__ = "0"
        self.faults: set[str] = set()
        self.fatal: set[str] = set()
        self.spoilt: dict[str, float] = {}
        self.late = 0
        self.lost = False
        self.free = 2**30
        self.launches: list[str] = []
        fake = self

        class Device:
            id = 0
            compute_capability = capability
            attributes = {
                "MaxSharedMemoryPerBlockOptin": 232448,
                "L2CacheSize": 2**16,
            }

            def __init__(self, number: int = 0):
                pass

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        class Event:
            time = 0.0

            @property
            def done(self) -> bool:
                fake.late -= 1
                return fake.late >= 0

            def record(self) -> None:
                self.time = time.perf_counter()

            def synchronize(self) -> None:
                pass

        class CUDARuntimeError(RuntimeError):
            pass

        class CUDADriverError(RuntimeError):
            pass

        class CUBLASError(RuntimeError):
            pass

        class OutOfMemoryError(MemoryError):
            pass

        def alloc(size: int) -> SimpleNamespace:
            """Bytes of the pool; kernels may be given addresses inside of them."""
            if size > fake.free:
                raise OutOfMemoryError(size)
            block = _aligned(np.empty(size, np.uint8))
            _blocks.append(block)
            return SimpleNamespace(ptr=block.ctypes.data)

        def memory() -> tuple[int, int]:
            if fake.lost:
                raise CUDARuntimeError("cudaErrorIllegalAddress")
            return fake.free, 2**31

        self.error = CUDADriverError
        properties = {"name": b"Fake GPU", "multiProcessorCount": 1}
        stream = SimpleNamespace(ptr=0, synchronize=lambda: None)
        self.cuda = SimpleNamespace(
            Device=Device,
            Event=Event,
            get_elapsed_time=lambda a, b: max(1e-6, (b.time - a.time) * 1e3),
            get_current_stream=lambda: stream,
            is_available=lambda: True,
            alloc=alloc,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            device=SimpleNamespace(get_cublas_handle=lambda: 1),
            cublas=SimpleNamespace(
                CUBLASError=CUBLASError,
                CUBLAS_OP_N=0,
                CUBLAS_OP_T=1,
                CUBLAS_COMPUTE_32F=68,
                CUBLAS_GEMM_DEFAULT_TENSOR_OP=99,
                setStream=lambda handle, address: None,
                gemmEx=_gemm,
                gemmStridedBatchedEx=_gemm_batched,
            ),
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                CUDA_R_32F=R_32F,
                CUDA_R_16F=R_16F,
                CUDA_R_16BF=R_16BF,
                getDeviceProperties=lambda number: properties,
                memGetInfo=memory,
                driverGetVersion=lambda: 13000,
                runtimeGetVersion=lambda: 13000,
                pointerGetAttributes=lambda address: SimpleNamespace(device=0),
            ),
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
        )
        self.RawModule = lambda *, path: _RawModule(self, Path(path).read_text())
        self.get_default_memory_pool = lambda: SimpleNamespace(
            free_all_blocks=lambda: None
        )

    def __getattr__(self, name: str) -> Callable[..., GpuArray]:
        """NumPy's functions: array, empty, matmul, abs, ..."""
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(np, name)

        def call(*given: Any, **options: Any) -> GpuArray:
            result = function(*map(plain, given), **options)
            if name == "empty":
                # At a multiple of 256 bytes, as from cudaMalloc.
                result = _aligned(result)
            return GpuArray(np.asarray(result))

        return call

    def array(self, host: Any) -> GpuArray:
        made = _aligned(plain(host))
        made[...] = plain(host)
        return GpuArray(made)

    def asarray(self, array: GpuArray) -> GpuArray:
        return array


class _RawModule:
    def __init__(self, fake: FakeGpu, ptx: str):
        self.fake, self.ptx = fake, ptx

    def get_function(self, name: str) -> Callable[..., None]:
        def launch(
            grid: Any, block: Any, arguments: Any, *, shared_mem: int = 0
        ) -> None:
            fake = self.fake
            fake.lost |= name in fake.fatal
            if fake.lost or name in fake.faults:
                raise fake.error("CUDA_ERROR_ILLEGAL_ADDRESS")
            fake.launches.append(name)
            if name == "delay":
                return
            values = [_argument(value) for value in arguments]
            shared = shared_mem
            emulate(self.ptx, name, grid, block, values, dynamic_shared=shared)
            if name in fake.spoilt:
                _spoil(values[-1].reshape(-1), fake.spoilt[name])

        return launch


def _spoil(array: np.ndarray[Any, Any], value: float) -> None:
    """The first element; bytes of the pool are taken to be floats of 32 bits."""
    if array.dtype == np.uint8:
        array = array[: array.size // 4 * 4].view(np.float32)
    array[0] = value


def _argument(value: Any) -> Any:
    if not isinstance(value, np.generic) or value.dtype != np.uint64:
        return plain(value)
    address = int(value)
    if address in _memory:
        return _memory[address]
    for block in _blocks:
        offset = address - block.ctypes.data
        if 0 <= offset < block.nbytes:
            return block[offset:]
    raise ValueError(f"{address:#x} is no address on the GPU")


def _aligned(like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    room = np.empty(like.nbytes + 256, np.uint8)
    first = -room.ctypes.data % 256
    return room[first : first + like.nbytes].view(like.dtype).reshape(like.shape)


def _gemm(
    handle: int,
    a_way: int,
    b_way: int,
    m: int,
    n: int,
    k: int,
    alpha: int,
    a: int,
    a_type: int,
    a_step: int,
    b: int,
    b_type: int,
    b_step: int,
    beta: int,
    c: int,
    c_type: int,
    c_step: int,
    compute: int,
    how: int,
) -> None:
    """cublasGemmEx: column-major matrices, `step` elements from one to the next."""
    left = _columns(a, a_type, a_step, *((m, k) if a_way == 0 else (k, m)))
    right = _columns(b, b_type, b_step, *((k, n) if b_way == 0 else (n, k)))
    result = (left if a_way == 0 else left.T) @ (right if b_way == 0 else right.T)
    _store(c, c_type, c_step, result)


def _gemm_batched(*given: Any) -> None:
    (handle, a_way, b_way, m, n, k, alpha, a, a_type, a_step, a_next) = given[:11]
    (b, b_type, b_step, b_next, beta, c, c_type, c_step, c_next) = given[11:20]
    batch, compute, how = given[20:]
    for i in range(batch):
        _gemm(
            *(handle, a_way, b_way, m, n, k, alpha),
            *(_at(a, i * a_next, a_type), a_type, a_step),
            *(_at(b, i * b_next, b_type), b_type, b_step),
            *(beta, _at(c, i * c_next, c_type), c_type, c_step, compute, how),
        )


def _at(address: int, offset: int, kind: int) -> int:
    """The address of an element; memory from there on becomes known."""
    if offset:
        flat = _memory[address].reshape(-1)[offset:]
        _memory[flat.ctypes.data] = flat
        return flat.ctypes.data
    return address


def _columns(
    address: int, kind: int, step: int, rows: int, columns: int
) -> np.ndarray[Any, Any]:
    flat = _memory[address].reshape(-1)[: step * columns]
    if kind == R_16BF:
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    else:
        assert flat.dtype == _DTYPES[kind]
    return flat.astype(np.float32).reshape(columns, step)[:, :rows].T


def _store(address: int, kind: int, step: int, values: np.ndarray[Any, Any]) -> None:
    rows, columns = values.shape
    assert step == rows
    flat = _memory[address].reshape(-1)[: rows * columns]
    assert flat.dtype == _DTYPES[kind]
    flat[...] = values.T.reshape(-1)
