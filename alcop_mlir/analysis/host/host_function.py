"""What a compiled host function does: its buffers and the kernels that it launches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.analysis.host.host_values import HostValues, Names
from alcop_mlir.analysis.ir.constant_arrays import ConstantArray, globals_read
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.memref_layouts import (
    follows_shape,
    is_strided,
    open_strides,
)
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.analysis.ir.symbols import name_of, top_level
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError
from alcop_mlir.manifest.arrays import Constant, Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    AtMost,
    Kernel,
    PipelinedBuffer,
    unguarded,
)
from alcop_mlir.manifest.names import argument_name, constant_file, intermediate_name
from alcop_mlir.schedule import Schedule

LAUNCH = "gpu.launch_func"
ASSERT = "cf.assert"
_NEEDS_NO_DEVICE = frozenset(
    """
    arith.constant arith.index_cast func.return memref.alloc memref.dealloc
    memref.cast memref.reinterpret_cast memref.subview memref.collapse_shape
    memref.expand_shape memref.memory_space_cast memref.extract_strided_metadata
    memref.assume_alignment memref.extract_aligned_pointer_as_index memref.dim
    memref.get_global arith.ceildivui arith.divui arith.muli arith.addi arith.subi
    arith.cmpi
    """.split()
)


@dataclass(frozen=True)
class NotCompiled:
    """An op or function that would have to run on the host, and why."""

    op: Any
    reason: str


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
    allocs = top_level(func, "memref.alloc")
    arrays = globals_read(func)
    values = HostValues(
        names,
        [alloc.results[0] for alloc in allocs],
        {symbol: array.name for symbol, array in arrays.items()},
    )
    buffers = [
        _intermediate(alloc, number, values) for number, alloc in enumerate(allocs)
    ]
    effects = [_effect(op, values) for op in block.operations]
    obstacles += [one for one in (*effects, *buffers) if isinstance(one, NotCompiled)]
    launches = tuple(unguarded(one) for one in effects if isinstance(one, Kernel))
    used = {name for launch in launches for name in launch.arrays}
    constants = {array.name: array for array in arrays.values()}
    return tuple(obstacles) or Function(
        name,
        tuple(parameters),
        launches=launches,
        intermediates=tuple(one for one in buffers if isinstance(one, Intermediate)),
        checks=tuple(_needed(one for one in effects if isinstance(one, AtMost))),
        constants=tuple(
            described(array) for name, array in constants.items() if name in used
        ),
    )


def described(array: ConstantArray) -> Constant:
    """A constant as manifests have it, in a file of its own, named after its bytes."""
    file = constant_file(hashlib.sha256(array.data).hexdigest())
    return Constant(array.name, array.dtype, array.shape, file, 0, len(array.data))


def _needed(checks: Iterable[AtMost]) -> Iterator[AtMost]:
    """Each check once, without those that hold whatever the sizes are."""
    for check in dict.fromkeys(checks):
        left = (check.most - check.least).known
        if left is None or left < 0:
            yield check


def _effect(
    op: ir.Operation, values: HostValues
) -> Kernel | AtMost | NotCompiled | None:
    """What an op of the host function does; None where it only computes a value."""
    inner = op.operation
    if inner.name == LAUNCH:
        return _kernel(op, values)
    if inner.name == ASSERT:
        reason = "asserts something else than an order of sizes of arguments"
        return values.asserted(inner.operands[0]) or NotCompiled(inner, reason)
    if inner.name in _NEEDS_NO_DEVICE:
        return None
    return NotCompiled(inner, f"'{inner.name}' was not compiled to a kernel")


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
        values.size(next(given)) if kind.is_dynamic_dim(number) else extent
        for number, extent in enumerate(kind.shape)
    ]
    known = tuple(extent for extent in shape if extent is not None)
    if len(known) != len(shape):
        reason = f"allocates {kind}, expected sizes that an argument has"
        return NotCompiled(alloc, reason)
    return Intermediate(intermediate_name(number), str(kind.element_type), known)


def _kernel(op: ir.Operation, values: HostValues) -> Kernel | NotCompiled:
    grid = [values.blocks(v) for v in (op.gridSizeX, op.gridSizeY, op.gridSizeZ)]
    shared = op.dynamicSharedMemorySize
    sizes = [
        *(constant(v) for v in (op.blockSizeX, op.blockSizeY, op.blockSizeZ)),
        0 if shared is None else constant(shared),
    ]
    arguments = [values.argument(value) for value in op.kernelOperands]
    if None in grid or None in sizes or None in arguments:
        return NotCompiled(
            op.operation,
            "expected a launch whose sizes are constants or sizes of arguments, and "
            "whose operands are memrefs of the function, or their sizes or strides",
        )
    module, kernel = ir.SymbolRefAttr(op.operation.attributes["kernel"]).value
    x, y, z = (part for part in grid if part is not None)
    known = [number for number in sizes if number is not None]
    return _with_decisions(
        op,
        Kernel(
            name=kernel,
            module=module,
            arguments=tuple(one for one in arguments if one is not None),
            grid=(x, y, z),
            block=(known[0], known[1], known[2]),
            shared_bytes=known[3],
        ),
    )


def _with_decisions(op: ir.Operation, kernel: Kernel) -> Kernel | NotCompiled:
    """`kernel` with what was decided for its launch, if that is as we write it."""
    decided = alcop.get_plain(op, alcop.DECISIONS)
    if decided is None:
        return kernel
    try:
        schedule = decided.get("schedule")
        return replace(
            kernel,
            schedule=None if schedule is None else Schedule.from_dict(schedule),
            schedule_source=decided.get("schedule_source"),
            pipelines=tuple(PipelinedBuffer(**o) for o in decided.get("pipelines", ())),
            fallback=decided.get("fallback"),
        )
    except (AttributeError, TypeError, ConfigError):  # other programs wrote it
        return NotCompiled(op.operation, f"'{alcop.DECISIONS}' is {decided}")
