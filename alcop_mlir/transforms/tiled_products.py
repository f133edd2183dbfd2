"""The products that alcop-tile-to-blocks tiles, and where a block of one stands.

`Product` is what the attributes `alcop.contraction` and `alcop.schedule` and the
operands of an op say together; nothing here changes IR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.schedule import Schedule


@dataclass(frozen=True)
class Product:
    """A matrix product to tile: op, operands, their loops, schedule.

    The loops are those of the operands as matrices, with "b" where they have a batch.
    """

    op: Any
    lhs: Any
    rhs: Any
    out: Any
    lhs_loops: str  # "mk", "bmk": which loop indexes each dimension
    rhs_loops: str  # "kn" or "nk"
    out_loops: str  # "mn"
    init: str  # "zero", "read", or "copy": read from another array
    init_copy: Any  # the memref.copy that holds that array, or None
    schedule: Schedule
    precision: str | None  # "tf32", or None: the operands' own

    @property
    def arrays(self) -> list[tuple[Any, str]]:
        """The operands, each with the loops of the dimensions that it has."""
        return [
            (array, _own_loops(array, loops))
            for array, loops in (
                (self.lhs, self.lhs_loops),
                (self.rhs, self.rhs_loops),
                (self.out, self.out_loops),
            )
        ]

    @property
    def sums_batches(self) -> bool:
        """Whether the batch is summed over, too."""
        return "b" in self.lhs_loops + self.rhs_loops and "b" not in self.out_loops

    @property
    def init_source(self) -> Any:
        """The memref that the accumulators start from, or None for zero."""
        if self.init == "zero":
            return None
        return self.out if self.init_copy is None else self.init_copy.operands[0]


@dataclass(frozen=True)
class Place:
    """Where a block and a warp stand in the output; index values."""

    block: dict[str, Any]  # first row, column of the block's tile
    warp: dict[str, Any]  # first row, column of the warp's part, within the tile
    batch: Any  # number of the matrix


def scheduled_products(func: Any) -> list[Product]:
    """The marked products of `func` that have a schedule, in order."""
    ops: list[Any] = []

    def visit(op: Any) -> Any:
        if alcop.get(op, alcop.ScheduleAttr) and alcop.get(op, alcop.ContractionAttr):
            ops.append(op)
        return ir.WalkResult.ADVANCE

    func.operation.walk(visit)
    return [_product(op) for op in ops]


def _product(op: Any) -> Product:
    contraction = alcop.get(op, alcop.ContractionAttr)
    schedule = Schedule.from_dict(alcop.get(op, alcop.ScheduleAttr) or {})
    assert contraction is not None
    lhs, rhs, out = op.operands
    if contraction.get("swapped"):
        lhs, rhs = rhs, lhs
    return Product(
        op=op,
        lhs=lhs,
        rhs=rhs,
        out=out,
        lhs_loops=_matrix_loops(contraction["lhs"]),
        rhs_loops=contraction["rhs"],
        out_loops=_matrix_loops(contraction.get("out", "mn")),
        init=contraction["init"],
        init_copy=_init_copy(op, out) if contraction["init"] == "copy" else None,
        schedule=schedule,
        precision=contraction.get("precision"),
    )


def _matrix_loops(loops: str) -> str:
    """With the one row that a vector is a matrix of."""
    return loops if "m" in loops else f"{loops[:-1]}m{loops[-1]}"


def _own_loops(array: Any, loops: str) -> str:
    """Without the row that a vector has not."""
    return loops if len(loops) == array.type.rank else loops.replace("m", "")


def _init_copy(op: Any, out: Any) -> Any:
    """The marked copy into `out` that gives the accumulators their start."""
    for use in out.uses:
        owner = use.owner
        role = alcop.get(owner, alcop.ContractionAttr)
        if role is not None and role.get("role") == "init":
            return owner
    raise PassError(op, "init is 'copy', but no copy into the output is marked as init")
