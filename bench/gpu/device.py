"""The device of the kit: a GPU through CuPy, or the emulator instead.

The emulator's times mean nothing; it is there so that the kit itself can be tested
without a GPU. Arrays are those of `module`, which is `cupy` or `numpy`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.errors import AlcopError
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program
from alcop_mlir.tuning.problem import Problem
from bench.gpu.maps import Map
from bench.gpu.spec import extents

Arrays = tuple[Any, Any, Any]  # A, B, C
Call = Callable[[], object]
Dim3 = tuple[int, int, int]
# A prime: the repeated pool begins at another offset in each row.
POOL_SIZE = 2**24 - 3


class Device(Protocol):
    """See the module's docstring; `failures` is what a row may raise and others run."""

    name: str
    module: Any
    capability: int
    failures: tuple[type[BaseException], ...]

    def about(self) -> dict[str, Any]:
        """GPU, driver, versions: a record's description of the machine."""
        ...

    def state(self) -> dict[str, Any]:
        """Clocks in MHz, temperature in Celsius, power in W; empty where unknown."""
        ...

    def free_bytes(self) -> int:
        """Memory that may still be allocated."""
        ...

    def cache_bytes(self) -> int:
        """Of the L2 cache."""
        ...

    def array(self, host: np.ndarray[Any, Any]) -> Any:
        """A copy of `host` on the device."""
        ...

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy of `array` in main memory, once all work on it is done."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array of bytes 0xFF: NaN in every floating-point type."""
        ...

    def program(self, program: Program) -> Callable[..., None]:
        """A function that calls `program` with arrays of this device."""
        ...

    def kernel(
        self, ptx: str, name: str
    ) -> Callable[[Dim3, Dim3, Sequence[Any]], None]:
        """A kernel of PTX text, called with grid, block and arguments."""
        ...

    def tensor_map(self, one: Map, array: Any) -> Any:
        """A tensor map of an array of this device, as an argument of a kernel."""
        ...

    def library(self, problem: Problem) -> Callable[[Arrays], None]:
        """The vendor's matmul of the same types."""
        ...

    def copy(self, source: Any, to: Any) -> None:
        """Copy one array to another of the same size, by the vendor's copy."""
        ...

    def seconds(self, calls: Sequence[Call]) -> list[float]:
        """The device's time for each call, one after the other."""
        ...

    def wait(self) -> None:
        """Wait until all work is done; raises its errors."""
        ...

    def is_lost(self) -> bool:
        """Whether an error has made the device unusable for this process."""
        ...


def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype that stores elements of `dtype`; bf16 as its bits."""
    return np.dtype(dtypes.NUMPY_DTYPES[dtype])


def to_f64(array: Any, dtype: str) -> Any:
    """The numbers in `array` as float64, on the array's device."""
    return dtypes.decode(array, dtype)


class Pool:
    """Random numbers in [-1, 1], made once, that arrays of any size are cut from."""

    def __init__(self, device: Device, size: int = POOL_SIZE, seed: int = 0):
        generator = np.random.default_rng(seed)
        self._device, self._size, self._next = device, size, 0
        self._values = generator.random(size, np.float32) * 2 - 1
        self._by_dtype: dict[str, Any] = {}

    def operands(self, problem: Problem) -> Arrays:
        """A and B of random numbers, new ones for each call, and C of NaN."""
        lhs, rhs, out = extents(problem)
        a, b, _, c = problem.dtypes
        return self._fill(lhs, a), self._fill(rhs, b), self._device.empty(out, c)

    def _fill(self, shape: tuple[int, ...], dtype: str) -> Any:
        if dtype not in self._by_dtype:
            self._by_dtype[dtype] = self._device.array(
                dtypes.encode(self._values, dtype)
            )
        pool = self._by_dtype[dtype]
        array = self._device.empty(shape, dtype)
        flat, done = array.reshape(-1), 0
        while done < flat.size:
            count = min(flat.size - done, self._size - self._next)
            flat[done : done + count] = pool[self._next : self._next + count]
            done += count
            self._next = (self._next + count) % self._size
        return array


class EmulatedDevice:
    """The emulator instead of a GPU: for tests of the kit."""

    name = "emulator"
    module: Any = np
    failures: tuple[type[BaseException], ...] = (AlcopError, MemoryError)

    def __init__(self, capability: int = 90, cache_bytes: int = 2**16):
        self.capability = capability
        self._cache_bytes = cache_bytes

    def about(self) -> dict[str, Any]:
        """A description which says that there is no GPU."""
        return {"gpu": "none: the emulator instead", "numpy": np.__version__}

    def state(self) -> dict[str, Any]:
        """Nothing to read."""
        return {}

    def free_bytes(self) -> int:
        """Enough for what tests do."""
        return 2**30

    def cache_bytes(self) -> int:
        """The size that the device was made with."""
        return self._cache_bytes

    def array(self, host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy."""
        return host.copy()

    def host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy."""
        return array.copy()

    def empty(self, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
        """An array of bytes 0xFF."""
        array = np.empty(shape, storage(dtype))
        array.reshape(-1).view(np.uint8).fill(0xFF)
        return array

    def program(self, program: Program) -> Callable[..., None]:
        """The program itself: it takes NumPy arrays."""
        return program

    def kernel(
        self, ptx: str, name: str
    ) -> Callable[[Dim3, Dim3, Sequence[Any]], None]:
        """An emulated kernel; hazards are not detected."""
        return lambda grid, block, arguments: _run_emulated(
            ptx, name, grid, block, arguments
        )

    def tensor_map(self, one: Map, array: Any) -> Any:
        """The emulator's."""
        return one.of(array)

    def library(self, problem: Problem) -> Callable[[Arrays], None]:
        """NumPy's matmul in f32, rounded to the type of C."""
        letters, out = problem.layout.split(","), problem.dtypes[3]
        batch = "b" if problem.op == "batch_matmul" else ""
        maps = f"{batch}{letters[0]},{batch}{letters[1]}->{batch}mn"

        def matmul(arrays: Arrays) -> None:
            a, b = (
                to_f64(array, dtype).astype(np.float32)
                for array, dtype in zip(arrays[:2], problem.dtypes[:2], strict=True)
            )
            arrays[2][...] = dtypes.encode(np.einsum(maps, a, b), out)

        return matmul

    def copy(self, source: Any, to: Any) -> None:
        """Copy by NumPy."""
        to[...] = source

    def seconds(self, calls: Sequence[Call]) -> list[float]:
        """Wall time."""
        times = []
        for call in calls:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return times

    def wait(self) -> None:
        """A call returns when its work is done."""

    def is_lost(self) -> bool:
        """An emulated fault harms nothing that comes after it."""
        return False


def _run_emulated(
    ptx: str, name: str, grid: Dim3, block: Dim3, arguments: Sequence[Any]
) -> None:
    emulate(ptx, name, grid, block, arguments, hazards=False)
