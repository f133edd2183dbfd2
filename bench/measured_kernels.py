"""What others measured of attention and of rows, from the tables of bench/measured.

    attention(gpu, half)   tokamax's: the fastest of Triton's kernels, and its time
    rows()                 Liger's, one block for each row; tokamax's fastest kernels

Problems of attention are split once, by a hash of what they are: one half may set
constants of a model, the other judges it. Nothing is fitted to kernels of rows.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from real_times import half_of

from alcop_mlir.target import WARP_SIZE, Target, find_target
from alcop_mlir.tuning.fused.chain_model import Slots
from alcop_mlir.tuning.fused.chain_problem import ChainSizes, ChainTiles
from alcop_mlir.tuning.fused.row_model import RowWork

FOLDER = Path(__file__).parent / "measured"
GPUS = ("A100", "H100")
Kernel = tuple[int, int, int, int]  # rows, columns, stages, warps
# Instructions of f32 for each score beside those of a softmax, where a bias is added
# and a mask selects; fitted with the other constants of the model, on the same half.
BIAS_INSTRUCTIONS = 6.0
# Rows and columns of a tile, stages, warps, as tokamax's tuning tries them.
ATTENTION_SPACE: tuple[Kernel, ...] = tuple(
    itertools.product((16, 32, 64, 128), (16, 32, 64, 128), (1, 2, 3, 4), (1, 2, 4, 8))
)
# Of f32 accumulators and scores of a thread; kernels with more spill.
_MOST_HELD = 210


@dataclass(frozen=True)
class Attention:
    """Of one problem the fastest kernel of `ATTENTION_SPACE`, and its time."""

    gpu: str
    sizes: ChainSizes
    half: str  # `CALIBRATION` or `HELD_BACK`: the same on all GPUs
    kernel: Kernel
    milliseconds: float


def target_of(gpu: str) -> Target:
    """Of the GPU of a table: an A100 with 40 GB, whose memory is slower; an H100."""
    slower = {"A100": ("sm_80", 1555e9), "H100": ("sm_90", 3350e9)}  # data sheets
    name, bandwidth = slower[gpu]
    return replace(find_target(name), dram_bytes_per_second=bandwidth)


def attention(gpu: str, half: str | None = None) -> list[Attention]:
    """The table of a GPU, or one half of it."""
    found = [_attention(gpu, row) for row in _table(f"attention-{gpu}.csv")]
    return [one for one in found if half in (None, one.half)]


def _attention(gpu: str, row: dict[str, str]) -> Attention:
    columns = ("batch", "length", "heads", "head", "causal", "bias")
    problem = tuple(int(row[one]) for one in columns)
    batch, length, heads, head, causal, bias = problem
    sizes = ChainSizes(
        batch * heads,
        length,
        length,
        head,
        head,
        last=0 if causal else None,
        extra=BIAS_INSTRUCTIONS * bias,
    )
    q, k, stages, warps = (
        int(row[one]) for one in ("block_q", "block_k", "stages", "warps")
    )
    kernel, time = (q, k, stages, warps), float(row["milliseconds"])
    return Attention(gpu, sizes, half_of(repr(problem)), kernel, time)


def tiles(sizes: ChainSizes, kernel: Kernel) -> tuple[ChainTiles, Slots] | None:
    """Of a kernel of Triton's; None where warps lack rows, or registers suffice not."""
    rows, columns, stages, warps = kernel
    if rows < 16 * warps:
        return None
    each = rows // warps
    if each * (sizes.d + columns) // 32 > _MOST_HELD:
        return None
    # One slot less than stages; of one nothing is copied while it is used.
    slots = Slots(max(stages - 1, 1), stages - 1 if stages > 2 else 0)
    return ChainTiles(each, warps, columns), slots


@dataclass(frozen=True)
class Rows:
    """A kernel that goes over rows, and its time.

    threads, block_threads: of a row, of a block
    is_launched: whether the time has the launch in it
    """

    gpu: str
    what: str
    work: RowWork
    threads: int
    block_threads: int
    is_launched: bool
    milliseconds: float


def rows() -> list[Rows]:
    """Liger's, of which a block has a row, then tokamax's."""
    found = [_liger(row) for row in _table("rows.csv")]
    for gpu in GPUS:
        table = _table(f"normalization-{gpu}.csv")
        found += [_normalization(gpu, row) for row in table]
    return found


def row_target(one: Rows) -> Target:
    """Of the GPU of a table."""
    if one.gpu in _LIGER_GPUS and one.gpu not in GPUS:
        return find_target(_LIGER_GPUS[one.gpu])
    if one.is_launched and one.gpu == "A100":
        return find_target("sm_80")  # with 80 GB
    return target_of(one.gpu)


# By the word in their names; that of the A100 has 80 GB.
_LIGER_GPUS = {"A100": "sm_80", "3090": "sm_86", "H100": "sm_90"}
# Of a layer norm the mean, then the variance; of a softmax the maximum, then the total.
_REDUCTIONS = {"layer_norm": 2, "softmax": 2}


def _liger(row: dict[str, str]) -> Rows:
    gpu = next(one for one in _LIGER_GPUS if one in row["device"])
    size, arrays, count, columns, warps = (
        int(row[one]) for one in ("bytes", "arrays", "rows", "columns", "warps")
    )
    reductions = _REDUCTIONS.get(row["op"], 1)
    work = RowWork(count, columns, size * arrays * count * columns, reductions)
    threads, time = warps * WARP_SIZE, float(row["milliseconds"])
    return Rows(gpu, row["op"], work, threads, threads, True, time)


def _normalization(gpu: str, row: dict[str, str]) -> Rows:
    """bf16, of which a block has block_m times block_n rows."""
    outer, columns, inner, block_m, block_n, warps = (
        int(row[one])
        for one in ("outer", "columns", "inner", "block_m", "block_n", "warps")
    )
    count = outer * inner
    work = RowWork(count, columns, 2 * 2 * count * columns, 2)
    block = warps * WARP_SIZE
    threads = max(block // (block_m * block_n), 1)
    # Rows of fewer threads than there are: each thread has several, one after another.
    time = float(row["milliseconds"])
    return Rows(gpu, "layer_norm", work, threads, block, False, time)


def _table(name: str) -> Iterator[dict[str, str]]:
    with (FOLDER / name).open() as file:
        yield from csv.DictReader(file)
