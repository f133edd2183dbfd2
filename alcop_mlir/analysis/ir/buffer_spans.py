"""When the shared buffers of a kernel are used, and which can share memory.

A buffer's *span* is from the first to the last op of the kernel's body that uses it, or
a view of it. Buffers of which the spans do not meet hold nothing at the same time. Of
buffers that are used in other ways than by known accesses nothing is known. Nothing is
changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir.loops import ancestor_in
from alcop_mlir.analysis.ir.memory import DERIVED_VIEWS, size_in_bytes
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

# Ops that access a memref, and keep nothing that points to it.
_ACCESSES = frozenset(
    """
    memref.load memref.store memref.copy vector.load vector.store vector.transfer_read
    vector.transfer_write nvgpu.ldmatrix nvgpu.device_async_copy
    """.split()
)


@frozen
class Span:
    """Positions of the first and the last op in a kernel's body that use a buffer."""

    alloc: Any
    first: int
    last: int


@frozen
class Shared:
    """Buffers that share memory, each used after the one before it.

    gaps: positions in the kernel's body: of the last op that uses a buffer, and of the
          first that uses the next one; between them all threads have to meet, and all
          copies to land
    """

    allocs: tuple[Any, ...]
    gaps: tuple[tuple[int, int], ...]


def shared_in_turn(block: ir.Block, allocs: Sequence[ir.Operation]) -> list[Shared]:
    """Buffers of one size that the ops of a kernel's body use one after another."""
    known = [span for alloc in allocs if (span := _span(alloc, block)) is not None]
    chains: list[list[Span]] = []
    for span in sorted(known, key=lambda one: one.first):
        before = [chain for chain in chains if _fits(chain[-1], span)]
        if before:
            before[0].append(span)
        else:
            chains.append([span])
    return [
        Shared(
            tuple(one.alloc for one in chain),
            tuple((one.last, other.first) for one, other in pairwise(chain)),
        )
        for chain in chains
        if len(chain) > 1
    ]


def _fits(before: Span, span: Span) -> bool:
    kinds = [one.alloc.results[0].type for one in (before, span)]
    one, other = map(size_in_bytes, kinds)
    alignments = [one.alloc.attributes.get("alignment") for one in (before, span)]
    return before.last < span.first and one == other and alignments[0] == alignments[1]


def _span(alloc: ir.Operation, block: ir.Block) -> Span | None:
    """None if something is done with the buffer of which nothing is known."""
    if alloc.block != block or size_in_bytes(alloc.results[0].type) is None:
        return None
    users = list(_users(alloc.results[0]))
    if not users or any(_is_unknown(user) for user in users):
        return None
    ops = [op.operation for op in block.operations]
    places = {op: number for number, op in enumerate(ops)}
    tops = [ancestor_in(user, block) for user in users]
    used = [places[top] for top in tops if top is not None]
    return Span(alloc, min(used), max(used))


def _users(buffer: ir.Value) -> Iterator[Any]:
    """The ops that use the buffer or views of it."""
    for use in buffer.uses:
        op = use.owner.operation
        yield op
        if op.name in DERIVED_VIEWS:
            yield from _users(op.results[0])


def _is_unknown(user: ir.Operation) -> bool:
    return user.name not in _ACCESSES and user.name not in DERIVED_VIEWS
