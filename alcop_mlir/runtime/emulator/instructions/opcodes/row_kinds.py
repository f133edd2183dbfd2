"""Kinds of rows of the table of opcodes: what those of a kind have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from alcop_mlir.runtime.emulator.instructions import (
    floating,
    matrix_memory,
    memory,
)
from alcop_mlir.runtime.emulator.instructions.copies import (
    async_copy,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import Opcode
from alcop_mlir.runtime.emulator.instructions.translator import Handler
from alcop_mlir.runtime.emulator.machine.loaded_kernel import MULTIPLY
from alcop_mlir.runtime.emulator.ptx.syntax import SPACES

SHARED, GLOBAL = frozenset({"shared"}), frozenset({"global"})
GENERIC = frozenset(SPACES) - {"const"}  # those with a window in generic addresses
NOWHERE: frozenset[str] = frozenset()


def chapter(title: str, *rows: Opcode | Iterable[Opcode]) -> Iterator[Opcode]:
    """The rows of one chapter of the PTX ISA."""
    for row in rows:
        for one in (row,) if isinstance(row, Opcode) else row:
            yield replace(one, section=f"PTX ISA, {title}: {one.name}")


def other(name: str, translate: Handler) -> Opcode:
    """Arithmetic on integers and bits."""
    return Opcode(name, translate, types="other")


def floats(name: str, translate: Handler) -> Opcode:
    return Opcode(name, translate, types="float", counted_as="float")


def on_singles(
    name: str, fn: floating.Function, count: int, *rounded: str
) -> Iterator[Opcode]:
    """`.f32x2`: two f32 in a register of 64 bits; `rounded` is how it may be named."""
    for parts in rounded:
        for ftz in ("", ".ftz"):
            yield Opcode(
                f"{name}{parts}{ftz}.f32x2",
                floating.on_singles(fn, count),
                since=100,
                counted_as="float",
            )


def both(name: str, translate: Handler) -> Iterator[Opcode]:
    """One handler for all types."""
    yield other(name, translate)
    yield floats(name, translate)


def moves(name: str, translate: Handler) -> Opcode:
    return Opcode(name, translate, counted_as="move")


def exchange(name: str, translate: Handler) -> Opcode:
    """An exchange among the lanes that a member mask names."""
    is_moved = name == "shfl.sync"
    return Opcode(name, translate, meets="members", selects=is_moved, counted_as="warp")


def memory_rows(
    name: str, translate: Handler, reads: bool = False, writes: bool = False
) -> Iterator[Opcode]:
    """An access: one row for each state space that the opcode may name, or for none."""
    for space in ("", *SPACES):
        spaces = frozenset({space}) if space else GENERIC
        yield Opcode(
            name,
            translate,
            space=space,
            reads=spaces if reads else NOWHERE,
            writes=spaces if writes else NOWHERE,
            size=memory.accessed_bytes,
            counted_as=f"{space or 'generic'} memory",
        )


def multiplies(name: str, translate: Handler, *of: str) -> Opcode:
    return Opcode(
        name,
        translate,
        of=of,
        meets="warp",
        orders=True,
        selects=True,
        counted_as=MULTIPLY,
    )


def warpgroup_control(name: str, translate: Handler) -> Opcode:
    """What says when a wgmma may begin, or has ended."""
    return Opcode(
        f"{name}.sync.aligned",
        translate,
        meets="warp",
        orders=True,
        target="sm_90a",
        counted_as="wgmma control",
    )


def fragments(
    name: str, translate: Handler, reads: bool = False, writes: bool = False
) -> Iterator[Opcode]:
    """A load or store of a matrix by a warp as one."""
    for row in memory_rows(name, translate, reads, writes):
        size = matrix_memory.smallest_piece
        yield replace(row, size=size, meets="warp", orders=reads)


def copies(name: str) -> Opcode:
    """A copy reads at any time before the wait, but the wait writes as well."""
    return Opcode(
        name,
        async_copy.issue_copy,
        reads=GLOBAL,
        writes=SHARED,
        size=async_copy.copied_bytes,
        counted_as="cp.async",
    )


def copy_control(
    name: str, translate: Handler, writes: frozenset[str] = NOWHERE
) -> Opcode:
    return Opcode(name, translate, writes=writes, counted_as="cp.async control")
