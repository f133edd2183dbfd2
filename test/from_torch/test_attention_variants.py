"""Attention as papers after the first write it: how many kernels, and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from torch import Tensor, nn  # noqa: E402
from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

from alcop_mlir.runtime.launch import Program  # noqa: E402
from alcop_mlir.torch.cache import compiled  # noqa: E402
from alcop_mlir.torch.export import traced  # noqa: E402
from alcop_mlir.torch.options import read  # noqa: E402

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")

N, HEADS, TOKENS, HEAD = 2, 4, 80, 64
NUMBERS = torch.arange(TOKENS)
DISTANCES = (NUMBERS[:, None] - NUMBERS[None]).abs()


def _heads(count: int = 3) -> tuple[Tensor, ...]:
    return tuple(torch.randn(N, HEADS, TOKENS, HEAD).half() for _ in range(count))


def _attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | float = 0.0) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * HEAD**-0.5 + bias, -1) @ v


def _slopes(q: Tensor, k: Tensor, v: Tensor, slopes: Tensor) -> Tensor:
    """ALiBi (arXiv 2108.12409): a slope of each head times the distance."""
    return _attend(q, k, v, -slopes[:, None, None] * DISTANCES.half())


def _cosine(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Swin V2 (arXiv 2111.09883): rows of length 1."""
    q, k = (functional.normalize(one.float(), dim=-1).half() for one in (q, k))
    return torch.softmax(q @ k.transpose(-1, -2) * 10.0, -1) @ v


def _difference(q: Tensor, k: Tensor, v: Tensor, r: Tensor, s: Tensor) -> Tensor:
    """Differential attention (arXiv 2410.05258)."""
    return _attend(q, k, v) - 0.25 * _attend(r, s, v)


def _window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Of the nearest 16 tokens, with scores below 30 (arXiv 2408.00118)."""
    scores = 30 * torch.tanh(q @ k.transpose(-1, -2) * HEAD**-0.5 / 30)
    return torch.softmax(scores.masked_fill(DISTANCES > 16, -torch.inf), -1) @ v


def _sigmoid(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Without a sum of a row (arXiv 2409.04431)."""
    return torch.sigmoid(q @ k.transpose(-1, -2) * HEAD**-0.5 - 3.0) @ v


