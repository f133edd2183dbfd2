"""A cache of its own for every test of the tuner, and no GPU that tests depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.tuning import gpus


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ALCOP_GPU", raising=False)
    monkeypatch.setattr(gpus, "local", lambda: None)
    return tmp_path / "cache"
