"""What a compiled host function does: its arrays, and the kernels that it launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.extents import row_alignment
from alcop_mlir.analysis.loops import constant, defining_op
from alcop_mlir.analysis.memory import root
from alcop_mlir.bindings import ir

LAUNCH = "gpu.launch_func"
_NEEDS_NO_DEVICE = frozenset(
    """
    arith.constant arith.index_cast func.return
    memref.cast memref.reinterpret_cast memref.subview memref.collapse_shape
    memref.expand_shape memref.memory_space_cast memref.extract_strided_metadata
    memref.assume_alignment memref.extract_aligned_pointer_as_index memref.dim
    arith.ceildivui arith.divui arith.muli
    """.split()
)


@dataclass(frozen=True)
class SizeOf:
    """The size of a dimension of an argument, known when arrays are given."""

    argument: int
    dimension: int


@dataclass(frozen=True)
class Blocks:
    """As many blocks as tiles of `tile` cover `size`."""

    size: SizeOf
    tile: int


@dataclass(frozen=True)
class Launch:
    """One launch: blocks and threads along x, y, z; bytes of dynamic shared memory.

    arguments: what the kernel is given: arguments of the function, by number, and sizes
    """

    module: str
    kernel: str
    grid: tuple[int | Blocks, int | Blocks, int | Blocks]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[int | SizeOf, ...]


@dataclass(frozen=True)
class ArrayType:
    """An argument of the function.

    dtype:         of elements, in MLIR's words
    shape:         sizes, None where they are known at run time only
    strides:       in elements; None where rows follow each other without gaps
    row_alignment: bytes that a row is promised to be a multiple of; 1 for no promise
    """

    dtype: str
    shape: tuple[int | None, ...]
    strides: tuple[int, ...] | None
    row_alignment: int


@dataclass(frozen=True)
class Host:
    """A host function that can be run as data: nothing but launches of kernels."""

    name: str
    arrays: tuple[ArrayType, ...]
    launches: tuple[Launch, ...]


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
    for number, argument in enumerate(block.arguments):
        array = _array(argument)
        if array is None:
            reason = (
                f"argument {number + 1} of '{name}' is {argument.type}, expected an "
                "array whose rows have no gaps, a constant number of elements apart"
            )
            obstacles.append(NotCompiled(func, reason))
        else:
            arrays.append(array)
    launches: list[Launch] = []
    for op in block.operations:
        inner = op.operation
        if inner.name == LAUNCH:
            launch = _launch(op)
            if isinstance(launch, Launch):
                launches.append(launch)
            else:
                obstacles.append(launch)
        elif inner.name not in _NEEDS_NO_DEVICE:
            reason = f"'{inner.name}' was not compiled to a kernel"
            obstacles.append(NotCompiled(inner, reason))
    return tuple(obstacles) or Host(name, tuple(arrays), tuple(launches))


def _array(argument: Any) -> ArrayType | None:
    kind = argument.type
    if not isinstance(kind, ir.MemRefType):
        return None
    strides, offset = kind.get_strides_and_offset()
    follows = kind == ir.MemRefType.get(kind.shape, kind.element_type)
    if not follows and (
        offset != 0
        or strides[-1:] not in ([], [1])
        or any(map(kind.is_dynamic_stride_or_offset, strides))
    ):
        return None
    return ArrayType(
        dtype=str(kind.element_type),
        shape=tuple(
            None if kind.is_dynamic_dim(number) else size
            for number, size in enumerate(kind.shape)
        ),
        strides=None if follows else tuple(strides),
        row_alignment=row_alignment(argument),
    )


def _launch(op: Any) -> Launch | NotCompiled:
    grid = [_blocks(value) for value in (op.gridSizeX, op.gridSizeY, op.gridSizeZ)]
    shared = op.dynamicSharedMemorySize
    sizes = [
        *(constant(v) for v in (op.blockSizeX, op.blockSizeY, op.blockSizeZ)),
        0 if shared is None else constant(shared),
    ]
    arguments = [_argument(value) for value in op.kernelOperands]
    if None in grid or None in sizes or None in arguments:
        return NotCompiled(
            op.operation,
            "a launch whose sizes are no constants or sizes of arrays, or whose "
            "operands are no arguments of the function, cannot be stored",
        )
    module, kernel = ir.SymbolRefAttr(op.operation.attributes["kernel"]).value
    x, y, z = (blocks for blocks in grid if blocks is not None)
    known = [size for size in sizes if size is not None]
    return Launch(
        module=module,
        kernel=kernel,
        grid=(x, y, z),
        block=(known[0], known[1], known[2]),
        shared_bytes=known[3],
        arguments=tuple(one for one in arguments if one is not None),
    )


def _blocks(value: Any) -> int | Blocks | None:
    """A number of blocks: a constant, a size, or how many tiles cover one."""
    known, tile = constant(value), 1
    if known is not None:
        return known
    op = defining_op(value)
    if op is not None and op.operation.name == "arith.ceildivui":
        value, divisor = op.operation.operands
        tile = constant(divisor) or 0
    size = _size(value)
    return Blocks(size, tile) if size is not None and tile > 0 else None


def _size(value: Any) -> SizeOf | None:
    """The size of an argument that `value` is."""
    op = defining_op(value)
    while op is not None and op.operation.name == "arith.index_cast":
        op = defining_op(op.operation.operands[0])
    if op is None or op.operation.name != "memref.dim":
        return None
    array, dimension = op.operation.operands
    number, known = _argument_number(array), constant(dimension)
    if number is None or known is None or defining_op(array) is not None:
        return None
    return SizeOf(number, known)


def _argument(value: Any) -> int | SizeOf | None:
    if isinstance(value.type, ir.MemRefType):
        return _argument_number(value)
    return _size(value)


def _argument_number(value: Any) -> int | None:
    source = root(value)
    owner = defining_op(source)
    if owner is None:
        return ir.BlockArgument(source).arg_number
    if owner.operation.name == "memref.extract_strided_metadata":
        return _argument_number(owner.operation.operands[0])
    return None
