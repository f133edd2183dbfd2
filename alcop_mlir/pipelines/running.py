"""Built pipelines: walks the anchors, runs the passes, turns failures into errors.

Each pass has a C++ pass manager of its own, so that verification and IR dumps are
MLIR's; the walk over anchors is done here. C++ could nest only its own passes: nested
Python passes would need pass managers that run inside others, which muddles dumps and
timing. A pass manager costs microseconds, and analyses are not kept between passes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from alcop_mlir import diagnostics, files
from alcop_mlir.bindings import ir
from alcop_mlir.diagnostics import Diagnostic
from alcop_mlir.errors import AlcopError, ConfigError, PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.pipelines.instrument import Instrument
from alcop_mlir.pipelines.pipeline_text import Element

REPRODUCER = "repro.mlir"


class PassFailure(AlcopError):
    """A pass gave up, or left IR that does not verify; `diagnostics` say where and why.

    The IR is left as the pass left it.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], why: str = ""):
        self.diagnostics = tuple(diagnostics)
        lines = [*map(str, self.diagnostics), why]
        super().__init__("\n".join(filter(None, lines)))


class PassCrash(PassFailure):
    """A defect of a Python pass: an unforeseen exception, or IR that does not verify.

    `why` says what happened and how to run it again; an exception is the `__cause__`.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], why: str):
        super().__init__(diagnostics, why)
        self.why = why


@frozen
class BuiltPipeline:
    """A built pipeline; runs any number of times, in the context it was built in."""

    root: Anchor
    instruments: tuple[Instrument, ...]
    command: str

    def run(self, op: ir.Operation) -> None:
        """Run on `op`; see `run_pipeline`."""
        op = op.operation
        if self.root.anchor not in ("any", op.name):
            raise ConfigError(
                f"the pipeline runs on '{self.root.anchor}', got a '{op.name}'"
            )
        self._run_steps(self.root, op, _Run(op, self.command))

    def _run_steps(self, anchor: Anchor, op: ir.Operation, run: _Run) -> None:
        for step in anchor.steps:
            with ExitStack() as stack:
                try:
                    for instrument in self.instruments:
                        stack.enter_context(instrument.around(step, op))
                    if isinstance(step, PassStep):
                        step.run(op, run)
                    else:
                        for child in _children(op, step.anchor):
                            self._run_steps(step, child, run)
                    stack.close()
                except PassError as error:  # an instrument's
                    said = f"after {step.name}: {error}"
                    found = diagnostics.at(error.location, "error", said)
                    raise PassFailure([found]) from error


@frozen(eq=False)
class Anchor:
    """Runs its steps on every op called `anchor` just below."""

    anchor: str
    steps: tuple[Anchor | PassStep, ...]
    is_pass: bool = False

    @property
    def name(self) -> str:
        return f"'{self.anchor}' Pipeline"


@frozen
class _Run:
    """One run of a pipeline: what a crash needs to be reproduced."""

    root: Any
    command: str


@frozen(eq=False)
class PassStep:
    """One pass in a pass manager of its own; `guard` where it is a Python pass."""

    name: str
    element: Element
    path: tuple[str, ...]
    manager: Any
    guard: Guard | None
    is_pass: bool = True

    def run(self, op: Any, run: _Run) -> None:
        """Run on `op`; PassFailure, PassCrash, or the AlcopError that it raised."""
        # In text only if needed: a clone is much cheaper. Of `op` alone: the other ops
        # of the root stay what they are, and there may be hundreds.
        before = op.clone(ip=False) if self.guard else None
        try:
            self.manager.run(op)
            return
        except ir.MLIRError as error:
            found = [diagnostics.from_mlir(d) for d in error.error_diagnostics]
        raised, failed = self.guard.take() if self.guard else (None, True)
        if raised is None and failed:
            raise PassFailure(found, "" if found else f"pass '{self.name}' failed")
        if isinstance(raised, AlcopError) or not isinstance(raised, Exception | None):
            raise raised  # meant for the user, or KeyboardInterrupt
        if isinstance(raised, ir.MLIRError):
            said = getattr(raised, "error_diagnostics", ())
            found += map(diagnostics.from_mlir, said)
        text = "" if before is None else _whole(run.root, op, before)
        raise PassCrash(found, self._reproduce(raised, text, run)) from raised

    def _reproduce(self, raised: Exception | None, before: str, run: _Run) -> str:
        """Write the IR before the pass; say what happened and how to run it again."""
        if raised is None:
            happened = f"pass '{self.name}' left IR that does not verify"
        else:
            message = str(raised).split("\n", 1)[0]
            happened = f"pass '{self.name}' crashed: {type(raised).__name__}: {message}"
        pipeline = self.element.text
        for anchor in reversed(self.path):
            pipeline = f"{anchor}({pipeline})"
        try:
            files.write_whole(Path(REPRODUCER), f"{before}\n")
        except ConfigError as error:
            return f"{happened}; {error}"
        line = f"{run.command} {REPRODUCER} --pass-pipeline={shlex.quote(pipeline)}"
        where = f"the IR before it is in {REPRODUCER}; to run it again:"
        return f"{happened}\n{where}\n{line}"


class Guard:
    """Calls a Python pass for C++, and keeps the exception that it raises.

    An exception must not unwind through C++ frames, which may not support it.
    """

    def __init__(self, instance: Pass):
        self._instance = instance
        self._handle: Any = None
        self._raised: BaseException | None = None
        self._failed = False

    def __call__(self, op: ir.Operation, handle: Any) -> None:
        self._handle = handle
        try:
            self._instance(op, self)
        except BaseException as error:  # kept for `take`
            self._raised = error
            self.signal_pass_failure()

    def signal_pass_failure(self) -> None:
        """The handle that the pass is given is this object, to see that it failed."""
        self._failed = True
        self._handle.signal_pass_failure()

    def take(self) -> tuple[BaseException | None, bool]:
        """What the last run raised, and whether the pass failed; forgets both."""
        taken = self._raised, self._failed
        self._raised, self._failed = None, False
        return taken


def _whole(root: Any, op: Any, before: Any) -> str:
    """The text of `root` with `before` instead of `op`."""
    if op == root:
        return str(before)
    place, path = op, []
    while place != root:
        parent = place.parent.operation
        path.append(_below(parent).index(place))
        place = parent
    copy = place = root.clone(ip=False)
    for number in reversed(path):
        place = _below(place)[number]
    before.clone(ip=ir.InsertionPoint(place))
    place.erase()
    return str(copy)


def _below(op: ir.Operation) -> list[Any]:
    """The ops just below `op`."""
    blocks = [block for region in op.regions for block in region.blocks]
    return [child.operation for block in blocks for child in block.operations]


def _children(op: ir.Operation, anchor: str) -> list[Any]:
    """Ops just below `op` that a pipeline on `anchor` runs on."""
    return [
        child
        for child in _below(op)
        if child.name == anchor
        or (anchor == "any" and child.has_trait(ir.IsIsolatedFromAboveTrait))
    ]
