"""BERT (Devlin et al., arXiv 1810.04805): encoder layers behind an embedding."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(N, tokens, width) to (N, heads, tokens, width / heads)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(N, heads, tokens, features) to (N, tokens, heads * features)."""
    return x.transpose(1, 2).flatten(2)


class BertLayer(nn.Module):
    """Attention, then a feed-forward net; each added to its input and normalized."""

    def __init__(self, width: int = 768, heads: int = 12, hidden: int = 3072) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.after_attention = nn.LayerNorm(width)
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)
        self.after_feed_forward = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """(N, tokens, width) to the same; `mask` (N, 1, 1, tokens): added to scores."""
        q, k, v = (
            split_heads(layer(x), self.heads)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.after_attention(x + self.output(join_heads(mixed)))
        y = self.contract(functional.gelu(self.expand(x)))
        return self.after_feed_forward(x + y)


class Bert(nn.Module):
    """An embedding of tokens and places, encoder layers, and the pooled first token."""

    def __init__(
        self,
        layers: int = 12,
        width: int = 768,
        heads: int = 12,
        hidden: int = 3072,
        vocabulary: int = 30522,
        longest: int = 512,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        self.normalize = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            BertLayer(width, heads, hidden) for _ in range(layers)
        )
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Token numbers (N, tokens), i64, to a row of features each."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.normalize(self.tokens(tokens) + self.places(places))
        for layer in self.layers:
            x = layer(x, mask)
        return torch.tanh(self.pooler(x[:, 0]))
