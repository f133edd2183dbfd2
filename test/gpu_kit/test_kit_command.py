"""The command line: exit statuses, and processes that die or hang."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fake_gpu import FakeGpu
from tiny_kernels import ROOT

from bench.gpu import __main__ as command
from bench.gpu import records, supervise
from bench.gpu.records import Budget, Recorder


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of that name can be imported."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.mark.parametrize("name", command.COMMANDS)
def test_without_a_gpu_one_line_says_so(
    name: str, bundle: Path, no_cupy: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([name, str(bundle)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("no GPU: CuPy is not installed")
    assert said.err.count("\n") == 1
    assert not said.out


def test_cupy_that_sees_no_gpu(
    bundle: Path, gpu: FakeGpu, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.cuda.is_available = lambda: False
    assert command.main(["check", str(bundle)]) == 2
    assert capsys.readouterr().err == "no GPU: CuPy sees none\n"


def test_without_a_bundle_one_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["bench", str(tmp_path / "none.zip")]) == 2
    assert capsys.readouterr().err.startswith("error: no such file")


@pytest.mark.parametrize("name", command.COMMANDS)
def test_a_whole_run_with_the_emulator_instead_of_a_gpu(
    name: str, bundle: Path, tmp_path: Path
) -> None:
    """As users call it, except for the device."""
    out, data = tmp_path / "out", tmp_path / "data.jsonl.gz"
    arguments = [name, str(bundle), "--device", "emulator", "--out", str(out)]
    arguments += ["--data", str(data), "--minutes", "1"]
    if name == "check":
        arguments += ["--only", "probe mma|stages"]
    assert command.main(arguments) == 0
    (path,) = out.glob("*.jsonl")
    rows = records.read(path)
    assert rows[0]["device"]["gpu"] == "none: the emulator instead"
    assert records.exit_status(rows) == 0
    assert not list(out.glob("*.current"))
    if name == "bench":
        page = tmp_path / "page.md"
        page.write_text("<!-- measured: begin --><!-- measured: end -->")
        assert command.main(["report", str(path), "--write", str(page)]) == 0
        assert "the emulator instead" in page.read_text()
    if name == "collect":
        assert data.exists()


def test_the_kit_needs_only_numpy(bundle: Path, tmp_path: Path) -> None:
    """A check runs while CuPy and all else of this environment are hidden."""
    program = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        known = sys.stdlib_module_names | {{"numpy", "alcop_mlir", "bench"}}
        if name.partition(".")[0] not in known:
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from bench.gpu.__main__ import main
sys.exit(main(["check", {str(bundle)!r}, "--device", "emulator", "--only", "stages",
               "--out", {str(tmp_path)!r}]))
"""
    command_line = [sys.executable, "-c", program]
    done = subprocess.run(
        command_line, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def worker(tmp_path: Path, body: str) -> tuple[list[str], Path]:
    """Arguments for a worker that runs `body` with `recorder`, and its records."""
    path = tmp_path / "records.jsonl"
    script = tmp_path / "worker.py"
    script.write_text(
        f"import os, sys, time\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from pathlib import Path\nfrom bench.gpu.records import Recorder\n"
        f"recorder = Recorder(Path({str(path)!r}))\n{body}\n"
    )
    return [str(script)], path


ROWS = """
for key in ("first", "second", "third"):
    if recorder.start("kernel", key):
        if key == "second":
            {trouble}
        recorder.add("kernel", key, ok=True)
"""


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("os.abort()", "the process died (SIGABRT)"),
        ("os._exit(3)", "the process died (exit status 3)"),
        ("time.sleep(60)", "took too long, and was stopped"),
    ],
)
def test_a_row_that_takes_its_process_along(
    tmp_path: Path, trouble: str, said: str
) -> None:
    arguments, path = worker(tmp_path, ROWS.format(trouble=trouble))
    assert supervise.run(arguments, path, Budget.of(60.0), limit=1.0) == ""
    rows = {row["key"]: row for row in records.read(path)}
    assert rows["second"]["error"] == said
    assert rows["first"]["ok"]
    assert rows["third"]["ok"]


def test_a_process_whose_gpu_is_lost_is_replaced(tmp_path: Path) -> None:
    trouble = f"recorder.failed('kernel', key, 'fault'); os._exit({supervise.LOST})"
    arguments, path = worker(tmp_path, ROWS.format(trouble=trouble))
    assert supervise.run(arguments, path, Budget.of(60.0)) == ""
    assert [row["ok"] for row in records.read(path)] == [True, False, True]


def test_a_process_that_dies_before_any_row(tmp_path: Path) -> None:
    arguments, path = worker(tmp_path, "raise ValueError('out of order')")
    why = supervise.run(arguments, path, Budget.of(60.0))
    assert why == "the process died (exit status 1)"


def test_when_the_time_is_over_the_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "_AFTER_DEADLINE", 0.3)
    arguments, path = worker(tmp_path, "time.sleep(60)")
    assert supervise.run(arguments, path, Budget.of(0.2)) == "the time was over"


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    recorder = Recorder(path)
    recorder.add("kernel", "one", ok=True)
    with path.open("a") as file:
        file.write('{"kind": "ker')
    assert [row["key"] for row in records.read(path)] == ["one"]
    path.write_text(json.dumps({"no": "kind"}) + "\n")
    with pytest.raises(records.ConfigError, match="no record of this kit"):
        records.read(path)
