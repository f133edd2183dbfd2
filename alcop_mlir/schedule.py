"""A schedule: the parameters of one pipelined contraction.

Text form, as typed on a command line: `block=128,128,32 warp=64,64 stages=3,2`, and
`raster=8 split_k=4 sweeps=2 rectangle=16 cluster=2` where these are not 1, and
`engine=wgmma mode=pingpong` where these are not mma and cooperative. A text that leaves
out tiles or stages is `Partial`: what it does not say is chosen. Dictionary form, as
stored in `#alcop.schedule<{...}>`, records and bundles: the same names, with lists of
integers, one integer, or a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, Literal, get_args

from alcop_mlir import codec
from alcop_mlir.codec_forms import Range, Written
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.target import MAX_WGMMA_N, MMA_F16_SHAPE, WARP_SIZE, WARPGROUP

MAX_SHARED_STAGES = 8
MAX_REGISTER_STAGES = 4
MAX_WARPS = 32  # 1024 threads
MAX_RASTER = 64
MAX_SPLIT_K = 64
MAX_SWEEPS = 64
MAX_RECTANGLE = 256
MAX_CLUSTER = 2  # blocks; larger ones leave SMs of a GPC idle
# What is chosen from where nothing is measured: the default schedule, and variants.
CHOSEN_SHARED_STAGES = (4, 3, 2)
CHOSEN_REGISTER_STAGES = 2
CHOSEN_RASTER = 8
_MAX_TILE = 1 << 16  # far more than shared memory holds
_Extent = Annotated[int, Range(1, _MAX_TILE)]
_SharedStages = Annotated[int, Range(1, MAX_SHARED_STAGES)]
_RegisterStages = Annotated[int, Range(1, MAX_REGISTER_STAGES)]
Engine = Literal["mma", "wgmma"]
MMA, WGMMA = get_args(Engine)
Mode = Literal["cooperative", "pingpong"]
COOPERATIVE, PINGPONG = get_args(Mode)
# The parameters that are one integer.
_SINGLE = ("raster", "split_k", "sweeps", "rectangle", "cluster")
# Of which no rule of `_check_tiles` speaks.
_UNRELATED = {"stages", "raster", "split_k", "sweeps"}
_CUT = 60  # characters of a bad part in a message
# At most 18 digits each: int() is slow, or fails, for thousands.
_PART = re.compile(r"(\w+)=(\d{1,18}(?:,\d{1,18})*|[a-z]\w*)", re.ASCII)


@frozen
class _Parameters:
    """The parameters, each by itself; see `Schedule`."""

    block: Annotated[tuple[_Extent, _Extent, _Extent], Written] = (128, 128, 32)
    warp: Annotated[tuple[_Extent, _Extent], Written] = (64, 64)
    stages: Annotated[tuple[_SharedStages, _RegisterStages], Written] = (3, 2)
    raster: Annotated[int, Range(1, MAX_RASTER)] = 1
    split_k: Annotated[int, Range(1, MAX_SPLIT_K)] = 1
    sweeps: Annotated[int, Range(1, MAX_SWEEPS)] = 1
    rectangle: Annotated[int, Range(1, MAX_RECTANGLE)] = 1
    cluster: Annotated[int, Range(1, MAX_CLUSTER)] = 1
    engine: Engine = MMA
    mode: Mode = COOPERATIVE


@frozen
class Schedule(_Parameters):
    """Tile sizes in elements, stages per level; raises ConfigError when invalid.

    block:  M, N, K of the tile that one thread block computes per K step
    warp:   M, N of the part of it that one warp computes
    stages: shared-memory stages, register stages; 1 means not pipelined
    raster: rows of blocks in a group. Blocks start down the rows of a group first, so
        that those which run together share more of A and B; 1 is along N first
    split_k: parts of K, each computed by blocks of its own and added up afterwards
    sweeps: how often K goes over the taps of a window, each time with other channels;
        1 is all channels of a tap, then the next tap
    rectangle: how wide the rectangles of positions of a window are that blocks compute,
        each of block M positions: of 128, 16 is 8x16; 1 is rows, not rectangles
    cluster: blocks along M, of neighbouring SMs, that copy the B which they share once
        (wgmma only)
    engine: what multiplies: mma.sync of a warp, or wgmma of four warps that have the
        same columns (sm_90a); a warpgroup more then copies, and stages are slots of
        the ring that it fills, and groups of wgmma in flight, one more
    mode: whether all warps compute a block's tile (cooperative), or two warpgroups take
        tiles in turn: one stores its own while the other multiplies (pingpong)
    """

    def __post_init__(self) -> None:
        codec.check(self, "schedule")
        self._check_tiles()

    @property
    def warps(self) -> tuple[int, int]:
        """Warps along M and along N."""
        return self.block[0] // self.warp[0], self.block[1] // self.warp[1]

    @property
    def threads(self) -> int:
        """Threads that compute a tile."""
        down, across = self.warps
        return down * across * WARP_SIZE

    @property
    def turns(self) -> int:
        """How many such groups of threads a block has: they take tiles in turn."""
        return 2 if self.mode == PINGPONG else 1

    @property
    def sides(self) -> tuple[int, int]:
        """Of a block's rectangle of positions, the height and the width."""
        return self.block[0] // self.rectangle, self.rectangle

    def __str__(self) -> str:
        return " ".join(f"{name}={_join(v)}" for name, v in self.to_dict().items())

    def to_dict(self) -> dict[str, list[int] | int | str]:
        """The dictionary form; single integers are left out where they are 1."""
        made: dict[str, list[int] | int | str] = {
            "block": [*self.block],
            "warp": [*self.warp],
            "stages": [*self.stages],
        }
        made |= {n: getattr(self, n) for n in _SINGLE if getattr(self, n) > 1}
        chosen = {"engine": (self.engine, MMA), "mode": (self.mode, COOPERATIVE)}
        return made | {n: one for n, (one, usual) in chosen.items() if one != usual}

    def changed(self, **members: Any) -> Schedule:
        """As `dataclasses.replace`, which looks at all members again; spaces are large.

        Values are hashable. Raises ConfigError as the constructor does.
        """
        for name, value in members.items():
            _check_value(name, value)
        made = object.__new__(Schedule)
        made.__dict__.update(self.__dict__ | members)
        if not members.keys() <= _UNRELATED:
            made._check_tiles()
        return made

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schedule:
        """From the dictionary form; missing names take their defaults."""
        return codec.decode(cls, values, "schedule")

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """From the text form; raises ConfigError naming the bad part."""
        return cls.from_dict(_values(text))

    def _check_tiles(self) -> None:
        (block_m, block_n, _), (warp_m, warp_n) = self.block, self.warp
        _check_steps(self)
        if block_m % warp_m or block_n % warp_n:
            raise ConfigError(
                f"schedule: block={block_m},{block_n} is not a whole number of "
                f"warp={warp_m},{warp_n}"
            )
        if block_m % self.rectangle:
            raise ConfigError(
                f"schedule: block M is {block_m}, not a whole number of "
                f"rectangle={self.rectangle}"
            )
        warps = (block_m // warp_m) * (block_n // warp_n)
        if warps > MAX_WARPS:
            raise ConfigError(f"schedule: {warps} warps, at most {MAX_WARPS}")
        if self.engine == WGMMA:
            self._check_warpgroups()
        elif self.cluster > 1:
            raise ConfigError(
                f"schedule: cluster={self.cluster} is for engine=wgmma, whose copies "
                "reach several blocks"
            )
        elif self.mode == PINGPONG:
            raise ConfigError(
                "schedule: mode=pingpong is for engine=wgmma, whose copies are done by "
                "warps of their own"
            )

    def _check_warpgroups(self) -> None:
        """Four warps multiply together: they have the same columns."""
        down, across = self.warps
        if down % WARPGROUP or across > 1:
            raise ConfigError(
                f"schedule: {down} by {across} warps, expected {WARPGROUP}*n by 1: "
                "wgmma is computed by four warps with the same columns"
            )
        if self.mode == PINGPONG and down != WARPGROUP:
            raise ConfigError(
                f"schedule: {down} by 1 warps, expected {WARPGROUP} by 1: with "
                "mode=pingpong a tile is computed by one warpgroup"
            )
        if self.warp[1] > MAX_WGMMA_N:
            raise ConfigError(
                f"schedule: warp N is {self.warp[1]}, wgmma has at most {MAX_WGMMA_N} "
                "columns"
            )


@frozen
class Partial:
    """Some parameters of a schedule, by name; ConfigError where they fit no schedule.

    values: the parameters called `names`, and defaults
    """

    values: _Parameters
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.is_whole:
            self.over(Schedule())  # says what is wrong
        _check_steps(self.values)  # the defaults are right

    @property
    def is_whole(self) -> bool:
        """Whether tiles and stages are said; the others then are 1 if not."""
        return {"block", "warp", "stages"} <= {*self.names}

    def over(self, chosen: Schedule) -> Schedule:
        """What is said, and the rest of `chosen`; ConfigError where it does not fit."""
        said = {name: getattr(self.values, name) for name in self.names}
        return replace(Schedule() if self.is_whole else chosen, **said)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Partial:
        """From the dictionary form."""
        return cls(codec.decode(_Parameters, values, "schedule"), tuple(values))

    @classmethod
    def parse(cls, text: str) -> Partial:
        """From the text form; raises ConfigError naming the bad part."""
        return cls.from_dict(_values(text))

    def __str__(self) -> str:
        said = ((name, getattr(self.values, name)) for name in self.names)
        return " ".join(f"{name}={_join(value)}" for name, value in said)


@frozen
class Decision:
    """A schedule, and what decided.

    source: "given", "record", "learned model", "analytical model" or "default"; "given
        in part, else ..." where what was given is completed by another
    notes: what the user may want to know of it
    seconds: measured for a record, predicted by a model
    sure: standard deviation of log(seconds), by the learned model
    """

    schedule: Schedule
    source: str
    notes: tuple[str, ...] = ()
    seconds: float | None = None
    sure: float | None = None


def _values(text: str) -> dict[str, list[int] | int | str]:
    """The dictionary form of the text form."""
    values: dict[str, list[int] | int | str] = {}
    for part in text.split():
        match = _PART.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"schedule: cannot read '{part[:_CUT]}', expected NAME=INT,INT,... "
                f"as in '{Schedule()}'"
            )
        if match[1] in values:
            raise ConfigError(f"schedule: '{match[1]}' is given twice")
        if not match[2][0].isdigit():
            values[match[1]] = match[2]
            continue
        numbers = [int(number) for number in match[2].split(",")]
        single = match[1] in _SINGLE and len(numbers) == 1
        values[match[1]] = numbers[0] if single else numbers
    return values


@lru_cache(maxsize=1024)  # a space has few values of each parameter
def _check_value(name: str, value: Any) -> None:
    """ConfigError where a parameter cannot have that value."""
    codec.check(replace(_Parameters(), **{name: value}), "schedule", (name,))


def _check_steps(values: _Parameters) -> None:
    """ConfigError where tiles are no multiples of what mma.sync multiplies."""
    mma_m, mma_n, mma_k = MMA_F16_SHAPE
    # B fragments are loaded two n-tiles at a time (ldmatrix.x4).
    for name, value, step in (
        ("warp M", values.warp[0], mma_m),
        ("warp N", values.warp[1], 2 * mma_n),
        ("block K", values.block[2], mma_k),
    ):
        if value % step:
            raise ConfigError(f"schedule: {name} is {value}, must be {step}*n")


def _join(values: Sequence[int] | int | str) -> str:
    if isinstance(values, (int, str)):
        return str(values)
    return ",".join(map(str, values))
