"""alcop-certify: verdicts, exit status, JSON, bundles; and input that is none."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alcop_mlir.compilation.certification import certify_bundle
from alcop_mlir.errors import ConfigError, LaunchError
from alcop_mlir.runtime.bundle import Bundle, Code, load
from alcop_mlir.runtime.certificates import required_certificates
from alcop_mlir.runtime.launch import Program
from alcop_mlir.tools import certify, compile

sys.path.insert(0, str(Path(__file__).parents[1] / "certificate"))
from ring_kernels import Ring, steady_ring
from test_same_stores import ASSUMED
from test_same_stores import kernel as same_stores

SIZE = "n=0..2147483647"
ARRAYS = ("--array", "in=256*n", "--array", "out=256")


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    file = tmp_path / "ring.ptx"
    file.write_text(steady_ring())
    return file


def test_a_proof(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ring.with_name("ring.json")
    given = [str(ring), "--require", SIZE, *ARRAYS, "-o", str(output)]
    assert certify.main(given) == 4
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        "ring",
        "verdict proven in part: placed not shown",
        "fresh yes: each load reads copies of one age, in groups",
    ]
    (found,) = json.loads(output.read_text())
    assert "placed not shown: nothing says what it computes" in lines
    assert (found["entry"], found["threads"], found["shared_bytes"]) == (
        "ring",
        64,
        768,
    )
    address = {"low": 0, "high": 2**47 - 1, "multiple": 1}
    assert found["requires"] == [
        {"parameter": "in", **address},
        {"parameter": "n", "low": 0, "high": 2147483647, "multiple": 1},
        {"parameter": "out", **address},
    ]


def test_a_proof_in_part(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each turn copies the tile that a remainder names, not the next one."""
    ring.write_text(Ring().text())
    assert certify.main([str(ring), "--require", SIZE, *ARRAYS]) == 4
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "verdict proven in part: steady, placed not shown" in lines
    assert certify.main([str(ring), "--require", SIZE, *ARRAYS, "--json"]) == 4
    (found,) = json.loads(capsys.readouterr().out)
    assert found["status"] == "proven in part"
    assert found["missing"] == ["steady", "placed"]


