"""alcop-compile: what it writes and prints, and its errors."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from devices import has_ptxas

from alcop_mlir.runtime import bundle
from alcop_mlir.target import target_names
from alcop_mlir.tools import compile as tool

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MATMUL = str(EXAMPLES / "matmul_f16.mlir")
SMALL = "block=128,128,32 warp=64,64 stages=3,2"


class Stdin:
    """As `sys.stdin`, with bytes behind it."""

    def __init__(self, text: str):
        self.buffer = io.BytesIO(text.encode())


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_a_bundle_is_written_and_summed_up(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kernel, schedule, pipelines and resources, in a few lines."""
    path = tmp_path / name
    assert tool.main([MATMUL, "--schedule", SMALL, "-o", str(path)]) == 0
    function = bundle.load(path).function()
    (kernel,) = function.kernels
    assert (kernel.grid, kernel.block) == ((4, 4, 1), (128, 1, 1))
    lines = capsys.readouterr().out.splitlines()
    resources = "49152 bytes shared"
    if has_ptxas():
        resources = f"{kernel.registers} registers, 0 bytes spilled, {resources}"
        assert bundle.load(path).code_of(kernel).cubin is not None
    else:
        resources += " (registers unknown: no ptxas)"
    assert lines == [
        "matmul_f16 for sm_80",
        "  arrays     arg0  512x1024xf16  in",
        "             arg1  1024x512xf16  in",
        "             arg2  512x512xf32   out",
        "  kernel     matmul_f16: 4 x 4 blocks of 128 threads",
        f"  schedule   {SMALL}",
        "  from       given",
        "  pipelines  arg0 128x32xf16  shared    3 stages",
        "             arg1 32x128xf16  shared    3 stages",
        "             arg0 64x16xf16   register  2 stages",
        "             arg1 16x64xf16   register  2 stages",
        f"  resources  {resources}",
        f"wrote {path}",
    ]


@pytest.mark.sample(6)
@pytest.mark.parametrize("target", target_names())
@pytest.mark.parametrize(
    "example", sorted(path.stem for path in EXAMPLES.glob("*.mlir"))
)
def test_every_example_is_compiled_for_every_target(
    tmp_path: Path, target: str, example: str
) -> None:
    """And the bundle says so."""
    path = tmp_path / "out.zip"
    file = EXAMPLES / f"{example}.mlir"
    assert tool.main([str(file), "--target", target, "-o", str(path)]) == 0
    stored = bundle.load(path)
    assert stored.target.name == target
    for kernel in stored.function().kernels:
        assert f".target {target}" in stored.code_of(kernel).ptx
        if kernel.schedule is not None:  # else it adds up parts of K
            assert {p.level for p in kernel.pipelines} == {"shared", "register"}


def test_the_cubin_may_be_left_out(tmp_path: Path) -> None:
    """Then nothing is known of registers."""
    path = tmp_path / "out"
    assert tool.main([MATMUL, "--no-ptxas", "-o", str(path)]) == 0
    stored, ptx = sorted(item.name for item in path.iterdir())
    assert stored == "manifest.json"
    assert re.fullmatch(r"matmul_f16_kernels-[0-9a-f]{16}\.ptx", ptx)
    manifest = json.loads((path / "manifest.json").read_text())
    kernel = manifest["functions"][0]["launches"][0]["variants"][0]["kernels"][0]
    assert kernel.get("registers") is None


def test_without_an_output_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary says how to store it."""
    monkeypatch.chdir(tmp_path)
    assert tool.main([MATMUL]) == 0
    assert "nothing written: give -o DIR or -o FILE.zip" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_ptx_and_mlir_may_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stdout or in a file; the input may be stdin."""
    monkeypatch.setattr(sys, "stdin", Stdin(Path(MATMUL).read_text()))
    assert tool.main(["-", "--emit=ptx"]) == 0
    ptx = capsys.readouterr().out
    assert ".visible .entry matmul_f16(" in ptx
    monkeypatch.setattr(sys, "stdin", Stdin(Path(MATMUL).read_text()))
    assert tool.main(["--emit=ptx", "-o", str(tmp_path / "k.ptx")]) == 0
    assert (tmp_path / "k.ptx").read_text() == ptx
    assert tool.main([MATMUL, "--emit=mlir"]) == 0
    mlir = capsys.readouterr().out
    assert "gpu.launch_func" in mlir
    assert "nvvm.mma.sync" in mlir


