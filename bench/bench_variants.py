"""What a few kernels for all sizes lose, by the model, and what they cost.

    python bench/bench_variants.py [--sizes 1000] [--compiles 5] [--plot FILE]
    python bench/bench_variants.py --costs [--compiles 5]
    python bench/bench_variants.py --triton

The regret of a size is the predicted time of the variant that runs there, over that of
the fastest schedule for this size alone: 1 is no loss. It is that of the decision list,
not of the best of its kernels. The sizes are drawn at random as samples of the choice
are spread, by another generator. All times are the analytical model's: no GPU is used.
Beside it stand four kernels that are chosen for these very sizes, of which the fastest
runs that rows and K allow: guards could hardly do better.

Then what four variants cost (`--costs`: only that; `--compiles 0`: not that): a compile
in a warm process, as `alcop_mlir.compile` does it, the least of some in turns. Wall
seconds, with as many CPUs as there are and with two, without ptxas and with it; CPU
seconds; bytes of the bundle as an archive. What they are compared with: one kernel for
all sizes (`variants=1`), and the kernel of the first variant's schedule where all sizes
are known. The choice of variants, once for each contraction in a process, is not
counted. Wall seconds are worth something where the process gets the CPUs: how many it
got is printed, by threads that hash.

`--triton` prints nothing but the code of the K loop of the variants of f16, and of
Triton's kernels with the same tiles, where it is installed (the extra `anchors`).
`--plot` draws regrets (needs matplotlib). Records go to bench/results/variants.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from records import print_table, store
from variant_code import COLUMNS, GIVEN, code_rows
from variant_kinds import KINDS, Kind

from alcop_mlir.compilation import inputs
from alcop_mlir.compilation.compiler import Options, compile_source
from alcop_mlir.measurement.tunables import Tunable
from alcop_mlir.runtime.bundle import Bundle, save
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning import open_variants
from alcop_mlir.tuning.candidates import FloatArray
from alcop_mlir.tuning.open_problem import LARGEST, OpenProblem, Samples, from_points
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.variant_times import fastest, samples_of, times
from alcop_mlir.variants import ScheduleVariant

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8)
MAP_K = 4096
FREELY = ("f16 nn", "tf32 nn", "s8 nt", "f16 nn, rows promised")
COMPILED = ("f16 nn", "f16 nt", "f16 tn", "tf32 nn", "s8 nt")


def main() -> None:
    given = arguments()
    target = find_target(given.target)
    if given.triton:
        bundle = compile_source(inputs.read(KINDS["f16 nn"].text()), Options(target))
        print_table(COLUMNS, [*code_rows(bundle, target)])
        print(GIVEN)
        return
    if not given.costs:
        regrets_of_variants(given, target)
    if given.compiles:
        print_costs(target, given.compiles)


def print_costs(target: Target, compiles: int) -> None:
    """Print and record what variants cost."""
    rows = [one for name in COMPILED for one in costs(name, target, compiles)]
    header = ("compiled", "kernels", *FIGURES)
    print_table(header, [(name, way, *shown(of)) for name, way, of in rows])
    records = [
        {"contraction": name, "kernels": way, **dict(zip(FIGURES, of, strict=True))}
        for name, way, of in rows
    ]
    print(f"the process got {cpus_got():.1f} of {len(os.sched_getaffinity(0))} CPUs")
    print(f"records in {store('variants_cost', records)}")


def regrets_of_variants(given: argparse.Namespace, target: Target) -> None:
    """Print, record and draw what variants lose."""
    cases = {name: Case(kind, target, given.sizes) for name, kind in KINDS.items()}
    regrets = {name: [*case.regrets()] for name, case in cases.items()}
    rows = [row(name, count, one) for name, of in regrets.items() for count, one in of]
    print_table(("contraction", "variants", "median", "95 %", "worst", "mean"), rows)
    parts = [*by_rows(cases["f16 nn"])]
    print_table(("f16 nn, 4 variants", "sizes", "median", "95 %"), parts)
    free = {name: freely(cases[name]) for name in FREELY}
    limits = [[name, *row(name, 4, one)[2:]] for name, one in free.items()]
    print_table(("any four kernels", "median", "95 %", "worst", "mean"), limits)
    names = ("contraction", "variants", "median", "p95", "worst", "mean")
    path = store("variants", [dict(zip(names, row, strict=True)) for row in rows])
    print(f"records in {path}")
    if given.plot is not None:
        draw(regrets, target, given.plot)
        print(f"picture in {given.plot}")


@dataclass(frozen=True)
class Case:
    """A contraction on a target, with `count` sizes."""

    kind: Kind
    target: Target
    count: int

    @cached_property
    def tunable(self) -> Tunable:
        return self.kind.tunable()

    @cached_property
    def problem(self) -> OpenProblem:
        problem = self.tunable.open_problem
        assert problem is not None
        return problem

    @cached_property
    def samples(self) -> Samples:
        """Sizes drawn at random, the same in each run."""
        points = np.random.default_rng(14).uniform(size=(self.count, 4))
        return from_points(self.problem, points, np.arange(self.count))

    @cached_property
    def best(self) -> FloatArray:
        """Seconds of the fastest schedule for each of the sizes."""
        return fastest(self.problem, self.target, self.samples)[0]

    def variants(self, most: int) -> tuple[ScheduleVariant, ...]:
        """Those that are compiled."""
        return self.tunable.variants(Chooser(self.target), most)

    def regret(self, most: int) -> FloatArray:
        """Of `most` variants at each of the sizes."""
        variants = self.variants(most)
        return (
            times(self.problem, self.target, variants, self.samples).taken / self.best
        )

    def regrets(self) -> Iterator[tuple[int, FloatArray]]:
        """By how many variants there may be."""
        for most in COUNTS:
            yield most, self.regret(most)


def freely(case: Case) -> FloatArray:
    """The regret of four kernels, of which the fastest runs at each size.

    They are added one by one, then exchanged, for the least 95th percentile. Narrow
    copies count for more than predicted where wide ones might run, as in the choice.
    """
    samples = case.samples
    pool = open_variants.Pool.of(case.problem, case.target, samples)
    seconds = pool.seconds(samples)
    slowness = pool.slowness(samples, seconds)
    every, for_all = range(slowness.shape[1]), np.flatnonzero(pool.for_all).tolist()

    def with_one_more(others: list[int]) -> list[int]:
        among = every if {*others} & {*for_all} else for_all
        return min(([*others, one] for one in among), key=loss)

    def loss(chosen: list[int]) -> float:
        regret = slowness[:, chosen].min(axis=1)
        return float(np.percentile(regret, 95)) + 0.1 * float(regret.mean())

    chosen: list[int] = []
    while len(chosen) < 4:
        chosen = with_one_more(chosen)
    for _ in range(8):
        chosen = with_one_more(chosen[1:])
    runs = np.array(chosen)[slowness[:, chosen].argmin(axis=1)]
    return seconds[np.arange(len(samples)), runs] / case.best


def row(name: str, count: int, regret: FloatArray) -> list[object]:
    """A row of the table."""
    median, high = np.percentile(regret, [50, 95])
    return [
        name,
        count,
        f"{median:.3f}",
        f"{high:.2f}",
        f"{regret.max():.1f}",
        f"{regret.mean():.3f}",
    ]


def by_rows(case: Case) -> list[list[object]]:
    """The same by what divides the rows, of four variants."""
    regret, samples = case.regret(4), case.samples
    low_bits = np.minimum(samples.row_bytes & -samples.row_bytes, 16)
    found: list[list[object]] = []
    for row_bytes in (16, 8, 4, 2):
        some = regret[low_bits == row_bytes]
        median, high = np.percentile(some, [50, 95])
        name = f"rows of {row_bytes} bytes"
        found.append([name, len(some), f"{median:.3f}", f"{high:.2f}"])
    return found


FIGURES = ("wall s", "on 2 CPUs", "CPU s", "wall s, ptxas", "bytes", "with cubin")
Cost = dict[str, float]  # by figure


def costs(
    name: str, target: Target, compiles: int
) -> Iterator[tuple[str, str, Sequence[float]]]:
    """Of a contraction's kernels: what is compiled, how many kernels, its figures.

    The last two are ratios of the first.
    """
    kind = KINDS[name]
    plain = Options(target, use_ptxas=False, allow_tf32=kind.rounds)
    open_sizes = inputs.read(kind.text())
    made = compile_source(open_sizes, plain)
    first = made.functions[0].launches[0].variants[0].kernels[0].schedule
    ways = {
        "4 variants": (open_sizes, plain),
        "1 variant": (open_sizes, replace(plain, variants=1)),
        "known sizes": (
            inputs.read(kind.text(are_known=True)),
            replace(plain, schedule=first),
        ),
    }
    found = {way: Cost() for way in ways}
    for _ in range(compiles):
        for way, (source, options) in ways.items():
            for figure, value in cost(source, options).items():
                found[way][figure] = min(value, found[way].get(figure, math.inf))
    rows = {way: [of[figure] for figure in FIGURES] for way, of in found.items()}
    for way, values in rows.items():
        yield name, way, values
    for way in ("1 variant", "known sizes"):
        pairs = zip(rows["4 variants"], rows[way], strict=True)
        yield name, f"4 / {way}", [four / one for four, one in pairs]


def cost(source: inputs.Input, options: Options) -> Cost:
    """Seconds of one compile in each way, and bytes of the bundle."""
    every = os.sched_getaffinity(0)
    start = time.process_time()
    wall, bundle = timed(source, options)
    seconds = time.process_time() - start
    os.sched_setaffinity(0, sorted(every)[:2])
    try:
        on_two, _ = timed(source, options)
    finally:
        os.sched_setaffinity(0, every)
    with_ptxas, whole = timed(source, replace(options, use_ptxas=True))
    sizes = stored_bytes(bundle), stored_bytes(whole)
    values = (wall, on_two, seconds, with_ptxas, *sizes)
    return dict(zip(FIGURES, values, strict=True))


def timed(source: inputs.Input, options: Options) -> tuple[float, Bundle]:
    """Wall seconds of a compile, and what it makes."""
    start = time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):  # remarks
        bundle = compile_source(source, options)
    return time.perf_counter() - start, bundle


def shown(values: Sequence[float]) -> list[str]:
    """A row of costs."""
    return [f"{value:.2f}" if value < 1000 else f"{value:.0f}" for value in values]


def cpus_got() -> float:
    """How many CPUs threads that do nothing but compute get here, at present."""

    def work(_: int) -> None:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 500_000)

    count = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(count) as pool:
        wall, used = time.perf_counter(), time.process_time()
        list(pool.map(work, range(count)))
        return (time.process_time() - used) / (time.perf_counter() - wall)


def stored_bytes(bundle: Bundle) -> int:
    """Of the bundle as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle.zip"
        save(bundle, path)
        return path.stat().st_size


