"""How ops of torch are computed, where torch-mlir's way would cost bits or kernels.

    softmax, layer, batch, group and RMS norm, means, sums: in f32, rounded once
    linear, attention: matmuls of 16-bit operands, of f32 accumulators bias or scale

A matmul is rounded to the operands' type and extended again by what follows: the
compiler fuses that into the matmul's kernel, which then rounds once, at its end.

Two tables hold the same functions: `aten()` by the ops that decompositions see, and
`COMPOSITES` by the functions that Dynamo's graphs call, as torch takes those apart
before any table of decompositions is asked.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from alcop_mlir.torch.encoder_layer import encoder_layer

_NARROW = (torch.float16, torch.bfloat16)


def _wide(x: Tensor) -> Tensor:
    """`x` in f32, if it has 16 bits."""
    return x.float() if x.dtype in _NARROW else x


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows of `x` (..., k) times `weight` (n, k), plus `bias` (n,): (..., n)."""
    rows = torch.mm(x.reshape(-1, x.shape[-1]), weight.t())
    if bias is not None:
        rows = (_wide(rows) + bias).to(x.dtype)
    return rows.reshape(*x.shape[:-1], weight.shape[0])


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """torch.matmul; where `y` is a single matrix, as one matmul of all rows of `x`."""
    if y.dim() == 1:
        return matmul(x, y[:, None]).squeeze(-1)
    if x.dim() == 1:
        return matmul(x[None], y).squeeze(-2)
    if y.dim() == 2:
        rows = torch.mm(x.reshape(-1, x.shape[-1]), y)
        return rows.reshape(*x.shape[:-1], y.shape[1])
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (one.expand(*batch, *one.shape[-2:]) for one in (x, y))
    result = torch.bmm(x.flatten(0, -3), y.flatten(0, -3))
    return result.reshape(*batch, *result.shape[-2:])


