"""Pipelines run on a module that the caller owns: results, failures, instruments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.errors import CompileError, ConfigError, PassError
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.pipelines import upstream
from alcop_mlir.pipelines.driver import PassCrash, PassFailure, run_pipeline
from alcop_mlir.pipelines.instrument import Instrument, RunningStep, StepTimes
from alcop_mlir.pipelines.named import NAMED_PIPELINES

TWO_FUNCTIONS = """
func.func @f() -> i32 {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
func.func private @g()
"""


@dataclass(frozen=True)
class Mark(Pass):
    name = "test-mark"
    anchor = "func.func"

    label: str = option("seen", "the mark")

    def run(self, op: Any) -> None:
        op.attributes["test.mark"] = ir.StringAttr.get(self.label)


@dataclass(frozen=True)
class Raise(Pass):
    name = "test-raise"

    def run(self, op: Any) -> None:
        op.attributes["half.done"] = ir.UnitAttr.get()
        raise RAISED[-1]


@dataclass(frozen=True)
class EmitBadIR(Pass):
    """Builds an op that does not verify: MLIR raises within the pass."""

    name = "test-emit"

    def run(self, op: Any) -> None:
        ir.Module.parse("func.func @f() -> i32 { return }")


RAISED: list[BaseException] = []
PASSES = (Mark, Raise, EmitBadIR)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two functions; reproducers go to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    with make_context():
        yield ir.Module.parse(TWO_FUNCTIONS)


def test_the_callers_module_is_changed_in_place(module: Any) -> None:
    run_pipeline(
        module,
        "builtin.module(func.func(canonicalize,test-mark{label=x}))",
        passes=PASSES,
    )
    text = str(module)
    assert text.count('test.mark = "x"') == 2
    assert "arith.addi" not in text


def test_on_an_op_and_without_a_current_context() -> None:
    module = ir.Module.parse(TWO_FUNCTIONS, context=make_context())
    run_pipeline(module.body.operations[0], "func.func(cse,test-mark)", passes=PASSES)
    assert str(module).count("test.mark") == 1
    assert str(module).count("arith.constant") == 1


def test_on_another_op_than_the_anchor(module: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"runs on 'func.func', got a 'builtin.module'"
    ):
        run_pipeline(module, "func.func(cse)")


def test_a_named_pipeline_in_a_string(module: Any) -> None:
    run_pipeline(module, "builtin.module(cse,alcop-compile{target=sm_80})")
    assert "func.func private @g" in str(module)
    with pytest.raises(ConfigError, match=r"'alcop-compile' runs on 'builtin.module'"):
        run_pipeline(module, "builtin.module(func.func(alcop-compile))")


def test_nothing_runs_where_the_text_is_wrong(module: Any) -> None:
    before = str(module)
    with pytest.raises(ConfigError, match="unknown pass 'csee', did you mean 'cse'"):
        run_pipeline(module, "builtin.module(func.func(test-mark),csee)", passes=PASSES)
    assert str(module) == before


@pytest.mark.parametrize("name", ["cse", "alcop-multi-buffer", "alcop-compile"])
def test_a_name_that_is_taken_is_refused(module: Any, name: str) -> None:
    taken = type("Taken", (Pass,), {"name": name})
    with pytest.raises(ConfigError, match=f"pass name '{name}' is taken"):
        run_pipeline(module, "builtin.module()", passes=(taken,))
    with pytest.raises(ConfigError, match="pass name 'test-mark' is taken"):
        run_pipeline(module, "builtin.module()", passes=(Mark, Mark))


def test_a_refusal_carries_its_diagnostic(module: Any) -> None:
    RAISED.append(PassError(module.body.operations[1], "not this one"))
    with pytest.raises(PassFailure, match="test-raise: not this one") as caught:
        run_pipeline(module, "builtin.module(test-raise)", passes=PASSES)
    (found,) = caught.value.diagnostics
    assert (found.severity, found.line, found.column) == ("error", 8, 1)
    assert not isinstance(caught.value, PassCrash)
    assert not Path("repro.mlir").exists()


def test_an_upstream_failure_carries_its_diagnostic(module: Any) -> None:
    text = "builtin.module(func.func(convert-scf-to-cf),gpu-module-to-binary)"
    module.body.append(ir.Operation.parse("gpu.module @k {}"))
    with pytest.raises(PassFailure, match="no target attributes"):
        run_pipeline(module, text)


def test_errors_for_the_user_come_through(module: Any) -> None:
    RAISED.append(CompileError("too many registers"))
    with pytest.raises(CompileError, match="too many registers"):
        run_pipeline(module, "builtin.module(test-raise)", passes=PASSES)
    assert not Path("repro.mlir").exists()


def test_an_interrupt_comes_through(module: Any) -> None:
    RAISED.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(module, "builtin.module(test-raise)", passes=PASSES)


def test_a_crash_leaves_what_to_run_again(module: Any) -> None:
    RAISED.append(ValueError("first line\nsecond"))
    with pytest.raises(
        PassCrash, match="'test-raise' crashed: ValueError: first"
    ) as got:
        run_pipeline(module, "builtin.module(func.func(cse,test-raise))", passes=PASSES)
    assert got.value.__cause__ is RAISED[-1]
    line = (
        "alcop-opt repro.mlir --pass-pipeline='builtin.module(func.func(test-raise))'"
    )
    assert line in str(got.value)
    again = str(ir.Module.parseFile("repro.mlir"))
    assert again.count("arith.constant") == 1, "after the passes before"
    assert "half.done" not in again, "before the pass itself"


def test_a_reproducer_has_the_other_functions_as_they_are(module: Any) -> None:
    first = next(iter(module.body.operations)).operation

    @dataclass(frozen=True)
    class CrashOnSecond(Pass):
        name = "test-crash-on-second"

        def run(self, op: Any) -> None:
            op.attributes["test.mark"] = ir.UnitAttr.get()
            if op != first:
                raise ValueError

    with pytest.raises(PassCrash):
        run_pipeline(
            module,
            "builtin.module(func.func(test-crash-on-second))",
            passes=[CrashOnSecond],
        )
    again = ir.Module.parseFile("repro.mlir").body.operations
    assert ["test.mark" in op.attributes for op in again] == [True, False]


def test_an_error_of_mlir_within_a_pass_is_a_crash_with_its_text(module: Any) -> None:
    with pytest.raises(PassCrash, match="enclosing function") as caught:
        run_pipeline(module, "builtin.module(test-emit)", passes=PASSES)
    assert "test-emit' crashed: MLIRError" in caught.value.why


def test_a_reproducer_that_cannot_be_written(module: Any) -> None:
    Path("repro.mlir").mkdir()
    RAISED.append(ValueError("x"))
    with pytest.raises(PassCrash, match=r"crashed: ValueError: x; cannot write"):
        run_pipeline(module, "builtin.module(test-raise)", passes=PASSES)


@dataclass
class Log(Instrument):
    """Notes what runs on what; refuses after the pass `refuse`."""

    refuse: str = ""
    lines: list[str] = field(default_factory=list)

    @contextmanager
    def around(self, step: RunningStep, op: Any) -> Iterator[None]:
        self.lines.append(f"{step.name} {op.name}")
        yield
        if step.name == self.refuse:
            raise PassError(op, "looks wrong")


def test_instruments_see_every_step(module: Any) -> None:
    log = Log()
    run_pipeline(
        module,
        "builtin.module(cse,func.func(test-mark,cse))",
        passes=PASSES,
        instruments=[log],
    )
    assert log.lines == [
        "cse builtin.module",
        "'func.func' Pipeline builtin.module",
        "test-mark func.func",
        "cse func.func",
        "test-mark func.func",
        "cse func.func",
    ]


def test_an_instrument_may_refuse_what_a_pass_did(module: Any) -> None:
    with pytest.raises(PassFailure, match="2:1: error: after test-mark: looks wrong"):
        run_pipeline(
            module,
            "builtin.module(func.func(test-mark,cse))",
            passes=PASSES,
            instruments=[Log(refuse="test-mark")],
        )
    assert "test.mark" in str(module)


def test_timing_adds_up(module: Any) -> None:
    ticks = iter(range(100))
    timing = StepTimes(clock=lambda: next(ticks))
    with timing.phase("Parser"):
        pass
    run_pipeline(
        module, "builtin.module(func.func(cse),canonicalize)", instruments=[timing]
    )
    rows = timing.table().split("\n")[6:]
    assert [re.sub(r"\(.*?%\)", "", row).rstrip() for row in rows] == [
        "    1.0000   Parser",
        "    5.0000   'func.func' Pipeline",
        "    2.0000     cse",
        "    1.0000   canonicalize",
        "    7.0000   Total",
    ]


def test_what_mlir_prints_about_options_is_in_the_message(
    module: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="'max-iterations': 'x' value invalid"):
        run_pipeline(module, "builtin.module(canonicalize{max-iterations=x})")
    assert capfd.readouterr().err == ""


def test_the_listed_names_are_registered() -> None:
    with make_context():
        assert [name for name in upstream.names() if not upstream.find(name)] == []


def test_remarks_of_a_pass_reach_the_caller(module: Any) -> None:
    @dataclass(frozen=True)
    class Say(Pass):
        name = "test-say"

        def run(self, op: Any) -> None:
            diagnostics.remark(op, "hello")

    with diagnostics.collect() as said:
        run_pipeline(module, "builtin.module(func.func(test-say))", passes=(Say,))
    assert [str(d) for d in said] == ["-:2:1: remark: hello", "-:8:1: remark: hello"]


def test_every_step_of_our_pipelines_is_known(module: Any) -> None:
    for pipeline in NAMED_PIPELINES:
        run_pipeline(ir.Module.parse(""), f"builtin.module({pipeline.name})")
