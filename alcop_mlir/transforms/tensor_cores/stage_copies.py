"""Let threads load the elements of tiles that no asynchronous copy can take, and store.

Before:  scf.for %k ... { "alcop.copy"(%tile, %buffer) ; gpu.barrier ... }
After:   scf.for %k ... {
           %a = memref.load %tile[%row, %col]   %b = memref.load %tile[%row, %col + 1]
           ... all that the thread copies
           %word = vector.from_elements %a, %b
           vector.store %word, %buffer[%row, %col] ...
           gpu.barrier ... }

Rows that are known to be aligned to less than 4 bytes are copied element by element.
As loads of a thread and stores of words, alcop-plan-pipelines can fetch the next tile
while this one is used; alcop-distribute-copies would make loads and stores of one
iteration. So are tiles of gathered rows: a thread computes where its rows begin, and
loads what is valid. An element beyond the end of the source is zero. Along the
dimensions of `alcop.arbitrary` it may be anything; where each row has an address of its
own anyhow, the last row is loaded again.

Copies that are not in a loop, that cp.async can take, or of more elements than a thread
has registers for are left unchanged.

Runs after alcop-tile-to-blocks, and before canonicalize and alcop-plan-pipelines. Reads
`alcop.arbitrary` and erases it with the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes, without_casts
from alcop_mlir.analysis.ir.kernels import ThreadBlock, enclosing
from alcop_mlir.analysis.ir.loops import body, loops_in
from alcop_mlir.analysis.ir.memory import is_workgroup, root
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.layout.distribution import (
    Distribution,
    crosses_memories,
    distribute,
    is_full,
    sides,
    widest_access,
)
from alcop_mlir.analysis.layout.row_vectors import not_by_rows
from alcop_mlir.bindings import ir, ub
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.resources import MOST_ELEMENT_REGISTERS, element_registers
from alcop_mlir.target import CP_ASYNC_BYTES, SHARED_BANK_BYTES
from alcop_mlir.transforms.tensor_cores.copy_offsets import Index, chunk_offsets
from alcop_mlir.transforms.tensor_cores.copy_sources import (
    GatheredSource,
    clamped,
    is_clamped,
)
from alcop_mlir.transforms.tensor_cores.row_carriers import carry_rows, drop_vectors
from alcop_mlir.transforms.tensor_cores.row_elements import RowElements

_GATHER = "alcop.gather"
_COPIES = ("memref.copy", "alcop.copy", _GATHER)


@frozen
class StageCopies(Pass):
    name = "alcop-stage-copies"

    def run(self, op: ir.Operation) -> None:
        work = [item for loop in loops_in(op) for item in _of_loop(loop)]
        elements = RowElements()
        rounds: list[tuple[tuple[Index, ...], ...]] = []
        for item in work:
            with item.copy.location:
                rounds.append(chunk_offsets(item.block, item.words).indices)
        carriers = carry_rows(
            (
                (item.copy, (row for row, _ in indices))
                for item, indices in zip(work, rounds, strict=True)
                if item.copy.name == _GATHER
            ),
            elements,
        )
        for item, indices in zip(work, rounds, strict=True):
            with item.copy.location, ir.InsertionPoint(item.copy):
                _stage(item, indices, elements)
            item.copy.erase()
        drop_vectors(carriers, elements)


@frozen
class _Work:
    """A copy to make loads and stores of, and how threads share its words."""

    copy: Any
    block: ThreadBlock
    words: Distribution

    @property
    def registers(self) -> int:
        """Those of a thread for what it loads."""
        elements = self.words.rounds * self.words.elements
        return element_registers(elements, self.words.bytes // self.words.elements)


def _of_loop(loop: ir.Operation) -> list[_Work]:
    """The copies in the block of `loop`; none where they need too many registers."""
    work = _collect(loop)
    few = sum(item.registers for item in work) <= MOST_ELEMENT_REGISTERS
    return work if few else []


def _collect(loop: ir.Operation) -> list[_Work]:
    """The copies in the block of `loop` that are narrower than `cp.async` can be."""
    found: list[_Work] = []
    for copy in (one.operation for one in body(loop).operations):
        if copy.name not in _COPIES or not crosses_memories(copy):
            continue
        block = enclosing(copy)
        words = None if block is None else _words(copy, block)
        if block is not None and words is not None:
            found.append(_Work(copy, block, words))
    return found


def _words(copy: ir.Operation, block: ThreadBlock) -> Distribution | None:
    """The words of the tile, a whole number for each thread; else None."""
    source, _ = sides(copy)
    elements = distribute(copy, block)
    if isinstance(elements, Rejected) or is_workgroup(source.type):
        return None
    if copy.name == _GATHER and not_by_rows(copy) is not None:
        return None
    if widest_access(copy, parts=True) in CP_ASYNC_BYTES:
        return None
    count = SHARED_BANK_BYTES // element_bytes(source.type)
    words = replace(elements, elements=count, bytes=SHARED_BANK_BYTES, across=0)
    is_whole = elements.shape[-1] % count == 0 and words.last_round == words.threads
    return words if is_whole else None


def _stage(
    item: _Work, rounds: Sequence[tuple[Index, ...]], elements: RowElements
) -> None:
    """All loads, then all stores, before the copy."""
    load = partial(_load, item.copy)
    if item.copy.name == _GATHER:
        load = partial(_gathered, GatheredSource(item.copy, item.words, elements))
    loaded = [
        [load(at) for at in _elements(first, item.words.elements)] for first in rounds
    ]
    target = without_casts(item.copy.operands[1])
    for word, first in zip(loaded, rounds, strict=True):
        at = [index.value for index in first]
        build.store(build.vector_of(word), target, at)


def _elements(first: Sequence[Index], count: int) -> Iterator[tuple[Index, ...]]:
    """The indices of each element of a word."""
    *outer, column = first
    for number in range(count):
        yield *outer, column.plus(number)


def _load(copy: ir.Operation, indices: Sequence[Index]) -> Any:
    """An element of the source; beyond its end zero, or anything where that may be."""
    source = copy.operands[0]
    kind, memref = source.type.element_type, without_casts(source)
    free, needed = (_is_inside(copy, indices, is_free) for is_free in (True, False))
    load = partial(build.load, memref, clamped(copy, indices))
    load_free = partial(_where, free, load, partial(_anything, source, kind), kind)
    return _where(needed, load_free, partial(build.zero, kind), kind)


def _gathered(source: GatheredSource, indices: Sequence[Index]) -> Any:
    """An element of a gathered row; zero where the row is not valid, or ends before."""
    memref = source.copy.operands[0]
    kind = memref.type.element_type
    load = partial(build.load, without_casts(memref), source.at(indices))
    return _where(source.is_inside(indices), load, partial(build.zero, kind), kind)


def _anything(source: ir.Value, kind: ir.Type) -> Any:
    """What an element is that nobody uses: poison, which takes no instruction.

    But zero where LLVM may know that it is always absent: it would drop the store, and
    fragments would hold shared memory that nobody has written.
    """
    sizes = root(source).type
    is_open = all(map(sizes.is_dynamic_dim, range(sizes.rank)))
    return ub.poison(kind) if is_open else build.zero(kind)


def _is_inside(
    copy: ir.Operation, indices: Sequence[Index], is_free: bool
) -> ir.Value | None:
    """Whether the source has an element, as far as it may be absent; None for surely.

    is_free: along dimensions beyond whose end anything may be, or along the others
    """
    source, target = copy.operands
    free = alcop.arbitrary(copy)
    found = None
    for number, index in enumerate(indices):
        is_there = is_full(source, target, number) or is_clamped(copy, number)
        if is_free == (number in free) and not is_there:
            found = build.both(found, index.is_below(build.size(source, number)))
    return found


def _where(
    condition: ir.Value | None,
    one: Callable[[], Any],
    other: Callable[[], Any],
    kind: ir.Type,
) -> Any:
    """What `one` builds, but what `other` builds where `condition` is false."""
    if condition is None:
        return one()
    (value,) = build.branch(condition, lambda: [one()], lambda: [other()], [kind])
    return value
