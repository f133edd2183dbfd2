"""Decoding is strict, says where it failed, and undoes encoding."""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alcop_mlir import codec
from alcop_mlir.codec import Stored, Tagged, open_ended
from alcop_mlir.codec_forms import Bounded, Length, Matches, Name, OneOf, Range, Written
from alcop_mlir.errors import ConfigError
from alcop_mlir.reference import expressions, steps
from alcop_mlir.reference.expressions import Argument, Constant, Expression, Operation
from alcop_mlir.reference.steps import Einsum, Insert, Map, Reshape, Slice, Step
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import records
from alcop_mlir.tuning.problem import CHAIN, ELEMENT_BYTES, OPERATORS, Chain, Problem
from alcop_mlir.tuning.records import DEVICES, Record, Setting

HUGE = 10**5000  # more digits than `str` gives


@dataclass(frozen=True)
class Part:
    """With a default, one that is written, and one under another name."""

    name: str
    size: Annotated[int, Range(1, 8)] = 1
    kept: Annotated[int, Written] = 2
    other: Annotated[int, Name("class")] = 3
    items: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Other:
    """Told from `Part` by its first member."""

    kind: Annotated[str, OneOf(("a", "b"))]


@open_ended
@dataclass(frozen=True)
class Open:
    """May have more members."""

    parts: tuple[Part | Other, ...] = ()

    def __post_init__(self) -> None:
        if len(self.parts) > 2:
            raise ConfigError("too many parts")


@dataclass(frozen=True)
class Tree:
    """Contains itself."""

    below: tuple[Tree, ...] = ()


Shape = Annotated[Part | Other, Tagged("is", {"part": Part, "other": Other})]
Seconds = Annotated[float, Range(0, above=True)]
Small = Annotated[Tree, Bounded(depth=6, size=12)]
Flag = Annotated[
    bool,
    Stored(
        Annotated[str, OneOf(("yes", "no"))],
        lambda text: text == "yes",
        lambda flag: "yes" if flag else "no",
    ),
]


