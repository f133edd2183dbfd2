"""A stand-in for CuPy: arrays in main memory that say they are on a GPU.

No test with it shows that a kernel runs on a GPU; they show which calls CuPy would get.
The parts of CuPy's interface are those of its documentation, version 13 and 14.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class GpuArray:
    """As `cupy.ndarray`: DLPack and `__cuda_array_interface__`, on GPU `number`."""

    def __init__(self, array: np.ndarray[Any, Any], number: int = 0):
        self.host, self.number = array, number
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.data, self.nbytes = SimpleNamespace(ptr=array.ctypes.data), array.nbytes
        self.read_only = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.data.ptr, self.read_only), "shape": self.shape}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def get(self) -> np.ndarray[Any, Any]:
        return self.host.copy()

    def copy(self) -> GpuArray:
        return GpuArray(self.host.copy(), self.number)


class InterfaceOnly:
    """As an array of Numba: `__cuda_array_interface__` and nothing else."""

    def __init__(self, array: GpuArray):
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class DlpackOnly:
    """As an array of JAX or of another library: DLPack and nothing else."""

    def __init__(self, array: GpuArray):
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class FakeCupy(ModuleType):
    """The module, with `launches` and `loaded` to look at."""

    def __init__(self, capability: str = "80", shared_limit: int = 166912):
        super().__init__("cupy")
        self.launches: list[SimpleNamespace] = []
        self.loaded: list[Path] = []
        self.contents: list[bytes] = []
        self.limits: list[int] = []
        self.stack: list[Any] = []
        self.synchronized = 0
        self.allocated: list[SimpleNamespace] = []
        self.free_bytes = 1 << 30
        self.RawModule = lambda *, path: _RawModule(self, path)
        fake = self

        class Entered:
            def __enter__(self) -> Any:
                fake.stack.append(self)
                return self

            def __exit__(self, *_: object) -> None:
                assert fake.stack.pop() is self

        class Device(Entered):
            def __init__(self, number: int = 0):
                self.id = number
                self.compute_capability = capability
                self.attributes = {
                    "MaxSharedMemoryPerBlockOptin": shared_limit,
                    "L2CacheSize": 40000,
                }

        class Stream(Entered):
            def __init__(self, address: int = 7):
                self.ptr = address

            @classmethod
            def from_external(cls, other: Any) -> Stream:
                return cls(other.__cuda_stream__()[1])

        class Event:
            """Time passes by a millisecond per launch."""

            def record(self) -> None:
                self.launches = len(fake.launches)

            def synchronize(self) -> None:
                fake.synchronized += 1

        class CUDARuntimeError(RuntimeError):
            pass

        class CUDADriverError(RuntimeError):
            pass

        class OutOfMemoryError(MemoryError):
            pass

        def alloc(size: int) -> SimpleNamespace:
            """Addresses one after the other; remembers on which stream."""
            if size > fake.free_bytes:
                raise OutOfMemoryError(size)
            ptr = 1 << 20 | len(fake.allocated) << 16
            block = SimpleNamespace(ptr=ptr, size=size, inside=list(fake.stack))
            fake.allocated.append(block)
            return block

        def attributes_of(address: int) -> SimpleNamespace:
            return SimpleNamespace(device=0)

        self.cuda = SimpleNamespace(
            Device=Device,
            Stream=Stream,
            Event=Event,
            get_elapsed_time=lambda start, end: end.launches - start.launches,
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
            is_available=lambda: True,
            alloc=alloc,
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError, pointerGetAttributes=attributes_of
            ),
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
        )

    def asarray(self, array: Any) -> GpuArray:
        return array if isinstance(array, GpuArray) else array.array

    def from_dlpack(self, array: Any) -> GpuArray:
        return array.array

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> GpuArray:
        current = [one.id for one in self.stack if hasattr(one, "id")]
        return GpuArray(np.empty(shape, dtype), *current)

    def array(self, array: np.ndarray[Any, Any]) -> GpuArray:
        return GpuArray(array.copy())


class _RawModule:
    def __init__(self, fake: FakeCupy, path: str):
        self.fake, self.path = fake, Path(path)

    def get_function(self, name: str) -> _RawKernel:
        self.fake.loaded.append(self.path)
        self.fake.contents.append(self.path.read_bytes())
        return _RawKernel(self.fake, name)


class _RawKernel:
    def __init__(self, fake: FakeCupy, name: str):
        self.fake, self.name = fake, name

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return 49152

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, size: int) -> None:
        self.fake.limits.append(size)

    def __call__(
        self, grid: Any, block: Any, arguments: Any, *, shared_mem: int
    ) -> None:
        self.fake.launches.append(
            SimpleNamespace(
                name=self.name,
                grid=grid,
                block=block,
                arguments=arguments,
                shared_mem=shared_mem,
                inside=list(self.fake.stack),
            )
        )
