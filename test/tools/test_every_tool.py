"""`python -m alcop_mlir`, and completion in shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from alcop_mlir.tools import completion, every_tool

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/matmul_f16.mlir"


def test_the_package_runs_any_tool() -> None:
    command = [sys.executable, "-m", "alcop_mlir"]
    done = subprocess.run([*command, "opt"], input=b"module {}", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"module {\n}\n")
    done = subprocess.run([*command, "compile", "no.mlir"], capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: cannot read 'no.mlir'")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_without_a_tool_they_are_listed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert every_tool.main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: python -m alcop_mlir TOOL ...\n")
    for name, about in every_tool.TOOLS.items():
        assert f"  {name} " in text
        assert about in text


def test_names_of_commands_are_taken_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert every_tool.main(["alcop-opt", "--version"]) == 0
    assert capsys.readouterr().out.startswith("alcop-opt ")


def test_another_name_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert every_tool.main(["link"]) == 1
    assert capsys.readouterr() == (
        "",
        "error: unknown tool 'link', expected one of opt, compile, run, tune, "
        "certify, completion\n",
    )


# --- completion


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    pytest.importorskip("shtab")
    assert completion.main([shell]) == 0
    return capsys.readouterr().out


def test_bash_completes_options_passes_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As bash itself does when Tab is pressed."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    file = tmp_path / "completion"
    file.write_text(script("bash", capsys))
    (tmp_path / "some.mlir").touch()

    def completed(tool: str, *words: str) -> list[str]:
        name = f"_shtab_{tool.replace('-', '_')}"
        ask = (
            f"source {file}; COMP_WORDS=({tool} {' '.join(words)}); "
            f'COMP_CWORD={len(words)}; {name}; printf "%s\\n" "${{COMPREPLY[@]}}"'
        )
        done = subprocess.run(
            [bash, "-c", ask], cwd=tmp_path, capture_output=True, text=True
        )
        return [line.strip() for line in done.stdout.splitlines()]

    assert completed("alcop-compile", "--sch") == ["--schedule"]
    assert completed("alcop-compile", "--emit", "p") == ["ptx"]
    assert completed("alcop-run", "some") == ["some.mlir"]
    assert completed("alcop-tune", "--bud") == ["--budget"]
    assert completed("alcop-opt", "--alcop-place-w") == ["--alcop-place-waits"]
    assert completed("alcop-opt", "--mlir-pass-s") == ["--mlir-pass-statistics"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    assert "alcop-compile" in text
    assert "mlir-pass-statistics" in text


def test_completion_without_shtab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert completion.main(["bash"]) == 1
    message = "completion needs shtab: pip install 'alcop-mlir[completion]'"
    assert capsys.readouterr().err == f"error: {message}\n"
