"""Which tile a block computes: every tile once, in the order that `raster` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from alcop_mlir import bindings
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.bindings import func, ir, passmanager
from alcop_mlir.passes import build
from alcop_mlir.transforms.tiling.raster import tile_of_block, tile_of_number

GRIDS = [(1, 1), (1, 7), (7, 1), (2, 3), (5, 4), (8, 3), (9, 5)]
RASTERS = [1, 2, 3, 4, 8, 64]


# A grid of two dimensions, and all blocks along one, by the sizes that are known.
FORMS = ["grid", "flat", "flat, rows open", "flat, columns open", "flat, open"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("raster", RASTERS)
@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_every_tile_once_in_order(
    rows: int, columns: int, raster: int, form: str
) -> None:
    wanted = [
        (row, column)
        for first in range(0, rows, raster)
        for column in range(columns)
        for row in range(first, min(first + raster, rows))
    ]
    if raster == 1:
        wanted = [(row, column) for row in range(rows) for column in range(columns)]
    assert tiles(raster, rows, columns, form) == wanted


@pytest.mark.parametrize("form", [form for form in FORMS if form != "grid"])
def test_columns_of_a_group_may_be_more_than_blocks(form: str) -> None:
    rows, columns = 3, 2**29
    last = rows * columns - 1
    assert tiles(8, rows, columns, form, [last]) == [(rows - 1, columns - 1)]


def test_what_needs_no_arithmetic_gets_none() -> None:
    with bindings.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            x, y = build.index(3), build.index(2)
            assert tile_of_block(1, (x, y), 8, 8) == (y, x)
            assert tile_of_block(8, (x, y), 1, 8) == (y, x)
            assert tile_of_block(8, (x, y), 8, 1) == (y, x)


def tiles(
    raster: int,
    rows: int,
    columns: int,
    form: str,
    numbers: Sequence[int] | None = None,
) -> list[tuple[int, int]]:
    """The tile of each block in their order, or of some, folded to numbers by MLIR."""
    blocks = range(rows * columns) if numbers is None else numbers
    with bindings.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        kind = ir.FunctionType.get([], [ir.IndexType.get()] * (2 * len(blocks)))
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("tiles", kind)
        with ir.InsertionPoint(function.add_entry_block()):
            found: list[Any] = []
            for number in blocks:
                found.extend(tile(raster, number, rows, columns, form))
            func.ReturnOp(found)
        passmanager.PassManager.parse("builtin.module(canonicalize)").run(
            module.operation
        )
        returned = next(iter(module.body.operations)).regions[0].blocks[0].operations
        found = [constant(value) or 0 for value in list(returned)[-1].operands]
    return list(zip(found[::2], found[1::2], strict=True))


def tile(raster: int, number: int, rows: int, columns: int, form: str) -> Any:
    """The tile of block `number`, along x first."""
    if form == "grid":
        y, x = divmod(number, columns)
        return tile_of_block(raster, (build.index(x), build.index(y)), rows, columns)
    given = (
        build.index(count) if name in form or form == "flat, open" else count
        for name, count in (("rows", rows), ("columns", columns))
    )
    return tile_of_number(raster, build.index(number), *given)
