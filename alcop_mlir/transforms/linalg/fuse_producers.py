"""Let element-wise ops on the inputs of a product be computed by the product itself.

Before:  linalg.generic ins(%A : memref<64x128xf32>) outs(%half : memref<64x128xf16>) {
           arith.truncf }
         linalg.matmul ins(%half, %B) outs(%C)
After:   linalg.generic ins(%A, %B) outs(%C) {
         ^bb0(%a: f32, %b: f16, %c: f32):
           %h = arith.truncf %a : f32 to f16
           %x = arith.extf %h : f16 to f32   // as linalg.matmul did
           ... }

The product reads A as it lies in memory, so that its tiles are still copied in the
background; alcop-tile-to-blocks computes the factors on the fragments that a warp reads
of them. Several ops in a row are taken one by one. Scalars in memory, and arrays of one
value per row or column, become inputs of the product. The array in between is erased
with the op.

An op whose output a product reads and that cannot be taken is left alone, with a remark
that says why; see `analysis.producers` for what is needed. Without
`assume-noalias-args`, arguments may overlap, and then C may be what the op reads.

Reads and writes no attribute. Stands before alcop-raise-contractions, which looks at
what is multiplied in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.analysis.linalg.elementwise import Operand
from alcop_mlir.analysis.linalg.operand_fusion import (
    OperandProducer,
    find_operand_producer,
)
from alcop_mlir.analysis.linalg.operand_transforms import find_operand_transforms
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass, option


@dataclass(frozen=True)
class FuseProducers(Pass):
    name = "alcop-fuse-producers"
    anchor = "func.func"

    assume_noalias_args: bool = option(
        False, "an array that is written overlaps no other argument"
    )
    allow_tf32: bool = option(False, "products of f32, with inputs rounded to tf32")

    def run(self, op: Any) -> None:
        products = [
            candidate
            for candidate in contractions.structured_ops(op)
            if isinstance(self._classify(candidate), Contraction)
        ]
        for number in range(len(products)):
            while self._fuse_one(products, number):
                pass
            _tell(self._answers(products, number))

    def _fuse_one(self, products: list[Any], number: int) -> bool:
        """Take one op into a product, which is replaced; whether there was one."""
        for answer in self._answers(products, number):
            if isinstance(answer, OperandProducer):
                product = products[number]
                products[number] = _fused(product, answer)
                _erase(product, answer)
                return True
        return False

    def _answers(
        self, products: list[Any], number: int
    ) -> Iterator[OperandProducer | Rejected | None]:
        """Of the ops that make the inputs of a product."""
        product = products[number]
        for factor in find_operand_transforms(product):
            answer = find_operand_producer(
                product, factor.operand, products, self.assume_noalias_args
            )
            if isinstance(answer, OperandProducer):
                answer = self._tried(product, answer)
            yield answer

    def _tried(
        self, product: Any, producer: OperandProducer
    ) -> OperandProducer | Rejected:
        """Whether what comes out is a product that the passes handle."""
        trial = _fused(product, producer)
        found = self._classify(trial)
        trial.erase()
        if isinstance(found, Rejected):
            why = f"the product would be none that is handled: {found.reason}"
            return Rejected(producer.element.op, why)
        return producer

    def _classify(self, op: Any) -> Contraction | Rejected:
        return contractions.classify(op, self.allow_tf32)


def _fused(product: Any, producer: OperandProducer) -> Any:
    """The product of what the producer computes, just before it."""
    number = list(product.operands).index(producer.element.output.value)
    *inputs, out = product.operands
    found = contractions.indexing_maps(product)
    assert found is not None, product
    *maps, out_map = found
    loops = dict(zip(producer.element.output.loops, maps[number].results, strict=True))
    added = [producer.source, *_other_arrays(producer)]
    added_maps = [
        ir.AffineMap.get(
            maps[number].n_dims, 0, [loops[loop] for loop in operand.loops]
        )
        for operand in added
    ]
    inputs[number], maps[number] = added[0].value, added_maps[0]
    inputs += [operand.value for operand in added[1:]]
    maps += added_maps[1:]
    with product.location, ir.InsertionPoint(product):
        made = _generic(inputs, out, [*maps, out_map])
        _fill_body(made, product, number, producer)
    for name in product.attributes:
        if name.startswith("alcop."):
            made.attributes[name] = product.attributes[name]
    return made


def _other_arrays(producer: OperandProducer) -> list[Operand]:
    """The other arrays that it reads."""
    return [
        operand
        for operand in producer.element.reads
        if operand.is_memref and operand != producer.source
    ]


def _generic(inputs: list[Any], out: Any, maps: list[Any]) -> Any:
    """A linalg.generic without a body that sums over the loops that `out` has not."""
    kept = {ir.AffineDimExpr(result).position for result in maps[-1].results}
    kinds = [
        "parallel" if loop in kept else "reduction" for loop in range(maps[0].n_dims)
    ]
    op = linalg.GenericOp(
        [],
        inputs,
        [out],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(one) for one in maps]),
        ir.ArrayAttr.get(
            [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
        ),
    )
    elements = [value.type.element_type for value in (*inputs, out)]
    here = ir.Location.current
    op.regions[0].blocks.append(*elements, arg_locs=[here] * len(elements))
    return op.operation


def _fill_body(made: Any, product: Any, number: int, producer: OperandProducer) -> None:
    """The producer's body, then the product's with its result for an element."""
    (block,) = made.regions[0].blocks
    (old,) = product.regions[0].blocks
    *elements, total = block.arguments
    arguments = list(old.arguments)
    known = dict(zip(arguments[:-1], elements, strict=False))
    known[arguments[-1]] = total
    inside = {producer.source.argument: elements[number]}
    for operand in producer.element.reads:
        if not operand.is_memref:
            inside[operand.argument] = operand.value
    added = elements[len(arguments) - 1 :]
    for operand, element in zip(_other_arrays(producer), added, strict=True):
        inside[operand.argument] = element
    with ir.InsertionPoint(block):
        *ops, end = producer.element.block.operations
        for op in ops:
            build.clone(op, inside)
        result = end.operation.operands[0]
        known[arguments[number]] = inside.get(result, result)
        for op in old.operations:
            build.clone(op, known)


def _erase(product: Any, producer: OperandProducer) -> None:
    """What the new product has taken the place of."""
    array = producer.element.output.value
    product.erase()
    producer.element.op.erase()
    left = [use.owner.operation for use in array.uses]
    build.erase_unused([op for op in left if not list(op.results)])
    build.erase_unused([array.owner])


def _tell(answers: Iterable[OperandProducer | Rejected | None]) -> None:
    """Why ops are left alone, each once."""
    told: list[Any] = []
    for answer in answers:
        if isinstance(answer, Rejected) and answer.op not in told:
            told.append(answer.op)
            diagnostics.remark(
                answer.op,
                f"'{answer.op.name}' is not computed in the product that reads it: "
                f"{answer.reason}",
            )
