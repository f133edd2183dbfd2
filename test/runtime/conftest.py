"""Fixtures of the tests that launch kernels."""

from __future__ import annotations

import sys

import pytest
from fake_emulator import FakeEmulator


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> FakeEmulator:
    """Stands in for the emulator during a test."""
    fake = FakeEmulator()
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    return fake
