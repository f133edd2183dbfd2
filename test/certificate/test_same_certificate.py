"""A kernel's certificate is the same each time, in whichever order sets are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_BENCH = Path(__file__).resolve().parents[2] / "bench"
_PRINTED = """
import sys
from certificate_kernels import CASES
from alcop_mlir.compilation.certification import certified

(case,) = (one for one in CASES if one.name == "nt bf16 K open 2,2")
one = case.launched
given = one.name, one.threads, one.shared_bytes, dict(one.requirements), 60
report = certified(case.ptx, *given, one.promised, one.stated)
print(report.verdict, report.certificate["sha256"])
"""


def certificate(seed: int) -> str:
    """What a process prints whose sets have an order of their own."""
    env = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", _PRINTED]
    done = subprocess.run(
        command, env=env, cwd=_BENCH, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_certificate_does_not_depend_on_the_order_of_sets() -> None:
    first = certificate(0)
    assert first.startswith("proven ")
    assert first == certificate(1)
