"""alcop-run: what it prints, and how it reports wrong results."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.emulation import Emulation
from alcop_mlir.tools import compile as compile_tool
from alcop_mlir.tools import run as tool

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MATMUL = str(EXAMPLES / "matmul_f16.mlir")
SMALL = """
func.func @small(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf32>) {
  linalg.matmul ins(%A, %B : memref<32x32xf16>, memref<32x32xf16>)
                outs(%C : memref<32x32xf32>)
  return
}
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A file with a matmul that takes little time."""
    file = tmp_path / "small.mlir"
    file.write_text(SMALL)
    return str(file)


@pytest.fixture(autouse=True)
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same output everywhere."""
    monkeypatch.setitem(sys.modules, "cupy", None)


def rows(text: str) -> dict[str, str]:
    """The labelled lines, those of a label joined."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines()[1:]:
        label = line[2:13].strip() or label
        found[label] = "\n".join(filter(None, [found.get(label, ""), line[13:]]))
    return found


@pytest.mark.parametrize(
    "example", sorted(path.stem for path in EXAMPLES.glob("*.mlir"))
)
def test_every_example_runs_and_is_right(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the emulator, which also finds no hazard."""
    assert tool.main([str(EXAMPLES / f"{example}.mlir")]) == 0
    shown = rows(capsys.readouterr().out)
    first, second, *_ = shown["check"].splitlines()
    assert re.fullmatch(
        r"OK: max relative error \d\.\de-\d\d, tolerance \d\.\de-\d\d", first
    )
    assert re.fullmatch(r"\d+ of \d+ elements are NaN or infinite, as expected", second)


