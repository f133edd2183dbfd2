"""Which element-wise ops can be computed on a product's sums, before they are stored.

`find_epilogue` looks below a marked product for ops that read its output, directly or
through each other, and answers with those that can run in the product's kernel, and
with the reason for each that cannot. Changes nothing.

To run there means to run earlier: just behind the product; and block by block, in no
order, while other blocks still read A and B. So an op is taken only if

  - it goes over the same loops, and writes each element where the product would;
  - nothing between it and the product writes what it reads, or touches what it writes;
  - it writes nothing that the kernel reads elsewhere than at the element at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.code_motion import (
    ops_after,
    reaches_only_operands,
    touches,
    writes,
)
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import (
    element_bits,
    is_own_allocation,
    may_alias,
    root,
)
from alcop_mlir.analysis.ir.memref_layouts import open_strides
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.linalg.accumulator_init import marked_init
from alcop_mlir.analysis.linalg.elementwise import Elementwise, Operand, elementwise
from alcop_mlir.dialects import alcop

FIRST = "0"  # in the place of a loop's letter: index 0
_BITS = (8, 16, 32)  # of elements that lanes move
_HARMLESS = ("memref.alloc", "memref.dealloc", "memref.dim")


@dataclass(frozen=True)
class Epilogue:
    """The ops to run in a product's kernel, in order; those that cannot, and why."""

    fused: list[Elementwise]
    refused: list[tuple[Any, str]]


@dataclass(frozen=True)
class _Access:
    """An array that the kernel reads or writes, and by which loops."""

    array: Any
    loops: str


def find_epilogue(product: Any, noalias_arguments: bool = False) -> Epilogue:
    """What can be computed on the sums of a marked product, see above.

    noalias_arguments: whether a written argument surely overlaps no other
    """
    search = _Search(product, noalias_arguments)
    for op in ops_after(product):
        if not reaches_only_operands(op):
            break
        search.visit(op)
    return Epilogue(search.fused, search.refused)


def output_loops(product: Any) -> str:
    """The letters of the loops that index the output of a marked product."""
    mark = alcop.get(product, alcop.ContractionAttr) or {}
    return mark.get("out", "mn")


def operand_loops(element: Elementwise, operand: Operand, loops: str) -> str:
    """The letters of the loops that index `operand`; `loops`: those of the output."""
    names = dict(zip(element.output.loops, loops, strict=True))
    return "".join(FIRST if n is None else names[n] for n in operand.loops)


def is_stored(array: Any, ops: Sequence[Any]) -> bool:
    """Whether someone else than `ops`, which write it, needs what `array` holds."""
    if not is_own_allocation(array):
        return True
    first = ops[0]
    return any(_may_need(use.owner.operation, first, ops) for use in array.uses)


def dependencies(element: Elementwise, product: Any) -> list[Any]:
    """The ops behind the product that make what the op works on."""
    values = [
        value
        for value in element.op.operands
        if (owner := defining_op(value)) is not None
        and owner.operation.block == product.operation.block
    ]
    ops, _ = backward_slice(values, product.operation.block)
    return [op for op in ops if product.operation.is_before_in_block(op)]


def _may_need(user: Any, first: Any, ops: Sequence[Any]) -> bool:
    """Whether it may read the array behind `first`, as views may anywhere."""
    if user in ops or user.name in _HARMLESS:
        return False
    is_view = len(user.results) > 0
    return is_view or user.block != first.block or not user.is_before_in_block(first)


