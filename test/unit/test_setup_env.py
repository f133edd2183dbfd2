"""scripts/setup_env.sh: when pip is called, with a Python that only takes notes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKE = """#!/bin/sh
case "$*" in
  *ensurepip*) exit ${VENV_STATUS:-0} ;;
  *" -m venv "*) echo venv >>notes; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
  *" -m pip "*) sleep ${NAP:-0}; echo "${*##* }" >>notes; exit ${PIP_STATUS:-0};;
  *) echo "$BASE" ;;
esac
"""


class Checkout:
    """A folder with the script, a project file and the fake interpreter."""

    def __init__(self, folder: Path):
        self.folder, self.venv = folder, folder / ".venv"
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "setup_env.sh", folder / "scripts")
        (folder / "pyproject.toml").write_text("test = []\nlint = []\n")
        self.python = folder / "python"
        self.python.write_text(FAKE)
        self.python.chmod(0o755)

    def start(self, *extras: str, **variables: str) -> subprocess.Popen[str]:
        known = {"PYTHON": str(self.python), "BASE": str(self.python)}
        return subprocess.Popen(
            ["sh", "scripts/setup_env.sh", *extras],
            cwd=self.folder,
            env=os.environ | known | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *extras: str, **variables: str) -> str:
        """The notes taken meanwhile, or the error."""
        process = self.start(*extras, **variables)
        _, error = process.communicate(timeout=30)
        notes = self.notes()
        assert (process.returncode == 0) == (error == ""), error
        return error or notes

    def notes(self) -> str:
        path = self.folder / "notes"
        text = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        return " ".join(text.split())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_pip_installs_what_is_new_and_nothing_twice(checkout: Checkout) -> None:
    assert checkout.run("test") == "venv .[test]"
    assert checkout.run("test") == ""
    assert checkout.run("test", "lint") == ".[test,lint]"
    assert checkout.run("lint") == ""
    (checkout.folder / "pyproject.toml").write_text("test = ['x']\n")
    assert checkout.run("test") == ".[test]"


def test_environment_is_made_anew_for_another_interpreter(checkout: Checkout) -> None:
    checkout.run("test")
    other = checkout.folder / "other"
    shutil.copy(checkout.python, other)
    assert checkout.run("test", BASE=str(other)) == "venv .[test]"


@pytest.mark.parametrize("left", ["", "elsewhere python3"])
def test_broken_off_environment_is_made_anew(checkout: Checkout, left: str) -> None:
    checkout.run("test")
    (checkout.venv / "setup.stamp").write_text(left)
    assert checkout.run("test") == "venv .[test]"


def test_interpreter_that_is_gone_is_replaced(checkout: Checkout) -> None:
    checkout.run("test")
    (checkout.venv / "bin" / "python").unlink()
    assert checkout.run("test") == "venv .[test]"


def test_environment_of_someone_else_is_left_unchanged(checkout: Checkout) -> None:
    checkout.venv.mkdir()
    assert checkout.run("test") == (
        "error: set-up failed: .venv was made by something else: move it out of the "
        "way\n"
    )
    assert list(checkout.venv.iterdir()) == []


def test_failing_pip_keeps_the_environment(checkout: Checkout) -> None:
    error = "error: set-up failed: the reason is among pip's last lines\n"
    assert checkout.run("test", PIP_STATUS="1") == error
    assert checkout.run("test") == ".[test]"


@pytest.mark.parametrize(
    ("extra", "variables", "message"),
    [
        ("cuda11", {}, "pyproject.toml has no extra 'cuda11'"),
        ("test", {"VENV_STATUS": "1"}, "has no venv: apt-get install python3-venv, or"),
        ("test", {"BASE": ""}, "is missing, or older than Python 3.10"),
    ],
)
def test_what_cannot_be_set_up_is_one_line(
    checkout: Checkout, extra: str, variables: dict[str, str], message: str
) -> None:
    error = checkout.run(extra, **variables)
    assert error.startswith("error: set-up failed: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock")
def test_a_second_set_up_waits_for_the_first(checkout: Checkout) -> None:
    both = [checkout.start("test", NAP="0.5") for _ in range(2)]
    said = "".join(process.communicate(timeout=30)[0] for process in both)
    assert checkout.notes() == "venv .[test]"
    assert said.count("waiting for another set-up of .venv") == 1


def test_every_extra_of_the_makefile_is_known() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in ("compiler", "tuning", "test", "lint", "cuda12", "cuda13"):
        assert f"\n{extra} = [" in project
