"""The body of a loop as a graph, in which fragment loops are unrolled: `FlatBody`.

    scf.for %k { %c = copy ; scf.for %i = 0 to 2 iter_args(%t) { %f = read[%i] ;
                                                                 %n = use(%f, %t) } }
    nodes:     copy, read[0], use, read[1], use

Each op is looked up once, however often the graph is asked. A value of the loop's own
block stands for itself; for what an unrolled op makes an object stands, one for each
iteration, as there is no such value. Both are *keys* here. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import body, init_args, terminator
from alcop_mlir.analysis.ir.slices import captured
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


# Not frozen: that takes as long as all else that is done for a node.
@dataclass(eq=False, slots=True)
class Node:
    """An op of the body, or of one iteration of a fragment loop in it.

    number:   how many nodes come before it
    operands: those that the body makes: their numbers, and their keys
    captured: with those of its regions, the values and their keys; none without regions
    results:  their keys
    """

    number: int
    op: Any
    name: str
    operands: tuple[tuple[int, Any], ...]
    captured: tuple[tuple[Any, Any], ...]
    results: tuple[Any, ...]

    @property
    def uses(self) -> list[Any]:
        """The keys that it needs, with its regions."""
        return [key for _, key in self.captured or self.operands]


@dataclass
class FragmentStep:
    """The nodes of one fragment step in the order of the body.

    copies, reads: those of them that are planned at the shared, at the register level
    """

    nodes: list[Node] = field(default_factory=list)
    copies: list[Node] = field(default_factory=list)
    reads: list[Node] = field(default_factory=list)


@frozen
class FlatBody:
    """The body of `loop`.

    steps:     its nodes; each iteration of a fragment loop but the first begins a step
    yielded:   the keys of the carried values' next values
    makers:    the node that makes a key
    arguments: the numbers of the carried values, by their arguments; -1 for the index
    """

    loop: Any
    steps: tuple[FragmentStep, ...]
    yielded: tuple[Any, ...]
    makers: dict[Any, Node]
    arguments: dict[Any, int]

    def slice(
        self, keys: Iterable[Any], known: Container[Any] = ()
    ) -> tuple[list[Node], set[int]]:
        """The nodes that `keys` need, in order, and the numbers of carried values.

        known: keys that are not followed
        """
        pending, seen = list(keys), set[Any]()
        nodes: dict[int, Node] = {}
        numbers: set[int] = set()
        while pending:
            key = pending.pop()
            if key in seen or key in known:
                continue
            seen.add(key)
            node = self.makers.get(key)
            if node is None:
                numbers.add(self.arguments.get(key, -1))
            elif node.number not in nodes:
                nodes[node.number] = node
                pending += node.uses
        numbers.discard(-1)
        return [nodes[number] for number in sorted(nodes)], numbers

    def closure(
        self, keys: Iterable[Any], known: Iterable[Any] = (), also: Iterable[int] = ()
    ) -> tuple[set[Node], tuple[int, ...]]:
        """The nodes and carried values that `keys` need, now and in later iterations.

        known: keys that are not followed
        also:  numbers of carried values that are needed anyway
        """
        leaves = set(known)
        found: set[Node] = set()
        needed: set[int] = set()
        fresh, wanted = set(also), list(keys)
        while wanted or fresh:
            wanted += [self.yielded[number] for number in fresh]
            needed |= fresh
            nodes, numbers = self.slice(wanted, leaves)
            found.update(nodes)
            leaves.update(key for node in nodes for key in node.results)
            fresh, wanted = numbers - needed, []
        return found, tuple(sorted(needed))


def flat_body(
    loop: ir.Operation,
    fragment_loops: Sequence[tuple[Any, Sequence[Any]]],
    copies: Collection[Any],
    reads: Collection[Any],
) -> FlatBody:
    """The body of `loop`; `copies` and `reads` are planned.

    fragment_loops: loops in its own block, with their index in each iteration
    """
    return _Flattening(loop, copies, reads).of(fragment_loops)


@frozen
class _Op:
    """What is looked up of an op, once for all iterations of a fragment loop.

    operands, captured: of what the body makes, as those of `Node`
    """

    op: Any
    name: str
    operands: list[tuple[int, Any]]
    captured: list[Any]
    results: tuple[Any, ...]

    @classmethod
    def of(cls, op: Any, made: Container[Any]) -> _Op:
        """made: the values that the body makes before `op`"""
        inside = [v for v in captured(op) if v in made] if len(op.regions) else []
        operands = [(n, v) for n, v in enumerate(op.operands) if v in made]
        return cls(op, op.name, operands, inside, tuple(op.results))


class _Flattening:
    """Builds the graph; `keys` are those of the values that are in scope."""

    def __init__(
        self, loop: ir.Operation, copies: Collection[Any], reads: Collection[Any]
    ):
        self.loop, self.copies, self.reads = loop, copies, reads
        arguments = body(loop).arguments
        self.arguments = {one: number - 1 for number, one in enumerate(arguments)}
        self.keys: dict[Any, Any] = {one: one for one in self.arguments}
        self.steps = [FragmentStep()]
        self.makers: dict[Any, Node] = {}
        self.count = 0

    def of(self, fragment_loops: Sequence[tuple[Any, Sequence[Any]]]) -> FlatBody:
        for op in [one.operation for one in body(self.loop).operations][:-1]:
            inner = next((own for own in fragment_loops if own[0] == op), None)
            if inner is None:
                one = _Op.of(op, self.keys)
                self._append(one, one.results)
            else:
                self._unroll(*inner)
        end = terminator(self.loop)
        yielded = tuple(self.keys.get(value, value) for value in end.operands)
        return FlatBody(
            self.loop, tuple(self.steps), yielded, self.makers, self.arguments
        )

    def _unroll(self, loop: ir.Operation, indices: Sequence[Any]) -> None:
        """The body of a fragment loop, once for each of its indices."""
        keys = self.keys
        arguments = list(body(loop).arguments)
        following = list(terminator(loop).operands)
        carried = [keys.get(value, value) for value in init_args(loop)]
        made = {*keys, *arguments}
        ops = list[_Op]()
        for op in [one.operation for one in body(loop).operations][:-1]:
            ops.append(_Op.of(op, made))
            made.update(ops[-1].results)
        for iteration, index in enumerate(indices):
            if iteration:
                self.steps.append(FragmentStep())
            keys.update(zip(arguments, [index, *carried], strict=True))
            for one in ops:
                self._append(one, tuple(object() for _ in one.results))
            carried = [keys.get(value, value) for value in following]
        keys.update(zip(loop.results, carried, strict=True))

    def _append(self, one: _Op, results: tuple[Any, ...]) -> None:
        keys, step = self.keys, self.steps[-1]
        node = Node(
            self.count,
            one.op,
            one.name,
            tuple([(n, keys[v]) for n, v in one.operands]),
            tuple([(v, keys[v]) for v in one.captured]),
            results,
        )
        self.count += 1
        keys.update(zip(one.results, results, strict=True))
        self.makers.update(dict.fromkeys(results, node))
        step.nodes.append(node)
        if one.op in self.copies:
            step.copies.append(node)
        if one.op in self.reads:
            step.reads.append(node)