def draw(
    regrets: dict[str, list[tuple[int, FloatArray]]], target: Target, path: Path
) -> None:
    """Shares of sizes by their regret, and a map of it over M and N."""
    mpl = importlib.import_module("matplotlib")
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "alcop"
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(10, 4.2), layout="constrained"
    )
    for name, of in regrets.items():
        regret = np.sort(dict(of)[4])
        left.plot(regret, np.linspace(0, 100, len(regret)), label=name)
    left.set(xlim=(1, 2.5), ylim=(0, 100), xlabel="predicted time, over the fastest")
    left.set(ylabel="% of sizes", title="four variants")
    left.legend(fontsize=8, loc="lower right")
    left.grid(alpha=0.3)
    sizes = 2 ** np.arange(0, LARGEST.bit_length())
    case = Case(KINDS["f16 nn"], target, 0)
    grid = [{"m": int(m), "n": int(n), "k": MAP_K} for n in sizes for m in sizes]
    samples = samples_of(case.problem, grid)
    best, _ = fastest(case.problem, target, samples)
    taken = times(case.problem, target, case.variants(4), samples).taken
    shape = len(sizes), len(sizes)
    shown = right.imshow(
        (taken / best).reshape(shape), origin="lower", vmin=1, vmax=2, cmap="viridis_r"
    )
    ticks = range(0, len(sizes), 2)
    right.set_xticks(ticks, [str(sizes[one]) for one in ticks], rotation=45)
    right.set_yticks(ticks, [str(sizes[one]) for one in ticks])
    right.set(xlabel="M", ylabel="N", title=f"f16 nn, powers of two, K = {MAP_K}")
    figure.colorbar(shown, ax=right)
    figure.savefig(path, metadata={"Date": None})


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, default=1000, metavar="N")
    parser.add_argument("--compiles", type=int, default=5, metavar="N")
    parser.add_argument("--triton", action="store_true", help="nothing but code")
    parser.add_argument("--costs", action="store_true", help="nothing but costs")
    parser.add_argument("--target", default="sm_80", metavar="GPU")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
