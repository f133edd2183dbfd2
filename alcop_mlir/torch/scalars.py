"""Numbers that a program computes with bytes, as arrays of one byte.

    aten.sub(x, 8)             ->    aten.sub(x, aten.full([], 8))          // x: int8
    aten.remainder(x, 3)       ->    aten.remainder(x, aten.full([], 3))

torch-mlir ends the process at such a number, which it converts to a type of eight bits.
"""

from __future__ import annotations

from typing import Any

import torch

_ATEN: Any = torch.ops.aten
# The form of each op for two arrays.
_OF_ARRAYS: dict[Any, Any] = {
    _ATEN.add.Tensor: _ATEN.add.Tensor,
    _ATEN.sub.Tensor: _ATEN.sub.Tensor,
    _ATEN.mul.Tensor: _ATEN.mul.Tensor,
    _ATEN.div.Tensor_mode: _ATEN.div.Tensor_mode,
    _ATEN.remainder.Scalar: _ATEN.remainder.Tensor,
    _ATEN.fmod.Scalar: _ATEN.fmod.Tensor,
}


def box_numbers(graph: torch.fx.Graph) -> None:
    """Replace numbers that are operands of ops on bytes."""
    for node in list(graph.nodes):
        value = node.meta.get("val")
        is_of_bytes = isinstance(value, torch.Tensor) and value.dtype == torch.int8
        if not is_of_bytes or node.target not in _OF_ARRAYS:
            continue
        number = node.args[1]
        if not isinstance(number, int):
            continue
        wrapped = (number + 128) % 256 - 128  # as torch wraps it
        with graph.inserting_before(node):
            one = graph.call_function(
                _ATEN.full.default, ([], wrapped), {"dtype": torch.int8}
            )
        one.meta = {**node.meta, "val": value.new_empty(())}
        node.target = _OF_ARRAYS[node.target]
        node.args = (node.args[0], one, *node.args[2:])
