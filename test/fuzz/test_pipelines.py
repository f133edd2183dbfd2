"""Differential test: pipelining changes no bit of any kernel, and makes no hazard.

Random loop kernels are compiled as they are and pipelined, and run on the emulator. A
failure is shrunk, and printed as `.mlir` with all that is needed to run it again.
`make fuzz` tries as many more as wanted: `fuzz.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attempts import Tally, try_case, try_cases
from differential import Settings, compile_both, run
from drawing import Case, draw_case
from fuzz import main
from kernels import Buffer, Kernel, Loop
from shrinking import shrunk
from text_kernel import kernel_text

SHARDS = 8  # run at the same time where there are so many workers
CASES = 256  # of all shards; `make fuzz` tries as many as one likes
# Of all cases; more than these are pipelined, else the test tests little.
LEAST_SHARES = {"shared": 0.35, "register": 0.3, "any": 0.55}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_pipelining_changes_nothing(
    shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a pass that crashes leaves a file
    tally = try_cases(range(shard, CASES, SHARDS))
    print("\n".join(tally.lines()))
    assert not tally.wrong, tally.wrong
    for what, share in LEAST_SHARES.items():
        assert tally.seen[what] > share * tally.seen["cases"], (what, tally.seen)


def test_a_wrong_pipeline_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazards and bits tell a wrong pipeline from a right one."""
    monkeypatch.chdir(tmp_path)
    buffer = Buffer("f32", 1, ("scalar",), partner=-1)
    kernel = Kernel(64, (Loop((buffer,), trips=7, dynamic=True),))
    case = Case(kernel, Settings((3, 1)), ("late", "lockstep"))
    assert try_case(case) == (frozenset({"shared"}), "")
    good = compile_both(kernel_text(case.kernel), case.settings).pipelined
    expected, _ = run(case.kernel, good)

    without_barriers = replace(good, ptx=good.ptx.replace("bar.sync", "//"))
    _, hazards = run(case.kernel, without_barriers)
    assert "read-after-write" in str(hazards[0])

    early = replace(good, ptx=good.ptx.replace("cp.async.wait_group", "//"))
    results, _ = run(case.kernel, early)
    assert any(np.any(a != b) for a, b in zip(expected, results, strict=True))


def test_the_same_number_gives_the_same_case() -> None:
    assert draw_case(7) == draw_case(7)
    assert draw_case(7) != draw_case(8)


def test_a_failing_case_is_shrunk() -> None:
    """To one that still fails, and from which nothing more can be left out."""

    def fails(case: Case) -> bool:
        if case.kernel.threads < 32:
            raise ValueError("no such case")
        return any(len(loop.buffers) > 1 for loop in case.kernel.loops)

    failing = next(case for seed in range(99) if fails(case := draw_case(seed)))
    simple = shrunk(failing, fails)
    assert [len(loop.buffers) for loop in simple.kernel.loops] == [2]
    assert simple.kernel.threads == 32


def test_a_run_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make fuzz` tries no program twice, and sums up all of them."""
    import fuzz

    tried: list[int] = []

    def count(seeds: range) -> Tally:
        tried.extend(seeds)
        return Tally(seconds=1.0).counting("cases", len(seeds))

    monkeypatch.setattr(fuzz, "try_cases", count)
    state = tmp_path / "state.jsonl"
    options = [f"--state={state}", "--jobs=0"]
    assert main(["--programs=60", *options]) == 0
    assert tried == list(range(60))
    state.write_text(state.read_text() + '{"first": 50, "cou')  # it was interrupted
    assert main(["--programs=150", *options]) == 0
    assert sorted(tried) == [*range(150)]
    assert "150 programs" in capsys.readouterr().out
