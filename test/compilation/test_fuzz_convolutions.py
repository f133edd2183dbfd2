"""A sample of `fuzz_convolutions.py`; `make fuzz-conv` tries as many more as wanted."""

from __future__ import annotations

import fuzz_convolutions
import pytest

SAMPLE = range(1000, 1008)


@pytest.mark.parametrize("seed", SAMPLE)
def test_random_convolutions(seed: int) -> None:
    seen = fuzz_convolutions.try_form(seed)
    assert seen["cases"] or seen["refused"]


def test_most_are_convolutions_of_tensor_cores() -> None:
    """What is drawn has channels often enough, few of them open sizes that it cannot."""
    forms = [
        fuzz_convolutions.draw_form(fuzz_convolutions.seeded(n)) for n in range(200)
    ]
    with_channels = [form for form in forms if "c" in form.operands[0]]
    assert len(with_channels) > len(forms) / 2
    assert sum(bool(form.open) for form in with_channels) > 10
    assert sum(not form.name for form in with_channels) > 30
