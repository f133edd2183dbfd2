"""The set-up script: when it has work to do, and what it says meanwhile."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import setup_env

WANT = {"root": "/a", "python": "3.12", "base": "/usr", "project": "0" * 64}


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the script has its environment."""
    folder = tmp_path / ".venv"
    folder.mkdir()
    monkeypatch.setattr(setup_env, "VENV", folder)
    monkeypatch.setattr(setup_env, "STAMP", folder / "setup.stamp")
    monkeypatch.setattr(setup_env, "LOG", folder / "setup.log")
    return folder


def test_finished_set_up_is_ready(venv: Path) -> None:
    setup_env.write_stamp({**WANT, "extras": "ptxas test"})
    done = setup_env.read_stamp()
    assert setup_env.is_ready(done, WANT, set())
    assert setup_env.is_ready(done, WANT, {"test"})
    assert not setup_env.is_ready(done, WANT, {"test", "lint"})


@pytest.mark.parametrize("torn", ["", "root=/a\npyth", "\x00\x00", None])
def test_broken_off_set_up_is_made_anew(venv: Path, torn: str | None) -> None:
    if torn is not None:
        (venv / "setup.stamp").write_text(torn)
    done = setup_env.read_stamp()
    assert not setup_env.is_ready(done, WANT, set())
    assert not setup_env.is_usable(done, WANT)


@pytest.mark.parametrize("key", ["root", "python", "base"])
def test_another_interpreter_or_place_needs_a_new_environment(key: str) -> None:
    done = {**WANT, key: "other"}
    assert not setup_env.is_ready(done, WANT, set())
    assert not setup_env.is_usable(done, WANT)


def test_changed_project_file_keeps_the_environment() -> None:
    done = {**WANT, "project": "1" * 64}
    assert not setup_env.is_ready(done, WANT, set())
    assert setup_env.is_usable(done, WANT)


def test_every_extra_is_known() -> None:
    text = setup_env.PROJECT.read_text("utf-8")
    _, _, table = text.partition("[project.optional-dependencies]\n")
    extras = re.findall(r"^(\w+) = ", table.partition("\n[")[0], re.MULTILINE)
    assert {"", *extras} == set(setup_env.DOWNLOAD_MB)


def test_unknown_extra_is_refused() -> None:
    with pytest.raises(setup_env.SetupError, match=r"no such extra: cuda11; .*cuda12"):
        setup_env.main({"cuda11"})


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        (
            "  Downloading torch_mlir-20261001-cp312-abi3-linux.whl (80.4 MB)",
            "downloading torch-mlir, 80.4 MB",
        ),
        (
            "  Downloading scheme://index/a/llvmlite-0.50.0-cp310.whl (59.7 MB)",
            "downloading llvmlite, 59.7 MB",
        ),
        ("  Downloading lit-23.1.5-py3-none-any.whl (111 kB)", ""),
        ("  Downloading rich-15.0.0-py3-none-any.whl.metadata (18 kB)", ""),
        ("Installing collected packages: a, b, c", "unpacking 3 packages"),
        ("Installing collected packages: alcop-mlir", ""),
        (
            "WARNING: Retrying (Retry(total=4, connect=None)) after ...",
            "no answer from the package index, trying again",
        ),
        ("Requirement already satisfied: numpy", ""),
        ("", ""),
    ],
)
def test_lines_of_pip_are_summed_up(line: str, meaning: str) -> None:
    assert setup_env.activity(line) == meaning


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["ERROR: No space left on device"], "pip: No space left on device"),
        (
            ["WARNING: Retrying (Retry(total=0))", "  ERROR: No matching ..."],
            "the package index does not answer",
        ),
        (
            ["ERROR: No matching distribution found for llvmlite"],
            "No matching distribution found for llvmlite, Python ",
        ),
        ([], "pip: no reason given"),
    ],
)
def test_failure_is_one_clear_line(lines: list[str], reason: str) -> None:
    assert setup_env.complaint(lines).startswith(reason)
    assert "\n" not in setup_env.complaint(lines)


def test_failing_pip_is_reported_and_changes_nothing(
    venv: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setup_env.write_stamp(WANT)
    monkeypatch.setattr(setup_env, "python", lambda: Path(sys.executable))
    with pytest.raises(setup_env.SetupError, match="no such option: --nonsense"):
        setup_env.run_pip(["install", "--nonsense"])
    assert "no such option" in (venv / "setup.log").read_text()
    assert capsys.readouterr().out == ""
    assert setup_env.read_stamp() == WANT


def test_environment_of_our_own_is_cleared(venv: Path) -> None:
    (venv / "bin").mkdir()
    (venv / "bin" / "python").write_text("")
    (venv / "lib64").symlink_to("bin")
    (venv / "setup.stamp").write_text("")
    (venv / "setup.log").write_text("before")
    setup_env.clear_environment()
    assert [entry.name for entry in venv.iterdir()] == ["setup.log"]


def test_environment_of_someone_else_is_left_unchanged(venv: Path) -> None:
    (venv / "pyvenv.cfg").write_text("")
    with pytest.raises(setup_env.SetupError, match="made by something else"):
        setup_env.clear_environment()
    assert (venv / "pyvenv.cfg").exists()


def test_lines_come_whole_whatever_the_chunks() -> None:
    program = "for c in 'ab\\ncd\\nef': print(c, end='', flush=True)"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        lines = [line for line in setup_env.lines_of(process) if line]
    assert lines == ["ab", "cd", "ef"]
