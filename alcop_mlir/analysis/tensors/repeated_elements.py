"""Whether each op that reads what an element-wise op makes should compute it itself.

What the op makes is then neither written nor read; all readers read its inputs instead,
and compute its body, for each of their iterations. That is worth it where fewer bytes
are moved, and what is computed more often costs less time than these bytes. Nothing is
saved where a kernel could compute the op with what it reads: a contraction, or a
reduction of rows. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import element_bits
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise_on_tensors
from alcop_mlir.analysis.linalg.elementwise_chains import Link
from alcop_mlir.bindings import ir

# Operations in the time of a byte: an A100 has 9.7e12 of f32 a second (19.5e12 flop/s,
# two in an FMA) and 1.555e12 bytes (NVIDIA A100 datasheet).
_OPS_PER_BYTE = 6
_FREE_OPS = 8  # take no longer than the load that they replace, and its address
_FUNCTION_OPS = 32  # of one like exp, at most those of most bodies of ours
_MOST_FOLLOWED = 32  # tensors that are looked through


def why_not_repeated(link: Link, above: Mapping[Any, Elementwise | None]) -> str | None:
    """Why not all readers compute what the maker makes; None where they should.

    above: the ops above in the block, and the view of those that are element-wise
    """
    maker, tensor = link.producer, link.memref
    users = dict.fromkeys(use.owner.operation for use in tensor.uses)
    readers = [reader_on_tensors(user) for user in users]
    if None in readers or any(one and one.output.value == tensor for one in readers):
        return "other ops use its result too, so that it is computed anyway"
    links = [Link(maker, one, tensor, False) for one in readers if one is not None]
    if _is_of_kernel([one.value for one in maker.reads], above):
        return "other ops read its result too, and what makes its inputs can compute it"
    tensors = {one.value for part in links for one in part.consumer.reads}
    if any(_bytes(one) is None for one in (tensor, *tensors)):
        return "other ops read its result too, and sizes are known at run time only"
    saved = _saved_bytes(links)
    if saved <= 0:
        return (
            f"{len(links)} ops read its result, and would read {-saved} bytes more of "
            "what it is computed from"
        )
    more = _more_ops(links)
    if more > saved * _OPS_PER_BYTE:
        return (
            f"{len(links)} ops read its result, and would compute {more} operations "
            f"more to move {saved} bytes less, expected {saved * _OPS_PER_BYTE} at most"
        )
    return None


def reader_on_tensors(op: ir.Operation) -> Elementwise | None:
    """`op` if it can compute itself what it reads: an element-wise one on tensors."""
    is_linalg = op.name.startswith("linalg.")
    return elementwise_on_tensors(op, with_index=True) if is_linalg else None


def _is_of_kernel(
    tensors: list[ir.Value], above: Mapping[Any, Elementwise | None]
) -> bool:
    """Whether an op that is not element-wise makes what these are computed from."""
    seen, pending = set[Any](), list(tensors)
    while pending and len(seen) < _MOST_FOLLOWED:
        tensor = pending.pop()
        op = defining_op(tensor)
        if op is None or tensor in seen or not isinstance(tensor.type, ir.ShapedType):
            continue
        seen.add(tensor)
        element = above.get(op)
        if element is not None:
            pending += [one.value for one in element.reads]
        elif op.name.startswith("tensor."):
            pending += op.operands
        elif op.name != "arith.constant":
            return True
    return bool(pending)


def _saved_bytes(links: list[Link]) -> int:
    """Bytes that are not moved if all readers compute what they read."""
    maker, tensor = links[0].producer, links[0].memref
    inputs = {one.value for one in maker.reads if _bytes(one.value)}
    saved = (_bytes(tensor) or 0) * (1 + len(links)) + _sum(inputs)
    for link in links:
        read = {one.value for one in link.consumer.reads}
        saved -= _sum(inputs - read)
    return saved


def _more_ops(links: list[Link]) -> int:
    """Operations of the maker's body that all readers compute, beyond its own."""
    maker = links[0].producer
    body = (
        [] if maker.block is None else [op.operation for op in maker.block.operations]
    )
    ops = sum(_FUNCTION_OPS if op.name.startswith("math.") else 1 for op in body[:-1])
    if ops <= _FREE_OPS:
        return 0
    often = [
        _iterations(one.consumer) * len({u.loops for u in one.uses}) for one in links
    ]
    return ops * (sum(often) - _iterations(maker))


def _iterations(element: Elementwise) -> int:
    return math.prod(element.static_size(n) or 1 for n in range(element.rank))


def _sum(tensors: set[Any]) -> int:
    return sum(_bytes(one) or 0 for one in tensors)


def _bytes(value: ir.Value) -> int | None:
    """Bytes of a tensor; None where its size is known at run time only."""
    kind = value.type
    if not isinstance(kind, ir.RankedTensorType):
        return 0
    if not kind.has_static_shape:
        return None
    return math.prod(kind.shape) * (element_bits(kind.element_type) or 64) // 8
