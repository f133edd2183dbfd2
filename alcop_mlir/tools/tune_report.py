"""alcop-tune report: pictures of the records, PNG and SVG, drawn by matplotlib."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir import files
from alcop_mlir.errors import ConfigError, optional
from alcop_mlir.target import find_target
from alcop_mlir.tuning.analytical import PARTS, Prediction, predict
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record

_FORMATS = ("png", "svg")
_Key = tuple[str, str, Problem]


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw into `folder`; returns the files written. ConfigError where that fails."""
    groups = _groups(records)
    if not groups:
        raise ConfigError("nothing is recorded, there is nothing to draw")
    pyplot = _pyplot()
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for device in sorted({device for device, _, _ in groups}):
            mine = {key: group for key, group in groups.items() if key[0] == device}
            for name, plot in (
                ("best-so-far", _best_so_far),
                ("predicted-measured", _predicted),
                ("latency", _latency),
            ):
                figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
                plot(axes, mine)
                axes.set_title(f"{axes.get_title()} ({device})")
                for kind in _FORMATS:
                    written.append(folder / f"{name}-{device}.{kind}")
                    figure.savefig(written[-1], dpi=120)
                pyplot.close(figure)
    except OSError as error:
        raise ConfigError(f"cannot write '{folder}': {files.reason(error)}") from None
    return written


def _pyplot() -> Any:
    optional("matplotlib", "the report needs matplotlib", "plots").use("Agg")
    return importlib.import_module("matplotlib.pyplot")


def _groups(records: Iterable[Record]) -> dict[_Key, list[Record]]:
    """Measurements by device, target and problem, in the order they were made."""
    groups: dict[_Key, list[Record]] = defaultdict(list)
    for record in records:
        if record.seconds is not None:
            setting = record.setting
            groups[setting.device, setting.target, record.problem].append(record)
    return groups


def _best_so_far(axes: Any, groups: dict[_Key, list[Record]]) -> None:
    for (_, target, problem), group in groups.items():
        times = np.array([record.seconds for record in group], np.float64)
        best = times.min() / np.minimum.accumulate(times)
        trials = range(1, len(best) + 1)
        axes.step(trials, best, where="post", label=f"{problem}, {target}")
    labels = {"xlabel": "trials", "ylabel": "speed, of the best recorded"}
    axes.set(title="Best so far", ylim=(0, 1.05), **labels)
    _legend(axes, groups)


def _predicted(axes: Any, groups: dict[_Key, list[Record]]) -> None:
    ends: list[float] = []
    for (_, target, problem), group in groups.items():
        pairs = [
            (prediction.seconds[0] * 1e6, (record.seconds or 0.0) * 1e6)
            for record, prediction in _predictions(group)
        ]
        if pairs:
            predicted, measured = zip(*pairs, strict=True)
            axes.scatter(predicted, measured, s=9, label=f"{problem}, {target}")
            ends += [*predicted, *measured]
    if ends:
        line = [min(ends), max(ends)]
        axes.plot(line, line, color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log", title="Predicted and actual time")
    axes.set(xlabel="analytical model, us", ylabel=f"{next(iter(groups))[0]}, us")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}")
    _legend(axes, groups)


def _latency(axes: Any, groups: dict[_Key, list[Record]]) -> None:
    """How the time of the fastest schedule of each problem divides into parts."""
    rows = [
        (f"{problem}\n{target}: {record.schedule}", prediction)
        for (_, target, problem), group in groups.items()
        for record, prediction in _predictions(
            [min(group, key=lambda record: record.seconds or 0.0)]
        )
    ]
    axes.figure.set_figheight(2 + 0.5 * len(rows))
    left = np.zeros(len(rows))
    for part in PARTS:
        values = np.array([prediction.parts[part][0] * 1e6 for _, prediction in rows])
        axes.barh([label for label, _ in rows], values, left=left, label=part)
        left = left + values
    axes.tick_params(axis="y", labelsize=6)
    axes.set(title="Latency of the fastest, by the analytical model", xlabel="us")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))


def _predictions(group: Iterable[Record]) -> Iterator[tuple[Record, Prediction]]:
    """Each record that is still legal, and its prediction by the model."""
    for record in group:
        problem, target = record.problem, find_target(record.setting.target)
        legal = Candidates.legal([record.schedule], problem, target)
        if len(legal):
            yield record, predict(problem, legal, target)


def _legend(axes: Any, groups: dict[_Key, list[Record]]) -> None:
    if len(groups) <= 12:
        axes.legend(fontsize=7)
