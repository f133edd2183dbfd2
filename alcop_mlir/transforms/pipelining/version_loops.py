"""Pipeline a loop where a check at run time finds that its memrefs do not overlap.

Before:  scf.for %k ... { copy of %A ; use ; store to %C }
After:   %a, %c = memref.extract_aligned_pointer_as_index %A, %C
         scf.if (%a + bytes of %A <= %c or %c + bytes of %C <= %a) {
           scf.for %k ... { copy of %A ; use ; store to %C } {alcop.noalias = true}
         } else {
           scf.for %k ... { copy of %A ; use ; store to %C } {alcop.noalias = false}
         }

For each loop that alcop-plan-pipelines would pipeline, or of which it would pipeline
more, if arguments and globals did not alias. All that the loop writes is compared with
all else that it accesses, as ranges of addresses from the first element to the last.
Buffers that the first version's copies fill are its own. A loop is left unchanged, with
a remark, where a range cannot be computed before it, or may differ between threads, as
may those of functions that kernels call.

Needs indices as wide as pointers, as alcop-lower-to-nvvm has them.

Runs before alcop-plan-pipelines, on request. Writes `alcop.noalias`: `true` is a
promise about the loop, `false` says that the other version has it; alcop-plan-pipelines
erases it.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir import memory, uniformity
from alcop_mlir.analysis.ir.kernels import kernels_in
from alcop_mlir.analysis.ir.loops import defining_op, is_inside, is_loop
from alcop_mlir.analysis.ir.memref_layouts import follows_shape, is_strided
from alcop_mlir.analysis.ir.promises import NOALIAS
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.analysis.pipelining.plans.bound_plans import given_plans
from alcop_mlir.analysis.pipelining.plans.kernel_plan import KernelPlan, Limits
from alcop_mlir.analysis.pipelining.plans.plan import plan_kernel
from alcop_mlir.analysis.pipelining.verdicts import SHARED
from alcop_mlir.bindings import arith, ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.pipelining.own_buffers import give_own_buffer

# What is asked is whether a loop can be pipelined, not with how many stages.
_STAGES = (2, 2)
_UNLIMITED = 2**62  # bytes


@frozen
class VersionLoops(Pass):
    name = "alcop-version-loops"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for scope in kernels_in(op):
            for loop, buffers in _needing_promise(scope).items():
                pairs = _pairs(loop)
                if not pairs:
                    continue  # what may alias is elsewhere
                why = _unknown_range(loop, _members(pairs))
                if why is None:
                    _version(loop, pairs, buffers)
                else:
                    diagnostics.remark(loop, f"has no check at run time: {why}")


def _needing_promise(scope: ir.Operation) -> dict[Any, list[Any]]:
    """The loops of which more is pipelined if arguments do not alias, outermost ones.

    Each with the buffers that its pipelined copies fill.
    """
    given = given_plans(scope)
    without, with_promise = (
        plan_kernel(scope, Limits(_STAGES, _UNLIMITED, noalias), given)
        for noalias in (False, True)
    )
    known = {pipeline.loop: len(pipeline.ops) for pipeline in without.pipelines}
    found: dict[Any, list[Any]] = {}
    for pipeline in with_promise.pipelines:
        loop = pipeline.loop
        is_more = len(pipeline.ops) > known.get(loop, 0)
        if is_more and not any(is_inside(loop, outer) for outer in found):
            found[loop] = _filled(loop, with_promise)
    return found


def _filled(loop: ir.Operation, plan: KernelPlan) -> list[Any]:
    """The buffers from outside of `loop` that pipelined copies in it fill."""
    copies = [
        copy
        for pipeline in plan.pipelines
        if pipeline.level == SHARED
        and (pipeline.loop == loop or is_inside(pipeline.loop, loop))
        for copy in pipeline.copies
    ]
    return [
        buffer
        for buffer in dict.fromkeys(root for copy in copies for root in copy.buffers)
        if not _is_made_in(buffer, loop)
    ]


def _pairs(loop: ir.Operation) -> list[tuple[Any, Any]]:
    """Memrefs that may alias unless it is promised; the loop writes the first."""
    written = [one for _, one in memory.written_roots(loop) if one is not None]
    used = [
        memory.root(value)
        for op in walk(loop)
        for value in op.operands
        if isinstance(value.type, ir.MemRefType)
    ]
    pairs = {
        frozenset((one, other)): (one, other)
        for one, other in product(dict.fromkeys(written), dict.fromkeys(used))
        if memory.may_alias(one, other, False)
        and not memory.may_alias(one, other, True)
    }
    return list(pairs.values())


def _members(pairs: list[tuple[Any, Any]]) -> list[Any]:
    """The memrefs of all pairs, each once."""
    return list(dict.fromkeys(one for pair in pairs for one in pair))


def _unknown_range(loop: ir.Operation, roots: list[Any]) -> str | None:
    """Why the ranges of `roots` cannot be computed before `loop`; None if they can."""
    for root in roots:
        kind = root.type
        if memory.element_bits(kind.element_type) is None or not is_strided(kind):
            return f"the bytes of a memref of type {kind} are not known"
        if defining_op(root) is None and uniformity.varies(root):
            return "an argument may be another memref for each thread"
        if _is_made_in(root, loop):
            return f"'{root.owner.operation.name}' is in the loop, expected it before"
    return None


def _is_made_in(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether an op in `loop` makes `value`."""
    maker = defining_op(value)
    return maker is not None and is_inside(maker, loop)


