"""What tests of placed results share: verdicts, and certificates that are changed."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

from alcop_mlir.certificate.api import Report
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified, launched_kernels

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case


def verdict(case: Case, text: str, name: str | None = None) -> Report:
    """On a kernel of a case, the only one or that of the name, with other PTX."""
    kernels = launched_kernels(case.bundle)
    (one,) = (k for k in kernels if name in (None, k.name))
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    return certified(text, *given, one.promised, one.stated)


def assert_proven(case: Case) -> None:
    """All of the claim is proven of a case's kernel, and its certificate checks."""
    report = verdict(case, case.ptx)
    assert report.verdict == "proven", report.misplaced
    assert report.certificate is not None
    check(case.ptx, report.certificate)


def assert_misplaced(case: Case, old: str, new: str) -> None:
    """Of a case's kernel with another text in one place, which misbehaves."""
    text = case.ptx.replace(" \t", " ")
    assert text.count(old) == 1
    text = text.replace(old, new)
    assert case.behaviour(text) != "clean"
    report = verdict(case, text)
    assert report.verdict != "proven"
    assert not report.is_placed


def restated(found: dict[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    """A certificate that states another value at a path, sealed again."""
    changed = copy.deepcopy(found)
    inner = changed["placed"]
    for one in path[:-1]:
        inner = inner[one]
    inner[path[-1]] = value
    return sealed(changed)
