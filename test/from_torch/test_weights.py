"""What depends on weights alone is computed once, and again where they change."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from torch import nn  # noqa: E402

from alcop_mlir.runtime.launch import Program  # noqa: E402
from alcop_mlir.torch import alcop, export  # noqa: E402

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))


def model() -> Any:
    torch.manual_seed(0)
    layers = nn.Conv2d(16, 16, 3, bias=False), nn.BatchNorm2d(16)
    return nn.Sequential(*layers).half().eval()


def check(got: Any, module: Any, x: Any) -> None:
    with torch.no_grad():
        wanted = copy.deepcopy(module).double()(x.double())
    assert (got.double() - wanted).abs().max() < 4e-3 * wanted.abs().max()


def test_prepared_once_per_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Program] = []
    plain = Program.prepare

    def counted(self: Program, *arrays: Any, **named: Any) -> Any:
        prepared.extend([self] if self.function.prepare else [])
        return plain(self, *arrays, **named)

    monkeypatch.setattr(Program, "prepare", counted)
    module, x = model(), torch.randn(1, 16, 6, 6, dtype=torch.float16)
    compiled = torch.compile(module, backend=alcop, fullgraph=True)
    with torch.no_grad():
        check(compiled(x), module, x)
        check(compiled(2 * x), module, 2 * x)
        assert len(prepared) == 1
        module[1].running_mean.add_(0.5)  # in place
        check(compiled(x), module, x)
        assert len(prepared) == 2
        module[0].weight.data = torch.randn_like(module[0].weight)  # elsewhere
        check(compiled(x), module, x)
        assert len(prepared) == 3
    with torch.inference_mode():
        check(compiled(x), module, x)


def test_exported_programs_prepare() -> None:
    module, x = model(), torch.randn(1, 16, 6, 6, dtype=torch.float16)
    exported = export(module, (x,))
    program, weights = exported.program, exported.weights
    prepared = program.prepare(**weights)
    assert len(prepared) == 3  # the filter, scale and shift
    got = program(input=x.numpy(), **weights, prepared=prepared)
    check(torch.from_numpy(got), module, x)
