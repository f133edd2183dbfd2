"""Small nets, compiled once for all sizes, at two of them; some are trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from alcop_mlir.torch import alcop  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    monkeypatch.setenv("ALCOP_CACHE_DIR", str(tmp_path))


class Classifier(nn.Module):
    """Convolutions and pools, and a view of what they give."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.linear = nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        x = functional.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.linear(x.view(x.shape[0], -1))


def mixed(q: Any, k: Any) -> Any:
    scores = torch.einsum("bshd,bthd->bhst", q, k).softmax(-1)
    return torch.einsum("bhst,bthd->bshd", scores, k)


def attended(q: Any, k: Any, mask: Any) -> Any:
    return functional.scaled_dot_product_attention(q, k, k, mask)


def twice_as_large(x: Any) -> Any:
    return functional.interpolate(x, scale_factor=2)


def halves(x: Any) -> Any:
    one, other = x.chunk(2, 1)
    return one * torch.sigmoid(other), x[:, : x.shape[1] // 2]


def rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(x.shape[1]).float(), torch.arange(half) / half)
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * angles.cos(), other * angles.sin()], -1)


def reflected(x: Any) -> Any:
    return functional.pad(x, (1, 2), mode="reflect")


# The shapes of arguments, for a size n.
NETS: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "classifier": (Classifier, lambda n: [(n, 3, 8, 8)]),
    "group_norm": (lambda: nn.GroupNorm(4, 8), lambda n: [(2, 8, n, n)]),
    "einsum": (lambda: mixed, lambda n: [(2, n, 4, 8), (2, n + 3, 4, 8)]),
    "attention": (
        lambda: attended,
        lambda n: [(2, 2, n, 8), (2, 2, n + 3, 8), (n, n + 3)],
    ),
    "interpolate": (lambda: twice_as_large, lambda n: [(1, 2, n, n + 1)]),
    "shuffle": (lambda: nn.PixelUnshuffle(2), lambda n: [(2, 4, 2 * n, 2 * n)]),
    "halves": (lambda: halves, lambda n: [(3, 2 * n)]),
    "rotated": (lambda: rotated, lambda n: [(2, n, 16)]),
    "reflected": (lambda: reflected, lambda n: [(2, 3, n)]),
}


@pytest.mark.parametrize("name", NETS)
def test_open_sizes(name: str) -> None:
    made, shapes = NETS[name]
    net = made()
    run = torch.compile(net, backend=alcop, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for n in (5, 8):
            inputs = [torch.randn(shape) for shape in shapes(n)]
            got, wanted = run(*inputs), net(*inputs)
            torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)


def test_open_sizes_are_trained() -> None:
    """What the forward graph keeps for the backward one has sizes as numbers too."""
    net = nn.MultiheadAttention(8, 2, batch_first=True)
    run = torch.compile(net, backend=alcop, fullgraph=True, dynamic=True)
    for n in (5, 8):
        x = torch.randn(2, n, 8)
        got, wanted = (
            torch.autograd.grad(
                one(x, x, x, need_weights=False)[0].square().sum(), [*net.parameters()]
            )
            for one in (run, net)
        )
        torch.testing.assert_close(got, wanted, atol=2e-4, rtol=2e-4)


def viewed(x: Any, weight: Any) -> Any:
    made = x * weight
    return made, made[:, 1:], made.t(), x[:, ::2], weight[2:]


def test_results_that_are_views() -> None:
    """They are of what torch has, with its strides and offsets."""
    run = torch.compile(viewed, backend=alcop, fullgraph=True, dynamic=True)
    weight = torch.randn(8, requires_grad=True)
    for x in (torch.randn(6, 8), torch.randn(4, 8), torch.randn(4, 10)[:, :8]):
        pairs = zip(run(x, weight), viewed(x, weight), strict=True)
        for got, wanted in pairs:
            assert got.stride() == wanted.stride()
            assert torch.equal(got, wanted)


def test_a_view_in_another_order() -> None:
    """x.permute().reshape() of these sizes is a view: its strides are torch's."""
    run = torch.compile(
        lambda x: x.permute(2, 0, 1).reshape(8, -1), backend=alcop, dynamic=True
    )
    for n in (5, 6):
        x = torch.randn(2, n, 8)
        assert torch.equal(run(x), x.permute(2, 0, 1).reshape(8, -1))


def test_bytes_and_numbers() -> None:
    """Of these torch-mlir ends the process."""

    def function(x: Any) -> Any:
        return x - 8, x * 3 + 1, x % 3, 5 - x

    x = torch.arange(-128, 128, dtype=torch.int8).view(16, 16)
    got = torch.compile(function, backend=alcop, fullgraph=True)(x)
    for one, wanted in zip(got, function(x), strict=True):
        assert torch.equal(one, wanted)


def test_a_view_by_unknown_parts_says_which() -> None:
    run = torch.compile(
        lambda x: x.reshape(x.shape[0] // 2, -1) + 1, backend=alcop, dynamic=True
    )
    x = torch.randn(10, 8)
    says = r"aten\.\w+\.\w+ \(.*test_small_nets.py:\d+\): a view from tensor<\?xf32> to"
    with torch.no_grad(), pytest.warns(RuntimeWarning, match=says):
        torch.testing.assert_close(run(x), x.reshape(5, -1) + 1)
