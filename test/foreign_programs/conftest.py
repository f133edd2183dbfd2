"""Builds the sources of this folder, once each; without nvcc the tests are skipped."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The PTX of a source file, for sm_80."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("needs nvcc")
    folder = tmp_path_factory.mktemp("ptx")

    @cache
    def build(file: str) -> str:
        to = folder / f"{file}.ptx"
        command = [compiler, "-std=c++17", "-arch=sm_80", "-ptx", "-o", to]
        done = subprocess.run([*command, FOLDER / file], capture_output=True, text=True)
        if done.returncode:
            pytest.fail(done.stderr[:2000])
        return to.read_text()

    return build
