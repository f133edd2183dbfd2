"""What a compiled host function does: its buffers and the kernels that it launches."""

from __future__ import annotations

import hashlib
from typing import Any

from alcop_mlir.analysis.host import host_code
from alcop_mlir.analysis.host.host_code import CHOICE, NotCompiled
from alcop_mlir.analysis.host.host_values import HostValues, Names
from alcop_mlir.analysis.ir.alignment import base_alignment
from alcop_mlir.analysis.ir.constant_arrays import ConstantArray, globals_read
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.memref_layouts import (
    follows_shape,
    has_negative_strides,
    is_strided,
    open_strides,
)
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.analysis.ir.symbols import name_of, top_level
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.manifest.arrays import Constant, Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.names import argument_name, constant_file, intermediate_name

_ALLOC = "memref.alloc"


def host_functions(module: ir.Operation | ir.Module) -> list[Any]:
    """The `func.func`s of `module` that have a body."""
    functions = top_level(module, "func.func")
    return [func for func in functions if len(func.regions[0].blocks)]


def host(
    func: ir.Operation, names: Names | None = None
) -> Function | tuple[NotCompiled, ...]:
    """What the `func.func` does; or every reason why that cannot be stored.

    Left to others are the roles of the parameters, the reference, and what ptxas says.

    names: without them, arguments are numbered
    """
    with func.context, func.location:
        return _host(func, names)


def _host(
    func: ir.Operation, names: Names | None
) -> Function | tuple[NotCompiled, ...]:
    name = name_of(func)
    if len(func.regions[0].blocks) != 1:
        return (NotCompiled(func, "has several blocks, expected straight-line code"),)
    block = func.regions[0].blocks[0]
    names = names or Names(tuple(argument_name(n) for n in range(len(block.arguments))))
    obstacles: list[NotCompiled] = []
    parameters: list[Parameter] = []
    for number, value in enumerate(block.arguments):
        found = _parameter(value, names)
        if isinstance(found, Parameter):
            parameters.append(found)
        else:
            reason = f"argument {number + 1} of '{name}' is {value.type}, {found}"
            obstacles.append(NotCompiled(func, reason))
    allocs = [op for op in walk(func, enter=_is_host_code) if op.name == _ALLOC]
    arrays = globals_read(func)
    values = HostValues(
        names,
        [alloc.results[0] for alloc in allocs],
        {symbol: array.name for symbol, array in arrays.items()},
    )
    buffers = [_intermediate(alloc, n, values) for n, alloc in enumerate(allocs)]
    code = host_code.read(block, values)
    obstacles += code.obstacles
    obstacles += [one for one in buffers if isinstance(one, NotCompiled)]
    used = {name for launch in code.launches for name in launch.arrays}
    constants = {array.name: array for array in arrays.values()}
    return tuple(obstacles) or Function(
        name,
        tuple(parameters),
        launches=code.launches,
        intermediates=tuple(one for one in buffers if isinstance(one, Intermediate)),
        checks=code.checks,
        constants=tuple(
            described(array) for name, array in constants.items() if name in used
        ),
    )


def _is_host_code(op: ir.Operation) -> bool:
    """Whether what is inside of `op` runs on the host."""
    return op.name in ("func.func", CHOICE)


def described(array: ConstantArray) -> Constant:
    """A constant as manifests have it, in a file of its own, named after its bytes."""
    file = constant_file(hashlib.sha256(array.data).hexdigest())
    return Constant(array.name, array.dtype, array.shape, file, 0, len(array.data))


def _parameter(value: ir.Value, names: Names) -> Parameter | str:
    """What is passed for an argument, or what was expected of it."""
    kind, argument = value.type, value.arg_number
    if not isinstance(kind, ir.MemRefType):
        return "expected a memref: pass a number as one, tensor<f32> for f32"
    if not is_strided(kind):
        return "expected a memref with a strided layout"
    strides, offset = kind.get_strides_and_offset()
    if offset != 0:
        return "expected a memref without an offset"
    if has_negative_strides(kind):
        return "expected a memref without negative strides"
    left_open = open_strides(kind)
    known = tuple(
        names.stride(argument, n) if n in left_open else s
        for n, s in enumerate(strides)
    )
    return Parameter(
        name=names.arguments[argument],
        dtype=str(kind.element_type),
        shape=tuple(
            names.size(argument, n) if kind.is_dynamic_dim(n) else extent
            for n, extent in enumerate(kind.shape)
        ),
        strides=None if follows_shape(kind) else known,
        row_alignment=row_alignment(value),
        alignment=base_alignment(value),
    )


def _intermediate(
    alloc: ir.Operation, number: int, values: HostValues
) -> Intermediate | NotCompiled:
    """The buffer that a `memref.alloc` allocates."""
    kind = alloc.results[0].type
    if kind.memory_space is not None or not follows_shape(kind):
        return NotCompiled(
            alloc, f"allocates {kind}, expected no layout or memory space"
        )
    if element_bits(kind.element_type) is None:
        return NotCompiled(
            alloc, f"allocates {kind}, expected elements that are numbers"
        )
    given = iter(alloc.operands)
    shape = [
        values.size(next(given)) if kind.is_dynamic_dim(dimension) else extent
        for dimension, extent in enumerate(kind.shape)
    ]
    known = tuple(extent for extent in shape if extent is not None)
    if len(known) != len(shape):
        reason = (
            f"allocates {kind}, expected sizes that arguments have, or that are "
            "computed from these by +, - and *"
        )
        return NotCompiled(alloc, reason)
    return Intermediate(intermediate_name(number), str(kind.element_type), known)
