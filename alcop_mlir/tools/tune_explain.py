"""What `alcop-tune explain` shows of contractions with variants, and of chains.

A contraction of known sizes is shown by `tune_show.py`, as the result of a search is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from alcop_mlir.errors import ConfigError
from alcop_mlir.target import Target
from alcop_mlir.tools.command_line import Rows, aligned, seconds
from alcop_mlir.tuning import variant_times
from alcop_mlir.tuning.fused.chain_model import ChainTime
from alcop_mlir.tuning.fused.chain_problem import ChainSizes, ChainTiles
from alcop_mlir.tuning.fused.chain_tiles import possible_tiles, predicted
from alcop_mlir.tuning.open_problem import LOOPS, OpenProblem, Samples
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.variant_times import conditions
from alcop_mlir.variants import ScheduleVariant

_SHOWN = 5  # other tiles of a chain
_NAMES = dict(zip(LOOPS, ("batch", "M", "N", "K"), strict=True))


def variant_rows(variants: Sequence[ScheduleVariant], element_bytes: int) -> Rows:
    """The variants in order, and what each asks of sizes."""
    for number, variant in enumerate(variants, 1):
        asked = [str(one) for one in conditions(variant, element_bytes)]
        yield (
            f"variant {number}",
            [
                f"{variant.schedule}, from {variant.source}",
                "where " + ", ".join(asked) if asked else "for all sizes",
            ],
        )


def choice_rows(
    problem: OpenProblem,
    target: Target,
    variants: Sequence[ScheduleVariant],
    sizes: Mapping[str, int],
) -> Rows:
    """Which variant runs at these sizes, and the time of each by the model."""
    samples = variant_times.samples_of(problem, [_by_loop(problem, sizes)])
    times = variant_times.times(problem, target, variants, samples)
    best, (schedule,) = variant_times.fastest(problem, target, samples)
    runs, least = int(times.runs[0]), float(best[0])
    taken = float(times.taken[0])
    yield "sizes", [", ".join(_sizes(samples))]
    yield "runs", [f"variant {runs + 1} of {len(variants)}"]
    rows = [
        [
            f"variant {number + 1}",
            seconds(float(times.seconds[0, number])),
            _why(variant, samples, number, runs),
        ]
        for number, variant in enumerate(variants)
    ]
    yield "predicted", aligned(rows)
    ratio = f"{taken / least:.2f} times as long as"
    yield "best", [f"{schedule}: {seconds(least)}", f"what runs takes {ratio} this"]


def _by_loop(problem: OpenProblem, sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes by loop; ConfigError where one is missing, unknown, or known otherwise."""
    loops = {name: loop for loop, name in _NAMES.items()}
    for name, size in sizes.items():
        if name not in loops:
            known = ", ".join(_NAMES[loop] for loop in problem.open_loops)
            raise ConfigError(f"no size is called '{name}', expected {known}")
        low, high = problem.ranges[loops[name]]
        if low == high != size:
            raise ConfigError(f"{name} is {low}, not {size}")
        if size < 1:
            raise ConfigError(f"{name} is {size}, expected 1 at least")
    missing = [_NAMES[one] for one in problem.open_loops if _NAMES[one] not in sizes]
    if missing:
        raise ConfigError(f"sizes say nothing of {', '.join(missing)}")
    return {loops[name]: size for name, size in sizes.items()}


def _sizes(samples: Samples) -> Iterator[str]:
    for loop, size in zip(LOOPS, samples.sizes[0].tolist(), strict=True):
        if loop != "b" or samples.problem.op != "matmul":
            yield f"{_NAMES[loop]} = {size}"


def _why(variant: ScheduleVariant, samples: Samples, number: int, runs: int) -> str:
    """Why a variant runs, or does not."""
    asked = conditions(variant, samples.problem.element_bytes)
    false = [f"not {one}" for one in asked if not one.holds(samples)[0]]
    if false:
        return ", ".join(false)
    return "runs" if number == runs else f"after variant {runs + 1}"


# -- chains ----------------------------------------------------------------------------


def chain_title(sizes: ChainSizes) -> str:
    """What a chain, as attention, computes."""
    mask = "" if sizes.last is None else ", masked"
    some = ", for any size" if sizes.is_open else ""
    shape = f"{sizes.batch}x{sizes.m}x{sizes.n}, rows of {sizes.k} and {sizes.d}"
    return f"chain {shape}{mask}{some}"


def chain_rows(
    sizes: ChainSizes, tiles: ChainTiles, target: Target, record: Record | None
) -> Rows:
    """The tiles, the parts of the predicted time, and other tiles.

    record: that the tiles are of; None where the model chose them
    """
    yield "tiles", [_text(tiles)]
    if record is None:
        yield "from", ["analytical model"]
    else:
        taken = seconds(record.seconds or 0.0)
        yield "from", [f"record: {taken} on {record.setting.gpu}"]
    time = predicted(sizes, tiles, target)
    if time is None:
        yield "time", ["none predicted: a block leaves no SM any registers"]
        return
    rate = f"{sizes.flops / time.seconds / 1e12:.1f} TFLOP/s"
    masked = " with what is masked" if sizes.last is not None else ""
    yield "time", [f"{seconds(time.seconds)} predicted, {rate}{masked}"]
    parts = [
        [name, seconds(value), f"{value / time.seconds:.0%}"]
        for name, value in time.parts.items()
        if value > 0
    ]
    yield "latency", aligned([*parts, ["together", seconds(time.seconds), "a model"]])
    yield (
        "resources",
        [f"{time.resident} blocks of {tiles.warps} warps at once on an SM"],
    )
    others = _others(sizes, tiles, target)
    rows = [[_text(one), seconds(of.seconds)] for one, of in others]
    yield "others", aligned(rows)


def _others(
    sizes: ChainSizes, tiles: ChainTiles, target: Target
) -> list[tuple[ChainTiles, ChainTime]]:
    """Other tiles in as many parts, the fastest first."""
    some = (replace(one, parts=tiles.parts) for one in possible_tiles(sizes, target))
    timed = [(one, predicted(sizes, one, target)) for one in some if one != tiles]
    known = [(one, time) for one, time in timed if time is not None]
    return sorted(known, key=lambda pair: pair[1].seconds)[:_SHOWN]


def _text(tiles: ChainTiles) -> str:
    parts = f", columns in {tiles.parts} parts" if tiles.parts > 1 else ""
    rows = f"{tiles.block_rows} rows by {tiles.warps} warps"
    return f"{rows}, {tiles.columns} columns{parts}"
