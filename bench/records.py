"""Raw benchmark records: JSON lines in bench/results, so that tables can be remade."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
_PACKAGES = ("torch-mlir", "llvmlite", "numpy", "nvidia-cuda-nvcc")


def store(benchmark: str, records: Sequence[Mapping[str, Any]]) -> Path:
    """Append `records`, each with time, versions and machine; returns the file."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / ".gitignore").write_text("*\n")  # raw records stay on their machine
    path = RESULTS / f"{benchmark}.jsonl"
    common = {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }
    with path.open("a") as file:
        for record in records:
            file.write(json.dumps({**common, **record}) + "\n")
    return path


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns of text; all but the first flush right."""
    texts = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for text in texts:
        cells = [
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(text, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The output of `git describe`, in a git tree."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
