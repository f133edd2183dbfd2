"""alcop_mlir.torch.export: a bundle and weights, which run without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

import sympy  # noqa: E402
from mlp import Mlp  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
from small import SMALL  # noqa: E402
from torch import nn  # noqa: E402

import alcop_mlir  # noqa: E402
from alcop_mlir.errors import CompileError, ConfigError, LaunchError  # noqa: E402
from alcop_mlir.torch import export, views  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")
WITHOUT_TORCH = """
import runpy, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torch_mlir", "mlir"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path / "cache"))


def test_stored_and_run_without_torch(tmp_path: Path) -> None:
    """The two examples, the second where importing torch or MLIR fails."""
    folder = str(tmp_path / "mlp")
    made = run(str(EXAMPLES / "export_torch.py"), folder)
    assert "x: f16[M, 64]" in made
    program = ["-c", WITHOUT_TORCH, str(EXAMPLES / "run_exported.py"), folder]
    name, _, difference = run(*program).rpartition(":")
    assert name == "largest difference from NumPy"
    assert float(difference) < 2e-3


def run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_weights_are_arguments_by_name(tmp_path: Path) -> None:
    """bf16 is stored as its bits, which NumPy has a type for, and programs take."""
    model, x = Mlp((64, 32)).bfloat16().eval(), torch.randn(16, 64).bfloat16()
    export(model, (x,)).save(tmp_path / "model")
    weights = load_file(tmp_path / "model" / "weights.safetensors")
    assert weights.keys() == model.state_dict().keys()
    program = alcop_mlir.load(tmp_path / "model" / "program.zip")
    bits = program(x=x.view(torch.uint16).numpy(), **weights)
    got = torch.from_numpy(bits).view(torch.bfloat16)
    torch.testing.assert_close(got, model(x), atol=2e-2, rtol=2e-2)


def test_a_program_of_torchs(tmp_path: Path) -> None:
    """What torch.export made; buffers and constants are weights, if they are read."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.rand(8))
            self.register_buffer("shift", torch.rand(8), persistent=False)
            self.unread = nn.Parameter(torch.rand(8))

        def forward(self, x: Any) -> Any:
            return x * self.scale + self.shift + torch.tensor([2.0])

    model, x = Scaled(), torch.randn(4, 8)
    exported = export(torch.export.export(model, (x,)))
    assert {"scale", "shift"} <= exported.weights.keys()
    assert "unread" not in exported.weights
    got = exported.program(x=x.numpy(), **exported.weights)
    np.testing.assert_allclose(got, model(x).numpy(), rtol=1e-6)
    with pytest.raises(ConfigError, match="were given to"):
        export(torch.export.export(model, (x,)), (x,))


def test_an_open_batch() -> None:
    """Of a network with attention: views and results of sizes that follow from it."""
    model, (x,) = SMALL["bert_layer"].made(torch.float16)
    batch = torch.export.Dim("batch")
    exported = export(model, (x,), dynamic_shapes={"x": {0: batch}})
    model = model.double()
    for images in (1, 2):
        x = torch.randn(images, 32, 64).half()
        got = exported.program(x=x.numpy(), **exported.weights)
        with torch.no_grad():
            wanted = model(x.double())
        error = (torch.from_numpy(got).double() - wanted).abs().max()
        assert error < 4e-3 * wanted.abs().max()


class Normed(nn.Module):
    """Arrays that share open sizes, and a view back to several unknown ones."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x: Any, y: Any) -> Any:
        return self.norm(x) + y


def test_open_sizes_that_arguments_share() -> None:
    """They are one size of the program, whatever ops read them; others are refused."""
    model, x = Normed().eval(), torch.randn(3, 4, 6)
    shapes = {0: torch.export.Dim("n"), 2: torch.export.Dim("pixels")}
    exported = export(model, (x, x + 1), dynamic_shapes={"x": shapes, "y": shapes})
    for images, pixels in ((3, 6), (2, 9)):
        x, y = torch.randn(2, images, 4, pixels)
        got = exported.program(x=x.numpy(), y=y.numpy(), **exported.weights)
        with torch.no_grad():
            np.testing.assert_allclose(got, model(x, y).numpy(), atol=1e-5)
    with pytest.raises(LaunchError, match="expected 2x4x9"):
        exported.program(x=x.numpy(), y=y.numpy()[..., :8], **exported.weights)


S, T = sympy.symbols("s t", positive=True, integer=True)


@pytest.mark.parametrize(
    ("before", "after", "groups"),
    [
        ((S, 32, 64), (32 * S, 64), [((0, 1), (0,)), ((2,), (1,))]),
        ((32 * S, 64), (S, 32, 2, 32), [((0,), (0, 1)), ((1,), (2, 3))]),
        ((S, T, 64), (S * T, 64), [((0, 1), (0,)), ((2,), (1,))]),
        ((S, 6), (S * 2, 3), [((0, 1), (0, 1))]),
        ((S,), (1, S, 1), [((0,), (0, 1, 2))]),
        ((1, S), (S,), [((0, 1), (0,))]),
        ((S, T), (T, S), [((0, 1), (0, 1))]),
        ((S, 2), (S,), None),
        ((), (), None),
    ],
)
def test_groups_of_a_view(before: Any, after: Any, groups: Any) -> None:
    found = views.groups(
        [sympy.sympify(one) for one in before], [sympy.sympify(one) for one in after]
    )
    tuples = found and [(tuple(old), tuple(new)) for old, new in found]
    assert tuples == groups


def test_a_weight_of_another_shape() -> None:
    exported = export(Mlp((64, 32)).half().eval(), (torch.randn(16, 64).half(),))
    weights = {name: one[:16].copy() for name, one in exported.weights.items()}
    with pytest.raises(LaunchError, match=r"has shape 16x64, expected 32x64"):
        exported.program(x=np.zeros((16, 64), np.float16), **weights)


class Spectrum(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.fft.fft(x).real


class Same(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Spectrum(), r"fft.* are complex"),
        (Same(), "nothing to compile: the model returns what it was given"),
    ],
)
def test_models_that_cannot_be_exported(model: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        export(model, (torch.randn(4, 8),))


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match="unknown option 'targt'"):
        export(Same(), (torch.randn(4),), targt="sm_80")


def test_equal_graphs_are_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By graph, options and what compiles; a damaged bundle is made anew."""
    from alcop_mlir.torch import cache

    compiled: list[str] = []
    compile_source = cache.compiler.compile_source

    def noted(source: Any, options: Any) -> Any:
        compiled.append(options.target.name)
        return compile_source(source, options)

    monkeypatch.setattr(cache.compiler, "compile_source", noted)
    x = torch.randn(16, 64).half()
    for _ in range(2):
        export(Mlp((64, 32)).half().eval(), (x,))
    assert compiled == ["sm_80"]
    export(Mlp((64, 32)).half().eval(), (x,), target="sm_86")
    export(Mlp((64, 48)).half().eval(), (x,))
    assert compiled == ["sm_80", "sm_86", "sm_80"]
    for path in (tmp_path / "cache" / "torch").iterdir():
        path.write_bytes(b"no bundle")
    export(Mlp((64, 32)).half().eval(), (x,))
    assert len(compiled) == 4
    export(Mlp((64, 32)).half().eval(), (x,), cache=False)
    assert len(compiled) == 5


def test_without_torch() -> None:
    program = WITHOUT_TORCH.partition("sys.argv")[0] + "import alcop_mlir.torch"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *_, last = done.stderr.splitlines()
    assert last.endswith(
        "alcop_mlir.torch needs PyTorch: pip install 'alcop-mlir[torch]'"
    )