def _masked(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """Rows that see nothing are 0."""
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def _padded(q: Tensor, k: Tensor, v: Tensor, kept: Tensor) -> Tensor:
    """As BERT has it: numbers of 64 bits say which tokens there are."""
    lost = (1.0 - kept[:, None, None].to(q.dtype)) * torch.finfo(q.dtype).min
    return _attend(q, k, v, lost)


def _filled(q: Tensor, k: Tensor, v: Tensor, kept: Tensor) -> Tensor:
    """The same by booleans."""
    scores = q @ k.transpose(-1, -2) * HEAD**-0.5
    lost = torch.finfo(q.dtype).min
    return torch.softmax(scores.masked_fill(~kept[:, None, None], lost), -1) @ v


def _turned(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Whose neighbours in memory are of several rows: by a kernel of its own."""
    return _attend(q, k, v).transpose(-1, -2) * 2.0


def _values_first(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same as one contraction writes it: no kernel of attention is that of it."""
    weights = torch.softmax(q @ k.transpose(-1, -2) * HEAD**-0.5, -1)
    return v.transpose(-1, -2) @ weights.transpose(-1, -2)


def _masked_step(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """The same of one row, and keys that several blocks share out."""
    return _masked(q, k, v, bias)


def _nothing_seen(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """As torch takes its safe softmax apart."""
    scores = q @ k.transpose(-1, -2) * HEAD**-0.5 + bias
    weights = torch.softmax(scores, -1)
    seen = torch.any(~scores.eq(-torch.inf), -1, keepdim=True)
    return torch.where(~seen, torch.zeros_like(weights), weights) @ v


def _hiding(rows: int, columns: int) -> Tensor:
    """A bias of two sequences, with a row that hides all, and one that hides most."""
    bias = torch.randn(2, 1, rows, columns)
    bias[1, :, rows // 2] = -torch.inf
    bias[0, :, rows // 2, 5:] = -torch.inf
    return bias.half()


def _packed(x: Tensor) -> Tensor:
    """Queries, keys and values as one contraction writes them; rows of all heads."""
    q, k, v = (
        part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in x.chunk(3, -1)
    )
    return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def _packed_apart(x: Tensor) -> Tensor:
    """As vision models take them apart: of a permuted view of all three."""
    q, k, v = x.unflatten(-1, (3, HEADS, HEAD)).permute(2, 0, 3, 1, 4)
    return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def _batch_first(x: Tensor) -> Tensor:
    """Two contractions, and attention between them; no transpose."""
    return ATTENTION(x, x, x, need_weights=False)[0]


torch.manual_seed(0)
ATTENTION = nn.MultiheadAttention(HEADS * 32, HEADS, batch_first=True).half().eval()
CASES: dict[Callable[..., Tensor], tuple[int, tuple[Tensor, ...]]] = {
    _slopes: (1, (*_heads(), 2.0 ** -torch.arange(2.0, 2 + 2 * HEADS, 2).half())),
    _cosine: (3, _heads()),
    _difference: (3, _heads(5)),
    _window: (1, _heads()),
    _sigmoid: (2, _heads()),  # few scores: more would be one kernel
    _masked: (1, (*_heads(), _hiding(TOKENS, TOKENS))),
    _padded: (
        1,
        (*_heads(), (torch.arange(TOKENS) < torch.tensor([[80], [33]])).long()),
    ),
    _filled: (1, (*_heads(), torch.arange(TOKENS) < torch.tensor([[33], [80]]))),
    _turned: (2, _heads()),
    _values_first: (4, _heads()),
    _masked_step: (
        2,
        (
            torch.randn(2, 2, 1, HEAD).half(),
            *(torch.randn(2, 2, 2048, HEAD).half() for _ in "kv"),
            _hiding(1, 2048),
        ),
    ),
    _nothing_seen: (1, (*_heads(), _hiding(TOKENS, TOKENS))),
    _packed: (1, (torch.randn(N, TOKENS, 3 * HEADS * HEAD).half(),)),
    _packed_apart: (1, (torch.randn(N, TOKENS, 3 * HEADS * HEAD).half(),)),
    _batch_first: (3, (torch.randn(N, TOKENS, HEADS * 32).half(),)),
}


class _Net(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Tensor) -> Any:
        return self.function(*given)


@pytest.mark.parametrize("function", CASES, ids=lambda one: one.__name__[1:])
def test_kernels_and_values(function: Callable[..., Tensor]) -> None:
    kernels, given = CASES[function]
    torch._dynamo.reset()
    net = _Net(function).eval()
    options = read({"target": "sm_80"})
    with torch.no_grad():
        graph, _ = traced(net, given)
        bundle = compiled(graph, options.for_device(graph.device), False)
        found = torch.compile(net, backend="alcop", options={"cache": False})(*given)
        expected = net(*given)
    assert len(bundle.function().kernels) == kernels
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.01)


def _causal(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
    """Of tokens that each sequence has so many of."""
    numbers = torch.arange(k.shape[2])
    seen = (numbers[:, None] >= numbers) & (numbers < lengths[:, None, None, None])
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def test_open_sizes() -> None:
    """One kernel for any number of sequences, of any number of tokens."""
    batch, tokens = Dim("batch", max=64), Dim("tokens", min=2, max=4096)
    heads: dict[int, Any] = {0: batch, 2: tokens}
    lengths = torch.tensor([7, 80])
    with torch.no_grad():
        shapes = ((*[heads] * 3, {0: batch}),)
        graph, _ = traced(_Net(_causal).eval(), (*_heads(), lengths), shapes)
        options = read({"target": "sm_80"})
        bundle = compiled(graph, options.for_device(graph.device), False)
        assert len(bundle.function().kernels) == 1
        given = [torch.randn(3, HEADS, 50, HEAD).half() for _ in range(3)]
        lengths = torch.tensor([1, 30, 99])
        made = torch.zeros(3, HEADS, 50, HEAD).half()
        Program(bundle, None, "emulator")(*given, lengths, made)
        wanted = _causal(given[0], given[1], given[2], lengths)
    torch.testing.assert_close(made, wanted, rtol=0.01, atol=0.01)


def _reciprocal(x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    return 1.0 / x, torch.reciprocal(count)


def test_reciprocals_of_zero_are_infinite() -> None:
    """As torch's, where torch-mlir's own lowering asserts that there is no zero."""
    given = torch.tensor([0.0, -0.0, 3.0]).half(), torch.tensor([0, 4])
    graph, _ = traced(_Net(_reciprocal).eval(), given)
    options = read({"target": "sm_80"}).for_device(graph.device)
    program = Program(compiled(graph, options, False))
    found = program(*(one.numpy() for one in given))
    for one, expected in zip(found, _reciprocal(*given), strict=True):
        torch.testing.assert_close(torch.from_numpy(one), expected, rtol=0, atol=0)
