"""Tables from the records of benchmarks: Markdown, for a terminal and for the docs.

ours            the fastest kernel of this compiler at the shape
by model        the one whose schedule the compiler chose by itself
unpipelined     the fastest with one stage at both levels
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alcop_mlir.errors import ConfigError
from bench.gpu import records
from bench.gpu.benchmark import CUBLAS, TRITON
from bench.gpu.records import Row

# The roles of the lists; named here too, so that a report needs no list.
MODEL = "model"
ABLATION = {
    "1,1": "none",
    "2,1": "two stages",
    "S,1": "multi-stage",
    "S,2": "multi-stage, multi-level",
}
OURS = (MODEL, *ABLATION, "raster", "split_k", "wgmma")
PAPER = ("paper", "paper batched")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_TERA = 1e12


@dataclass
class Measured:
    """All competitors at one shape: seconds and schedule by role, the fastest each."""

    group: str
    name: str
    flops: float
    bytes: float
    fastest: dict[str, tuple[float, str]] = field(default_factory=dict)

    def add(self, role: str, seconds: float, schedule: str) -> None:
        """Add a time; the smallest is kept."""
        if role not in self.fastest or seconds < self.fastest[role][0]:
            self.fastest[role] = seconds, schedule

    def seconds(self, *roles: str) -> float | None:
        """The fastest of those roles; None where there is none."""
        times = [self.fastest[role][0] for role in roles if role in self.fastest]
        return min(times) if times else None

    @property
    def ours(self) -> float | None:
        """The fastest of this compiler's kernels."""
        return self.seconds(*OURS)

    @property
    def schedule(self) -> str:
        """That of the fastest of this compiler's kernels."""
        mine = [self.fastest[r] for r in OURS if r in self.fastest]
        return min(mine)[1] if mine else ""

    def tflops(self, seconds: float | None) -> float | None:
        """10^12 operations per second."""
        return None if seconds is None else self.flops / seconds / _TERA


@dataclass(frozen=True)
class Run:
    """The results of one benchmark.

    ceilings: operations per second of mma.sync by its dtype, bytes per second of "copy"
    """

    about: Row
    shapes: tuple[Measured, ...]
    ceilings: Mapping[str, float]
    drift: tuple[float, ...]
    failures: int


def load(path: Path) -> Run:
    """The benchmark at `path`; ConfigError where it is none."""
    rows = records.read(path)
    about = next((row for row in rows if row["kind"] == records.RUN), None)
    if about is None or about.get("command") != "bench":
        raise ConfigError(f"'{path}' holds no benchmark")
    shapes: dict[str, Measured] = {}
    for row in rows:
        if row["kind"] != "time" or "seconds" not in row:
            continue
        key = f"{row['problem']} {row['layout']}"
        one = shapes.setdefault(
            key, Measured(row["group"], row["problem"], _flops(row), row["bytes"])
        )
        one.add(row["role"], row["seconds"], row.get("schedule", ""))
    ceilings: dict[str, float] = {}
    for row in rows:
        if row["kind"] == "ceiling" and row.get("ok"):
            value = row.get("bytes_per_second") or row["tflops"] * _TERA
            ceilings[row["what"]] = max(value, ceilings.get(row["what"], 0.0))
    drift = [r["seconds"] for r in rows if r["kind"] == "drift" and r.get("ok")]
    failed = len(records.failures(rows))
    return Run(about, tuple(shapes.values()), ceilings, tuple(drift), failed)


