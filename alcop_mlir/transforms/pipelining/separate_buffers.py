"""Give each loop a buffer of its own where several loops fill the same one in turn.

Before:  %a = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
         scf.for ... { copy to %a ; use of %a }
         scf.for ... { copy to %a ; use of %a }
After:   %b = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
         %a = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
         scf.for ... { copy to %a ; use of %a }
         scf.for ... { copy to %b ; use of %b }

So each can have slots of its own. That must change nothing: all accesses are in such
loops, an iteration reads only what it has copied before, and all the loops fill the
same elements, so that none reads what another has left. Addresses are compared as they
are computed. Other buffers are left unchanged, and buffers for which the target has too
little shared memory.

Runs before alcop-plan-pipelines, after canonicalize and cse. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.kernels import kernels_in
from alcop_mlir.analysis.ir.loops import body, is_inside, loops_in
from alcop_mlir.analysis.pipelining.barriers import is_run_by_all
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.own_fills import elements_filled, own_fills
from alcop_mlir.analysis.pipelining.shared_size import shared_bytes, shared_limit
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.target import DEFAULT_TARGET, find_target
from alcop_mlir.transforms.pipelining.own_buffers import give_own_buffer


@frozen
class SeparateBuffers(Pass):
    name = "alcop-separate-buffers"
    anchor = "any"

    target: str = option(DEFAULT_TARGET, "GPU whose shared memory the buffers must fit")

    def __post_init__(self) -> None:
        find_target(self.target)

    def run(self, op: ir.Operation) -> None:
        of_block = find_target(self.target).shared_bytes_per_block
        for scope in kernels_in(op):
            for buffer, loops in _filled_in_turn(scope).items():
                buffers = memory.shared_roots_in(scope)
                slots = {buffer: len(loops)}
                fits = shared_bytes(buffers, slots) <= shared_limit(
                    scope, buffers, of_block
                )
                if fits and _are_independent(buffer, loops):
                    for loop in loops[1:]:
                        give_own_buffer(buffer, loop)


def _filled_in_turn(scope: ir.Operation) -> dict[Any, list[Any]]:
    """The buffers that several loops copy into, with these loops."""
    found: dict[Any, dict[Any, None]] = {}
    for loop in loops_in(scope):
        for form in filter(None, map(copy_form, body(loop).operations)):
            for buffer in form.buffers:
                found.setdefault(buffer, {})[loop] = None
    return {buffer: list(loops) for buffer, loops in found.items() if len(loops) > 1}


def _are_independent(buffer: ir.Value, loops: list[Any]) -> bool:
    """Whether no loop reads of `buffer` what another one has filled."""
    accesses = memory.accesses(buffer)
    if not memory.is_own_allocation(buffer) or not isinstance(accesses, list):
        return False
    if any(is_inside(one, other) for one, other in permutations(loops, 2)):
        return False
    filled = set()
    for loop in loops:
        inside = [one for one in accesses if is_inside(one.op, loop)]
        accesses = [one for one in accesses if not is_inside(one.op, loop)]
        copies = own_fills(loop, inside)
        if copies is None or not is_run_by_all(loop):
            return False
        filled.add(elements_filled(copies))
    return not accesses and len(filled) == 1 and None not in filled
