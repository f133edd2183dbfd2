"""Element-wise ops: each output element is computed from one element of each input.

These are linalg ops whose loops are all parallel, whose operands are indexed by loops
alone (or by 0), and whose body is scalar arithmetic; and `memref.copy`. Nothing is
changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir, linalg

_BODY_DIALECTS = ("arith", "math")
_COPY = "memref.copy"

Loops = tuple[int | None, ...]  # the loop along each dimension; None: index 0


@dataclass(frozen=True)
class Operand:
    """A memref, or a scalar, that an element-wise op reads or writes.

    argument: its element in the body; None for a copy, which has no body
    """

    value: Any
    argument: Any
    loops: Loops

    @property
    def is_memref(self) -> bool:
        """Whether it is a memref, not a scalar."""
        return isinstance(self.value.type, ir.MemRefType)

    @property
    def is_read(self) -> bool:
        """Whether the body uses its element."""
        return self.argument is None or any(True for _ in self.argument.uses)


@dataclass(frozen=True)
class Elementwise:
    """An element-wise op on memrefs with one output; see above.

    block: the body, which yields the output's element; None for a copy
    """

    op: Any
    rank: int
    inputs: tuple[Operand, ...]
    output: Operand
    block: Any

    @property
    def reads(self) -> list[Operand]:
        """The operands whose elements the body uses, perhaps the output too."""
        read = [operand for operand in self.inputs if operand.is_read]
        return [*read, self.output] if self.reads_output else read

    @property
    def reads_output(self) -> bool:
        """Whether the output is computed from its old value."""
        return self.output.argument is not None and self.output.is_read


def elementwise(op: Any) -> Elementwise | None:
    """`op` as an element-wise op on memrefs; None if it is none."""
    operation = op.operation
    if operation.name == _COPY:
        return _copy(operation)
    if not operation.name.startswith("linalg.") or len(operation.regions) != 1:
        return None
    block = operation.regions[0].blocks[0]
    loops = _operand_loops(operation)
    if loops is None or not _is_scalar_code(block):
        return None
    # Some ops have no name for the output's element.
    arguments = [*block.arguments, None][: len(loops)]
    *inputs, output = map(Operand, operation.operands, arguments, loops)
    if None in output.loops or not output.is_memref:
        return None
    return Elementwise(operation, len(output.loops), tuple(inputs), output, block)


def _copy(op: Any) -> Elementwise:
    source, target = op.operands
    loops = tuple(range(target.type.rank))
    return Elementwise(
        op,
        len(loops),
        (Operand(source, None, loops),),
        Operand(target, None, loops),
        None,
    )


def _operand_loops(op: Any) -> list[Loops] | None:
    """The loops of each operand; None where the output lacks a loop or repeats one.

    Otherwise all loops are parallel.
    """
    maps = linalg.get_indexing_maps(op)
    if maps is None or len(op.results):  # on tensors
        return None
    found = []
    for attribute in maps:
        loops = _plain_loops(attribute.value.results)
        if loops is None:
            return None
        found.append(loops)
    every = list(range(maps[0].value.n_dims))
    return (
        found
        if sorted(loop for loop in found[-1] if loop is not None) == every
        else None
    )


def _plain_loops(results: Sequence[Any]) -> Loops | None:
    """The loops that index an operand; None where it is not indexed by loops alone."""
    found: list[int | None] = []
    for result in results:
        if isinstance(result, ir.AffineDimExpr):
            found.append(ir.AffineDimExpr(result).position)
        elif isinstance(result, ir.AffineConstantExpr) and (
            ir.AffineConstantExpr(result).value == 0
        ):
            found.append(None)
        else:
            return None
    named = [loop for loop in found if loop is not None]
    return tuple(found) if len(set(named)) == len(named) else None


def _is_scalar_code(block: Any) -> bool:
    """Whether the body is arithmetic on scalars, and one yield of one value."""
    *body, end = (op.operation for op in block.operations)
    return len(end.operands) == 1 and all(
        op.name.split(".")[0] in _BODY_DIALECTS
        and not len(op.regions)
        and all(_is_scalar(result.type) for result in op.results)
        for op in body
    )


def _is_scalar(kind: Any) -> bool:
    return isinstance(kind, ir.FloatType | ir.IntegerType)