def tree(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"below": [value]}
    return value


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, True, "expected an integer, got true"),
        (int, 1.0, "expected an integer, got 1.0"),
        (int, "1", 'expected an integer, got "1"'),
        (int, None, "expected an integer, got null"),
        (int, 2**64, "expected an integer, got an integer of 65 bits"),
        (int, HUGE, "expected an integer, got an integer of 16610 bits"),
        (bool, 1, "expected true or false, got 1"),
        (bool, "true", 'expected true or false, got "true"'),
        (str, 7, "expected text, got 7"),
        (str, "\ud800", 'expected text, got "\\ud800"'),
        (float, "1", 'expected a number, got "1"'),
        (float, False, "expected a number, got false"),
        (float, math.nan, "expected a number, got nan"),
        (float, -math.inf, "expected a number, got -inf"),
        (float, HUGE, "expected a number, got an integer of 16610 bits"),
        (Seconds, 0, "expected a number above 0, got 0"),
        (Seconds, math.inf, "expected a number above 0, got inf"),
        (Annotated[float, Range(0)], -0.1, "expected a number of 0 or more, got -0.1"),
        (Annotated[int, Range(1)], 0, "expected an integer of 1 or more, got 0"),
        (Annotated[int, Range(1)], 2**63, "expected an integer of 1 or more, got 9223"),
        (Annotated[int, Range(1, 8)], 9, "expected an integer from 1 to 8, got 9"),
        (
            Annotated[int, Range(1, 8)],
            True,
            "expected an integer from 1 to 8, got true",
        ),
        (Annotated[str, OneOf(("a", "b"))], "c", 'expected one of a, b, got "c"'),
        (Annotated[str, OneOf(("a", "b"))], ["a"], 'expected one of a, b, got ["a"]'),
        (Annotated[str, OneOf(("a",), "a letter")], "c", 'expected a letter, got "c"'),
        (Annotated[str, Matches("a+")], "aab", 'expected text like a+, got "aab"'),
        (Annotated[str, Matches("a+")], "a\n", 'expected text like a+, got "a\\n"'),
        (tuple[int, int], [1], "expected a list of 2, each an integer, got [1]"),
        (tuple[int, int], {"0": 1}, "each an integer, got an object"),
        (tuple[int, str], [1, 2], "[1]: expected text, got 2"),
        (tuple[int, ...], [1, 2, None], "[2]: expected an integer, got null"),
        (tuple[int, ...], "12", 'expected a list, got "12"'),
        (Annotated[tuple[int, ...], Length(1, 2)], [], "a list of 1 to 2, got []"),
        (Annotated[tuple[int, ...], Length(1, 2)], [1] * 9, "1 to 2, got a list of 9"),
        (int | None, "x", 'expected an integer or null, got "x"'),
        (int | str, [1], "expected an integer or text, got [1]"),
        (dict[str, int], {"a": "b"}, '["a"]: expected an integer, got "b"'),
        (dict[str, int], [], "expected an object, got []"),
        (Part, [], "expected an object, got []"),
        (Part, {}, "name: missing"),
        (
            Part,
            {"name": "x", "size": 9},
            "size: expected an integer from 1 to 8, got 9",
        ),
        (Part, {"name": "x", "class": "y"}, 'class: expected an integer, got "y"'),
        (
            Part,
            {"name": "x", "other": 3},
            'unknown "other", expected one of name, size',
        ),
        (Part, {"name": "x", "items": {"a": []}}, 'items["a"]: expected an integer'),
        (Open, {"parts": [{"name": "x"}, {"name": 3}]}, "parts[1].name: expected text"),
        (Open, {"parts": [{"kind": "c"}]}, "parts[0].kind: expected one of a, b"),
        (Open, {"parts": [{}]}, 'parts[0]: expected an object with "name" or "kind"'),
        (Open, {"parts": [{"kind": "a"}] * 3}, "too many parts"),
        (Shape, {"name": "x"}, "is: missing"),
        (Shape, {"is": "neither"}, 'is: expected one of part, other, got "neither"'),
        (Shape, {"is": ["part"]}, 'is: expected one of part, other, got ["part"]'),
        (Shape, {"is": "part", "size": 1}, "name: missing"),
        (Shape, {"is": "part", "kind": "a"}, 'unknown "kind", expected one of name'),
        (Flag, "maybe", 'expected one of yes, no, got "maybe"'),
        (Small, tree(3), "expected at most 12 values, nested at most 6 deep, got more"),
        (Small, {"below": [{}] * 20}, "expected at most 12 values"),
        (Small, tree(100_000), "expected at most 12 values"),
        (Small, {"below": 3}, "below: expected a list, got 3"),
    ],
    ids=lambda value: None if isinstance(value, str) else "value",
)
def test_what_does_not_fit_is_refused(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        codec.decode(kind, value)
    said = str(caught.value)
    assert message in said
    assert "\n" not in said
    assert len(said) < 200


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, -(2**63), -(2**63)),
        (float, 3, 3.0),
        (Seconds, 1e-300, 1e-300),
        (Annotated[int, Range(1)], 2**63 - 1, 2**63 - 1),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [], ()),
        (int | None, None, None),
        (int | float, 2, 2),
        (int | float, 2.5, 2.5),
        (Any, {"a": [None]}, {"a": [None]}),
        (Part, {"name": "é"}, Part("é")),
        (Part, {"name": "x", "class": 4, "size": 8}, Part("x", 8, other=4)),
        (Open, {"parts": [{"kind": "a"}], "more": HUGE}, Open((Other("a"),))),
        (Shape, {"is": "other", "kind": "b"}, Other("b")),
        (Flag, "yes", True),
        (Small, tree(2), Tree((Tree((Tree(),)),))),
    ],
    ids=lambda value: "value",
)
def test_what_fits_is_taken(kind: Any, value: Any, expected: Any) -> None:
    made = codec.decode(kind, value)
    assert made == expected
    assert type(made) is type(expected)


def test_messages_begin_with_what_is_decoded() -> None:
    for kind, value, message in (
        (Part, {}, "part.name: missing"),
        (Part, 3, "part: expected an object, got 3"),
        (tuple[int, ...], ["x"], 'part[0]: expected an integer, got "x"'),
    ):
        with pytest.raises(ConfigError) as caught:
            codec.decode(kind, value, "part")
        assert str(caught.value) == message


