"""Whether operands, results and attributes of an op of the dialect fit together.

Each function says of its op what does not, as an error at it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.dialects.values import from_attribute
from alcop_mlir.rectangles import Rectangles

RECTANGLES = "alcop.rectangles"
GROUP_TYPE = "!nvgpu.device.async.token"


def is_copy(op: ir.Operation) -> bool:
    """Whether both operands are memrefs, and the first fits into the second."""
    if len(op.operands) != 2:
        return _invalid(op, f"expects 2 operands, got {len(op.operands)}")
    source, target = (operand.type for operand in op.operands)
    if not all(isinstance(kind, ir.MemRefType) for kind in (source, target)):
        return _invalid(op, f"expects two memrefs, got {source} and {target}")
    if source.element_type != target.element_type or not _fits(source, target):
        return _invalid(
            op,
            "expects source and target of one element type, and the source of the "
            f"target's rank and nowhere larger, got {source} and {target}",
        )
    return True


def _fits(source: ir.Type, target: ir.Type) -> bool:
    """Whether no size of `source` is known to be larger than that of `target`."""
    return source.rank == target.rank and all(
        source.is_dynamic_dim(number) or source.shape[number] <= target.shape[number]
        for number in range(source.rank)
        if not target.is_dynamic_dim(number)
    )


def is_gather(op: ir.Operation) -> bool:
    """Whether its operands are a memref, a tile, and vectors of the tile's rows."""
    types = [operand.type for operand in op.operands]
    if len(types) not in (4, 5):
        return _invalid(op, f"expects 4 or 5 operands, got {len(types)}")
    source, target, rows, valid = types[:4]
    if not all(isinstance(kind, ir.MemRefType) for kind in (source, target)) or (
        (source.rank, target.rank) != (1, 2)
        or source.element_type != target.element_type
        or not target.has_static_shape
    ):
        return _invalid(
            op,
            "expects a source of one dimension and a target of two known ones, of one "
            f"element type, got {source} and {target}",
        )
    for kind, element in ((rows, "index"), (valid, "i1")):
        expected = ir.Type.parse(f"vector<{target.shape[0]}x{element}>")
        if kind != expected:
            return _invalid(op, f"expects {expected} for {target}, got {kind}")
    if len(types) == 5 and not isinstance(types[4], ir.IndexType):
        return _invalid(op, f"expects a width of type index, got {types[4]}")
    return True


# Each with the least that it may hold; None for any number.
_WINDOW_LISTS = {"size": 1, "strides": 1, "dilations": 1, "low": None, "high": None}


