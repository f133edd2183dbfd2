"""Sizes in a program of torch-mlir's: what is known of them, and views by them.

    cf.assert %same, "mismatched size"    ->    nothing, if torch knows it
    arith.divsi %rows, 32                 ->    affine.apply (rows floordiv 32)
    tensor.reshape %x(%sizes)             ->    tensor.expand_shape %x [[0, 1], [2]]

By the bindings of torch-mlir, which wrote the program.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

# Two dimensions: the numbers of their arguments, and their own.
Pair = tuple[tuple[int, int], tuple[int, int]]

_SIZES_DIFFER = "sizes of arguments differ"
_IS_KEPT = "dimension of a view is kept"
_NUMBER = "alcop.number"
# Sizes are not negative, as those of a view might be that torch-mlir looks for.
_FOLD = "int-range-optimizations,canonicalize,cse"
_RESOLVE = f"{_FOLD},resolve-ranked-shaped-type-result-dims,{_FOLD}"


def simplify(module: Any, same: Sequence[Pair] | None) -> None:
    """Simplify the sizes in the only function of `module`.

    same: pairs of dimensions whose sizes are the same. If they are, torch knows of each
        size how it follows from those of arguments: what torch-mlir asserts of sizes is
        erased, and what has to hold among arguments is asserted. None where torch does
        not know.
    """
    ir: Any = importlib.import_module("torch_mlir.ir")
    (function,) = module.body.operations
    (block,) = function.regions[0].blocks
    with module.context, ir.Location.unknown():
        if same is not None:
            for op in [one.operation for one in block.operations]:
                if op.name == "cf.assert":
                    op.erase()
                elif op.name == "arith.divsi":
                    _divide_affinely(ir, op)
        _Views(ir, block).expand(module)
        if same is not None:
            _run(module, _FOLD)
            with ir.InsertionPoint.at_block_begin(block):
                for pair in same:
                    one, other = (_dim(ir, block.arguments[n], at) for n, at in pair)
                    _assert_equal(ir, one, other, _SIZES_DIFFER)


class _Views:
    """The `tensor.reshape`s of a block, each of which splits one dimension.

    Which one follows from types, or, where several sizes are unknown, is tried: that
    other dimensions are kept is asserted, and right where canonicalize erases it.
    """

    def __init__(self, ir: Any, block: Any) -> None:
        self.ir, self.block = ir, block

    def expand(self, module: Any) -> None:
        """Make `tensor.expand_shape`s of those whose dimension is known."""
        found = list(self._all())
        if not found:
            return
        for number, view in enumerate(found):
            i64 = self.ir.IntegerType.get_signless(64)
            view.attributes[_NUMBER] = self.ir.IntegerAttr.get(i64, number)
            with self.ir.InsertionPoint(view):
                splits = _splits(view)
                for split in splits if len(splits) > 1 else ():
                    self._try(view, split, f"{_IS_KEPT}: {number} {split}")
        _run(module, _RESOLVE)
        wrong = set(self._take_assertions())
        for view in list(self._all()):
            number = self.ir.IntegerAttr(view.attributes[_NUMBER]).value
            right = [
                split
                for split in _splits(view)
                if f"{_IS_KEPT}: {number} {split}" not in wrong
            ]
            if right:
                with self.ir.InsertionPoint(view), view.location:
                    self._replace(view, right[0])

    def _all(self) -> Iterator[Any]:
        for op in self.block.operations:
            if op.operation.name == "tensor.reshape" and _sizes(op.operation):
                yield op.operation

    def _try(self, view: Any, split: int, message: str) -> None:
        source, sizes = view.operands[0], _sizes(view)
        for old, new in _kept(view, split):
            if source.type.is_dynamic_dim(old):
                size = _cast(self.ir, _dim(self.ir, source, old), sizes[new].type)
                _assert_equal(self.ir, size, sizes[new], message)

    def _take_assertions(self) -> Iterator[str]:
        for op in [one.operation for one in self.block.operations]:
            said = op.attributes["msg"].value if op.name == "cf.assert" else ""
            if said.startswith(_IS_KEPT):
                op.erase()
                yield said

    def _replace(self, view: Any, split: int) -> None:
        ir, result = self.ir, view.results[0]
        source, rank = view.operands[0], result.type.rank
        parts = rank - source.type.rank + 1
        groups = [[n] for n in range(split)]
        groups.append(list(range(split, split + parts)))
        groups += [[n] for n in range(split + parts, rank)]
        i64, index = ir.IntegerType.get_signless(64), ir.IndexType.get()
        kept = {new: old for old, new in _kept(view, split)}
        sizes = [
            _dim(ir, source, kept[number]) if number in kept else _cast(ir, size, index)
            for number, size in enumerate(_sizes(view))
            if result.type.is_dynamic_dim(number)
        ]
        made = ir.Operation.create(
            "tensor.expand_shape",
            results=[result.type],
            operands=[source, *sizes],
            attributes={
                "reassociation": ir.ArrayAttr.get(
                    [
                        ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n) for n in group])
                        for group in groups
                    ]
                ),
                "static_output_shape": ir.DenseI64ArrayAttr.get(result.type.shape),
            },
        )
        result.replace_all_uses_with(made.result)
        view.erase()


def _sizes(view: Any) -> list[Any]:
    """The sizes of a `tensor.reshape`, i64; none if they are not in the program."""
    shape = view.operands[1].owner
    is_known = getattr(shape, "name", "") == "tensor.from_elements"
    return list(shape.operands) if is_known else []


def _splits(view: Any) -> list[int]:
    """The dimensions that may be the one that is split, by types."""
    before, after = view.operands[0].type, view.results[0].type
    if after.rank <= before.rank:
        return []
    return [
        split
        for split in range(before.rank)
        if all(before.shape[old] == after.shape[new] for old, new in _kept(view, split))
    ]


def _kept(view: Any, split: int) -> list[tuple[int, int]]:
    """The other dimensions, as they are numbered before and after."""
    rank = view.operands[0].type.rank
    more = view.results[0].type.rank - rank
    every = ((n, n if n < split else n + more) for n in range(rank))
    return [pair for pair in every if pair[0] != split]


def _divide_affinely(ir: Any, division: Any) -> None:
    """Let `affine.apply` divide a size, which is not negative, by a constant.

    It is folded: (s0 * 32) / 32 is s0.
    """
    by = division.operands[1].owner
    if str(division.result.type) != "index" or by.name != "arith.constant":
        return
    number = ir.IntegerAttr(by.attributes["value"]).value
    with division.location, ir.InsertionPoint(division):
        size = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_symbol(0), number)
        made = ir.Operation.create(
            "affine.apply",
            results=[division.result.type],
            operands=[division.operands[0]],
            attributes={"map": ir.AffineMapAttr.get(ir.AffineMap.get(0, 1, [size]))},
        )
    division.result.replace_all_uses_with(made.result)
    division.erase()


def _dim(ir: Any, array: Any, dimension: int) -> Any:
    index = ir.IndexType.get()
    number = ir.Operation.create(
        "arith.constant",
        results=[index],
        attributes={"value": ir.IntegerAttr.get(index, dimension)},
    )
    operands = [array, number.result]
    return ir.Operation.create("tensor.dim", results=[index], operands=operands).result


def _cast(ir: Any, size: Any, kind: Any) -> Any:
    made = ir.Operation.create("arith.index_cast", results=[kind], operands=[size])
    return made.result


def _assert_equal(ir: Any, one: Any, other: Any, message: str) -> None:
    i1, i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 64))
    equal = ir.Operation.create(
        "arith.cmpi",
        results=[i1],
        operands=[one, other],
        attributes={"predicate": ir.IntegerAttr.get(i64, 0)},
    )
    said = {"msg": ir.StringAttr.get(message)}
    ir.Operation.create("cf.assert", operands=[equal.result], attributes=said)


def _run(module: Any, passes: str) -> None:
    manager: Any = importlib.import_module("torch_mlir.passmanager")
    manager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
