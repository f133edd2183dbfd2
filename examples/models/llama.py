"""Llama (Touvron et al., arXiv 2307.09288): its block, and the network with a cache.

RMS norm, rotary places, SwiGLU, and fewer heads of keys and values than of queries.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class RmsNorm(nn.Module):
    """Each row divided by the root of its mean square, in f32, times a weight."""

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) to the same."""
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        return (wide * scale).to(x.dtype) * self.weight


def rotate(x: Tensor, places: Tensor, base: float = 10000.0) -> Tensor:
    """Turn pairs of features of (N, heads, tokens, features) by their token's place.

    Feature i is paired with i + features / 2 and turned by place * base^(-2i/features).
    """
    half = x.shape[-1] // 2
    exponents = torch.arange(half, device=x.device, dtype=torch.float32) / half
    angles = places.float()[:, None] * torch.pow(base, -exponents)
    cos, sin = angles.cos(), angles.sin()
    left, right = x[..., :half].float(), x[..., half:].float()
    turned = torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)
    return turned.to(x.dtype)


class LlamaBlock(nn.Module):
    """`heads` of queries, `groups` heads of keys and values."""

    def __init__(
        self, width: int = 4096, heads: int = 32, groups: int = 8, hidden: int = 14336
    ) -> None:
        super().__init__()
        self.heads, self.groups = heads, groups
        kept = width // heads * groups
        self.before_attention = RmsNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, kept, bias=False)
        self.value = nn.Linear(width, kept, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.before_feed_forward = RmsNorm(width)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def project(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys, values (N, heads, tokens, features) of normalized `x`."""
        q = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k = self.key(x).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        v = self.value(x).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        return rotate(q, places), rotate(k, places), v

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """What follows attention; `mixed` is what that read, by heads."""
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        y = self.before_feed_forward(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def forward(self, x: Tensor) -> Tensor:
        """(N, tokens, width) to the same; each token sees those before it."""
        places = torch.arange(x.shape[1], device=x.device)
        q, k, v = self.project(self.before_attention(x), places)
        mixed = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
        return self.finish(x, mixed)


class LlamaStep(nn.Module):
    """One token more: keys and values of those before it are in a cache."""

    def __init__(self, block: LlamaBlock) -> None:
        super().__init__()
        self.block = block

    def forward(
        self, x: Tensor, place: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`x` (N, 1, width) at `place` (1,), i64; caches (N, groups, all, features).

        Returns the block's output and the caches with this token's rows written.
        """
        q, k, v = self.block.project(self.block.before_attention(x), place)
        places = torch.arange(keys.shape[2], device=x.device)
        here = (places == place)[:, None]
        keys, values = torch.where(here, k, keys), torch.where(here, v, values)
        seen = places <= place
        mask = torch.zeros(keys.shape[2], dtype=x.dtype, device=x.device)
        mask = mask.masked_fill(~seen, float("-inf"))
        mixed = functional.scaled_dot_product_attention(
            q, keys, values, attn_mask=mask[None, None, None], enable_gqa=True
        )
        return self.block.finish(x, mixed), keys, values


class Llama(nn.Module):
    """An embedding of tokens, blocks, and scores for the token that follows.

    Keys and values of tokens are written to caches: each token is computed once.
    """

    blocks: Any  # LlamaBlocks, of which nn.ModuleList's type says nothing

    def __init__(
        self,
        layers: int = 32,
        width: int = 4096,
        heads: int = 32,
        groups: int = 8,
        hidden: int = 14336,
        vocabulary: int = 128256,
    ) -> None:
        super().__init__()
        self.groups, self.features = groups, width // heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(
            LlamaBlock(width, heads, groups, hidden) for _ in range(layers)
        )
        self.normalize = RmsNorm(width)
        self.scores = nn.Linear(width, vocabulary, bias=False)

    def caches(self, count: int, longest: int) -> list[Tensor]:
        """Empty ones for `count` sequences: keys of each block, then values of each."""
        shape = count, self.groups, longest, self.features
        like = self.tokens.weight
        return [like.new_zeros(shape) for _ in range(2 * len(self.blocks))]

    def forward(self, tokens: Tensor, places: Tensor, caches: list[Tensor]) -> Tensor:
        """Scores (N, vocabulary) for what follows the last of `tokens` (N, count), i64.

        places: of the tokens, (count,), i64; those before them are in `caches`, to
            which these are added
        """
        x, layers = self.tokens(tokens), len(self.blocks)
        columns = torch.arange(caches[0].shape[2], device=x.device)
        seen = columns <= places[:, None]
        for number, block in enumerate(self.blocks):
            keys, values = caches[number], caches[layers + number]
            q, k, v = block.project(block.before_attention(x), places)
            keys.index_copy_(2, places, k)
            values.index_copy_(2, places, v)
            mixed = functional.scaled_dot_product_attention(
                q, keys, values, attn_mask=seen, enable_gqa=True
            )
            x = block.finish(x, mixed)
        return self.scores(self.normalize(x[:, -1]))
