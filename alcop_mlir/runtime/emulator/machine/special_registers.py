"""The special registers of PTX: `%tid`, `%ctaid`, `%laneid` and their like."""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import U32
from alcop_mlir.runtime.emulator.machine.loaded_kernel import LoadedKernel
from alcop_mlir.runtime.emulator.machine.warps import LANES, WarpRange

Array = np.ndarray


def special_register(warps: WarpRange, kernel: LoadedKernel, name: str) -> Array:
    """The value of a special register (PTX ISA "Special Registers"), uint32."""
    name = name.removeprefix("%")
    stem, _, axis = name.partition(".")
    if axis in ("x", "y", "z"):
        value = _by_axis(warps, stem, "xyz".index(axis))
    elif stem == "laneid":
        value = np.arange(LANES).reshape(1, 1, LANES)
    elif stem == "warpid":
        span = np.arange(warps.first_warp, warps.first_warp + warps.warps)
        value = span.reshape(1, -1, 1)
    elif stem.startswith("lanemask_"):
        value = _lane_mask(stem.removeprefix("lanemask_"))
    else:
        known = {
            "nwarpid": warps.block_set.warps,
            "smid": 0,
            "nsmid": 1,
            "gridid": 0,
            "total_smem_size": kernel.memory_map.shared_size,
            "cluster_ctarank": 0,
            "dynamic_smem_size": kernel.dynamic_shared,
            "cluster_nctarank": 1,
        }
        value = np.array(known[stem]).reshape(1, 1, 1)
    return value.astype(U32)


SPECIAL_STEMS = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
)
SPECIAL_NAMES = (
    "laneid",
    "warpid",
    "nwarpid",
    "smid",
    "nsmid",
    "gridid",
    "total_smem_size",
    "dynamic_smem_size",
    "cluster_ctarank",
    "cluster_nctarank",
    "lanemask_eq",
    "lanemask_lt",
    "lanemask_le",
    "lanemask_gt",
    "lanemask_ge",
)


def is_special(name: str) -> bool:
    """Whether a name is a special register known here."""
    stem, _, axis = name.removeprefix("%").partition(".")
    return stem in SPECIAL_NAMES or (stem in SPECIAL_STEMS and axis in ("x", "y", "z"))


def _by_axis(warps: WarpRange, stem: str, axis: int) -> Array:
    block_set = warps.block_set
    step = int(np.prod([1, *block_set.block][: axis + 1]))
    if stem == "tid":
        thread = warps.first_warp * LANES + np.arange(warps.warps * LANES)
        value = (thread // step % block_set.block[axis]).reshape(1, -1, LANES)
        return _narrowed(value)
    if stem == "ctaid":
        stride = int(np.prod([1, *block_set.grid][: axis + 1]))
        value = (block_set.numbers // stride % block_set.grid[axis]).reshape(-1, 1, 1)
        return _narrowed(value)
    sizes = {"ntid": block_set.block[axis], "nctaid": block_set.grid[axis]}
    sizes["nclusterid"] = block_set.grid[axis]
    if stem == "clusterid":  # clusters of one block
        return _by_axis(warps, "ctaid", axis)
    default = 0 if stem == "cluster_ctaid" else 1
    return np.array(sizes.get(stem, default)).reshape(1, 1, 1)


def _narrowed(x: Array) -> Array:
    """Drops every axis along which the value does not change."""
    for axis in range(3):
        first = x.take([0], axis=axis)
        if (x == first).all():
            x = first
    return x


def _lane_mask(kind: str) -> Array:
    lane = np.arange(LANES, dtype=np.int64)
    one = np.int64(1) << lane
    below, full = one - 1, (1 << LANES) - 1
    value = {
        "eq": one,
        "lt": below,
        "le": below | one,
        "gt": full & ~(below | one),
        "ge": full & ~below,
    }[kind]
    return value.reshape(1, 1, LANES)
