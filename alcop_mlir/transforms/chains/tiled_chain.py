"""A chain on memrefs, as alcop-tile-chains reads it, and the tiles that it gets.

Each op in the region has its role, and loops as `chain_ops` writes them. Bufferization
may let several ops write one buffer: what an op reads there is what the last op before
it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import from_attribute
from alcop_mlir.errors import PassError
from alcop_mlir.target import MMA_F16_SHAPE

_ROLES = ("scores", "elements", "maximum", "weights", "total", "contracted", "result")
_ROWS = MMA_F16_SHAPE[0]  # of a fragment, the least that a warp has
_MOST_WARPS = 4
# Columns of weights in a tile: a warp holds 16 rows of them, and of accumulators of a
# head, in up to 255 registers of a thread. Long heads get half as many, so that two
# slots of keys and values fit shared memory.
_COLUMNS, _LONG_COLUMNS, _LONG_HEAD = 64, 32, 128


@dataclass(frozen=True)
class ChainTiles:
    """Sizes of tiles.

    rows:    of a warp
    warps:   of a block, each with rows of its own
    columns: of weights, as many keys and values
    """

    rows: int
    warps: int
    columns: int

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return self.rows * self.warps


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

    steps: by role; "elements" and "total" may be missing
    batch: the number of loops of the batch, the first loops of all ops
    start: what the maximum of a row starts from
    scale: weights are exp2(scale * (elements - maximum))
    first, last: bounds of the number of a column less that of its row, None for none
    """

    op: Any
    steps: dict[str, Step]
    batch: int
    start: float
    scale: float
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


def read_chain(region: ir.Operation) -> TiledChain | None:
    """The chain in a region; None for a region without one, PassError for a part."""
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
    missing = set(_ROLES) - {"elements", "total"} - set(steps)
    if missing:
        names = ", ".join(sorted(missing))
        raise PassError(region, f"is no whole chain, it lacks {names}")
    m = steps["scores"].view.static_size(mark["batch"]) or 0
    head = steps["result"].view.static_size(mark["batch"] + 1) or 0
    return TiledChain(
        region,
        steps,
        mark["batch"],
        mark["start"],
        mark["scale"],
        mark.get("first"),
        mark.get("last"),
        _tiles(mark, m, head),
    )


def _tiles(mark: dict[str, Any], m: int, head: int) -> ChainTiles:
    """Tiles for so many rows and a head, unless the mark has `tiles`, three numbers."""
    given: Sequence[int] | None = mark.get("tiles")
    if given is not None:
        return ChainTiles(*given)
    warps = min(_MOST_WARPS, -(-m // _ROWS))
    columns = _COLUMNS if head <= _LONG_HEAD else _LONG_COLUMNS
    return ChainTiles(_ROWS, warps, columns)
