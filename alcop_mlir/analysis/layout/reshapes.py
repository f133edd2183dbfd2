"""Layouts across ops that reduce, broadcast, reshape or transpose distributed vectors.

    vector.multi_reduction   accumulators [m][n]  ->  rows [m], or columns [n]
    vector.broadcast         rows [m][1], columns [n] or [1][n]  ->  accumulators [m][n]
    vector.shape_cast        rows [m]  ->  rows [m][1]: dimensions of extent 1 alone
    vector.transpose         rows [m][1]  ->  rows [1][m]: the dimensions alone

None moves an element to lanes of another row or column. A lane has the same rows
whatever the columns are, so rows do not tell how columns are interleaved: the other
side of such a tie is known by its other uses, or takes a *default*.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.layout.fragment_layout import UNIT, FragmentLayout
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen

REDUCE = "vector.multi_reduction"
BROADCAST = "vector.broadcast"
CAST = "vector.shape_cast"
TRANSPOSE = "vector.transpose"
RESHAPES = frozenset({REDUCE, BROADCAST, CAST, TRANSPOSE})


@frozen
class Tie:
    """What an op needs `value` distributed as, since others it takes or makes are.

    is_default: whether it may also be distributed otherwise
    """

    value: Any
    op: Any
    layout: FragmentLayout
    is_default: bool = False


def reshaped(op: ir.Operation, value: Any, layout: FragmentLayout) -> Iterator[Tie]:
    """The ties of an op of `RESHAPES` of which `value`, which it takes or makes, is
    distributed as `layout`; PassError where no layout fits the other values.
    """
    operation = op.operation
    source, result = operation.operands[0], operation.results[0]
    if not isinstance(result.type, ir.VectorType):
        raise PassError(op, f"'{operation.name}' of {layout} to one {result.type}")
    other = result if value == source else source
    dims = _DIMS[operation.name](operation, value == source, layout.dims)
    found = None if dims is None else layout.with_dims(dims)
    if found is None:
        verb = "distributed as" if value == source else "needed as"
        raise PassError(
            op,
            f"'{operation.name}' from {source.type} to {result.type}, {verb} {layout}: "
            "expected accumulators [m][n], rows [m] and columns [n]",
        )
    is_wider = set(found.dims) - {UNIT} > set(layout.dims)
    yield Tie(other, operation, found, is_default=is_wider)
    for start in list(operation.operands)[1:]:
        yield Tie(start, operation, found if other == result else layout)
    if other == source:
        yield Tie(result, operation, layout)


def reduced_dims(op: ir.Operation) -> list[int]:
    """The dimensions that a vector.multi_reduction reduces."""
    return [int(dim) for dim in op.operation.attributes["reduction_dims"]]


def _of_reduction(op: Any, is_source: bool, dims: str) -> str | None:
    shape, gone = op.operands[0].type.shape, reduced_dims(op)
    if is_source:
        return "".join(dim for n, dim in enumerate(dims) if n not in gone)
    kept = iter(dims)
    return _filled(shape, ["" if n in gone else next(kept) for n in range(len(shape))])


def _of_broadcast(op: Any, is_source: bool, dims: str) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    if not isinstance(source, ir.VectorType):
        return None
    new = result.rank - source.rank
    kept = [a == b for a, b in zip(source.shape, result.shape[new:], strict=True)]
    if not is_source:
        pairs = zip(dims[new:], kept, strict=True)
        return "".join(dim if is_kept else UNIT for dim, is_kept in pairs)
    pairs = zip(dims, kept, strict=True)
    return _filled(
        result.shape,
        [""] * new + [dim if is_kept else "" for dim, is_kept in pairs],
    )


def _of_cast(op: Any, is_source: bool, dims: str) -> str | None:
    source, result = op.operands[0].type, op.results[0].type
    if _without_units(source.shape) != _without_units(result.shape):
        return None
    letters = iter(dims.replace(UNIT, ""))
    other = result if is_source else source
    return "".join(UNIT if extent == 1 else next(letters) for extent in other.shape)


def _of_transpose(op: Any, is_source: bool, dims: str) -> str:
    order = [int(dim) for dim in op.attributes["permutation"]]
    if is_source:
        return "".join(dims[dim] for dim in order)
    return "".join(dims[order.index(dim)] for dim in range(len(order)))


def _filled(shape: list[int], dims: list[str]) -> str | None:
    """`dims`, of which those that are "" are new: the missing one, or of extent 1."""
    missing = sorted({"m", "n"} - set(dims))
    found = []
    for extent, dim in zip(shape, dims, strict=True):
        if not dim and extent > 1 and not missing:
            return None
        found.append(dim or (UNIT if extent == 1 else missing.pop()))
    return "".join(found)


def _without_units(shape: list[int]) -> list[int]:
    return [extent for extent in shape if extent != 1]


_DIMS = {
    REDUCE: _of_reduction,
    BROADCAST: _of_broadcast,
    CAST: _of_cast,
    TRANSPOSE: _of_transpose,
}
