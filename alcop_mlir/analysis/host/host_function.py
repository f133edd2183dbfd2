"""What a compiled host function does: its buffers and the kernels that it launches."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from alcop_mlir.dialects import alcop

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

    arguments: of the kernel: arguments of the function, by number, buffers that the
               function allocates, sizes and strides
    decisions: what alcop-outline-kernels says of it, by name
    """

    module: str
    kernel: str
    grid: tuple[int | Blocks, int | Blocks, int | Blocks]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[int | Local | SizeOf | StrideOf, ...]
    decisions: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ArgumentType:
    """The type of an argument of the function, a memref.

    dtype:         element type, as MLIR spells it
    shape:         sizes, None where they are known at run time only
    strides:       in elements, None where they are known at run time only; None
                   instead of the tuple where rows follow each other without gaps
    row_alignment: the promised divisor of a row's bytes; 1 for no promise
    """

    dtype: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    row_alignment: int


@dataclass(frozen=True)
class LocalBuffer:
    """A buffer that the function allocates; rows follow each other without gaps."""

    dtype: str
    shape: tuple[int | SizeOf, ...]


@dataclass(frozen=True)
class Host:
    """A host function that does nothing but launch kernels, and is stored as data.

    locals: the buffers that it allocates
    checks: what it asserts of sizes before it launches anything
    """

    name: str
    arguments: tuple[ArgumentType, ...]
    launches: tuple[HostLaunch, ...]
    locals: tuple[LocalBuffer, ...] = ()
    checks: tuple[AtMost, ...] = ()


@dataclass(frozen=True)
class NotCompiled:
    """An op or function that would have to run on the host, and why."""

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
    """What the `func.func` does; or every reason why that cannot be stored."""
    with func.context, func.location:
        return _host(func)


def _host(func: Any) -> Host | tuple[NotCompiled, ...]:
    name = ir.StringAttr(func.attributes["sym_name"]).value
    if len(func.regions[0].blocks) != 1:
        return (NotCompiled(func, "has several blocks, expected straight-line code"),)
    block = func.regions[0].blocks[0]
    obstacles: list[NotCompiled] = []
    arguments: list[ArgumentType] = []
    for number, value in enumerate(block.arguments):
        kind = _argument_type(value)
        if isinstance(kind, ArgumentType):
            arguments.append(kind)
        else:
            reason = f"argument {number + 1} of '{name}' is {value.type}, {kind}"
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
        tuple(arguments),
        launches=tuple(one for one in found if isinstance(one, HostLaunch)),
        locals=tuple(one for one in locals_ if isinstance(one, LocalBuffer)),
        checks=tuple(one for one in found if isinstance(one, AtMost)),
    )


def _effect(op: Any, allocated: list[Any]) -> HostLaunch | AtMost | NotCompiled | None:
    """What an op of the host function does; None where it only computes a value."""
    inner = op.operation
    if inner.name == LAUNCH:
        return _launch(op, allocated)
    if inner.name == ASSERT:
        reason = "asserts something else than an order of sizes of arguments"
        return asserted(inner.operands[0]) or NotCompiled(inner, reason)
    if inner.name in _NEEDS_NO_DEVICE:
        return None
    return NotCompiled(inner, f"'{inner.name}' was not compiled to a kernel")


def _argument_type(value: Any) -> ArgumentType | str:
    """The type of an argument, or what was expected of it."""
    kind = value.type
    if not isinstance(kind, ir.MemRefType):
        return "expected a memref: pass a number as one, tensor<f32> for f32"
    if not is_strided(kind):
        return "expected a memref with a strided layout"
    strides, offset = kind.get_strides_and_offset()
    if offset != 0:
        return "expected a memref without an offset"
    left_open = open_strides(kind)
    known = tuple(None if n in left_open else s for n, s in enumerate(strides))
    return ArgumentType(
        dtype=str(kind.element_type),
        shape=tuple(
            None if kind.is_dynamic_dim(number) else extent
            for number, extent in enumerate(kind.shape)
        ),
        strides=None if follows_shape(kind) else known,
        row_alignment=row_alignment(value),
    )


def _local(alloc: Any) -> LocalBuffer | NotCompiled:
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
        size(next(given)) if kind.is_dynamic_dim(number) else extent
        for number, extent in enumerate(kind.shape)
    ]
    known = tuple(extent for extent in shape if extent is not None)
    if len(known) != len(shape):
        reason = f"allocates {kind}, expected sizes that an argument has"
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
            "expected a launch whose sizes are constants or sizes of arguments, and "
            "whose operands are memrefs of the function, or their sizes or strides",
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
        decisions=alcop.get_plain(op, alcop.DECISIONS) or {},
    )