def _version(
    loop: ir.Operation, pairs: list[tuple[Any, Any]], buffers: list[Any]
) -> None:
    """Make two of `loop`: one for where no two memrefs of a pair overlap.

    buffers: of which it gets some of its own, so that they can have slots
    """
    kinds = [result.type for result in loop.results]

    def version(promise: bool) -> list[Any]:
        copy = edit.clone(loop, {})
        copy.attributes[NOALIAS] = ir.BoolAttr.get(promise)
        for buffer in buffers if promise else ():
            give_own_buffer(buffer, copy)
        return list(copy.results)

    with loop.location, ir.InsertionPoint(_outermost(loop, _members(pairs))):
        apart = _all_apart(pairs)
    with loop.location, ir.InsertionPoint(loop):
        results = build.branch(
            apart, lambda: version(True), lambda: version(False), kinds
        )
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _outermost(loop: ir.Operation, roots: list[Any]) -> Any:
    """The outermost loop around `loop` that makes none of `roots`; perhaps itself."""
    for outer in around(loop):
        if not is_loop(outer) or any(_is_made_in(root, outer) for root in roots):
            return loop
        loop = outer
    return loop


def _all_apart(pairs: list[tuple[Any, Any]]) -> Any:
    """Whether no two memrefs of a pair overlap."""
    ranges = {root: _range(root) for root in _members(pairs)}
    return reduce(
        arith.andi, (_are_apart(ranges[one], ranges[other]) for one, other in pairs)
    )


def _range(root: ir.Value) -> tuple[Any, Any]:
    """Address of the first byte of a memref, and that after the last one."""
    kind = root.type
    offset, strides, sizes = _layout(root)
    low = high = offset
    for size, stride in zip(sizes, strides, strict=True):
        extent = build.mul(build.sub(size, 1), stride)
        if follows_shape(kind):
            high = build.add(high, extent)
        else:  # a stride may be negative
            low = build.add(low, build.least(extent, 0))
            high = build.add(high, build.most(extent, 0))
    start = memref.extract_aligned_pointer_as_index(root)
    size = _stored_bytes(kind)
    return (
        build.add(start, build.mul(build.value(low), size)),
        build.add(start, build.mul(build.add(high, 1), size)),
    )


def _layout(root: ir.Value) -> tuple[Any, list[Any], list[Any]]:
    """Offset, strides and sizes of a memref in elements: values, or ints if static."""
    rank = root.type.rank
    _, offset, *rest = memref.extract_strided_metadata(root)
    return offset, rest[rank:], rest[:rank]


def _stored_bytes(kind: ir.Type) -> int:
    """Bytes from one element to the next: a power of two, as LLVM stores scalars."""
    bits = memory.element_bits(kind.element_type)
    assert bits is not None, kind
    return 1 << max(0, (bits - 1).bit_length() - 3)


def _are_apart(one: tuple[Any, Any], other: tuple[Any, Any]) -> Any:
    """Whether two ranges of addresses have no byte in common."""
    below = [
        arith.cmpi(arith.CmpIPredicate.ule, end, begin)
        for (_, end), (begin, _) in ((one, other), (other, one))
    ]
    return arith.ori(*below)
