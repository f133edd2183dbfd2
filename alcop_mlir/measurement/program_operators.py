"""The operators of an MLIR program, each as a program of its own.

A contraction is measured alone, on arrays that the views and windows which it reads are
of. Such a program is compiled like any other, from the start, so that it has to lead to
the same problem again: what does not is left out, with the reason.

Before:  func.func @model(...) { ... ; %A = "alcop.im2col"(%x) {...}
           linalg.matmul {alcop.contraction = ...} ins(%A, %w) outs(%C) ; ... }
After:   func.func @operator(%x, %w, %C) { %A = "alcop.im2col"(%x) {...}
           linalg.fill ins(0) outs(%C) ; linalg.matmul ins(%A, %w) outs(%C) }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import VIEW_OPS
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.bindings import func, ir, linalg
from alcop_mlir.compilation import inputs
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import AlcopError, ConfigError, NoContractionError
from alcop_mlir.measurement import chain_program
from alcop_mlir.measurement.chains_of import find_chains
from alcop_mlir.measurement.operators import Operator, Program
from alcop_mlir.measurement.tunables import Tunable, find_tunables
from alcop_mlir.passes.build import zero
from alcop_mlir.passes.edit import clone
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning.problem import Problem

_COPIED = VIEW_OPS | {"arith.constant"}


def find_program(source: Input, name: str, allow_tf32: bool, target: str) -> Program:
    """What is tuned of the program; ConfigError where that is nothing.

    name: of its file; allow_tf32, target: see `find_tunables`
    """
    chains = [one.problem for one in find_chains(source, find_target(target))]
    found = _tunables(source, name, allow_tf32, target, bool(chains))
    if len(found) + len(chains) == 1:
        problem = found[0].problem if found else chains[0]
        if problem is not None:
            # What the program computes beside it is measured with it.
            return Program(name, (Operator(problem, source.text.decode()),))
    operators: dict[Problem, Operator] = {}
    reasons: Counter[str] = Counter()
    for one in (*found, *chains):
        problem = _covered(one)
        known = None if problem is None else operators.get(problem.recorded)
        if known is not None:
            made: Operator | str = replace(known, count=known.count + 1)
        elif isinstance(one, Tunable):
            made = _operator(one, allow_tf32, target)
        else:
            made = _chain(one, find_target(target))
        if isinstance(made, str):
            reasons[made] += 1
        else:
            operators[made.problem.recorded] = made
    if not operators:
        why = ", ".join(reasons)
        raise ConfigError(f"'{name}': none of its contractions can be tuned: {why}")
    left_out = (
        f"{count} contraction{'s are' if count > 1 else ' is'} left out: {why}"
        for why, count in reasons.items()
    )
    return Program(name, (*operators.values(),), tuple(left_out))


def _tunables(
    source: Input, name: str, allow_tf32: bool, target: str, has_chains: bool
) -> list[Tunable]:
    """The contractions that are in no chain; NoContractionError without any of both."""
    try:
        return find_tunables(source, name, allow_tf32, target)
    except NoContractionError:
        if has_chains:
            return []
        raise


def _covered(one: Tunable | Problem | None) -> Problem | None:
    """What a model covers, of a contraction or a chain."""
    if isinstance(one, Tunable):
        return one.problem if one.covered else None
    return one


def _operator(tunable: Tunable, allow_tf32: bool, target: str) -> Operator | str:
    """The contraction as a program of its own; or why it is none."""
    if not tunable.covered:
        return tunable.uncovered
    problem = tunable.problem
    text = _text(tunable.contraction)
    if text is None:
        return f"{problem}: what it reads lies where only a run of the program knows"
    try:
        alone = find_tunables(inputs.read_text(text), "operator", allow_tf32, target)
        found = [one.problem for one in alone]
    except AlcopError as error:
        return f"{problem}: by itself it is not compiled: {error}"
    if [one.recorded for one in found] != [problem.recorded]:
        other = ", ".join(map(str, found)) or "nothing"
        return f"{problem}: by itself it is compiled as {other}"
    # Where the arrays of its own program are aligned otherwise, other tiles are legal.
    return Operator(found[0], text)


def _chain(problem: Problem | None, target: Target) -> Operator | str:
    """The chain as a program of its own; or why it is none."""
    if problem is None:
        return "a chain of which a size is known at run time only"
    text = chain_program.program(problem)
    if [one.problem for one in find_chains(inputs.read_text(text), target)] != [
        problem
    ]:
        return f"{problem}: by itself it is not compiled as one"
    return Operator(problem, text)


def _text(contraction: Contraction) -> str | None:
    """A module with the contraction alone; None where it reads more than arrays."""
    op = contraction.op.operation
    with op.context, ir.Location.unknown():
        views: list[ir.Operation] = []
        arrays: list[ir.Value] = []
        for operand in op.operands:
            if not _collect(operand, views, arrays):
                return None
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            made = func.FuncOp("operator", ([one.type for one in arrays], []))
            block = made.add_entry_block()
        with ir.InsertionPoint(block):
            _fill(op, views, dict(zip(arrays, block.arguments, strict=True)))
            func.ReturnOp([])
        return str(module)


def _collect(
    value: ir.Value, views: list[ir.Operation], arrays: list[ir.Value]
) -> bool:
    """Add the views that lead to `value`, and the arrays that they are of."""
    op = defining_op(value)
    if op is not None and op.name in _COPIED:
        if op in views:
            return True
        is_known = all(_collect(operand, views, arrays) for operand in op.operands)
        views.append(op)
        return is_known
    if value not in arrays:
        arrays.append(value)
    return isinstance(value.type, ir.MemRefType)


def _fill(
    op: ir.Operation, views: Sequence[ir.Operation], mapping: dict[ir.Value, ir.Value]
) -> None:
    """Copies of the views, and of the contraction, which starts from zeros."""
    for view in views:
        clone(view, mapping)
    *_, out = op.operands
    linalg.fill(zero(out.type.element_type), outs=[mapping[out]])
    alcop.drop(clone(op, mapping), alcop.ContractionAttr)
