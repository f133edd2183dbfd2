"""Which expression of a chain an element of a tensor is.

`Follower.at` follows an element back through reshapes, transposes, fills, element-wise
ops and reductions of rows, until the elements of the first contraction. What does not
depend on these is read as an input, unless it is computed of indices, and of tensors
that have fewer loops: then it is computed again, as a causal mask is, or a slope per
head times a distance. So is what all rows or all columns share, whatever it is made of,
as what a padding mask adds, if nothing else reads it: a tile has a row or column of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.chains import hidden_rows, integers
from alcop_mlir.analysis.chains.elements import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    LONG,
    MOST,
    NARROW_FLOATS,
    Element,
    Pool,
    within_words,
)
from alcop_mlir.analysis.chains.indices import (
    OPEN,
    Index,
    Indices,
    NotFollowedError,
    source_of_reshape,
)
from alcop_mlir.analysis.ir.loops import defining_op, filled, splat
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.bindings import ir

MAXIMA = ("arith.maximumf", "arith.maxnumf")
SUM = "arith.addf"

_FLOATS = (*NARROW_FLOATS, "f32")
_CONVERSIONS = ("arith.extf", "arith.truncf")  # between floats, which are all f32 here
_FROM_INTEGERS = "arith.sitofp"
# Of a boolean: 0 or 1.
_FROM_BOOLEANS = {"arith.uitofp": (FLOAT, None), "arith.extui": (INTEGER, (0, 1))}
_COMPUTED = frozenset(
    """
    arith.addf arith.subf arith.mulf arith.divf arith.negf arith.maximumf arith.minimumf
    arith.maxnumf arith.minnumf arith.cmpf arith.cmpi arith.select arith.andi arith.ori
    arith.xori math.exp math.exp2 math.tanh math.absf math.fma math.sqrt math.rsqrt
    """.split()
)

# Integers below are floats too, as constants are read.
_EXACT = 2**53
# Ops in a row that are computed again of indices; more are read from memory.
_MOST_FOLLOWED = 32


@dataclass
class Follower:
    """Follows elements of one chain.

    extents: of the loops
    row:     the loop along which rows are reduced
    scores:  the result of the first contraction
    reached: the tensors that depend on it
    scores_at: the indices at which the scores are read, the same everywhere
    passed:  ops that elements which depend on scores were followed through
    kept:    loops that tiles have, which are not split: rows and columns first
    """

    extents: dict[int, int]
    row: int
    scores: Any
    reached: set[Any]
    pool: Pool = field(default_factory=Pool)
    scores_at: Indices | None = None
    passed: list[Any] = field(default_factory=list)
    kept: tuple[int, ...] = ()
    _known: dict[Any, Element] = field(default_factory=dict)
    _path: list[Any] = field(default_factory=list)

    def at(self, value: ir.Value, indices: Indices) -> Element:
        """The element of a tensor. NotFollowedError, SplitLoop."""
        key = (value, indices)
        if key not in self._known:
            self._known[key] = self._found(value, indices)
        return self._known[key]

    def _found(self, value: ir.Value, indices: Indices) -> Element:
        if value == self.scores:
            if self.scores_at not in (None, indices):
                raise NotFollowedError("scores of several places are combined")
            self.scores_at = indices
            return self.pool.leaf("scores", FLOAT, None, _loops(indices))
        if value not in self.reached:
            try:
                return self._computed_again(value, indices)
            except NotFollowedError:
                return self._input(value, indices)
        op = defining_op(value)
        assert op is not None  # it depends on the scores
        self.passed.append(op)
        source = source_of_reshape(value, indices, self.extents)
        if source is not None:
            return self.at(*source)
        view = linalg_view(op)
        if view is None:
            raise NotFollowedError(f"'{op.name}' is between the contractions")
        return _Body(self, view, indices, self.at).result()

    def _input(self, value: ir.Value, indices: Indices) -> Element:
        kind, limits = str(value.type.element_type), None
        made = _type(value.type.element_type)
        if kind in integers.BITS and kind != "index":
            limits = integers.limits_of_type(kind)
            made = INTEGER if limits else LONG
        if made is None:
            raise NotFollowedError(f"{kind} elements are combined with the scores")
        return self.pool.leaf("input", made, (value, indices), _loops(indices), limits)

    def _computed_again(self, value: ir.Value, indices: Indices) -> Element:
        """NotFollowedError where it is read from memory."""
        whole = _loops(indices)
        is_line = not {*self.kept[:2]} <= whole

        def follow(one: ir.Value, at: Indices) -> Element:
            if len(self._path) == _MOST_FOLLOWED:
                raise NotFollowedError("is an input")
            self._path.append(one)
            try:
                return self._of_indices(one, at, follow)
            except NotFollowedError:
                is_own = is_line and all(map(_is_read_once, self._path[:-1]))
                if not (is_own or _loops(at) < whole):
                    raise
                return self._input(one, at)
            finally:
                self._path.pop()

        return follow(value, indices)

    def _of_indices(
        self,
        value: ir.Value,
        indices: Indices,
        follow: Callable[[Any, Indices], Element],
    ) -> Element:
        constant = splat(value)
        if constant is not None:
            return self.number(constant, value.type.element_type)
        source = source_of_reshape(value, indices, self.extents)
        if source is not None:
            return follow(*source)
        op = defining_op(value)
        view = None if op is None else linalg_view(op)
        if view is None or view.reductions:
            raise NotFollowedError("is an input")
        return _Body(self, view, indices, follow).result()

    def number(self, number: float, kind: ir.Type) -> Element:
        """A constant. NotFollowedError for types that expressions do not have."""
        name = str(kind)
        if name in _FLOATS:
            return self.pool.constant(number, FLOAT)
        if name == BOOLEAN:
            return self.pool.constant(bool(number), BOOLEAN)
        if name in integers.BITS and abs(number) < _EXACT:
            made = INTEGER if within_words((int(number), int(number))) else LONG
            return self.pool.constant(int(number), made)
        raise NotFollowedError(f"a constant of {name} is read")


def body_of(
    follower: Follower,
    view: LinalgView,
    indices: Indices,
    value: ir.Value,
    element: Element,
) -> Element:
    """What an op makes of `value`, its only input, whose element is known."""

    def follow(asked: ir.Value, _: Indices) -> Element:
        assert asked == value
        return element

    return _Body(follower, view, indices, follow).result()


@dataclass
class _Body:
    """The body of a linalg op, of which one element of the result is followed.

    follow: what is asked for elements of inputs
    """

    follower: Follower
    view: LinalgView
    indices: Indices
    follow: Callable[[Any, Indices], Element]
    _known: dict[Any, Element] = field(default_factory=dict)

    def result(self) -> Element:
        """The element of the op's only result."""
        if len(self.view.outputs) != 1:
            raise NotFollowedError(f"'{self.view.op.name}' has several results")
        (output,) = self.view.outputs
        (result,) = self.view.block.operations[-1].operation.operands
        if not self.view.reductions:
            return self._value(result)
        combine = defining_op(result)
        name = "" if combine is None else combine.name
        own = output.argument
        operands = [] if combine is None else list(combine.operands)
        if name not in (*MAXIMA, SUM, *hidden_rows.COMBINED) or own not in operands:
            raise NotFollowedError("rows are combined by neither maximum nor sum")
        terms = [one for one in operands if one != own]
        if len(terms) != 1 or sum(1 for _ in own.uses) != 1:
            raise NotFollowedError("a reduction reads its result twice")
        start = filled(output.value)
        if start is None:
            raise NotFollowedError("a reduction does not start from a constant")
        term, row = self._value(terms[0]), self.follower.row
        if term.type == BOOLEAN:
            found = hidden_rows.of_maximum(name, term, start, row, self.follower.pool)
            if found is not None:
                return found
        if term.type != FLOAT:
            raise NotFollowedError(f"elements of {term.type} are reduced")
        return self.follower.pool.reduction(term, name, start, row)

    def _loops(self) -> dict[int | None, Index]:
        """The index that each loop of the op is."""
        (output,) = self.view.outputs
        if None in output.loops:
            raise NotFollowedError(f"'{self.view.op.name}' writes at {output.map}")
        found: dict[int | None, Index] = dict(
            zip(output.loops, self.indices, strict=True)
        )
        row = self.follower.row
        if len(self.view.reductions) > 1:
            raise NotFollowedError("several dimensions are reduced at once")
        for loop in self.view.reductions:
            size = self.view.static_size(loop)
            if (OPEN if size is None else size) != self.follower.extents[row]:
                raise NotFollowedError("rows of another length are reduced")
            found[loop] = (row,)
        return found

    def _value(self, value: ir.Value) -> Element:
        if value not in self._known:
            self._known[value] = self._element(value)
        return self._known[value]

    def _element(self, value: ir.Value) -> Element:
        for operand in self.view.inputs:
            if value == operand.argument:
                return self._operand(operand)
        owner = defining_op(value)
        if owner is None:
            raise NotFollowedError("a body reads what its output held")
        constant = splat(value)
        if constant is not None:
            return self.follower.number(constant, value.type)
        if owner.name == "linalg.index":
            index = self._loops()[owner.attributes["dim"].value]
            extents = [self.follower.extents[loop] for loop in index]
            if OPEN in extents[1:]:
                raise NotFollowedError(
                    "an index counts a size that is known at run time only"
                )
            # Open ones fit 32 bits too: so many rows or columns fill a memory.
            extent = MOST if OPEN in extents else math.prod(extents)
            return self.follower.pool.index(index, extent)
        return self._op(owner, value.type)

    def _operand(self, operand: Operand) -> Element:
        if not operand.is_tensor:
            constant = splat(operand.value)
            if constant is None:
                raise NotFollowedError("a number known at run time only is read")
            return self.follower.number(constant, operand.value.type)
        loops = self._loops()
        # A dimension of extent 1 that all of a row share is indexed by 0.
        zero = {n for n, index in enumerate(operand.indices) if index.constant == 0}
        if any(one is None and n not in zero for n, one in enumerate(operand.loops)):
            raise NotFollowedError(f"'{self.view.op.name}' reads at {operand.map}")
        indices = tuple(() if one is None else loops[one] for one in operand.loops)
        return self.follow(operand.value, indices)

    def _op(self, op: ir.Operation, kind: ir.Type) -> Element:
        operands = tuple(self._value(one) for one in op.operands)
        attributes = {key: op.attributes[key] for key in op.attributes}
        made = None
        if len(op.results) == 1:
            made = self._made(op.name, operands, kind, attributes)
        if made is None:
            raise NotFollowedError(f"'{op.name}' of {kind} is between the contractions")
        return made

    def _made(
        self,
        name: str,
        operands: tuple[Element, ...],
        kind: ir.Type,
        attributes: dict[str, Any],
    ) -> Element | None:
        """What an op makes of elements; None for one that expressions do not have."""
        pool, made = self.follower.pool, _type(kind)
        if name in _CONVERSIONS and made == FLOAT:
            return operands[0]
        if operands and operands[0].type == BOOLEAN and name in _FROM_BOOLEANS:
            made, limits = _FROM_BOOLEANS[name]
            return pool.op(name, operands, made, limits=limits)
        if operands and integers.is_integer(operands[-1]):
            if name == _FROM_INTEGERS and made == FLOAT:
                return pool.op(name, operands, made)
            if len(operands) == 1 and (
                found := integers.cast(pool, name, operands[0], str(kind))
            ):
                return found
            attributes.pop("overflowFlags", None)  # of another type
            return integers.computed(pool, name, operands, str(kind), attributes)
        # Bits of masks may be combined.
        if name not in _COMPUTED or made is None:
            return None
        return pool.op(name, operands, made, attributes)


def _type(kind: ir.Type) -> str | None:
    name = str(kind)
    return FLOAT if name in _FLOATS else name if name == BOOLEAN else None


def _is_read_once(value: ir.Value) -> bool:
    return len(list(value.uses)) == 1


def _loops(indices: Indices) -> frozenset[int]:
    return frozenset(loop for index in indices for loop in index)
