"""A sample of `fuzz_convolutions.py`; `make fuzz-conv` tries as many more as wanted."""

from __future__ import annotations

import fuzz_convolutions
import pytest

SAMPLE = range(1000, 1006)


@pytest.mark.parametrize("seed", SAMPLE)
def test_random_convolutions(seed: int) -> None:
    seen = fuzz_convolutions.try_form(seed)
    assert seen["cases"]


def test_most_forms_have_channels() -> None:
    """Of these, some are generic, and some have sizes known at run time only."""
    draws = map(fuzz_convolutions.seeded, range(200))
    forms = [fuzz_convolutions.draw_form(draw) for draw in draws]
    with_channels = [form for form in forms if "c" in form.operands[0]]
    assert len(with_channels) > len(forms) / 2
    assert sum(bool(form.open) for form in with_channels) > 10
    assert sum(not form.name for form in with_channels) > 30
