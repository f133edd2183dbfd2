"""A sample of `fuzz_warp_roles.py`; `make fuzz-roles` tries as many as wanted."""

from __future__ import annotations

import fuzz_warp_roles
import pytest

# bf16 with A computed, in clusters; eight bits, through several tiles; batches with an
# epilogue.
SAMPLE = (1, 5, 8)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", SAMPLE)
def test_random_contractions_are_right_and_clean(seed: int) -> None:
    seen = fuzz_warp_roles.try_form(seed)
    assert (seen["wgmma"], seen["same bits"]) == (3, 1)


def test_most_forms_are_multiplied_by_wgmma() -> None:
    """What is drawn covers what there is."""
    draws = [fuzz_warp_roles.random.Random(seed) for seed in range(200)]
    forms = [fuzz_warp_roles.draw_form(draw) for draw in draws]
    assert {form.layout for form in forms} == {"nn", "nt", "tn", "tt"}
    assert {form.types for form in forms} == {*fuzz_warp_roles.TYPES}
    for name in ("mode=pingpong", "cluster=2", "raster=", "split_k="):
        assert any(name in form.schedule for form in forms)
    assert any(form.is_open and not form.has_aligned_rows for form in forms)