def is_im2col(op: ir.Operation, window: dict[str, Any]) -> bool:
    """Whether its window fits its source and result."""
    source, matrix = op.operands[0].type, op.results[0].type
    if not all(isinstance(kind, ir.MemRefType) for kind in (source, matrix)):
        return _invalid(op, f"expects two memrefs, got {source} and {matrix}")
    missing = [name for name in (*_WINDOW_LISTS, "groups") if name not in window]
    if missing:
        return _invalid(op, f"expects a window with {', '.join(missing)}")
    for name, least in _WINDOW_LISTS.items():
        is_small = least is not None and min(window[name], default=least) < least
        if len(window[name]) != source.rank - 2 or is_small:
            bound = "" if least is None else f"of at least {least} "
            return _invalid(
                op,
                f"expects {source.rank - 2} {name} {bound}for {source}, "
                f"got {window[name]}",
            )
    groups = window["groups"]
    channels = source.shape[source.rank - 1]
    if source.is_dynamic_dim(source.rank - 1) or groups < 1 or channels % groups:
        return _invalid(op, f"expects groups that divide {channels}, got {groups}")
    rank = 2 if groups == 1 else 3
    taps = math.prod(window["size"])
    expected = [*([groups] if groups > 1 else []), taps * channels // groups]
    if matrix.rank != rank or matrix.shape[1:] != expected:
        return _invalid(op, f"expects rows of {expected} elements, got {matrix}")
    if source.element_type != matrix.element_type:
        return _invalid(op, f"expects {source.element_type} elements, got {matrix}")
    return True


# Ranks of table, indices and what is taken.
_TAKEN = ((2, 1, 2), (2, 2, 3), (3, 2, 3), (3, 1, 3))


def is_take(op: ir.Operation) -> bool:
    """Whether its result has a row of the table for each index."""
    table, indices, matrix = *(one.type for one in op.operands), op.results[0].type
    kinds = (table, indices, matrix)
    if not all(isinstance(kind, ir.MemRefType) for kind in kinds) or (
        (table.rank, indices.rank, matrix.rank) not in _TAKEN
        or table.element_type != matrix.element_type
        or indices.shape != matrix.shape[: indices.rank]
        or table.shape[indices.rank - matrix.rank :] != matrix.shape[indices.rank :]
    ):
        return _invalid(
            op,
            "expects a table and indices, and a matrix, or a batch of them, with a row "
            "or a matrix of the table for each index, "
            f"got {table}, {indices} and {matrix}",
        )
    return True


def is_rows(op: ir.Operation) -> bool:
    """Whether the matrix has the elements of the source, of known shapes."""
    source, matrix = op.operands[0].type, op.results[0].type
    is_fit = all(
        isinstance(kind, ir.MemRefType) and kind.rank > 1 for kind in (source, matrix)
    )
    rows = _count(source.shape[:-1]) if is_fit else 0
    if RECTANGLES in op.attributes:
        is_known = is_fit and source.has_static_shape
        if not is_known or not _is_rectangles(
            from_attribute(op.attributes[RECTANGLES]), source, rows
        ):
            return _invalid(
                op,
                "expects rectangles = {places = [P, Q], sides = [high, wide]} and a "
                f"matrix of whole images, got {op.attributes[RECTANGLES]} and {source}",
            )
        rows = rectangles_of(op.attributes[RECTANGLES]).numbers(rows)
    if (
        not is_fit
        or source.element_type != matrix.element_type
        or list(matrix.shape) != [rows, source.shape[-1]]
        or source.get_strides_and_offset()[0][-1] != 1
    ):
        return _invalid(
            op,
            "expects a memref without gaps in its rows, and a matrix of these rows, "
            f"got {source} and {matrix}",
        )
    return True


def rectangles_of(attribute: ir.Attribute) -> Rectangles:
    """The order that the attribute of an `alcop.rows` says."""
    given = from_attribute(attribute)
    (p, q), (high, wide) = given["places"], given["sides"]
    return Rectangles((p, q), (high, wide))


def _count(sizes: Sequence[int]) -> int:
    """The product of sizes as a type has it."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return dynamic if dynamic in sizes else math.prod(sizes)


def _is_rectangles(given: Any, source: ir.Type, rows: int) -> bool:
    """Whether rectangles have the members that they need, and fit the source."""
    if not isinstance(given, dict) or {*given} != {"places", "sides"}:
        return False
    numbers = [one for pair in given.values() for one in pair]
    is_whole = [len(pair) for pair in given.values()] == [2, 2] and min(numbers) > 0
    return is_whole and source.rank == 2 and rows % math.prod(given["places"]) == 0


_MMA_MEMBERS = ("shape", "types", "transpose_b", "adds")


def is_warpgroup_mma(op: ir.Operation) -> bool:
    """Whether registers and attributes are those of a wgmma."""
    missing = [one for one in _MMA_MEMBERS if one not in op.attributes]
    if missing:
        return _invalid(op, f"expects the attribute '{missing[0]}'")
    sums, *words, descriptor = (str(one.type) for one in op.operands)
    if str(op.results[0].type) != sums or not sums.startswith("!llvm.struct"):
        return _invalid(op, f"expects a struct of accumulators twice, got {sums}")
    if {*words} != {"i32"} or descriptor != "i64":
        got = ", ".join([*words, descriptor])
        return _invalid(op, f"expects four words and a descriptor, got {got}")
    return True


def has_group_type(op: ir.Operation, types: list[Any]) -> bool:
    """Whether these are the types of one commit group."""
    if [str(t) for t in types] == [GROUP_TYPE]:
        return True
    got = ", ".join(str(t) for t in types) or "none"
    return _invalid(op, f"expects one {GROUP_TYPE}, got {got}")


def _invalid(op: ir.Operation, why: str) -> bool:
    op.operation.location.emit_error(f"'{op.operation.name}' op {why}")
    return False
