"""The constant arrays of a function where its kernels read them, copied there once."""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.dtypes import NUMPY_DTYPES
from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.workspace import aligned_bytes


class Constants:
    """The constants that the kernels of `function` read; arrays are made when asked."""

    def __init__(self, bundle: Bundle, function: Function):
        used = {name for launch in function.launches for name in launch.arrays}
        self._bytes = {
            one.name: bundle.contents(one)
            for one in function.constants
            if one.name in used
        }
        self._on_host: dict[str, np.ndarray[Any, Any]] | None = None
        self._on_gpu: dict[int, dict[str, Any]] = {}

    def on_host(self) -> dict[str, np.ndarray[Any, Any]]:
        """Bytes in main memory, by name; read-only."""
        if self._on_host is None:
            self._on_host = {n: _aligned(data) for n, data in self._bytes.items()}
        return self._on_host

    def on_gpu(self, cupy: Any, device: int) -> dict[str, Any]:
        """Arrays on the current GPU, which is `device`, by name."""
        if device not in self._on_gpu:
            self._on_gpu[device] = {
                name: cupy.asarray(array) for name, array in self.on_host().items()
            }
            if self._bytes:  # later calls may be on other streams
                cupy.cuda.get_current_stream().synchronize()
        return self._on_gpu[device]


def reference_constants(
    bundle: Bundle, function: Function
) -> dict[str, np.ndarray[Any, Any]]:
    """The constants that a reference can read, as arrays, by name."""
    return {
        one.name: np.frombuffer(
            bundle.contents(one), np.dtype(NUMPY_DTYPES[one.dtype]).newbyteorder("<")
        ).reshape(one.shape)
        for one in function.constants
        if one.dtype in NUMPY_DTYPES
    }


def _aligned(data: bytes) -> np.ndarray[Any, Any]:
    array = aligned_bytes(len(data))
    array[:] = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array
