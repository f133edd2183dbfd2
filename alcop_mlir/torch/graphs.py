"""Graphs of aten ops, made ready to be imported: arrays in, arrays out.

    def forward(weight, s0, x):               def forward(weight, x):
        y = aten.view(x, [s0 * 2, 32])   ->       s0 = aten.sym_size(x, 0)
        return y, x, None                         y = aten.view(x, [s0 * 2, 32])
                                                  return (y,)

An argument that the graph writes to, by `aten.copy_` at its end, is one that the
program updates in place: its new value is returned last.

Numbers that are sizes of arguments are read from these, and outputs that need not be
computed are remembered. What no program has is refused, with the op's name: kinds of
numbers, sizes that only running tells, arrays in two places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from alcop_mlir.errors import CompileError
from alcop_mlir.frozen import frozen
from alcop_mlir.torch.aliases import View, views
from alcop_mlir.torch.checks import check, check_sizes, name_of
from alcop_mlir.torch.importing import at_places, text_of, with_names
from alcop_mlir.torch.layouts import Order, in_memory_order, in_shape_order
from alcop_mlir.torch.numbers import SIZED, compute, settle
from alcop_mlir.torch.scalars import box_numbers
from alcop_mlir.torch.shapes import Known
from alcop_mlir.torch.symbols import canonical, expression, number
from alcop_mlir.torch.views import simplify

_ATEN: Any = torch.ops.aten


@frozen
class Graph:
    """A graph of which all placeholders are arrays, and where those come from.

    module: returns each array that has to be computed once
    names: of the program's arguments, "" where they have none
    weights: numbers of the program's arguments that many calls give alike
    given: values of the placeholders of the graph as it was given, real or fake
    arguments: for each placeholder its number in `given`
    results: for each output as it was given the number of what `module` returns; -1 - n
        where it is `given[n]`; None where it is no array
    orders: of what `module` returns, see `layouts.py`
    known: sizes of the program's arguments
    updated: placeholders of which `module` returns the new values, after its results
    sizes: of more arguments, arrays of one dimension that are given for their sizes
    numbers: outputs that are sizes, by their number
    views: outputs that are views of arguments or of other outputs, by their number
    """

    module: torch.fx.GraphModule
    names: tuple[str, ...]
    weights: tuple[int, ...]
    given: tuple[Any, ...]
    arguments: tuple[int, ...]
    results: tuple[int | None, ...]
    orders: tuple[Order | None, ...]
    known: Known
    updated: tuple[int, ...] = ()
    sizes: tuple[Any, ...] = ()
    numbers: Mapping[int, Any] = field(default_factory=dict)
    views: Mapping[int, View] = field(default_factory=dict)

    @property
    def returned(self) -> list[torch.Tensor]:
        """What `module` returns besides updates, with the sizes and types it has."""
        every = [one.meta["val"] for one in _outputs(self.module.graph)]
        return every[: len(every) - len(self.updated)]

    @property
    def device(self) -> torch.device:
        """Where the arrays are."""
        arrays = [self.given[number] for number in self.arguments]
        return [*arrays, *self.returned][0].device

    def text(self) -> str:
        """The program. CompileError names an op that torch-mlir does not lower."""
        return at_places(self.text_of_nodes(), list(self.module.graph.nodes))

    def text_of_nodes(self) -> str:
        """The program, with nodes of the graph as locations. CompileErrors alike."""
        first = len(self.returned)
        updates = {n: first + number for number, n in enumerate(self.updated)}
        return text_of(self.module, self.names, self.known, updates, self.weights)

    def with_names(self, message: str) -> str:
        """`message` with names of ops where it has such locations."""
        return with_names(message, list(self.module.graph.nodes))

    def signature(self) -> Iterator[str]:
        """Lines that say what it computes; `text` depends on nothing else."""
        for node in self.module.graph.nodes:
            value = node.meta.get("val") if node.op == "placeholder" else None
            kind = "" if value is None else f" {value.dtype} {tuple(value.shape)}"
            yield f"{node.format_node()}{kind}"
            if node.op == "get_attr":
                yield _hash(getattr(self.module, str(node.target)))
        yield from self.names
        yield f"sizes {self.sizes} {self.known}"
        yield f"updated {self.updated}"
        yield f"weights {self.weights}"

    def sized(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """Arrays for `sizes`, of which nobody reads an element."""
        sizes = dict(_sizes(self.given, arguments)) if self.sizes else {}
        return [
            torch.empty(number(one, sizes), dtype=SIZED, device=self.device)
            for one in self.sizes
        ]

    def empty_results(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """New tensors for what `module` returns, by the sizes of `arguments`."""
        sizes = dict(_sizes(self.given, arguments))
        return [
            torch.empty(
                [_value(size, sizes) for size in one.shape],
                dtype=one.dtype,
                device=one.device,
            )
            for one in self.returned
        ]

    def outputs(
        self, arguments: Sequence[Any], made: Sequence[torch.Tensor]
    ) -> list[Any]:
        """The outputs of the graph as it was given."""
        plain = list(map(in_shape_order, made, self.orders))
        sizes = dict(_sizes(self.given, arguments))
        outputs: list[Any] = [
            None if n is None else plain[n] if n >= 0 else arguments[-1 - n]
            for n in self.results
        ]
        for place, size in self.numbers.items():
            outputs[place] = number(size, sizes)
        for place, view in self.views.items():
            base = outputs[-1 - view.base] if view.base < 0 else arguments[view.base]
            outputs[place] = view.of(base, lambda size: _value(size, sizes))
        return outputs


def graph_of(
    module: torch.fx.GraphModule,
    names: Sequence[str] = (),
    weights: Collection[int] = (),
    has_strides: bool = True,
) -> Graph:
    """What to compile of `module`, whose nodes carry what they give in `meta["val"]`.

    names, weights: names of its placeholders, and numbers of those that are weights
    has_strides: results have torch's strides, else they are plain arrays
    CompileError names what cannot be compiled, and why.
    """
    check(module)
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    module = torch.fx.GraphModule(module, graph)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    settle(graph)
    updates = _take_updates(graph)
    numbers = {
        place: canonical(expression(one.meta["val"]))
        for place, one in enumerate(_outputs(graph))
        if _is_size(one)
    }
    shared = views(_outputs(graph), placeholders) if has_strides else {}
    sizes, known = compute(graph, may_add=not names)
    _drop_unused_results(graph)
    box_numbers(graph)
    simplify(graph)
    arguments = [n for n, one in enumerate(placeholders) if _is_array(one)]
    returned: list[torch.fx.Node] = []
    held = {new: old for old, new in updates}
    outputs = [held.get(one, one) for one in _outputs(graph)]
    results = [
        None
        if place in numbers or place in shared
        else _result(one, placeholders, returned)
        for place, one in enumerate(outputs)
    ]
    orders: tuple[Order | None, ...] = (None,) * len(returned)
    if has_strides:
        returned, orders = in_memory_order(graph, returned)
    every = (*returned, *(new for _, new in updates))
    graph.output_node().args = (every,)
    graph.eliminate_dead_code()
    for one in placeholders:
        if not _is_array(one):
            graph.erase_node(one)
    check_sizes(graph)
    graph.lint()
    module.recompile()
    return Graph(
        module,
        (*(names[n] if names else "" for n in arguments), *("" for _ in sizes)),
        tuple(number for number, n in enumerate(arguments) if n in weights),
        tuple(one.meta.get("val") for one in placeholders),
        tuple(arguments),
        tuple(results),
        orders,
        known,
        tuple(arguments.index(placeholders.index(old)) for old, _ in updates),
        sizes,
        numbers,
        shared,
    )


def _outputs(graph: torch.fx.Graph) -> Sequence[Any]:
    """What the graph returns: nodes, and what is no array."""
    return cast("Sequence[Any]", graph.output_node().args[0])


def _is_array(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _is_size(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(
        node.meta.get("val"), int | torch.SymInt
    )


def _sizes(given: Sequence[Any], arguments: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """What each name of a size stands for in a call."""
    for before, now in zip(given, arguments, strict=True):
        if isinstance(before, torch.Tensor):
            known = (*before.shape, *before.stride())
            pairs = zip(known, (*now.shape, *now.stride()), strict=True)
        else:
            pairs = iter([(before, now)] if isinstance(before, torch.SymInt) else [])
        for size, value in pairs:
            name = expression(size)
            if name.is_Symbol:
                yield name, int(value)


def _value(size: Any, sizes: Mapping[Any, int]) -> int:
    """A size, or a stride, in a call where symbols have these values."""
    return number(canonical(expression(size)), sizes)


def _take_updates(graph: torch.fx.Graph) -> list[tuple[torch.fx.Node, torch.fx.Node]]:
    """Erase copies to arguments; each argument, once, with its value at the end."""
    found: dict[torch.fx.Node, Any] = {}
    for node in list(graph.nodes):
        if node.target != _ATEN.copy_.default:
            continue
        old, new = node.args[:2]
        if old.op != "placeholder" or not _are_alike(old, new):
            raise CompileError(
                f"{name_of(node)}: writes what is no argument of the graph"
            )
        if any(user > node for user in old.users if user.op != "output"):
            raise CompileError(
                f"{name_of(node)}: '{old.name}' is read after it is written"
            )
        node.replace_all_uses_with(old)
        graph.erase_node(node)
        found[old] = new
    return list(found.items())


def _are_alike(old: torch.fx.Node, new: Any) -> bool:
    """Whether both are arrays of one shape and type."""
    if not isinstance(new, torch.fx.Node) or not _is_array(new):
        return False
    one, other = old.meta["val"], new.meta["val"]
    return one.shape == other.shape and one.dtype == other.dtype


def _drop_unused_results(graph: torch.fx.Graph) -> None:
    """Take the form without indices of maxima where nobody reads these."""
    for node in list(graph.nodes):
        plain = _without_indices(node)
        if plain is None or any(user.args[1:] != (0,) for user in node.users):
            continue
        for user in list(node.users):
            with graph.inserting_before(node):
                new = graph.call_function(*plain)
            new.meta = dict(user.meta)
            user.replace_all_uses_with(new)
            graph.erase_node(user)


def _without_indices(node: torch.fx.Node) -> tuple[Any, tuple[Any, ...]] | None:
    """The op, and its arguments, that gives the first result of `node` only."""
    if node.target == _ATEN.max_pool2d_with_indices.default:
        return _ATEN.max_pool2d.default, node.args
    if node.target in (_ATEN.max.dim, _ATEN.min.dim):
        best = _ATEN.amax if node.target == _ATEN.max.dim else _ATEN.amin
        return best.default, (node.args[0], [node.args[1]], *node.args[2:])
    return None


def _result(
    output: Any, placeholders: list[torch.fx.Node], returned: list[torch.fx.Node]
) -> int | None:
    """Where `output` is, see `Graph`; one to compute is added to `returned`."""
    if not isinstance(output, torch.fx.Node):
        return None
    if output in placeholders:
        return -1 - placeholders.index(output)
    if not _is_array(output):
        raise CompileError(
            f"{name_of(output)}: a number is returned, expected a tensor"
        )
    if output not in returned:
        returned.append(output)
    return returned.index(output)


def _hash(value: Any) -> str:
    with unset_fake_temporarily():  # constants are no fake tensors while torch traces
        data = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
    return hashlib.sha256(data.tobytes()).hexdigest()
