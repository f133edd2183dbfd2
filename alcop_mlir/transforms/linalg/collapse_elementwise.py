"""Let element-wise ops go over the loops of the contraction whose output they use.

Before:  %y = memref.alloc() : memref<2x14x14x48xf32>
         %C = memref.collapse_shape %y [[0, 1, 2], [3]] : ... into memref<392x48xf32>
         linalg.generic ins(%A, %B) outs(%C)                     // loops m, n, k
         linalg.generic ins(%y, %bias) outs(%z : memref<2x14x14x48xf16>)
After:   %C = memref.alloc() : memref<392x48xf32>
         %Z = memref.collapse_shape %z [[0, 1, 2], [3]]
         linalg.generic ins(%A, %B) outs(%C)
         linalg.generic ins(%C, %bias) outs(%Z : memref<392x48xf16>)  // loops m, n

So that they can be fused into it. Ops that fill the output, or copy its initial value
there, are changed as well, and so are ops on the results of changed ops. An op is
changed only if all its memrefs allow it: each has all of the loops that become one,
in order and without gaps, or none of them. A buffer that is used in its collapsed form
alone is allocated so, where its size is known: sizes that are known at run time only
are to stay those of arguments.

Runs after alcop-raise-convolutions and alcop-collapse-loops, which collapse outputs,
and before alcop-raise-contractions. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.promises import ROW_ALIGNMENT
from alcop_mlir.analysis.linalg.contraction_letters import loop_letters
from alcop_mlir.analysis.linalg.contractions import structured_ops
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.loop_groups import has_dense_parts
from alcop_mlir.analysis.linalg.view import Operand, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.linalg.collapsed_views import collapsed

_COLLAPSE = "memref.collapse_shape"
_Parts = tuple[tuple[int, ...], ...]  # of a memref's dimensions


@frozen
class CollapseElementwise(Pass):
    name = "alcop-collapse-elementwise"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        views = _Views()
        for candidate in structured_ops(op):
            view = linalg_view(candidate)
            if view is None or loop_letters(view.maps) is None:
                continue
            collapse = made_by(view.outputs[0].value, _COLLAPSE)
            if collapse is not None:
                views.take(collapse)
        for memref, parts in list(views.made):
            _collapse_users(memref, parts, views)
        for (memref, _), view in views.made.items():
            _allocate_as(memref, view)


@dataclass
class _Views:
    """The collapsed views of memrefs, one for all users, by memref and parts."""

    made: dict[tuple[Any, _Parts], Any] = field(default_factory=dict)

    def of(self, memref: ir.Value, parts: _Parts) -> Any:
        """The view of a memref, made where that is."""
        if not isinstance(memref.type, ir.MemRefType) or len(parts) == memref.type.rank:
            return memref
        if (memref, parts) not in self.made:
            with edit.after(memref):
                self.made[memref, parts] = collapsed(memref, parts)
        return self.made[memref, parts]

    def take(self, collapse: ir.Operation) -> None:
        """Use one view of the memref instead of this one."""
        groups = collapse.attributes["reassociation"]
        parts = tuple(tuple(member.value for member in group) for group in groups)
        view = self.of(collapse.operands[0], parts)
        if view.type == collapse.results[0].type:
            collapse.results[0].replace_all_uses_with(view)
            collapse.erase()


def _collapse_users(memref: ir.Value, parts: _Parts, views: _Views) -> None:
    """Change the element-wise ops that use the memref, and those on their results."""
    pending, seen = [memref], {memref}
    while pending:
        current = pending.pop()
        for user in dict.fromkeys(use.owner.operation for use in current.uses):
            element = elementwise(user)
            if element is None:
                continue
            changed = _changed(element, current, parts)
            if changed is None:
                continue
            output = element.output.value
            _collapse(element, changed, views)
            if output not in seen:
                seen.add(output)
                pending.append(output)


@frozen
class _Operand:
    """An operand as it will be: the parts of its dimensions, and the loops of these."""

    operand: Operand
    parts: _Parts
    loops: tuple[int | None, ...]


def _changed(
    element: Elementwise, memref: ir.Value, parts: _Parts
) -> list[_Operand] | None:
    """The op's operands if `memref`, with these parts, is collapsed; None if not."""
    uses = [one.loops for one in element.operands if one.value == memref]
    if len(set(uses)) != 1 or None in uses[0] or len(uses[0]) != element.rank:
        return None
    groups = [tuple(uses[0][number] for number in part) for part in parts]
    found = [_regrouped(operand, groups) for operand in element.operands]
    return None if None in found else [one for one in found if one is not None]


def _regrouped(
    operand: Operand, groups: Sequence[tuple[int | None, ...]]
) -> _Operand | None:
    """The operand when each group is one loop; None where that is not possible."""
    parts: list[tuple[int, ...]] = []
    loops: list[int | None] = []
    number = 0
    while number < len(operand.loops):
        loop = operand.loops[number]
        group = next((one for one in groups if one[0] == loop), None)
        if loop is None:
            group = (None,)
        if group is None or operand.loops[number : number + len(group)] != group:
            return None
        part = tuple(range(number, number + len(group)))
        if len(part) > 1 and not has_dense_parts(operand.value.type, [part]):
            return None
        parts.append(part)
        loops.append(None if loop is None else groups.index(group))
        number += len(group)
    return _Operand(operand, tuple(parts), tuple(loops))


def _collapse(element: Elementwise, operands: list[_Operand], views: _Views) -> None:
    """Let the op have collapsed operands, and the same body."""
    op, rank = element.op, len(operands[-1].loops)
    values = [views.of(one.operand.value, one.parts) for one in operands]
    if not element.is_generic and all(map(_has_all_loops, operands)):
        for number, value in enumerate(values):  # named ops, copies: of any rank
            op.operands[number] = value
        return
    maps = [build.loop_map(rank, one.loops) for one in operands]
    with op.location, ir.InsertionPoint(op):
        new = build.generic(values[:-1], values[-1], maps, element.block)
    (block,) = new.regions[0].blocks
    own, given = len(operands), list(block.arguments)
    for old, argument in zip(given[:own], given[own:], strict=True):
        old.replace_all_uses_with(argument)
    for number in reversed(range(own)):
        block.erase_argument(number)
    op.erase()


def _has_all_loops(one: _Operand) -> bool:
    """Whether it is a scalar, or a memref with a dimension for each loop, in order."""
    loops = one.operand.loops
    return not one.operand.is_memref or loops == tuple(range(one.operand.map.n_dims))


def _allocate_as(memref: ir.Value, view: ir.Value) -> None:
    """Allocate a buffer as `view`, where that is all that is used of it."""
    alloc, collapse = made_by(memref, "memref.alloc"), view.owner.operation
    users = [use.owner.operation for use in memref.uses]
    frees = [user for user in users if user.name == "memref.dealloc"]
    is_static = view.type.has_static_shape
    if alloc is None or not is_static or len(frees) + 1 < len(users):
        return
    with alloc.location, ir.InsertionPoint(alloc):
        new = build.alloc(view.type)
    for name in ("alignment", ROW_ALIGNMENT):
        if name in alloc.attributes:
            new.owner.attributes[name] = alloc.attributes[name]
    view.replace_all_uses_with(new)
    for free in frees:
        free.operands[0] = new
    collapse.erase()
    alloc.erase()
