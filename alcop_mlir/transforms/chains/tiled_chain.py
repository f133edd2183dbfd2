"""A chain on memrefs, as alcop-tile-chains reads it, and the tiles that it gets.

Each op in the region has its role, and loops as `chain_ops` writes them. Bufferization
may let several ops write one buffer: what an op reads there is what the last op before
it wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import from_attribute
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number, alloc, size_of, sizes_of
from alcop_mlir.target import Target
from alcop_mlir.tuning.fused.chain_problem import (
    ChainSizes,
    ChainTiles,
    column_tiles,
)
from alcop_mlir.tuning.fused.chain_tiles import (
    OPEN_EXTENT,
    TilesError,
    checked_tiles,
    chosen_tiles,
    with_parts,
)

if TYPE_CHECKING:
    from alcop_mlir.tuning.selection import Chooser

_ROLES = ("scores", "elements", "maximum", "weights", "total", "contracted", "result")
_OF_ROWS = {"elements", "maximum", "total"}  # where rows are reduced
_OF_MAXIMA = {"start", "scale"}  # what is known of them


@frozen
class Step:
    """An op of a chain, and what its inputs are: the role that wrote each, or ""."""

    view: LinalgView
    sources: tuple[str, ...]

    @property
    def output(self) -> Operand:
        """What it writes."""
        return self.view.outputs[0]


@frozen
class LoopNumbers:
    """Sizes of loops: ints where they are known, else values of the host function."""

    batch: tuple[Number, ...]
    m: Number
    n: Number
    k: Number
    d: Number

    def of(self, letter: str) -> Number:
        """That of a loop, by its letter."""
        return {"m": self.m, "n": self.n, "k": self.k, "d": self.d}[letter]


@frozen
class TiledChain:
    """A region with the ops of a chain.

    steps: by role; "elements" and "total" may be missing, and are without a "maximum"
    batch: the number of loops of the batch, the first loops of all ops
    start: what the maximum of a row starts from; None without one
    scale: weights are exp2(scale * (elements - maximum)); None without a maximum
    first, last: bounds of the number of a column less that of its row, None for none
    """

    op: Any
    steps: dict[str, Step]
    batch: int
    start: float | None
    scale: float | None
    first: int | None
    last: int | None
    sizes: ChainSizes
    tiles: ChainTiles

    @property
    def batch_sizes(self) -> list[int]:
        """Extents of the loops of the batch, where they are known."""
        view = self.steps["scores"].view
        return [view.static_size(loop) or 0 for loop in range(self.batch)]

    def numbers(self, views: Mapping[ir.Value, ir.Value]) -> LoopNumbers:
        """The sizes of its loops; builds those that are known at run time only.

        views: made in front of the region for those in it
        """
        view = self.steps["scores"].view
        found: list[Number] = []
        for loop in range(self.batch + 3):
            buffer, number = next(
                (views.get(one.value, one.value), one.loops.index(loop))
                for one in view.inputs
                if loop in one.loops
            )
            size = view.static_size(loop)
            found.append(size_of(buffer, number) if size is None else size)
        *batch, m, n, k = found
        return LoopNumbers(tuple(batch), m, n, k, self.d)

    @property
    def k(self) -> int:
        """The length of a row of queries and keys."""
        return self.sizes.k

    @property
    def d(self) -> int:
        """The length of a row of values and results."""
        return self.sizes.d

    @property
    def part_columns(self) -> int:
        """Columns of a part: of all parts at least those that a block goes over."""
        count = column_tiles(self.sizes, self.tiles)
        return -(-count // self.tiles.parts) * self.tiles.columns

    @property
    def combine(self) -> str:
        """The op that a maximum of two is."""
        block = self.steps["maximum"].view.block
        (result,) = block.operations[-1].operation.operands
        return result.owner.name


def complete(region: ir.Operation) -> None:
    """Give a chain whose result is what it adds up an op that says so.

    Without rows that are reduced, in f32, the op of the result changes no element, and
    canonicalize erases it.
    """
    ops = {
        from_attribute(op.operation.attributes[alcop.CHAIN])["role"]: op.operation
        for op in region.regions[0].blocks[0].operations
        if alcop.CHAIN in op.operation.attributes
    }
    last = ops.get("contracted")
    if last is None or not ops.keys().isdisjoint({"result", "maximum"}):
        return
    *_, out = last.operands
    with last.location, ir.InsertionPoint(last):
        kept = alloc(out.type.element_type, sizes_of(out))
    with last.location, ir.InsertionPoint.after(last):
        same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(out.type.rank))
        made = build.generic([kept], out, [same, same])
        block = made.regions[0].blocks[0]
        with ir.InsertionPoint(block):
            linalg.YieldOp([block.arguments[0]])
    last.operands[len(last.operands) - 1] = kept
    made.attributes[alcop.CHAIN] = alcop.to_attribute({"role": "result"})


def read_chain(
    region: ir.Operation,
    target: Target,
    tiles: Sequence[int] = (),
    parts: int = 0,
    chooser: Callable[[], Chooser] | None = None,
) -> TiledChain | None:
    """The chain in a region; None for a region without one, PassError for a part.

    tiles, parts: of a chain whose mark has none; chosen where there are none
    chooser: of what is chosen by records; None leaves the model only
    """
    mark: dict[str, Any] = {}
    steps: dict[str, Step] = {}
    written: dict[Any, str] = {}
    for op in region.regions[0].blocks[0].operations:
        if alcop.CHAIN not in op.operation.attributes:
            continue
        view = view_of(op.operation)
        known = from_attribute(op.operation.attributes[alcop.CHAIN])
        role = known["role"]
        mark.update(known)
        sources = tuple(written.get(one.value, "") for one in view.inputs)
        steps[role] = Step(view, sources)
        written[view.outputs[0].value] = role
    if not steps:
        return None
    _check(region, steps, mark)
    sizes = _sizes(steps, mark)
    asked = {"tiles": tiles, "parts": parts, **mark}
    recorded = None
    if chooser is not None and not asked["tiles"] and not asked["parts"]:
        recorded = _recorded(steps, sizes, chooser())
    return TiledChain(
        region,
        steps,
        mark["batch"],
        mark.get("start"),
        mark.get("scale"),
        mark.get("first"),
        mark.get("last"),
        sizes,
        recorded or _tiles(region, sizes, asked, target),
    )


def chain_types(steps: Mapping[str, Step]) -> tuple[str, str, str, str]:
    """Types of queries and keys, of scores, of the result; as of a contraction."""
    scores = steps["scores"].view
    values = (*scores.inputs, *scores.outputs, steps["result"].output)
    a, b, total, out = (str(one.value.type.element_type) for one in values)
    return a, b, total, out


def _recorded(
    steps: Mapping[str, Step], sizes: ChainSizes, chooser: Chooser
) -> ChainTiles | None:
    """The tiles of the fastest record of the chain; None where it has none."""
    from alcop_mlir.tuning import chain_schedule

    problem = chain_schedule.problem_of(sizes, chain_types(steps))
    if problem is None:
        return None
    record, notes = chooser.best_record(problem)
    for note in notes:
        diagnostics.remark(steps["scores"].view.op, note)
    return None if record is None else chain_schedule.tiles_of(record.schedule)


def _check(region: ir.Operation, steps: dict[str, Step], mark: dict[str, Any]) -> None:
    """PassError for a part of a chain, or marks that do not fit its ops."""
    reduces = not _OF_MAXIMA.isdisjoint(mark)
    optional = {"elements", "total"} if reduces else _OF_ROWS
    missing = set(_ROLES) - optional - set(steps)
    if missing:
        names = ", ".join(sorted(missing))
        raise PassError(region, f"is no whole chain, it lacks {names}")
    wanted = {"batch", *(_OF_MAXIMA if reduces else ())}
    if not mark.keys() >= wanted:
        names = ", ".join(sorted(wanted - mark.keys()))
        raise PassError(region, f"is a chain whose scores do not have {names}")
    if not reduces and not _OF_ROWS.isdisjoint(steps):
        names = ", ".join(sorted(_OF_ROWS & set(steps)))
        why = f"has {names}, but its scores have neither start nor scale"
        raise PassError(region, f"is a chain that {why}")


def _sizes(steps: dict[str, Step], mark: dict[str, Any]) -> ChainSizes:
    """Extents, bounds, and what a part leaves of a row: its maximum and total."""
    view, batch = steps["scores"].view, mark["batch"]
    known = [view.static_size(loop) for loop in range(batch + 3)]
    extents = [OPEN_EXTENT if size is None else size for size in known]
    m, n, k = extents[batch:]
    return ChainSizes(
        math.prod(extents[:batch]),
        m,
        n,
        k,
        steps["result"].view.static_size(batch + 1) or 0,
        mark.get("first"),
        mark.get("last"),
        2 if "maximum" in steps else 0,
        None in known,
    )


def _tiles(
    region: ir.Operation, sizes: ChainSizes, mark: dict[str, Any], target: Target
) -> ChainTiles:
    """Those that the mark has in `tiles` and `parts`, or chosen."""
    given = mark["tiles"]
    try:
        if given:
            found = checked_tiles(given, sizes, target)
        else:
            found = chosen_tiles(sizes, target, mark["parts"])
        return with_parts(found, sizes, target, mark["parts"])
    except TilesError as reason:
        raise PassError(region, str(reason)) from None
