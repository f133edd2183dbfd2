"""A sample of `fuzz_sizes.py`; `make fuzz-sizes` tries as many more as wanted."""

from __future__ import annotations

from pathlib import Path

import fuzz_sizes
import pytest

SAMPLE = (6, 10)  # operands transposed, a split along K
SIZES = 4  # of each form


@pytest.mark.parametrize("seed", SAMPLE)
def test_variants_at_the_borders_of_their_guards(seed: int) -> None:
    seen = fuzz_sizes.try_form(seed, SIZES)
    assert seen["cases"] == SIZES
    assert seen["same bits"]


def test_a_run_goes_on_where_the_last_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A form that fails is said, and stays failed."""
    tried: list[int] = []

    def try_form(seed: int) -> fuzz_sizes.Counter[str]:
        tried.append(seed)
        if seed == 1:
            raise AssertionError("seed 1, other bits")
        return fuzz_sizes.Counter({"cases": 12})

    monkeypatch.setattr(fuzz_sizes, "try_form", try_form)
    options = ["--state", str(tmp_path / "state.jsonl"), "--forms"]
    assert fuzz_sizes.main([*options, "1"]) == 0
    assert fuzz_sizes.main([*options, "3"]) == 1
    assert tried == [0, 1, 2]
    assert fuzz_sizes.main([*options, "3"]) == 1
    assert tried == [0, 1, 2]
    assert "cases: 24\n1 forms are wrong" in capsys.readouterr().out
