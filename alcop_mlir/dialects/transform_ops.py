"""The `alcop_transform` dialect: our passes as ops of a transform script.

    %piped = "alcop_transform.pipeline"(%kernels) {stages = [3, 2], target = "sm_80"}
        : (!transform.any_op) -> !transform.any_op

An op runs the pass of its name on each payload op, a `gpu.launch` or one that is
isolated from above, as `gpu.func`, `func.func` or a module; `pipeline` runs those from
planning to waits. Attributes are the options of the (first) pass, with `_` for `-`; a
wrong one is an error where the script is parsed.

The result is a handle for the same payload ops. The operand is consumed, as ops inside
of them are rewritten, except by `plan_pipelines`, which only annotates. Where a pass
fails, an error at the payload is emitted and the op fails silenceably; a defect of a
pass is a definite failure.

The passes are given to `load`: dialects do not depend on transforms. This file must not
postpone annotations: the base classes of a dialect read them.
"""

# Type checkers cannot follow what a dialect's base classes do with class statements.
# pyright: reportGeneralTypeIssues=false, reportCallIssue=false
# pyright: reportInvalidTypeForm=false, reportAttributeAccessIssue=false

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ext, ir, transform
from alcop_mlir.dialects.values import from_attribute, to_attribute
from alcop_mlir.errors import ConfigError

# The passes that each op runs.
OPS = {
    "plan_pipelines": ("alcop-plan-pipelines",),
    "multi_buffer": ("alcop-multi-buffer",),
    "expand_pipelines": ("alcop-expand-pipelines",),
    "place_waits": ("alcop-place-waits",),
    "pipeline": (
        "alcop-plan-pipelines",
        "alcop-multi-buffer",
        "alcop-expand-pipelines",
        "alcop-place-waits",
    ),
    "distribute_copies": ("alcop-distribute-copies",),
    "lower_mma": ("alcop-lower-mma",),
    "swizzle_shared": ("alcop-swizzle-shared",),
    "unroll_steady_state": ("alcop-unroll-steady-state",),
}
_ONLY_ANNOTATES = ("plan_pipelines",)
_Result = transform.DiagnosedSilenceableFailure


class AlcopTransform(ext.Dialect, name="alcop_transform"):
    """The dialect; `load()` makes it known to the current context."""

    # Finds the class of a pass by name; given to `load`, the same in every context.
    find_pass: Callable[[str], Any]


def load(find_pass: Callable[[str], Any]) -> None:
    """Make the dialect known to the current context; again is harmless.

    `find_pass` returns the class (a `passes.base.Pass`) of a pass by its name.
    """
    AlcopTransform.find_pass = staticmethod(find_pass)
    try:
        AlcopTransform.load()
    except ext.DialectAlreadyLoadedError:
        return
    for op in AlcopTransform.operations:
        _Transform.attach(op.OPERATION_NAME)
        _Effects.attach(op.OPERATION_NAME)


def create(name: str, handle: ir.Value, **options: Any) -> Any:
    """The op `name` at the insertion point, for scripts built in Python; its handle.

    An option is a Python value: `create("pipeline", kernels, stages=[3, 2])`.
    """
    attributes = {key: to_attribute(value) for key, value in options.items()}
    return ir.Operation.create(
        f"alcop_transform.{name}",
        results=[handle.type],
        operands=[handle],
        attributes=attributes,
    ).result


class _PassOp(AlcopTransform.Operation):
    """Base of all ops."""

    payload: ext.Operand[Any]
    transformed: ext.Result[Any]

    def verify_invariants(self) -> bool:
        """Called before the dialect's own checks: operands and types may be wrong."""
        why = _wrong_types(self) or _wrong_options(self)
        if why:
            self.operation.location.emit_error(f"'{self.operation.name}' op {why}")
        return not why


def _define(op_name: str) -> None:
    class Op(_PassOp, name=op_name):
        """One of `OPS`; the dialect keeps it."""


for _name in OPS:
    _define(_name)


