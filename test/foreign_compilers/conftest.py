"""Programs of other compilers, built once each; skipped where there is none.

`make test-foreign` installs the compilers in an environment of their own, and says in
ALCOP_FOREIGN_PYTHON where it is.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from findings import programs


@pytest.fixture(scope="session")
def built() -> programs.Builder:
    """All programs of a compiler for a target, by their names."""

    @cache
    def build(compiler: str, capability: int) -> dict[str, programs.Program]:
        try:
            python = programs.interpreter(compiler)
            made = programs.programs(compiler, python, capability)
            return {one.name: one for one in made}
        except programs.Missing as error:
            pytest.skip(str(error))

    return build
