"""How far a NaN in an input reaches, against a function where it does."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.reference import step_values
from alcop_mlir.reference.expressions import Argument, Constant, Operation
from alcop_mlir.reference.index_arrays import draw
from alcop_mlir.reference.influence import reach
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

X, Y = Argument(0), Argument(1)
ADD = Operation("arith.addf", "f32", (X, Y))
SHAPES = {
    **{"A": (12, 8), "B": (8, 20), "bias": (20,), "W": (20, 6), "image": (4, 11)},
    **{"C": (12, 20), "D": (12, 6), "square": (6, 6), "kernel": (3,)},
    "index": (20,),
}
MATMUL = Einsum("A", "B", "C", "mk,kn->mn")
BIASED = (MATMUL, Map(("C", "bias"), "mn,n->mn", "E", ADD, (12, 20)))
TWO = (*BIASED, Einsum("E", "W", "D", "mn,nk->mk"))
ROWS = Gather("A", ("index",), "i->ik", "r", (X, Argument(2)), (20, 8))
# Steps, and their result; the shapes of what they make; of an input, the share reached.
CASES: list[tuple[tuple[Step, ...], dict[str, tuple[int, ...]], str, float]] = [
    ((MATMUL,), {}, "A", 1 / 12),
    ((MATMUL,), {}, "B", 1 / 20),
    ((Einsum("A", "B", "C", "mk,kn->mn", "C"),), {}, "C", 1 / 240),
    (BIASED, {"E": (12, 20)}, "bias", 1 / 20),
    (TWO, {"E": (12, 20)}, "A", 1 / 12),
    (TWO, {"E": (12, 20)}, "B", 1.0),
    (TWO, {"E": (12, 20)}, "bias", 1.0),
    (TWO, {"E": (12, 20)}, "W", 1 / 6),
    ((Einsum("square", "square", "E", "mk,nk->mn"),), {"E": (6, 6)}, "square", 1.0),
    (
        (Reduction(("A",), "mk->m", "v", X, "arith.addf", "f32"),),
        {"v": (12,)},
        "A",
        1 / 12,
    ),
    (
        (Reduction(("A",), "mk->k", "v", X, "arith.addf", "f32"),),
        {"v": (8,)},
        "A",
        1 / 8,
    ),
    (
        (
            Reshape("A", "r", (12, 4, 2)),
            Reduction(("r",), "mij->mj", "v", X, "arith.addf", "f32"),
        ),
        {"r": (12, 4, 2), "v": (12, 2)},
        "A",
        1 / 24,
    ),
    (
        (
            Reshape("A", "r", (6, 16)),
            Reduction(("r",), "ij->j", "v", X, "arith.addf", "f32"),
        ),
        {"r": (6, 16), "v": (16,)},
        "A",
        1 / 16,
    ),
    ((Reshape("A", "r", (96,)),), {"r": (96,)}, "A", 1 / 96),
    (
        (
            WindowViews("image", "w", 1, 9, 1, 3, 1),
            Einsum("w", "kernel", "v", "npk,k->np"),
        ),
        {"w": (4, 9, 3), "v": (4, 9)},
        "image",
        1 / 4 * 3 / 9,
    ),
    (
        (
            ScatteredViews("image", "w", 1, 23, 2, 3, 1),
            Einsum("w", "kernel", "v", "npk,k->np"),
        ),
        {"w": (4, 23, 3), "v": (4, 23)},
        "image",
        1 / 4 * 3 / 23,
    ),
    # A second window reaches what three positions of the first do.
    (
        (
            Pad("image", "p", (0, 2), (0, 0), Constant(0.0)),
            WindowViews("p", "w", 1, 11, 1, 3, 1),
            Einsum("w", "kernel", "v", "npk,k->np"),
            WindowViews("v", "x", 1, 9, 1, 3, 1),
            Einsum("x", "kernel", "y", "npk,k->np"),
            WindowViews("y", "z", 1, 9, -1, None, 1, 8),
        ),
        {"p": (4, 13), "w": (4, 11, 3), "v": (4, 11), "x": (4, 9, 3), "y": (4, 9)}
        | {"z": (4, 9)},
        "image",
        1 / 4,
    ),
    (
        (
            Slice("C", "s", (0, 0), (6, 6), (2, 3)),
            Insert("s", "square", "square", (0, 0), (6, 6), (1, 1)),
        ),
        {"s": (6, 6)},
        "C",
        1 / 240,
    ),
    # 20 indices name 12 rows: each once or twice.
    ((ROWS,), {"r": (20, 8)}, "A", 2 / 20 / 8),
    (
        (ROWS, Einsum("r", "B", "E", "mk,kn->mn")),
        {"r": (20, 8), "E": (20, 20)},
        "A",
        0.1,
    ),
    (
        (ROWS, Einsum("r", "B", "E", "mk,kn->mn")),
        {"r": (20, 8), "E": (20, 20)},
        "B",
        0.05,
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_reach(number: int) -> None:
    """No less than what a NaN really reaches, wherever it is."""
    given, made, name, share = CASES[number]
    result = given[-1].out
    assert reach(given, SHAPES | made, name, [result]) == pytest.approx(share)
    kinds = dict.fromkeys(SHAPES, "f32")
    for place in np.ndindex(SHAPES[name]):
        arrays = {key: np.ones(shape) for key, shape in SHAPES.items()}
        arrays["index"] = draw(np.random.default_rng(0), np.arange(12), (20,), int)
        arrays[name][place] = np.nan
        values = step_values.step_values(given, arrays, kinds, {})[result].values
        one_more = 1 / values.size if isinstance(given[-1], Insert) else 0
        assert np.isnan(values).mean() <= share + one_more + 1e-9


def test_what_is_not_read_reaches_nothing() -> None:
    assert reach((MATMUL,), SHAPES, "bias", ["C"]) == 0
    assert reach((), SHAPES, "A", []) == 0