class _Transform(transform.TransformOpInterface):
    """How the interpreter runs an op."""

    @staticmethod
    def apply(op: ir.Operation, rewriter: Any, results: Any, state: Any) -> Any:
        """Run the passes; what they raise must not unwind through C++ frames."""
        payload = [found.operation for found in state.get_payload_ops(op.operands[0])]
        for found in payload:
            outcome = _run(op, found)
            if outcome != _Result.Success:
                return outcome
        results.set_ops(op.results[0], payload)
        return _Result.Success

    @staticmethod
    def allow_repeated_handle_operands(op: ir.Operation) -> bool:
        return False


class _Effects(ir.MemoryEffectsOpInterface):
    """Which handles an op consumes."""

    @staticmethod
    def get_effects(op: ir.Operation, effects: Any = None) -> Any:
        """Newer bindings read the list that is returned, older ones pass one."""
        only_reads = _own_name(op) in _ONLY_ANNOTATES
        on_operands = (
            transform.only_reads_handle if only_reads else transform.consumes_handle
        )
        asked: list[tuple[Any, ...]] = [(transform.modifies_payload,)]
        # Called before the op is verified; the helpers crash on empty lists.
        if len(op.operands):
            asked.append((on_operands, op.op_operands))
        if len(op.results):
            asked.append((transform.produces_handle, op.results))
        if effects is None:
            return [effect for helper, *on in asked for effect in helper(*on)]
        for helper, *on in asked:
            helper(*on, effects)
        return None


@dataclass
class _Handle:
    """The handle by which a pass signals that it failed."""

    failed: bool = False

    def signal_pass_failure(self) -> None:
        self.failed = True


def _run(op: ir.Operation, payload: Any) -> Any:
    """Run the passes of `op` on one payload op; the outcome."""
    name = op.operation.name
    if not _stands_alone(payload):
        payload.location.emit_error(
            f"{name} runs on 'gpu.launch', or on an op that is isolated from above, "
            f"not on '{payload.name}'"
        )
        return _Result.SilenceableFailure
    handle = _Handle()
    try:
        for one in _passes(op):
            if not handle.failed:
                one(payload, handle)
    except ConfigError as error:
        payload.location.emit_error(f"{name}: {error}")
        return _Result.SilenceableFailure
    except BaseException as error:  # a defect, or KeyboardInterrupt
        traceback.print_exception(error)
        payload.location.emit_error(f"{name} crashed: {type(error).__name__}: {error}")
        return _Result.DefiniteFailure
    return _Result.SilenceableFailure if handle.failed else _Result.Success


def _stands_alone(payload: Any) -> bool:
    """Whether no pass replaces the op itself, which would leave handles dangling."""
    return payload.name == "gpu.launch" or payload.has_trait(
        ir.IsIsolatedFromAboveTrait
    )


def _passes(op: ir.Operation) -> Iterator[Any]:
    """The passes of `op`; the first gets the options. ConfigError on a wrong one."""
    first, *others = map(AlcopTransform.find_pass, OPS[_own_name(op)])
    yield first.from_text(dict(_options(op)))
    for other in others:
        yield other()


def _options(op: ir.Operation) -> Iterator[tuple[str, str]]:
    """The options as in a pipeline string; dotted attributes are not ours."""
    for name, attribute in op.operation.attributes.items():
        if "." not in name:
            yield name.replace("_", "-"), _text(from_attribute(attribute))


def _text(value: ir.Value) -> str:
    if isinstance(value, ir.UnitAttr):
        return "true"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value)


def _wrong_types(op: ir.Operation) -> str:
    types = [value.type for value in (*op.operands, *op.results)]
    handles = transform.AnyOpType | transform.OperationType
    if len(op.operands) == len(op.results) == 1 and types[0] == types[1]:
        if isinstance(types[0].maybe_downcast(), handles):
            return ""
    got = ", ".join(map(str, types)) or "none"
    return f"expects a handle of ops and one result of its type, got {got}"


def _wrong_options(op: ir.Operation) -> str:
    try:
        next(_passes(op))
    except ConfigError as error:
        return str(error)
    return ""


def _own_name(op: ir.Operation) -> str:
    return op.operation.name.removeprefix("alcop_transform.")
