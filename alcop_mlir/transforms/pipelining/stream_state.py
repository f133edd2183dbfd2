"""The values that the streams of an expanded pipeline carry from tile to tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.pipelining.flat_body import FlatBody, Node
from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build, edit

_PLAIN = 6  # fields of `Carried` before the fragments


@dataclass
class Carried:
    """State of the streams between two iterations; changed as code is built.

    compute, load, copy: carried values of each stream, at its tile (copy stream: at the
        tile that it copies next)
    copy_index, load_index: the loop's index of that tile, where the streams wrap around
        at its end; else empty, as it is the loop's own index and a constant
    groups:    tokens of the commit groups that were not waited for, oldest first
    fragments: per step, the prefetched fragments that were not used yet, oldest first
    loading:   addresses of the load stream's tile that were built in this block; not
        carried
    """

    compute: list[Any]
    load: list[Any]
    copy: list[Any]
    copy_index: list[Any] = field(default_factory=list)
    load_index: list[Any] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    fragments: list[list[Any]] = field(default_factory=list)
    loading: dict[Any, Any] | None = None

    def flat(self) -> list[Any]:
        """All values, in the order that `like` reads them."""
        return [value for part in self._parts() for value in part]

    def like(self, values: list[ir.Value]) -> Carried:
        """`values`, laid out as this state is."""
        remaining = iter(values)
        taken = [[next(remaining) for _ in part] for part in self._parts()]
        return Carried(*taken[:_PLAIN], fragments=taken[_PLAIN:])

    def _parts(self) -> list[list[Any]]:
        plain = [self.compute, self.load, self.copy, self.copy_index, self.load_index]
        return [*plain, self.groups, *self.fragments]


class ValueTemplate:
    """The ops that compute `keys` of a loop's body, to be copied for each tile."""

    def __init__(self, body: FlatBody, keys: Sequence[Any]):
        self.nodes, _ = body.slice(keys)
        self.keys = tuple(keys)

    def build(self, mapping: dict[Any, Any]) -> list[Any]:
        """The values under `mapping` of the body's arguments.

        Results are added to `mapping`, so that no op is built twice with it.
        """
        for node in self.nodes:
            if node.results[0] not in mapping:
                copy_node(node, mapping)
        return [mapping.get(key, key) for key in self.keys]


def copy_node(node: Node, mapping: dict[Any, Any]) -> None:
    """Build a copy of an op of the body; its results are added to `mapping`."""
    copy = node.op.clone()
    if node.captured:
        edit.remap(copy, {v: mapping.get(key, key) for v, key in node.captured})
    else:
        operands = copy.operands
        for number, key in node.operands:
            operands[number] = mapping.get(key, key)
    if len(node.results) == 1:
        mapping[node.results[0]] = copy.result
    else:
        mapping.update(zip(node.results, copy.results, strict=True))


def prefetched_index(induction: ir.Value, tiles: int, step: ir.Value) -> Any:
    """The loop's index, `tiles` iterations after `induction`."""
    if tiles == 0:
        return induction
    stride = constant(step)
    ahead = build.mul(tiles, step) if stride is None else tiles * stride
    return build.add(induction, ahead)


def index_around(
    index: ir.Value, lower: ir.Value, upper: ir.Value, step: ir.Value
) -> Any:
    """The loop's index after `index`, and after the last one the first."""
    following = build.add(index, step)
    return arith.select(build.less(following, upper), following, lower)
