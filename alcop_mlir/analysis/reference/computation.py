"""What a function computes, as the steps of a reference.

The steps are read from the function as it was given, before any pass: they are used to
check what passes make of it (by `contractions.py`). Works on memrefs and tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir.constant_arrays import ConstantArray, constant_array
from alcop_mlir.analysis.ir.doubles import narrows_doubles
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.updates import updated_arguments
from alcop_mlir.analysis.linalg.scalar_code import constant
from alcop_mlir.analysis.linalg.size_names import named_sizes
from alcop_mlir.analysis.reference.buffer_values import (
    BufferValues,
    Content,
    NotUnderstood,
    Part,
    loops,
)
from alcop_mlir.analysis.reference.image_steps import run_im2col
from alcop_mlir.analysis.reference.linalg_steps import run_linalg
from alcop_mlir.analysis.reference.open_sizes import (
    SizeOf,
    computed,
    made_size,
    pad_amounts,
    slice_numbers,
)
from alcop_mlir.analysis.reference.softmax_steps import run_softmax
from alcop_mlir.bindings import ir
from alcop_mlir.extents import Extent
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.names import argument_name, result_name
from alcop_mlir.reference.expressions import (
    FLOATS,
    INTEGERS,
    Argument,
    Constant,
)
from alcop_mlir.reference.narrowing import narrowed
from alcop_mlir.reference.steps import (
    Concat,
    Gather,
    Map,
    Pad,
    Slice,
    Step,
    renamed,
)

_ALLOCATIONS = frozenset("memref.alloc tensor.empty bufferization.alloc_tensor".split())
_IGNORED = frozenset("memref.dealloc memref.dim tensor.dim func.return".split())
# Other shapes of the same elements, in the same order.
_RESHAPES = frozenset(
    f"{dialect}.{op}"
    for dialect in ("memref", "tensor")
    for op in ("expand_shape", "collapse_shape", "cast")
) | {"alcop.rows"}


@frozen
class Computation:
    """The steps of a function; `unknown` is the first unsupported op, if any.

    constants: arrays that the steps read, whose elements are no one number
    """

    steps: tuple[Step, ...]
    unknown: Any | None = None
    constants: tuple[ConstantArray, ...] = ()


def computation(func: ir.Operation, allow_tf32: bool = False) -> Computation:
    """The steps of the `func.func`; none if it has ops that steps cannot express.

    allow_tf32: whether contractions of f32 may round A and B to tf32
    """
    values = BufferValues(_sizes(func))
    block = func.regions[0].blocks[0]
    if not all(_is_evaluated(array) for _, array in _ends(func)):
        return Computation((), func)
    for number, argument in enumerate(block.arguments):
        values.write(argument, argument_name(number))
    constants: dict[str, ConstantArray] = {}
    current = func
    try:
        for op in block.operations:
            current = op.operation
            _read(current, values, allow_tf32, constants)
        current = func
        steps = tuple(_finished(values, _ends(func)))
        read = {name for step in steps for name in step.reads}
        used = tuple(one for name, one in constants.items() if name in read)
        if narrows_doubles(func):
            steps = tuple(map(narrowed, steps))
        return Computation(steps, constants=used)
    except NotUnderstood:
        return Computation((), current)


def _is_evaluated(array: ir.Value) -> bool:
    """Whether expressions have the type of the elements."""
    return str(getattr(array.type, "element_type", "")) in (*FLOATS, *INTEGERS)


def _read(
    op: ir.Operation,
    values: BufferValues,
    allow_tf32: bool,
    constants: dict[str, ConstantArray],
) -> None:
    """Add the steps of `op`, and the constant array that it is, by its name.

    Raises NotUnderstood where steps cannot express it.
    """
    if op.name == "linalg.softmax":
        run_softmax(op, values)
    elif op.name.startswith("linalg."):
        run_linalg(op, values, allow_tf32)
    elif op.name == "memref.copy":
        source, target = op.operands
        values.write(target, values.content(source))
    elif op.name == "tensor.cast":  # to a type that may not tell the sizes
        values.write(op.results[0], values.content(op.operands[0]))
    elif op.name in _RESHAPES:
        values.view(op.results[0], op.operands[0])
    elif op.name in ("memref.subview", "tensor.extract_slice"):
        values.view(op.results[0], op.operands[0], _part(op, 1, values))
    elif op.name == "tensor.insert_slice":
        source, target = list(op.operands)[:2]
        part = _part(op, 2, values)
        content = values.insert(source, values.content(source), part, target)
        values.write(op.results[0], content)
    elif op.name == "tensor.pad":
        values.write(op.results[0], values.add(_padded(op, values)))
    elif op.name == "tensor.concat":
        names = tuple(values.name(one) for one in op.operands)
        step = Concat(names, "", op.attributes["dim"].value)
        values.write(op.results[0], values.add(step))
    elif op.name == "tensor.splat":
        number = constant(op.operands[0])
        if number is None:
            raise NotUnderstood
        values.write(op.results[0], number)
    elif op.name == "alcop.im2col":
        run_im2col(op, values)
    elif op.name == "alcop.take":
        values.write(op.results[0], values.add(_take(op, values)))
    elif op.name == "tensor.gather":
        values.write(op.results[0], values.add(_gathered(op, values)))
    elif op.name == "arith.constant":
        _read_constant(op, values, constants)
    elif op.name not in _IGNORED | _ALLOCATIONS and not _is_scalar_code(op):
        raise NotUnderstood


def _padded(op: ir.Operation, values: BufferValues) -> Pad:
    """The step of a `tensor.pad`. Raises NotUnderstood where amounts are not known."""
    low, high = (_extents(side, values) for side in pad_amounts(op))
    (block,) = op.regions[0].blocks
    value = constant(block.operations[-1].operation.operands[0])
    if value is None:
        raise NotUnderstood
    return Pad(values.name(op.operands[0]), "", low, high, value)


def _read_constant(
    op: ir.Operation, values: BufferValues, constants: dict[str, ConstantArray]
) -> None:
    """Set the value of a constant array; of others nothing is known."""
    kind, content = op.results[0].type, constant(op.results[0])
    if not hasattr(kind, "shape"):
        return
    if content is not None:
        values.write(op.results[0], content)
    elif _is_evaluated(op.results[0]):
        found = constant_array(op.attributes["value"])
        if found is not None:
            constants[found.name] = found
            values.write(op.results[0], found.name)


def _take(op: ir.Operation, values: BufferValues) -> Gather:
    """The step of an `alcop.take`: rows of a matrix, or of a batch of them."""
    table, indices = op.operands
    own, named = loops(op.results[0].type.rank), indices.type.rank
    inner = len(own) - named
    places = [*range(table.type.rank - inner - 1), *range(named, len(own))]
    every = [Argument(1 + place) for place in places]
    every.insert(-inner, Argument(0))
    return Gather(
        values.name(table),
        (values.name(indices),),
        f"{own[:named]}->{own}",
        "",
        tuple(every),
        values.shape(op.results[0]),
    )


def _gathered(op: ir.Operation, values: BufferValues) -> Gather:
    """The step of a `tensor.gather`."""
    (table, indices), kind = op.operands, op.results[0].type
    along = list(op.attributes["gather_dims"])
    outer = indices.type.rank - 1
    has_all = kind.rank == outer + table.type.rank
    left = [n for n in range(table.type.rank) if has_all or n not in along]
    places: dict[int, Argument] = {
        n: Argument(len(along) + outer + place) for place, n in enumerate(left)
    }
    places |= {n: Argument(number) for number, n in enumerate(along)}
    own = loops(kind.rank)
    return Gather(
        values.name(table),
        tuple(_component(indices, n, len(along), values) for n in range(len(along))),
        ",".join([f"{own[:outer]}."] * len(along)) + f"->{own}",
        "",
        tuple(places[n] for n in range(table.type.rank)),
        values.shape(op.results[0]),
    )


def _component(indices: ir.Value, number: int, count: int, values: BufferValues) -> str:
    """The name of one of the `count` numbers along the last dimension."""
    name = values.name(indices)
    if count == 1:
        return name
    outer = values.shape(indices)[:-1]
    sizes = tuple(size for size in outer if isinstance(size, int))
    if len(sizes) < len(outer):
        raise NotUnderstood
    offsets, strides = (0,) * len(outer), (1,) * (len(outer) + 1)
    return values.add(Slice(name, "", (*offsets, number), (*sizes, 1), strides))


def _is_scalar_code(op: ir.Operation) -> bool:
    """Whether `op` computes with scalars only, not with arrays."""
    every = (*op.operands, *op.results)
    return is_pure(op) and not any(hasattr(value.type, "shape") for value in every)


def _part(op: ir.Operation, arrays: int, values: BufferValues) -> Part:
    """The part that a slice is, of an op whose first operands are so many arrays.

    Raises NotUnderstood where it is computed of other numbers than sizes.
    """
    offsets, sizes, strides = slice_numbers(op, arrays)
    if not all(isinstance(one, int) and one >= 0 for one in strides):
        raise NotUnderstood
    return Part(_extents(offsets, values), _extents(sizes, values), tuple(strides))


def _extents(given: list[Any], values: BufferValues) -> tuple[Extent, ...]:
    """Of numbers and indices. Raises NotUnderstood where one is not known, or negative
    whatever the sizes are.
    """
    found = [computed(one, values.size) for one in given]
    known = tuple(one for one in found if one is not None)
    if len(known) < len(found) or any(isinstance(n, int) and n < 0 for n in known):
        raise NotUnderstood
    return known


def _finished(values: BufferValues, names: list[tuple[str, Any]]) -> Iterator[Step]:
    """The steps; a final value of an argument or result gets the name of that.

    Where two arrays have one final value, or an argument is read after the step that
    computes its final value, the value is copied at the end.
    """
    finals: dict[str, str] = {}
    copies: list[tuple[str, Content, Any]] = []
    for name, array in names:
        content = values.content(array)
        if content == name:
            continue
        if _can_be_renamed(content, name, finals, values.steps):
            finals[str(content)] = name
        else:
            copies.append((name, content, array))
    overwritten = {*finals.values(), *(name for name, _, _ in copies)}
    if any(content in overwritten for _, content, _ in copies):
        raise NotUnderstood
    for step in values.steps:
        yield renamed(step, finals)
    for name, content, array in copies:
        yield renamed(_copied(content, values.shape(array), name), finals)


def _can_be_renamed(
    content: Content, name: str, taken: dict[str, str], steps: list[Step]
) -> bool:
    if isinstance(content, Constant) or content in taken or content[0] != "%":
        return False
    later = steps[int(content[1:]) + 1 :]
    return not any(name in step.reads for step in later)


def _copied(content: Content, shape: tuple[Extent, ...], name: str) -> Map:
    own = loops(len(shape))
    if isinstance(content, Constant):
        return Map((), f"->{own}", name, content, shape)
    return Map((content,), f"{own}->{own}", name, Argument(0), shape)


def _ends(func: ir.Operation) -> list[tuple[str, Any]]:
    """Names of arguments and results, with the arrays that these are at the end."""
    block = func.regions[0].blocks[0]
    returned = list(list(block.operations)[-1].operation.operands)
    arguments = [(argument_name(n), value) for n, value in enumerate(block.arguments)]
    updates = updated_arguments(func)
    for number, argument in updates.items():
        arguments[argument] = argument_name(argument), returned[number]
    left = [value for n, value in enumerate(returned) if n not in updates]
    results = [(result_name(n, len(left)), value) for n, value in enumerate(left)]
    return arguments + results


def _sizes(func: ir.Operation) -> SizeOf:
    """Gives a size of an array, by names that arguments and results have; None where it
    is not computed of those.
    """
    block = func.regions[0].blocks[0]
    given = [(argument_name(n), value) for n, value in enumerate(block.arguments)]
    names: dict[Any, str] = {}
    for name, value in (*given, *_ends(func)):
        names.setdefault(value, name)
    ends = set(names.values())
    for op in func.regions[0].blocks[0].operations:
        for result in op.operation.results:
            if hasattr(result.type, "shape"):
                names.setdefault(result, f"%{len(names)}")
    every = named_sizes(func, names)
    extents: dict[int | str, Extent] = {
        size: size for (name, _), size in every.items() if name in ends
    }

    def size(array: ir.Value, number: int) -> Extent | None:
        own = every[names[array], number]
        return own if isinstance(own, int) else extents.get(own)

    for array, name in names.items():
        for number in range(len(getattr(array.type, "shape", ()))):
            if size(array, number) is None:
                found = made_size(array, number, size)
                if found is not None:
                    extents[every[name, number]] = found
    return size