def test_the_demo_shows_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    """Schedule, pipelines, device, time and check."""
    schedule = "block=128,128,32 warp=64,64 stages=3,2"
    assert tool.main([MATMUL, "--schedule", schedule, "--target=sm_90"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("matmul_f16 for sm_90\n")
    shown = rows(text)
    assert shown["schedule"] == schedule
    assert shown["pipelines"].splitlines() == [
        "arg0 128x32xf16  shared    3 stages",
        "arg1 32x128xf16  shared    3 stages",
        "arg0 64x16xf16   register  2 stages",
        "arg1 16x64xf16   register  2 stages",
    ]
    assert shown["device"] == "emulator"
    assert re.fullmatch(r"[\d.]+ m?s", shown["time"])
    assert shown["check"].startswith("OK: max relative error ")


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_a_bundle_runs_like_its_source(
    small: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same lines, but for the time."""
    path = str(tmp_path / name)
    assert compile_tool.main([small, "-o", path]) == 0
    capsys.readouterr()
    shown = []
    for file in (small, path):
        assert tool.main([file]) == 0
        shown.append(rows(capsys.readouterr().out))
        del shown[-1]["time"]
    assert shown[0] == shown[1]


def test_repeats_are_timed(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The median is shown; the check is that of the first run."""
    assert tool.main([small, "--repeat", "5", "--seed", "7"]) == 0
    shown = rows(capsys.readouterr().out)
    assert re.fullmatch(
        r"[\d.]+ m?s, median of 5, quartiles [\d.]+% apart", shown["time"]
    )
    assert shown["check"].startswith("OK")


def test_the_check_may_be_left_out(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the reference is not computed."""
    monkeypatch.setattr(checking, "evaluate", None)
    assert tool.main([small, "--no-check"]) == 0
    assert "check" not in rows(capsys.readouterr().out)


def test_a_wrong_result_fails(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1, and how far it is off."""
    evaluate = checking.evaluate

    def one_element_off(*arguments: Any) -> dict[str, Any]:
        results = evaluate(*arguments)
        for result in results.values():
            result.values[3, 4] += 0.25
        return results

    monkeypatch.setattr(checking, "evaluate", one_element_off)
    assert tool.main([small]) == 1
    captured = capsys.readouterr()
    assert rows(captured.out)["check"].startswith("FAILED: max relative error ")
    assert captured.err == ""


def test_the_seed_makes_the_inputs(
    small: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Zero unless another is given."""
    seeds = []
    random_arrays = checking.random_arrays

    def remember(function: Function, *given: Any) -> Any:
        seeds.append(given)
        return random_arrays(function, *given)

    monkeypatch.setattr(checking, "random_arrays", remember)
    assert tool.main([small]) == tool.main([small, "--seed", "42"]) == 0
    assert seeds == [(0, "mixed"), (42, "mixed")]


UNKNOWN = """
  func.func @f(%A: memref<16x16xf32>, %B: memref<16x16xi8>) {
    linalg.map {arith.fptosi} ins(%A : memref<16x16xf32>) outs(%B : memref<16x16xi8>)
    return
  }"""


def test_what_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], small: str
) -> None:
    """NaN and infinity, and undefined elements were not; on request, plain ones."""
    path = tmp_path / "unknown.mlir"
    path.write_text(UNKNOWN)
    assert tool.main([str(path)]) == 0
    shown = rows(capsys.readouterr().out)["check"].splitlines()
    assert shown[0].startswith("OK: max relative error 0.0")
    assert shown[1] == "4 of 256 elements unchecked: unknown value"
    for file in (str(path), small):
        assert tool.main([file, "--values", "plain"]) == 0
        (line,) = rows(capsys.readouterr().out)["check"].splitlines()
        assert line.startswith("OK")


def test_nothing_known_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then the line says so: no number is compared."""
    path = tmp_path / "unknown.mlir"
    path.write_text(
        UNKNOWN.replace(
            "{arith.fptosi} ins(%A : memref<16x16xf32>)",
            "ins(%A : memref<16x16xf32>)",
        ).replace(
            "outs(%B : memref<16x16xi8>)",
            """outs(%B : memref<16x16xi8>) (%x: f32, %o: i8) {
      %c = arith.constant 1.0e9 : f32
      %y = arith.fptosi %c : f32 to i8
      linalg.yield %y : i8
    }""",
        )
    )
    assert tool.main([str(path)]) == 0
    shown = rows(capsys.readouterr().out)["check"].splitlines()
    assert shown == ["none: nothing is known of any of the 256 elements"]


def test_a_hazard_is_an_error(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a kernel that lacks its barriers."""
    run_on_emulator = Emulation.launch

    def without_barriers(emulation: Emulation, ptx: str, *rest: Any) -> None:
        run_on_emulator(emulation, re.sub(r"bar\w*\.sync[^;]*;", "", ptx), *rest)

    monkeypatch.setattr(Emulation, "launch", without_barriers)
    arguments = [small, "--schedule", "block=32,32,16 warp=16,16 stages=2,1"]
    assert tool.main(arguments) == 1
    assert "error: kernel 'small' has hazards:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no file given; see alcop-run --help"),
        (["no.mlir"], "cannot read 'no.mlir': No such file or directory"),
        (["no.zip"], "no such file or directory: 'no.zip'"),
        ([str(EXAMPLES)], f"damaged bundle '{EXAMPLES}': no manifest.json"),
        (
            [MATMUL, "--device", "tpu"],
            "unknown device 'tpu', expected one of auto, cuda",
        ),
        (
            [MATMUL, "--device", "cuda"],
            "no CUDA device: CuPy sees no GPU, or is not ins",
        ),
        ([MATMUL, "--target", "sm_1"], "unknown target 'sm_1'"),
        ([MATMUL, "--schedule", "x"], "schedule: cannot read 'x'"),
        (
            [MATMUL, "--variants", "0"],
            "argument --variants: variants=0, expected 1 to ",
        ),
        ([MATMUL, "--variants", "17"], "argument --variants: variants=17, expected 1 "),
        ([MATMUL, "--variants=-1"], "argument --variants: '-1' is no whole number"),
        ([MATMUL, "--function", "f"], "the bundle has no function 'f', it has matmul_"),
        ([MATMUL, "--repeat", "0"], "argument --repeat: expected 1 or more, got 0"),
        ([MATMUL, "--repeat", "two"], "argument --repeat: 'two' is no whole number"),
        ([MATMUL, "--seed", "-1"], "argument --seed: '-1' is no whole number"),
        ([MATMUL, "--verbose"], "unrecognized arguments: --verbose"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`error: ...` on stderr and status 1."""
    assert tool.main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_bundle_cannot_be_compiled_again(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options for the compiler are refused, not ignored."""
    path = str(tmp_path / "out")
    compile_tool.main([small, "-o", path])
    given = {"--target": "sm_80", "--schedule": "stages=1,1", "--variants": "2"}
    for option, value in given.items():
        capsys.readouterr()
        assert tool.main([path, option, value]) == 1
        assert f"error: {option} is for MLIR files" in capsys.readouterr().err


def test_a_damaged_bundle_is_refused(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs."""
    path = tmp_path / "out"
    compile_tool.main([small, "-o", str(path)])
    capsys.readouterr()
    (ptx,) = path.glob("small_kernels-*.ptx")
    with ptx.open("a") as file:
        file.write("// one line more\n")
    assert tool.main([str(path)]) == 1
    assert capsys.readouterr().err == (
        f"error: damaged bundle '{path}': {ptx.name} is not what the "
        "manifest's sha256 "
        "says\n"
    )


def test_f32_is_rounded_only_if_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the option they run as SIMT fallbacks, more exactly."""
    kind = "memref<32x32xf32>"
    path = tmp_path / "f32.mlir"
    path.write_text(f"""
      func.func @f(%A: {kind}, %B: {kind}, %C: {kind}) {{
        linalg.matmul ins(%A, %B : {kind}, {kind}) outs(%C : {kind})
        return
      }}""")
    assert tool.main([str(path), "--device", "emulator"]) == 0
    captured = capsys.readouterr()
    assert "runs as a SIMT fallback" in captured.err
    assert "done with the option 'allow-tf32' only" in captured.err
    exact = rows(captured.out)
    assert exact["schedule"] == "none: SIMT fallback"
    assert exact["check"].startswith("OK: max relative error")
    assert tool.main([str(path), "--device", "emulator", "--allow-tf32"]) == 0
    rounded = rows(capsys.readouterr().out)
    assert rounded["schedule"].startswith("block=")
    assert rounded["check"].startswith("OK: max relative error")
    assert _error(exact["check"]) < _error(rounded["check"]) / 10


def _error(check: str) -> float:
    """The figure of `OK: max relative error 1.2e-07, tolerance ...`."""
    return float(check.split()[4].rstrip(","))


OPEN = SMALL.replace("32x32xf16", "?x?xf16").replace("32x32xf32", "?x16xf32")


def test_sizes_that_the_program_leaves_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given, or chosen; what is constant in one array is so in all."""
    file, stored = tmp_path / "open.mlir", tmp_path / "open.zip"
    file.write_text(OPEN)
    assert compile_tool.main([str(file), "-o", str(stored), "--no-ptxas"]) == 0
    capsys.readouterr()
    assert tool.main([str(stored), "--sizes", "M=40,K=24"]) == 0
    shown = rows(capsys.readouterr().out)
    assert [line.split()[1] for line in shown["arrays"].splitlines()] == [
        "40x24xf16",
        "24x16xf16",
        "40x16xf32",
    ]
    assert shown["check"].startswith("OK")
    assert tool.main([str(stored)]) == 0
    assert rows(capsys.readouterr().out)["check"].startswith("OK")


VARIANTS = """
func.func @f(%A: memref<8x?xf16>, %B: memref<?x16xf16>, %C: memref<8x16xf32>) {
  linalg.matmul {alcop.variants = [
      {schedule = {block = [16, 16, 32], warp = [16, 16], split_k = 2}},
      {schedule = {block = [16, 16, 32], warp = [16, 16], stages = [1, 1]}}]}
    ins(%A, %B : memref<8x?xf16>, memref<?x16xf16>) outs(%C : memref<8x16xf32>)
  return
}"""


def test_which_variant_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is shown with its guard, the one that ran by the names of its kernels."""
    file, stored = tmp_path / "f.mlir", tmp_path / "f.zip"
    file.write_text(VARIANTS)
    assert compile_tool.main([str(file), "-o", str(stored), "--no-ptxas"]) == 0
    compiled = rows(capsys.readouterr().out)
    guards = "1 of 2: 1 <= K, K % 16 == 0\n2 of 2: otherwise"
    assert compiled["variant"] == guards
    assert compiled["workspace"] == "at most 1024 bytes for 1 intermediate buffer"
    names = [line.split(":")[0] for line in compiled["kernel"].splitlines()]
    assert names == ["f_matmul_split2", "f_map", "f_matmul"]
    for length, ran in (
        (32, "variant 1 of 2: f_matmul_split2, f_map"),
        (40, "variant 2 of 2: f_matmul"),
    ):
        assert tool.main([str(stored), "--sizes", f"K={length}"]) == 0
        assert rows(capsys.readouterr().out)["ran"] == ran


def test_how_many_variants_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as are asked for at most; by `alcop-run` as by `alcop-compile`."""
    file = tmp_path / "open.mlir"
    file.write_text(OPEN)
    ran: list[str] = []
    for most in (1, 2):
        asked = [str(file), "--variants", str(most)]
        assert compile_tool.main([*asked, "--no-ptxas"]) == 0
        kernels = rows(capsys.readouterr().out)["kernel"].splitlines()
        # Parts of K are added up by one more.
        assert sum("_map:" not in line for line in kernels) == most
        assert tool.main([*asked, "--sizes", "M=8,K=256"]) == 0
        ran.append(rows(capsys.readouterr().out).get("ran", "")[:14])
    assert ran == ["", "variant 1 of 2"]


def test_strides_that_the_program_leaves_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given, or chosen with a gap behind each row."""
    kinds = [f"memref<?x?x{kind}, strided<[?, 1]>>" for kind in ("f16", "f16", "f32")]
    promise = "{alcop.row_alignment = 16 : i64}"
    file, stored = tmp_path / "strided.mlir", tmp_path / "strided.zip"
    file.write_text(f"""
      func.func @matmul(%A: {kinds[0]} {promise}, %B: {kinds[1]} {promise},
                        %C: {kinds[2]} {promise}) {{
        linalg.matmul ins(%A, %B : {kinds[0]}, {kinds[1]}) outs(%C : {kinds[2]})
        return
      }}""")
    assert compile_tool.main([str(file), "-o", str(stored), "--no-ptxas"]) == 0
    capsys.readouterr()
    for strides in ("", ",arg0_stride_0=40,arg2_stride_0=16"):
        assert tool.main([str(stored), "--sizes", "M=24,N=16,K=32" + strides]) == 0
        assert rows(capsys.readouterr().out)["check"].startswith("OK")
    assert tool.main([str(stored), "--sizes", "K=32,arg0_stride_0=33"]) == 1
    assert "promises multiples of 16" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("M=x", "argument --sizes: 'M=x' is no size, expected as in M=1000"),
        ("M", "argument --sizes: 'M' is no size, expected as in M=1000"),
        ("M=-1", "argument --sizes: 'M=-1' is no size, expected as in M=1000"),
        ("", "argument --sizes: '' is no size, expected as in M=1000"),
        ("M=8,K=8,M=9", "argument --sizes: 'M' is given twice"),
        ("Q=8", "no size is called 'Q'; there are K, M"),
        ("N=8", "no size is called 'N'; there are K, M"),
    ],
)
def test_wrong_sizes(
    given: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "open.mlir"
    file.write_text(OPEN)
    assert tool.main([str(file), "--sizes", given]) == 1
    assert message in capsys.readouterr().err
