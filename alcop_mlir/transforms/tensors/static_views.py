"""Views of tensors of known sizes; builders give the value itself where that does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.bindings import ir, linalg, tensor


def shaped(value: ir.Value, shape: Sequence[int]) -> Any:
    """The type of a value, with another shape."""
    return ir.RankedTensorType.get(shape, value.type.element_type)


def cut(value: ir.Value, ranges: Sequence[tuple[int, int]]) -> Any:
    """The elements in these ranges, each of a first one and a size."""
    shape = [size for _, size in ranges]
    if shape == list(value.type.shape):
        return value
    begins, steps = [begin for begin, _ in ranges], [1] * len(ranges)
    kind = shaped(value, shape)
    return tensor.extract_slice(kind, value, [], [], [], begins, shape, steps)


def taken_apart(value: ir.Value, parts: Sequence[Sequence[int]]) -> Any:
    """Each dimension as several of these sizes, at least one."""
    shape = [size for part in parts for size in part]
    if shape == list(value.type.shape):
        return value
    ends = [sum(len(part) for part in parts[: n + 1]) for n in range(len(parts))]
    groups = [
        list(range(end - len(part), end)) for part, end in zip(parts, ends, strict=True)
    ]
    return tensor.expand_shape(shaped(value, shape), value, groups, [], shape)


def transposed(value: ir.Value, order: Sequence[int]) -> Any:
    """The dimensions in another order."""
    if list(order) == sorted(order):
        return value
    shape = [value.type.shape[number] for number in order]
    empty = tensor.empty(shape, value.type.element_type)
    made = linalg.transpose(value, outs=[empty], permutation=order)
    return made.results[0] if hasattr(made, "results") else made
