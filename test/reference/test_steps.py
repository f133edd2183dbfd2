"""Steps of a reference: their way through JSON, and what is refused there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from alcop_mlir import codec
from alcop_mlir.errors import ConfigError
from alcop_mlir.polynomials import collected
from alcop_mlir.reference import steps
from alcop_mlir.reference.expressions import Argument, Constant, Operation
from alcop_mlir.reference.steps import (
    Einsum,
    Gather,
    Insert,
    Map,
    Pad,
    Reduction,
    Reshape,
    ScatteredViews,
    Slice,
    Step,
    WindowViews,
)

SUM = Operation("arith.addf", "f32", (Argument(0), Argument(1)))
STEPS: list[Step] = [
    Einsum("A", "B", "%0", "mk,kn->mn", None, "tf32"),
    Einsum("A", "B", "%1", "bmk,bkn->bmn", "C", dtype="f16", sums="f16"),
    Map(("%0", "A"), "ij,i.->ij", "%2", SUM, ("M", 16)),
    Map((), "->", "%3", Constant(float("inf")), ()),
    Reduction(("A",), "ij->i", "%4", Argument(0), "arith.maximumf", "f32", "C"),
    Reshape("A", "%5", ("M", 4, 4)),
    Slice("A", "%6", (0, 2), (4, 4), (1, 2)),
    Insert("%6", "B", "B", (0, 0), (4, 4), (2, 1)),
    WindowViews("A", "%8", 1, 3, 2, 4, 1),
    WindowViews("A", "%9", 1, "M", -2, None, 1, 5),
    Pad("A", "%10", (0, 1), (2, 0), Constant(-float("inf"))),
    Gather("A", ("B",), "i->ij", "%11", (Argument(0), Argument(2)), ("M", 4)),
    ScatteredViews("A", "%12", 1, "M", 2, 3, 1, 1),
    Pad("A", "%13", (0, collected([(2, ("M",)), (-1, ())])), (2, "M"), Constant(0.0)),
]


def through_json(given: list[Step]) -> tuple[Step, ...]:
    text = json.dumps(as_json(given), allow_nan=False)
    return from_json(json.loads(text), "ABC", {"M"})


def as_json(given: list[Step]) -> list[Any]:
    return codec.encode(given, tuple[Step, ...])


def from_json(values: Any, arrays: str, sizes: set[str]) -> tuple[Step, ...]:
    made = codec.decode(tuple[Step, ...], values, "reference")
    steps.check(made, arrays, sizes)
    return made


def test_json_and_back() -> None:
    assert through_json(STEPS) == tuple(STEPS)


def test_what_is_read_has_the_order_of_the_fields() -> None:
    """Whatever order a file has the fields in."""
    turned = [dict(reversed(one.items())) for one in as_json(STEPS)]
    found = [one.reads for one in from_json(turned, "ABC", {"M"})]
    assert found == [one.reads for one in STEPS]
    assert found[1] == ("A", "B", "C")


def test_a_contraction_may_say_less() -> None:
    """As bundles did before there were other steps."""
    value = {"op": "contraction", "lhs": "A", "rhs": "B", "out": "C", "maps": "k,k->"}
    assert from_json([value], "ABC", set()) == (Einsum("A", "B", "C", "k,k->", None),)


@pytest.mark.parametrize(
    ("number", "changes", "message"),
    [
        (0, {"op": "eval"}, "reference[0].op: expected one of contraction, map"),
        (0, {"lhs": "Q"}, 'unknown array "Q"'),
        (0, {"lhs": 7}, "reference[0].lhs: expected text, got 7"),
        (0, {"maps": "mk->mn"}, "'maps' is \"mk->mn\""),
        (0, {"maps": "mm,kn->mn"}, "'maps' is \"mm,kn->mn\""),
        (0, {"maps": "mk,kn->mq"}, "has a loop of 'out' only"),
        (
            0,
            {"precision": "f4"},
            'reference[0].precision: expected one of tf32, got "f4"',
        ),
        (1, {"dtype": "i7"}, "reference[1].dtype: expected one of f16, bf16, "),
        (2, {"inputs": ["A"]}, "'maps' is \"ij,i.->ij\""),
        (2, {"inputs": ["A", 3]}, "reference[2].inputs[1]: expected text, got 3"),
        (2, {"maps": "ij,k.->ij"}, "in a map"),
        (2, {"shape": [4]}, "in a map"),
        (2, {"shape": ["Q", 4]}, 'unknown size "Q"'),
        (2, {"shape": [[[2, ["Q"]]], 4]}, 'unknown size "Q"'),
        (
            2,
            {"shape": [-1, 4]},
            "reference[2].shape[0]: expected an integer of 0 or more",
        ),
        (2, {"shape": [True, 4]}, "reference[2].shape[0]: expected an integer of 0"),
        (2, {"inputs": "AB"}, 'reference[2].inputs: expected a list, got "AB"'),
        (2, {"taps": 1}, 'reference[2]: unknown "taps"'),
        (2, {"expression": {"argument": 2}}, "argument 2 of 2 inputs"),
        (
            2,
            {"expression": {"op": "eval"}},
            "reference[2].expression.op: expected an op that references know",
        ),
        (
            4,
            {"combine": "arith.divf"},
            "reference[4].combine: expected one of arith.addf, ",
        ),
        (4, {"init": "Q"}, 'unknown array "Q"'),
        (6, {"sizes": [4]}, "of different ranks"),
        (
            6,
            {"strides": [1, -1]},
            "reference[6].strides[1]: expected an integer of 0 or",
        ),
        (
            8,
            {"taps": -1},
            "reference[8].taps: expected an integer of 0 or more, got -1",
        ),
        (11, {"indices": [{"argument": 3}]}, "argument 3 of 3 inputs"),
        (11, {"shape": [4]}, "in a gather"),
        (11, {"shape": ["Q", 4]}, 'unknown size "Q"'),
        (11, {"inputs": ["Q"]}, 'unknown array "Q"'),
    ],
)
def test_damaged_json_is_refused(
    number: int, changes: dict[str, Any], message: str
) -> None:
    values = as_json(STEPS)
    values[number] |= changes
    with pytest.raises(ConfigError) as caught:
        from_json(values, "ABC", {"M"})
    assert message in str(caught.value)


def test_names_and_sizes_are_replaced() -> None:
    names = {"A": "a", "%0": "zero", "C": "c"}
    assert steps.renamed(STEPS[2], names) == Map(
        ("zero", "a"), "ij,i.->ij", "%2", SUM, ("M", 16)
    )
    assert steps.renamed(STEPS[4], names).reads == ("a", "c")
    assert steps.with_sizes(STEPS[5], {"M": 3}) == Reshape("A", "%5", (3, 4, 4))
    gather = steps.with_sizes(steps.renamed(STEPS[11], {"B": "b"}), {"M": 3})
    assert gather.reads == ("b", "A")
    assert isinstance(gather, Gather)
    assert gather.shape == (3, 4)
    assert steps.with_sizes(STEPS[0], {"M": 3}) == STEPS[0]
