"""All combinations that the sweep samples from, each with a number.

A case is a layout, types, a class of shapes, a number of stages and what is fused. Tile
sizes, whether the program is on tensors, rasterisation and split-K follow from the
number: they vary, but not in all combinations.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

LAYOUTS = ("nn", "nt", "tn", "tt")  # "t": A is stored k x m, B is stored n x k
# Of A and B, and of C. f32 is multiplied as tf32.
TYPES = (
    ("f16", "f32"),
    ("f16", "f16"),
    ("f16", "bf16"),
    ("bf16", "f32"),
    ("bf16", "bf16"),
    ("f32", "f32"),
    ("f32", "f16"),
    ("i8", "i32"),
)
# Arrays that are not just rows one after the other; of matrices only.
LAYOUT_SHAPES = ("strides", "open strides", "part", "odd part")
SHAPES = (
    *("whole", "ragged m", "ragged n", "ragged k", "ragged"),
    *("odd rows", "rows of 4 bytes", "one element"),
    *("one row", "one column", "matrix-vector", "vector-matrix"),
    *("batch", "broadcast lhs", "broadcast rhs", "batch-reduce"),
    *("one k tile", "short k", "empty m", "empty n", "empty k"),
    *LAYOUT_SHAPES,
    *("run-time", "run-time m", "run-time unpromised", "run-time batch"),
    "transposed output",
)
STAGES = tuple(
    (shared, register) for shared in (1, 2, 3, 4, 5) for register in (1, 2, 3)
)
STARTS = ("zero", "read", "copy", "bias start")
CONSUMERS = (
    *("bias", "column bias", "relu", "residual", "in place", "scale", "scalar"),
    *("silu", "half relu", "chain", "kept"),
)
PRODUCERS = ("convert lhs", "relu lhs", "dequantise rhs", "both")
FUSIONS = (*STARTS, *CONSUMERS, *PRODUCERS)
AXES: tuple[Sequence[Any], ...] = (FUSIONS, STAGES, SHAPES, TYPES, LAYOUTS)
COUNT = math.prod(map(len, AXES))

# Elements along K in one step of mma.sync, and bytes, of each input type.
LEAST_K_STEP = 16
K_UNIT = {"f16": 16, "bf16": 16, "f32": 8, "i8": 32}
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i8": 1, "i32": 4}
# Block and warp tile, the K step in units; small, so that the emulator is quick.
TILES = (
    ((32, 32, 2), (16, 16)),
    ((16, 32, 2), (16, 16)),
    ((32, 64, 2), (32, 32)),
    ((64, 32, 1), (32, 16)),
    ((32, 32, 4), (32, 16)),
    ((32, 16, 2), (16, 16)),
)
CHOSEN = "chosen by the compiler"
PLACEMENTS = ("", "raster=2", "split_k=2", "raster=3 split_k=2", CHOSEN)
_WEIGHTS = (10, 4, 4, 3, 1)


@dataclass(frozen=True)
class Case:
    """One combination.

    types:     of A and B, and of C
    on_tensors: whether the function takes and returns tensors
    placement: rasterisation and split-K, as in a schedule's text; or CHOSEN, and all
        of the schedule is
    """

    number: int
    layout: str
    types: tuple[str, str]
    shape: str
    stages: tuple[int, int]
    fusion: str
    tile: tuple[tuple[int, int, int], tuple[int, int]]
    on_tensors: bool
    placement: str

    @property
    def kind(self) -> str:
        """The type of A and B where they are multiplied."""
        return self.types[0]

    @property
    def block(self) -> tuple[int, int, int]:
        """Elements of a tile of C, and of a K step."""
        (m, n, k), _ = self.tile
        return m, n, max(LEAST_K_STEP, k * K_UNIT[self.kind])

    @property
    def schedule(self) -> str:
        """The schedule's text; empty where the compiler chooses one."""
        if self.placement == CHOSEN:
            return ""
        block, warp = ",".join(map(str, self.block)), ",".join(map(str, self.tile[1]))
        stages = ",".join(map(str, self.stages))
        text = f"block={block} warp={warp} stages={stages} {self.placement}"
        return text.strip()

    def __str__(self) -> str:
        parts = (
            f"{self.layout} {'-'.join(self.types)}, {self.shape}, {self.fusion}",
            "on tensors" if self.on_tensors else "on memrefs",
            self.schedule or CHOSEN,
        )
        return f"case {self.number}: {', '.join(parts)}"


def case(number: int) -> Case:
    """The combination with that number."""
    left, values = number, []
    for axis in AXES:
        left, place = divmod(left, len(axis))
        values.append(axis[place])
    fusion, stages, shape, types, layout = values
    chosen = random.Random(number)
    made = Case(
        number,
        layout,
        types,
        shape,
        stages,
        fusion,
        chosen.choice(TILES),
        chosen.random() < 0.4,
        chosen.choices(PLACEMENTS, _WEIGHTS)[0],
    )
    return _without_what_is_refused(made)


def _without_what_is_refused(made: Case) -> Case:
    """The case with split-K and layouts only where they are supported."""
    if made.shape in LAYOUT_SHAPES:
        made = replace(made, on_tensors=False)
    if "split_k" in made.placement and not _can_split(made):
        made = replace(made, placement="")
    return made


def _can_split(made: Case) -> bool:
    """Whether K is known and splits into parts of whole rows, without a batch."""
    known = ("whole", "ragged m", "ragged n", "one row", "one column")
    return made.shape in known


def is_case(number: int) -> bool:
    """Whether the combination makes sense: others test nothing new."""
    made = case(number)
    if made.fusion in ("convert lhs", "dequantise rhs", "both") and made.kind == "i8":
        return False
    if made.fusion == "kept" and made.on_tensors:
        return False
    if made.fusion == "half relu" and made.types[1] in ("f32", "i32"):
        return False
    if made.fusion in ("bias", "bias start") and made.shape == "matrix-vector":
        return False
    if made.fusion == "column bias" and made.shape == "vector-matrix":
        return False
    return True


def drawn(seed: int) -> Iterator[int]:
    """Numbers of cases without end, each once, in an order that the seed gives."""
    seen, generator = set(), random.Random(seed)
    while True:
        number = generator.randrange(COUNT)
        if number not in seen and is_case(number):
            seen.add(number)
            yield number