@dataclass
class _Search:
    """Goes down from a product.

    at_hand: arrays whose element the kernel has computed when it comes to the next op
    passed:  ops that stay where they are, behind the kernel
    """

    product: Any
    noalias: bool
    loops: str = ""
    at_hand: list[Any] = field(default_factory=list)
    fused: list[Elementwise] = field(default_factory=list)
    refused: list[tuple[Any, str]] = field(default_factory=list)
    passed: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loops = output_loops(self.product)
        self.at_hand = [_output(self.product)]

    def visit(self, op: Any) -> None:
        """Take `op`, or pass it by."""
        marked = alcop.get(op, alcop.ContractionAttr) is not None
        element = None if marked else elementwise(op)
        if element is None or not self._reads_at_hand(element):
            self._pass(op)
            return
        why_not = next(self._objections(element), None)
        if why_not is not None:
            self.refused.append((op, why_not))
            self._pass(op)
            return
        self.fused.append(element)
        if element.output.value not in self.at_hand:
            self.at_hand.append(element.output.value)

    def _pass(self, op: Any) -> None:
        self.passed.append(op)
        self.at_hand = [
            array for array in self.at_hand if not writes(op, array, self.noalias)
        ]

    def _reads_at_hand(self, element: Elementwise) -> bool:
        return any(operand.value in self.at_hand for operand in element.reads)

    def _objections(self, element: Elementwise) -> Iterator[str]:
        """Why the op cannot run in the kernel; each may build on those before."""
        yield from self._about_loops(element)
        yield from _about_operands(element)
        yield from self._about_order(element)
        yield from self._about_sharing(element)

    def _about_loops(self, element: Elementwise) -> Iterator[str]:
        if 0 in _summed_sizes(self.product):
            yield "the product sums nothing"
        if element.rank != len(self.loops):
            yield f"has {element.rank} loops, the product's output {len(self.loops)}"
        for operand in element.reads:
            if operand.value not in self.at_hand:
                continue
            if operand_loops(element, operand, self.loops) != self.loops:
                yield (
                    "writes its output by other loops than it reads the product's: "
                    "transposed, or broadcast"
                )

    def _about_order(self, element: Elementwise) -> Iterator[str]:
        for op in self.passed:
            if touches(op, element.output.value, self.noalias):
                yield f"'{op.name}' between the two uses what it writes"
            for operand in element.reads:
                if operand.is_array and writes(op, operand.value, self.noalias):
                    yield f"'{op.name}' between the two writes what it reads"
        for op in dependencies(element, self.product):
            if not is_pure(op) and op.name != "memref.alloc":
                yield f"'{op.name}' between the two computes what it works on"

    def _about_sharing(self, element: Elementwise) -> Iterator[str]:
        """Whether two blocks of the kernel would get into each other's way."""
        reads = [*self._product_reads(), *self._reads([*self.fused, element])]
        written = [_output(self.product)]
        written += [other.output.value for other in [*self.fused, element]]
        accesses = [*reads, *(_Access(array, self.loops) for array in written)]
        for array in written:
            for access in accesses:
                if self._conflict(array, access):
                    yield (
                        f"writes memory that the product's kernel may use elsewhere "
                        f"({array.type} and {access.array.type} may overlap)"
                    )

    def _conflict(self, array: Any, access: _Access) -> bool:
        if array == access.array and access.loops == self.loops:
            return False
        return may_alias(root(array), root(access.array), self.noalias)

    def _product_reads(self) -> list[_Access]:
        mark = alcop.get(self.product, alcop.ContractionAttr) or {}
        inputs = list(self.product.operands)[:-1]
        # Besides A and B, what their elements are computed with: scalars.
        loops = [mark["lhs"], mark["rhs"], *[""] * len(inputs)]
        start = marked_init(self.product) if mark["init"] == "copy" else None
        return [*map(_Access, inputs, loops), *self._reads([start] if start else [])]

    def _reads(self, elements: list[Elementwise]) -> list[_Access]:
        return [
            _Access(operand.value, operand_loops(element, operand, self.loops))
            for element in elements
            for operand in element.reads
            if operand.is_array
        ]


def _output(product: Any) -> Any:
    return list(product.operands)[-1]


def _about_operands(element: Elementwise) -> Iterator[str]:
    for operand in [*element.reads, element.output]:
        if not operand.is_array:
            if not _is_constant(operand.value):
                yield "uses a scalar that is not constant"
            continue
        kind = operand.value.type
        if element_bits(kind.element_type) not in _BITS:
            yield f"has {kind.element_type} elements, expected 8, 16 or 32 bits"
        if open_strides(kind) or kind.memory_space is not None:
            yield f"has the layout of {kind}, expected strides that are known"
    if any(not _is_constant(value) for value in _captured(element)):
        yield "uses a value computed outside of it that is not constant"


def _captured(element: Elementwise) -> list[Any]:
    """What the body uses and does not define."""
    if element.block is None:
        return []
    ops = [op.operation for op in element.block.operations]
    inside = [*element.block.arguments, *(r for op in ops for r in op.results)]
    return [v for op in ops for v in op.operands if v not in inside]


def _is_constant(value: Any) -> bool:
    op = defining_op(value)
    return op is not None and op.operation.name == "arith.constant"


def _summed_sizes(product: Any) -> list[int]:
    """The sizes of the loops that a product sums over, where they are known."""
    mark = alcop.get(product, alcop.ContractionAttr) or {}
    out = mark.get("out", "mn")
    loops = mark["rhs"] if mark.get("swapped") else mark["lhs"]
    kind = product.operands[0].type
    return [
        kind.shape[number]
        for number, loop in enumerate(loops)
        if loop not in out and not kind.is_dynamic_dim(number)
    ]
