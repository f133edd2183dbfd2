"""Epilogue fusion: which element-wise ops on C can be computed on accumulators.

`find_epilogue` looks below a marked contraction for ops that read its output, directly
or through each other. It returns those that can run in the contraction's kernel, and
the reason for each that cannot. Changes nothing.

An op that is fused runs earlier, just after the contraction; and block by block, in no
order, while other blocks still read A and B. So it is fused only if

  - it has the same loops, and writes each element where the contraction writes its own;
  - no op between the two writes what it reads, or touches what it writes;
  - what it writes is read by the kernel at the same element only.

An op that reads interleaved columns has fewer of its own (`interleaved_columns.py`). It
is fused if each warp has all that it reads; no op that is fused reads what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.code_motion import (
    may_need,
    ops_after,
    reaches_only_operands,
    touches,
    with_indices,
    writes,
)
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import (
    element_bits,
    is_own_allocation,
    may_alias,
    root,
)
from alcop_mlir.analysis.ir.memref_layouts import open_strides
from alcop_mlir.analysis.ir.slices import backward_slice, captured, is_pure
from alcop_mlir.analysis.linalg.accumulator_init import marked_init
from alcop_mlir.analysis.linalg.elementwise import Elementwise, elementwise
from alcop_mlir.analysis.linalg.interleaved_columns import (
    GROUP,
    Interleaved,
    Turned,
    interleaved,
    turned,
)
from alcop_mlir.analysis.linalg.view import Operand, linalg_view, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen

_Access = tuple[Any, str]  # a memref that the kernel uses, by which loops
FIRST = "0"  # instead of a loop's letter: index 0
_VIEWS = ("memref.collapse_shape", "memref.expand_shape", "memref.subview")
_BITS = (8, 16, 32)  # of elements that lanes move


@frozen
class Epilogue:
    """The ops to run in the contraction's kernel, in order; others, and why not."""

    fused: list[Elementwise]
    refused: list[tuple[Any, str]]


def find_epilogue(
    contraction: ir.Operation, noalias_arguments: bool = False
) -> Epilogue:
    """The ops that can be fused into a marked contraction, see above.

    noalias_arguments: whether a written argument overlaps no other
    """
    search = _Search(contraction, noalias_arguments)
    for op in ops_after(contraction):
        if not search.awaited or not reaches_only_operands(op):
            break
        search.visit(op)
    return Epilogue(search.fused, search.refused)


def epilogue_op(op: ir.Operation) -> Elementwise | None:
    """`op` as an element-wise op on C, or on its interleaved columns; or None."""
    return elementwise(op) or interleaved(op) or turned(op)


def output_loops(contraction: ir.Operation) -> str:
    """The letters of the loops that index the output of a marked contraction."""
    mark = alcop.get(contraction, alcop.ContractionAttr) or {}
    return mark.get("out", "mn")


def operand_loops(element: Elementwise, operand: Operand, loops: str) -> str:
    """The letters of the loops that index `operand`; `loops`: those of the output.

    Of a turned op only where it reads columns: others have loops that C lacks.
    """
    if isinstance(element, Turned):
        return loops if operand.argument in element.part_of else ""
    names = dict(zip(element.output.loops, loops, strict=True))
    return "".join(FIRST if n is None else names[n] for n in operand.loops)


def is_stored(memref: ir.Value, ops: Sequence[ir.Operation]) -> bool:
    """Whether other ops than `ops`, which write `memref`, may read it."""
    view = made_by(memref, "memref.collapse_shape")
    buffer = memref if view is None else view.operands[0]
    if not is_own_allocation(buffer):
        return True
    users = [use.owner.operation for one in (buffer, memref) for use in one.uses]
    own = [*ops, *([] if view is None else [view])]
    return any(user not in own and may_need(user, ops[0]) for user in users)


def dependencies(element: Elementwise, contraction: ir.Operation) -> list[Any]:
    """The ops after the contraction that compute operands of the element-wise op."""
    ops, _ = backward_slice(captured(element.op), contraction.block)
    return [op for op in ops if contraction.is_before_in_block(op)]


