"""IR builders that several passes use; all build at the current insertion point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from alcop_mlir.bindings import affine, arith, ir, linalg, scf

WORKGROUP = "#gpu.address_space<workgroup>"


def index(value: int) -> Any:
    """An index constant."""
    return arith.constant(ir.IndexType.get(), value)


def value(size: ir.Value | int) -> ir.Value:
    """`size` as an index value: a constant for an int, else itself."""
    return index(size) if isinstance(size, int) else size


def add(left: ir.Value, right: ir.Value) -> Any:
    """`left + right` on indices."""
    return arith.addi(left, right)


def plus(value: ir.Value, addend: int) -> Any:
    """`value + addend` by affine.apply: upstream merges it with the offsets of views.

    Constants are then added last, so that LLVM puts them into the instructions'
    addresses.
    """
    if not addend:
        return value
    total = ir.AffineExpr.get_symbol(0) + addend
    return affine.apply(ir.AffineMap.get(0, 1, [total]), [value])


def mul(left: ir.Value, right: ir.Value) -> Any:
    """`left * right` on indices."""
    return arith.muli(left, right)


def loop_map(rank: int, loops: Iterable[int | None]) -> Any:
    """The map from `rank` loops to these; to the index 0 for None."""
    results = [
        ir.AffineExpr.get_constant(0) if loop is None else ir.AffineExpr.get_dim(loop)
        for loop in loops
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))


def generic(
    inputs: Sequence[ir.Value],
    output: ir.Value,
    maps: Sequence[Any],
    block: ir.Block | None = None,
) -> Any:
    """A linalg.generic on memrefs, whose body has no op yet.

    maps:  of the inputs and the output, which tell that loops are reductions
    block: of another op, to be the body: it is moved, and gets the arguments besides
           those that it has
    """
    results = maps[-1].value.results
    kept = {expression.position for expression in results}
    kinds = [
        "parallel" if loop in kept else "reduction"
        for loop in range(maps[-1].value.n_dims)
    ]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    op = linalg.GenericOp(
        [], inputs, [output], ir.ArrayAttr.get(maps), ir.ArrayAttr.get(iterators)
    )
    types = [getattr(v.type, "element_type", v.type) for v in (*inputs, output)]
    here = ir.Location.current
    if block is None:
        op.regions[0].blocks.append(*types, arg_locs=[here] * len(types))
    else:
        block.append_to(op.regions[0])
        for kind in types:
            block.add_argument(kind, here)
    return op.operation


def less(left: ir.Value, right: ir.Value) -> Any:
    """`left < right` on indices, signed: loop bounds may be negative."""
    return arith.cmpi(arith.CmpIPredicate.slt, left, right)


def cyclic_next(slot: ir.Value, slots: int) -> Any:
    """The slot after `slot` of `slots`, by compare and select: no division."""
    following = add(slot, index(1))
    wraps = arith.cmpi(arith.CmpIPredicate.eq, following, index(slots))
    return arith.select(wraps, index(0), following)


def clone(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> Any:
    """A copy of `op`, operands replaced by `mapping`, to which results are added.

    Regions are copied too: MLIR remaps what they define, `mapping` what they capture.
    """
    operation = op.operation
    copy = operation.clone()
    remap(copy, mapping)
    mapping.update(zip(operation.results, copy.results, strict=True))
    return copy


class Template:
    """An op that is copied many times: its operands and results are looked up once."""

    def __init__(self, op: ir.Operation):
        self.operation = op.operation
        self.results = tuple(enumerate(self.operation.results))
        self.operands = tuple(enumerate(self.operation.operands))
        self.has_regions = len(self.operation.regions) > 0

    @property
    def result(self) -> Any:
        """The first result of the op itself."""
        return self.results[0][1]

    def copy(self, mapping: dict[ir.Value, ir.Value]) -> Any:
        """Copy the op as `clone` does."""
        copy = self.operation.clone()
        if self.has_regions:
            remap(copy, mapping)
        else:
            operands = copy.operands
            for number, value in self.operands:
                if value in mapping:
                    operands[number] = mapping[value]
        results = copy.results
        for number, result in self.results:
            mapping[result] = results[number]
        return copy


def remap(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    """Replace operands of `op`, and of all that it contains, by `mapping`."""
    operation = op.operation
    operands = operation.operands
    for number, value in enumerate(operands):
        if value in mapping:
            operands[number] = mapping[value]
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                remap(inner, mapping)


def for_loop(
    bounds: tuple[Any, Any, Any],
    init_args: Sequence[Any],
    body: Callable[[Any, list[Any]], Iterable[Any]],
) -> Any:
    """An `scf.for`; `body(induction, carried)` builds it and returns what it yields."""
    loop = scf.ForOp(*bounds, list(init_args))
    with ir.InsertionPoint(loop.body):
        yielded = body(loop.induction_variable, list(loop.inner_iter_args))
        scf.YieldOp(list(yielded))
    return loop


def erase_unused(ops: Iterable[ir.Operation]) -> None:
    """Erase each op whose results are unused; in the order given.

    Erasing an op that has uses is not an error, but the next print crashes.
    """
    for op in ops:
        if not any(True for result in op.operation.results for _ in result.uses):
            op.operation.erase()
