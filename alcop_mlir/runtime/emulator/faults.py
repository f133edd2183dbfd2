"""Errors that stop a run, with the place where they happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from alcop_mlir.errors import EmulationError

if TYPE_CHECKING:
    from alcop_mlir.runtime.emulator.cohort import Cohort
    from alcop_mlir.runtime.emulator.lanes import Lanes
    from alcop_mlir.runtime.emulator.syntax import Instruction


def fault(ins: Instruction, why: str, place: str = "") -> EmulationError:
    """The error for a fault at `ins`; `place` says block, warp, lane."""
    where = f" at {place}" if place else ""
    source = f" ({ins.source})" if ins.source else ""
    return EmulationError(f"{why}{where}, PTX line {ins.line}{source}: {ins.text}")


def place_of(lanes: Lanes, entry: int) -> str:
    """`block (x, y, z) warp w lane l` of one entry of an access."""
    cohort = lanes.cohort
    block = block_name(cohort, int(lanes.block()[entry]))
    warp, lane = int(lanes.warp()[entry]), int(lanes.lane()[entry])
    return f"block {block} warp {warp} lane {lane}"


def place_of_mask(cohort: Cohort, mask: np.ndarray) -> str:
    """The place of the first lane that `mask` has on."""
    full = np.broadcast_to(mask, (cohort.blocks, cohort.warps, mask.shape[2]))
    block, warp, lane = (int(i) for i in np.argwhere(full)[0])
    name = block_name(cohort, block)
    return f"block {name} warp {cohort.first_warp + warp} lane {lane}"


def block_name(cohort: Cohort, index: int) -> str:
    """`(x, y, z)` of the block at `index` of the batch."""
    x, y, z = cohort.batch.coordinates(index)
    return f"({x}, {y}, {z})"
