"""Builder of bounds checks: `guarded` puts conditions around accesses of a memref.

Before:  vector.store %v, %C[%row, %col] : vector<4xf32>
After:   scf.if %row < M && %col + 3 < N { vector.store ... }
         else { an scf.if and a memref.store for each element }

There is no else branch where N is known to be a multiple of 4. Loads give the padding
where they are out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from alcop_mlir.analysis.ir.alignment import divisor
from alcop_mlir.analysis.ir.extents import extent_divisor
from alcop_mlir.bindings import ir, memref, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build

# Operand number of the memref; its indices follow.
_ACCESSES = {"memref.load": 0, "vector.load": 0, "memref.store": 1, "vector.store": 1}


@frozen
class Bounds:
    """The bounds of `buffer`.

    sizes:   of the dimensions that accesses may exceed, outer ones first
    padding: the scalar that is loaded from outside
    """

    buffer: Any
    sizes: dict[int, Any]
    padding: Any | None = None

    @property
    def columns(self) -> Any | None:
        """Size of the last dimension; None where accesses are inside of it."""
        return self.sizes.get(self.buffer.type.rank - 1)

    def outer(self) -> list[tuple[int, Any]]:
        """The other dimensions, with their sizes."""
        last = self.buffer.type.rank - 1
        return [(dim, size) for dim, size in self.sizes.items() if dim != last]


def bounds(
    buffer: ir.Value,
    dims: Sequence[int | None],
    in_bounds: Sequence[bool],
    padding: ir.Value | None = None,
) -> Bounds:
    """The bounds of a transfer along `dims`, by its attribute `in_bounds`."""
    exceeded = [
        dim
        for dim, inside in zip(dims, in_bounds, strict=True)
        if dim is not None and not inside
    ]
    return Bounds(
        buffer, {dim: build.size(buffer, dim) for dim in sorted(exceeded)}, padding
    )


@contextmanager
def guarded(op: ir.Operation, limits: Bounds) -> Iterator[None]:
    """Put conditions around the accesses of the buffer that are built before `op`."""
    block = op.operation.block
    first = _number_of(op)
    yield
    if not limits.sizes:
        return
    for built in list(block.operations)[first : _number_of(op)]:
        operation = built.operation
        number = _ACCESSES.get(operation.name)
        if number is None or operation.operands[number] != limits.buffer:
            continue
        with operation.location, ir.InsertionPoint(operation):
            _guard(operation, list(operation.operands)[number + 1 :], limits)
        operation.erase()


def _number_of(op: ir.Operation) -> int:
    operation = op.operation
    return list(operation.block.operations).index(operation.opview)


def _guard(op: ir.Operation, indices: list[ir.Value], limits: Bounds) -> None:
    column = indices[-1]
    inside = None
    for dim, size in limits.outer():
        inside = build.both(inside, build.less(indices[dim], size))
    value = op.results[0] if len(op.results) else op.operands[0]
    is_vector = isinstance(value.type, ir.VectorType)
    count = value.type.shape[0] if is_vector else 1
    whole = inside
    if limits.columns is not None:
        last = build.plus(column, count - 1)
        whole = build.both(inside, build.less(last, limits.columns))

    def otherwise() -> list[Any]:
        if limits.columns is not None and _may_be_cut(limits, column, count):
            return _elementwise(op, indices, inside, limits)
        return [_padding(result, limits) for result in op.results]

    assert whole is not None
    kinds = [result.type for result in op.results]
    chosen = build.branch(whole, lambda: op.clone().results, otherwise, kinds)
    for old, new in zip(op.results, chosen, strict=True):
        old.replace_all_uses_with(new)


def _may_be_cut(limits: Bounds, column: ir.Value, count: int) -> bool:
    """Whether an access may be partly inside."""
    known = extent_divisor(limits.buffer, limits.buffer.type.rank - 1)
    return bool(known % count or divisor(column) % count)


def _elementwise(
    op: ir.Operation, indices: list[ir.Value], inside: ir.Value | None, limits: Bounds
) -> list[Any]:
    """What the vector access `op` does, for each element that is inside."""
    is_load = bool(len(op.results))
    kind = (op.results[0] if is_load else op.operands[0]).type
    found = []
    for number in range(kind.shape[0]):
        at = [*indices[:-1], build.plus(indices[-1], number)]
        assert limits.columns is not None
        is_inside = build.both(inside, build.less(at[-1], limits.columns))
        if is_load:
            found += build.branch(
                is_inside,
                lambda at=at: [memref.load(limits.buffer, at)],
                lambda: [limits.padding],
                [kind.element_type],
            )
        else:
            element = vector.extract(op.operands[0], [], [number])

            def store(element: ir.Value = element, at: list[Any] = at) -> None:
                memref.store(element, limits.buffer, at)

            build.branch(is_inside, store)
    return [vector.from_elements(kind, found)] if is_load else []


def _padding(result: ir.Value, limits: Bounds) -> Any:
    if isinstance(result.type, ir.VectorType):
        return vector.broadcast(result.type, limits.padding)
    return limits.padding
