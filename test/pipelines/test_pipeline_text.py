"""Pipeline strings: what they are read as, and where an error points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir.errors import ConfigError
from alcop_mlir.pipelines.pipeline_text import (
    Element,
    nest,
    parse_elements,
    parse_pipeline,
    with_options,
)


def test_nested_pipeline() -> None:
    root = parse_pipeline("builtin.module( a , func.func(b{x=1}, c-d(e.f())) )")
    assert root.text == "builtin.module(a,func.func(b{x=1},c-d(e.f())))"
    assert root.children is not None
    assert root.children[0] == Element("a")
    assert root.children[1] == Element(
        "func.func",
        children=(
            Element("b", "x=1"),
            Element("c-d", children=(Element("e.f", children=()),)),
        ),
    )


@pytest.mark.parametrize("text", ["", "  "])
def test_no_elements(text: str) -> None:
    assert parse_elements(text) == ()


@pytest.mark.parametrize(
    ("braced", "options"),
    [
        ("", {}),
        ("a=1 b=x,y", {"a": "1", "b": "x,y"}),
        ("flag other=false", {"flag": "true", "other": "false"}),
        ("a='x y' b=\"(\" c={d=1 e={f}}", {"a": "x y", "b": "(", "c": "d=1 e={f}"}),
        ("tile=[1, 2] next=3", {"tile": "[1, 2]", "next": "3"}),
        ("\n  a-b.c = 1", None),
        ("a=}", None),
    ],
)
def test_options(braced: str, options: dict[str, str] | None) -> None:
    if options is None:
        with pytest.raises(ConfigError):
            parse_elements(f"p{{{braced}}}")[0].options()
        return
    found = parse_elements(f"p{{{braced}}}")[0].options()
    assert {option.key: option.value for option in found} == options


def test_options_know_their_places() -> None:
    text = "first{a=1},second{bc=x  d=y}"
    _, second = parse_elements(text)
    places = [(text[o.at :][:2], text[o.value_at]) for o in second.options()]
    assert places == [("bc", "x"), ("d=", "y")]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("builtin.module(a", 15, "'(' is never closed"),
        ("builtin.module(a b)", 18, "expected ',' or ')'"),
        ("builtin.module(a,)", 18, "expected the name of a pass or op"),
        ("builtin.module(a))", 18, "expected ',' or the end of the pipeline"),
        ("builtin.module(a{b='x})", 17, "'{' is never closed"),
        ("builtin.module(,)", 16, "expected the name of a pass or op"),
        ("a,b", 1, "write 'builtin.module(a,b)'"),
        ("builtin.module(a),b", 1, "a pipeline starts with the op"),
        ("", 1, "a pipeline starts with the op"),
        ("%", 1, "expected the name of a pass or op"),
    ],
)
def test_error_points_at_the_column(text: str, column: int, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pipeline(text)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith(f"pipeline:1:{column}: ")
    assert message in first
    assert shown == text
    assert caret == " " * (column - 1) + "^"


def test_error_in_a_text_of_several_lines() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pipeline("builtin.module(\n\ta,\n\t?)")
    assert str(caught.value).split("\n") == [
        "pipeline:3:2: expected the name of a pass or op",
        " ?)",
        " ^",
    ]


def test_nest_and_with_options() -> None:
    step = with_options(
        "p", stages=(3, 2), some_text="a b", on=True, off=False, none=None, empty=""
    )
    assert step == "p{stages=3,2 some-text='a b' on=true off=false}"
    assert with_options("p", x="") == "p"
    nested = nest("func.func", parse_elements(f"{step},cse"))
    assert parse_pipeline(nested.text) == nested


NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True)
VALUES = st.text(st.characters(codec="ascii", exclude_characters="'\\"), max_size=12)


@given(NAMES, st.dictionaries(NAMES, VALUES.filter(bool), min_size=1, max_size=4))
def test_what_with_options_writes_is_read_again(
    name: str, options: dict[str, str]
) -> None:
    (element,) = parse_elements(with_options(name, **options))
    assert {o.key: o.value for o in element.options()} == options


@given(st.text("ab.(){}='\", \n-", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        elements = parse_elements(text)
        for element in elements:
            if element.braced is not None:
                element.options()
    except ConfigError:
        return
    again = ",".join(element.text for element in elements)
    assert parse_elements(again) == elements
