"""Results whose dimensions lie in memory in another order than that of their shape.

    return y    # 8x4 of 4x8 in memory    ->    return aten.permute(y, [1, 0])    # 4x8

A program writes plain arrays. A caller gets the view of one that has the strides which
torch gives in eager mode: those of channels-last images, of transposed matrices. torch
relies on them where it takes views of results, and in backward passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_PERMUTE: Any = torch.ops.aten.permute.default

# Of each dimension in memory, from the slowest one, its number in the shape.
Order = tuple[int, ...]


def in_memory_order(
    graph: torch.fx.Graph, results: Sequence[torch.fx.Node]
) -> tuple[list[torch.fx.Node], tuple[Order | None, ...]]:
    """`results` with their dimensions as in memory; their orders, None if the same."""
    orders = tuple(order_of(node.meta["val"]) for node in results)
    made = [
        node if order is None else _permuted(graph, node, order)
        for node, order in zip(results, orders, strict=True)
    ]
    return made, orders


def order_of(value: torch.Tensor) -> Order | None:
    """The order of the dimensions of `value` in memory, from the slowest one.

    None where it is that of its shape, or where elements share places. Gaps between
    elements are not kept. Unknown strides are sorted as in the call compiled for.
    """
    strides = [_hint(stride) for stride in value.stride()]
    long = [
        n for n, size in enumerate(value.shape) if type(size) is not int or size > 1
    ]
    order = tuple(sorted(range(len(strides)), key=lambda n: -strides[n]))
    if [n for n in order if n in long] == long or any(strides[n] == 0 for n in long):
        return None
    return order


def in_shape_order(made: torch.Tensor, order: Order | None) -> torch.Tensor:
    """The view of a plain array that has the dimensions of the result's shape."""
    if order is None:
        return made
    return made.permute([order.index(number) for number in range(len(order))])


def _hint(stride: Any) -> int:
    """A stride, or what an unknown one is in the call that is compiled for."""
    return stride if isinstance(stride, int) else int(stride.node.hint or 0)


def _permuted(
    graph: torch.fx.Graph, node: torch.fx.Node, order: Order
) -> torch.fx.Node:
    with graph.inserting_before(graph.output_node()):
        made = graph.call_function(_PERMUTE, (node, list(order)))
    made.stack_trace = node.stack_trace
    made.meta["val"] = node.meta["val"].permute(order)
    return made
