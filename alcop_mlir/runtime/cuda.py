"""Launching on CUDA through CuPy: locations of arrays, streams, loading of kernels.

CuPy is not imported here: launch.py does that when needed, and passes it in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.runtime.arrays import Array, is_on_gpu
from alcop_mlir.runtime.bundle import Code
from alcop_mlir.target import STATIC_SHARED_LIMIT, Target, newest_target


@contextmanager
def errors(cupy: Any) -> Iterator[None]:
    """Convert CUDA's own errors to LaunchErrors."""
    cuda = cupy.cuda
    try:
        yield
    except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
        raise LaunchError(f"CUDA: {error}") from error


def gpu_of(cupy: Any, array: Any, what: str) -> int:
    """The number of the GPU that `array` is on."""
    if not is_on_gpu(array):
        raise LaunchError(
            f"{what} is in main memory, expected an array in GPU memory: "
            "cupy.asarray(...) copies it there"
        )
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[1]
    address = array.__cuda_array_interface__["data"][0]
    return cupy.cuda.runtime.pointerGetAttributes(address).device


def gpu_array(cupy: Any, array: Any, device: int, what: str) -> Array:
    """`array` as CuPy sees it, on the current GPU, which is `device`.

    CuPy makes the current stream wait for the work that the array's owner has enqueued.
    """
    found = gpu_of(cupy, array, what)
    if found != device:  # CuPy would copy it to the current GPU
        raise LaunchError(
            f"{what} is on GPU {found}, argument 1 on GPU {device}: all arrays must be "
            "in one place"
        )
    writable = True
    try:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            view = cupy.asarray(array)
            writable = not interface["data"][1]
        else:
            view = cupy.from_dlpack(array)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise LaunchError(f"{what} cannot be taken by CuPy: {error}") from error
    return Array(
        owner=view,
        address=view.data.ptr,
        shape=view.shape,
        strides=view.strides,
        dtype=view.dtype,
        writable=writable,
        location=f"GPU {device}",
    )


def memory(cupy: Any, size: int) -> Any:
    """`size` bytes of GPU memory for work on the current stream; `ptr` is the address.

    From CuPy's pool, which keeps what is freed for work on the same stream.
    """
    try:
        return cupy.cuda.alloc(size)
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise LaunchError(f"no {size} bytes left for intermediate buffers") from error


def as_stream(cupy: Any, stream: Any) -> Any:
    """A CuPy stream for any of the forms that `Program.__call__` takes."""
    if isinstance(stream, cupy.cuda.Stream):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        address = stream.__cuda_stream__()[1]
    else:
        address = getattr(stream, "cuda_stream", stream)
    if not isinstance(address, int) or isinstance(address, bool):
        raise LaunchError(
            f"stream is a {type(stream).__name__}, expected a CuPy stream, an address, "
            "or an object with __cuda_stream__ or cuda_stream"
        )
    if hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 14 deprecates ExternalStream
        return cupy.cuda.Stream.from_external(_StreamAddress(address))
    return cupy.cuda.ExternalStream(address)


class _StreamAddress:
    """An address as an object of the CUDA stream protocol."""

    def __init__(self, address: int):
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


def load_module(
    cupy: Any, target: Target, name: str, code: Code, kernels: Iterable[str]
) -> dict[str, Any]:
    """Load a module on the current GPU: the cubin if made for it, else PTX.

    Returns its kernels of these names.
    """
    capability = int(cupy.cuda.Device().compute_capability)
    if not target.runs_on(capability):
        newest = newest_target(capability)
        wanted = f"sm_{capability}" if newest is None else newest.name
        raise LaunchError(
            f"the bundle is for {target.name}, this GPU is an sm_{capability}: compile "
            f"with --target {wanted}"
        )
    use_cubin = code.cubin is not None and capability == target.compute_capability
    data = code.cubin if use_cubin else code.ptx.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.{'cubin' if use_cubin else 'ptx'}")
        path.write_bytes(data or b"")
        module = cupy.RawModule(path=str(path))
        # All at once: the file is not needed afterwards.
        return {kernel: module.get_function(kernel) for kernel in kernels}


def allow_shared_memory(cupy: Any, loaded: Any, kernel: Kernel) -> None:
    """Let the loaded kernel use the shared memory that it needs."""
    limit = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    if kernel.shared_bytes > limit:
        raise LaunchError(
            f"kernel '{kernel.name}' needs {kernel.shared_bytes} bytes of shared "
            f"memory, this GPU has {limit} per block: fewer stages or a smaller block"
        )
    if kernel.shared_bytes > STATIC_SHARED_LIMIT:
        loaded.max_dynamic_shared_size_bytes = kernel.shared_bytes
