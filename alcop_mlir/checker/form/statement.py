"""What a kernel is said to compute: one contraction, and what is made of it.

`C[m, n] = init[m, n] + sum over k of A[m, k] * B[k, n]`, with batches in any place, and
outputs that are computed of one element of it and of elements of other arrays. Without
B elements of A are added, and without both nothing is: outputs are computed of elements
of the same indices, and of whole rows of arrays. All extents are known. Where windows
are moved over an array, A[m, k] is what is in the window at m.

A may be made of another contraction (`Chain`), as in attention.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.checker.form.reading import count, require
from alcop_mlir.checker.form.windows import Window, read_window

NO_SUM = ""  # instead of a loop, of one turn
SCORES = "*"  # what the first contraction of a chain makes, as an array
_MEMBERS = {"extents", "arrays", "lhs", "rhs", "init", "order", "outputs", "grid"}


@dataclass(frozen=True)
class Array:
    """Loops that index it, with the elements between neighbours; bytes of an element.

    Loops of one turn are left out.

    first: the element where all loops are in their first turns
    """

    strides: dict[str, int]
    bytes: int
    first: int = 0


@dataclass(frozen=True)
class Chain:
    """The first contraction of two: the second multiplies what is made, element by
    element and with values of its row, of elements of this one.

    reduced, order: as those of a statement
    reads:  arrays that are read for each element, at its index
    is_row: whether results are divided by what is made of whole rows
    kept:   where they are not, as another kernel does it: the array of what each row is
            scaled by, and that of its totals; "" if there are none
    """

    lhs: str
    rhs: str
    reduced: str
    order: dict[str, int]
    reads: frozenset[str]
    is_row: bool
    kept: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Statement:
    """Arrays are named by the parameters that point to them.

    reduced: the loop of the sum; NO_SUM where nothing is added
    order:   strides of the sum's loops, where its elements are numbered
    outputs: by array, the arrays that are read besides lhs, rhs and init
    rows:    arrays of which whole rows are read for each output: all elements along
             `row_loops`, each once
    windows: by array that is no matrix itself; its strides number what windows see
    chain:   what lhs is made of, where that is `SCORES`
    """

    extents: dict[str, int]
    arrays: dict[str, Array]
    lhs: str | None
    rhs: str | None
    init: str | None
    reduced: str
    order: dict[str, int]
    outputs: dict[str, frozenset[str]]
    grid: tuple[int, int, int]
    rows: frozenset[str] = field(default=frozenset(), kw_only=True)
    row_loops: tuple[str, ...] = field(default=(), kw_only=True)
    windows: dict[str, Window] = field(default_factory=dict, kw_only=True)
    chain: Chain | None = field(default=None, kw_only=True)

    def order_of(self, is_score: bool) -> dict[str, int]:
        """Strides of what is summed: of a chain's first contraction, or the other."""
        return self.chain.order if is_score and self.chain else self.order

    def along(self, array: str) -> str:
        """The loop of the sum for which an array is multiplied."""
        chain = self.chain
        is_first = chain is not None and array in (chain.lhs, chain.rhs)
        return chain.reduced if chain is not None and is_first else self.reduced


def read_statement(value: Any) -> Statement:
    """Of JSON values, strictly."""
    more = {"rows", "windows", "chain"}
    is_one = isinstance(value, dict) and {*value} - more == _MEMBERS
    require(is_one, "a statement of other members")
    extents = {str(n): count(v) for n, v in value["extents"].items() if v != 1}
    arrays = {
        str(name): _array(*one, extents=value["extents"])
        for name, one in value["arrays"].items()
    }
    chain = None
    if "chain" in value:
        chain = _chain(value["chain"], value["lhs"], arrays, extents)
        arrays[SCORES] = Array(chain.order, 4)
    order = _numbered([n for n in value["order"] if n in extents], extents)
    rows, row_loops = _rows(value.get("rows"), arrays, order)
    alone = chain.order.keys() if chain and any(chain.kept) else order.keys()
    outputs = outputs_of(value, arrays, order, row_loops or order.keys() - alone)
    reduced = loop_of_sum(value, arrays, order)
    operands = value["lhs"], value["rhs"], value["init"]
    x, y, z = map(count, value["grid"])
    named = outputs.keys() | frozenset().union(*outputs.values()) | {value["init"]}
    windows = _windows(value, arrays, {*operands[:2]} - named, reduced)
    extents[NO_SUM] = 1
    if chain is not None:
        _check_chain(chain, value, arrays, reduced)
        _check_kept(chain, outputs, {n: arrays[n] for n in outputs}, order)
    require(not rows or reduced == NO_SUM, "rows of a contraction")
    whole = {"rows": rows, "row_loops": row_loops, "windows": windows}
    whole["chain"] = chain
    sums = reduced, order, outputs, (x, y, z)
    return Statement(extents, arrays, *operands, *sums, **whole)


def _chain(
    value: Any, lhs: Any, arrays: dict[str, Array], extents: dict[str, int]
) -> Chain:
    """The first contraction of two; the second one's lhs is made of it."""
    members = {"lhs", "rhs", "order", "reads", "is_row"}
    is_one = isinstance(value, dict) and value.keys() - {"kept"} == members
    require(is_one, "a chain of other members")
    order = _numbered([n for n in value["order"] if n in extents], extents)
    both = {"lhs": value["lhs"], "rhs": value["rhs"], "init": None}
    reads = frozenset(map(str, value["reads"]))
    is_row = value["is_row"]
    named = reads | {value["lhs"], value["rhs"]}
    is_one = lhs == SCORES and named <= arrays.keys() and isinstance(is_row, bool)
    require(is_one, "a chain of no such array")
    reduced = loop_of_sum(both, arrays, order)
    _check_index(reads, arrays, order.keys())
    scale, total = value.get("kept", ("", ""))
    operands = value["lhs"], value["rhs"]
    return Chain(*operands, reduced, order, reads, is_row, (str(scale), str(total)))