def test_remarks_go_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here: four stages for a contraction of two K steps."""
    file = tmp_path / "short.mlir"
    file.write_text(Path(MATMUL).read_text().replace("1024", "64"))
    assert tool.main([str(file), "--schedule", SMALL.replace("3,2", "4,2")]) == 0
    captured = capsys.readouterr()
    assert "short.mlir:15:3: remark: 2 shared stages instead of 4" in captured.err
    assert "shared    2 stages" in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.mlir"], "cannot read 'no.mlir': No such file or directory"),
        ([str(EXAMPLES)], f"cannot read '{EXAMPLES}': Is a directory"),
        (
            [MATMUL, "--target", "sm_70"],
            "unknown target 'sm_70', expected one of sm_80",
        ),
        (
            [MATMUL, "--targe", "sm_80"],
            "unrecognized arguments: --targe sm_80; see alc",
        ),
        (
            [MATMUL, "--fast"],
            "unrecognized arguments: --fast; see alcop-compile --help",
        ),
        ([MATMUL, "--emit=exe"], "argument --emit: invalid choice: 'exe'"),
        ([MATMUL, "--schedule", "tile=1"], 'schedule: unknown "tile"'),
        (
            [MATMUL, "--schedule", "stages=0,1"],
            "schedule.stages[0]: expected an integer from 1 to 8, got 0",
        ),
        (
            [MATMUL, "--schedule", "block=384,128,32 warp=64,64 stages=3,2"],
            f"{MATMUL}:15:3: alcop-select-schedule: schedule 'block=384,128,32 "
            "warp=64,64 stages=3,2' needs about 89088 registers per block",
        ),
        (
            [MATMUL, "--target=sm_89", "--schedule", SMALL.replace("3,2", "8,2")],
            f"{MATMUL}:15:3: alcop-select-schedule: schedule 'block=128,128,32 "
            "warp=64,64 stages=8,2' needs 131072 bytes of shared memory, sm_89 has "
            "101376 per block",
        ),
        ([MATMUL, "-o", "-"], "a bundle cannot go to stdout, give -o DIR or"),
        (
            [MATMUL, "-o", "x.tar.gz"],
            "'x.tar.gz': a bundle is a directory or a .zip, no .gz archive",
        ),
        ([MATMUL, "-o", "x.ZIP"], "'x.ZIP': a bundle is a directory or a .zip, no .Z"),
        ([MATMUL, "-o", str(EXAMPLES)], f"'{EXAMPLES}' exists and is not a bundle"),
        (
            [MATMUL, "-o", "no/such/out"],
            "cannot write 'no/such/out': no directory 'no/such'",
        ),
        ([MATMUL, "-o", "no/out.zip"], "cannot write 'no/out.zip': no directory 'no'"),
        ([MATMUL, "--emit=ptx", "-o", "no/k"], "cannot write '/"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`error: ...` on stderr, status 1, nothing on stdout, no file."""
    monkeypatch.chdir(tmp_path)
    assert tool.main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", ":1:1: custom op 'hello' is unknown"),
        (
            "func.func @f() {\n  foo.bar\n}",
            ":2:3: 'foo.bar' is in no dialect that is known",
        ),
        ("func.func @f(%x: index) { return %x }", ":1:36: expected ':'"),
        ("\x01\x02", ":1:1: unexpected character"),
        ("", "nothing to compile: no function computes anything"),
        ("func.func private @f()", "nothing to compile"),
        (
            "func.func @f(%a: index) {\n  return\n}",
            ":1:1: argument 1 of 'f' is index, expected a memref: pass a number as one",
        ),
    ],
)
def test_files_that_cannot_be_compiled(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line and column, and no bundle."""
    file = tmp_path / "input.mlir"
    file.write_text(text)
    assert tool.main([str(file), "-o", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert [item.name for item in tmp_path.iterdir()] == ["input.mlir"]


def test_an_interrupt_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C: status 130, as a shell expects, and no traceback."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tool, "_run", interrupt)
    assert tool.main([MATMUL]) == 130
    assert capsys.readouterr() == ("", "")


def test_the_command_runs_as_a_process() -> None:
    """The exit status arrives, and a reader that stops early does no harm."""
    command = [sys.executable, "-m", "alcop_mlir.tools.compile"]
    failed = subprocess.run([*command, "no.mlir"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr == "error: cannot read 'no.mlir': No such file or directory\n"
    with subprocess.Popen(
        [*command, MATMUL, "--emit=ptx"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


UNALIGNED = """
func.func @odd(%A: memref<100x77xf16>, %B: memref<77x99xf16>, %C: memref<100x99xf32>) {
  linalg.matmul ins(%A, %B : memref<100x77xf16>, memref<77x99xf16>)
                outs(%C : memref<100x99xf32>)
  return
}
"""


def test_what_was_carried_out_stands_beside_what_was_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of 77 elements are not aligned for asynchronous copies."""
    file, path = tmp_path / "odd.mlir", tmp_path / "odd.zip"
    file.write_text(UNALIGNED)
    assert tool.main([str(file), "-o", str(path)]) == 0
    (kernel,) = bundle.load(path).function().kernels
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"  schedule   {kernel.schedule}")
    assert kernel.schedule
    assert kernel.schedule.stages > (1, 1)
    assert lines[at + 1 : at + 5] == [
        "             carried out: stages=1,2",
        "  from       analytical model",
        "  pipelines  arg0 f16  register  2 stages",
        "             arg1 f16  register  2 stages",
    ]


def test_what_a_schedule_does_not_say_is_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main([MATMUL, "--no-ptxas"]) == 0
    (chosen,) = re.findall(r"schedule +(.*) stages=", capsys.readouterr().out)
    assert tool.main([MATMUL, "--schedule", "stages=2,1", "--no-ptxas"]) == 0
    said = capsys.readouterr().out
    assert f"  schedule   {chosen} stages=2,1\n" in said
    assert "  from       given in part, else analytical model\n" in said


def test_an_endless_number_in_a_schedule_is_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tool.main([MATMUL, "--schedule", "raster=" + "9" * 5000]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: schedule: cannot read 'raster=999")
    assert said.count("\n") == 1
    assert len(said) < 200
