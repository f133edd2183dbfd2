"""A GEMM of clusters of two blocks that share B by multicast: right and clean.

One warp of a block fills a ring by the copy engine, each block half of B for both; two
warpgroups multiply, and release slots in both blocks. Its mutants are among those of
`test_warp_role_gemms.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES, fixture
from kernel_text import launch

from alcop_mlir.runtime.emulator import Result, TensorMap

SHARED = 229456  # bytes
THREADS = 384
# Two tiles of C for each block, and more slices of K than the ring has slots.
SIZES = (512, 256, 384, 2)


def run(
    text: str, m: int, n: int, k: int, grid: int, **options: Any
) -> tuple[Result, bool]:
    """What a run found, and whether C is wrong; small integers add up exactly."""
    generator = np.random.default_rng(m + n + k)
    a = generator.integers(-3, 4, (m, k)).astype(np.float16)
    b = generator.integers(-3, 4, (n, k)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    boxes = [(a, (128, 64)), (b, (128, 64)), (c, (64, 64))]
    maps = [TensorMap(array, box=box, swizzle=128) for array, box in boxes]
    given = [*maps, m, n, k]
    sizes = {"dynamic_shared": SHARED, **options}
    result = launch(text, None, (grid,), (THREADS,), given, **sizes)
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    return result, not np.array_equal(c, wanted)


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
@pytest.mark.parametrize("sizes", [(256, 512, 256, 2), (200, 328, 136, 4)], ids=str)
def test_right_and_clean(
    sizes: tuple[int, int, int, int], visibility: str, schedule: str
) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    result, wrong = run(fixture("cluster_gemm"), *sizes, **options)
    assert not wrong
    assert result.hazards == ()
    assert result.notes == ()


def test_the_barrier_at_the_end_is_needed() -> None:
    """Without it a block ends while the other one still releases slots in it."""
    text = fixture("cluster_gemm")
    at = text.rindex("barrier.cluster.arrive.aligned;")
    end = text.index("barrier.cluster.wait.aligned;", at)
    text = text[:at] + text[end + len("barrier.cluster.wait.aligned;") :]
    result, _ = run(text, *SIZES)
    assert {hazard.kind for hazard in result.hazards} == {"block-ended"}
