"""Builders on rows and columns of accumulators, distributed to the lanes of a warp.

Of rows a lane holds, per 16 of them, those of its upper and its lower elements: the
four lanes of a quad hold the same. Of columns it holds, per 8 of them, its two: the
eight lanes with the same `lane_in_quad` hold the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.analysis.layout.reshapes import REDUCE, reduced_dims
from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tensor_cores.bounds import Bounds
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    QUAD,
    AccumulatorSource,
    Indices,
    Pieces,
    accumulator_lane,
    lane_columns,
    lane_rows,
    load_accumulators,
    pieces,
)

_BOTH = (0, 1)  # a lane's upper and lower row of a piece, or its two columns
_WORD_BITS = 32
# Distances in the numbers of lanes that hold elements of the same row, of the same
# column.
_LANES = {"n": (1, 2), "m": (4, 8, 16)}
assert QUAD == 1 + sum(_LANES["n"])
assert WARP_SIZE == 1 + sum(map(sum, _LANES.values()))


def reshape(
    op: ir.Operation,
    operands: Sequence[Pieces],
    layout: FragmentLayout,
    by_lane: bool = False,
) -> Pieces:
    """The result of an op of `reshapes.RESHAPES`, distributed as `layout`.

    by_lane: of a reduction, what each lane makes of its own elements, and its start
    """
    kind, source = op.results[0].type, operands[0]
    if op.name == REDUCE:
        return _reduced(op, source, operands[1], kind, by_lane)
    if source.layout.role == layout.role:
        return _reordered(source, layout, kind)
    return _stretched(source, layout, kind)


def _reduced(
    op: ir.Operation, source: Pieces, start: Pieces, kind: ir.Type, by_lane: bool
) -> Pieces:
    """Rows (or columns) of accumulators: each lane over the columns (rows) that it
    holds, then the lanes that hold the others, by shuffles.

    start:  what the reduction begins with, of the layout of the result
    kind:   the type of the result
    by_lane: without the exchange; the start is a lane's own, too
    """
    combine = _combining(op, kind.element_type)
    gone = {source.layout.dims[dim] for dim in reduced_dims(op)} & set(_LANES)
    if not gone:  # dimensions of extent 1
        both = zip(source.values, start.values, strict=True)
        return pieces(start.layout, kind, [_combine(op, *pair) for pair in both])
    (along,) = gone
    (kept,) = set(_LANES) - gone
    made = []
    for number, begin in enumerate(start.values):
        across = [
            source.at(**{kept: number, along: other})
            for other in range(source.counts[along])
        ]
        elements = []
        for place in _BOTH:
            held = [
                vector.extract(piece, [], [place, n] if along == "n" else [n, place])
                for piece in across
                for n in _BOTH
            ]
            first = vector.extract(begin, [], [place])
            if by_lane:
                elements.append(reduce(combine, held, first))
                continue
            total = _across(combine, _pairwise(combine, held), along)
            elements.append(combine(total, first))
        made.append(vector.from_elements(begin.type, elements))
    return pieces(start.layout, kind, made)


def across_lanes(held: Pieces, kind: ir.Type) -> Pieces:
    """Totals of rows (columns), of which each lane that shares one holds a part."""
    (along,) = set(_LANES) - set(held.layout.dims)
    combine = arith.addf if isinstance(kind.element_type, ir.FloatType) else arith.addi
    made = []
    for piece in held.values:
        own = [vector.extract(piece, [], [place]) for place in _BOTH]
        totals = [_across(combine, one, along) for one in own]
        made.append(vector.from_elements(piece.type, totals))
    return pieces(held.layout, kind, made)


def _across(combine: Callable[[Any, Any], Any], own: Any, along: str) -> Any:
    """What the lanes that share a row (column) hold, combined in all of them."""
    for distance in _LANES[along]:
        own = combine(own, _shuffle(own, distance))
    return own


def _stretched(source: Pieces, layout: FragmentLayout, kind: ir.Type) -> Pieces:
    """Accumulators of equal columns, made of rows, or of equal rows of columns."""
    lane_type = layout.lane_type(kind.element_type)
    held = [
        [vector.extract(piece, [], [place]) for place in _BOTH]
        for piece in source.values
    ]
    order = (0, 0, 1, 1) if source.layout.role == "rows" else (0, 1, 0, 1)
    letter = "m" if source.layout.role == "rows" else "n"
    return Pieces(
        layout,
        layout.grid(kind),
        tuple(
            vector.from_elements(lane_type, [held[place[letter]][n] for n in order])
            for place in piece_places(layout, kind)
        ),
    )


def piece_places(layout: FragmentLayout, kind: ir.Type) -> list[dict[str, int]]:
    """The numbers of each piece along the dimensions, in the order of pieces."""
    places: list[dict[str, int]] = [{}]
    for dim, count in zip(layout.dims, _counts(layout, kind), strict=True):
        places = [{**one, dim: n} for one in places for n in range(count)]
    return places


def _reordered(source: Pieces, layout: FragmentLayout, kind: ir.Type) -> Pieces:
    """The same pieces, of a vector with other dimensions or another order of these."""
    found = [
        source.at(**{dim: n for dim, n in place.items() if dim in source.counts})
        for place in piece_places(layout, kind)
    ]
    return pieces(layout, kind, found)


def numbers(layout: FragmentLayout, kind: ir.Type, threads: int) -> Pieces:
    """The rows' (columns') own numbers: a vector.step."""
    lane = accumulator_lane(threads, layout)
    is_rows = layout.role == "rows"
    of_piece = lane_rows if is_rows else lane_columns
    first = lane.row() if is_rows else lane.column()
    lane_type = layout.lane_type(kind.element_type)
    found = []
    for number in range(layout.grid(kind)[layout.dims]):
        held = [build.plus(first, n) for n in of_piece(layout, number)]
        found.append(vector.from_elements(lane_type, held))
    return pieces(layout, kind, found)


def load_rows(
    source: AccumulatorSource, layout: FragmentLayout, kind: ir.Type, threads: int
) -> Pieces:
    """Rows, or columns, each from memory: as accumulators of one piece across."""
    whole = layout.with_dims("mn")
    assert whole is not None
    extents = {**{dim: whole.extents[dim] for dim in "mn"}, layout.dims: kind.shape[0]}
    if layout.role == "rows":
        extents["n"] *= 2
    shape = ir.VectorType.get([extents["m"], extents["n"]], kind.element_type)
    loaded = load_accumulators(source, whole, shape, threads)
    lane_type = layout.lane_type(kind.element_type)
    found = []
    for number in range(layout.grid(kind)[layout.dims]):
        piece = loaded.at(**{"m": 0, "n": 0, layout.dims: number})
        places = [[n, 0] if layout.role == "rows" else [0, n] for n in _BOTH]
        held = [vector.extract(piece, [], place) for place in places]
        found.append(vector.from_elements(lane_type, held))
    return pieces(layout, kind, found)


def store_rows(
    fragments: Pieces, limits: Bounds, indices: Indices, threads: int
) -> None:
    """Store each row (column) by one of the lanes that hold it, if it is in bounds."""
    target = limits.buffer
    layout = fragments.layout
    lane = accumulator_lane(threads, layout)
    is_rows = layout.role == "rows"
    of_piece = lane_rows if is_rows else lane_columns
    first = build.add(indices[-1], lane.row() if is_rows else lane.column())
    mine = lane.lane_in_quad if is_rows else lane.quad
    is_first = arith.cmpi(arith.CmpIPredicate.eq, mine, build.index(0))

    def store() -> None:
        for number, piece in enumerate(fragments.values):
            for place, offset in zip(_BOTH, of_piece(layout, number), strict=True):
                element = vector.extract(piece, [], [place])
                at = [*indices[:-1], build.plus(first, offset)]

                def one(element: ir.Value = element, at: list[Any] = at) -> None:
                    build.store(element, target, at)

                if limits.columns is None:
                    one()
                else:
                    build.branch(build.less(at[-1], limits.columns), one)

    build.branch(is_first, store)


def _counts(layout: FragmentLayout, kind: ir.Type) -> list[int]:
    grid = layout.grid(kind)
    return [grid[dim] for dim in layout.dims]


def _pairwise(combine: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    """All values in one, as a tree: few of them wait for each other."""
    while len(values) > 1:
        pairs = [values[n : n + 2] for n in range(0, len(values), 2)]
        values = [combine(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return values[0]


def _combining(op: ir.Operation, element: ir.Type) -> Callable[[Any, Any], Any]:
    """The op of a reduction on two elements; PassError where lanes cannot exchange
    such elements.
    """
    width = getattr(element, "width", None)
    if width is None or width > _WORD_BITS:
        raise PassError(
            op, f"reduces elements of {element}, expected at most {_WORD_BITS} bits"
        )
    return lambda one, other: _combine(op, one, other)


def _combine(op: ir.Operation, one: ir.Value, other: ir.Value) -> Any:
    kind = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    element = getattr(one.type, "element_type", one.type)
    is_float = isinstance(element, ir.FloatType)
    name = _FLOATS.get(kind, kind) if is_float else _INTEGERS.get(kind, kind)
    return ir.Operation.create(f"arith.{name}", [one.type], [one, other]).result


# Combining kinds of the vector dialect, and ops of arith where names differ.
_FLOATS = {"add": "addf", "mul": "mulf"}
_INTEGERS = {"add": "addi", "mul": "muli", "and": "andi", "or": "ori", "xor": "xori"}


def _shuffle(value: ir.Value, distance: int) -> Any:
    """The value of another lane, of at most a word of 32 bits, see `build.shuffle`."""
    kind, word = value.type, build.integer(_WORD_BITS)
    if kind.width in (1, _WORD_BITS):
        return build.shuffle(value, distance)
    bits = build.integer(kind.width)
    is_float = isinstance(kind, ir.FloatType)
    whole = arith.extui(word, arith.bitcast(bits, value) if is_float else value)
    received = arith.trunci(bits, build.shuffle(whole, distance))
    return arith.bitcast(kind, received) if is_float else received
