"""Makes the tables of this folder from what others published; see README.md.

    python bench/measured/collect.py --sglang sglang-0.4.6-py3-none-any.whl
    python bench/measured/collect.py --hub CHECKOUT

The first is a wheel of SGLang's, the second a checkout of AutoTuningAssociation's
benchmark_hub. The tables are what bench/measured_times.py reads.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SGLANG_COLUMNS = (
    "device", "dtype", "m", "n", "k",
    "block_m", "block_n", "block_k", "group_m", "warps", "stages",
)  # fmt: skip
_NAME = re.compile(
    r".*/quantization/configs/N=(\d+),K=(\d+),device_name=(NVIDIA[^,]*),"
    r"dtype=(\w+),block_shape=\[\d+, ?\d+\]\.json"
)
_CHOSEN = (
    "BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K",
    "GROUP_SIZE_M", "num_warps", "num_stages",
)  # fmt: skip
# File in the hub, table here: convolutions and matmuls on GPUs of NVIDIA.
_OLD = "currently_unused/cachefiles/KernelTuner data"
HUB = {
    "cachefiles/convolution_milo/A100.json.gz": "convolution-A100",
    "cachefiles/convolution_milo/A4000.json.gz": "convolution-A4000",
    "cachefiles/convolution_milo/A6000.json.gz": "convolution-A6000",
    f"{_OLD}/convolution/RTX_3090.json.gz": "convolution-RTX3090",
    f"{_OLD}/gemm/RTX_2080_Ti.json.gz": "gemm-RTX2080Ti",
    f"{_OLD}/gemm/RTX_3060_laptop.json.gz": "gemm-RTX3060",
    f"{_OLD}/gemm/RTX_3090.json.gz": "gemm-RTX3090",
}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sglang", type=Path, help="a wheel")
    parser.add_argument("--hub", type=Path, help="a checkout")
    given = parser.parse_args()
    if given.sglang:
        text = _table(SGLANG_COLUMNS, sorted(_sglang(given.sglang)))
        (HERE / "sglang.csv").write_text(text)
    for path, name in HUB.items() if given.hub else ():
        packed = gzip.compress(_space(given.hub / path).encode(), 9, mtime=0)
        (HERE / f"{name}.csv.gz").write_bytes(packed)


def _sglang(wheel: Path) -> Iterator[tuple[Any, ...]]:
    """A row for each M of each file: what was the fastest."""
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            n, k, device, dtype = match.groups()
            for m, best in json.loads(files.read(name)).items():
                chosen = (best[one] for one in _CHOSEN)
                yield device, dtype, int(m), int(n), int(k), *chosen


def _space(path: Path) -> str:
    """All that was measured, without parameters that have one value; milliseconds."""
    found = json.loads(gzip.decompress(path.read_bytes()))
    values = found["tune_params"]
    names = [name for name, of in values.items() if len(of) > 1]
    rows = (
        (*(one[name] for name in names), f"{one['time']:.5g}")
        for one in found["cache"].values()
        if isinstance(one["time"], (int, float))  # else it failed
    )
    return _table((*names, "milliseconds"), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


if __name__ == "__main__":
    main()
