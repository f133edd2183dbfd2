"""Running compiled kernels: on a GPU through CuPy, or on the embedded emulator.

Arrays are used in place, never copied: NumPy and DLPack arrays in main memory by the
emulator; CuPy, `__cuda_array_interface__` and DLPack arrays in GPU memory by CUDA.
CuPy is imported when it is first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.errors import ConfigError, LaunchError, install_command
from alcop_mlir.runtime import bundle as bundles
from alcop_mlir.runtime import cuda, workspace
from alcop_mlir.runtime.arrays import Array, check, host_array, is_on_gpu, label
from alcop_mlir.runtime.emulation import Emulation
from alcop_mlir.runtime.manifest import CeilDiv, Dim3, Kernel
from alcop_mlir.runtime.workspace import Workspace
from alcop_mlir.target import TARGETS, Target

MAX_GRID = (2**31 - 1, 65535, 65535)  # blocks along x, y, z; CUDA, all GPUs
DEVICES = ("auto", "cuda", "emulator")
_GPU_EXTRAS = ("cuda12", "cuda13")  # CuPy, by the version of CUDA


class Program:
    """One function of a bundle, called with arrays: `program(A, B, C)`.

    device: "cuda", "emulator", or "auto": where the arrays of the call are
    emulation: runs kernels on the emulator, with options
    """

    def __init__(
        self,
        bundle: bundles.Bundle,
        function: str | None = None,
        device: str = "auto",
        emulation: Emulation | None = None,
    ):
        _check_device(device)
        self.bundle = bundle
        self.function = bundle.function(function)
        self.device = device
        self.emulation = emulation
        self._loaded: dict[tuple[int, str], Any] = {}
        self._planned: tuple[dict[str, int], Workspace] | None = None

    @property
    def ptx(self) -> str:
        """The PTX of the function's kernels, one after the other."""
        texts = (self.bundle.code[kernel.name].ptx for kernel in self.function.kernels)
        return "\n".join(dict.fromkeys(texts))  # a text may hold several kernels

    def save(self, path: str | Path) -> None:
        """Write the bundle to the directory or .zip file `path`."""
        bundles.save(self.bundle, path)

    def __call__(self, *arrays: Any, stream: Any = None) -> None:
        """Run on `arrays`, one per parameter, in order; outputs are written in place.

        stream: CUDA stream to launch on: a CuPy stream, an address, or an object with
            `__cuda_stream__` or `cuda_stream`; None is CuPy's current stream. The call
            returns when the kernels are enqueued; the emulator's returns when done.

        Raises LaunchError before anything runs, EmulationError on a fault or hazard.
        """
        parameters = self.function.parameters
        if len(arrays) != len(parameters):
            names = ", ".join(parameter.name for parameter in parameters)
            raise LaunchError(
                f"'{self.function.name}' got {len(arrays)} arrays, expected "
                f"{len(parameters)}: {names}"
            )
        on_gpu = any(is_on_gpu(array) for array in arrays)
        if self.device == "cuda" or (self.device == "auto" and on_gpu):
            self._run_on_cuda(arrays, stream)
        else:
            self._run_on_emulator(arrays, stream)

    def __repr__(self) -> str:
        parameters = ", ".join(
            f"{p.name}: {p.dtype}[{', '.join(map(str, p.shape))}]"
            for p in self.function.parameters
        )
        return f"<{self.function.name}({parameters}) for {self.bundle.target.name}>"

    def _run_on_emulator(self, arrays: Sequence[Any], stream: Any) -> None:
        if stream is not None:
            raise LaunchError("a stream was given, but the arrays are in main memory")
        views = [host_array(a, self._label(n)) for n, a in enumerate(arrays)]
        sizes = check(self.function, views)
        owners = {name: view.owner for name, view in self._named(views).items()}
        space = self._workspace(sizes)
        scratch = workspace.host_arrays(space)
        values: dict[str, Any] = owners | scratch | sizes
        emulation = self.emulation or Emulation()
        for number, kernel in enumerate(self.function.kernels):
            workspace.mark_unwritten(space, scratch, number)
            if 0 in grid_of(kernel, sizes):
                continue  # nothing to compute
            arguments = [
                a if isinstance(a, int) else values[a] for a in kernel.arguments
            ]
            ptx = self.bundle.code[kernel.name].ptx
            emulation.launch(ptx, kernel, grid_of(kernel, sizes), arguments)

    def _run_on_cuda(self, arrays: Sequence[Any], stream: Any) -> None:
        cupy = _cupy()
        with cuda.errors(cupy), ExitStack() as stack:
            device = cuda.gpu_of(cupy, arrays[0], self._label(0))
            stack.enter_context(cupy.cuda.Device(device))
            if stream is not None:
                stack.enter_context(cuda.as_stream(cupy, stream))
            views = [
                cuda.gpu_array(cupy, array, device, self._label(number))
                for number, array in enumerate(arrays)
            ]
            sizes = check(self.function, views)
            # Lives until the kernels are enqueued; the pool orders what comes after.
            needed = self._workspace(sizes).bytes
            memory = cuda.memory(cupy, needed) if needed else None
            values = self._cuda_values(views, sizes, memory.ptr if memory else 0)
            for kernel in self.function.kernels:
                if 0 in grid_of(kernel, sizes):
                    continue  # nothing to compute
                self._load(cupy, device, kernel)(
                    grid_of(kernel, sizes),
                    kernel.block,
                    tuple(
                        np.int64(a) if isinstance(a, int) else values[a]
                        for a in kernel.arguments
                    ),
                    shared_mem=kernel.shared_bytes,
                )

    def _cuda_values(
        self, views: Sequence[Array], sizes: dict[str, int], memory: int
    ) -> dict[str, Any]:
        """The kernel argument for each name, with a workspace at `memory`."""
        values: dict[str, Any] = {k: np.int64(v) for k, v in sizes.items()}
        for name, view in self._named(views).items():
            values[name] = np.uint64(view.address)
        for name, part in self._workspace(sizes).ranges.items():
            values[name] = np.uint64(memory + part.offset)
        return values

    def _workspace(self, sizes: dict[str, int]) -> Workspace:
        """The workspace for `sizes`: the last call's, if its sizes were the same."""
        if self._planned is None or self._planned[0] != sizes:
            self._planned = sizes, workspace.plan(self.function, sizes)
        return self._planned[1]

    def _load(self, cupy: Any, device: int, kernel: Kernel) -> Any:
        key = (device, kernel.name)
        if key not in self._loaded:
            code = self.bundle.code[kernel.name]
            self._loaded[key] = cuda.load_kernel(cupy, self.bundle.target, code, kernel)
        return self._loaded[key]

    def _named(self, views: Sequence[Array]) -> dict[str, Array]:
        names = (parameter.name for parameter in self.function.parameters)
        return dict(zip(names, views, strict=True))

    def _label(self, number: int) -> str:
        return label(number, self.function.parameters[number])


