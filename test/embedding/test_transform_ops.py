"""The ops of alcop_transform: what they run and refuse, what handles they keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import alcop_mlir
from alcop_mlir.bindings import ir, make_context, transform
from alcop_mlir.dialects import transform_ops
from alcop_mlir.errors import PassError
from alcop_mlir.passes.base import Pass
from alcop_mlir.pipelines.registry import PASSES
from scripts import kernel, op, parse_script, run_script

OPTIONS = "stages = [3, 1], assume_noalias_args"
ANNOTATE = 'transform.annotate {} "done" : !transform.any_op'
FIND_LOOP = (
    '%loop = transform.structured.match ops{["scf.for"]} in %f\n'
    "  : (!transform.any_op) -> !transform.any_op\n"
)


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    """A context of the caller's, current, that knows our dialects."""
    context = make_context()
    alcop_mlir.register(context)
    with context, ir.Location.unknown():
        yield context


def test_pipeline_runs_from_plan_to_waits() -> None:
    """The handle that it returns is for the same function."""
    text = run_script(f"%g = {op('pipeline', '%f', OPTIONS)}\n{ANNOTATE.format('%g')}")
    assert "memref<3x64x32xf16" in text
    assert "nvgpu.device_async_wait" in text
    assert "attributes {done}" in text


def test_single_passes_do_the_same_as_pipeline() -> None:
    """Each takes the handle that the one before gave."""
    names = ["plan_pipelines", "multi_buffer", "expand_pipelines", "place_waits"]
    lines, handle = [], "%f"
    for number, name in enumerate(names):
        options = OPTIONS if number == 0 else ""
        lines.append(f"%h{number} = {op(name, handle, options)}")
        handle = f"%h{number}"
    single = run_script("\n".join(lines)).partition("transform.named_sequence")
    whole = run_script(f"%g = {op('pipeline', '%f', OPTIONS)}")
    assert function_of("".join(single)) == function_of(whole)


def test_every_op_runs_passes_that_there_are() -> None:
    assert {name for names in transform_ops.OPS.values() for name in names} <= {*PASSES}
    for name in transform_ops.OPS:
        run_script(f"%g = {op(name, '%f')}\n{ANNOTATE.format('%g')}")


def test_handles_of_a_kind_keep_their_kind() -> None:
    kind = '!transform.op<"func.func">'
    text = run_script(
        f"%t = transform.cast %f : !transform.any_op to {kind}\n"
        f'%g = "alcop_transform.pipeline"(%t) {{{OPTIONS}}} : ({kind}) -> {kind}'
    )
    assert "memref<3x64x32xf16" in text


def test_planning_keeps_handles() -> None:
    """Of the function and of what is in it: it only annotates."""
    text = run_script(
        f"{FIND_LOOP}%g = {op('plan_pipelines', '%f', OPTIONS)}\n"
        f"{ANNOTATE.format('%loop')}\n{ANNOTATE.format('%f')}"
    )
    assert "rings = [{slots = 3 : i64}]" in text
    assert "}>, done" in text


@pytest.mark.parametrize("handle", ["%f", "%loop"])
def test_others_consume_the_handle_and_those_inside(handle: str) -> None:
    with pytest.raises(ir.MLIRError, match="uses a handle invalidated"):
        run_script(
            f"{FIND_LOOP}%g = {op('pipeline', '%f', OPTIONS)}\n"
            f"{ANNOTATE.format(handle)}"
        )


def test_handles_consumed_again_and_again() -> None:
    """Stale handles to erased ops are harmless as long as nothing uses them."""
    lines = [FIND_LOOP.strip(), f"%g0 = {op('pipeline', '%f', OPTIONS)}"]
    lines += [f"%g{n + 1} = {op('swizzle_shared', f'%g{n}')}" for n in range(20)]
    assert "memref<3x64x32xf16" in run_script("\n".join(lines))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            op("pipeline", "%f", "stages = [300, 1]"),
            "'alcop_transform.pipeline' op pass 'alcop-plan-pipelines': stages is 300",
        ),
        (
            op("multi_buffer", "%f", "stages = [3, 1]"),
            "pass 'alcop-multi-buffer' has no option 'stages', it takes none",
        ),
        (
            op("plan_pipelines", "%f", "stages = 3.5"),
            "option 'stages' is '3.5', expected integers separated by commas",
        ),
        (op("plan_pipelines", "%f", 'target = "sm_10"'), "unknown target 'sm_10'"),
        (
            op("multi_buffer", "%f").replace("-> !transform.any_op", "-> i32"),
            "a handle of ops and one result of its type, got !transform.any_op, i32",
        ),
        (
            '"alcop_transform.multi_buffer"() : () -> ()',
            "expects a handle of ops and one result of its type, got none",
        ),
        ('"alcop_transform.nothing"() : () -> ()', "to implement TransformOpInterface"),
    ],
)
def test_a_wrong_script_does_not_parse(call: str, message: str) -> None:
    """The message is at the op in the script."""
    line = call if call.endswith("-> ()") else f"%g = {call}"
    with pytest.raises(ir.MLIRError) as caught:
        parse_script(line)
    assert message in str(caught.value)


