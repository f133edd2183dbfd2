"""A chain on memrefs, as alcop-tile-chains reads it, and the tiles that it gets.

Each op in the region has its role, and loops as `chain_ops` writes them. Bufferization
may let several ops write one buffer: what an op reads there is what the last op before
it wrote.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import from_attribute
from alcop_mlir.errors import PassError
from alcop_mlir.target import Target
from alcop_mlir.transforms.chains.chain_tiles import (
    ChainSizes,
    ChainTiles,
    TilesError,
    checked_tiles,
    chosen_tiles,
)

_ROLES = ("scores", "elements", "maximum", "weights", "total", "contracted", "result")
_OF_ROWS = {"elements", "maximum", "total"}  # where rows are reduced
_OF_MAXIMA = {"start", "scale"}  # what is known of them


@dataclass(frozen=True)
class Step:
    """An op of a chain, and what its inputs are: the role that wrote each, or ""."""

    view: LinalgView
    sources: tuple[str, ...]

    @property
    def output(self) -> Operand:
        """What it writes."""
        return self.view.outputs[0]


@dataclass(frozen=True)
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
    tiles: ChainTiles

    @property
    def batch_sizes(self) -> list[int]:
        """Extents of the loops of the batch."""
        return [self._size(loop) for loop in range(self.batch)]

    @property
    def m(self) -> int:
        """How many rows there are."""
        return self._size(self.batch)

    @property
    def n(self) -> int:
        """How many columns of weights there are."""
        return self._size(self.batch + 1)

    @property
    def k(self) -> int:
        """The length of a row of queries and keys."""
        return self._size(self.batch + 2)

    @property
    def d(self) -> int:
        """The length of a row of values and results."""
        return self.steps["result"].view.static_size(self.batch + 1) or 0

    @property
    def combine(self) -> str:
        """The op that a maximum of two is."""
        block = self.steps["maximum"].view.block
        (result,) = block.operations[-1].operation.operands
        return result.owner.name

    def _size(self, loop: int) -> int:
        return self.steps["scores"].view.static_size(loop) or 0


def read_chain(
    region: ir.Operation, target: Target, tiles: Sequence[int] = ()
) -> TiledChain | None:
    """The chain in a region; None for a region without one, PassError for a part.

    tiles: of a chain whose mark has none; chosen where there are none
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
    return TiledChain(
        region,
        steps,
        mark["batch"],
        mark.get("start"),
        mark.get("scale"),
        mark.get("first"),
        mark.get("last"),
        _tiles(region, steps, mark, target, tiles),
    )


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


def _tiles(
    region: ir.Operation,
    steps: dict[str, Step],
    mark: dict[str, Any],
    target: Target,
    tiles: Sequence[int],
) -> ChainTiles:
    """Those that the mark has in `tiles`, or that are given, or chosen."""
    view, batch = steps["scores"].view, mark["batch"]
    extents = [view.static_size(loop) or 0 for loop in range(batch + 3)]
    m, n, k = extents[batch:]
    head = steps["result"].view.static_size(batch + 1) or 0
    sizes = ChainSizes(math.prod(extents[:batch]), m, n, k, head)
    given = mark.get("tiles", tiles)
    try:
        if given:
            return checked_tiles(given, sizes, target)
        return chosen_tiles(sizes, target)
    except TilesError as reason:
        raise PassError(region, str(reason)) from None
