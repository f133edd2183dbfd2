"""Sizes in a program of torch-mlir's, as torch knows them, and views by them.

    cf.assert %same, "mismatched size"    ->    nothing, if torch knows it
    arith.minsi %end, %size               ->    one of them, or what it is computed of
    arith.floordivsi %size, 2             ->    tensor.dim %arg7, 0
    tensor.reshape %x(%sizes)             ->    tensor.collapse_shape, then expand_shape

By the bindings of torch-mlir, which wrote the program. What `shapes.py` knows of a size
is computed of sizes of arguments: additions and multiplications. Quotients are sizes of
arguments too, of arrays that `graphs.py` adds for them.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

from alcop_mlir.torch.shapes import Known, Shapes, reshaped
from alcop_mlir.torch.symbols import atoms
from alcop_mlir.torch.views import Group, groups

_SIZES_DIFFER = "sizes of arguments differ"
# Sizes are not negative, as those of a view might be that torch-mlir looks for.
_FOLD = "int-range-optimizations,canonicalize,cse"
_RESOLVE = f"{_FOLD},resolve-ranked-shaped-type-result-dims,{_FOLD}"


def simplify(module: Any, known: Known) -> None:
    """Simplify the sizes in the only function of `module`.

    What torch-mlir asserts of sizes is erased: torch has derived all sizes from those
    of arguments, and would have asked for what else has to hold. That arguments have
    sizes which fit together is asserted, but for what cannot be computed of others:
    then all assertions stay.
    """
    ir: Any = importlib.import_module("torch_mlir.ir")
    (function,) = module.body.operations
    (block,) = function.regions[0].blocks
    with module.context, ir.Location.unknown():
        made = _Sizes(ir, block, known)
        if all(map(made.is_computed, made.every())):
            made.erase_assertions()
            made.assert_fit()
        made.replace()
        _run(module, _RESOLVE)


class _Sizes:
    """Sizes of a function's arguments, computed at its beginning."""

    def __init__(self, ir: Any, block: Any, known: Known) -> None:
        self._ir, self._block, self._known = ir, block, known
        self._index = ir.IndexType.get()
        self._places: dict[Any, tuple[int, int]] = {}
        for number, sizes in enumerate(known.arguments):
            for dimension, size in enumerate(sizes):
                if [size] == [*atoms(size)]:
                    self._places.setdefault(size, (number, dimension))
        self._made: dict[Any, Any] = {}
        self._given = [one.operation for one in block.operations]
        with ir.InsertionPoint.at_block_begin(block):
            self._last = self._constant(0)  # what is computed is put in front of it

    def every(self) -> Iterator[Any]:
        """The sizes of arguments."""
        for sizes in self._known.arguments:
            yield from sizes

    def is_computed(self, size: Any) -> bool:
        """Whether it is a polynomial in sizes of arguments."""
        return all(atom in self._places for atom in atoms(size))

    def erase_assertions(self) -> None:
        """Erase what the program asserts."""
        for op in self._given:
            if op.name == "cf.assert":
                op.erase()
        self._given = [one.operation for one in self._block.operations]

    def assert_fit(self) -> None:
        """Assert that sizes of arguments are what torch knows them to be."""
        for number, sizes in enumerate(self._known.arguments):
            for dimension, size in enumerate(sizes):
                if size.is_number or self._places.get(size) == (number, dimension):
                    continue
                wanted = self._value(size)
                with self._ir.InsertionPoint(self._last.owner):
                    self._assert_equal(self._dim(number, dimension), wanted)

    def replace(self) -> None:
        """Replace all sizes that are known, and the views that are by them."""
        shapes = Shapes(self._ir, self._known)
        for op in self._given:
            if op.name == "tensor.reshape":
                self._replace_view(op, shapes)
            elif op.name.startswith(("arith.", "tensor.dim")):
                self._replace_size(op, shapes)

    def _replace_size(self, op: Any, shapes: Shapes) -> None:
        kind = op.results[0].type
        is_size = str(kind) in ("index", "i64")
        if op.name == "arith.constant" or not is_size:
            return
        size = shapes.size(op.results[0])
        if size is None or not self.is_computed(size):
            return
        value = self._value(size)
        if str(kind) != "index":
            with self._ir.InsertionPoint(op):
                value = self._create("arith.index_cast", [value], kind)
        op.results[0].replace_all_uses_with(value)

    def _replace_view(self, view: Any, shapes: Shapes) -> None:
        """Replace a `tensor.reshape` of which each part is known."""
        before = shapes.shape(view.operands[0])
        after = reshaped(shapes, view)
        if after is None or None in (*before, *after):
            return
        found = groups(before, after)
        if found is None or not all(map(self.is_computed, after)):
            return
        result = view.results[0]
        static = [
            int(size) if size.is_number else self._ir.ShapedType.get_dynamic_size()
            for size in after
        ]
        sizes = [self._value(size) for size in after if not size.is_number]
        with self._ir.InsertionPoint(view), view.location:
            made = self._collapsed(view.operands[0], found)
            made = self._expanded(made, found, static, sizes)
            made = self._cast(made, result.type.shape)
        result.replace_all_uses_with(made)

    def _collapsed(self, value: Any, found: list[Group]) -> Any:
        """`value` with each group as one dimension."""
        if all(len(old) == 1 for old, _ in found):
            return value
        shape = value.type.shape
        sizes = [
            self._product([shape[n] for n in old])  # as the op's verifier asks for
            for old, _ in found
        ]
        kind = self._tensor(value, sizes)
        grouped = {"reassociation": self._groups(old for old, _ in found)}
        return self._create("tensor.collapse_shape", [value], kind, grouped)

    def _expanded(
        self, value: Any, found: list[Group], static: list[int], sizes: list[Any]
    ) -> Any:
        """`value` with each dimension as the new ones of its group."""
        value = self._cast(
            value, [self._product([static[n] for n in new]) for _, new in found]
        )
        if all(len(new) == 1 for _, new in found):
            return value
        attributes = {
            "reassociation": self._groups(new for _, new in found),
            "static_output_shape": self._ir.DenseI64ArrayAttr.get(static),
        }
        kind = self._tensor(value, static)
        return self._create("tensor.expand_shape", [value, *sizes], kind, attributes)

    def _product(self, sizes: list[int]) -> int:
        unknown = self._ir.ShapedType.get_dynamic_size()
        return unknown if unknown in sizes else math.prod(sizes)

    def _groups(self, found: Any) -> Any:
        i64 = self._ir.IntegerType.get_signless(64)
        return self._ir.ArrayAttr.get(
            [
                self._ir.ArrayAttr.get([self._ir.IntegerAttr.get(i64, n) for n in one])
                for one in found
            ]
        )

    def _tensor(self, like: Any, sizes: list[int]) -> Any:
        return self._ir.RankedTensorType.get(sizes, like.type.element_type)

    def _cast(self, value: Any, sizes: list[int]) -> Any:
        kind = self._tensor(value, sizes)
        return (
            value if kind == value.type else self._create("tensor.cast", [value], kind)
        )

    def _value(self, size: Any) -> Any:
        """The value of a size that is computed of sizes of arguments."""
        if size not in self._made:
            with self._ir.InsertionPoint(self._last.owner):
                self._made[size] = self._new(size)
        return self._made[size]

    def _new(self, size: Any) -> Any:
        if size.is_Integer:
            return self._constant(int(size))
        if size in self._places:
            return self._dim(*self._places[size])
        if size.is_Pow:
            parts = [size.base] * int(size.exp)
        else:
            parts = list(size.args)
        name = "arith.addi" if size.is_Add else "arith.muli"
        values = [self._value(part) for part in parts]
        return reduce(lambda one, other: self._create(name, [one, other]), values)

    def _dim(self, argument: int, dimension: int) -> Any:
        array = self._block.arguments[argument]
        return self._create("tensor.dim", [array, self._constant(dimension)])

    def _constant(self, number: int) -> Any:
        value = self._ir.IntegerAttr.get(self._index, number)
        return self._create("arith.constant", [], self._index, {"value": value})

    def _create(
        self, name: str, operands: list[Any], kind: Any = None, attributes: Any = None
    ) -> Any:
        kind = self._index if kind is None else kind
        made = self._ir.Operation.create(
            name, results=[kind], operands=operands, attributes=attributes or {}
        )
        return made.result

    def _assert_equal(self, one: Any, other: Any) -> None:
        i1, i64 = (self._ir.IntegerType.get_signless(bits) for bits in (1, 64))
        predicate = {"predicate": self._ir.IntegerAttr.get(i64, 0)}
        equal = self._create("arith.cmpi", [one, other], i1, predicate)
        said = {"msg": self._ir.StringAttr.get(_SIZES_DIFFER)}
        self._ir.Operation.create("cf.assert", operands=[equal], attributes=said)


def _run(module: Any, passes: str) -> None:
    manager: Any = importlib.import_module("torch_mlir.passmanager")
    manager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
