"""A schedule: the parameters of one pipelined contraction.

Text form, as typed on a command line: `block=128,128,32 warp=64,64 stages=3,2`, and
`raster=8 split_k=4` where these are not 1. Dictionary form, as stored in
`#alcop.schedule<{...}>`, records and bundles: the same names, with lists of integers,
or one integer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from alcop_mlir.errors import ConfigError
from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE

MAX_SHARED_STAGES = 8
MAX_REGISTER_STAGES = 4
MAX_WARPS = 32  # 1024 threads
MAX_RASTER = 64
MAX_SPLIT_K = 64
# The parameters: those of several integers, and those of one.
_LENGTHS = {"block": 3, "warp": 2, "stages": 2}
_LARGEST = {"raster": MAX_RASTER, "split_k": MAX_SPLIT_K}


@dataclass(frozen=True)
class Schedule:
    """Tile sizes in elements, stages per level; raises ConfigError when invalid.

    block:  M, N, K of the tile that one thread block computes per K step
    warp:   M, N of the part of it that one warp computes
    stages: shared-memory stages, register stages; 1 means not pipelined
    raster: rows of blocks in a group. Blocks start down the rows of a group first, so
        that those which run together share more of A and B; 1 is along N first
    split_k: parts of K, each computed by blocks of its own and added up afterwards
    """

    block: tuple[int, int, int] = (128, 128, 32)
    warp: tuple[int, int] = (64, 64)
    stages: tuple[int, int] = (3, 2)
    raster: int = 1
    split_k: int = 1

    def __post_init__(self) -> None:
        self._check_numbers()
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
        return " ".join(f"{name}={_join(v)}" for name, v in self.to_dict().items())

    def to_dict(self) -> dict[str, list[int] | int]:
        """The dictionary form; single integers are left out where they are 1."""
        tuples = {name: list(getattr(self, name)) for name in _LENGTHS}
        return tuples | {n: getattr(self, n) for n in _LARGEST if getattr(self, n) > 1}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schedule:
        """From the dictionary form; missing names take their defaults."""
        known = {*_LENGTHS, *_LARGEST}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(
                f"schedule: unknown parameter '{unknown[0]}', expected one of "
                f"{', '.join(sorted(known))}"
            )
        given = {name: _read(name, value) for name, value in values.items()}
        return cls(**given)

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """From the text form; raises ConfigError naming the bad part."""
        values: dict[str, list[int] | int] = {}
        for part in text.split():
            match = re.fullmatch(r"(\w+)=(\d+(?:,\d+)*)", part)
            if match is None:
                raise ConfigError(
                    f"schedule: cannot read '{part}', expected NAME=INT,INT,... as in "
                    f"'{cls()}'"
                )
            if match[1] in values:
                raise ConfigError(f"schedule: '{match[1]}' is given twice")
            numbers = [int(number) for number in match[2].split(",")]
            single = match[1] in _LARGEST and len(numbers) == 1
            values[match[1]] = numbers[0] if single else numbers
        return cls.from_dict(values)

    def _check_numbers(self) -> None:
        for name, length in _LENGTHS.items():
            value = getattr(self, name)
            if len(value) != length or not all(_is_positive(v) for v in value):
                raise ConfigError(
                    f"schedule: {name}={_join(value)}, expected {length} positive "
                    "integers"
                )
        for name, most in _LARGEST.items():
            value = getattr(self, name)
            if not _is_positive(value) or value > most:
                raise ConfigError(
                    f"schedule: {name}={_join(value)}, expected an integer from 1 to "
                    f"{most}"
                )

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


def _read(name: str, value: Any) -> Any:
    """A parameter's value from that of the dictionary form."""
    if name in _LARGEST:
        return value
    if not isinstance(value, list | tuple):
        raise ConfigError(f"schedule: {name}={value}, expected a list")
    return tuple(cast("list[Any]", value))


def _join(values: Any) -> str:
    if isinstance(values, list | tuple):
        return ",".join(map(str, cast("list[Any]", values)))
    return str(values)
