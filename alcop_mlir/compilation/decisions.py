"""What the passes decided for each kernel: its schedule, and what they pipelined.

Later passes erase the attributes that hold these decisions, so `Recorder` reads them
before and after the planning pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.memory import is_workgroup, root
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.bound_plans import pipelined_ops
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.instrument import Instrument, RunningStep
from alcop_mlir.reference.from_linalg.computation import argument_name
from alcop_mlir.runtime.manifest import PipelinedBuffer, intermediate_name
from alcop_mlir.schedule import Schedule
from alcop_mlir.transforms.tiling.thread_points import KERNEL

_PLANNING = "alcop-plan-pipelines"


@dataclass(frozen=True)
class Decision:
    """What was decided for one kernel; `schedule` is None where none was needed.

    simt: whether it is a SIMT fallback, for what tensor cores do not compute
    """

    schedule: Schedule | None
    pipelines: tuple[PipelinedBuffer, ...]
    simt: bool = False


@dataclass
class Recorder(Instrument):
    """Collects the decisions for each function's launches, in order, by its name."""

    found: dict[str, list[Decision]] = field(default_factory=dict)

    @contextmanager
    def around(self, step: RunningStep, op: Any) -> Iterator[None]:
        """Read the schedules before planning erases them, then the plan it writes."""
        if step.name != _PLANNING:
            yield
            return
        launches = _launches(op)
        schedules = [alcop.get(launch, alcop.ScheduleAttr) for launch in launches]
        yield
        name = ir.StringAttr(op.attributes["sym_name"]).value
        self.found[name] = [
            Decision(
                None if schedule is None else Schedule.from_dict(schedule),
                tuple(_pipelines(launch, _intermediates(op))),
                simt=schedule is None and KERNEL in launch.attributes,
            )
            for launch, schedule in zip(launches, schedules, strict=True)
        ]


def _launches(func: Any) -> list[Any]:
    return walk(func, "gpu.launch")


def _intermediates(func: Any) -> list[Any]:
    """The buffers that the function allocates, in the order of their numbers."""
    (block,) = func.regions[0].blocks
    return [
        op.operation.results[0]
        for op in block.operations
        if op.operation.name == "memref.alloc"
        and not is_workgroup(op.operation.results[0].type)
    ]


def _pipelines(launch: Any, intermediates: list[Any]) -> Iterator[PipelinedBuffer]:
    """One per pipelined copy, in the order of the program."""
    origins: dict[Any, str] = {}
    for copy, level, stages in pipelined_ops(launch):
        source = root(copy.operands[0])
        origin = _buffer_name(source, intermediates)
        if origin is None:  # read from a buffer that another copy fills
            origin = origins.get(source, "")
        else:
            origins[root(copy.operands[1])] = origin
        yield PipelinedBuffer(_label(copy, origin), level, stages)


def _buffer_name(source: Any, intermediates: list[Any]) -> str | None:
    if source in intermediates:
        return intermediate_name(intermediates.index(source))
    if defining_op(source) is None:
        return argument_name(ir.BlockArgument(source).arg_number)
    return None


def _label(copy: Any, origin: str) -> str:
    """The buffer as `arg0 128x32xf16`: where its contents come from, and its type."""
    kind = copy.results[0].type if len(copy.results) else copy.operands[1].type
    sizes = "x".join(str(size) for size in (*kind.shape, kind.element_type))
    return f"{origin} {sizes}".strip()
