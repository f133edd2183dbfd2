"""Makes the tables of this folder from what others published; see README.md.

    python bench/measured/collect.py --sglang sglang-0.4.6-py3-none-any.whl
    python bench/measured/collect.py --hub CHECKOUT
    python bench/measured/collect.py --tokamax CHECKOUT
    python bench/measured/collect.py --liger CHECKOUT

The first is a wheel of SGLang's, the others are checkouts of AutoTuningAssociation's
benchmark_hub, of openxla's tokamax (one table for each GPU that the commit has) and of
linkedin's Liger-Kernel. The tables are what bench/measured_times.py and
bench/measured_kernels.py read.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import re
import statistics
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

# Folders of tokamax, table here; its files, whose names have changed.
_TUNED = "tokamax/data/autotuning"
TOKAMAX = {"nvidia_a100-sxm4-40gb": "A100", "nvidia_h100_80gb_hbm3": "H100"}
_ATTENTION = ("pallas_triton_flash_attention.json",)
_NORMALIZATION = ("pallas_triton_normalization.json", "triton_normalization.json")
ATTENTION_COLUMNS = (
    "batch", "length", "heads", "head", "causal", "bias",
    "block_q", "block_k", "stages", "warps", "milliseconds",
)  # fmt: skip
NORMALIZATION_COLUMNS = (
    "outer", "columns", "inner", "block_m", "block_n", "warps", "milliseconds",
)  # fmt: skip
_SHAPE = re.compile(r"(\w+)\[([\d,]+)\]")
_LIGER = "benchmark/data/all_benchmark_data.csv"
LIGER_COLUMNS = (
    "device", "op", "bytes", "arrays", "rows", "columns", "warps", "milliseconds",
)  # fmt: skip
# Of Liger: ops that go over rows held in registers, by provider, and how many arrays of
# all elements each reads and writes.
_ROW_OPS = {
    ("rms_norm", "liger"): 2,
    ("layer_norm", "liger"): 2,
    ("softmax", "liger"): 2,
    ("fused_add_rms_norm", "liger_fused_add_rms_norm"): 4,
}
_LIGER_WARPS, _LEAST_WARPS = ((32768, 32), (8192, 16), (2048, 8)), 4
_ROW_BYTES = {"torch.bfloat16": 2, "torch.float32": 4}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sglang", type=Path, help="a wheel")
    parser.add_argument("--hub", type=Path, help="a checkout")
    parser.add_argument("--tokamax", type=Path, help="a checkout")
    parser.add_argument("--liger", type=Path, help="a checkout")
    given = parser.parse_args()
    if given.sglang:
        text = _table(SGLANG_COLUMNS, sorted(_sglang(given.sglang)))
        (HERE / "sglang.csv").write_text(text)
    for path, name in HUB.items() if given.hub else ():
        packed = gzip.compress(_space(given.hub / path).encode(), 9, mtime=0)
        (HERE / f"{name}.csv.gz").write_bytes(packed)
    for device, gpu in TOKAMAX.items() if given.tokamax else ():
        for name, header, rows in _tokamax(given.tokamax / _TUNED / device):
            (HERE / f"{name}-{gpu}.csv").write_text(_table(header, rows))
    if given.liger:
        text = _table(LIGER_COLUMNS, _liger(given.liger / _LIGER))
        (HERE / "rows.csv").write_text(text)


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


def _tokamax(
    folder: Path,
) -> Iterator[tuple[str, Sequence[str], list[tuple[Any, ...]]]]:
    """The tables of a GPU that the checkout has: name, header, rows."""
    kinds = {
        "attention": (_ATTENTION, ATTENTION_COLUMNS, _attention),
        "normalization": (_NORMALIZATION, NORMALIZATION_COLUMNS, _normalization),
    }
    for name, (files, header, row) in kinds.items():
        for path in (folder / one for one in files):
            if path.exists():
                found = json.loads(path.read_text())
                made = (row(json.loads(one), best) for one, best in found.items())
                yield name, header, [one for one in made if one is not None]


def _attention(problem: Any, measured: Any) -> tuple[Any, ...] | None:
    """A row of its fastest kernel; None for other forms than the table has.

    These return more than the result, cap scores, share heads, or have kernels that go
    over a head in parts; and f16, which is as fast as bf16.
    """
    q, mask = problem["q"], problem["mask"]
    dtype, shape = _shape(q)
    is_other = problem["return_residuals"] or problem["logits_soft_cap"] is not None
    if is_other or len({q, problem["k"], problem["v"]}) > 1 or len(shape) != 4:
        return None
    if dtype != "bf16" or not measured:
        return None
    kernel, time = _fastest(measured)
    if kernel["split_k"] != 1 or kernel.get("block_d") not in (None, shape[3]):
        return None
    flags = int(mask["is_causal"]), int(problem["bias"] is not None)
    tile = (kernel[one] for one in ("block_q", "block_k", "num_stages", "num_warps"))
    return (*shape, *flags, *tile, time)


def _normalization(problem: Any, measured: Any) -> tuple[Any, ...] | None:
    """A row of its fastest kernel; None where it returns more than the result."""
    _, shape = _shape(problem["x"])
    if problem["return_residuals"] or not measured:
        return None
    axis = problem["axis"] % len(shape)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    kernel, time = _fastest(measured)
    tile = kernel["block_m"], kernel["block_n"] or 1, kernel["num_warps"]
    return (outer, shape[axis], inner, *tile, time)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    match = _SHAPE.fullmatch(text)
    assert match is not None, text
    return match[1], tuple(map(int, match[2].split(",")))


def _fastest(measured: Any) -> tuple[Any, float]:
    """The kernel, and the median of its times."""
    times = {
        one: statistics.median(of["evaluation_times_ms"])
        for one, of in measured.items()
    }
    best = min(times, key=lambda one: times[one])
    return json.loads(best), times[best]


def _liger(path: Path) -> Iterator[tuple[Any, ...]]:
    """A row for each op, GPU and size: one block for each row, of so many warps."""
    with path.open() as file:
        for row in csv.DictReader(file):
            arrays = _ROW_OPS.get((row["kernel_name"], row["kernel_provider"]))
            is_speed = row["metric_name"] == "speed"
            if (
                arrays is None
                or not is_speed
                or (row["kernel_operation_mode"] != "forward")
            ):
                continue
            setting = json.loads(row["extra_benchmark_config_str"])
            columns, time = int(row["x_value"]), float(row["y_value_50"])
            size = _ROW_BYTES[setting["dtype"]]
            kept = row["gpu_name"], row["kernel_name"], size, arrays, setting["M"]
            yield *kept, columns, _liger_warps(columns), f"{time:.6f}"


def _liger_warps(columns: int) -> int:
    """Of its rule for one block for each row, by the next power of two."""
    rounded = 1 << (columns - 1).bit_length()
    return next(
        (warps for least, warps in _LIGER_WARPS if rounded >= least), _LEAST_WARPS
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


if __name__ == "__main__":
    main()
