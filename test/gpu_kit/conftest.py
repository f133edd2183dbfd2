"""Fixtures: a bundle of a few tiny kernels, a stand-in for a GPU, sessions on it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_gpu import FakeGpu, array_at
from tiny_kernels import items  # first: it makes `bench.gpu` known

from bench.gpu import build, pack
from bench.gpu.cuda_device import CudaDevice
from bench.gpu.maps import Map
from bench.gpu.records import Budget, Recorder
from bench.gpu.session import Session


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once for all tests."""
    folder = tmp_path_factory.mktemp("kit")
    path = folder / "kit.zip"
    assert build.build(path, "sm_80", folder / "kernels", 1, items()) == 0
    return path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """Stands in for CuPy during a test."""
    fake = FakeGpu()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    # There is no driver that encodes tensor maps.
    monkeypatch.setattr(Map, "encoded", lambda one, address: one.of(array_at(address)))
    return fake


@pytest.fixture
def session(bundle: Path, gpu: FakeGpu, tmp_path: Path) -> Callable[..., Session]:
    """Makes a session on the stand-in; all that it writes is in one folder."""

    def make(path: Path = bundle, seconds: float = 60.0, **options: Any) -> Session:
        return Session(
            kit=pack.read(path),
            device=CudaDevice(gpu),
            records=Recorder(tmp_path / "records.jsonl"),
            budget=Budget.of(seconds),
            jobs=0,
            pool_size=4999,
            **options,
        )

    return make
