"""Views of arrays of unknown sizes, in forms that are lowered without checks.

    aten.view(x, [s0 * 32, 64])    ->    prims.collapse(x, 0, 1)     // x: s0 x 32 x 64
    aten.view(y, [s0, 32, 64])     ->    prims.split_dim(y, 0, s0)
    aten.expand(x, [s0, 2, 16])    ->    x                           // has that shape

torch-mlir computes the sizes of a general view when the program runs, and asserts that
they are some. A view stays one where a dimension is split into several unknown ones.
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
    if found is None or any(
        sum(not after[n].is_number for n in new) > 1 < len(new) for _, new in found
    ):
        return
    made = source
    with graph.inserting_before(view):
        for old, new in reversed(found):  # so that numbers before it stay
            if len(old) > 1:
                made = _call(
                    graph, view, _PRIMS.collapse.default, made, old[0], old[-1]
                )
            for step, number in enumerate(new[:-1]):
                size = view.args[1][number]  # type: ignore[index]
                size = int(after[number]) if after[number].is_number else size
                dimension = old[0] + step
                made = _call(
                    graph, view, _PRIMS.split_dim.default, made, dimension, size
                )
    view.replace_all_uses_with(made)
    graph.erase_node(view)


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
    made.meta = dict(view.meta)
    made.meta["val"] = op(
        *(one.meta["val"] if hasattr(one, "meta") else one for one in arguments)
    )
    return made
