"""Views of arrays of unknown sizes, in forms that are lowered without checks.

    aten.view(x, [s0 * 32, 64])    ->    prims.collapse(x, 0, 1)     // x: s0 x 32 x 64
    aten.view(y, [s0, 32, s1])     ->    aten.unflatten(y, 0, [s0, 32, s1])
    aten.expand(x, [s0, 2, 16])    ->    x                           // has that shape
    aten.split(x, s0)[1]           ->    aten.slice(x, 0, s0, s0 * 2)

torch-mlir computes the sizes of a general view when the program runs, and asserts that
they are some, or takes (6, 8) viewed as (2, 24) for the same with other names. So no
view of unknown sizes is left to it: where no parts of dimensions are known that hold
the same elements, all dimensions are one part.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import sympy
import torch

from alcop_mlir.errors import CompileError
from alcop_mlir.torch.checks import name_of
from alcop_mlir.torch.numbers import VIEWS
from alcop_mlir.torch.symbols import Quotient, atoms, canonical, expression

_ATEN: Any = torch.ops.aten
_PRIMS: Any = torch.ops.prims

_SPLITS = (_ATEN.split.Tensor, _ATEN.split_with_sizes.default)

# Dimensions of an array, and those of a view of it that hold the same elements.
Group = tuple[range, range]


def simplify(graph: torch.fx.Graph) -> None:
    """Rewrite the views of `graph`, whose nodes have their values in `meta["val"]`."""
    for node in list(graph.nodes):
        if node.target == _ATEN.expand.default and _shape(node) == _shape(node.args[0]):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target in VIEWS:
            _rewrite(graph, node)
        elif node.target is operator.getitem and node.args[0].target in _SPLITS:
            _slice(graph, node)


def _rewrite(graph: torch.fx.Graph, view: torch.fx.Node) -> None:
    source: Any = view.args[0]
    before, after = _shape(source), _sizes(view)
    if all(size.is_number for size in (*before, *after)):
        return
    given: Any = view.args[1]
    sizes = [
        int(size) if size.is_number else one
        for size, one in zip(after, given, strict=True)
    ]
    every = range(len(before)), range(len(after))
    found = groups(before, after) or ([every] if before and after else [])
    if any(
        -1 in parts and sum(map(_is_unknown, parts)) > 1
        for parts in ([sizes[n] for n in new] for _, new in found)
    ):
        raise CompileError(
            f"{name_of(view)}: several sizes of a view are not known, and one is -1"
        )
    made = source
    with graph.inserting_before(view):
        for old, new in reversed(found):  # so that numbers before it stay
            first, last = old[0], old[-1]
            if len(old) > 1:
                made = _call(graph, view, _PRIMS.collapse.default, made, first, last)
            if len(new) > 1:
                parts = [sizes[n] for n in new]
                made = _call(graph, view, _ATEN.unflatten.int, made, first, parts)
    if made is not source:
        made.meta["val"] = view.meta["val"]  # with its strides, which callers rely on
    view.replace_all_uses_with(made)
    graph.erase_node(view)


def _slice(graph: torch.fx.Graph, part: torch.fx.Node) -> None:
    """Replace a part of a split whose sizes are computed by a slice."""
    split: Any = part.args[0]
    number: Any = part.args[1]
    source, sizes, dim = (*split.args, 0)[:3]
    if isinstance(sizes, int) or not any(map(_is_node, _flat(sizes))):
        return
    with graph.inserting_before(part):
        if isinstance(sizes, list):
            first = reduce(partial(_computed, graph, operator.add), sizes[:number], 0)
            last = _computed(graph, operator.add, first, sizes[number])
        else:
            first = _computed(graph, operator.mul, sizes, number)
            last = _computed(graph, operator.mul, sizes, number + 1)
        made = _call(graph, part, _ATEN.slice.Tensor, source, dim, first, last)
    made.meta["val"] = part.meta["val"]
    part.replace_all_uses_with(made)
    graph.erase_node(part)


def _flat(sizes: Any) -> list[Any]:
    return sizes if isinstance(sizes, list) else [sizes]


def _is_node(size: Any) -> bool:
    return isinstance(size, torch.fx.Node)


def _computed(graph: torch.fx.Graph, op: Any, one: Any, other: Any) -> Any:
    """A number, or the node that computes it."""
    if not _is_node(one) and not _is_node(other):
        return op(one, other)
    made = graph.call_function(op, (one, other))
    made.meta["val"] = op(_value(one), _value(other))
    return made


def _is_unknown(size: Any) -> bool:
    return not isinstance(size, int) or size < 0


def _multiples(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """`before` with multiples for sizes whose quotients are in `after`.

    s0 is 4 * Quotient(s0, 4) in a view by that: it has as many elements as before, and
    where s0 is no multiple of 4 it would have fewer.
    """
    found = {
        atom.args[0]: atom * atom.args[1]
        for size in after
        for atom in atoms(size)
        if isinstance(atom, Quotient) and atom.args[0].is_Symbol
    }
    return [canonical(size.xreplace(found)) for size in before]


def groups(before: Sequence[Any], after: Sequence[Any]) -> list[Group] | None:
    """The smallest parts of two shapes, in order, with equal numbers of elements.

    Of a view and what it is of, so that both have as many elements in all.
    """
    return _parts(before, after) or _parts(_multiples(before, after), after)


def _parts(before: Sequence[Any], after: Sequence[Any]) -> list[Group] | None:
    found: list[Group] = []
    i = j = 0
    while i < len(before) and j < len(after):
        old, new = range(i, i + 1), range(j, j + 1)
        while (share := _share(before, old, after, new)) != 1:
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


def _share(before: Sequence[Any], old: range, after: Sequence[Any], new: range) -> Any:
    """How many times the elements of `old` those of `new` are."""
    return sympy.cancel(_elements(after, new) / _elements(before, old))


def _elements(shape: Sequence[Any], dimensions: range) -> Any:
    return math.prod(shape[number] for number in dimensions)


def _shape(node: Any) -> tuple[Any, ...]:
    """The sizes of a node's array, as torch's expressions."""
    return tuple(canonical(expression(size)) for size in node.meta["val"].shape)


def _sizes(view: torch.fx.Node) -> tuple[Any, ...]:
    """The sizes that a view is given, as torch's expressions."""
    given: Any = view.args[1]
    return tuple(
        known if size == -1 else canonical(expression(_value(size)))
        for size, known in zip(given, _shape(view), strict=True)
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