def _check_chain(
    chain: Chain, value: dict[str, Any], arrays: dict[str, Array], reduced: str
) -> None:
    """Nothing is an operand twice, and each sum has loops of its own."""
    others = [value["rhs"], *value["outputs"]]
    is_one = chain.rhs != chain.lhs and chain.reduced != reduced
    is_one &= not any(chain.reduced in arrays[n].strides for n in others)
    require(is_one and value["init"] is None, "a chain of other loops")
    is_one = {chain.lhs, chain.rhs, *chain.reads}.isdisjoint(others)
    require(is_one and not value.get("windows"), "an operand of two contractions")


def _check_kept(
    chain: Chain,
    outputs: dict[str, frozenset[str]],
    arrays: dict[str, Array],
    order: dict[str, int],
) -> None:
    """Values of rows are kept in just the outputs that have no other loops."""
    kept = {*chain.kept} - {""}
    rows = {n for n, one in arrays.items() if one.strides.keys() != order.keys()}
    is_plain = not any(outputs[n] for n in rows) and len(kept) in (0, 2)
    is_plain &= rows == kept and (chain.is_row or not kept)
    require(is_plain, "rows of no such array")


def _windows(
    value: dict[str, Any], arrays: dict[str, Array], operands: set[Any], reduced: str
) -> dict[str, Window]:
    """By operand; columns of what windows see are its neighbours."""
    every = value.get("windows", {}).items()
    found = {str(name): read_window(one, value["extents"]) for name, one in every}
    require(found.keys() <= operands, "a window of no operand")
    own = [arrays[name] for name in found]
    is_next = all(one.strides.get(reduced) == 1 and not one.first for one in own)
    require(is_next, "a window of other columns")
    return found


def _rows(
    value: Any, arrays: dict[str, Array], order: dict[str, int]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Arrays of which rows are read, and their loops; nothing without."""
    if value is None:
        return frozenset(), ()
    is_one = isinstance(value, dict) and value.keys() == {"loops", "arrays"}
    require(is_one, "rows of other members")
    rows = frozenset(map(str, value["arrays"]))
    loops = tuple(str(n) for n in value["loops"] if n in order)
    require(loops != () and rows <= arrays.keys(), "rows of no such array")
    _check_index(rows, arrays, order.keys())
    return rows, loops


def _check_index(
    names: Iterable[str], arrays: dict[str, Array], loops: Set[str]
) -> None:
    """Arrays are indexed by these loops, or by some of them."""
    is_one = all(arrays[name].strides.keys() <= loops for name in names)
    require(is_one, "a loop that ends in a sum")


def outputs_of(
    value: Any,
    arrays: dict[str, Array],
    order: dict[str, int],
    row_loops: Collection[str] = (),
) -> dict[str, frozenset[str]]:
    """By array, those that are read besides; of JSON values.

    An output has each loop, or all but those of rows; so have arrays that are read for
    it at its own index.
    """
    outputs = {str(n): frozenset(map(str, r)) for n, r in value["outputs"].items()}
    named = outputs.keys() | frozenset().union(*outputs.values())
    operands = {value["lhs"], value["rhs"], value["init"]} - {None}
    is_one = outputs != {} and named | operands <= arrays.keys()
    require(is_one, "a statement of no such array")
    _check_index(named | {value["init"]} - {None}, arrays, order.keys())
    for name, read in outputs.items():
        own = arrays[name].strides.keys()
        is_one = own == order.keys() or own == order.keys() - row_loops
        require(is_one, "an output that is no matrix")
        _check_index(read, arrays, own)
    return outputs


def loop_of_sum(value: Any, arrays: dict[str, Array], order: dict[str, int]) -> str:
    """Of the one contraction; NO_SUM where nothing is added."""
    lhs, rhs, init = value["lhs"], value["rhs"], value["init"]
    if lhs is None:
        require(rhs is None and init is None, "not one contraction")
        return NO_SUM
    one, other = arrays[lhs].strides.keys(), arrays[rhs or lhs].strides.keys()
    reduced = (one | other) - order.keys()
    is_in_both = reduced <= one & other and order.keys() <= one | other
    require(len(reduced) == 1 and is_in_both, "not one contraction")
    return reduced.pop()


def _array(
    loops: str, strides: list[int], size: int, *first: int, extents: Any
) -> Array:
    """Elements do not overlap: each stride is at least all that the next ones span."""
    given = zip(loops, map(count, strides), strict=True)
    found = sorted((s, n) for n, s in given if extents[n] != 1)
    span = 1
    for stride, name in found:
        require(stride >= span, "elements that overlap")
        span += stride * (extents[name] - 1)
    require(len(first) < 2, "an array of other members")
    start = count(first[0]) if first else 0
    return Array({n: s for s, n in reversed(found)}, count(size), start)


def _numbered(loops: list[str], extents: dict[str, int]) -> dict[str, int]:
    sizes = [extents[n] for n in loops]
    return {n: math.prod(sizes[i + 1 :]) for i, n in enumerate(loops)}
