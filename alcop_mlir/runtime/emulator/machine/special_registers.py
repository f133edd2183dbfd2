"""The special registers of PTX: `%tid`, `%ctaid`, `%laneid` and their like."""

from __future__ import annotations

import math

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import U32, Array
from alcop_mlir.runtime.emulator.machine.loaded_kernel import LoadedKernel
from alcop_mlir.runtime.emulator.machine.warps import LANES, WarpRange

AXES = "xyz"
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
_LANE = np.arange(LANES, dtype=np.int64).reshape(1, 1, LANES)
_BIT = np.int64(1) << _LANE
LANE_MASKS = {
    "lanemask_eq": _BIT,
    "lanemask_lt": _BIT - 1,
    "lanemask_le": 2 * _BIT - 1,
    "lanemask_gt": -2 * _BIT & 0xFFFFFFFF,
    "lanemask_ge": -_BIT & 0xFFFFFFFF,
}
# The grid has one multiprocessor.
CONSTANTS = {"smid": 0, "nsmid": 1, "gridid": 0}
# CUDA, cooperative_groups/details/helpers.h: the two halves of the address
# of the workspace of a cooperative launch; a null pointer in others.
_WORKSPACE = {"envreg1": 32, "envreg2": 0}
# What a driver sets, and counters of the hardware, are 0; no shared memory is reserved.
CONSTANTS |= {f"envreg{i}": 0 for i in range(32)}
CONSTANTS |= {f"pm{i}{size}": 0 for i in range(8) for size in ("", "_64")}
CONSTANTS |= {"globaltimer_hi": 0, "current_graph_exec": 0}
CONSTANTS |= {f"reserved_smem_offset_{end}": 0 for end in ("begin", "end", "cap", 0, 1)}
_SIZES = ("total_smem_size", "aggr_smem_size", "dynamic_smem_size")
_OF_CLUSTER = ("cluster_ctarank", "cluster_nctarank")
_OF_LAUNCH = ("warpid", "nwarpid", *_SIZES, *_OF_CLUSTER)
PREDICATES = {"%is_explicit_cluster"}
WORKSPACE, WORKSPACE_SIZE = "%workspace", 64  # a variable of global memory, bytes
SPECIAL_NAMES = {
    "laneid",
    "is_explicit_cluster",
    *LANE_MASKS,
    *CONSTANTS,
    *_OF_LAUNCH,
    *_WORKSPACE,
}


def is_special(name: str) -> bool:
    """Whether a name is a special register known here."""
    stem, _, axis = name.removeprefix("%").partition(".")
    return stem in (SPECIAL_STEMS if axis in (*AXES, "w") else SPECIAL_NAMES)


def special_register(warps: WarpRange, kernel: LoadedKernel, name: str) -> Array:
    """The value of a special register (PTX ISA "Special Registers"), uint32 or bool."""
    stem, _, axis = name.removeprefix("%").partition(".")
    if name in PREDICATES:
        return np.array(warps.block_set.launch.is_explicit).reshape(1, 1, 1)
    if axis == "w":  # unused, and always zero
        value = np.zeros((1, 1, 1), np.int64)
    elif axis:
        value = _by_axis(warps, stem, AXES.index(axis))
    elif stem in LANE_MASKS:
        value = LANE_MASKS[stem]
    elif stem == "laneid":
        value = _LANE
    elif stem == "warpid":
        value = warps.numbers_in_block().reshape(1, -1, 1)
    elif stem == "cluster_ctarank":
        value = _narrowed(warps.ranks().reshape(1, -1, 1))
    elif stem in _WORKSPACE:
        address = kernel.memory_map.globals.get(WORKSPACE, 0)
        value = np.array(address >> _WORKSPACE[stem] & 0xFFFFFFFF).reshape(1, 1, 1)
    else:
        launch = warps.block_set.launch
        known = {
            "nwarpid": -(-launch.threads // LANES),
            "cluster_nctarank": launch.ranks,
            "total_smem_size": kernel.memory_map.shared_size,
            "aggr_smem_size": kernel.memory_map.shared_size,  # nothing is reserved
            "dynamic_smem_size": kernel.dynamic_shared,
            **CONSTANTS,
        }
        value = np.array(known[stem]).reshape(1, 1, 1)
    return value.astype(U32)


def _by_axis(warps: WarpRange, stem: str, axis: int) -> Array:
    numbers, launch = warps.block_set.numbers, warps.block_set.launch
    if stem == "tid":
        value = warps.threads() // math.prod(launch.block[:axis])
        return _narrowed(value % launch.block[axis])
    cluster, clusters = launch.cluster, launch.clusters
    first = numbers // math.prod(clusters[:axis]) % clusters[axis]
    inside = warps.ranks() // math.prod(cluster[:axis]) % cluster[axis]
    if stem == "ctaid":
        value = first[:, None] * cluster[axis] + inside
        return _narrowed(value[:, :, None])
    if stem == "clusterid":
        return _narrowed(first.reshape(-1, 1, 1))
    if stem == "cluster_ctaid":
        return _narrowed(inside.reshape(1, -1, 1))
    known = {
        "ntid": launch.block,
        "nctaid": launch.grid,
        "nclusterid": clusters,
        "cluster_nctaid": cluster,
    }
    return np.array(known[stem][axis]).reshape(1, 1, 1)


def _narrowed(x: Array) -> Array:
    """Drops every axis along which the value does not change."""
    for axis in range(3):
        first = x.take([0], axis=axis)
        if (x == first).all():
            x = first
    return x
