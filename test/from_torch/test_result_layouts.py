"""Results have the strides that torch gives them, and gradients the values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from alcop_mlir.torch import alcop  # noqa: E402
from alcop_mlir.torch.layouts import order_of  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))


def transposed(x: Any) -> Any:
    return (x * 2).permute(2, 0, 1)


def channels_last(x: Any) -> Any:
    return torch.relu(x[None].to(memory_format=torch.channels_last))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [transposed, channels_last])
def test_strides(function: Callable[[Any], Any], dynamic: bool) -> None:
    x = torch.randn(3, 4, 5)
    run = torch.compile(function, backend=alcop, fullgraph=True, dynamic=dynamic)
    got, wanted = run(x), function(x)
    assert got.stride() == wanted.stride()
    assert torch.equal(got, wanted)


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((4, 8), (8, 1), None),
        ((4, 8), (1, 4), (1, 0)),
        ((4, 8), (1, 6), (1, 0)),  # with gaps
        ((4, 8), (0, 1), None),  # rows in one place
        ((4, 1), (1, 7), None),  # a stride that no element is at
        ((2, 8, 4, 4), (128, 1, 32, 8), (0, 2, 3, 1)),
    ],
)
def test_orders(shape: Any, strides: Any, order: Any) -> None:
    assert order_of(torch.empty_strided(shape, strides)) == order


class Kept(torch.autograd.Function):
    """Its backward pass, which has a sum without a kernel, relies on strides."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        turned = x.permute(1, 0, 2) * 2
        ctx.save_for_backward(turned)
        return turned.sum(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (turned,) = ctx.saved_tensors
        flat = torch.special.digamma(turned.permute(1, 0, 2).view(-1).abs() + 1)
        return flat.view(3, 4, 5) * grads[0][:, None]


def test_backward_passes_in_eager_mode_get_what_they_expect() -> None:
    x = torch.randn(3, 4, 5, requires_grad=True)
    (wanted,) = torch.autograd.grad(Kept.apply(x).sum(), x)
    run = torch.compile(lambda x: Kept.apply(x), backend=alcop)
    with pytest.warns(RuntimeWarning, match="a backward graph runs in eager mode"):
        (got,) = torch.autograd.grad(run(x).sum(), x)
    torch.testing.assert_close(got, wanted)


def test_attention_is_trained() -> None:
    """Both passes are compiled; none relies on what torch's own kernels keep."""
    torch.manual_seed(0)
    model = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(1, 4, 8)

    def gradients(run: Any) -> Any:
        result, _ = run(x, x, x, need_weights=False)
        return torch.autograd.grad(result.square().sum(), [*model.parameters()])

    run = torch.compile(model, backend=alcop, fullgraph=True)
    torch.testing.assert_close(gradients(run), gradients(model))
