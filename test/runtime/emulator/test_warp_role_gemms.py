"""GEMMs whose warps have roles, of all tiles and layouts: right, clean, mutated.

One warpgroup fills a ring by the copy engine, two multiply: one tile together, or tiles
of their own in turn. B is stored N x K or K x N; one block, or clusters of two that
share B by multicast. `make test` takes a sample, all modes and all mutants are tried
with `ALCOP_MUTANTS=all`.

LLVM 22 made the texts in `fixtures/warp_roles` from NVVM ops, by hand put together for
this project. Parameters: tensor maps of A, B and C, all with the swizzle of 128 bytes;
M, N, K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES, fixture
from gemm_mutants import ALL, CHANGED, mutants, mutated
from kernel_text import launch

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result, TensorMap

THREADS = 384
TOTAL = 1500  # mutants
LIMIT = 1_000_000  # warp instructions of a mutant; of a kernel there are some 25,000
# Those that other tests read too.
OTHER_NAMES = {
    "together_128x256_nk_1": "warpgroup_gemm",
    "together_128x256_nk_2": "cluster_gemm",
}
TILE_K = 64
# Rows and columns of C, slots of the ring, bytes of dynamic shared memory.
TILES = {
    "together": [(128, 256, 4, 229456), (128, 128, 6, 229488), (256, 128, 4, 229456)],
    "in_turn": [(128, 128, 6, 229488), (64, 256, 5, 221280)],
}


@dataclass(frozen=True)
class Gemm:
    """C = A B: rows and columns of a tile, how B is stored, blocks of a cluster."""

    roles: str
    rows: int
    columns: int
    slots: int
    shared: int
    stored: str
    blocks: int

    @property
    def name(self) -> str:
        return f"{self.roles}_{self.rows}x{self.columns}_{self.stored}_{self.blocks}"

    @property
    def text(self) -> str:
        return fixture(OTHER_NAMES.get(self.name, f"warp_roles/{self.name}"))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, N and K: two tiles for whoever multiplies, more steps than slots."""
        tiles = 4 if self.roles == "in_turn" else 2
        return (
            self.rows * self.blocks,
            self.columns * tiles,
            TILE_K * (self.slots + 1),
        )

    def run(self, text: str, m: int, n: int, k: int, **options: Any) -> Result | None:
        """What a run of one cluster finds; None where C is wrong.

        Small integers add up exactly.
        """
        generator = np.random.default_rng(m + n + k)
        a = generator.integers(-3, 4, (m, k)).astype(np.float16)
        b = generator.integers(-3, 4, (n, k)).astype(np.float16)
        c = np.full((m, n), np.nan, np.float16)
        wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
        box = (self.columns // self.blocks, TILE_K)
        if self.stored == "kn":
            b, box = np.ascontiguousarray(b.T), (TILE_K, 64)
        boxes = [(a, (self.rows, TILE_K)), (b, box), (c, (64, 64))]
        maps = [TensorMap(array, box=size, swizzle=128) for array, size in boxes]
        sizes = {"dynamic_shared": self.shared, **options}
        given = [*maps, m, n, k]
        result = launch(text, "gemm", (self.blocks,), (THREADS,), given, **sizes)
        return result if np.array_equal(c, wanted) else None

    def is_found(self, name: str) -> bool:
        """Whether a report, a fault or the numbers show that a mutant is wrong.

        An arrival too few ends a phase early only after as many phases: that warpgroups
        have waited for a multiplication is known by any of their warps.
        """
        text = mutated(self.text, mutants(self.text)[name])
        m, n, k = self.sizes
        longer = 4 if name.startswith("one arrival less") else 1
        try:
            result = self.run(text, m, longer * n, k, instruction_limit=LIMIT)
        except EmulationError:
            return True
        return result is None or bool(result.hazards)


GEMMS = [
    Gemm(roles, *tile, stored, blocks)
    for roles, tiles in TILES.items()
    for tile in tiles
    for stored in ("nk", "kn")
    for blocks in (1, 2)
]
LAYOUTS = 4  # of each tile: how B is stored, and the blocks of a cluster
# Of each tile one kernel is run unchanged, and two mutants of another one.
RUNS = [
    (gemm, *mode)
    for number, gemm in enumerate(GEMMS)
    for place, mode in enumerate(MODES)
    for tile in [number // LAYOUTS]
    if ALL or (number % LAYOUTS == tile % LAYOUTS and place == tile + 1)
]
MUTANTS = [
    (gemm, name)
    for number, gemm in enumerate(GEMMS)
    for place, name in enumerate(mutants(gemm.text))
    for tile in [number // LAYOUTS]
    if ALL
    or (
        number % LAYOUTS == (tile + 2) % LAYOUTS
        and place in (9 * tile + 5, 9 * tile + 24)
    )
]


def is_equivalent(gemm: Gemm, name: str) -> bool:
    """Whether a mutant does what the kernel does, by the PTX ISA.

    - Accumulators that only wgmma of one shape access need no fence between those
      ("wgmma.fence"): the second one is that of the loop.
    - Registers of PTX are virtual: without more of them it works.
    - What threads of a block do is known to it after bar.sync; fence.mbarrier_init is
      for other blocks of a cluster.
    """
    alone = gemm.blocks == 1 and name == "fence.mbarrier_init, 1 of 1"
    return alone or name in ("wgmma.fence, 2 of 2", "setmaxnreg.inc, 1 of 1")


def named(value: object) -> str:
    return getattr(value, "name", str(value))


@pytest.mark.parametrize(("gemm", "visibility", "schedule"), RUNS, ids=named)
def test_right_and_clean(gemm: Gemm, visibility: str, schedule: str) -> None:
    """Ragged, and several tiles for a block."""
    m, n, k = gemm.sizes
    options = {"visibility": visibility, "schedule": schedule}
    result = gemm.run(gemm.text, m - 24, n - 40, k - 8, **options)
    assert result is not None
    assert result.hazards == ()
    assert result.notes == ()


@pytest.mark.parametrize(("gemm", "name"), MUTANTS, ids=named)
def test_mutants_are_found(gemm: Gemm, name: str) -> None:
    assert gemm.is_found(name) != is_equivalent(gemm, name)


def test_every_instruction_has_its_mutants() -> None:
    names = [name for gemm in GEMMS for name in mutants(gemm.text)]
    assert {name.partition(",")[0] for name in names} >= set(CHANGED)
    assert len(names) == TOTAL
