"""alcop-certify: verdicts, exit status, JSON, bundles; and input that is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from alcop_mlir.tools import certify

sys.path.insert(0, str(Path(__file__).parents[1] / "certificate"))
from ring_kernels import Ring

SIZE = "n=0..2147483647"


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    file = tmp_path / "ring.ptx"
    file.write_text(Ring().text())
    return file


def test_a_proof(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ring.with_name("ring.json")
    assert certify.main([str(ring), "--require", SIZE, "-o", str(output)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        "ring",
        "verdict proven",
        "fresh yes: each load reads copies of one age, in groups",
    ]
    (found,) = json.loads(output.read_text())
    assert (found["entry"], found["threads"], found["shared_bytes"]) == (
        "ring",
        64,
        768,
    )
    assert found["requires"] == [
        {"parameter": "n", "low": 0, "high": 2147483647, "multiple": 1}
    ]


def test_a_certificate_is_checked(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ring.with_name("ring.json")
    assert certify.main([str(ring), "--require", SIZE, "-o", str(output)]) == 0
    capsys.readouterr()
    assert certify.main([str(ring), "--check", str(output)]) == 0
    assert "certificate holds" in capsys.readouterr().out
    ring.write_text(Ring(waits=2).text())
    assert certify.main([str(ring), "--check", str(output)]) == 1
    expected = "error: the certificate is of other PTX\n"
    assert capsys.readouterr().err == expected


def test_an_alarm(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring.write_text(Ring(waits=2).text())
    assert certify.main([str(ring), "--json"]) == 2
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["status"], found["finding"]["rule"]) == ("not proven", "not landed")


def test_outside(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ring.read_text()
    ring.write_text(text.replace("bar.sync 0;", "bar.red.popc.u32 %r7, 0, %p1;", 1))
    assert certify.main([str(ring)]) == 3
    out = capsys.readouterr().out
    assert "outside" in out
    assert "bar.red.popc.u32" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not proven: this is not PTX: no .version directive was found"),
        (".version 7.8\n.target sm_80\n", "not proven: 'ring.ptx' has no kernel"),
        (
            ".version 7.8\n.target sm_80\n.visible .entry f()\n{\n  $$$\n}\n",
            "not proven: PTX line 5: cannot read `$$$ }`",
        ),
    ],
)
def test_what_is_no_ptx_is_one_line(
    ring: Path,
    text: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ring.parent)
    ring.write_text(text)
    assert certify.main(["ring.ptx"]) == 1
    assert capsys.readouterr() == ("", f"error: {message}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--require", "n=1"], "expected NAME=LOW..HIGH or NAME=LOW..HIGH%N"),
        (["--require", "n=3..1"], "no number is in 'n=3..1'"),
        (["--require", "k=0..1"], "ring has no parameter 'k', it has in, out, n"),
        (["--kernel", "other"], "the PTX has no kernel 'other', it has ring"),
        (["--threads", "32"], "ring has blocks of 64 threads, got 32"),
    ],
)
def test_wrong_options(
    ring: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certify.main([str(ring), *options]) == 1
    assert message in capsys.readouterr().err


def test_a_bundle_says_what_its_kernels_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch_mlir")
    source = tmp_path / "matmul.mlir"
    source.write_text(MATMUL)
    schedule = "block=64,64,32 warp=32,32 stages=3,2"
    command = [sys.executable, "-m", "alcop_mlir", "compile", str(source)]
    options = ["--schedule", schedule, "--no-ptxas", "-o", str(tmp_path / "made.zip")]
    subprocess.run([*command, *options], check=True, capture_output=True)
    assert certify.main([str(tmp_path / "made.zip"), "--json"]) == 3
    found = {one["entry"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["f_matmul_rows16"]["status"] == "proven"
    assert certify.main([str(tmp_path / "made.zip"), "--shared", "1"]) == 1
    assert "--shared is for .ptx files" in capsys.readouterr().err


MATMUL = """
func.func @f(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>) {
  linalg.matmul ins(%A, %B : memref<?x?xf16>, memref<?x?xf16>)
                outs(%C : memref<?x?xf32>)
  return
}
"""
