"""The loops of contractions: which are rows, columns, the reduction, the batch.

Loops have letters: "m" rows, "n" columns, "k" the reduction, "b" a batch, further ones
"c", "d", "e", in the order in which they index the output. Read from indexing maps
alone. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.analysis.linalg.operand_transforms import NoContraction
from alcop_mlir.analysis.linalg.view import contraction_dimensions, indices_of
from alcop_mlir.bindings import ir

BATCHES = "bcde"  # the letters of batch loops


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
    """Of A, B and C, the letters of the loops that index each.

    Columns are the innermost loop of the output that one input alone has, rows one that
    the other alone has: the innermost of that input, else of the output. Others of
    theirs are batch loops. Of two reduction loops, the outer one in the first input is
    a batch. Raises NoContraction for other loops.
    """
    every = first, second, out = [loops_of(one) for one in maps]
    if any(len(set(loops)) != len(loops) for loops in every):
        raise NoContraction("uses a loop twice in an operand, expected matrices")
    found = contraction_dimensions(maps)
    assert found is not None, maps  # three maps of loops
    reduced = sorted(found.k, key=first.index)
    if {*out} - {*first, *second}:
        raise NoContraction("has an output loop that no input has")
    if {*first, *second} - {*out, *reduced}:
        raise NoContraction(
            "reduces a loop of one input alone, expected a loop of both"
        )
    if len(reduced) not in (1, 2):
        raise NoContraction(f"reduces {len(reduced)} loops, expected one")
    matrix = _rows_and_columns(first, second, out)
    if not matrix:
        ranks = ", ".join(str(len(loops)) for loops in every)
        raise NoContraction(f"has operands of rank {ranks}, expected matrices")
    batches = [loop for loop in (*out, *reduced[:-1]) if loop not in matrix]
    if len(batches) > len(BATCHES):
        most = f"expected {len(BATCHES)} at most"
        raise NoContraction(f"has {len(batches)} batch loops, {most}")
    letters = dict(zip(reversed(matrix), "nm", strict=False))
    letters |= dict(zip(batches, BATCHES, strict=False)) | {reduced[-1]: "k"}
    return ["".join(letters[loop] for loop in loops) for loops in every]


def _rows_and_columns(
    first: Sequence[int], second: Sequence[int], out: Sequence[int]
) -> list[int]:
    """Of the loops of the output, those of rows and of columns, as far as there are."""
    own = [loop for loop in out if (loop in first) != (loop in second)]
    if len(own) < 2:
        return own
    *others, columns = own
    other = first if columns in second else second
    rows = [loop for loop in others if loop in other] or others
    return [other[-1] if other[-1] in rows else rows[-1], columns]


def matrix_loops(loops: str) -> str:
    """The loops that index one matrix of an operand with these loops."""
    return "".join(loop for loop in loops if loop not in BATCHES)


def loop_name(loop: str) -> str:
    """What messages call a loop."""
    return "batch" if loop in BATCHES else loop.upper()


def loops_of(affine_map: ir.AffineMap) -> list[int]:
    """The loops that are the results of a projected permutation."""
    loops = [index.loop for index in indices_of(affine_map)]
    plain = [loop for loop in loops if loop is not None]
    if len(plain) != len(loops):
        raise NoContraction(f"indexes an operand by {affine_map}, expected loops only")
    return plain