def cuda_is_available() -> bool:
    """Whether CuPy is installed and sees a GPU."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError:
        return False
    return bool(cupy.cuda.is_available())


def pick_device(wanted: str) -> str:
    """The device for `wanted`: "auto" is "cuda" where there is one, else "emulator".

    Raises LaunchError where "cuda" is wanted and there is none.
    """
    _check_device(wanted)
    if wanted == "emulator":
        return wanted
    if cuda_is_available():
        return "cuda"
    if wanted == "auto":
        return "emulator"
    raise LaunchError(
        "no CUDA device: CuPy sees no GPU, or is not installed "
        f"({install_command(*_GPU_EXTRAS)}); the emulator needs none"
    )


def gpu_target() -> Target:
    """The newest known target that the current GPU runs; LaunchError if none."""
    capability = int(_cupy().cuda.Device().compute_capability)
    fitting = [target for target in TARGETS if target.runs_on(capability)]
    if not fitting:
        oldest = min(TARGETS, key=lambda target: target.compute_capability)
        raise LaunchError(
            f"this GPU is an sm_{capability}, expected {oldest.name} or newer"
        )
    return max(fitting, key=lambda target: target.compute_capability)


def to_device(
    arrays: Mapping[str, np.ndarray[Any, Any]], device: str
) -> dict[str, Any]:
    """Copies of `arrays`, in GPU memory for "cuda", in main memory for "emulator".

    They have the strides of the originals.
    """
    module = _cupy() if device == "cuda" else np
    return {name: _copied(module, array) for name, array in arrays.items()}


def _copied(module: Any, array: np.ndarray[Any, Any]) -> Any:
    if array.flags.c_contiguous or array.base is None:
        return module.array(array)
    # All memory from the first element to the last, gaps included.
    steps = zip(array.shape, array.strides, strict=True)
    elements = 1 + sum((n - 1) * step for n, step in steps) // array.dtype.itemsize
    flat = np.lib.stride_tricks.as_strided(array, (elements,), (array.dtype.itemsize,))
    memory = module.array(flat)
    return module.lib.stride_tricks.as_strided(memory, array.shape, array.strides)


def to_host(arrays: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """`arrays` as NumPy arrays, once all work on them is done."""
    return {
        name: array if isinstance(array, np.ndarray) else array.get()
        for name, array in arrays.items()
    }


def grid_of(kernel: Kernel, sizes: Mapping[str, int]) -> Dim3:
    """Blocks along x, y, z for the given sizes. LaunchError if there are too many."""
    x, y, z = (
        part.number(sizes) if isinstance(part, CeilDiv) else part
        for part in kernel.grid
    )
    for axis, blocks, most in zip("xyz", (x, y, z), MAX_GRID, strict=True):
        if blocks > most:
            raise LaunchError(
                f"kernel '{kernel.name}' needs {blocks} blocks along {axis}, a GPU "
                f"runs {most}"
            )
    return x, y, z


def _check_device(name: str) -> None:
    if name not in DEVICES:
        raise ConfigError(
            f"unknown device '{name}', expected one of {', '.join(DEVICES)}"
        )


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise LaunchError(
            f"arrays in GPU memory need CuPy: {install_command(*_GPU_EXTRAS)}"
        ) from error
