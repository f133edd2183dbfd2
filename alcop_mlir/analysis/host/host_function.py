"""What a compiled host function does: its arrays, and the kernels that it launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.host.host_values import (
    AtMost,
    Blocks,
    Local,
    SizeOf,
    StrideOf,
    argument,
    asserted,
    blocks,
    size,
)
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.ir.memref_layouts import (
    follows_shape,
    is_strided,
    open_strides,
)
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.bindings import ir

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
class HostLaunch:
    """One launch: blocks and threads along x, y, z; bytes of dynamic shared memory.

    arguments: what the kernel is given: arguments of the function, by number, arrays
               that it allocates, sizes and strides
    """

    module: str
    kernel: str
    grid: tuple[int | Blocks, int | Blocks, int | Blocks]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[int | Local | SizeOf | StrideOf, ...]


@dataclass(frozen=True)
class ArrayType:
    """An argument of the function.

    dtype:         of elements, in MLIR's words
    shape:         sizes, None where they are known at run time only
    strides:       in elements, None those known at run time only; None for all where
                   rows follow each other without gaps
    row_alignment: bytes that a row is promised to be a multiple of; 1 for no promise
    """

    dtype: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    row_alignment: int


@dataclass(frozen=True)
class LocalBuffer:
    """An array that the function allocates; rows follow each other without gaps."""

    dtype: str
    shape: tuple[int | SizeOf, ...]


@dataclass(frozen=True)
class Host:
    """A host function that can be run as data: nothing but launches of kernels.

    arrays: its arguments; locals: the arrays that it allocates
    checks: what it asserts of sizes before it launches anything
    """

    name: str
    arrays: tuple[ArrayType, ...]
    launches: tuple[HostLaunch, ...]
    locals: tuple[LocalBuffer, ...] = ()
    checks: tuple[AtMost, ...] = ()


@dataclass(frozen=True)
class NotCompiled:
    """An op, or function, that would have to run but is no kernel, and why."""

    op: Any
    reason: str


def host_functions(module: Any) -> list[Any]:
    """The `func.func`s of `module` that have a body."""
    return [
        op.operation
        for op in module.operation.regions[0].blocks[0].operations
        if op.operation.name == "func.func" and len(op.operation.regions[0].blocks)
    ]


def host(func: Any) -> Host | tuple[NotCompiled, ...]:
    """What the `func.func` does; or everything that stands in the way."""
    with func.context, func.location:
        return _host(func)


def _host(func: Any) -> Host | tuple[NotCompiled, ...]:
    name = ir.StringAttr(func.attributes["sym_name"]).value
    if len(func.regions[0].blocks) != 1:
        return (NotCompiled(func, "has several blocks, expected straight-line code"),)
    block = func.regions[0].blocks[0]
    obstacles: list[NotCompiled] = []
    arrays: list[ArrayType] = []
    for number, value in enumerate(block.arguments):
        array = _array(value)
        if isinstance(array, ArrayType):
            arrays.append(array)
        else:
            reason = f"argument {number + 1} of '{name}' is {value.type}, {array}"
            obstacles.append(NotCompiled(func, reason))
    allocs = [
        op.operation for op in block.operations if op.operation.name == "memref.alloc"
    ]
    locals_ = [_local(alloc) for alloc in allocs]
    found = [
        _effect(op, [alloc.results[0] for alloc in allocs]) for op in block.operations
    ]
    obstacles += [one for one in (*found, *locals_) if isinstance(one, NotCompiled)]
    return tuple(obstacles) or Host(
        name,
        tuple(arrays),
        launches=tuple(one for one in found if isinstance(one, HostLaunch)),
        locals=tuple(one for one in locals_ if isinstance(one, LocalBuffer)),
        checks=tuple(one for one in found if isinstance(one, AtMost)),
    )


def _effect(op: Any, allocated: list[Any]) -> HostLaunch | AtMost | NotCompiled | None:
    """What an op of the host does; None where it only computes a value."""
    inner = op.operation
    if inner.name == LAUNCH:
        return _launch(op, allocated)
    if inner.name == ASSERT:
        reason = "checks what is no order of sizes of arrays"
        return asserted(inner.operands[0]) or NotCompiled(inner, reason)
    if inner.name in _NEEDS_NO_DEVICE:
        return None
    return NotCompiled(inner, f"'{inner.name}' was not compiled to a kernel")


def _array(value: Any) -> ArrayType | str:
    """The array that an argument is, or what was expected of it."""
    kind = value.type
    if not isinstance(kind, ir.MemRefType):
        return "expected an array: give a number as one, tensor<f32> for f32"
    if not is_strided(kind):
        return "expected an array with a strided layout"
    strides, offset = kind.get_strides_and_offset()
    if offset != 0:
        return "expected an array without an offset"
    left_open = open_strides(kind)
    known = tuple(None if n in left_open else s for n, s in enumerate(strides))
    return ArrayType(
        dtype=str(kind.element_type),
        shape=tuple(
            None if kind.is_dynamic_dim(number) else extent
            for number, extent in enumerate(kind.shape)
        ),
        strides=None if follows_shape(kind) else known,
        row_alignment=row_alignment(value),
    )


def _local(alloc: Any) -> LocalBuffer | NotCompiled:
    """The array that a `memref.alloc` makes."""
    kind = alloc.results[0].type
    if kind.memory_space is not None or not follows_shape(kind):
        return NotCompiled(alloc, f"allocates {kind}, expected a plain array")
    if element_bits(kind.element_type) is None:
        return NotCompiled(alloc, f"allocates {kind}, expected numbers")
    given = iter(alloc.operands)
    shape = [
        size(next(given)) if kind.is_dynamic_dim(number) else extent
        for number, extent in enumerate(kind.shape)
    ]
    known = tuple(extent for extent in shape if extent is not None)
    if len(known) != len(shape):
        reason = f"allocates {kind} of a size that is none of an argument's"
        return NotCompiled(alloc, reason)
    return LocalBuffer(str(kind.element_type), known)


def _launch(op: Any, allocated: list[Any]) -> HostLaunch | NotCompiled:
    grid = [blocks(value) for value in (op.gridSizeX, op.gridSizeY, op.gridSizeZ)]
    shared = op.dynamicSharedMemorySize
    sizes = [
        *(constant(v) for v in (op.blockSizeX, op.blockSizeY, op.blockSizeZ)),
        0 if shared is None else constant(shared),
    ]
    arguments = [argument(value, allocated) for value in op.kernelOperands]
    if None in grid or None in sizes or None in arguments:
        return NotCompiled(
            op.operation,
            "a launch whose sizes are no constants or sizes of arrays, or whose "
            "operands are no arrays of the function, cannot be stored",
        )
    module, kernel = ir.SymbolRefAttr(op.operation.attributes["kernel"]).value
    x, y, z = (part for part in grid if part is not None)
    known = [number for number in sizes if number is not None]
    return HostLaunch(
        module=module,
        kernel=kernel,
        grid=(x, y, z),
        block=(known[0], known[1], known[2]),
        shared_bytes=known[3],
        arguments=tuple(one for one in arguments if one is not None),
    )
