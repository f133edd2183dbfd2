"""Tensors of float8_e4m3fn and float8_e5m2: a kernel per contraction, with its scales.

Beside torch's own results, of whose float8 contractions CPUs have `_scaled_mm` only.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from torch import Tensor, nn  # noqa: E402

import alcop_mlir.torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")

E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2


class Widened(nn.Module):
    """A matmul of what was widened before, as programs do without float8 matmuls."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.matmul(x.to(torch.float16), y.t().to(torch.float16))


class Scaled(nn.Module):
    def forward(self, x: Tensor, y: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        return torch.ops.aten._scaled_mm(
            x, y.t(), scale_a=rows, scale_b=columns, out_dtype=torch.bfloat16
        )


class Quantised(nn.Module):
    """To float8 and back, with a scale; out of range is clamped."""

    def forward(self, x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        stored = (x * scale).clamp(-448, 448).to(E4)
        return stored, stored.to(torch.float32) / scale


def tensors(a: Any = E4, b: Any = E4) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(64, 96).to(a), torch.randn(80, 96).to(b)


CASES = {
    "widened": (Widened(), tensors()),
    "two types": (Widened(), tensors(E4, E5)),
    "scale": (Scaled(), (*tensors(), torch.tensor(0.5), torch.tensor(0.25))),
    "rows": (Scaled(), (*tensors(), torch.rand(64, 1), torch.rand(1, 80))),
    "quantised": (Quantised(), (100 * torch.randn(64, 96), torch.tensor(2.0))),
}


@pytest.mark.parametrize("name", CASES)
def test_as_torch(name: str) -> None:
    """By the backend, not by torch instead of it: warnings are errors."""
    model, given = CASES[name]
    torch._dynamo.reset()
    got = torch.compile(model, backend="alcop")(*given)
    expected = model(*given)
    together = zip(_several(got), _several(expected), strict=True)
    for one, other in together:
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.float(), other.float(), rtol=2e-2, atol=2e-3)


def _several(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(
    ("target", "instruction"),
    [("sm_89", "m16n8k32.row.col.f32.e4m3"), ("sm_80", "m16n8k16.row.col.f32.f16")],
)
@pytest.mark.parametrize("name", ["widened", "two types", "scale", "rows"])
def test_a_contraction_is_one_kernel(name: str, target: str, instruction: str) -> None:
    """Of the elements as they lie: none is widened in memory before."""
    model, given = CASES[name]
    code = alcop_mlir.torch.export(model, given, target=target).program.ptx
    assert len(re.findall(r"\.entry ", code)) == 1
    assert f"mma.sync.aligned.{instruction}" in code


def test_scales_are_of_the_kernel_that_multiplies_by_wgmma() -> None:
    """On sm_90a: of the bytes as they lie, not as f16."""
    rows, columns = torch.rand(128, 1), torch.rand(1, 64)
    given = (torch.zeros(128, 512).to(E4), torch.zeros(64, 512).to(E4), rows, columns)
    code = alcop_mlir.torch.export(Scaled(), given, target="sm_90a").program.ptx
    assert len(re.findall(r"\.entry ", code)) == 1
    assert "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3" in code
