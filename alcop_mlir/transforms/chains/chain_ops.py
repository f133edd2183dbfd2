"""Builders of a chain as linalg ops with fixed loops, one op for each of its roles.

Loops are those of the batch, then m and n, m, n and k, m, d and n, or m and d. Floats
are f32 but for what is multiplied. Each op has its role in `alcop.chain`, by which
alcop-tile-chains finds it; the first one also says how many loops of a batch all have,
what the maximum of a row starts from, and the bounds of columns with weights:

    "scores"   Q times K, added up along k
    "elements" what is computed of the scores, of indices and of inputs
    "maximum"  of rows of these
    "weights"  of elements and maxima
    "total"    of rows of weights
    "contracted": weights times V, added up along n
    "result"   of that, totals and maxima

Where no row is reduced there are no "elements", "maximum" and "total", and "weights"
are computed as elements are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.chains.chains import Chain
from alcop_mlir.analysis.chains.elements import Element
from alcop_mlir.analysis.chains.indices import OPEN, Index, Indices
from alcop_mlir.analysis.chains.operands import Matrix
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.dialects import alcop
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number, product, shape, values
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, size_of

Body = Callable[[Sequence[Any]], Any]  # of the arguments, with that of the output


@dataclass
class ChainOps:
    """Builds the ops of a chain at the current insertion point.

    sizes:   of the loops
    tensors: what is built for scores, elements, reductions and contractions
    """

    chain: Chain
    sizes: Mapping[int, Number]
    tensors: dict[Element, Any] = field(default_factory=dict)

    def build(self, target: ir.Value) -> Any:
        """All ops; what they write to `target`, with a dimension per loop."""
        chain = self.chain
        scores = (*chain.batch, chain.m, chain.n)
        rows = (*chain.batch, chain.m)
        loops = (*chain.batch, chain.m, chain.d)
        self._contraction("scores", chain.scores, (*scores, chain.k), scores)
        if chain.maximum is not None:
            if chain.elements is not chain.scores:
                self._map("elements", chain.elements, scores)
            self._reduction("maximum", chain.maximum, scores, rows)
        self._map("weights", chain.weights, scores)
        for one in chain.totals:
            self._reduction("total", one, scores, rows)
        self._contraction("contracted", chain.contracted, (*loops, chain.n), loops)
        return self._map("result", chain.result.element, loops, target)

    def _contraction(
        self, role: str, made: Element, loops: Sequence[int], kept: Sequence[int]
    ) -> None:
        chain = self.chain
        operands = [chain.queries, chain.keys]
        if role == "contracted":
            weights = Matrix(
                self.tensors[chain.weights],
                _each((*chain.batch, chain.m, chain.n)),
            )
            operands = [weights, chain.values]
        narrow = chain.values.value.type.element_type

        def body(arguments: Sequence[ir.Value]) -> Any:
            one, other, total = arguments
            if one.type != narrow:
                one = arith.truncf(narrow, one)
            wide = [arith.extf(total.type, each) for each in (one, other)]
            return arith.addf(total, arith.mulf(*wide))

        self.tensors[made] = self._generic(
            role, operands, self._filled(kept, 0.0), loops, _each(kept), body
        )

    def _reduction(
        self, role: str, made: Element, loops: Sequence[int], kept: Sequence[int]
    ) -> None:
        combine, start = made.detail
        (term,) = made.operands
        source = Matrix(self.tensors[term], _each(loops))

        def body(arguments: Sequence[ir.Value]) -> Any:
            kinds = [arguments[-1].type]
            return ir.Operation.create(combine, kinds, list(arguments)).result

        self.tensors[made] = self._generic(
            role, [source], self._filled(kept, start), loops, _each(kept), body
        )

    def _map(
        self,
        role: str,
        made: Element,
        loops: Sequence[int],
        target: ir.Value | None = None,
    ) -> Any:
        known = dict(self.tensors)
        leaves = found_leaves(made, known)
        matrices = [self._leaf(one, known) for one in leaves]
        element = ir.F32Type.get() if target is None else target.type.element_type
        output = self._empty(loops, element) if target is None else target

        def body(arguments: Sequence[ir.Value]) -> Any:
            given = dict(zip(leaves, arguments, strict=False))
            return _narrowed(scalar(made, given, loops, self.chain.extents), element)

        order = _each(loops)
        if target is not None:
            order = self.chain.result.indices
        self.tensors[made] = self._generic(role, matrices, output, loops, order, body)
        return self.tensors[made]

    def _leaf(self, leaf: Element, known: Mapping[Element, ir.Value]) -> Matrix:
        if leaf.name == "input":
            return Matrix(*leaf.detail)
        chain = self.chain
        of_columns = {chain.scores: chain.n, chain.elements: chain.n}
        column = {**of_columns, chain.weights: chain.n, chain.contracted: chain.d}
        loops = [*chain.batch, chain.m]
        loops += [column[leaf]] if leaf in column else []
        return Matrix(known[leaf], _each(loops))

    def _generic(
        self,
        role: str,
        inputs: Sequence[Matrix],
        output: ir.Value,
        loops: Sequence[int],
        kept: Indices,
        body: Body,
    ) -> Any:
        read = [self._with_loops(one) for one in inputs]
        maps = [_map_of(loops, _apart(one.indices)) for one in inputs]
        maps.append(_map_of(loops, _apart(kept)))
        used = {loop for index in kept for loop in index}
        reductions = [n for n, loop in enumerate(loops) if loop not in used]
        op = generic_on_tensors(read, [output], maps, reductions)
        mark = {"role": role, **(self._mark() if role == "scores" else {})}
        op.attributes[alcop.CHAIN] = alcop.to_attribute(mark)
        kinds = [one.type.element_type for one in (*read, output)]
        here = ir.Location.current
        block = op.regions[0].blocks.append(*kinds, arg_locs=[here] * len(kinds))
        with ir.InsertionPoint(block):
            linalg.YieldOp([body(list(block.arguments))])
        return op.results[0]

    def _mark(self) -> dict[str, Any]:
        """What tile code has to know of the chain."""
        chain = self.chain
        known = {
            "batch": len(chain.batch),
            "start": None if chain.maximum is None else chain.maximum.detail[1],
            "scale": chain.scale,
            "first": chain.columns.first,
            "last": chain.columns.last,
        }
        return {name: value for name, value in known.items() if value is not None}

    def _with_loops(self, matrix: Matrix) -> Any:
        """The tensor, with a dimension for each loop."""
        return with_loops(matrix.value, matrix.indices, self.sizes)

    def _empty(self, loops: Sequence[int], element: ir.Type) -> Any:
        return tensor.empty([self.sizes[one] for one in loops], element)

    def _filled(self, loops: Sequence[int], number: float) -> Any:
        kind = ir.F32Type.get()
        start = arith.constant(kind, ir.FloatAttr.get(kind, number))
        return linalg.fill(start, outs=[self._empty(loops, kind)])


def found_leaves(element: Element, known: Mapping[Element, ir.Value]) -> list[Element]:
    """What an expression is computed of: known elements, and inputs; each once."""
    found: dict[Element, None] = {}

    seen: set[Element] = set()

    def visit(one: Element) -> None:
        if one in seen:
            return
        seen.add(one)
        if one in known or one.name == "input":
            found[one] = None
        for operand in () if one in known else one.operands:
            visit(operand)

    visit(element)
    return list(found)


def scalar(
    element: Element,
    known: dict[Element, ir.Value],
    loops: Sequence[int],
    extents: Mapping[int, int],
) -> Any:
    """Build the code of an expression in a body; elements in `known` are given."""
    made: dict[Element, Any] = {}

    def of(one: Element) -> Any:
        if one not in made:
            made[one] = build_one(one)
        return made[one]

    def build_one(one: Element) -> Any:
        kind = ir.Type.parse(one.type)
        if one in known:
            return _widened(known[one], kind)
        if one.name == "constant":
            return arith.constant(kind, _attribute(kind, one.detail))
        if one.name == "index":
            return arith.index_cast(kind, _number(one.detail, loops, extents))
        operands = [of(operand) for operand in one.operands]
        return ir.Operation.create(one.name, [kind], operands, dict(one.detail)).result

    return of(element)


def _number(index: Index, loops: Sequence[int], extents: Mapping[int, int]) -> Any:
    """The number whose digits the loops of an index are."""
    if not index:
        return build.index(0)
    *outer, last = index
    at = linalg.IndexOp(loops.index(last)).result
    if not outer:
        return at
    before = _number(tuple(outer), loops, extents)
    return build.add(build.mul(before, extents[last]), at)


def loop_sizes(chain: Chain) -> dict[int, Number]:
    """The size of each loop: a number, or the size of an operand's dimension."""
    found: dict[int, Number] = {}
    for matrix in (chain.queries, chain.keys, chain.values):
        for number, index in enumerate(matrix.indices):
            if len(index) == 1 and chain.extents[index[0]] == OPEN:
                found[index[0]] = size_of(matrix.value, number)
    return {**chain.extents, **found}


