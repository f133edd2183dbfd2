"""One reading of linalg ops: operands, loops, and how the loops index the operands.

`linalg_view` reads an op, named or generic, on memrefs or tensors, and `memref.copy`,
which is a `linalg.copy` without a body. What the others want to know of loops they ask
the view; what a body computes it does not say. Nothing is changed here; a view is of
the op as it was when it was read.

Loops that index no output are reductions, all others are parallel. The bindings give
no iterator types of named ops, in which it is so; of a `linalg.generic` that says other
no pass could make use.

Which loops are those of a contraction or of a convolution, upstream infers from the
maps of two inputs and the output, whatever the body computes. It passes over indices
that it does not know, so that it finds a contraction in the channels of a convolution:
here the answer is None then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.frozen import frozen

_COPY = "memref.copy"

Loops = tuple[int | None, ...]  # the loop along each dimension; None: another index


@frozen
class Window:
    """The index `position * stride + tap * dilation + offset`, of two loops or one."""

    position: int
    stride: int
    tap: int | None = None
    dilation: int = 1
    offset: int = 0


@frozen
class Index:
    """The index along one dimension: `offset`, plus each loop times its coefficient.

    expression:   the same, as MLIR has it
    loops:        that it is computed from, each once
    coefficients: of the loops; None where it is not linear (floordiv, mod)
    """

    expression: Any
    loops: tuple[int, ...]
    coefficients: tuple[int, ...] | None
    offset: int = 0

    @property
    def loop(self) -> int | None:
        """The loop that it is; None for any other index."""
        is_loop = self.coefficients == (1,) and self.offset == 0
        return self.loops[0] if is_loop else None

    @property
    def constant(self) -> int | None:
        """The number that it is; None where it is computed from loops."""
        return self.offset if self.coefficients == () else None

    @property
    def window(self) -> Window | None:
        """The window that it moves over the dimension; of one element for one loop."""
        if self.coefficients is None or len(self.loops) not in (1, 2):
            return None
        (position, *taps), (stride, *dilations) = self.loops, self.coefficients
        if not taps:
            return Window(position, stride, offset=self.offset)
        return Window(position, stride, taps[0], dilations[0], self.offset)


@frozen
class Operand:
    """An operand of an op, and the map by which the op's loops index it.

    argument: its element in the body; None where the body has none
    """

    value: Any
    argument: Any
    map: Any

    @cached_property
    def indices(self) -> tuple[Index, ...]:
        """The index along each dimension; none for a scalar."""
        return indices_of(self.map)

    @cached_property
    def loops(self) -> Loops:
        """The loop along each dimension; None where the index is not a loop alone."""
        return tuple(index.loop for index in self.indices)

    @property
    def is_memref(self) -> bool:
        """Whether it is a memref, not a scalar or tensor."""
        return isinstance(self.value.type, ir.MemRefType)

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self.value.type, ir.RankedTensorType)

    @property
    def is_read(self) -> bool:
        """Whether the body uses its element."""
        return self.argument is None or any(True for _ in self.argument.uses)

    @property
    def is_permutation(self) -> bool:
        """Whether each loop indexes one dimension: no broadcast, no reduction."""
        loops = [loop for loop in self.loops if loop is not None]
        is_full = len(loops) == len(self.loops)
        return is_full and sorted(loops) == list(range(self.map.n_dims))

    def static_size(self, dimension: int) -> int | None:
        """The size of a dimension where it is known."""
        return static_size(self.value, dimension)


@frozen
class LinalgView:
    """A linalg op.

    rank:  how many loops it has
    block: the body, which computes one element of each output; None for a copy
    """

    op: Any
    rank: int
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    block: Any

    @property
    def operands(self) -> tuple[Operand, ...]:
        """All operands, in the op's order."""
        return (*self.inputs, *self.outputs)

    @property
    def maps(self) -> list[Any]:
        """The indexing map of each operand."""
        return [operand.map for operand in self.operands]

    @property
    def is_generic(self) -> bool:
        """Whether it is a `linalg.generic`, not a named op."""
        return self.op.name == "linalg.generic"

    @cached_property
    def reductions(self) -> tuple[int, ...]:
        """The loops that index no output, outer ones first."""
        used = {i for out in self.outputs for one in out.indices for i in one.loops}
        return tuple(loop for loop in range(self.rank) if loop not in used)

    @cached_property
    def sizes(self) -> dict[int, tuple[Any, int]]:
        """Per loop, a value and its dimension of the loop's size; static if one is.

        MLIR refuses an op with a loop that indexes no dimension alone.
        """
        found: dict[int, tuple[Any, int]] = {}
        for operand in self.operands:
            for number, loop in enumerate(operand.loops):
                if loop is None:
                    continue
                if loop not in found or operand.static_size(number) is not None:
                    found[loop] = operand.value, number
        return found

    def static_size(self, loop: int) -> int | None:
        """The size of a loop where it is known."""
        return static_size(*self.sizes[loop])

    @property
    def is_empty(self) -> bool:
        """Whether it surely has no iteration."""
        return 0 in map(self.static_size, range(self.rank))

    def is_static(self, operand: Operand, dimension: int) -> bool:
        """Whether the sizes of a dimension, and of the loops along it, are known."""
        sizes = map(self.static_size, operand.indices[dimension].loops)
        return None not in (operand.static_size(dimension), *sizes)

    def outside(self) -> str | None:
        """Which operand is accessed at an index that it does not have, if one is.

        As far as sizes are known. MLIR looks at the first and last iteration only.
        """
        if self.is_empty:
            return None
        for operand in self.operands:
            for dimension, index in enumerate(operand.indices):
                if index.coefficients is None or not self.is_static(operand, dimension):
                    continue
                steps = zip(index.loops, index.coefficients, strict=True)
                ends = [
                    step * ((self.static_size(loop) or 1) - 1) for loop, step in steps
                ]
                least = index.offset + sum(min(0, end) for end in ends)
                most = index.offset + sum(max(0, end) for end in ends)
                size = operand.static_size(dimension) or 0
                if least < 0 or most >= max(size, 1):
                    return (
                        f"accesses dimension {dimension} of {operand.value.type} at "
                        f"indices from {least} to {most}, expected 0 to {size - 1}"
                    )
        return None

    @property
    def convolution_dimensions(self) -> Any | None:
        """Upstream's, with the first two inputs as image and filter, or None.

        None also where a window starts at an offset, or the filter comes first. A loop
        that indexes the output only is in none of the groups. Other inputs than the
        first two are not looked at: upstream has no answer for ops that have them.
        """
        if len(self.inputs) < 2 or len(self.outputs) != 1:
            return None
        maps = [operand.map for operand in (*self.inputs[:2], *self.outputs)]
        return linalg.infer_convolution_dimensions_from_maps(maps)


