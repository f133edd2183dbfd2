"""Models of attention and of rows, judged by what others measured on GPUs.

    python bench/bench_measured_kernels.py                     the halves that judge
    python bench/bench_measured_kernels.py --half calibration
    python bench/bench_measured_kernels.py --plot FILE.png     predicted and measured
    python bench/bench_measured_kernels.py --fit               constants of the model

The tables are in bench/measured. Of attention they have the fastest of Triton's kernels
and its time. Shown are the error of the predicted time (predicted / measured: e to the
mean and to the standard deviation of its logarithm), and where that kernel stands in
the order of the model: its rank in the median, from 0 to 1, and the share of problems
where it is among the best 10 % and 25 %. At random these are 0.50, 0.10 and 0.25. The
model was fitted on one half of the times of A100. Kernels on H100 have wgmma, of which
it knows nothing. Of rows the tables have times alone; to none of them anything was
fitted. Every row is stored in results/measured_kernels.jsonl.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import measured_kernels
import numpy as np
from measured_kernels import ATTENTION_SPACE, GPUS, Attention
from measured_times import shares
from real_times import CALIBRATION, HELD_BACK
from records import print_table, store

from alcop_mlir import hardware
from alcop_mlir.errors import optional
from alcop_mlir.tuning.fused import chain_model, row_model

LIMITS = (0.10, 0.25)


def main(arguments: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--half", default=HELD_BACK, choices=[CALIBRATION, HELD_BACK])
    parser.add_argument("--plot", type=Path, help="a picture, with matplotlib")
    parser.add_argument("--fit", action="store_true", help="constants, on one half")
    given = parser.parse_args(arguments)
    if given.fit:
        fit()
        return
    rows = [row for gpu in GPUS for row in of_attention(gpu, given.half)]
    rows += of_rows()
    show(rows)
    if given.plot:
        plot(rows, given.plot)
    print(f"raw records in {store('measured_kernels', rows).name}")


def of_attention(gpu: str, half: str) -> Iterator[dict[str, Any]]:
    """A row for each problem: what was measured and predicted, and the rank."""
    for one in measured_kernels.attention(gpu, half):
        times = {kernel: predicted(one, kernel) for kernel in ATTENTION_SPACE}
        known = np.array([time for time in times.values() if time is not None])
        mine = times[one.kernel]
        row = {"gpu": gpu, "what": "attention", "head": one.sizes.d, "rank": None}
        row |= {"measured": one.milliseconds, "predicted": mine}
        if mine is not None:
            before = (known < mine).mean() + (
                (known == mine).mean() - 1 / len(known)
            ) / 2
            row["rank"] = float(before)
        yield row


def predicted(one: Attention, kernel: measured_kernels.Kernel) -> float | None:
    """Milliseconds; None of kernels that do not fit, or spill."""
    shape = measured_kernels.tiles(one.sizes, kernel)
    if shape is None:
        return None
    target = measured_kernels.target_of(one.gpu)
    time = chain_model.predict(one.sizes, shape[0], target, shape[1])
    return None if time is None else time.seconds * 1e3


def of_rows() -> Iterator[dict[str, Any]]:
    """A row for each kernel of rows: what was measured and predicted."""
    for one in measured_kernels.rows():
        target = measured_kernels.row_target(one)
        time = row_model.predict(one.work, one.threads, one.block_threads, target)
        seconds = time.seconds
        if not one.is_launched:
            seconds -= time.parts["launch"]
        what = "rows" if one.is_launched else "rows, tuned"
        row = {"gpu": one.gpu, "what": what, "rank": None, "op": one.what}
        yield row | {"measured": one.milliseconds, "predicted": seconds * 1e3}


def fit() -> None:
    """The errors of times on A100 for constants near those of `hardware.py`."""
    names = ("SCORE_INSTRUCTIONS", "RESCALED_INSTRUCTIONS", "FRAGMENTS_SEEN")
    steps = ((2.0, 2.5, 3.0, 3.5), (1.5, 2.0, 2.5, 3.0), (0.25, 0.4, 0.5, 0.6))
    known = measured_kernels.attention("A100", CALIBRATION)
    found = []
    for values in itertools.product(*steps):
        for name, value in zip(names, values, strict=True):
            setattr(hardware, name, value)
        times = [(predicted(one, one.kernel), one.milliseconds) for one in known]
        errors = [np.log(time / measured) for time, measured in times if time]
        spread = np.exp(np.sqrt(np.mean(np.square(errors))))
        found.append([f"{spread:.4f}", f"{np.exp(np.mean(errors)):.3f}", *values])
    print_table(["root mean square", "mean", *names], sorted(found)[:10])


def show(rows: Sequence[dict[str, Any]]) -> None:
    """A line for each GPU and kind."""
    table = []
    for key in dict.fromkeys((row["gpu"], row["what"]) for row in rows):
        mine = [row for row in rows if (row["gpu"], row["what"]) == key]
        known = [row for row in mine if row["predicted"] is not None]
        errors = np.log([row["predicted"] / row["measured"] for row in known])
        cells = [f"{np.exp(errors.mean()):.2f}", f"{np.exp(errors.std()):.2f}"]
        ranks = [row["rank"] for row in known if row["rank"] is not None]
        found = (float(np.median(ranks)), *shares(ranks, LIMITS)) if ranks else ()
        cells += [f"{one:.2f}" for one in found] or [""] * (1 + len(LIMITS))
        table.append([*key, len(mine), len(mine) - len(known), *cells])
    heads = ["problems", "spilled", "mean", "spread", "rank", "10 %", "25 %"]
    print_table(["", "", *heads], table)


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Predicted over measured milliseconds."""
    pyplot: Any = optional("matplotlib.pyplot", "pictures need matplotlib", "plots")
    figure, axes = pyplot.subplots(figsize=(5, 5), layout="constrained")
    for key in dict.fromkeys((row["gpu"], row["what"]) for row in rows):
        mine = [row for row in rows if (row["gpu"], row["what"]) == key]
        known = [row for row in mine if row["predicted"] is not None]
        measured = [row["measured"] for row in known]
        axes.plot(
            measured,
            [row["predicted"] for row in known],
            "o",
            ms=4,
            label=" ".join(key),
        )
    ends = [f(row["measured"] for row in rows) for f in (min, max)]
    axes.plot(ends, ends, "k-", lw=0.5)
    axes.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="predicted, ms")
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1:])
