"""Fuse element-wise ops that make A or B into the contraction (operand-side fusion).

Before:  linalg.generic ins(%A : memref<64x128xf32>) outs(%half : memref<64x128xf16>) {
           arith.truncf }
         linalg.matmul ins(%half, %B) outs(%C)
After:   linalg.generic ins(%A, %B) outs(%C) {
         ^bb0(%a: f32, %b: f16, %c: f32):
           %h = arith.truncf %a : f32 to f16
           %x = arith.extf %h : f16 to f32   // as linalg.matmul did
           ... }

The contraction reads A as memory holds it, so that its tiles are still copied
asynchronously; alcop-tile-to-blocks computes the operand transforms on the fragments
that a warp reads of a tile. Chains of ops are fused one by one. Scalars in memory, and
buffers of one value per row or column, become inputs of the contraction. The
intermediate buffer is erased together with the op.

An op that cannot be fused is left unchanged, with a remark that says why;
`analysis.linalg.operand_fusion` has the conditions. Without `assume-noalias-args`,
arguments may overlap, so that C may be what the op reads.

Runs before alcop-raise-contractions, which looks at what is multiplied in the end.
Reads and writes no attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.analysis.linalg.operand_fusion import (
    OperandProducer,
    find_operand_producer,
)
from alcop_mlir.analysis.linalg.operand_transforms import find_operand_transforms
from alcop_mlir.analysis.linalg.view import Operand, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import NOALIAS, Pass, option


@frozen
class FuseProducers(Pass):
    name = "alcop-fuse-producers"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)
    allow_tf32: bool = option(False, "contractions of f32, with inputs rounded to tf32")

    def run(self, op: ir.Operation) -> None:
        found = [
            candidate
            for candidate in contractions.structured_ops(op)
            if isinstance(self._classify(candidate), Contraction)
        ]
        for number in range(len(found)):
            while self._fuse_one(found, number):
                pass
            _diagnose(self._answers(found, number))

    def _fuse_one(self, found: list[Any], number: int) -> bool:
        """Fuse one op into contraction `number`, which is replaced; whether one was."""
        for answer in self._answers(found, number):
            if isinstance(answer, OperandProducer):
                contraction = found[number]
                found[number] = _fused(contraction, answer)
                _erase(contraction, answer)
                return True
        return False

    def _answers(
        self, found: list[Any], number: int
    ) -> Iterator[OperandProducer | Rejected | None]:
        """For each input of contraction `number`: whether its op can be fused."""
        contraction = found[number]
        for transform in find_operand_transforms(view_of(contraction)):
            if transform.nibble is not None:
                continue  # bytes that hold two elements are read as they are
            answer = find_operand_producer(
                contraction, transform.operand, found, self.assume_noalias_args
            )
            if isinstance(answer, OperandProducer):
                answer = self._tried(contraction, answer)
            yield answer

    def _tried(
        self, contraction: ir.Operation, producer: OperandProducer
    ) -> OperandProducer | Rejected:
        """`producer` if the fused contraction is supported, else why it is not."""
        trial = _fused(contraction, producer)
        answer = self._classify(trial)
        trial.erase()
        if isinstance(answer, Rejected):
            why = f"the fused contraction is unsupported: {answer.reason}"
            return Rejected(producer.element.op, why)
        return producer

    def _classify(self, op: ir.Operation) -> Contraction | Rejected:
        return contractions.classify(op, self.allow_tf32)


def _fused(contraction: ir.Operation, producer: OperandProducer) -> Any:
    """The contraction with the body of `producer` in its own, built before it."""
    view = view_of(contraction)
    *inputs, out = view.operands
    number = [one.value for one in inputs].index(producer.element.output.value)
    names = dict(zip(producer.element.output.loops, inputs[number].loops, strict=True))
    names[None] = None  # index 0
    added = [
        (one.value, build.loop_map(view.rank, [names[loop] for loop in one.loops]))
        for one in (producer.source, *_other_buffers(producer))
    ]
    read = [(one.value, ir.AffineMapAttr.get(one.map)) for one in inputs]
    read = [*read[:number], added[0], *read[number + 1 :], *added[1:]]
    maps = [*(one for _, one in read), ir.AffineMapAttr.get(out.map)]
    with contraction.location, ir.InsertionPoint(contraction):
        made = build.generic([value for value, _ in read], out.value, maps)
        _fill_body(made, contraction, number, producer)
    for name in contraction.attributes:
        if name.startswith("alcop."):
            made.attributes[name] = contraction.attributes[name]
    return made


def _other_buffers(producer: OperandProducer) -> list[Operand]:
    """The other buffers that it reads."""
    return [
        operand
        for operand in producer.element.reads
        if operand.is_memref and operand != producer.source
    ]


def _fill_body(
    made: ir.Operation,
    contraction: ir.Operation,
    number: int,
    producer: OperandProducer,
) -> None:
    """Copy the body of `producer`, then that of the contraction on its result."""
    (block,) = made.regions[0].blocks
    (old,) = contraction.regions[0].blocks
    *elements, total = block.arguments
    arguments = list(old.arguments)
    known = dict(zip(arguments[:-1], elements, strict=False))
    known[arguments[-1]] = total
    inside = {producer.source.argument: elements[number]}
    for operand in producer.element.reads:
        if not operand.is_memref:
            inside[operand.argument] = operand.value
    added = elements[len(arguments) - 1 :]
    for operand, element in zip(_other_buffers(producer), added, strict=True):
        inside[operand.argument] = element
    with ir.InsertionPoint(block):
        (known[arguments[number]],) = edit.inline(producer.element.block, inside)
        for op in old.operations:
            edit.clone(op, known)


def _erase(contraction: ir.Operation, producer: OperandProducer) -> None:
    """Erase the ops that were fused, and the buffer between them if unused."""
    buffer = producer.element.output.value
    contraction.erase()
    producer.element.op.erase()
    left = [use.owner.operation for use in buffer.uses]
    edit.erase_unused([op for op in left if not list(op.results)])
    edit.erase_unused([buffer.owner])


def _diagnose(answers: Iterable[OperandProducer | Rejected | None]) -> None:
    """A remark on each op that cannot be fused, once."""
    seen: list[Any] = []
    for answer in answers:
        if isinstance(answer, Rejected) and answer.op not in seen:
            seen.append(answer.op)
            diagnostics.remark(
                answer.op,
                f"'{answer.op.name}' is not fused into the contraction that reads it: "
                f"{answer.reason}",
            )
