"""Errors that stop a run, with the block, warp and lane where they happened."""

from __future__ import annotations

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import WarpRange
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


def fault(ins: Instruction, why: str, location: str = "") -> EmulationError:
    """The error for a fault at `ins`; `location` says block, warp, lane."""
    where = f" at {location}" if location else ""
    source = f" ({ins.source})" if ins.source else ""
    return EmulationError(f"{why}{where}, PTX line {ins.line}{source}: {ins.text}")


def lane_fault(lanes: Lanes, entry: int, why: str) -> EmulationError:
    """The error for a fault of one entry of an access."""
    block = block_name(lanes.owner, int(lanes.block()[entry]))
    warp, lane = int(lanes.warp()[entry]), int(lanes.lane()[entry])
    return fault(lanes.ins, why, f"block {block} warp {warp} lane {lane}")


def location_of_mask(warps: WarpRange, mask: np.ndarray) -> str:
    """`block (x, y, z) warp w lane l` of the first lane that `mask` has on."""
    full = np.broadcast_to(mask, (warps.blocks, warps.warps, mask.shape[2]))
    block, warp, lane = (int(i) for i in np.argwhere(full)[0])
    name = block_name(warps, block)
    return f"block {name} warp {warps.first_warp + warp} lane {lane}"


def block_name(warps: WarpRange, index: int) -> str:
    """`(x, y, z)` of the block at `index` of the batch."""
    x, y, z = warps.block_set.coordinates(index)
    return f"({x}, {y}, {z})"
