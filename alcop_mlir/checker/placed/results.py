"""What elements are, and numbers, where nothing is added: results as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.placed.kinds import Element, Result
from alcop_mlir.checker.placed.tags import NUMBER, ZERO, Book

Loops = dict[str, tuple[Term, Any]]


def of_result(
    book: Book,
    number: int,
    at: np.ndarray,
    loops: Loops | None = None,
    size: int = 0,
) -> tuple[int, np.ndarray]:
    """An element that is a result as it is, where nothing is added; or a number.

    loops: those of the result, of which a number is an element of that size; None
           where it has to have an index for each
    """
    kind, statement = book.kinds[number], book.statement
    whole = (("", statement.extents[statement.reduced]),)
    if statement.lhs is None and number in (ZERO, NUMBER) and loops is not None:
        term, index = book.result(loops)
        return book.number(Result(term, size, whole, frozenset())), index
    if statement.lhs is not None or not isinstance(kind, Element):
        return number, at
    own = book.loops(kind, at)
    if own.keys() != statement.order.keys():
        if loops is None:
            return number, at
        own = {**loops, **own}  # the same for all that it has no index for
    term, index = book.result(own)
    made = Result(term, kind.size, whole, frozenset((kind.array,)))
    return book.number(made), index
