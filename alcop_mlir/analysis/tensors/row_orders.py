"""Which ops read rows in another order than they lie in, for nothing.

Rows are the parts of a dimension that reshapes put together. Where a transpose in front
of the reshape has brought parts into another order, an op for which this dimension is
one parallel loop may as well go over rows as they lie, and its result be brought into
the other order. That is free where all that becomes of the result is taken apart and
transposed anyway. `find_reordered` says of which operands it is so. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import filled, made_by
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

COLLAPSE = "tensor.collapse_shape"
EXPAND = "tensor.expand_shape"
TRANSPOSE = "linalg.transpose"
SLICE = "tensor.extract_slice"
_BATCHED = "linalg.batch_matmul"
_VIEWS = (COLLAPSE, EXPAND, SLICE)
# Ops that may have any maps. Named batched ops have fixed maps so far.
ANY_MAPS = ("linalg.contract", "linalg.generic", "linalg.matmul")


@frozen
class Reordered:
    """An operand of which one dimension has its parts in another order.

    dimension: of the operand
    loop:      that goes over it
    order:     the parts, as numbers in the operand's order, in the order in which they
               lie in what is transposed
    sizes:     of the parts, in the operand's order
    """

    operand: Operand
    dimension: int
    loop: int
    order: tuple[int, ...]
    sizes: tuple[int, ...]


def find_reordered(view: LinalgView) -> Reordered | None:
    """The first dimension of an input that may keep the order in which it lies."""
    for operand in view.inputs:
        for dimension, order, sizes in _reordered_dimensions(operand.value):
            loop = _free_loop(view, operand, dimension)
            if loop is not None and _all_taken_apart(view, loop, sizes):
                return Reordered(operand, dimension, loop, order, sizes)
    return None


def order_of(transpose: ir.Operation) -> list[int]:
    """Which dimension of the source each one of the result is."""
    return list(transpose.attributes["permutation"])


def folds(user: ir.Operation) -> bool:
    """Whether an op takes transposes of its inputs into its maps.

    One that moves windows over an input would copy what lies otherwise.
    """
    if user.name not in ANY_MAPS:
        return False
    inputs = view_of(user).inputs
    return not any(
        index.loops and index.loop is None for one in inputs for index in one.indices
    )


def reads_transposed(value: ir.Value) -> bool:
    """Whether each reader takes a transpose of `value` into its maps.

    Or into another transpose; perhaps behind reshapes and slices. A contraction of
    batches reads batches that lie apart in chains, and else a part is less to copy.
    """
    users = [use.owner.operation for use in value.uses]
    return bool(users) and all(
        folds(user)
        or user.name in (TRANSPOSE, _BATCHED)
        or (user.name in _VIEWS and reads_transposed(user.results[0]))
        for user in users
    )


def lying_groups(
    collapse: ir.Operation, transpose: ir.Operation
) -> list[tuple[int, list[int]]] | None:
    """The dimensions that `collapse` puts together, of what `transpose` reads.

    Per dimension of the source's collapsed shape, in order: which one of the result it
    is, and the source's dimensions. None where parts of one lie apart, or in another
    order. Dimensions of extent 1 may lie anywhere.
    """
    order, groups = order_of(transpose), groups_of(collapse)
    shape = transpose.operands[0].type.shape
    owner = {order[n]: number for number, group in enumerate(groups) for n in group}
    long = [number for number, size in enumerate(shape) if size != 1]
    found: list[tuple[int, list[int]]] = []
    leading: list[int] = []
    for number in range(len(shape)):
        last = found[-1][0] if found else None
        if _begins(number, owner, long, last, {one for one, _ in found}):
            found.append((owner[number], [*leading, number]))
            leading = []
        else:
            (found[-1][1] if found else leading).append(number)
    is_whole = sorted(one for one, _ in found) == list(range(len(groups)))
    lies = all(
        _is_sorted([order[n] for n in one if order[n] in long]) for one in groups
    )
    return found if is_whole and lies else None


def _begins(
    number: int,
    owner: Mapping[int, int],
    long: Sequence[int],
    last: int | None,
    seen: Collection[int],
) -> bool:
    """Whether a dimension is the first of those that are put together."""
    whose = owner[number]
    if number in long:
        return whose != last
    # One of extent 1 stands for a result of extent 1, but not between parts of another.
    following = next((owner[n] for n in long if n > number), None)
    is_single = whose not in seen and all(owner[n] != whose for n in long)
    return is_single and (last is None or last != following)


def transposed_source(value: ir.Value) -> tuple[Any, Any] | None:
    """The `tensor.collapse_shape` that `value` is, and the transpose that this reads.

    None for other values, and where a size is not known.
    """
    collapse = made_by(value, COLLAPSE)
    transpose = collapse and made_by(collapse.operands[0], TRANSPOSE)
    if transpose is None or not transpose.results[0].type.has_static_shape:
        return None
    return collapse, transpose


def _reordered_dimensions(
    value: ir.Value,
) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Dimensions whose parts were transposed, with `order` and `sizes` of each."""
    found = transposed_source(value)
    if found is None:
        return
    collapse, transpose = found
    places = order_of(transpose)
    shape = transpose.results[0].type.shape
    for dimension, group in enumerate(groups_of(collapse)):
        # A part of extent 1 may lie anywhere.
        if not _is_sorted([places[n] for n in group if shape[n] != 1]):
            order = sorted(range(len(group)), key=lambda n: places[group[n]])
            yield dimension, tuple(order), tuple(shape[number] for number in group)


def _free_loop(view: LinalgView, operand: Operand, dimension: int) -> int | None:
    """The parallel loop over a dimension of one input alone, which has all results."""
    loop = operand.loops[dimension]
    indices = [index for one in view.inputs for index in one.indices]
    if loop is None or sum(loop in index.loops for index in indices) != 1:
        return None
    is_written = all(one.loops.count(loop) == 1 for one in view.outputs)
    is_asked = any(
        inner.operation.name == "linalg.index"
        and inner.operation.attributes["dim"].value == loop
        for inner in view.block.operations
    )
    return loop if is_written and not is_asked and _starts_equal(view) else None


def _starts_equal(view: LinalgView) -> bool:
    """Whether all rows of the results start from the same."""
    return all(
        made_by(one.value, "tensor.empty") is not None or filled(one.value) is not None
        for one in view.outputs
    )


def _all_taken_apart(view: LinalgView, loop: int, sizes: Sequence[int]) -> bool:
    """Whether each use of the results takes the loop's dimension apart to transpose."""
    pairs = zip(view.op.results, view.outputs, strict=True)
    return all(
        _is_taken_apart(use, one.loops.index(loop), sizes)
        for result, one in pairs
        for use in result.uses
    )


def _is_taken_apart(use: Any, dimension: int, sizes: Sequence[int]) -> bool:
    user = use.owner.operation
    if user.name == EXPAND:
        shape = user.results[0].type.shape
        parts = [shape[number] for number in groups_of(user)[dimension]]
        readers = [one.owner.operation.name for one in user.results[0].uses]
        return _long(parts) == _long(sizes) and {*readers} == {TRANSPOSE}
    view = linalg_view(user)
    if view is None or use.operand_number >= len(view.inputs):
        return False
    operand = view.inputs[use.operand_number]
    loop = _free_loop(view, operand, dimension)
    return loop is not None and _all_taken_apart(view, loop, sizes)


def _is_sorted(numbers: Sequence[int]) -> bool:
    return list(numbers) == sorted(numbers)


def _long(sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size != 1]
