"""The ops of a host function as data: launches, in variants where it branches; checks.

An `scf.if` whose condition is a conjunction that `HostValues.guard` reads is a launch
with variants, nested ones too: `if a { k0 ; if b { k1 } } else { k2 }` becomes

    guard a, b: k0, k1      guard a: k0      otherwise: k2

of which the first runs whose guard holds. What is always or never true is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.host.host_values import HostValues
from alcop_mlir.analysis.host.tensor_maps import tensor_map
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import is_repeatable
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.kernels import (
    Aligned,
    AtMost,
    Condition,
    Divisible,
    Kernel,
    Launch,
    PipelinedBuffer,
    Variant,
    unguarded,
)
from alcop_mlir.schedule import Schedule

CHOICE = "scf.if"
_LAUNCH = "gpu.launch_func"
_ASSERT = "cf.assert"
_MOST_VARIANTS = 64  # of a launch; branches in a row inside of a branch multiply
# Besides ops without effects; memory is the launcher's.
_NEEDS_NO_DEVICE = (
    "func.return",
    "memref.alloc",
    "memref.dealloc",
    "scf.yield",
    "nvgpu.tma.create.descriptor",
)


@frozen
class NotCompiled:
    """An op or function that would have to run on the host, and why."""

    op: Any
    reason: str


@frozen
class HostCode:
    """What some ops of a host function do, in order.

    checks:    that hold for all sizes are left out
    obstacles: what cannot be stored
    """

    launches: tuple[Launch, ...]
    checks: tuple[AtMost, ...]
    obstacles: tuple[NotCompiled, ...]


def read(block: ir.Block, values: HostValues) -> HostCode:
    """What the ops of a block do."""
    effects = [one for op in block.operations for one in _effects(op.operation, values)]
    checks = (one for one in effects if isinstance(one, AtMost))
    return HostCode(
        tuple(one for one in effects if isinstance(one, Launch)),
        tuple(one for one in dict.fromkeys(checks) if _is_true(one) is not True),
        tuple(one for one in effects if isinstance(one, NotCompiled)),
    )


def _effects(
    op: ir.Operation, values: HostValues
) -> Iterator[Launch | AtMost | NotCompiled]:
    """What an op of the host function does; nothing where it computes a value."""
    if op.name == _LAUNCH:
        kernel = _kernel(op.opview, values)
        yield unguarded(kernel) if isinstance(kernel, Kernel) else kernel
    elif op.name == _ASSERT:
        orders = values.asserted(op.operands[0])
        if orders is None:
            reason = "asserts something else than orders of sizes of arguments"
            yield NotCompiled(op, reason)
        else:
            yield from orders
    elif op.name == CHOICE:
        yield from _choice(op, values)
    elif op.name not in _NEEDS_NO_DEVICE and not is_repeatable(op):
        yield NotCompiled(op, f"'{op.name}' was not compiled to a kernel")


def _choice(op: ir.Operation, values: HostValues) -> Iterator[Launch | NotCompiled]:
    """The launch that an `scf.if` is, or what stands in the way."""
    guard = values.guard(op.operands[0])
    if isinstance(guard, Rejected):
        yield NotCompiled(guard.op, guard.reason)
    if len(op.results):
        yield NotCompiled(op, "chooses a value, expected launches only")
    codes = [read(block, values) for part in op.regions for block in part.blocks]
    for code in codes:
        yield from code.obstacles
    if isinstance(guard, Rejected):
        return
    then, *other = map(_ways, codes)
    ways = [replace(way, guard=(*guard, *way.guard)) for way in then]
    ways += other[0] if other else [Variant(())]
    if len(ways) > _MOST_VARIANTS:
        why = f"is {len(ways)} sequences of kernels, expected {_MOST_VARIANTS} at most"
        yield NotCompiled(op, why)
    elif any(way.kernels or way.checks for way in ways):
        yield Launch(tuple(_possible(ways)))


def _ways(code: HostCode) -> list[Variant]:
    """The sequences of kernels that launches in a row are, the first ones first."""
    ways = [Variant((), (), code.checks)]
    for launch in code.launches:
        ways = [
            Variant(
                (*way.kernels, *one.kernels),
                (*way.guard, *one.guard),
                (*way.checks, *one.checks),
            )
            for way in ways
            for one in launch.variants
        ]
    return ways


def _possible(ways: Iterable[Variant]) -> Iterator[Variant]:
    """Those that run for some sizes, up to the first that runs for all."""
    for way in ways:
        truths = {one: _is_true(one) for one in way.guard}
        if False in truths.values():
            continue
        guard = tuple(one for one, truth in truths.items() if truth is None)
        yield replace(way, guard=guard)
        if not guard:
            return


def _is_true(condition: Condition) -> bool | None:
    """Whether it is true of all sizes; None where that depends on them."""
    if isinstance(condition, AtMost):
        room = (condition.most - condition.least).known
        return None if room is None else room >= 0
    if isinstance(condition, Aligned):
        return None
    assert isinstance(condition, Divisible), condition
    coefficients = [number for number, _ in condition.value.terms]
    if all(number % condition.by == 0 for number in coefficients):
        return True
    return None if condition.value.known is None else False


def _kernel(op: Any, values: HostValues) -> Kernel | NotCompiled:
    grid = [values.blocks(v) for v in (op.gridSizeX, op.gridSizeY, op.gridSizeZ)]
    shared = op.dynamicSharedMemorySize
    sizes = [
        *(constant(v) for v in (op.blockSizeX, op.blockSizeY, op.blockSizeZ)),
        0 if shared is None else constant(shared),
    ]
    arguments = [
        values.argument(value) or tensor_map(value, values)
        for value in op.kernelOperands
    ]
    if None in grid or None in sizes or None in arguments:
        return NotCompiled(
            op.operation,
            "expected a launch whose sizes are constants or sizes of arguments, and "
            "whose operands are memrefs of the function, or their sizes or strides",
        )
    module, kernel = ir.SymbolRefAttr(op.operation.attributes["kernel"]).value
    x, y, z = (part for part in grid if part is not None)
    known = [number for number in sizes if number is not None]
    return _with_decisions(
        op,
        Kernel(
            name=kernel,
            module=module,
            arguments=tuple(one for one in arguments if one is not None),
            grid=(x, y, z),
            block=(known[0], known[1], known[2]),
            shared_bytes=known[3],
        ),
    )


def _with_decisions(op: ir.Operation, kernel: Kernel) -> Kernel | NotCompiled:
    """`kernel` with what was decided for its launch, if that is as we write it."""
    decided = alcop.get_plain(op, alcop.DECISIONS)
    if decided is None:
        return kernel
    try:
        schedule = decided.get("schedule")
        return replace(
            kernel,
            schedule=None if schedule is None else Schedule.from_dict(schedule),
            schedule_source=decided.get("schedule_source"),
            pipelines=tuple(PipelinedBuffer(**o) for o in decided.get("pipelines", ())),
            fallback=decided.get("fallback"),
        )
    except (AttributeError, TypeError, ConfigError):  # other programs wrote it
        return NotCompiled(op.operation, f"'{alcop.DECISIONS}' is {decided}")