def test_arrays_that_are_too_small(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [
        str(ring),
        "--require",
        SIZE,
        "--array",
        "in=256*n-4",
        "--array",
        "out=256",
    ]
    assert certify.main(given) == 4
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "verdict proven in part: bounded, placed not shown" in lines
    (why,) = (line for line in lines if line.startswith("bounded"))
    assert why.startswith("bounded not shown: line ")
    assert "it may be behind the array of in: cp.async.ca.shared.global" in why


def test_superfluous_synchronization(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By line, and in JSON."""
    text = ring.read_text().replace("bar.sync 0;", "bar.sync 0;\n  bar.sync 0;")
    ring.write_text(text)
    line = text[: text.index("bar.sync")].count("\n") + 1
    given = [str(ring), "--require", SIZE, *ARRAYS, "--superfluous"]
    assert certify.main(given) == 4
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"not needed line {line}: bar.sync 0" in lines
    assert f"line {line + 1}: bar.sync 0, where those above stay" in lines
    assert certify.main([*given, "--json"]) == 4
    (found,) = json.loads(capsys.readouterr().out)
    assert found["superfluous"][:2] == [
        {"line": line, "text": "bar.sync 0", "together": True},
        {"line": line + 1, "text": "bar.sync 0", "together": False},
    ]


def test_a_certificate_is_checked(
    ring: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ring.with_name("ring.json")
    given = [str(ring), "--require", SIZE, *ARRAYS, "-o", str(output)]
    assert certify.main(given) == 4
    capsys.readouterr()
    assert certify.main([str(ring), "--check", str(output)]) == 0
    out = capsys.readouterr().out
    assert "certificate holds: proven in part: placed not shown" in out
    assert "counters of loops stay in half of the range of their registers" in out
    ring.write_text(Ring(waits=2).text())
    assert certify.main([str(ring), "--check", str(output)]) == 1
    expected = "error: the certificate is of other PTX\n"
    assert capsys.readouterr().err == expected


def test_stores_of_the_same(ring: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are taken to be only where that is said, also where it is checked."""
    ring.write_text(same_stores())
    output = ring.with_name("ring.json")
    assert certify.main([str(ring)]) == 2
    assert certify.main([str(ring), "--same-stores", "-o", str(output)]) == 4
    assert ASSUMED in capsys.readouterr().out
    assert certify.main([str(ring), "--check", str(output)]) == 1
    assert capsys.readouterr().err == f"error: the certificate assumes that {ASSUMED}\n"
    assert certify.main([str(ring), "--check", str(output), "--same-stores"]) == 0


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
        (["--array", "n"], "expected PARAM=BYTES, as A=2*M*K, got 'n'"),
        (["--array", "in=n//2"], "expected PARAM=BYTES, as A=2*M*K, got 'in=n//2'"),
        (["--array", "k=8"], "ring has no parameter 'k', it has in, out, n"),
        (["--grid", "1,1"], "expected X,Y,Z, as N/64*M/64,1,1, got '1,1'"),
        (
            [
                "--computes",
                "out[8m,8n]:4 = in[8m,8k]:2 * b[8k,8n]:2",
                "--grid",
                "1,1,1",
            ],
            "ring has no parameter 'b', it has in, out, n",
        ),
        (["--kernel", "other"], "the PTX has no kernel 'other', it has ring"),
        (["--threads", "32"], "ring has blocks of 64 threads, got 32"),
    ],
)
def test_wrong_options(
    ring: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certify.main([str(ring), *options]) == 1
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with certificates of two kernels: for aligned rows, and for others."""
    pytest.importorskip("torch_mlir")
    folder = tmp_path_factory.mktemp("made")
    (folder / "matmul.mlir").write_text(MATMUL)
    schedule = "block=32,32,32 warp=16,16 stages=2,1"
    command = [str(folder / "matmul.mlir"), "--schedule", schedule, "--no-ptxas"]
    assert compile.main([*command, "--certify", "-o", str(folder / "made.zip")]) == 0
    return folder / "made.zip"


def test_a_bundle_says_what_its_kernels_need(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert certify.main([str(made), "--json"]) == 0
    found = {one["entry"]: one for one in json.loads(capsys.readouterr().out)}
    assert [found[n]["status"] for n in found] == ["proven"] * 2
    assert certify.main([str(made), "--shared", "1"]) == 1
    assert "--shared is for .ptx files" in capsys.readouterr().err


def arrays(size: int) -> tuple[np.ndarray, ...]:
    """What a call of the matmul takes."""
    square = (size, size)
    one = np.ones(square, np.float16)
    return one, one.copy(), np.zeros(square, np.float32)


def without_proof(bundle: Bundle, kernel: str) -> Bundle:
    """The bundle as it is where one kernel is outside of the model."""
    code: dict[str, Code] = {}
    for name, one in bundle.code.items():
        found = json.loads(one.certificates or b"[]")
        for listed in found:
            if listed["entry"] == kernel:
                listed |= {"status": "outside", "certificate": None}
        code[name] = replace(one, certificates=json.dumps(found).encode())
    return replace(bundle, code=code)


def test_the_launcher_may_require_certificates(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = without_proof(load(made), "f_matmul")
    aligned, odd = arrays(16), arrays(3)
    Program(bundle)(*odd)
    monkeypatch.setenv("ALCOP_REQUIRE_CERTIFICATE", "1")
    Program(bundle)(*aligned)
    assert aligned[2][0, 0] == 16
    with pytest.raises(LaunchError, match="its certificate says: outside"):
        Program(bundle)(*odd)
    bare = replace(
        bundle, code={n: replace(c, certificates=None) for n, c in bundle.code.items()}
    )
    with pytest.raises(LaunchError, match="alcop-compile --certify makes them"):
        Program(bare)(*aligned)
    other = {n: replace(c, ptx=f"{c.ptx}\n") for n, c in bundle.code.items()}
    with pytest.raises(LaunchError, match="the certificate is of other PTX"):
        Program(replace(bundle, code=other))(*aligned)
    monkeypatch.setenv("ALCOP_REQUIRE_CERTIFICATE", "yes")
    with pytest.raises(ConfigError, match="expected 0 or 1"):
        Program(bundle)


def test_what_a_certificate_requires_of_sizes(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = load(made)
    monkeypatch.setenv("ALCOP_REQUIRE_CERTIFICATE", "1")
    certificates = required_certificates(bundle)
    function = bundle.function()
    variant = next(
        one for one in function.launches[0].variants if "rows16" in one.kernels[0].name
    )
    launch = (function, [variant], variant.kernels)
    assert certificates is not None
    certificates.check(*launch, {"M": 8, "N": 8, "K": 8})
    with pytest.raises(LaunchError, match="from 0 to 2147483647"):
        certificates.check(*launch, {"M": 8, "N": 8, "K": 2**31})
    small = [replace(one, dtype="i8") for one in function.parameters]
    other = replace(function, parameters=tuple(small))
    with pytest.raises(LaunchError, match="is for other arrays or blocks"):
        certificates.check(other, *launch[1:], {"M": 8, "N": 8, "K": 8})
    (one,) = variant.kernels
    flat = replace(one, block=(one.block[0] // 2, 2, 1))
    folded = replace(variant, kernels=(flat,))
    with pytest.raises(LaunchError, match="blocks have more than one dimension"):
        certificates.check(function, [folded], (flat,), {"M": 8, "N": 8, "K": 8})


def test_blocks_of_two_dimensions_are_outside(made: Path) -> None:
    bundle = load(made)
    function = bundle.function()
    launch = function.launches[0]
    folded = [
        replace(
            variant,
            kernels=tuple(
                replace(one, block=(one.block[0] // 2, 2, 1)) for one in variant.kernels
            ),
        )
        for variant in launch.variants
    ]
    launches = (replace(launch, variants=tuple(folded)),)
    other = replace(bundle, functions=(replace(function, launches=launches),))
    reports = certify_bundle(other, 60)
    assert {one.why for one in reports} == {"a block of more than one dimension"}


MATMUL = """
func.func @f(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>) {
  linalg.matmul ins(%A, %B : memref<?x?xf16>, memref<?x?xf16>)
                outs(%C : memref<?x?xf32>)
  return
}
"""
