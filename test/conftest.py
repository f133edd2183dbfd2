"""What holds for all pytest tests: the `gpu` marker, and reproducible examples."""

from __future__ import annotations

import os
import tempfile

import pytest
from devices import has_gpu
from hypothesis import settings

# The user's own records and models must not decide what tests see.
os.environ["ALCOP_CACHE_DIR"] = tempfile.mkdtemp(prefix="alcop-test-cache-")

# The same examples everywhere, and no test fails because a machine was busy.
# HYPOTHESIS_PROFILE=search looks for new counter-examples instead.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none."""
    for_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if for_gpu and not has_gpu():
        skip = pytest.mark.skip(reason="needs CuPy and a CUDA device")
        for item in for_gpu:
            item.add_marker(skip)