class _Search:
    """Goes down from a contraction.

    loops:   that index the output, as letters
    at_hand: memrefs whose element the kernel has in registers when the next op runs
    awaited: users of these that were not visited; without any, the search is over
    passed:  ops that are left unchanged, after the kernel
    views:   views of memrefs at hand
    """

    def __init__(self, contraction: ir.Operation, noalias_arguments: bool):
        self.contraction = contraction
        self.noalias = noalias_arguments
        self.loops = output_loops(contraction)
        self.at_hand: list[Any] = []
        self.awaited: set[Any] = set()
        self.fused: list[Elementwise] = []
        self.refused: list[tuple[Any, str]] = []
        self.passed: list[Any] = []
        self.views: list[Any] = []
        self._keep(_output(contraction), after=contraction)

    def visit(self, op: ir.Operation) -> None:
        """Fuse `op`, or leave it unchanged."""
        self.awaited.discard(op)
        marked = alcop.get(op, alcop.ContractionAttr) is not None
        element = None if marked else epilogue_op(op)
        reads = [] if element is None else [one.value for one in element.reads]
        if element is not None and any(memref in self.at_hand for memref in reads):
            why_not = next(self._objections(element), None)
            if why_not is None:
                self.fused.append(element)
                is_apart = isinstance(element, Interleaved)
                if not is_apart and element.output.value not in self.at_hand:
                    self._keep(element.output.value, after=op)
                return
            self.refused.append((op, why_not))
        elif not marked:
            self.refused += [(op, why_not) for why_not in self._about_views(op)]
        self.passed.append(op)
        self.at_hand = [
            memref for memref in self.at_hand if not writes(op, memref, self.noalias)
        ]

    def _keep(self, memref: ir.Value, after: ir.Operation) -> None:
        """Add a memref to those at hand, when the op `after` has been visited."""
        self.at_hand.append(memref)
        self._await(memref, after)

    def _await(self, memref: ir.Value, after: ir.Operation) -> None:
        """Look at the ops below `after` that use a memref."""
        start = after.operation
        users = (use.owner.operation for use in memref.uses)
        self.awaited.update(
            user
            for user in users
            if user.block == start.block and start.is_before_in_block(user)
        )

    def _objections(self, element: Elementwise) -> Iterator[str]:
        """Reasons why the op cannot run in the kernel; each assumes none before it."""
        yield from self._about_loops(element)
        if isinstance(element, Interleaved):
            yield from self._about_columns(element)
        yield from _about_operands(element)
        yield from self._about_order(element)
        yield from self._about_sharing(element)

    def _about_views(self, op: ir.Operation) -> Iterator[str]:
        """Why an op that reads a view of what is at hand does not run in the kernel."""
        if op.name in _VIEWS and op.operands[0] in (*self.at_hand, *self.views):
            self.views.append(op.results[0])
            self._await(op.results[0], after=op)
        view = linalg_view(op)
        if view is None or view.reductions or alcop.ADDED_PARTS in op.attributes:
            return
        read = [one.value for one in view.inputs if one.value in self.views]
        if read:
            yield (
                "reads a part, or other dimensions, of what the contraction makes, "
                f"{read[0].type}, expected its rows and columns"
            )

    def _about_loops(self, element: Elementwise) -> Iterator[str]:
        view = view_of(self.contraction)
        if 0 in map(view.static_size, view.reductions):
            yield "the contraction reduces a loop of size 0"
        further = 2 if isinstance(element, Turned) else 0  # parts of columns
        if element.rank != len(self.loops) + further:
            expected = f"expected the {len(self.loops)} of the contraction's output"
            yield f"has {element.rank} loops, {expected}"
        for operand in element.reads:
            if operand.value not in self.at_hand:
                continue
            if operand_loops(element, operand, self.loops) != self.loops:
                yield (
                    "writes its output by other loops than it reads the contraction's: "
                    "transposed, or broadcast"
                )

    def _about_columns(self, element: Interleaved) -> Iterator[str]:
        """Whether a warp has all columns that the op reads of C for one of its own."""
        schedule = alcop.get(self.contraction, alcop.ScheduleAttr) or {}
        columns = schedule.get("warp", (0, element.span))[1]
        if columns % element.span:
            yield (
                f"reads columns that {element.parts} contractions have in turn: a warp "
                f"has {columns}, expected a multiple of {element.span}"
            )
        if isinstance(element, Turned) and not self.loops.endswith("mn"):
            yield "the contraction's rows are not next to its columns"
        elif isinstance(element, Turned) and not element.moves_with_strips:
            yield (
                f"reads other operands by parts of a row's number that are no multiples"
                f" of {GROUP}, or by columns in another order"
            )
        apart = [one.output.value for one in self.fused if isinstance(one, Interleaved)]
        if any(one.value in apart for one in element.reads):
            yield "reads what another op computes of interleaved columns"

    def _about_order(self, element: Elementwise) -> Iterator[str]:
        for op in self.passed:
            if touches(op, element.output.value, self.noalias):
                yield f"'{op.name}' between the two uses what it writes"
            for operand in element.reads:
                if operand.is_memref and writes(op, operand.value, self.noalias):
                    yield f"'{op.name}' between the two writes what it reads"
        for op in dependencies(element, self.contraction):
            if not is_pure(op) and op.name != "memref.alloc":
                yield f"'{op.name}' between the two computes an operand of it"

    def _about_sharing(self, element: Elementwise) -> Iterator[str]:
        """Whether one thread block could write what another one reads or writes."""
        reads = [*self._contraction_reads(), *self._reads([*self.fused, element])]
        written = [_output(self.contraction)]
        written += [other.output.value for other in [*self.fused, element]]
        accesses = [*reads, *((memref, self.loops) for memref in written)]
        for memref in written:
            for other, loops in accesses:
                same = (memref, self.loops) == (other, loops)
                if not same and may_alias(root(memref), root(other), self.noalias):
                    yield (
                        "writes memory that the contraction's kernel may use elsewhere "
                        f"({memref.type} and {other.type} may overlap)"
                    )

    def _contraction_reads(self) -> list[_Access]:
        mark = alcop.get(self.contraction, alcop.ContractionAttr) or {}
        inputs = list(self.contraction.operands)[:-1]
        # Besides A and B: scalars that operand transforms read.
        loops = [mark["lhs"], mark["rhs"], *[""] * len(inputs)]
        others = [value for value in with_indices(inputs) if value not in inputs]
        start = marked_init(self.contraction) if mark["init"] == "copy" else None
        return [
            *zip(inputs, loops, strict=False),
            *((value, "") for value in others),
            *self._reads([start] if start else []),
        ]

    def _reads(self, elements: list[Elementwise]) -> list[_Access]:
        return [
            (operand.value, operand_loops(element, operand, self.loops))
            for element in elements
            for operand in element.reads
            if operand.is_memref
        ]


def _output(contraction: ir.Operation) -> Any:
    return list(contraction.operands)[-1]


def _about_operands(element: Elementwise) -> Iterator[str]:
    kinds = [
        one.value.type for one in (*element.reads, element.output) if one.is_memref
    ]
    for kind in kinds:
        if element_bits(kind.element_type) not in _BITS:
            yield f"has {kind.element_type} elements, expected 8, 16 or 32 bits"
        if open_strides(kind) or kind.memory_space is not None:
            yield f"has the layout of {kind}, expected known strides, no memory space"
    yield from element.unstable