def test_defaults_are_left_out() -> None:
    assert codec.encode(Part("x")) == {"name": "x", "kept": 2}
    assert codec.encode(Part("x", other=4)) == {"name": "x", "kept": 2, "class": 4}
    assert codec.encode(Other("a"), Shape) == {"is": "other", "kind": "a"}
    assert codec.encode(False, Flag) == "no"
    assert list(codec.encode(Part("x", 2))) == ["name", "size", "kept"]


def test_members_of_an_instance_are_checked() -> None:
    codec.check(Part("x", 8), "part")
    with pytest.raises(ConfigError, match=r"^part\.size: expected .* 8, got 9$"):
        codec.check(Part("x", 9), "part")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no JSON: Expecting value"),
        (b"{", "no JSON: Expecting property name"),
        (b"\xff", "no UTF-8 text"),
        (b"[NaN]", "no JSON: NaN is no number of it"),
        (b"-Infinity", "no JSON: -Infinity is no number of it"),
        (b"9" * 5000, "no JSON: a number has too many digits"),
        (b"[" * 100_000 + b"]" * 100_000, "no JSON: nested too deep"),
        (b'{"a":' * 100_000, "no JSON: nested too deep"),
        (b" " * 101, "JSON of 101 bytes, expected 100 at most"),
    ],
    ids=lambda value: None if isinstance(value, str) else "text",
)
def test_text_that_is_no_json_is_refused(text: bytes, message: str) -> None:
    most = 100 if len(text) == 101 else codec.MAX_TEXT
    with pytest.raises(ConfigError) as caught:
        codec.parse(text, most)
    assert str(caught.value).startswith(message)


def test_a_number_that_overflows_is_infinite_and_refused() -> None:
    with pytest.raises(ConfigError, match="expected a number, got inf"):
        codec.decode(float, codec.parse("1e999"))


def test_damaged_values_cost_no_time() -> None:
    """Not even where what is decoded contains itself."""
    wide: Any = {}
    for _ in range(40):
        wide = {"below": [wide, wide]}  # 2 ** 40 parts
    start = time.perf_counter()
    with pytest.raises(ConfigError, match="at most 12 values"):
        codec.decode(Small, wide)
    deep: Any = {"argument": "x"}
    for _ in range(60):  # each level that read it again to say where took 2 ** 60
        deep = {"op": "math.exp", "type": "f32", "operands": [deep]}
    with pytest.raises(ConfigError, match=r"operands\[0\]\.argument: expected an int"):
        codec.decode(Expression, deep)
    assert time.perf_counter() - start < 10


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**400, "name", "M", "argument", "contraction"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from("name kind parts is op argument operands block M".split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([Part, Open, Shape, Small, Expression, Step, Schedule]), JSON)
def test_nothing_but_a_config_error(kind: Any, value: Any) -> None:
    with suppress(ConfigError):
        codec.decode(kind, value)


