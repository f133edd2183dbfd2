"""Numbers in a graph that are sizes, read from arrays.

    def forward(s0, x):                          def forward(x, half):
        n = s0 // 2                      ->          n = aten.sym_size(half, 0)
        return aten.slice(x, 0, 0, n)                return aten.slice(x, 0, 0, n)

A program gets arrays only. Sizes of these it has; what is a polynomial in such it
computes. For other sizes, as quotients, it gets an array of that size, which nobody
reads (`Graph.sizes`). Their values torch computes in each call.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions as torch_sympy

from alcop_mlir.errors import CompileError
from alcop_mlir.frozen import frozen
from alcop_mlir.torch.shapes import Known
from alcop_mlir.torch.symbols import (
    Quotient,
    atoms,
    canonical,
    expression,
    number,
    quotient,
)

_ATEN: Any = torch.ops.aten
VIEWS = (_ATEN.view.default, _ATEN.reshape.default, _ATEN._unsafe_view.default)
SIZED = torch.int8
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat)
_CONVERT: Any = torch.ops.prims.convert_element_type.default
_TRUE_DIVIDE: Any = _ATEN.true_divide.Tensor
_COMPUTED: dict[Any, Any] = {
    _ATEN.mul.Tensor: operator.mul,
    _ATEN.div.Tensor: operator.truediv,
}
_RATIOS = (torch_sympy.IntTrueDiv, torch_sympy.FloatTrueDiv)


def settle(graph: torch.fx.Graph) -> None:
    """Let sizes be numbers that torch has found to be, after it named them."""
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            node.meta["val"] = _settled(value)
            node.meta.pop("tensor_meta", None)
        elif isinstance(value, list | tuple):
            node.meta["val"] = type(value)(
                _settled(one) if isinstance(one, torch.Tensor) else one for one in value
            )


def _settled(value: Any) -> torch.Tensor:
    given = (*value.shape, *value.stride())
    if all(type(size) is int or not expression(size).is_number for size in given):
        return value
    known = [int(size) if expression(size).is_number else size for size in given]
    sizes, strides = known[: value.dim()], known[value.dim() :]
    with value.fake_mode:
        return torch.empty_strided(
            sizes, strides, dtype=value.dtype, device=value.device
        )


def compute(graph: torch.fx.Graph, may_add: bool) -> tuple[tuple[Any, ...], Known]:
    """Compute all numbers of `graph` from sizes; those of the arrays that are added.

    may_add: whether the graph may get more arguments, which callers know nothing of
    And what is known of the sizes of all arguments that are arrays.
    CompileError where an argument is a number that is no size.
    """
    arrays = [one for one in graph.find_nodes(op="placeholder") if _is_array(one)]
    values = [one.meta["val"] for one in arrays]
    form = Form(_multiples(values) if may_add else {})
    shapes = [[form.of(size) for size in value.shape] for value in values]
    places = {
        size: (node, dimension)
        for node, shape in reversed(list(zip(arrays, shapes, strict=True)))
        for dimension, size in reversed(list(enumerate(shape)))
        if [size] == [*atoms(size)]
    }
    added: list[Any] = []
    if may_add and arrays:
        wanted = [size for size in _wanted(graph, form) if size not in places]
        added = [size for size in wanted if _is_known_in_calls(size, graph)]
        places |= _add(graph, added, values[0])
    _fold_scalars(graph)
    _replace(graph, places, form)
    known = Known([*shapes, *([size] for size in added)], _least(values))
    return tuple(added), known


@frozen
class Form:
    """The form of sizes of which some are multiples of a number.

    multiples: by symbol what it is, such as 4 * Quotient(s0, 4)
    """

    multiples: dict[Any, Any]

    def of(self, size: Any) -> Any:
        """The canonical form of a size."""
        return canonical(expression(size).xreplace(self.multiples))


def _multiples(values: Sequence[Any]) -> dict[Any, Any]:
    """Symbols that torch has found to be multiples."""
    found: dict[Any, int] = {}
    for value in values:
        for size in value.shape:
            if isinstance(size, torch.SymInt):
                for one in size.node.shape_env.divisible:
                    symbol, by = one.args[:2]
                    if symbol.is_Symbol and by.is_Integer:
                        found[symbol] = math.lcm(found.get(symbol, 1), int(by))
    return {one: by * quotient(one, sympy.Integer(by)) for one, by in found.items()}


def _least(values: Iterable[Any]) -> dict[Any, int]:
    """What each symbol among sizes of arrays is at least, as torch has checked."""
    found: dict[Any, int] = {}
    for value in values:
        for size in value.shape:
            if isinstance(size, torch.SymInt):
                ranges = size.node.shape_env.var_to_range
                for symbol in size.node.expr.free_symbols:
                    lower: Any = ranges[symbol].lower if symbol in ranges else 0
                    is_known = getattr(lower, "is_Integer", False)
                    found[symbol] = int(lower) if is_known else 0
    return found


def _is_array(node: Any) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _wanted(graph: torch.fx.Graph, form: Form) -> list[Any]:
    """The atoms of all sizes, those of arguments first."""
    found: dict[Any, None] = {}
    for node in graph.nodes:
        for size in _sizes(node):
            if not expression(size).is_number:
                found |= dict.fromkeys(atoms(form.of(size)))
    return list(found)


def _sizes(node: torch.fx.Node) -> Iterator[Any]:
    value = node.meta.get("val")
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, torch.Tensor):
            yield from one.shape
        elif isinstance(one, torch.SymInt) and node.users:
            yield one


def _is_known_in_calls(size: Any, graph: torch.fx.Graph) -> bool:
    """Whether calls give the values of all its symbols, and it can be a size."""
    given: set[Any] = set()
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        shape = value.shape if isinstance(value, torch.Tensor) else (value,)
        given |= {
            expression(one)
            for one in shape
            if isinstance(one, torch.SymInt) and expression(one).is_Symbol
        }
    is_size = size.is_Symbol or size.is_nonnegative
    return bool(is_size) and size.is_integer and size.free_symbols <= given


def _add(graph: torch.fx.Graph, sizes: list[Any], like: Any) -> dict[Any, Any]:
    """Placeholders of these sizes, after the others; where each size is."""
    mode = like.fake_mode
    last = graph.find_nodes(op="placeholder")[-1]
    places = {}
    for count, size in enumerate(sizes):
        with graph.inserting_after(last):
            last = graph.placeholder(f"size_{count}")
        with mode:
            last.meta["val"] = torch.empty(_symbolic(size, mode.shape_env), dtype=SIZED)
        places[size] = (last, 0)
    return places


def _symbolic(size: Any, env: Any) -> Any:
    hints = {one: int(env.backed_var_to_val[one]) for one in size.free_symbols}
    known = size.replace(Quotient, torch_sympy.FloorDiv)
    return env.create_symintnode(known, hint=number(size, hints))


def _replace(graph: torch.fx.Graph, places: dict[Any, Any], form: Form) -> None:
    """Replace the numbers of `graph` by what is computed of sizes at `places`."""
    first = next((n for n in graph.nodes if n.op != "placeholder"), None)
    made: dict[Any, Any] = {}
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if not isinstance(value, _NUMBERS) or not node.users:
            continue
        known = _number(value, form)
        if known.is_number:
            new = int(known) if known.is_Integer else float(known)
        elif known.is_integer and all(one in places for one in atoms(known)):
            with graph.inserting_before(first):
                new = _computed(graph, known, places, made)
        elif node.op == "placeholder":
            raise CompileError(
                f"argument '{node.name}' is a number that is no array's size: give "
                "it as a tensor"
            )
        else:
            continue
        _use(node, new)
    for node in graph.nodes:
        if node.target in VIEWS and -1 in node.args[1]:
            sizes: Any = list(node.args[1])
            missing = form.of(node.meta["val"].shape[sizes.index(-1)])
            if all(one in places for one in atoms(missing)):
                with graph.inserting_before(node):
                    new = _computed(graph, missing, places, made)
                sizes[sizes.index(-1)] = new
                node.args = (node.args[0], sizes)


def _fold_scalars(graph: torch.fx.Graph) -> None:
    """Let ratios of sizes, which torch computes as tensors, be constants if they are.

    aten.true_divide(aten.scalar_tensor(s0), aten.scalar_tensor(s0 * 2))    ->    0.5
    """
    known: dict[Any, Any] = {}
    for node in graph.find_nodes(op="call_function", target=_TRUE_DIVIDE):
        node.target = _ATEN.div.Tensor  # the same, which torch-mlir has
    for node in list(graph.nodes):
        if not _is_array(node) or node.meta["val"].dim() or node.op != "call_function":
            continue
        operands = [_number_of(one, known) for one in node.args[:2]]
        if node.target == _ATEN.scalar_tensor.default:
            known[node] = operands[0]
        elif node.target == _CONVERT and node.meta["val"].is_floating_point():
            known[node] = operands[0]
        elif node.target in _COMPUTED and not node.kwargs and None not in operands:
            known[node] = sympy.cancel(_COMPUTED[node.target](*operands))
            if known[node].is_number:
                node.target = _ATEN.scalar_tensor.default
                node.args = (float(known[node]),)
                node.kwargs = {"dtype": node.meta["val"].dtype}


def _number_of(argument: Any, known: dict[Any, Any]) -> Any:
    """The expression of a number, or of a tensor of one that is known, or None."""
    if isinstance(argument, torch.fx.Node):
        value = argument.meta.get("val")
        given = expression(value) if isinstance(value, _NUMBERS) else None
        return known.get(argument) if given is None else canonical(given)
    is_number = isinstance(argument, int | float)
    return sympy.nsimplify(argument) if is_number else None


def _use(node: torch.fx.Node, new: Any) -> None:
    """Replace `node`; by numbers, which are no nodes, in each user's arguments."""
    for user in list(node.users):
        if user.op != "output":
            given = torch.fx.map_arg(
                (user.args, user.kwargs), lambda one: new if one is node else one
            )
            user.args, user.kwargs = given
            if user.target == _ATEN.arange.start_step:
                _count_in_integers(user)
            # The number comes first in what torch-mlir lowers with a tensor only.
            if user.target == _ATEN.sub.Tensor and not _is_tensor(user.args[0]):
                user.target = _ATEN.rsub.Scalar
                user.args = (user.args[1], user.args[0])


