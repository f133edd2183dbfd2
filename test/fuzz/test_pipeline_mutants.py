"""Pipelined kernels with one synchronisation less: the verifier or a run finds it.

Of kernels of the fuzz test each barrier, wait and commit is dropped in turn, and each
wait lets one group more fly. What neither finds changes nothing that is read: a barrier
next to another, a wait for what was waited for. So that share is not 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attempts import PLAIN
from differential import Settings, compile_both, context, emitted, find, placed, run
from drawing import Case, draw_case
from text_kernel import kernel_text

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir
from alcop_mlir.errors import AlcopError
from alcop_mlir.verifier.check import check

BARRIER, WAIT = "gpu.barrier", "nvgpu.device_async_wait"
CASES = 4
# Of the mutants of a kind; what is not found is mostly right without it.
LEAST_SHARES = {"no barrier": 0.4, "no wait": 0.6, "later wait": 0.8}


def drop(op: Any) -> bool:
    op.erase()
    return True


def wait_later(op: Any) -> bool:
    """Let one group more fly."""
    count = op.attributes["numGroups"].value + 1 if "numGroups" in op.attributes else 1
    i32 = ir.IntegerType.get_signless(32)
    op.attributes["numGroups"] = ir.IntegerAttr.get(i32, count)
    return True


MUTATIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "no barrier": (BARRIER, drop),
    "no wait": (WAIT, drop),
    "later wait": (WAIT, wait_later),
}


def pipelined_cases(count: int) -> Iterator[tuple[Case, list[np.ndarray]]]:
    """Cases with pipelines of asynchronous copies, and what they compute."""
    seed = 0
    while count:
        case = draw_case(seed)
        seed += 1
        both = compile_both(kernel_text(case.kernel), case.settings)
        if "shared" in both.pipelined.levels:
            count -= 1
            yield case, run(case.kernel, both.plain, PLAIN)[0]


def mutants(text: str, settings: Settings) -> Iterator[tuple[str, Any]]:
    """Modules with one change, and its name."""
    for kind, (name, change) in MUTATIONS.items():
        count = len(find(placed(text, settings), name))
        for number in range(count):
            module = placed(text, settings)
            change(find(module, name)[number])
            yield kind, module


def found_by(module: Any, case: Case, expected: list[np.ndarray]) -> str:
    """What finds a mutant; "" if nothing does."""
    if check(module.operation):
        return "verifier"
    try:
        results, hazards = run(case.kernel, emitted(module, case.settings), case.mode)
    except AlcopError:
        return "run"
    wrong = [a.tobytes() != b.tobytes() for a, b in zip(expected, results, strict=True)]
    return "run" if hazards or any(wrong) else ""


def test_mutants_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: Counter[tuple[str, str]] = Counter()
    for case, expected in pipelined_cases(CASES):
        text = kernel_text(case.kernel)
        with context(), ir.Location.unknown(), diagnostics.collect():
            for kind, module in mutants(text, case.settings):
                seen[kind, found_by(module, case, expected)] += 1
    for kind, share in LEAST_SHARES.items():
        counts = {by: seen[kind, by] for by in ("verifier", "run", "")}
        print(kind, counts)
        total = sum(counts.values())
        assert total - counts[""] > share * total, (kind, counts)