def test_dotted_attributes_are_no_options() -> None:
    options = f'{OPTIONS}, my.note = "for me"'
    assert "memref<3x64x32xf16" in run_script(f"%g = {op('pipeline', '%f', options)}")


@pytest.mark.parametrize(
    ("handle", "options", "message"),
    [
        ("%loop", OPTIONS, "runs on 'gpu.launch', or on an op that is isolated from"),
        ("%f", f'{OPTIONS}, report = "/no/such/file"', "cannot write the report"),
    ],
)
def test_what_cannot_be_done_fails_silenceably(
    handle: str, options: str, message: str
) -> None:
    """With the reason, at the payload; `transform.alternatives` goes on."""
    with pytest.raises(ir.MLIRError) as caught:
        run_script(f"{FIND_LOOP}%g = {op('pipeline', handle, options)}")
    assert message in str(caught.value)
    assert "silenceable failure" in str(caught.value)
    text = run_script(
        f"""transform.alternatives %f : !transform.any_op {{
        ^bb0(%a: !transform.any_op):
          {FIND_LOOP.replace("in %f", "in %a")}
          %g = {op("pipeline", handle.replace("%f", "%a"), options)}
          transform.yield
        }}, {{
        ^bb0(%b: !transform.any_op):
          transform.annotate %b "second" : !transform.any_op
          transform.yield
        }}"""
    )
    assert "attributes {second}" in text


def test_a_pass_that_gives_up_fails_silenceably(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its error is diagnosed at the op that it names."""
    give_passes(monkeypatch, lambda op: PassError(op, "no can do"))
    with pytest.raises(ir.MLIRError) as caught:
        run_script(f"%g = {op('pipeline', '%f')}")
    assert "alcop-failing: no can do" in str(caught.value)
    assert "silenceable failure" in str(caught.value)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_defect_of_a_pass_is_a_definite_failure(
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not to be caught by alternatives; the traceback is for who reports it."""
    give_passes(monkeypatch, lambda op: error("oh"))
    with pytest.raises(ir.MLIRError, match="crashed: ") as caught:
        run_script(
            f"""transform.sequence %f : !transform.any_op failures(suppress) {{
            ^bb0(%a: !transform.any_op):
              %g = {op("pipeline", "%a")}
            }}"""
        )
    assert f"{error.__name__}: oh" in str(caught.value)
    assert "in run" in capsys.readouterr().err


def test_scripts_built_in_python() -> None:
    """By upstream's builders, with `create` for our ops, run by the interpreter."""
    payload = ir.Module.parse(kernel())
    script = ir.Module.create()
    script.operation.attributes["transform.with_named_sequence"] = ir.UnitAttr.get()
    any_op = transform.AnyOpType.get()
    with ir.InsertionPoint(script.body):
        sequence = transform.NamedSequenceOp("main", [any_op], [])
    with ir.InsertionPoint(sequence.body):
        transform_ops.create(
            "pipeline", sequence.bodyTarget, stages=[3, 1], assume_noalias_args=True
        )
        transform.YieldOp([])
    transform.interpreter.apply_named_sequence(payload, sequence, script)
    assert "memref<3x64x32xf16" in str(payload)


def give_passes(monkeypatch: pytest.MonkeyPatch, raised: Any) -> None:
    """Let each op run a pass that raises what `raised` makes."""

    @dataclass(frozen=True)
    class Failing(Pass):
        """Fail."""

        name = "alcop-failing"

        def run(self, op: Any) -> None:
            raise raised(op)

    find = staticmethod(lambda name: Failing)
    monkeypatch.setattr(transform_ops.AlcopTransform, "find_pass", find)


def function_of(text: str) -> str:
    """The kernel without the script."""
    start = text.index("  func.func")
    return text[start:]
