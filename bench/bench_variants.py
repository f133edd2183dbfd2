"""What a few kernels for all sizes lose, by the model, and what they cost.

    python bench/bench_variants.py [--sizes 1000] [--compiles 3] [--plot FILE]

The regret of a size is the predicted time of the variant that runs there, over that of
the fastest schedule for this size alone: 1 is no loss. It is that of the decision list,
not of the best of its kernels. The sizes are drawn at random as samples of the choice
are spread, by another generator. All times are the analytical model's: no GPU is used.

Then, unless with `--compiles 0`, a contraction of two types is compiled with four
variants and with one: CPU seconds without ptxas, the least of some compiles in turns,
and bytes of the stored bundle.
`--plot` draws regrets (needs matplotlib). Records go to bench/results/variants.jsonl.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from records import print_table, store

from alcop_mlir.compilation import inputs
from alcop_mlir.compilation.compiler import Options, compile_source
from alcop_mlir.runtime.bundle import Bundle, save
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning import open_variants
from alcop_mlir.tuning.open_problem import LARGEST, OpenProblem, Samples, from_points
from alcop_mlir.tuning.space import FloatArray
from alcop_mlir.tuning.variant_times import fastest, samples_of, times

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8)
MAP_K = 4096
BF16 = ("bf16", "bf16", "f32", "f32")
TF32 = ("tf32", "tf32", "f32", "f32")
S8 = ("i8", "i8", "i32", "i32")
CASES = {
    "f16 nn": OpenProblem(),
    "f16 nt": OpenProblem(layout="mk,nk"),
    "bf16 nn": OpenProblem(dtypes=BF16),
    "tf32 nn": OpenProblem(dtypes=TF32),
    "s8 nt": OpenProblem(dtypes=S8, layout="mk,nk"),
    "f16 nn, rows promised": OpenProblem(row_bytes=(16, 16)),
    "f16 nn, M open": OpenProblem(n=(4096, 4096), k=(4096, 4096), row_bytes=(16, 16)),
}
COMPILED = {"f16 nn": ("f16", "f32"), "tf32 nn": ("f32", "f32")}


def main() -> None:
    given = arguments()
    target = find_target(given.target)
    regrets = {name: regret(case, target, given.sizes) for name, case in CASES.items()}
    rows = [row(name, count, one) for name, of in regrets.items() for count, one in of]
    print_table(("contraction", "variants", "median", "95 %", "worst", "mean"), rows)
    parts = [*by_rows(CASES["f16 nn"], target, given.sizes)]
    print_table(("f16 nn, 4 variants", "sizes", "median", "95 %"), parts)
    if given.compiles:
        costs = [cost(name, *COMPILED[name], given) for name in COMPILED]
        header = ("compiled", "variants", "CPU s", "ratio", "bytes", "ratio")
        print_table(header, [row for rows in costs for row in rows])
    names = ("contraction", "variants", "median", "p95", "worst", "mean")
    path = store("variants", [dict(zip(names, row, strict=True)) for row in rows])
    print(f"records in {path}")
    if given.plot is not None:
        draw(regrets, target, given.plot)
        print(f"picture in {given.plot}")


def drawn(problem: OpenProblem, count: int) -> Samples:
    """Sizes drawn at random, the same in each run."""
    points = np.random.default_rng(14).uniform(size=(count, 4))
    return from_points(problem, points, np.arange(count))


def regret(
    problem: OpenProblem, target: Target, count: int
) -> list[tuple[int, FloatArray]]:
    """By how many variants there may be."""
    samples = drawn(problem, count)
    best, _ = fastest(problem, target, samples)
    found: list[tuple[int, FloatArray]] = []
    for most in COUNTS:
        variants = open_variants.choose(problem, target, most)
        found.append((most, times(problem, target, variants, samples).taken / best))
    return found


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


def by_rows(problem: OpenProblem, target: Target, count: int) -> list[list[object]]:
    """The same by what divides the rows, of four variants."""
    samples = drawn(problem, count)
    best, _ = fastest(problem, target, samples)
    variants = open_variants.choose(problem, target, 4)
    regret = times(problem, target, variants, samples).taken / best
    low_bits = np.minimum(samples.row_bytes & -samples.row_bytes, 16)
    found: list[list[object]] = []
    for row_bytes in (16, 8, 4, 2):
        some = regret[low_bits == row_bytes]
        median, high = np.percentile(some, [50, 95])
        name = f"rows of {row_bytes} bytes"
        found.append([name, len(some), f"{median:.3f}", f"{high:.2f}"])
    return found


def cost(name: str, inputs_of: str, out: str, given: Any) -> list[list[object]]:
    """Compile time and size of the bundle, with one variant and with four."""
    text = f"""
func.func @matmul(%A: memref<?x?x{inputs_of}>, %B: memref<?x?x{inputs_of}>,
                  %C: memref<?x?x{out}>) {{
  linalg.matmul ins(%A, %B : memref<?x?x{inputs_of}>, memref<?x?x{inputs_of}>)
                outs(%C : memref<?x?x{out}>)
  return
}}
"""
    source = inputs.read(text)
    spent: dict[int, list[float]] = {1: [], 4: []}
    sizes: dict[int, int] = {}
    for _ in range(given.compiles + 1):  # the first loads modules and libraries
        for count in spent:
            open_variants.choose.cache_clear()
            options = Options(
                find_target(given.target),
                use_ptxas=False,
                allow_tf32=inputs_of == "f32",
                variants=count,
            )
            start = time.process_time()
            bundle = compile_source(source, options)
            spent[count].append(time.process_time() - start)
            sizes[count] = stored_bytes(bundle)
    least = {count: min(some[1:]) for count, some in spent.items()}
    return [
        [
            name,
            count,
            f"{least[count]:.2f}",
            f"{least[count] / least[1]:.1f}",
            sizes[count],
            f"{sizes[count] / sizes[1]:.1f}",
        ]
        for count in spent
    ]


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
    problem = CASES["f16 nn"]
    grid = [{"m": int(m), "n": int(n), "k": MAP_K} for n in sizes for m in sizes]
    samples = samples_of(problem, grid)
    best, _ = fastest(problem, target, samples)
    variants = open_variants.choose(problem, target, 4)
    taken = times(problem, target, variants, samples).taken
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
    parser.add_argument("--compiles", type=int, default=3, metavar="N")
    parser.add_argument("--target", default="sm_80", metavar="GPU")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
