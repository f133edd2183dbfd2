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
    block, warp = int(lanes.block()[entry]), int(lanes.warp()[entry])
    name, lane = warp_name(lanes.owner, block, warp), int(lanes.lane()[entry])
    return fault(lanes.ins, why, f"{name} lane {lane}")


def location_of_mask(warps: WarpRange, mask: np.ndarray) -> str:
    """`block (x, y, z) warp w lane l` of the first lane that `mask` has on."""
    full = np.broadcast_to(mask, (warps.blocks, warps.warps, mask.shape[2]))
    block, warp, lane = (int(i) for i in np.argwhere(full)[0])
    return f"{warp_name(warps, block, warps.first_warp + warp)} lane {lane}"


def warp_name(warps: WarpRange, index: int, warp: int) -> str:
    """`block (x, y, z) warp w` of a warp of the block at `index` of the batch."""
    names = warps.block_set.names
    return f"block {names.block(index, warp)} warp {names.warp(warp)}"
