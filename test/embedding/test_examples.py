"""The programs of examples/embedding and own_pass run, and do what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alcop_mlir.analysis.host.host_function import host, host_functions
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.manifest.functions import Function
from alcop_mlir.runtime import ptx
from alcop_mlir.runtime.emulator.api import emulate
from alcop_mlir.runtime.launch import grid_of
from alcop_mlir.target import find_target

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "embedding"
OWN_PASS = ROOT / "examples" / "own_pass"


def run(*command: str | Path, **options: Any) -> str:
    """What it prints; it must succeed and not complain."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **options.pop("env", {})}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, **options
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def alcop_opt(*arguments: str | Path, **options: Any) -> str:
    return run(sys.executable, "-m", "alcop_mlir.tools.opt", *arguments, **options)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """alcop-opt as one program, also where it is not installed."""
    path = tmp_path / "alcop-opt"
    path.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m alcop_mlir.tools.opt "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_the_shell_script(program: Path, tmp_path: Path) -> None:
    """From any folder; the kernel is pipelined, and still computes a matmul."""
    script = EXAMPLES / "mlir_opt.sh"
    text = run(script, cwd=tmp_path, env={"ALCOP_OPT": str(program)})
    again = run(script, EXAMPLES / "tiled_matmul.mlir", env={"ALCOP_OPT": str(program)})
    assert text == again
    assert "nvvm.cp.async.wait.group 1" in text
    a, b = random((64, 128), np.float32), random((128, 64), np.float32)
    c = np.zeros((64, 64), np.float32)
    ran = emulate(kernels_of(text), None, (4, 4, 1), (16, 16, 1), [a, b, c])
    assert not ran.hazards
    assert np.allclose(c, a.astype(np.float64) @ b, atol=1e-4)


@pytest.fixture(scope="module")
def scheduled() -> list[str]:
    """The command that runs the transform script, as its comment has it."""
    return [
        "matmul.mlir",
        "--transform-preload-library=transform-library-paths=tile_and_pipeline.mlir",
        "--transform-interpreter",
    ]


def test_the_transform_script(scheduled: list[str]) -> None:
    """Upstream's ops tile, ours pipeline: both levels, tensor cores."""
    text = alcop_opt(*scheduled, cwd=EXAMPLES)
    for part in (
        "memref<3x64x32xf16, #gpu.address_space<workgroup>>",
        "nvgpu.device_async_copy",
        "{numGroups = 1 : i32}",
        "nvgpu.ldmatrix",
        "nvgpu.mma.sync",
    ):
        assert part in text
    assert "memref.copy" not in text
    assert "linalg" not in text
    assert "alcop_transform" not in text


def test_the_transform_script_yields_a_matmul(scheduled: list[str]) -> None:
    """Lowered to PTX by our passes, and run on the emulator."""
    text = alcop_opt(
        *scheduled,
        "--alcop-outline-kernels",
        "--alcop-lower-to-nvvm",
        cwd=EXAMPLES,
    )
    a, b = random((256, 128), np.float16), random((128, 256), np.float16)
    c = random((256, 256), np.float32)
    expected = c + a.astype(np.float64) @ b.astype(np.float64)
    with make_context():
        module = ir.Module.parse(text)
        done = host(host_functions(module)[0])
    assert isinstance(done, Function)
    (kernel,) = done.kernels
    given = {"arg0": a, "arg1": b, "arg2": c}
    arrays = [given[name] for name in kernel.arrays]
    ran = emulate(
        kernels_of(text),
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        arrays,
        dynamic_shared=kernel.shared_bytes,
    )
    assert not ran.hazards
    assert np.allclose(c, expected, atol=1e-3)


def test_the_python_flow(tmp_path: Path) -> None:
    text = run(sys.executable, EXAMPLES / "python_flow.py", cwd=tmp_path)
    assert text.splitlines() == [
        "asynchronous copies: 32",
        "mean: 49152 bytes of shared memory",
        "rows averaged on the emulator: as NumPy, without hazards",
    ]
    assert not list(tmp_path.iterdir())


def test_a_pass_of_ones_own(tmp_path: Path) -> None:
    """docs/writing-a-pass.md, from Python; own-pass.mlir has the command line."""
    text = run(sys.executable, OWN_PASS / "from_python.py", cwd=tmp_path)
    assert text.splitlines() == [
        "21: remark: own-limit-shared: a buffer's size is unknown",
        "kernels marked: 2",
        "8: error: own-limit-shared: allocates 8192 bytes of shared memory, "
        "expected at most 4096",
    ]


def test_the_page_quotes_the_pass() -> None:
    """All of the file, as docs/writing-a-pass.md shows it."""
    page = (ROOT / "docs" / "writing-a-pass.md").read_text("utf-8")
    for name in ("limit_shared.py", "from_python.py"):
        assert f"```python\n{(OWN_PASS / name).read_text('utf-8')}```" in page


def kernels_of(text: str) -> str:
    """PTX of the only gpu.module in the text."""
    with make_context():
        module = ir.Module.parse(text)
        (kernels,) = (
            op for op in module.body.operations if op.operation.name == "gpu.module"
        )
        return ptx.emit_ptx(kernels, find_target("sm_80"))


def random(shape: tuple[int, ...], kind: Any) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(kind)
