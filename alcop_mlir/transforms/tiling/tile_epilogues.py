"""Builders of the ops that alcop-fuse-elementwise put into a product's kernel.

A warp takes its sums some rows at a time: it reads what else the ops need there,
computes, rounds and stores, so that few registers are held besides the sums. What is
the same for all rows is read once.

A body that begins by extending the product's output gets the sums themselves, which
were not rounded yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.linalg.elementwise import Elementwise, Operand
from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.target import MMA_F16_SHAPE
from alcop_mlir.transforms.tiling.tile_access import TileWindow
from alcop_mlir.transforms.tiling.tiled_contractions import TiledContraction
from alcop_mlir.transforms.tiling.vector_code import as_vector, compute

_STRIP = MMA_F16_SHAPE[0]  # rows at a time: those of a piece of accumulators
_EXTENSIONS = ("arith.extf", "arith.extsi")


def store_epilogue(product: TiledContraction, window: TileWindow, sums: Any) -> None:
    """Compute the epilogue on the sums, and store all that others need."""
    results = product.results
    same_for_all_rows: dict[tuple[Any, str], Any] = {}
    for first in range(0, window.shape[0], _STRIP):
        strip = _Strip(product, window.rows(first, _STRIP), same_for_all_rows)
        strip.values[product.out] = _rows(sums, first)
        for element in product.epilogue:
            strip.compute(element)
        for array in results:
            value = rounded(strip.values[array], array.type.element_type)
            strip.window.write(value, array, product.out_loops)


def rounded(values: Any, element: Any) -> Any:
    """A vector of floats as one of a narrower type; itself where it is of that type."""
    if values.type.element_type == element:
        return values
    return arith.truncf(ir.VectorType.get(values.type.shape, element), values)


def _rows(sums: Any, first: int) -> Any:
    rows, columns = sums.type.shape
    if rows == _STRIP:
        return sums
    kind = ir.VectorType.get([_STRIP, columns], sums.type.element_type)
    return vector.extract_strided_slice(
        kind, sums, [first, 0], [_STRIP, columns], [1, 1]
    )


@dataclass
class _Strip:
    """Some rows of the sums, and what was computed of them.

    values: by array, the elements that it has there
    shared: what was read that is the same for all rows, by array and loops
    """

    product: TiledContraction
    window: TileWindow
    shared: dict[tuple[Any, str], Any]
    values: dict[Any, Any] = field(default_factory=dict)

    def compute(self, element: Elementwise) -> None:
        """The output of an op, from what is at hand and what is read here."""
        if element.block is None:
            (source,) = element.inputs
            self.values[element.output.value] = self._value(element, source)
            return
        known: dict[Any, Any] = {}
        for operand in element.reads:
            self._bind(operand.argument, self._value(element, operand), known)
        *body, end = (op.operation for op in element.block.operations)
        shape = list(self.window.shape)
        compute((op for op in body if op.results[0] not in known), shape, known)
        result = as_vector(end.operands[0], shape, known)
        self.values[element.output.value] = result

    def _value(self, element: Elementwise, operand: Operand) -> Any:
        """The elements of an operand: computed before, constant or read."""
        array = operand.value
        if array in self.values:
            return self.values[array]
        if not operand.is_memref:
            return as_vector(array, list(self.window.shape), {})
        loops = self.product.loops_of(element, operand)
        if "m" in loops:
            return self.window.read(array, loops)
        key = (array, loops)
        if key not in self.shared:
            self.shared[key] = self.window.read(array, loops)
        return self.shared[key]

    def _bind(self, argument: Any, value: Any, known: dict[Any, Any]) -> None:
        """Let `argument` be `value`, which may be sums that are not rounded yet."""
        wide = value.type.element_type
        if wide == argument.type:
            known[argument] = value
            return
        extended = [
            use.owner.operation.results[0]
            for use in argument.uses
            if use.owner.operation.name in _EXTENSIONS
        ]
        direct = [result for result in extended if result.type == wide]
        known.update(dict.fromkeys(direct, value))
        if len(direct) < sum(1 for _ in argument.uses):
            known[argument] = rounded(value, argument.type)
