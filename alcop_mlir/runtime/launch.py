"""Running compiled kernels: on a GPU through CuPy, or on the embedded emulator.

Arrays are used in place, never copied: NumPy and DLPack arrays in main memory by the
emulator; CuPy, `__cuda_array_interface__` and DLPack arrays in GPU memory by CUDA.
CuPy is imported when it is first needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir import limits
from alcop_mlir.errors import LaunchError, check_known, install_command
from alcop_mlir.extents import number as number_of
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.kernels import (
    Dim3,
    Kernel,
    Pointer,
    SizeValue,
    TensorMap,
    number_of_blocks,
)
from alcop_mlir.runtime import bundle as bundles
from alcop_mlir.runtime import call, cuda, tensor_maps, weights, workspace
from alcop_mlir.runtime.arrays import (
    Array,
    check,
    check_sizes,
    host_array,
    is_on_gpu,
    label,
    last,
)
from alcop_mlir.runtime.certificates import required_certificates
from alcop_mlir.runtime.constants import Constants
from alcop_mlir.runtime.emulation import Emulation
from alcop_mlir.runtime.guards import chooser
from alcop_mlir.runtime.workspace import Workspace
from alcop_mlir.target import MAX_GRID, TARGETS, Target, newest_target

DEVICES = ("auto", "cuda", "emulator")
_GPU_EXTRAS = ("cuda12", "cuda13")  # CuPy, by the version of CUDA


@frozen
class _Plan:
    """What calls with these sizes run, if their addresses choose these variants.

    runs: the kernels that have something to compute, with their grids
    """

    sizes: Mapping[str, int]
    variants: tuple[int, ...]
    runs: Sequence[tuple[Kernel, Dim3]]
    workspace: Workspace


class Program:
    """One function of a bundle, called with arrays: `program(A, B, C)`.

    Numbers may be given for arrays without dimensions that are only read.

    Results that are left out are allocated and returned: `C = program(A, B)`.

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
        check_known("device", device, DEVICES)
        self.bundle = bundle
        self.function = bundle.function(function)
        self.device = device
        self.emulation = emulation
        self._modules: dict[tuple[int, str], dict[str, Any]] = {}
        self._constants = Constants(bundle, self.function)
        self._certificates = required_certificates(bundle)
        self._choosers = tuple(map(chooser, self.function.launches))
        self._planned: _Plan | None = None
        prepare = self.function.prepare
        self._preparing = prepare and Program(
            bundle, prepare.function, device, emulation
        )

    @property
    def last_variants(self) -> tuple[int, ...]:
        """Of each launch, the number of the variant that the last call ran."""
        return () if self._planned is None else self._planned.variants

    @property
    def ptx(self) -> str:
        """The PTX of the function's kernels, one after the other."""
        texts = (self.bundle.code_of(one).ptx for one in self.function.kernels)
        return "\n".join(dict.fromkeys(texts))  # a text may hold several kernels

    def save(self, path: str | Path) -> None:
        """Write the bundle to the directory or .zip file `path`."""
        bundles.save(self.bundle, path)

    def prepare(
        self, *arrays: Any, stream: Any = None, **named: Any
    ) -> tuple[Any, ...]:
        """What is made of weights once, for `prepared` of all calls with the same.

        arrays, named: as of a call; all that are no weights may be left out
        Empty where the function has nothing that depends on weights alone.
        """
        if self._preparing is None:
            return ()
        given = weights.given_weights(self.function, arrays, named)
        made = self._preparing(*given, stream=stream)
        return made if isinstance(made, tuple) else (made,)

    def __call__(
        self,
        *arrays: Any,
        stream: Any = None,
        prepared: Any = None,
        **named: Any,
    ) -> Any:
        """Run on `arrays`, one per parameter, in order; outputs are written in place.

        named: further arrays, by the names that arguments have in the source, or that
            `alcop-compile` prints
        stream: CUDA stream to launch on: a CuPy stream, an address, or an object with
            `__cuda_stream__` or `cuda_stream`; None is CuPy's current stream. The call
            returns when the kernels are enqueued; the emulator's returns when done.
        prepared: what `prepare` returned for these weights; made anew if left out

        Returns the results that `arrays` lacks, which it allocates: an array, or a
        tuple of several; else None. They are CuPy's on a GPU, else NumPy's.

        Raises LaunchError before anything runs, EmulationError on a fault or hazard.
        """
        given = call.bind(self.function, arrays, named)
        if prepared is None:
            prepared = self.prepare(*arrays, stream=stream, **named)
        on_gpu = any(map(is_on_gpu, given))
        if self.device == "cuda" or (self.device == "auto" and on_gpu):
            made = self._run_on_cuda(given, prepared, stream)
        else:
            made = self._run_on_emulator(given, prepared, stream)
        return tuple(made) if len(made) > 1 else next(iter(made), None)

    def __repr__(self) -> str:
        parameters = ", ".join(
            f"{call.shown(p)}: {p.dtype}[{', '.join(map(str, p.shape))}]"
            for p in self.function.parameters
        )
        return f"<{self.function.name}({parameters}) for {self.bundle.target.name}>"

    def _run_on_emulator(
        self, given: Sequence[Any], prepared: Sequence[Any], stream: Any
    ) -> list[Any]:
        """Run; returns the results that `given` leaves out."""
        if stream is not None:
            raise LaunchError("a stream was given, but the arrays are in main memory")
        given = call.with_arrays(self.function, given, np.array)
        views, made = self._complete(given, host_array, np.empty)
        sizes = check(self.function, views)
        named = self._named(views) | weights.views(self.function, prepared, host_array)
        addresses = {name: view.address for name, view in named.items()}
        planned = self._plan(sizes, addresses)
        space = planned.workspace
        limits.ARRAYS.check(space.bytes, "arrays between the kernels", LaunchError)
        scratch = workspace.host_arrays(space)
        values: dict[str, Any] = {name: view.owner for name, view in named.items()}
        constants = self._constants.on_host()
        values |= scratch | constants | sizes
        emulation = self.emulation or Emulation()
        for number, (kernel, grid) in enumerate(planned.runs):
            workspace.mark_unwritten(space, scratch, number)
            arguments = list(
                _given(kernel, values, planned.sizes, tensor_maps.on_emulator)
            )
            emulation.launch(self.bundle.code_of(kernel).ptx, kernel, grid, arguments)
        return made

    def _run_on_cuda(
        self, given: Sequence[Any], prepared: Sequence[Any], stream: Any
    ) -> list[Any]:
        """Enqueue; returns the results that `given` leaves out."""
        cupy = _cupy()
        with cuda.errors(cupy), ExitStack() as stack:
            device = cupy.cuda.Device().id
            for number, array in enumerate(given):
                if array is not call.LEFT_OUT and not call.is_number(array):
                    device = cuda.gpu_of(cupy, array, self._label(number))
                    break
            stack.enter_context(cupy.cuda.Device(device))
            if stream is not None:
                stack.enter_context(cuda.as_stream(cupy, stream))
            given = call.with_arrays(self.function, given, cupy.array)

            def view(array: Any, what: str) -> Array:
                return cuda.gpu_array(cupy, array, device, what)

            views, made = self._complete(given, view, cupy.empty)
            sizes = check(self.function, views)
            named = self._named(views) | weights.views(self.function, prepared, view)
            addresses = {name: view.address for name, view in named.items()}
            planned = self._plan(sizes, addresses)
            space = planned.workspace
            # Lives until the kernels are enqueued; the pool orders what comes after.
            memory = cuda.memory(cupy, space.bytes) if space.bytes else None
            start = memory.ptr if memory else 0
            for name, part in space.ranges.items():
                addresses[name] = start + part.offset
            for name, array in self._constants.on_gpu(cupy, device).items():
                addresses[name] = array.data.ptr
            values: dict[str, Any] = {k: np.int64(v) for k, v in sizes.items()}
            values |= {name: np.uint64(at) for name, at in addresses.items()}
            for kernel, grid in planned.runs:
                arguments = tuple(
                    np.int64(one) if isinstance(one, int) else one
                    for one in _given(kernel, values, planned.sizes, _map_on_gpu)
                )
                load = self._load(cupy, device, kernel)
                load(grid, kernel.block, arguments, shared_mem=kernel.shared_bytes)
        return made

    def _complete(
        self,
        given: Sequence[Any],
        view: Callable[[Any, str], Array],
        make: Callable[..., Any],
    ) -> tuple[list[Array], list[Any]]:
        """A view of each array, and those that `make` had to allocate."""

        def seen(arrays: Sequence[Any]) -> list[Array | None]:
            return [
                None if array is absent else view(array, self._label(number))
                for number, array in enumerate(arrays)
            ]

        absent = call.LEFT_OUT
        views = seen(given)
        made = call.allocate(self.function, views, make)
        pairs = zip(views, seen(made), strict=True)
        complete = (one or other for one, other in pairs)
        return [one for one in complete if one], [
            array for array in made if array is not absent
        ]

    def _plan(self, sizes: dict[str, int], addresses: Mapping[str, int]) -> _Plan:
        """What a call runs: the last plan, if that was for the same."""
        variants = tuple(choose(sizes, addresses) for choose in self._choosers)
        last = self._planned
        if last is None or last.sizes != sizes or last.variants != variants:
            self._planned = last = self._planned_anew(sizes, variants)
        return last

    def _planned_anew(self, sizes: dict[str, int], variants: tuple[int, ...]) -> _Plan:
        launches = zip(self.function.launches, variants, strict=True)
        chosen = [launch.variants[number] for launch, number in launches]
        check_sizes((check for one in chosen for check in one.checks), sizes)
        kernels = [kernel for one in chosen for kernel in one.kernels]
        runs = [(kernel, grid_of(kernel, sizes)) for kernel in kernels]
        runs = [(kernel, grid) for kernel, grid in runs if 0 not in grid]
        running = [kernel for kernel, _ in runs]
        if self._certificates is not None:
            self._certificates.check(self.function, chosen, running, sizes)
        space = workspace.plan(self.function.intermediates, running, sizes)
        return _Plan(sizes, variants, runs, space)

    def _load(self, cupy: Any, device: int, kernel: Kernel) -> Any:
        key = (device, kernel.module)
        if key not in self._modules:
            kernels = [k for k in self.function.kernels if k.module == kernel.module]
            self._modules[key] = cuda.load_module(
                cupy,
                self.bundle.target,
                kernel.module,
                self.bundle.code_of(kernel),
                list(dict.fromkeys(one.name for one in kernels)),
            )
            for one in kernels:
                cuda.allow_shared_memory(cupy, self._modules[key][one.name], one)
        return self._modules[key][kernel.name]

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
    check_known("device", wanted, DEVICES)
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
    newest = newest_target(capability)
    if newest is None:
        oldest = min(TARGETS, key=lambda target: target.compute_capability)
        raise LaunchError(
            f"this GPU is an sm_{capability}, expected {oldest.name} or newer"
        )
    return newest


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
    elements = 1 + last(array.shape, array.strides) // array.dtype.itemsize
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
    x, y, z = (number_of_blocks(part, sizes) for part in kernel.grid)
    for axis, blocks, most in zip("xyz", (x, y, z), MAX_GRID, strict=True):
        if blocks > most:
            raise LaunchError(
                f"kernel '{kernel.name}' needs {blocks} blocks along {axis}, a GPU "
                f"runs {most}"
            )
    return x, y, z


def _map_on_gpu(one: TensorMap, address: Any, sizes: Mapping[str, int]) -> Any:
    return tensor_maps.on_gpu(one, int(address), sizes)


def _given(
    kernel: Kernel,
    values: Mapping[str, Any],
    sizes: Mapping[str, int],
    map_of: Callable[[TensorMap, Any, Mapping[str, int]], Any],
) -> Iterator[Any]:
    """The kernel's arguments; `values` are arrays and sizes by name.

    map_of: what is passed for a tensor map of one of these arrays
    """
    for one in kernel.arguments:
        if isinstance(one, Pointer):
            yield values[one.array]
        elif isinstance(one, SizeValue):
            extent = one.size
            yield (
                values[extent] if isinstance(extent, str) else number_of(extent, sizes)
            )
        else:
            yield map_of(one, values[one.array], sizes)


def _cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise LaunchError(
            f"arrays in GPU memory need CuPy: {install_command(*_GPU_EXTRAS)}"
        ) from error
