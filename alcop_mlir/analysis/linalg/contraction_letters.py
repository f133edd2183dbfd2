"""The loops of contractions: which are rows, columns, the reduction, the batch.

Loops have letters: "m" rows, "n" columns, "k" the reduction, "b" the batch. Read from
indexing maps alone. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.analysis.linalg.operand_transforms import NoContraction
from alcop_mlir.analysis.linalg.view import contraction_dimensions, indices_of
from alcop_mlir.bindings import ir


def loop_letters(maps: Sequence[ir.AffineMap]) -> list[str] | None:
    """Per operand the letters of the loops that index it; None if not a contraction.

    Only the maps of the operands are looked at, not what an op computes.
    """
    if len(maps) != 3:
        return None
    try:
        return letters_of(maps)
    except NoContraction:
        return None


def letters_of(maps: Sequence[ir.AffineMap]) -> list[str]:
    """Of A, B and C, the letters "b", "m", "n", "k" of the loops that index each.

    The output has rows before columns. Of two reduction loops, the outer one in the
    first input is the batch. Raises NoContraction for other loops.
    """
    every = first, second, out = [loops_of(one) for one in maps]
    if any(len(set(loops)) != len(loops) for loops in every):
        raise NoContraction("uses a loop twice in an operand, expected matrices")
    found = contraction_dimensions(maps)
    assert found is not None, maps  # three maps of loops
    batch = list(found.batch)
    if len(batch) > 1:
        raise NoContraction(f"has {len(batch)} batch loops, expected one at most")
    if len(out) == 3 and not batch:  # one input is the same for the whole batch
        batch = out[:1]
    reduced = sorted(found.k, key=first.index)
    if {*out} - {*first, *second}:
        raise NoContraction("has an output loop that no input has")
    if {*first, *second} - {*out, *reduced}:
        raise NoContraction(
            "reduces a loop of one input alone, expected a loop of both"
        )
    if len(reduced) == 2 and not batch:
        batch = [reduced.pop(0)]
    if len(reduced) != 1:
        raise NoContraction(f"reduces {len(reduced)} loops, expected one")
    rows_and_columns = [loop for loop in out if loop not in batch]
    if not 1 <= len(rows_and_columns) <= 2:
        ranks = ", ".join(str(len(loops)) for loops in every)
        raise NoContraction(f"has operands of rank {ranks}, expected matrices")
    names = "mn" if len(rows_and_columns) == 2 else "n"
    letters = dict(zip(rows_and_columns, names, strict=True))
    letters |= dict.fromkeys(batch, "b") | {reduced[0]: "k"}
    return ["".join(letters[loop] for loop in loops) for loops in every]


def loops_of(affine_map: ir.AffineMap) -> list[int]:
    """The loops that are the results of a projected permutation."""
    loops = [index.loop for index in indices_of(affine_map)]
    plain = [loop for loop in loops if loop is not None]
    if len(plain) != len(loops):
        raise NoContraction(f"indexes an operand by {affine_map}, expected loops only")
    return plain
