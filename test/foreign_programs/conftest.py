"""Builds the sources of this folder, once each; without nvcc the tests are skipped."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from cuda_programs import TARGETS

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The PTX of a source file, for the oldest target that has what is in it."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("needs nvcc")
    folder = tmp_path_factory.mktemp("ptx")

    @cache
    def build(file: str) -> str:
        to = folder / f"{file}.ptx"
        target = TARGETS.get(file, "sm_80")
        command = [compiler, "-std=c++17", f"-arch={target}", "-ptx", "-o", to]
        done = subprocess.run([*command, FOLDER / file], capture_output=True, text=True)
        if done.returncode:
            pytest.fail(done.stderr[:2000])
        return to.read_text()

    return build
