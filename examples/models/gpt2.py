"""GPT-2 (Radford et al., 2019): decoder blocks with causal attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Gpt2Block(nn.Module):
    """Normalized attention and feed-forward net, each added to its input."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.before_feed_forward = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(N, tokens, width) to the same."""
        joined = self.query_key_value(self.before_attention(x))
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in joined.chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        y = self.expand(self.before_feed_forward(x))
        return x + self.contract(functional.gelu(y, approximate="tanh"))


class Gpt2(nn.Module):
    """An embedding of tokens and places, blocks, and scores for the next token."""

    def __init__(
        self,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        vocabulary: int = 50257,
        longest: int = 1024,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(layers))
        self.normalize = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Token numbers (N, tokens), i64, to scores (N, tokens, vocabulary)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.normalize(x), self.tokens.weight)
