"""Kernel arguments: NumPy arrays to device buffers, scalars to parameter bytes.

Arrays that overlap in memory share one buffer, so that aliasing on the device is what
it is on the host. A buffer begins at a 256-byte boundary, as an allocation does, or as
far behind one as the array is behind a multiple of 16 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from alcop_mlir import limits
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import F64, U64, Array
from alcop_mlir.runtime.emulator.machine.memory import (
    GLOBAL_WINDOW,
    HEAP_SIZE,
    GlobalMemory,
    MappedRange,
)
from alcop_mlir.runtime.emulator.machine.special_registers import (
    WORKSPACE,
    WORKSPACE_SIZE,
)
from alcop_mlir.runtime.emulator.ptx.program import Program
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Module,
    PtxKernel,
    PtxParameter,
    Variable,
)
from alcop_mlir.runtime.emulator.structures import (
    MAP_SIZE,
    POINTER,
    Pointers,
    Struct,
    inner,
)
from alcop_mlir.runtime.emulator.tensor_maps import AnyMap

# Bytes; PTX ISA, "Constant State Space", and what ptxas takes of a module.
MAX_CONSTANTS = 64 * 1024
WIDEST = 16  # bytes of an access: PTX ISA, "Vectors" and "cp.async"

Argument = np.ndarray | np.generic | int | float | bytes | Struct | Pointers | AnyMap


@dataclass(frozen=True)
class _Extent:
    """The memory of one array argument: host addresses [low, high)."""

    position: int
    array: Array
    low: int
    high: int


@dataclass(frozen=True)
class Bound:
    """Arguments in place: the memory, the parameter bytes and what to copy back."""

    memory: GlobalMemory
    parameter_bytes: bytes
    globals: dict[str, int]
    outputs: list[tuple[Array, MappedRange]]

    def copy_back(self) -> None:
        """Writes every changed buffer to the host arrays, in place."""
        for host, buffer in self.outputs:
            device = self.memory.bytes_of(buffer)
            if not np.array_equal(host, device):
                host[...] = device


def bind(
    program: Program,
    module: Module,
    args: Sequence[Argument],
    symbols: Mapping[str, np.ndarray],
    cooperative: bool,
) -> Bound:
    """Places the arguments, and the contents of variables of the module.

    The blocks of a `cooperative` launch have a workspace for their barrier.

    Raises `EmulationError` for a wrong number or type.
    """
    kernel = program.kernel
    args = [Struct(MAP_SIZE, {0: a}) if isinstance(a, AnyMap) else a for a in args]
    if len(args) != len(kernel.parameters):
        raise EmulationError(
            f"kernel {kernel.name} takes {len(kernel.parameters)} arguments, got "
            f"{len(args)}"
        )
    _check_pointers(kernel, args)
    held = (_Held(i, x) for i, a in enumerate(args) for x in inner(a))
    inside = list(dict.fromkeys(held))
    extents = [
        _extent(kernel, position, value)
        for position, value in inside
        if isinstance(value, np.ndarray)
    ]
    tables = [h.value for h in inside if isinstance(h.value, Pointers)]
    groups = _overlapping(extents)
    variables = list(_defined(module, symbols))
    for part in program.parts:
        declared = part.function.variables.values()
        variables += [v for v in declared if v.space in ("global", "const")]
    _check_constants(variables)
    if cooperative:
        variables.append(
            Variable(WORKSPACE, "global", WIDEST, WORKSPACE_SIZE, False, None)
        )
    sizes = [(_buffer_name(kernel, g), _size(g), _is_writable(g)) for g in groups]
    sizes += [("an array of pointers", POINTER * len(t.items), True) for t in tables]
    sizes += [(f"variable {v.name}", v.size, v.space == "global") for v in variables]
    total = sum(size for _, size, _ in sizes)
    limits.MEMORY.check(total, "arrays and variables of the kernel", EmulationError)
    behind = [group[0].low % WIDEST for group in groups]
    heap = HEAP_SIZE if program.names("malloc") else 0
    memory = GlobalMemory(sizes, behind, heap)
    pointers: dict[int, int] = {}
    outputs: list[tuple[Array, MappedRange]] = []
    for group, buffer in zip(groups, memory.buffers, strict=False):
        host = _bytes_of(group)
        memory.bytes_of(buffer)[...] = host
        if buffer.writable:
            outputs.append((host, buffer))
        for e in group:
            pointers[id(e.array)] = buffer.start + e.low - group[0].low
    for table, buffer in zip(tables, memory.buffers[len(groups) :], strict=False):
        pointers[id(table)] = buffer.start
        found = [0 if item is None else pointers[id(item)] for item in table.items]
        memory.bytes_of(buffer)[...] = np.array(found, U64).view(np.uint8)
    places: dict[str, int] = {}
    rest = memory.buffers[len(groups) + len(tables) :]
    for v, buffer in zip(variables, rest, strict=True):
        places[v.name] = buffer.start
        data = np.frombuffer(v.data or b"", np.uint8)
        memory.bytes_of(buffer)[: data.size] = data
    for v in variables:
        _fill_references(v, memory, places, program.addresses)
    outputs += _set_symbols(symbols, variables, memory, places)
    data = _parameter_bytes(kernel, args, pointers)
    return Bound(memory, data, places, outputs)


def _defined(module: Module, symbols: Mapping[str, np.ndarray]) -> Iterator[Variable]:
    """Variables of a module; those of another one (.extern) if `symbols` has them."""
    for variable in module.variables.values():
        if variable.space == "shared":
            continue
        if not variable.extern:
            yield variable
        elif variable.name in symbols:
            size = max(variable.size, symbols[variable.name].nbytes)
            yield variable._replace(size=size)


def _check_constants(variables: Sequence[Variable]) -> None:
    total = sum(v.size for v in variables if v.space == "const")
    if total > MAX_CONSTANTS:
        raise EmulationError(
            f"the module has {limits.number(total)} bytes of constants; it may have "
            f"at most {MAX_CONSTANTS}"
        )


class _Held(NamedTuple):
    """An array or array of pointers that is (in) the argument at `position`."""

    position: int
    value: np.ndarray | Pointers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _set_symbols(
    symbols: Mapping[str, np.ndarray],
    variables: Sequence[Variable],
    memory: GlobalMemory,
    places: dict[str, int],
) -> list[tuple[Array, MappedRange]]:
    """Copies arrays to variables; returns those to be copied back.

    CUDA Runtime API: cudaMemcpyToSymbol, cudaMemcpyFromSymbol.
    """
    sizes = {v.name: v.size for v in variables}
    back: list[tuple[Array, MappedRange]] = []
    for name, array in symbols.items():
        if name not in places:
            known = ", ".join(places) or "none"
            raise EmulationError(f"there is no variable {name}; the module has {known}")
        if not array.flags.c_contiguous or array.dtype.hasobject:
            raise EmulationError(f"variable {name}: expected a contiguous array")
        if array.nbytes > sizes[name]:
            raise EmulationError(
                f"variable {name} has {sizes[name]} bytes, got {array.nbytes}"
            )
        host = array.reshape(-1).view(np.uint8)
        where = next(b for b in memory.buffers if b.start == places[name])
        memory.bytes_of(where)[: host.size] = host
        if where.writable and array.flags.writeable:
            back.append((host, replace(where, stop=where.start + host.size)))
    return back


def _fill_references(
    variable: Variable,
    memory: GlobalMemory,
    places: dict[str, int],
    functions: dict[str, int],
) -> None:
    """Writes the addresses that the initial value of a variable names."""
    start = places[variable.name] - GLOBAL_WINDOW
    for reference in variable.references:
        address = places.get(reference.name, functions.get(reference.name))
        if address is None:
            continue  # of a function without a body: a null pointer
        raw = (address + reference.addend).to_bytes(reference.size, "little")
        at = start + reference.offset
        memory.data[at : at + reference.size] = np.frombuffer(raw, np.uint8)


def _describe(kernel: PtxKernel, position: int) -> str:
    return f"argument {position} ({kernel.parameters[position].name})"


def _check_pointers(kernel: PtxKernel, args: Sequence[Argument]) -> None:
    """Arrays are given only for parameters that hold an address."""
    for position, argument in enumerate(args):
        parameter = kernel.parameters[position]
        if not isinstance(argument, (np.ndarray, Pointers)):
            continue
        if parameter.size != POINTER or parameter.type.kind == "f":
            raise EmulationError(
                f"{_describe(kernel, position)} of kernel {kernel.name} is a "
                f"{parameter.size}-byte {parameter.type.name}, got an array (a pointer "
                f"needs 8 bytes)"
            )


def _extent(kernel: PtxKernel, position: int, array: Array) -> _Extent:
    if array.dtype.hasobject:
        raise EmulationError(f"{_describe(kernel, position)}: got an array of objects")
    if array.size == 0:
        return _Extent(position, array, 0, 0)
    low = high = array.__array_interface__["data"][0]
    for length, stride in zip(array.shape, array.strides, strict=True):
        step = (length - 1) * stride
        low, high = low + min(step, 0), high + max(step, 0)
    return _Extent(position, array, low, high + array.itemsize)


def _overlapping(extents: list[_Extent]) -> list[list[_Extent]]:
    """Groups of arrays that share memory, each in the order of its addresses."""
    groups: list[list[_Extent]] = []
    top = -1
    for e in sorted(extents, key=lambda e: (e.low, e.high)):
        if e.array.size and e.low < top:
            groups[-1].append(e)
        else:
            groups.append([e])
        top = max(top, e.high)
    return sorted(groups, key=lambda g: min(e.position for e in g))


def _size(group: list[_Extent]) -> int:
    return max(e.high for e in group) - group[0].low


def _is_writable(group: list[_Extent]) -> bool:
    return all(e.array.flags.writeable for e in group)


def _buffer_name(kernel: PtxKernel, group: list[_Extent]) -> str:
    positions = sorted({e.position for e in group})
    return " / ".join(_describe(kernel, p) for p in positions)


def _bytes_of(group: list[_Extent]) -> Array:
    """The host memory of a group as one byte array, without a copy."""
    size = _size(group)
    if size == 0:
        return np.zeros(0, np.uint8)
    first = group[0]
    # The element at the lowest address: the last one along negative strides.
    at = tuple(
        slice(n - 1, n) if s < 0 else slice(0, 1)
        for n, s in zip(first.array.shape, first.array.strides, strict=True)
    )
    # `...` keeps the view of an array without dimensions: [()] would be a copy.
    element = first.array[(*at, ...)].reshape(1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(
        element, (size,), (1,), writeable=_is_writable(group)
    )


def _parameter_bytes(
    kernel: PtxKernel, args: Sequence[Argument], pointers: dict[int, int]
) -> bytes:
    total = max((p.offset + p.size for p in kernel.parameters), default=0)
    data = bytearray(total)
    for i, (parameter, value) in enumerate(zip(kernel.parameters, args, strict=True)):
        if isinstance(value, (np.ndarray, Pointers)):
            raw = pointers[id(value)].to_bytes(POINTER, "little")
        elif isinstance(value, Struct):
            raw = _scalar_bytes(kernel, i, parameter, value.encode(pointers))
        else:
            raw = _scalar_bytes(kernel, i, parameter, value)
        data[parameter.offset : parameter.offset + parameter.size] = raw
    return bytes(data)


def _scalar_bytes(
    kernel: PtxKernel, position: int, parameter: PtxParameter, value: Argument
) -> bytes:
    what = f"{_describe(kernel, position)} of kernel {kernel.name}"
    if isinstance(value, (bytes, np.void)):
        raw = value if isinstance(value, bytes) else value.tobytes()
        if len(raw) != parameter.size:
            raise EmulationError(
                f"{what} has {parameter.size} bytes, got {len(raw)} bytes"
            )
        return raw
    if parameter.size != parameter.type.size:
        raise EmulationError(
            f"{what} is a structure of {parameter.size} bytes: expected bytes, got "
            f"{type(value).__name__}"
        )
    if not isinstance(value, (bool, int, float, np.generic)):
        raise EmulationError(
            f"{what}: expected an array or a number, got {type(value).__name__}"
        )
    return _number_bytes(what, parameter, value)


def _number_bytes(
    what: str, parameter: PtxParameter, value: np.generic | float
) -> bytes:
    scalar = parameter.type
    is_float = isinstance(value, (float, np.floating))
    if scalar.kind == "f" or (
        is_float and scalar.kind == "b" and 2 <= scalar.size <= 8
    ):
        if isinstance(value, np.floating) and value.dtype.itemsize == scalar.size:
            return value.tobytes()
        is_bits = scalar.kind == "b" or scalar.half is not None
        stored = SCALARS[f"f{scalar.bits}"] if is_bits else scalar
        return stored.encode(np.array(value, F64), "rn").tobytes()
    number = np.asarray(value).item()
    if (is_float and not math.isfinite(number)) or number != int(number):
        raise EmulationError(f"{what} is a {scalar.name}, got {value!r}")
    number = int(number)
    low, high = -(1 << (scalar.bits - 1)), (1 << scalar.bits) - 1
    if not low <= number <= high:
        raise EmulationError(
            f"{what} is a {scalar.name}; {number} does not fit in {scalar.size} bytes"
        )
    return (number & high).to_bytes(scalar.size, "little")