COUNTS = st.integers(0, 2**63 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
SIZES = st.lists(COUNTS | NAMES, max_size=4).map(tuple)
TRIPLES = st.tuples(COUNTS, COUNTS, COUNTS)
EXPRESSIONS = st.recursive(
    st.builds(Argument, COUNTS) | st.builds(Constant, st.floats(allow_nan=False)),
    lambda inner: st.builds(
        Operation,
        st.sampled_from(sorted(expressions.OPERATIONS)),
        st.sampled_from(expressions.FLOATS),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=8,
)
STEPS = (
    st.builds(
        Einsum,
        NAMES,
        NAMES,
        NAMES,
        st.just("mk,kn->mn"),
        st.none() | NAMES,
        st.none() | st.sampled_from(steps.PRECISIONS),
        st.sampled_from(("f16", "f32")),
    )
    | st.builds(
        Map,
        st.lists(NAMES, max_size=2).map(tuple),
        st.just("i->i"),
        NAMES,
        EXPRESSIONS,
        SIZES,
    )
    | st.builds(Reshape, NAMES, NAMES, SIZES)
    | st.builds(Slice, NAMES, NAMES, TRIPLES, TRIPLES, TRIPLES)
    | st.builds(Insert, NAMES, NAMES, NAMES, TRIPLES, TRIPLES, TRIPLES)
)
SCHEDULES = st.builds(
    Schedule,
    st.sampled_from([(64, 64, 32), (128, 64, 16)]),
    st.sampled_from([(32, 32), (64, 64)]),
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    st.integers(1, 64),
    st.integers(1, 64),
)
TYPES = st.sampled_from(sorted(ELEMENT_BYTES))
EXTENTS = [st.integers(1, 2**40)] * 4
PROBLEMS = st.builds(
    Problem,
    *EXTENTS,
    st.sampled_from([one for one in OPERATORS if one != CHAIN]),
    st.tuples(TYPES, TYPES, TYPES, TYPES),
    NAMES,
) | st.builds(
    Problem,
    *EXTENTS,
    st.just(CHAIN),
    st.tuples(TYPES, TYPES, TYPES, TYPES),
    NAMES,
    chain=st.builds(
        Chain,
        *EXTENTS[:1],
        *[st.none() | st.integers(-(2**31), 2**31)] * 2,
        st.integers(0, 2),
    ),
)
SETTINGS = st.builds(Setting, NAMES, st.sampled_from(DEVICES), *[NAMES] * 4)
TIMES = st.floats(0, exclude_min=True, allow_infinity=False)
RECORDS = st.builds(
    Record,
    PROBLEMS,
    SCHEDULES,
    SETTINGS,
    NAMES,
    TIMES,
    st.just(""),
    TIMES,
    st.integers(1, 2**31),
) | st.builds(Record, PROBLEMS, SCHEDULES, SETTINGS, NAMES, st.none(), NAMES)


def through_text(value: Any) -> Any:
    return codec.parse(json.dumps(value, allow_nan=False))


@given(EXPRESSIONS)
def test_expressions_come_back(expression: Expression) -> None:
    stored = through_text(codec.encode(expression, Expression))
    assert codec.decode(Expression, stored) == expression


@given(STEPS)
def test_steps_come_back(step: Step) -> None:
    assert codec.decode(Step, through_text(codec.encode(step, Step))) == step


@given(SCHEDULES, PROBLEMS)
def test_schedules_and_problems_come_back(schedule: Schedule, problem: Problem) -> None:
    assert Schedule.from_dict(through_text(schedule.to_dict())) == schedule
    assert Problem.from_record(through_text(problem.to_record())) == problem


@given(RECORDS)
def test_records_come_back(record: Record) -> None:
    assert records.from_json(through_text(records.to_json(record))) == record


def test_the_schema_is_read_before_the_rest() -> None:
    assert codec.schema_of({"schema": 7, "of": [None]}) == 7
    for value, message in (
        ({"of": 1}, "part.schema: missing"),
        ({"schema": "7"}, 'part.schema: expected an integer, got "7"'),
        ([], "part: expected an object, got []"),
    ):
        with pytest.raises(ConfigError) as caught:
            codec.schema_of(value, "part")
        assert str(caught.value) == message


def test_no_json_is_imported_before_it_is_needed() -> None:
    """Every program imports the codec; `json` takes longer than it does."""
    assert "json" not in vars(sys.modules["alcop_mlir.codec"])


@codec.shared
@dataclass(frozen=True)
class Pair:
    one: int
    two: Annotated[bool, Written] = False


@dataclass(frozen=True)
class Holder:
    pair: Pair


def test_shared_objects_are_read_once_and_as_strictly() -> None:
    first, again = (codec.decode(Holder, {"pair": {"one": 1}}) for _ in range(2))
    assert first.pair is again.pair
    assert codec.decode(Holder, {"pair": {"one": 2}}).pair == Pair(2)
    for wrong in ({"one": True}, {"one": 1.5}, {"one": [1]}, {"one": 1, "two": 0}, 3):
        with pytest.raises(ConfigError):
            codec.decode(Holder, {"pair": wrong})
    for number in range(codec._MOST_SHARED + 8):
        assert codec.decode(Holder, {"pair": {"one": number}}).pair.one == number
