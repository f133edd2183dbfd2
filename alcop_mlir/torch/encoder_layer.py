"""What torch's fast path of `nn.TransformerEncoderLayer` computes, op by op.

Under no_grad, torch calls one op of its own for the whole layer, and one for attention
alone, which torch-mlir does not lower. Masks are as torch gives them: what is not zero
is hidden, of kind 0 (tokens, tokens), 1 (N, tokens), 2 (N, heads, tokens, tokens).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_BY_SEQUENCES = 1


def encoder_layer(
    x: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """aten._transformer_encoder_layer_fwd: (N, tokens, width) to the same."""

    def attend(x: Tensor) -> Tensor:
        qkv = functional.linear(x, qkv_weight, qkv_bias)
        mixed = self_attention(qkv, heads, hidden(mask, mask_type))
        return functional.linear(mixed, proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        inner = functional.gelu(inner) if use_gelu else functional.relu(inner)
        return functional.linear(inner, ffn_weight_2, ffn_bias_2)

    def norm_1(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (width,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (width,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = x + attend(norm_1(x))
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attend(x))
    return norm_2(x + feed_forward(x))


def self_attention(qkv: Tensor, heads: int, hides: Tensor | None) -> Tensor:
    """Attention of (N, tokens, 3 * width), q, k and v side by side: (.., width)."""
    q, k, v = (
        one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in qkv.chunk(3, -1)
    )
    shown = None if hides is None else ~hides
    mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=shown)
    return mixed.transpose(1, 2).flatten(2)


def hidden(mask: Tensor | None, kind: int | None) -> Tensor | None:
    """What is hidden, to be broadcast to (N, heads, tokens, tokens)."""
    if mask is None:
        return None
    hides = mask.to(torch.bool)
    if kind == _BY_SEQUENCES:
        return hides[:, None, None, :]
    return hides
