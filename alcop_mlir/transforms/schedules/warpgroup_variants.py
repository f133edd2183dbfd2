"""Schedules for wgmma of a contraction with sizes known at run time only.

Before:  a contraction of ? x ? by ? x ?, on sm_90a
After:   {row_bytes = 16, schedule = {block = [128, 256, 64], engine = "wgmma", ...},
          limits = [{loops = "mn", least = 1081345}, {loops = "k", least = 192}]}
         {row_bytes = 16, schedule = {block = [64, 128, 64], engine = "wgmma", ...},
          limits = [{loops = "m", least = 32}, {loops = "n", least = 64},
                    {loops = "k", least = 192}]}

Tensor maps are encoded at each launch, so that unknown sizes cost nothing in the loop:
what must be known is that rows begin at multiples of 16 bytes, which the guard of a
variant asks as far as it is not promised. Two schedules, by the model of
`warpgroup_schedule.py`: that of the largest sizes to be expected, and one of sizes up
to 1024, for a C that has no tile of the latter for each SM. Blocks are in clusters
where M is known, or expected to be of 16 tiles at least (`alcop.size_range`). Smaller
ones, at most half of a tile or of a ring, and rows of any length are left to mma.sync.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from alcop_mlir.analysis.linalg.contractions import Contraction, as_in_memory
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import CP_ASYNC_BYTES, Target
from alcop_mlir.transforms.schedules.warpgroup_limits import LEAST_STEPS, unfit_types
from alcop_mlir.transforms.schedules.warpgroup_schedule import warpgroup_schedule
from alcop_mlir.variants import ScheduleVariant, SizeLimit

_WIDEST = max(CP_ASYNC_BYTES)
_LARGEST, _SMALL = 8192, 1024  # assumed for a size that is known at run time only
_LARGEST_BATCH = 1
_LEAST_TILES = 16  # along M, for clusters of two


def warpgroup_variants(
    contraction: Contraction, target: Target
) -> tuple[ScheduleVariant, ...] | str:
    """The variants for wgmma, largest sizes first; why there are none, if not.

    Each is for rows of 16 bytes and for some sizes: others have to follow. The target
    has wgmma.
    """
    contraction = as_in_memory(contraction)
    no = unfit_types(contraction) or _unfit_rows(contraction)
    if no:
        return no
    large, small = (
        warpgroup_schedule(
            _expected(contraction, most), target, partial(_is_allowed, contraction)
        )
        for most in (_LARGEST, _SMALL)
    )
    if isinstance(large, str):
        return large
    found = [large]
    if isinstance(small, Schedule) and small.block != large.block:
        found.append(small)
    variants = [_variant(contraction, schedule) for schedule in found]
    if len(found) > 1:
        least = target.sms * math.prod(found[1].block[:2]) + 1
        many = SizeLimit("bmn" if contraction.is_batched else "mn", least=least)
        variants[0] = replace(variants[0], limits=(many, *variants[0].limits))
    return tuple(variants)


def missing_clusters(contraction: Contraction, target: Target) -> str:
    """What is missing where the largest sizes to be expected would have clusters, and
    those that may come have none; "" where neither is so.
    """
    contraction = as_in_memory(contraction)
    if (
        contraction.m is not None
        or unfit_types(contraction)
        or _unfit_rows(contraction)
    ):
        return ""
    allowed = partial(_is_allowed, contraction)
    expected = _expected(contraction, _LARGEST)
    chosen = warpgroup_schedule(expected, target, allowed)
    if isinstance(chosen, str) or chosen.cluster > 1:
        return ""
    free = warpgroup_schedule(expected, target, _is_for_any_k)
    if isinstance(free, str) or free.cluster == 1:
        return ""
    rows = _LEAST_TILES * free.block[0]
    return (
        "blocks are not in clusters, which would copy tiles of B once for two of them: "
        f"M may be less than {rows}, where 'alcop.size_range' does not say otherwise"
    )


def _is_for_any_k(schedule: Schedule) -> bool:
    return schedule.turns == 1 and schedule.split_k == 1


def _is_allowed(contraction: Contraction, schedule: Schedule) -> bool:
    """Whether it is right for sizes that are not known, and wastes little for any.

    Of an odd number of tiles a cluster of two has a block beyond C.
    """
    if not _is_for_any_k(schedule):
        return False
    least = contraction.m
    if least is None:
        least, _ = dict(contraction.size_ranges).get("m", (1, _LARGEST))
    return schedule.cluster == 1 or least >= _LEAST_TILES * schedule.block[0]


def _unfit_rows(contraction: Contraction) -> str:
    """Why no guard can ask for rows that tensor maps have: what is known is wrong."""
    sizes = _sizes(contraction)
    kinds = {"A": contraction.lhs, "B": contraction.rhs}
    for name, loops in kinds.items():
        size = sizes[loops[-1]]
        if size is not None and size * contraction.element_bytes % _WIDEST:
            length = size * contraction.element_bytes
            return f"rows of {name} have {length} bytes, expected a multiple of 16"
    return ""


def _expected(contraction: Contraction, most: int) -> Contraction:
    """With the largest sizes to be expected, `most` at most, and aligned rows."""
    sizes = {
        loop: _size(contraction, loop, size, most)
        for loop, size in _sizes(contraction).items()
    }
    return replace(
        contraction,
        m=sizes["m"],
        n=sizes["n"],
        k=sizes["k"],
        batches=tuple((loop, sizes[loop]) for loop, _ in contraction.batches),
        has_narrow_copies=False,
        row_bytes=(_WIDEST, _WIDEST),
        open_strides="",
        open_beginnings="",
    )


def _sizes(contraction: Contraction) -> dict[str, int | None]:
    matrix = {"m": contraction.m, "n": contraction.n, "k": contraction.k}
    return {**matrix, **dict(contraction.batches)}


def _size(contraction: Contraction, loop: str, size: int | None, most: int) -> int:
    if size is not None:
        return size
    if loop not in "mnk":
        most = _LARGEST_BATCH
    low, high = dict(contraction.size_ranges).get(loop, (1, most))
    return max(low, min(high, most))


def _variant(contraction: Contraction, schedule: Schedule) -> ScheduleVariant:
    """With limits of the sizes that it wastes less than half of a tile or ring of."""
    rows, columns, step = schedule.block
    least = {"m": rows // 2, "n": columns // 2, "k": LEAST_STEPS * step}
    sizes = _sizes(contraction)
    return ScheduleVariant(
        schedule,
        "default",
        16 if contraction.has_narrow_copies else 1,
        tuple(
            SizeLimit(loop, least=size)
            for loop, size in least.items()
            if sizes[loop] is None
        ),
    )