def markdown(run: Run) -> str:
    """The whole report."""
    parts = [_machine(run), _summary(run), _shape_table(run), _ablation_table(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def geomean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the values that are not None."""
    known = [value for value in values if value]
    if not known:
        return None
    return math.exp(math.fsum(map(math.log, known)) / len(known))


def ratio(one: float | None, other: float | None) -> float | None:
    """How many times as fast the first is, by seconds of both."""
    return None if one is None or other is None else other / one


def write_into(page: Path, text: str) -> None:
    """Put `text` between the marks of a page; ConfigError where they are missing."""
    content = page.read_text()
    before, begin, rest = content.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"'{page}' has no lines '{BEGIN}' and '{END}'")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def _flops(row: Mapping[str, Any]) -> float:
    return 2.0 * math.prod(row["shape"].values())


def _machine(run: Run) -> str:
    device, bundle = run.about["device"], run.about["bundle"]
    versions = ", ".join(
        f"{name} {device[name]}"
        for name in ("driver", "cuda_runtime", "cupy", "numpy", "python")
        if name in device
    )
    text = (
        f"{run.about['time'][:10]}, {device['gpu']}; {versions}; kernels by "
        f"{bundle['compiler']} ({bundle['hash']}) for {bundle['target']}."
    )
    if run.failures:
        text += f" {run.failures} row(s) failed, see the records."
    return text


def _summary(run: Run) -> str:
    """Geometric means by group, the ceilings, the drift."""
    groups = list(dict.fromkeys(shape.group for shape in run.shapes))
    choices: list[tuple[str, Callable[[Measured], bool]]] = [
        ("the paper's, both", lambda shape: shape.group in PAPER)
    ]
    choices += [(name, lambda s, name=name: s.group == name) for name in groups]
    lines = []
    for name, chosen in choices:
        mine = [shape for shape in run.shapes if chosen(shape)]
        if mine:
            lines.append([name, str(len(mine)), *map(_number, _ratios(mine))])
    header = ["geometric mean over", "shapes", "ours / cuBLAS", "by model / cuBLAS"]
    header += ["ours / Triton", "pipelined / unpipelined", "the most"]
    parts = [_table(header, lines), *_ceilings(run)]
    return "\n\n".join(parts)


def _ratios(shapes: Sequence[Measured]) -> list[float | None]:
    pipelined = [
        ratio(s.seconds(MODEL, "2,1", "S,1", "S,2"), s.seconds("1,1")) for s in shapes
    ]
    return [
        geomean(ratio(s.ours, s.seconds(CUBLAS)) for s in shapes),
        geomean(ratio(s.seconds(MODEL), s.seconds(CUBLAS)) for s in shapes),
        geomean(ratio(s.ours, s.seconds(TRITON)) for s in shapes),
        geomean(pipelined),
        max((value for value in pipelined if value), default=None),
    ]


def _ceilings(run: Run) -> list[str]:
    lines = [
        f"Ceiling of {name} in the same run: "
        + (f"{value / _TERA:.2f} TB/s, read and written." if name == "copy" else "")
        + (f"{value / _TERA:.0f} TFLOP/s." if name != "copy" else "")
        for name, value in run.ceilings.items()
    ]
    if run.drift:
        change = max(run.drift) / min(run.drift) - 1
        lines.append(f"The same cuBLAS matmul changed by {change:.1%} during the run.")
    return lines


def _shape_table(run: Run) -> str:
    header = ["shape", "ours", "by model", "cuBLAS", "Triton", "ours / cuBLAS"]
    header += ["ours / Triton", "pipelined / not", "of mma.sync", "schedule of ours"]
    lines = []
    for shape in run.shapes:
        ours, peak = shape.ours, run.ceilings.get("mma.sync f16")
        share = None
        if ours is not None and peak:
            share = shape.flops / ours / peak
        times = (ours, *(shape.seconds(role) for role in (MODEL, CUBLAS, TRITON)))
        lines.append(
            [
                shape.name,
                *(_number(shape.tflops(time), 1) for time in times),
                _number(ratio(ours, shape.seconds(CUBLAS))),
                _number(ratio(ours, shape.seconds(TRITON))),
                _number(_ratios([shape])[3]),
                "" if share is None else f"{share:.0%}",
                f"`{shape.schedule}`",
            ]
        )
    return "TFLOP/s:\n\n" + _table(header, lines)


def _ablation_table(run: Run) -> str:
    """Speed of the fastest kernel of each kind by that of the unpipelined one."""
    shapes = [s for s in run.shapes if s.seconds("1,1") and s.seconds("S,2")]
    if not shapes:
        return ""
    lines = [
        [s.name, *(_number(ratio(s.seconds(r), s.seconds("1,1"))) for r in ABLATION)]
        for s in shapes
    ]
    means = [
        _number(geomean(ratio(s.seconds(r), s.seconds("1,1")) for s in shapes))
        for r in ABLATION
    ]
    header = ["shape", *ABLATION.values()]
    text = "Speed by pipelining, the fastest tile of each, relative to none:\n\n"
    return text + _table(header, [*lines, ["geometric mean", *means]])


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [list(header), ["---", *["---:"] * (len(header) - 1)], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
