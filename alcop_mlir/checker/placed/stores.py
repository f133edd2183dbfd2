"""Whether what is stored to an output is the result that belongs there."""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.chains import WHOLE_ROW
from alcop_mlir.checker.placed.kinds import Result
from alcop_mlir.checker.placed.origins import Misplaced
from alcop_mlir.checker.placed.results import Loops
from alcop_mlir.checker.placed.rows import whole_rows
from alcop_mlir.checker.placed.tags import Book


def placed(
    book: Book, array: str, result: Result, at: np.ndarray, loops: Loops
) -> tuple[Frozen, np.ndarray]:
    """Which elements of an output are stored; Misplaced where these are of others, or
    no whole sum.

    at:    offsets of the results
    loops: indices of the addresses
    """
    term, index = book.result(loops)
    if not book.origins.is_same(result.term, term) or (at != index).any():
        is_split = _is_split(book, (result.term, at), (term, index))
        is_plain = book.statement.arrays[array].strides == book.statement.order
        if not is_split or not is_plain:
            raise Misplaced(f"a result is stored as another one of {array}")
        term, index = result.term, at
    _check_whole(book, array, result)
    return term, index


def _is_split(
    book: Book, result: tuple[Frozen, Any], address: tuple[Frozen, Any]
) -> bool:
    """Whether what the block adds to an address, and a thread, are those of a result
    together only, as where rows end inside of a block, of an output whose elements lie
    one behind the other. Indices of the result are inside, see `Cover`.
    """
    (own, at), (term, index) = result, address
    less = book.origins.shift(own, term)
    return less is not None and bool((at + less == index).all())


def _check_whole(book: Book, array: str, result: Result) -> None:
    statement: Statement = book.statement
    if result.first or not book.is_whole(result.upto):
        raise Misplaced(f"a sum is stored to {array} that is not whole")
    init = statement.init
    reads = statement.outputs[array] | ({init} if init else set())
    chain, scale = statement.chain, None
    if chain is not None and any(chain.kept):
        scale = terms.frozen({"": statement.extents[statement.reduced]})
    elif chain is not None and chain.is_row:
        reads |= {WHOLE_ROW}
    if result.is_score or result.scale != scale:
        raise Misplaced(f"a result in {array} is not divided by its row's total")
    if result.reads != reads | whole_rows(statement, statement.rows):
        raise Misplaced(f"a result in {array} is of other arrays")