def with_loops(value: ir.Value, indices: Indices, sizes: Mapping[int, Number]) -> Any:
    """A tensor whose dimensions are indexed by one loop each, or by none."""
    if all(len(index) < 2 for index in indices):
        return value
    apart = [sizes[index[0]] if index else 1 for index in _apart(indices)]
    kind = ir.RankedTensorType.get(shape(apart), value.type.element_type)
    return tensor.expand_shape(
        kind, value, _groups(indices), values(apart), shape(apart)
    )


def full_sizes(indices: Indices, sizes: Mapping[int, Number]) -> list[Number]:
    """The size of each dimension that is indexed by these loops."""
    return [product(sizes[loop] for loop in index) for index in indices]


def without_loops(value: ir.Value, indices: Indices, kind: ir.Type) -> Any:
    """The tensor with such dimensions as `kind`, whose indices are given."""
    if all(len(index) < 2 for index in indices):
        return value
    return tensor.collapse_shape(kind, value, _groups(indices))


def _each(loops: Sequence[int]) -> Indices:
    return tuple((one,) for one in loops)


def _apart(indices: Indices) -> Indices:
    """An index for each loop, and for each dimension of extent 1."""
    return tuple(
        (loop,) if loop is not None else ()
        for index in indices
        for loop in (index or (None,))
    )


def _groups(indices: Indices) -> list[list[int]]:
    groups, first = [], 0
    for index in indices:
        count = max(1, len(index))
        groups.append(list(range(first, first + count)))
        first += count
    return groups


def _map_of(loops: Sequence[int], indices: Sequence[Sequence[int]]) -> Any:
    numbers = [loops.index(index[0]) if index else None for index in indices]
    return build.loop_map(len(loops), numbers).value


def _widened(value: ir.Value, kind: ir.Type) -> Any:
    """An element of memory as one of the type that it is computed in."""
    if value.type == kind:
        return value
    is_float = isinstance(kind, ir.FloatType)
    return (arith.extf if is_float else arith.extsi)(kind, value)


def _narrowed(value: ir.Value, element: ir.Type) -> Any:
    return value if value.type == element else arith.truncf(element, value)


def _attribute(kind: ir.Type, number: float) -> Any:
    if isinstance(kind, ir.FloatType):
        return ir.FloatAttr.get(kind, number)
    return ir.IntegerAttr.get(kind, int(number))
