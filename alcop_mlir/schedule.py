"""A schedule: the parameters of one pipelined contraction.

Text form, as typed on a command line: `block=128,128,32 warp=64,64 stages=3,2`.
Dictionary form, as stored in `#alcop.schedule<{...}>`, records and bundles: the same
names, with lists of integers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from alcop_mlir.errors import ConfigError
from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE

MAX_SHARED_STAGES = 8
MAX_REGISTER_STAGES = 4
MAX_WARPS = 32  # 1024 threads


@dataclass(frozen=True)
class Schedule:
    """Tile sizes in elements, stages per level; raises ConfigError when absurd.

    block:  M, N, K of the tile that one thread block computes per K step
    warp:   M, N of the part of it that one warp computes
    stages: shared-memory stages, register stages; 1 means not pipelined
    """

    block: tuple[int, int, int] = (128, 128, 32)
    warp: tuple[int, int] = (64, 64)
    stages: tuple[int, int] = (3, 2)

    def __post_init__(self) -> None:
        for field, length in (("block", 3), ("warp", 2), ("stages", 2)):
            value = getattr(self, field)
            if len(value) != length or not all(_is_positive(v) for v in value):
                raise ConfigError(
                    f"schedule: {field}={_join(value)}, expected {length} positive "
                    "integers"
                )
        self._check_tiles()
        self._check_stages()

    @property
    def warps(self) -> tuple[int, int]:
        """Warps along M and along N."""
        return self.block[0] // self.warp[0], self.block[1] // self.warp[1]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps[0] * self.warps[1] * WARP_SIZE

    def __str__(self) -> str:
        return " ".join(
            f"{f.name}={_join(getattr(self, f.name))}" for f in fields(self)
        )

    def to_dict(self) -> dict[str, list[int]]:
        """The dictionary form."""
        return {name: list(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schedule:
        """From the dictionary form; missing names take their defaults."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(
                f"schedule: unknown parameter '{unknown[0]}', expected one of "
                f"{', '.join(sorted(known))}"
            )
        for name, value in values.items():
            if not isinstance(value, list | tuple):
                raise ConfigError(f"schedule: {name}={value}, expected a list")
        return cls(**{name: tuple(value) for name, value in values.items()})

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """From the text form; raises ConfigError naming the bad part."""
        values: dict[str, list[int]] = {}
        for part in text.split():
            match = re.fullmatch(r"(\w+)=(\d+(?:,\d+)*)", part)
            if match is None:
                raise ConfigError(
                    f"schedule: cannot read '{part}', expected NAME=INT,INT,... as in "
                    f"'{cls()}'"
                )
            if match[1] in values:
                raise ConfigError(f"schedule: '{match[1]}' is given twice")
            values[match[1]] = [int(number) for number in match[2].split(",")]
        return cls.from_dict(values)

    def _check_tiles(self) -> None:
        mma_m, mma_n, mma_k = MMA_F16_SHAPE
        (block_m, block_n, block_k), (warp_m, warp_n) = self.block, self.warp
        # B fragments are loaded two n-tiles at a time (ldmatrix.x4).
        for name, value, step in (
            ("warp M", warp_m, mma_m),
            ("warp N", warp_n, 2 * mma_n),
            ("block K", block_k, mma_k),
        ):
            if value % step:
                raise ConfigError(f"schedule: {name} is {value}, must be {step}*n")
        if block_m % warp_m or block_n % warp_n:
            raise ConfigError(
                f"schedule: block={block_m},{block_n} is not a whole number of "
                f"warp={warp_m},{warp_n}"
            )
        if self.warps[0] * self.warps[1] > MAX_WARPS:
            raise ConfigError(
                f"schedule: {self.warps[0] * self.warps[1]} warps, at most {MAX_WARPS}"
            )

    def _check_stages(self) -> None:
        shared, register = self.stages
        if shared > MAX_SHARED_STAGES or register > MAX_REGISTER_STAGES:
            raise ConfigError(
                f"schedule: stages={shared},{register}, at most "
                f"{MAX_SHARED_STAGES},{MAX_REGISTER_STAGES}"
            )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _join(values: tuple[int, ...]) -> str:
    return ",".join(str(value) for value in values)