def addmm(
    bias: Tensor, x: Tensor, y: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """alpha * x y + beta * bias."""
    result = _wide(torch.mm(x, y))
    result = result if alpha == 1 else result * alpha
    return (result + (bias if beta == 1 else _wide(bias) * beta)).to(x.dtype)


def scaled_mm(
    x: Tensor,
    y: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """x y, of floats of eight bits, times scales of rows, columns or all; in f32."""
    result = torch.mm(x.float(), y.float()) * scale_a * scale_b
    result = result if bias is None else result + bias
    result = result if scale_result is None else result * scale_result
    return result.to(out_dtype or x.dtype)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query key^T * scale + mask) value, softmax in f32.

    A row that `attn_mask` hides whole is 0, as torch computes it.
    """
    if dropout_p:
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal,
            scale=scale, enable_gqa=enable_gqa,
        )  # fmt: skip
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        key, value = (_repeated(one, query.shape[-3]) for one in (key, value))
    scores = _wide(matmul(query, key.transpose(-2, -1)))
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = _causal(query.shape[-2], key.shape[-2], query.device)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = torch.where(attn_mask, scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    # Of a causal mask each row sees a column.
    weighted = softmax if attn_mask is None or is_causal else safe_softmax
    return matmul(weighted(scores, -1).to(query.dtype), value)


def _repeated(x: Tensor, heads: int) -> Tensor:
    """(..., groups, tokens, features), each group as often as makes `heads` of them."""
    *batch, groups, tokens, features = x.shape
    wide = x.unsqueeze(-3).expand(*batch, groups, heads // groups, tokens, features)
    return wide.reshape(*batch, heads, tokens, features)


def _causal(rows: int, columns: int, device: torch.device) -> Tensor:
    """Whether a column is no later than its row, (rows, columns)."""
    row = torch.arange(rows, device=device)[:, None]
    return torch.arange(columns, device=device) <= row


def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """aten._softmax: the largest by amax, which needs no place of it."""
    wide = _wide(x)
    powers = torch.exp(wide - torch.amax(wide, dim, keepdim=True))
    result = powers / powers.sum(dim, keepdim=True)
    return result if half_to_float else result.to(x.dtype)


def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """aten._safe_softmax: rows of -inf are 0."""
    wide = _wide(x if dtype is None else x.to(dtype))
    largest = torch.amax(wide, dim, keepdim=True)
    powers = torch.exp(wide - largest)
    result = powers / powers.sum(dim, keepdim=True)
    result = torch.where(largest == -math.inf, 0.0, result)
    return result.to(x.dtype if dtype is None else dtype)


def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """aten._log_softmax."""
    wide = _wide(x)
    wide = wide - torch.amax(wide, dim, keepdim=True)
    result = wide - torch.log(torch.exp(wide).sum(dim, keepdim=True))
    return result if half_to_float else result.to(x.dtype)


def _moments(
    x: Tensor, dims: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` less its mean, that mean, and 1 / sqrt(variance + epsilon); all kept dims."""
    mean = x.mean(dims, keepdim=True)
    centred = x - mean
    variance = (centred * centred).mean(dims, keepdim=True)
    return centred, mean, torch.rsqrt(variance + epsilon)


def layer_norm(
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """aten.native_layer_norm: the result, and mean and 1 / deviation of each row."""
    centred, mean, scale = _moments(_wide(x), tuple(range(-len(shape), 0)), epsilon)
    result = centred * scale
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(x.dtype), mean, scale


def rms_norm(
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Each row divided by the root of its mean square."""
    wide = _wide(x)
    square = (wide * wide).mean(tuple(range(-len(shape), 0)), keepdim=True)
    epsilon = torch.finfo(wide.dtype).eps if eps is None else eps
    result = wide * torch.rsqrt(square + epsilon)
    return (result if weight is None else result * weight).to(x.dtype)


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    momentum: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm at inference: a scale and a shift per channel, made of its vectors."""
    scale = torch.rsqrt(_wide(variance) + epsilon)
    scale = scale if weight is None else scale * weight
    shift = -_wide(mean) * scale
    shift = shift if bias is None else shift + bias
    rest = (1,) * (x.dim() - 2)
    result = _wide(x) * scale.view(-1, *rest) + shift.view(-1, *rest)
    nothing = x.new_empty(0)
    return result.to(x.dtype), nothing, nothing


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    images: int,
    channels: int,
    pixels: int,
    groups: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """aten.native_group_norm: the result, and mean and 1 / deviation of each group."""
    grouped = _wide(x).reshape(images, groups, -1)
    centred, mean, scale = _moments(grouped, (-1,), epsilon)
    result = (centred * scale).reshape(x.shape)
    rest = (1,) * (x.dim() - 2)
    if weight is not None:
        result = result * weight.view(-1, *rest)
    if bias is not None:
        result = result + bias.view(-1, *rest)
    return result.to(x.dtype), mean.squeeze(-1), scale.squeeze(-1)


def mean(
    x: Tensor,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """aten.mean.dim: added up in f32."""
    dims = tuple(dim) if dim else tuple(range(x.dim()))
    count = math.prod(x.shape[one] for one in dims)
    total = _wide(x).sum(dims, keepdim=keepdim)
    return (total / count).to(dtype or x.dtype)


def narrow_sum(
    x: Tensor,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """aten.sum.dim_IntList of 16-bit floats, added up in f32; others as they are."""
    if x.dtype not in _NARROW:
        return NotImplemented
    return (
        x.float()
        .sum(None if dim is None else tuple(dim), keepdim=keepdim)
        .to(dtype or x.dtype)
    )


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """x times the share of the normal distribution below x, or the form with tanh."""
    wide = _wide(x)
    if approximate == "none":
        return (0.5 * wide * (1 + torch.erf(wide * math.sqrt(0.5)))).to(x.dtype)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * (wide * wide * wide))
    return (0.5 * wide * (1 + torch.tanh(inner))).to(x.dtype)


def reciprocal(x: Tensor) -> Tensor:
    """1 / x, infinite for 0, where torch-mlir's own asserts that no element is."""
    kind = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    return torch.full((), 1, dtype=kind, device=x.device) / x


def silu(x: Tensor) -> Tensor:
    """x / (1 + exp(-x))."""
    wide = _wide(x)
    return (wide / (1 + torch.exp(-wide))).to(x.dtype)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return (1 / (1 + torch.exp(-_wide(x)))).to(x.dtype)


_MOST_FACTORS = 4


def power(x: Tensor, exponent: float) -> Tensor:
    """aten.pow.Tensor_Scalar: small whole exponents by multiplying, rounded once."""
    if not (x.dtype.is_floating_point and exponent in range(2, _MOST_FACTORS + 1)):
        return NotImplemented
    wide = _wide(x)
    result = wide * wide
    for _ in range(int(exponent) - 2):
        result = result * wide
    return result.to(x.dtype)


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`x` with slices of `dim` replaced by those of `source`, at `index`.

    An index that `x` does not have is not written. Of several slices for one index the
    last is taken.
    """
    if x.dim() == 0:
        return NotImplemented
    dim %= x.dim()
    places = torch.arange(x.shape[dim], device=x.device)
    inner = (1,) * (x.dim() - 1 - dim)
    if index.numel() == 1:
        here = places == _from_start(index.reshape(()), x.shape[dim])
        return torch.where(here.view(-1, *inner), source, x)
    numbers = torch.arange(index.numel(), device=x.device)
    index = _from_start(index, x.shape[dim])
    number = torch.where(places[:, None] == index, numbers, -1).amax(1)
    rows = torch.index_select(source, dim, number.clamp(min=0))
    return torch.where((number >= 0).view(-1, *inner), rows, x)


def _from_start(index: Tensor, size: int) -> Tensor:
    """Indices of which negative ones are counted from the end."""
    return torch.where(index < 0, index + size, index)


def index_put(
    x: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
) -> Tensor:
    """x[:, index] = values, of one array of indices; several of them as they are."""
    given = [(n, one) for n, one in enumerate(indices) if one is not None]
    if accumulate or len(given) != 1 or given[0][1].dtype is torch.bool:
        return NotImplemented
    ((dim, index),) = given
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    source = values.expand(*before, *index.shape, *after)
    count = index.numel()
    source = source.reshape(*before, count, *after)
    return index_copy(x, dim, index.reshape(count), source)


# By functions of torch, as Dynamo's graphs call them; methods by name.
COMPOSITES: dict[Any, Callable[..., Tensor]] = {
    functional.linear: linear,
    functional.scaled_dot_product_attention: attention,
    functional.rms_norm: rms_norm,
    torch.rms_norm: rms_norm,
    torch.matmul: matmul,
    operator.matmul: matmul,
    "matmul": matmul,
    "__matmul__": matmul,
}


@cache
def aten() -> dict[Any, Callable[..., Any]]:
    """Decompositions by the op of aten: those that torch-mlir needs, and ours."""
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    ops: Any = torch.ops.aten
    ours = {
        ops.linear.default: linear,
        ops.matmul.default: matmul,
        ops.scaled_dot_product_attention.default: attention,
        ops.rms_norm.default: rms_norm,
        ops.addmm.default: addmm,
        ops._scaled_mm.default: scaled_mm,
        ops._softmax.default: softmax,
        ops._safe_softmax.default: safe_softmax,
        ops._log_softmax.default: log_softmax,
        ops.native_layer_norm.default: layer_norm,
        ops.native_group_norm.default: group_norm,
        ops._native_batch_norm_legit_no_training.default: batch_norm,
        ops.mean.dim: mean,
        ops.sum.dim_IntList: narrow_sum,
        ops.gelu.default: gelu,
        ops.silu.default: silu,
        ops.sigmoid.default: sigmoid,
        ops.reciprocal.default: reciprocal,
        ops.pow.Tensor_Scalar: power,
        ops.index_copy.default: index_copy,
        ops.index_put.default: index_put,
        ops._transformer_encoder_layer_fwd.default: encoder_layer,
    }
    return {**get_decomposition_table(), **ours}


def with_composites(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy of a graph of Dynamo's that calls our `COMPOSITES` instead of torch's."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in graph.nodes:
        ours = COMPOSITES.get(node.target) if node.op.startswith("call_") else None
        if ours is not None:
            node.op, node.target = "call_function", ours
    return torch.fx.GraphModule(module, graph)
