"""The description of a compiled function in a bundle, made from its launches.

Values have numbers in the function and names in the bundle: `arg0`, `result`, the sizes
"M" and "arg0_1", and `tmp0`, `tmp1`, ... for intermediate buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir import polynomials
from alcop_mlir.analysis.host.host_function import Host, HostLaunch
from alcop_mlir.analysis.host.host_values import Blocks, Local, SizeOf, StrideOf
from alcop_mlir.bindings import ir
from alcop_mlir.errors import CompileError
from alcop_mlir.manifest.names import intermediate_name
from alcop_mlir.polynomials import Polynomial
from alcop_mlir.runtime.manifest import (
    DTYPES,
    AtMost,
    CeilDiv,
    Function,
    Intermediate,
    Kernel,
    Parameter,
    PipelinedBuffer,
    Size,
)
from alcop_mlir.runtime.ptx import Cubin, of_kernel
from alcop_mlir.schedule import Schedule


@dataclass(frozen=True)
class Names:
    """The names of arrays and sizes.

    arrays: the function's arguments, in order
    sizes:  of dimensions of arrays; one that is missing is named after its array
    """

    arrays: Sequence[str]
    sizes: Mapping[tuple[str, int], Size]

    def of(self, value: int | Local | SizeOf | StrideOf) -> Size:
        """The name of an argument (by number), local buffer, size or stride.

        A size that turns out to be constant is a number instead.
        """
        if isinstance(value, int):
            return self.arrays[value]
        if isinstance(value, Local):
            return intermediate_name(value.number)
        array, dimension = self.arrays[value.argument], value.dimension
        if isinstance(value, StrideOf):
            return f"{array}_stride_{dimension}"
        return self.sizes.get((array, dimension), f"{array}_{dimension}")

    def size(self, value: int | SizeOf) -> Size:
        """The name of a size; a number is one already."""
        return value if isinstance(value, int) else self.of(value)


def describe(
    host: Host,
    names: Names,
    roles: Sequence[str],
    statistics: Mapping[str, Cubin],
) -> Function:
    """The function's description, without its reference.

    roles:      one per argument
    statistics: by kernel, for those that ptxas assembled
    """
    return Function(
        name=host.name,
        parameters=tuple(
            _parameter(host, number, names, role) for number, role in enumerate(roles)
        ),
        kernels=tuple(
            _kernel(launch, names, statistics.get(launch.kernel))
            for launch in host.launches
        ),
        intermediates=tuple(
            Intermediate(
                name=intermediate_name(number),
                dtype=buffer.dtype,
                shape=tuple(names.size(size) for size in buffer.shape),
            )
            for number, buffer in enumerate(host.locals)
        ),
        checks=tuple(_checks(host, names)),
    )


def _checks(host: Host, names: Names) -> Iterator[AtMost]:
    """The host's assertions, without those that hold whatever the sizes are."""

    def named(size: SizeOf) -> Polynomial:
        name = names.of(size)
        return (
            polynomials.constant(name)
            if isinstance(name, int)
            else (polynomials.size(name))
        )

    for check in dict.fromkeys(host.checks):
        least, most = check.least.substituted(named), check.most.substituted(named)
        left = (most - least).known
        if left is None or left < 0:
            yield AtMost(least, most)


def roles_by_access(host: Host, module: Any) -> list[str]:
    """Per argument "in", "out" or "inout", as the kernels use it.

    An array is "out" if its initial contents are not read: the first kernel that takes
    it only writes it.
    """
    access = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: _access(op.operation)
        for gpu_module in module.regions[0].blocks[0].operations
        if gpu_module.operation.name == "gpu.module"
        for op in gpu_module.operation.regions[0].blocks[0].operations
        if "gpu.kernel" in op.operation.attributes
    }
    found = [""] * len(host.arguments)
    for launch in host.launches:
        roles = access[launch.kernel]
        for argument, role in zip(launch.arguments, roles, strict=False):
            if isinstance(argument, int):
                found[argument] = _joined(found[argument], role)
    return [role or "in" for role in found]


def _access(kernel: Any) -> list[str]:
    """Per parameter of a kernel: "in" where it is only read, "out" only written."""
    attributes = kernel.attributes["arg_attrs"]
    return [
        "in"
        if "llvm.readonly" in one
        else "out"
        if "llvm.writeonly" in one
        else "inout"
        for one in map(ir.DictAttr, attributes)
    ]


def _joined(before: str, then: str) -> str:
    """The role of an array with the role `before`, and in a later kernel `then`."""
    if before in ("", then):
        return then
    return "out" if before == "out" else "inout"


def _parameter(host: Host, number: int, names: Names, role: str) -> Parameter:
    array = host.arguments[number]
    if array.dtype not in DTYPES:
        raise CompileError(
            f"argument {number + 1} of '{host.name}' has {array.dtype} elements, "
            f"expected one of {', '.join(DTYPES)}"
        )
    shape = tuple(
        names.of(SizeOf(number, dimension)) if size is None else size
        for dimension, size in enumerate(array.shape)
    )
    strides = tuple(
        names.of(StrideOf(number, dimension)) if stride is None else stride
        for dimension, stride in enumerate(array.strides or ())
    )
    return Parameter(
        name=names.arrays[number],
        dtype=array.dtype,
        shape=shape,
        role=role,
        strides=None if array.strides is None else strides,
        row_alignment=array.row_alignment,
    )


def _kernel(launch: HostLaunch, names: Names, module: Cubin | None) -> Kernel:
    x, y, z = (_grid_size(blocks, names) for blocks in launch.grid)
    schedule = launch.decisions.get("schedule")
    cubin = None if module is None else of_kernel(module, launch.kernel)
    return Kernel(
        name=launch.kernel,
        arguments=tuple(names.of(one) for one in launch.arguments),
        grid=(x, y, z),
        block=launch.block,
        shared_bytes=launch.shared_bytes,
        schedule=None if schedule is None else Schedule.from_dict(schedule),
        pipelines=tuple(
            PipelinedBuffer(**one) for one in launch.decisions.get("pipelines", ())
        ),
        registers=cubin.registers if cubin else None,
        spill_bytes=cubin.spill_bytes if cubin else None,
        static_shared_bytes=cubin.shared_bytes if cubin else None,
        simt="fallback" in launch.decisions,
    )


def _grid_size(blocks: int | Blocks, names: Names) -> int | CeilDiv:
    if isinstance(blocks, int):
        return blocks
    number = CeilDiv(tuple(map(names.size, blocks.sizes)), blocks.tile)
    if any(isinstance(size, str) for size in number.sizes):
        return number
    return number.number({})
