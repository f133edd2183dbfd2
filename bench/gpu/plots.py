"""Plots of a benchmark: a roofline, and the ratios to cuBLAS. Needs matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.gpu.benchmark import CUBLAS, TRITON
from bench.gpu.report import Measured, Run, ratio

_TERA = 1e12
_FORMATS = ("png", "svg")
_MARKS = (("ours", "o"), (CUBLAS, "x"), (TRITON, "+"))
_BAR_INCHES = 0.28  # of height for a shape


def is_possible() -> bool:
    """Whether matplotlib is installed."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def draw(run: Run, folder: Path, stem: str) -> list[Path]:
    """All plots, each as PNG and SVG; returns the files."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    # The same records give the same SVG.
    matplotlib.rcParams["svg.hashsalt"] = "alcop_mlir"
    pyplot = importlib.import_module("matplotlib.pyplot")
    paths = []
    for name, plot in (("roofline", _roofline), ("ratios", _ratios)):
        figure = plot(pyplot, run)
        for extension in _FORMATS:
            path = folder / f"{stem}-{name}.{extension}"
            metadata = {"Date": None} if extension == "svg" else None
            figure.savefig(path, dpi=120, metadata=metadata)
            paths.append(path)
        pyplot.close(figure)
    return paths


def _roofline(pyplot: Any, run: Run) -> Any:
    """Speed over operations per byte of the arrays, under the measured ceilings."""
    figure, axes = pyplot.subplots(figsize=(7, 5), layout="constrained")
    intensities = [shape.flops / shape.bytes for shape in run.shapes]
    for role, mark in _MARKS:
        points = [
            (intensity, shape.tflops(_seconds(shape, role)))
            for intensity, shape in zip(intensities, run.shapes, strict=True)
            if _seconds(shape, role) is not None
        ]
        if points:
            axes.plot(*zip(*points, strict=True), mark, label=role, markersize=5)
    _draw_ceilings(axes, run, intensities)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte of A, B and C")
    axes.set_ylabel("TFLOP/s")
    axes.set_title(str(run.about["device"]["gpu"]))
    axes.legend()
    return figure


def _draw_ceilings(axes: Any, run: Run, intensities: Sequence[float]) -> None:
    peak, copy = run.ceilings.get("mma.sync f16"), run.ceilings.get("copy")
    if not peak or not copy or not intensities:
        return
    ends = sorted({min(intensities), peak / copy, max(*intensities, peak / copy)})
    roof = [min(peak, copy * intensity) / _TERA for intensity in ends]
    axes.plot(ends, roof, "-", label="copy, mma.sync", color="0.5", linewidth=1)


def _ratios(pyplot: Any, run: Run) -> Any:
    """Bars of this compiler's speed by that of cuBLAS, shape by shape."""
    rows = [
        (shape.name, ratio(shape.ours, shape.seconds(CUBLAS)))
        for shape in reversed(run.shapes)
    ]
    known = [(name, value) for name, value in rows if value is not None]
    height = max(2.0, 1.0 + _BAR_INCHES * len(known))
    figure, axes = pyplot.subplots(figsize=(7, height), layout="constrained")
    axes.barh([name for name, _ in known], [value for _, value in known])
    axes.axvline(1.0, color="0.5", linewidth=1)
    axes.set_xlabel("speed relative to cuBLAS")
    axes.tick_params(axis="y", labelsize=7)
    axes.margins(y=0.01)
    return figure


def _seconds(shape: Measured, role: str) -> float | None:
    return shape.ours if role == "ours" else shape.seconds(role)
