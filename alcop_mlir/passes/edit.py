"""Changes of IR that is there: ops are copied, moved, replaced and erased."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from alcop_mlir.bindings import ir, scf


def clone(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> Any:
    """A copy of `op`, operands replaced by `mapping`, to which results are added.

    Regions are copied too: MLIR remaps what they define, `mapping` what they capture.
    """
    operation = op.operation
    copy = operation.clone()
    remap(copy, mapping)
    mapping.update(zip(operation.results, copy.results, strict=True))
    return copy


def inline(block: ir.Block, mapping: dict[ir.Value, ir.Value]) -> list[Any]:
    """Copy the ops of `block` but the last, as `clone` does; what that one takes.

    Ops whose results are in `mapping` before are not copied.
    """
    *ops, end = (op.operation for op in block.operations)
    for op in ops:
        if not any(result in mapping for result in op.results):
            clone(op, mapping)
    return [mapping.get(value, value) for value in end.operands]


def attributes(op: ir.Operation) -> dict[str, Any]:
    """All attributes of an op."""
    return {name: op.attributes[name] for name in op.attributes}


def keep_attributes(op: ir.Operation, new: ir.Operation) -> None:
    """Give `new` all attributes of `op`, such as `alcop.unroll`."""
    for name, attribute in attributes(op).items():
        new.operation.attributes[name] = attribute


def like(op: ir.Operation, kinds: list[ir.Type], operands: list[ir.Value]) -> Any:
    """The op again, with other operands and types of results; without regions."""
    return ir.Operation.create(op.name, kinds, operands, attributes(op))


def write_argument_types(function: ir.Operation) -> None:
    """Write the types of the arguments into the type of a `func.func`."""
    results = function.attributes["function_type"].value.results
    inputs = [one.type for one in function.regions[0].blocks[0].arguments]
    new = ir.FunctionType.get(inputs, results)
    function.attributes["function_type"] = ir.TypeAttr.get(new)


def move_ops(old: ir.Block, new: ir.Block) -> None:
    """Move all ops of a block to the end of another one."""
    for op in list(old.operations):
        new.append(op.operation)


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


def with_carried(
    loop: ir.Operation,
    init_args: Sequence[ir.Value],
    following: Callable[[list[Any]], Iterable[Any]],
) -> Any:
    """The `scf.for` `loop` with more carried values; its body is moved.

    following: builds, of these values in an iteration, those of the next one; called
               with the insertion point at the end of the body
    """
    old, start = loop.regions[0].blocks[0], list(loop.operands)
    with loop.location, ir.InsertionPoint(loop):
        wider = scf.ForOp(*start[:3], [*start[3:], *init_args]).operation
    keep_attributes(loop, wider)
    new = wider.regions[0].blocks[0]
    before = len(old.arguments)
    for one, other in zip(old.arguments, list(new.arguments)[:before], strict=True):
        one.replace_all_uses_with(other)
    move_ops(old, new)
    end = new.operations[len(new.operations) - 1].operation
    with end.location, ir.InsertionPoint(end):
        more = following(list(new.arguments)[before:])
        scf.YieldOp([*end.operands, *more])
    end.erase()
    kept = list(wider.results)[: before - 1]
    for one, other in zip(loop.results, kept, strict=True):
        one.replace_all_uses_with(other)
    loop.erase()
    return wider


def after(value: ir.Value) -> ir.InsertionPoint:
    """Where `value` is known first."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(owner)
    return ir.InsertionPoint.after(owner)


def erase_unused(ops: Iterable[ir.Operation]) -> None:
    """Erase each op whose results are unused; in the order given.

    Erasing an op that has uses is not an error, but the next print crashes.
    """
    for op in ops:
        if not any(True for result in op.operation.results for _ in result.uses):
            op.operation.erase()


def set_argument_attribute(
    func: ir.Operation, number: int, name: str, value: ir.Attribute | None
) -> None:
    """Set an attribute of an argument of a `func.func`; None removes it."""
    count = len(ir.FunctionType(func.attributes["function_type"].value).inputs)
    every: list[dict[str, Any]] = [{} for _ in range(count)]
    if "arg_attrs" in func.attributes:
        given = [ir.DictAttr(one) for one in func.attributes["arg_attrs"]]
        every = [{a.name: a.attr for a in one} for one in given]
    every[number].pop(name, None)
    if value is not None:
        every[number][name] = value
    dictionaries = [ir.DictAttr.get(one) for one in every]
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(dictionaries)


def erase_deallocs(buffer: ir.Value) -> None:
    """Erase what frees `buffer`."""
    for use in list(buffer.uses):
        if use.owner.operation.name == "memref.dealloc":
            use.owner.operation.erase()
