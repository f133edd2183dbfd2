"""Which inputs are weights, and how large their random elements are."""

from __future__ import annotations

from alcop_mlir.reference.expressions import Argument, Operation
from alcop_mlir.reference.input_scales import input_scales
from alcop_mlir.reference.steps import Einsum, Map, Reshape

RELU = Operation("arith.maximumf", "f32", (Argument(0), Argument(0)))
WIDER = Operation("arith.extf", "f32", (Argument(0),))


def test_weights_of_what_is_computed() -> None:
    """Through casts and transposes; smaller by the root of the number of terms."""
    steps = (
        Map(("a",), "mk->mk", "%0", RELU, (8, 16)),
        Map(("w",), "nk->kn", "%1", WIDER, (16, 4)),
        Einsum("%0", "%1", "c", "mk,kn->mn"),
    )
    shapes = {"a": (8, 16), "w": (4, 16), "%0": (8, 16), "%1": (16, 4), "c": (8, 4)}
    assert input_scales(steps, shapes, ("a", "w")) == {"w": 0.25}


def test_weights_of_an_input_with_more_dimensions() -> None:
    steps = (
        Reshape("x", "%0", (8, 16)),
        Einsum("%0", "w", "c", "mk,kn->mn"),
    )
    shapes = {"x": (2, 4, 16), "w": (16, 4), "%0": (8, 16), "c": (8, 4)}
    assert input_scales(steps, shapes, ("x", "w")) == {"w": 0.25}


def test_two_matrices_are_no_weights() -> None:
    steps = (Einsum("a", "b", "c", "mk,kn->mn"),)
    shapes = {"a": (8, 16), "b": (16, 4), "c": (8, 4)}
    assert input_scales(steps, shapes, ("a", "b")) == {}
