"""The alcop dialect belongs to a context: when it may be loaded, and what it holds."""

from __future__ import annotations

import pytest

from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError

MARKED = "func.func private @f() attributes {{a = #alcop.pipeline<{}>}}"


def parse(text: str) -> object:
    return ir.Module.parse(MARKED.format(text))


def test_a_context_does_not_know_it_by_itself() -> None:
    with make_context(), pytest.raises(ir.MLIRError, match="alcop"):
        parse("{}")


def test_loading_again_is_harmless() -> None:
    with make_context():
        alcop.load()
        alcop.load()
        assert "#alcop.pipeline<{shared = 3 : i64}>" in str(parse("{shared = 3}"))


def test_every_context_loads_its_own() -> None:
    first, second = make_context(), make_context()
    for context in (first, second, first):
        with context:
            alcop.load()
            parse("{}")


def test_in_a_context_that_took_it_for_unregistered() -> None:
    with make_context(allow_unregistered=True) as context:
        assert "alcop.made_up" in str(ir.Module.parse('"alcop.made_up"() : () -> ()'))
        alcop.load()
        context.allow_unregistered_dialects = False
        parse("{}")


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"stages": 3, "carried": True, "level": "shared"},
        {"block": [128, 128, 32], "nested": {"a": [1, 2], "b": 0.5}},
    ],
)
def test_parameters_come_back_as_python_values(parameters: dict[str, object]) -> None:
    with make_context(), ir.Location.unknown():
        alcop.load()
        op = ir.Module.create().operation
        assert alcop.get(op, alcop.ScheduleAttr) is None
        alcop.put(op, alcop.ScheduleAttr, parameters)
        assert alcop.get(op, alcop.ScheduleAttr) == parameters
        assert alcop.get(op, alcop.PipelineAttr) is None
        again = ir.Operation.parse(str(op))
        assert alcop.take(again, alcop.ScheduleAttr) == parameters
        assert alcop.take(again, alcop.ScheduleAttr) is None


def test_another_attribute_of_that_name_is_an_error() -> None:
    with make_context(), ir.Location.unknown():
        alcop.load()
        op = ir.Module.create().operation
        op.attributes["alcop.schedule"] = ir.StringAttr.get("x")
        with pytest.raises(PassError, match=r"'alcop.schedule' is \"x\", expected #"):
            alcop.get(op, alcop.ScheduleAttr)
