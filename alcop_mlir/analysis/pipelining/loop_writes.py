"""What a loop may write, for those who ask it of many memrefs: `LoopWrites`.

memref.store %v, %a     // of %A, which the loop copies from, only what has a root
memref.store %y, %C     // that may overlap %A is looked at: not each of 100 buffers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from alcop_mlir.analysis.ir import memory
from alcop_mlir.bindings import ir


class LoopWrite(NamedTuple):
    """`op` may write `target`, None for any memory; `number` orders writes."""

    number: int
    op: Any
    target: Any | None


class LoopWrites:
    """What some ops and their regions may write, in the order of the program."""

    def __init__(self, ops: Iterable[ir.Operation]):
        found = [one for op in ops for one in memory.written_memrefs(op)]
        self.all = [LoopWrite(number, *one) for number, one in enumerate(found)]
        self._anywhere = [write for write in self.all if write.target is None]
        self._by_root: dict[Any, list[LoopWrite]] = {}
        for write in self.all:
            if write.target is not None:
                self._by_root.setdefault(memory.root(write.target), []).append(write)
        self._near: dict[tuple[Any, bool], list[LoopWrite]] = {}

    def to(self, memrefs: Iterable[Any], noalias_arguments: bool) -> list[LoopWrite]:
        """The writes that may overlap one of these memrefs, in order."""
        found = {
            write
            for memref in memrefs
            for write in self._of_root(memory.root(memref), noalias_arguments)
            if write.target is None
            or memory.may_alias(memref, write.target, noalias_arguments)
        }
        return sorted(found, key=lambda write: write.number)

    def _of_root(self, root: Any, noalias_arguments: bool) -> list[LoopWrite]:
        """Those to roots that may overlap `root`: views of others do not either."""
        key = root, noalias_arguments
        if key not in self._near:
            self._near[key] = [
                *self._anywhere,
                *(
                    write
                    for other, writes in self._by_root.items()
                    if memory.may_alias(root, other, noalias_arguments)
                    for write in writes
                ),
            ]
        return self._near[key]
