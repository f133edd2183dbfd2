"""What works where only NumPy is installed, and what the rest says then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_layers import ONLY_IN

import alcop_mlir

ROOT = Path(__file__).resolve().parents[2]
MATMUL = """
func.func @matmul(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>)
                outs(%C : memref<64x64xf32>)
  return
}
"""
# Runs a program where importing any of the other packages fails.
BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
"""
OPTIONAL = frozenset(ONLY_IN) - {"numpy"}
BINDINGS = "compiling needs MLIR's Python bindings: pip install 'alcop-mlir[compiler]'"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small program, stored."""
    path = tmp_path_factory.mktemp("bundle") / "matmul.zip"
    alcop_mlir.compile(MATMUL).save(path)
    return path


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "matmul.mlir"
    path.write_text(MATMUL)
    return str(path)


def run(
    program: str, *arguments: str, missing: frozenset[str] = OPTIONAL, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python text with those packages missing."""
    command = [sys.executable, "-c", BLOCK.format(names=sorted(missing)) + program]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | variables,
        check=False,
    )


def tool(
    name: str, *arguments: str, missing: frozenset[str] = OPTIONAL
) -> subprocess.CompletedProcess[str]:
    """Run one of the command-line tools."""
    program = f"from alcop_mlir.tools.{name} import main; sys.exit(main())"
    return run(program, *arguments, missing=missing)


def test_bundle_runs_on_the_emulator(bundle: Path) -> None:
    done = tool("run", str(bundle))
    assert done.returncode == 0, done.stderr
    assert "check      OK" in done.stdout


def test_tables_are_plain_on_a_terminal_too(bundle: Path) -> None:
    program = (
        "sys.stdout.isatty = lambda: True\n"
        "from alcop_mlir.tools.run import main; sys.exit(main())"
    )
    done = run(program, str(bundle), TERM="xterm")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout


def test_bundle_runs_from_python(bundle: Path, tmp_path: Path) -> None:
    program = (
        "import numpy as np, alcop_mlir\n"
        "a, b = np.ones((64, 32), np.float16), np.ones((32, 64), np.float16)\n"
        "c = np.zeros((64, 64), np.float32)\n"
        "alcop_mlir.load(sys.argv[1])(a, b, c)\n"
        "np.save(sys.argv[2], c)"
    )
    result = tmp_path / "c.npy"
    done = run(program, str(bundle), str(result))
    assert done.returncode == 0, done.stderr
    assert (np.load(result) == 32).all()


def test_ptx_runs_on_the_emulator() -> None:
    ptx = ROOT / "examples" / "ptx" / "window_sum.ptx"
    done = tool("run", str(ptx), "--launch", str(ptx.with_suffix(".json")))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["compile", "opt", "run", "tune"])
def test_versions_need_no_compiler(name: str) -> None:
    assert tool(name, "--version").returncode == 0


@pytest.mark.parametrize(
    ("name", "missing", "message"),
    [
        ("compile", OPTIONAL, BINDINGS),
        ("opt", OPTIONAL, BINDINGS),
        ("run", OPTIONAL, BINDINGS),
        (
            "compile",
            frozenset({"llvmlite"}),
            "compiling needs llvmlite: pip install 'alcop-mlir[compiler]'",
        ),
        (
            "tune",
            OPTIONAL,
            "tuning needs scikit-learn: pip install 'alcop-mlir[tuning]'",
        ),
        ("tune", OPTIONAL - {"sklearn"}, BINDINGS),
    ],
)
def test_a_missing_package_is_one_line(
    source: str, name: str, missing: frozenset[str], message: str
) -> None:
    done = tool(name, source, missing=missing)
    assert done.returncode == 1
    assert done.stderr == f"error: {message}\n"
    assert done.stdout == ""


def test_gpu_run_without_cupy(bundle: Path) -> None:
    done = tool("run", str(bundle), "--device", "cuda")
    assert done.returncode == 1
    assert done.stderr == (
        "error: no CUDA device: CuPy sees no GPU, or is not installed (pip install "
        "'alcop-mlir[cuda12]' or 'alcop-mlir[cuda13]'); the emulator needs none\n"
    )


def test_report_without_matplotlib(tmp_path: Path) -> None:
    """With records to draw: what is shipped with the package."""
    program = (
        "from pathlib import Path\n"
        "from alcop_mlir.target import find_target\n"
        "from alcop_mlir.errors import ConfigError\n"
        "from alcop_mlir.tools.tune_report import draw\n"
        "from alcop_mlir.tuning import models\n"
        "known = models.shipped('simulated', find_target('sm_80'))\n"
        "try: draw(known, Path(sys.argv[1]))\n"
        "except ConfigError as error: print(error)"
    )
    done = run(program, str(tmp_path / "report"))
    assert done.returncode == 0, done.stderr
    message = "the report needs matplotlib: pip install 'alcop-mlir[plots]'"
    assert done.stdout == f"{message}\n"


def test_compile_from_python_says_what_is_missing() -> None:
    program = (
        "import alcop_mlir\n"
        "try: alcop_mlir.compile('module {}')\n"
        "except alcop_mlir.errors.ConfigError as error: print(error)"
    )
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{BINDINGS}\n"


def test_records_are_not_learned_from_without_scikit_learn(tmp_path: Path) -> None:
    """A note; the schedule is chosen by the analytical model then."""
    program = (
        "from alcop_mlir.target import find_target\n"
        "from alcop_mlir.tuning import models\n"
        "from alcop_mlir.tuning.counted import count\n"
        "target = find_target('sm_80')\n"
        "shipped = models.shipped_book('simulated', target)\n"
        "known = count([shipped], target, 'simulated', None)\n"
        "print(*models.load_or_train(known, 'simulated', target))"
    )
    done = run(program, ALCOP_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("None (")
    assert "learning needs scikit-learn: pip install 'alcop-mlir[tuning]'" in (
        done.stdout.replace("\\'", "'")
    )
