"""What a pass class says about itself, and how its options are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from alcop_mlir.bindings import ir, make_context, passmanager
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.pipelines.registry import PASSES, Registry


@dataclass(frozen=True)
class Sample(Pass):
    name = "sample"
    anchor = "func.func"

    depth: int = option(2, "how deep")
    label: str = option("", "what to call it")
    is_loud: bool = option(False, "whether it is")
    sizes: tuple[int, ...] = option((1, 2), "how large")

    def run(self, op: Any) -> None:
        if self.is_loud:
            raise PassError(op, "too loud")
        op.attributes["sample"] = ir.StringAttr.get(self.label)
        ir.Type.parse(alcop.GROUP_TYPE)


@dataclass(frozen=True)
class Bare(Pass):
    name = "bare"


def test_a_pass_describes_itself() -> None:
    assert Sample.summary().startswith("What a pass class says about itself")
    assert Sample.contract() == Sample.summary()
    shown = [
        (o.name, o.expected(), o.shown_default(), o.help) for o in Sample.options()
    ]
    assert shown == [
        ("depth", "an integer", "2", "how deep"),
        ("label", "text", "none", "what to call it"),
        ("is-loud", "true or false", "false", "whether it is"),
        ("sizes", "integers separated by commas", "1,2", "how large"),
    ]


def test_options_from_text() -> None:
    given = {"depth": "-3", "label": "a b", "is-loud": "1", "sizes": "4"}
    assert Sample.from_text(given) == Sample(-3, "a b", True, (4,))
    assert Sample.from_text({}) == Sample()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depht": "1"}, "pass 'sample' has no option 'depht', expected one of depth,"),
        (
            {"depth": "1.5"},
            "pass 'sample': option 'depth' is '1.5', expected an integer",
        ),
        ({"is-loud": "yes"}, "option 'is-loud' is 'yes', expected true or false"),
        ({"sizes": "1,,2"}, "option 'sizes' is '1,,2', expected integers separated by"),
        ({"sizes": ""}, "option 'sizes' is '', expected integers"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sample.from_text(given)


def test_a_pass_without_options_says_so() -> None:
    with pytest.raises(
        ConfigError, match="pass 'bare' has no option 'x', it takes none"
    ):
        Bare.from_text({"x": "1"})


def test_a_field_that_is_no_option_is_refused() -> None:
    @dataclass(frozen=True)
    class WithoutHelp(Pass):
        name = "without-help"
        depth: int = 3

    @dataclass(frozen=True)
    class OddType(Pass):
        name = "odd-type"
        ratio: float = option(0.5, "how much")

    message = "field 'depth' of pass 'without-help' is no option, expected 'depth: TYPE"
    with pytest.raises(ConfigError, match=message):
        WithoutHelp.options()
    with pytest.raises(ConfigError, match="field 'ratio' of pass 'odd-type'"):
        OddType.from_text({"ratio": "1"})


def test_a_pass_stands_in_any_pass_manager() -> None:
    with make_context():
        module = ir.Module.parse("func.func private @f()")
        func = module.body.operations[0].operation
        manager = passmanager.PassManager("func.func")
        manager.add(Sample(label="x"), name="Sample", argument="sample")
        manager.run(func)
        assert func.attributes["sample"] == ir.StringAttr.get("x")


def test_a_pass_error_becomes_an_error_of_mlir() -> None:
    with make_context():
        module = ir.Module.parse("\nfunc.func private @f()")
        manager = passmanager.PassManager("func.func")
        manager.add(Sample(is_loud=True), name="Sample", argument="sample")
        with pytest.raises(ir.MLIRError, match="2:1: sample: too loud"):
            manager.run(module.body.operations[0].operation)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_keeps_to_the_house_rules(name: str) -> None:
    found = Registry().find_pass(name)
    assert found is not None
    assert found.name == name
    assert found.anchor in ("any", "builtin.module", "func.func", "gpu.module")
    assert found() == found.from_text({}), "usable without options"
    lines = found.contract().split("\n")
    assert lines[0].endswith(".")
    assert lines[1] == ""
    for word in ("Before:", "After:"):
        assert any(line.startswith(word) for line in lines), (
            f"no {word} in the contract"
        )
    for described in found.options():
        assert described.help[0] != " "
        assert not described.help.endswith(".")