def _count_in_integers(count: torch.fx.Node) -> None:
    """Let an arange of floats, whose size torch-mlir computes in floats, be converted.

    Only where all its numbers are whole.
    """
    kind = count.kwargs.get("dtype")
    is_whole = all(isinstance(one, int | torch.fx.Node) for one in count.args)
    if not isinstance(kind, torch.dtype) or not kind.is_floating_point or not is_whole:
        return
    value = count.meta["val"]
    count.kwargs = {**count.kwargs, "dtype": torch.int64}
    count.meta["val"] = value.to(torch.int64)
    with count.graph.inserting_after(count):
        made = count.graph.call_function(_CONVERT, (count, kind))
    made.meta = {**count.meta, "val": value}
    count.replace_all_uses_with(made, lambda user: user is not made)


def _is_tensor(argument: Any) -> bool:
    return isinstance(argument, torch.fx.Node) and _is_array(argument)


def _number(value: Any, form: Form) -> Any:
    """The expression of a number, with ratios of sizes as they are."""
    size = expression(value)
    if isinstance(value, torch.SymFloat):
        ratios = size.replace(
            lambda one: isinstance(one, _RATIOS),
            lambda one: sympy.cancel(one.args[0] / one.args[1]),
        )
        return ratios.replace(torch_sympy.ToFloat, lambda one: one)
    return form.of(value)


def _computed(graph: Any, size: Any, places: dict[Any, Any], made: Any) -> Any:
    """A node, or a number, with the value of `size`."""
    if size.is_Integer:
        return int(size)
    if size in made:
        return made[size]
    if size in places:
        array, dimension = places[size]
        new = graph.call_function(_ATEN.sym_size.int, places[size])
        new.meta["val"] = array.meta["val"].shape[dimension]
    else:
        parts = [size.base] * int(size.exp) if size.is_Pow else size.args
        op = operator.add if size.is_Add else operator.mul
        values = [_computed(graph, part, places, made) for part in parts]
        new = reduce(partial(_call, graph, op), values)
    made[size] = new
    return new


def _call(graph: torch.fx.Graph, op: Any, one: Any, other: Any) -> torch.fx.Node:
    new = graph.call_function(op, (one, other))
    new.meta["val"] = op(*map(_value, (one, other)))
    return new


def _value(number: Any) -> Any:
    return number.meta["val"] if isinstance(number, torch.fx.Node) else number
