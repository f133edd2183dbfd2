"""Rotary embeddings as libraries write them: in the contraction's kernel, and right."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from alcop_mlir.torch.export import export  # noqa: E402

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")

N, TOKENS, WIDTH, HEAD = 2, 48, 64, 64
Rotate = Callable[[Tensor, Tensor], Tensor]


def _halves(x: Tensor, angles: Tensor) -> Tensor:
    """transformers' apply_rotary_pos_emb, with tables of both halves."""
    wide = torch.cat((angles, angles), dim=-1)
    left, right = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    turned = torch.cat((-right, left), dim=-1)
    return x * wide.cos().to(x.dtype) + turned * wide.sin().to(x.dtype)


def _pairs(x: Tensor, angles: Tensor) -> Tensor:
    """GPT-J's apply_rotary_pos_emb: neighbours are turned, by tables for both."""
    wide = torch.repeat_interleave(angles, 2, dim=-1)
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    return x * wide.cos().to(x.dtype) + turned * wide.sin().to(x.dtype)


def _complex(x: Tensor, angles: Tensor) -> Tensor:
    """Llama's own: neighbours are the parts of a complex number, in f32."""
    left, right = x[..., ::2].float(), x[..., 1::2].float()
    cos, sin = angles.cos(), angles.sin()
    turned = torch.stack((left * cos - right * sin, left * sin + right * cos), dim=-1)
    return turned.flatten(-2).to(x.dtype)


class Attention(nn.Module):
    """`heads` of queries, `groups` of keys and values, rotated by places.

    Of each head the first `features` are rotated, as GPT-NeoX and Phi do.
    """

    def __init__(self, rotate: Rotate, heads: int, groups: int, features: int) -> None:
        super().__init__()
        self.rotate, self.features = rotate, features
        self.query = nn.Linear(WIDTH, heads * HEAD, bias=False)
        self.key = nn.Linear(WIDTH, groups * HEAD, bias=False)
        self.value = nn.Linear(WIDTH, groups * HEAD, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, tokens, WIDTH) to (N, tokens, heads * HEAD)."""
        q, k, v = self.project(x)
        exponents = torch.arange(self.features // 2, dtype=torch.float32)
        angles = torch.arange(x.shape[1]).float()[:, None] * 10.0**-exponents
        q, k = (self._rotated(one, angles) for one in (q, k))
        mixed = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return mixed.transpose(1, 2).flatten(2)

    def project(self, x: Tensor) -> Sequence[Tensor]:
        """(N, heads, tokens, HEAD) of queries, keys and values."""
        return [
            made(x).unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for made in (self.query, self.key, self.value)
        ]

    def _rotated(self, x: Tensor, angles: Tensor) -> Tensor:
        if self.features == HEAD:
            return self.rotate(x, angles)
        rotated, rest = x[..., : self.features], x[..., self.features :]
        return torch.cat((self.rotate(rotated, angles), rest), dim=-1)


class Packed(Attention):
    """One weight has, for each head, queries, keys and values, as GPT-NeoX's."""

    def __init__(self, rotate: Rotate, heads: int, _: int, features: int) -> None:
        super().__init__(rotate, heads, heads, features)
        self.all = nn.Linear(WIDTH, 3 * heads * HEAD)

    def project(self, x: Tensor) -> Sequence[Tensor]:
        """(N, heads, tokens, HEAD) of each."""
        apart = self.all(x).unflatten(-1, (-1, 3 * HEAD)).transpose(1, 2)
        return apart.chunk(3, dim=-1)


@pytest.mark.parametrize(
    ("kind", "rotate", "heads", "groups", "features"),
    [
        (Attention, _halves, 2, 1, HEAD),
        (Attention, _pairs, 2, 1, HEAD),
        (Attention, _complex, 4, 2, HEAD),
        (Attention, _halves, 2, 1, HEAD // 2),
        (Packed, _pairs, 2, 2, HEAD // 2),
    ],
)
def test_rotations_are_in_the_kernel_of_the_contraction(
    kind: type[Attention], rotate: Rotate, heads: int, groups: int, features: int
) -> None:
    torch.manual_seed(0)
    model = kind(rotate, heads, groups, features).half().eval()
    for one in model.parameters():
        one.data *= 6  # scores that differ
    x = torch.randn(N, TOKENS, WIDTH).half()
    made = export(model, (x,))
    assert len(made.program.function.launches) == 2
    got = torch.from_numpy(made.program(x=x.numpy(), **made.weights)).double()
    want, half = copy.deepcopy(model).double()(x.double()), model(x).double()
    assert (half - want).abs().max() < 0.01 * want.abs().max()
    assert (got - want).abs().max() < 0.01 * want.abs().max()