def static_size(value: ir.Value, dimension: int) -> int | None:
    """The size of a dimension of a memref or tensor where it is known."""
    kind = value.type
    return None if kind.is_dynamic_dim(dimension) else kind.shape[dimension]


def linalg_view(op: ir.Operation) -> LinalgView | None:
    """The view of an op; None for an op without indexing maps."""
    operation = op.operation
    if operation.name == _COPY:
        return _copy(operation)
    is_linalg = operation.name.startswith("linalg.")
    maps = linalg.get_indexing_maps(operation) if is_linalg else None
    if maps is None:
        return None
    (block,) = operation.regions[0].blocks
    # Some ops have no name for the output's element.
    arguments = [*block.arguments, None][: len(maps)]
    operands = tuple(
        Operand(value, argument, attribute.value)
        for value, argument, attribute in zip(
            operation.operands, arguments, maps, strict=True
        )
    )
    yielded = block.operations[-1].operation.operands
    inputs = len(operands) - len(yielded)
    rank = operands[0].map.n_dims
    return LinalgView(operation, rank, operands[:inputs], operands[inputs:], block)


def view_of(op: ir.Operation) -> LinalgView:
    """The view of an op that is known to have indexing maps."""
    view = linalg_view(op)
    assert view is not None, op
    return view


def why_not_in_place(view: LinalgView) -> str | None:
    """Why iterations would read what other ones write; None where they do not.

    An op without reductions may read an element of the memref that it writes there.
    """
    for output in view.outputs:
        for operand in view.inputs:
            if not operand.is_memref or not _may_overlap(operand.value, output.value):
                continue
            if view.reductions:
                return (
                    "reduces into a memref that is also an input, expected another "
                    "output"
                )
            if operand.value == output.value and operand.indices != output.indices:
                return (
                    f"reads the memref that it writes at {operand.map}, expected "
                    f"{output.map} or another output"
                )
    return None


def _may_overlap(one: ir.Value, other: ir.Value) -> bool:
    return memory.root(one) == memory.root(other) and not memory.are_apart(one, other)


def _copy(op: ir.Operation) -> LinalgView:
    rank = op.operands[1].type.rank
    identity = ir.AffineMap.get_identity(rank, context=op.context)
    source, target = (Operand(value, None, identity) for value in op.operands)
    return LinalgView(op, rank, (source,), (target,), None)


def indices_of(affine_map: ir.AffineMap) -> tuple[Index, ...]:
    """The results of a map as indices."""
    return tuple(map(_index, affine_map.results))


def contraction_dimensions(maps: Sequence[ir.AffineMap]) -> Any | None:
    """Upstream's `batch`, `m`, `n` and `k`, loops of A, B and C with these maps.

    None where there are not three, or one has an index that is not a loop. A loop that
    indexes one operand only, or one operand twice, is in none of the groups.
    """
    if any(index.loop is None for one in maps for index in indices_of(one)):
        return None
    return linalg.infer_contraction_dimensions_from_maps(list(maps))


def _index(expression: ir.AffineExpr) -> Index:
    if isinstance(expression, ir.AffineDimExpr):
        return Index(expression, (expression.position,), (1,))
    terms = _terms(expression)
    if terms is None:
        return Index(expression, tuple(dict.fromkeys(_loops(expression))), None)
    offset = terms.pop(None, 0)
    loops = tuple(loop for loop in terms if loop is not None)
    return Index(expression, loops, tuple(terms.values()), offset)


def _terms(expression: ir.AffineExpr) -> dict[int | None, int] | None:
    """The coefficient of each loop; of None the offset. None if not linear."""
    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position: 1}
    if isinstance(expression, ir.AffineConstantExpr):
        return {None: expression.value}
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left, right = _terms(expression.lhs), _terms(expression.rhs)
    if left is None or right is None:
        return None
    if isinstance(expression, ir.AffineMulExpr):  # by a number, on the right
        return {loop: one * right.get(None, 0) for loop, one in left.items()}
    return left | {loop: left.get(loop, 0) + one for loop, one in right.items()}


def _loops(expression: ir.AffineExpr) -> list[int]:
    """The loops that an index is computed from."""
    if isinstance(expression, ir.AffineDimExpr):
        return [expression.position]
    if isinstance(expression, ir.AffineBinaryExpr):
        return _loops(expression.lhs) + _loops(expression.rhs)
    return []
