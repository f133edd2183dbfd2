"""What a compiled host function does: its arrays, and the kernels that it launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.loops import constant, defining_op
from alcop_mlir.analysis.memory import root
from alcop_mlir.bindings import ir

LAUNCH = "gpu.launch_func"
_NEEDS_NO_DEVICE = frozenset(
    """
    arith.constant arith.index_cast func.return
    memref.cast memref.reinterpret_cast memref.subview memref.collapse_shape
    memref.expand_shape memref.memory_space_cast memref.extract_strided_metadata
    memref.assume_alignment memref.extract_aligned_pointer_as_index
    """.split()
)


@dataclass(frozen=True)
class Launch:
    """One launch: blocks and threads along x, y, z; bytes of dynamic shared memory.

    arguments: numbers of the function's arguments that the kernel is given
    """

    module: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class ArrayType:
    """An argument of the function: element type in MLIR's words, static sizes."""

    dtype: str
    shape: tuple[int, ...]


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
        array = _array(argument.type)
        if array is None:
            reason = (
                f"argument {number + 1} of '{name}' is {argument.type}, expected an "
                "array of static shape, row-major without gaps"
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


def _array(kind: Any) -> ArrayType | None:
    if not isinstance(kind, ir.MemRefType) or not kind.has_static_shape:
        return None
    contiguous = ir.MemRefType.get(kind.shape, kind.element_type)
    if kind.get_strides_and_offset() != contiguous.get_strides_and_offset():
        return None
    return ArrayType(str(kind.element_type), tuple(kind.shape))


def _launch(op: Any) -> Launch | NotCompiled:
    sizes = [
        constant(value)
        for value in (
            op.gridSizeX,
            op.gridSizeY,
            op.gridSizeZ,
            op.blockSizeX,
            op.blockSizeY,
            op.blockSizeZ,
        )
    ]
    shared = op.dynamicSharedMemorySize
    sizes.append(0 if shared is None else constant(shared))
    arguments = [_argument_number(value) for value in op.kernelOperands]
    if None in sizes or None in arguments:
        return NotCompiled(
            op.operation,
            "a launch whose sizes are no constants, or whose operands are no arguments "
            "of the function, cannot be stored",
        )
    module, kernel = ir.SymbolRefAttr(op.operation.attributes["kernel"]).value
    known = [size for size in sizes if size is not None]
    return Launch(
        module=module,
        kernel=kernel,
        grid=(known[0], known[1], known[2]),
        block=(known[3], known[4], known[5]),
        shared_bytes=known[6],
        arguments=tuple(number for number in arguments if number is not None),
    )


def _argument_number(value: Any) -> int | None:
    source = root(value)
    owner = defining_op(source)
    if owner is None:
        return ir.BlockArgument(source).arg_number
    if owner.operation.name == "memref.extract_strided_metadata":
        return _argument_number(owner.operation.operands[0])
    return None
