"""Views of arrays of unknown sizes, in forms that are lowered without checks.

    aten.view(x, [s0 * 32, 64])    ->    prims.collapse(x, 0, 1)     // x: s0 x 32 x 64
    aten.view(y, [s0, 32, s1])     ->    aten.unflatten(y, 0, [s0, 32, s1])
    aten.expand(x, [s0, 2, 16])    ->    x                           // has that shape

torch-mlir computes the sizes of a general view when the program runs, and asserts that
they are some. A view stays one where its dimensions are no parts of the others, or
where torch computes one of several unknown ones, as -1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy
import torch

_ATEN: Any = torch.ops.aten
_PRIMS: Any = torch.ops.prims
_VIEWS = (_ATEN.view.default, _ATEN.reshape.default, _ATEN._unsafe_view.default)

# Dimensions of an array, and those of a view of it that hold the same elements.
Group = tuple[range, range]


def simplify(graph: torch.fx.Graph) -> None:
    """Rewrite the views of `graph`, whose nodes have their values in `meta["val"]`."""
    for node in list(graph.nodes):
        if node.target == _ATEN.expand.default and _shape(node) == _shape(node.args[0]):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target in _VIEWS:
            _rewrite(graph, node)


def _rewrite(graph: torch.fx.Graph, view: torch.fx.Node) -> None:
    source: Any = view.args[0]
    before, after = _shape(source), _shape(view)
    if all(size.is_number for size in (*before, *after)):
        return
    found = groups(before, after)
    given: Any = view.args[1]
    sizes = [
        int(size) if size.is_number else one
        for size, one in zip(after, given, strict=True)
    ]
    if found is None or any(
        -1 in parts and sum(map(_is_unknown, parts)) > 1
        for parts in ([sizes[n] for n in new] for _, new in found)
    ):
        return
    made = source
    with graph.inserting_before(view):
        for old, new in reversed(found):  # so that numbers before it stay
            first, last = old[0], old[-1]
            if len(old) > 1:
                made = _call(graph, view, _PRIMS.collapse.default, made, first, last)
            if len(new) > 1:
                parts = [sizes[n] for n in new]
                made = _call(graph, view, _ATEN.unflatten.int, made, first, parts)
    view.replace_all_uses_with(made)
    graph.erase_node(view)


def _is_unknown(size: Any) -> bool:
    return not isinstance(size, int) or size < 0


def groups(before: Sequence[Any], after: Sequence[Any]) -> list[Group] | None:
    """The smallest parts of two shapes, in order, with equal numbers of elements."""
    found: list[Group] = []
    i = j = 0
    while i < len(before) and j < len(after):
        old, new = range(i, i + 1), range(j, j + 1)
        while (share := _elements(after, new) / _elements(before, old)) != 1:
            grows = old if sympy.fraction(share)[1] == 1 else new
            if grows.stop == len(before if grows is old else after):
                return None
            if grows is old:
                old = range(old.start, old.stop + 1)
            else:
                new = range(new.start, new.stop + 1)
        found.append((old, new))
        i, j = old.stop, new.stop
    return _with_ones(found, before, after)


def _with_ones(
    found: list[Group], before: Sequence[Any], after: Sequence[Any]
) -> list[Group] | None:
    """Let the last group take the dimensions of one that are left."""
    if not found:
        return None
    old, new = found[-1]
    rest = (*before[old.stop :], *after[new.stop :])
    if any(size != 1 for size in rest):
        return None
    last = range(old.start, len(before)), range(new.start, len(after))
    return [*found[:-1], last]


def _elements(shape: Sequence[Any], dimensions: range) -> Any:
    return math.prod(shape[number] for number in dimensions)


def _shape(node: Any) -> tuple[Any, ...]:
    """The sizes of a node's array, as torch's expressions."""
    return tuple(
        sympy.sympify(getattr(getattr(size, "node", None), "expr", size))
        for size in node.meta["val"].shape
    )


def _call(
    graph: torch.fx.Graph, view: torch.fx.Node, op: Any, *arguments: Any
) -> torch.fx.Node:
    """A node with what `view` knows of where it stands."""
    made = graph.call_function(op, arguments)
    made.meta = {name: one for name, one in view.meta.items() if name != "tensor_meta"}
    made.meta["val"] = op(*map(_value, arguments))
    return made


def _value(argument: Any) -> Any:
    """What a node, or each of a list, gives; numbers as they are."""
    if isinstance(argument, list):
        return list(map(_value, argument))
    return argument.meta["val"] if isinstance(argument, torch.fx.Node) else argument
