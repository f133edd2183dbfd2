"""A new element type, and a new target, are one row: what stands elsewhere knows them.

The package is copied, the row is added to the copy, and a script asserts there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "alcop_mlir"
ELEMENT_TYPE = """
    ElementType(
        name="f8E4M3",
        kind=FLOAT,
        bits=8,
        numpy="uint8",
        rounding=2.0**-4,
        largest=240.0,
        ptx="e4m3",
        tiny=2.0**-10,
        accumulator="f32",
        output_of="f32",
        ml_dtype="float8_e4m3",
    ),
"""
# The emulator's, which checks what was made by the other one.
SCALAR = """
    Scalar(
        name="e5m2",
        size=1,
        kind="f",
        dtype=UNSIGNED[1],
        decode=lambda bits: num.decode_f16(bits.astype(U16) << 8),
        largest=0x7B,
        accumulators=("f32",),
    ),
"""
TARGET = """
    Target(
        name="sm_87",
        device="Jetson AGX Orin",
        sms=16,
        shared_bytes_per_block=163 * 1024,
        shared_bytes_per_sm=164 * 1024,
        registers_per_sm=65536,
        threads_per_sm=1536,
        threads_per_block=1024,
        blocks_per_sm=16,
        clock_hz=1.3e9,
        tensor_f16_flops=42e12,
        dram_bytes_per_second=204.8e9,
        l2_bytes_per_second=1024 * 1.3e9,
        l2_bytes=4 * 2**20,
        l2_latency=100.0,
    ),
"""


def test_an_element_type_is_a_row(tmp_path: Path) -> None:
    """And one in the emulator; but for code that converts it, and multiplies it."""
    rows = [
        ("element_types.py", "_ROWS = (", ELEMENT_TYPE),
        ("runtime/emulator/ptx/scalars.py", "_FLOATS = (", SCALAR),
    ]
    run(tmp_path, rows, "new_element_type.py")


def test_a_target_is_a_row(tmp_path: Path) -> None:
    """But for what the emulator knows of it."""
    run(tmp_path, [("target.py", "TARGETS = (", TARGET)], "new_target.py")


def run(tmp_path: Path, rows: list[tuple[str, str, str]], script: str) -> None:
    """Run the script where the package's tables have rows after the lines given."""
    copy = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for table, head, row in rows:
        source = (copy / table).read_text()
        before, found, after = source.partition(f"\n{head}\n")
        assert found
        (copy / table).write_text(f"{before}{found}{row}{after}")
    own = {"PYTHONPATH": str(tmp_path), "ALCOP_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(HERE / script), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(copy / rows[0][0]))
