"""Which values of a function's reference its arrays hold, as kernels run one by one.

The reference computes values of names that arrays do not have: an intermediate array
holds one of them, or another shape of one, once a kernel has stored it there. Kernels
of one contraction say what they store (`statements`). Of others it is not known: an
array that they may have stored to holds whatever is asked of it first, if that has its
type and its number of elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Constant, Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.indices import Linear, Shape
from alcop_mlir.manifest.promises import polynomial
from alcop_mlir.polynomials import Polynomial, constant
from alcop_mlir.reference.expressions import Operation
from alcop_mlir.reference.steps import (
    Concat,
    Einsum,
    Fold,
    Gather,
    Iota,
    Map,
    Pad,
    Reduction,
    Reshape,
    ScatteredViews,
    Slice,
    Step,
    WindowViews,
    operand_maps,
)

_NOTHING: Mapping[str, str] = {}
Array = Parameter | Intermediate | Constant
Order = tuple[int, ...]  # of dimensions


class Operand(NamedTuple):
    """An array as it is read: of that shape, by a loop for each dimension.

    strides: elements between neighbours; None where these lie as the array says
    first:   the element where all loops are in their first turns
    own, indices: where windows are moved over it, its own shape, and what is read
                  there; it is 0 outside
    """

    array: str
    shape: Shape
    loops: str
    strides: tuple[int, ...] | None = None
    first: int = 0
    own: Shape = ()
    indices: tuple[Linear, ...] = ()

    def ordered(self, order: Order) -> Operand:
        """With dimensions in that order, of an array that has them so."""
        shape = tuple(self.shape[n] for n in order)
        return Operand(self.array, shape, "".join(self.loops[n] for n in order))


class Values:
    """Those of one function: `steps` make them, arrays hold some from the beginning."""

    def __init__(self, function: Function):
        self.function = function
        self.arrays: dict[str, Array] = {one.name: one for one in _arrays(function)}
        self.steps: dict[str, Step] = {}
        self.shapes: dict[str, Shape] = {n: a.shape for n, a in self.arrays.items()}
        self.dtypes = {name: one.dtype for name, one in self.arrays.items()}
        for step in function.reference:
            self.steps[step.out] = step
            shape = self._shape(step)
            if shape is not None:
                self.shapes.setdefault(step.out, shape)
            dtype = self._dtype(step)
            if dtype:
                self.dtypes.setdefault(step.out, dtype)
        self._kinds = {name: self._kind(name) for name in self.shapes}
        steps = function.reference
        self.contractions = [one for one in steps if isinstance(one, Einsum)]
        self._readers: dict[str, list[Step]] = {}
        for step in function.reference:
            for name in () if isinstance(step, Einsum) else step.reads:
                self._readers.setdefault(name, []).append(step)
        free = [one.out for one in function.reference if not one.reads]
        self._numbers = self._made_of(free, set())

    @cached_property
    def chained(self) -> list[tuple[Einsum, Einsum]]:
        """Contractions of which the second multiplies what is made of the first."""
        makes = {one.out: one for one in self.contractions}
        found: list[tuple[Einsum, Einsum]] = []
        for step in self.contractions:
            waiting, known = [step.lhs], set[str]()
            while waiting:
                name = waiting.pop()
                if name in makes:
                    found.append((makes[name], step))
                elif name in self.steps and name not in known:
                    known.add(name)
                    waiting += self.steps[name].reads
        return list(dict.fromkeys(found))

    def made_of(self, names: Iterable[str]) -> set[str]:
        """Values that are made of these and of numbers, without a contraction."""
        return self._made_of(names, self._numbers)

    def _made_of(self, names: Iterable[str], known: set[str]) -> set[str]:
        found, waiting = {*known}, [*names]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            readers = self._readers.get(name, ())
            waiting += [one.out for one in readers if found.issuperset(one.reads)]
        return found

    def _kind(self, name: str) -> tuple[Polynomial, str | None]:
        """How many elements of which type it has."""
        return elements(self.shapes[name]), self.dtypes.get(name)

    def root(self, name: str) -> str:
        """The value of which this one is another shape."""
        return name if name in self.arrays else self._source(name)

    def _source(self, name: str) -> str:
        step = self.steps.get(name)
        while isinstance(step, Reshape):
            name = step.source
            step = None if name in self.arrays else self.steps.get(name)
        return name

    def is_shape_of(self, name: str, other: str) -> bool:
        """Whether a value is another shape of the other one."""
        return self.steps.get(name) is not None and self._source(name) == other

    def is_alike(self, name: str, other: str) -> bool:
        """Whether two have the same type, and as many elements as is known."""
        one = self._kinds.get(name)
        return one is not None and one == self._kinds.get(other)

    def _shape(self, step: Step) -> Shape | None:
        if isinstance(step, Map | Gather | Reshape):
            return step.shape
        if isinstance(step, Slice):
            return step.sizes
        if isinstance(step, Iota):
            return (step.size,)
        if isinstance(step, Concat):
            return self._of_concat(step)
        if isinstance(step, WindowViews | Pad):
            return self._moved(step)
        if isinstance(step, Einsum):
            names = (step.lhs, step.rhs)
        elif isinstance(step, Reduction | Fold):
            names = step.inputs
        else:
            return None
        inputs, out = operand_maps(step)
        sizes: dict[str, Extent] = {}
        for name, loops in zip(names, inputs, strict=True):
            if name not in self.shapes or len(self.shapes[name]) != len(loops):
                return None
            sizes.update(zip(loops, self.shapes[name], strict=True))
        if not set(out) <= sizes.keys():
            return None
        return tuple(sizes[loop] for loop in out)

    def _of_concat(self, step: Concat) -> Shape | None:
        shapes = [self.shapes[name] for name in step.inputs if name in self.shapes]
        each = [one[step.dimension] for one in shapes]
        if len(shapes) < len(step.inputs) or not all(isinstance(n, int) for n in each):
            return None
        length = sum(n for n in each if isinstance(n, int))
        at = step.dimension
        return (*shapes[0][:at], length, *shapes[0][at + 1 :])

    def _moved(self, step: WindowViews | Pad) -> Shape | None:
        """Of what windows see, or of an array with numbers around it."""
        shape = self.shapes.get(step.source)
        if shape is None or isinstance(step, ScatteredViews):
            return None
        if isinstance(step, WindowViews):
            taps = () if step.taps is None else (step.taps,)
            at = step.dimension
            return (*shape[:at], step.positions, *taps, *shape[at + 1 :])
        every = [*shape, *step.low, *step.high]
        if not all(isinstance(one, int) for one in every):
            return None
        return tuple(map(sum, zip(shape, step.low, step.high, strict=True)))  # type: ignore[arg-type]

    def _dtype(self, step: Step) -> str:
        if isinstance(step, Einsum | Reduction):
            return step.dtype
        if isinstance(step, Reshape | Slice | WindowViews | Pad):
            return self.dtypes.get(step.source, "")
        if isinstance(step, Concat):
            return self.dtypes.get(step.inputs[0], "")
        if isinstance(step, Map):
            if isinstance(step.expression, Operation):
                return step.expression.dtype
            return self.dtypes.get(step.inputs[0], "") if step.inputs else ""
        return ""


class Held:
    """What arrays hold at one point: any of these values, all of them made of the same
    elements; nothing is known of an intermediate array that is not there.

    parts: the chain that the kernel before has made in parts
    """

    parts: Any = None

    def __init__(self, values: Values):
        self.values = values
        self._roots: dict[str, frozenset[str]] = {
            name: frozenset((name,))
            for name, one in values.arrays.items()
            if not isinstance(one, Intermediate)
        }
        self._stored_to: set[str] = set()
        self._orders: dict[str, tuple[Shape, Order]] = {}

    def fork(self) -> Held:
        """The same, which changes apart."""
        found = copy(self)
        found._roots = dict(self._roots)
        found._stored_to = set(self._stored_to)
        found._orders = dict(self._orders)
        return found

    def store(self, array: str, names: Collection[str], order: Order = ()) -> None:
        """An array holds one of these values.

        order: which dimension of the value each of the array is, if it is another one
        """
        self._roots[array] = frozenset(map(self.values.root, names))
        self._stored_to.add(array)
        self._orders.pop(array, None)
        if order != tuple(range(len(order))):
            self._orders[array] = self.values.shapes[next(iter(names))], order

    def drop(self, array: str) -> None:
        """An array that there is no more."""
        self._roots.pop(array, None)
        self._stored_to.discard(array)
        self._orders.pop(array, None)

    def order(self, array: str, shape: Shape) -> Order | None:
        """Which dimension of a value of that shape each of an array is; () where it
        has them as they are, None where that is not known.
        """
        own, order = self._orders.get(array, (shape, ()))
        return order if own == shape else None

    def held_by(self, array: str) -> list[str]:
        """The values that an array may hold; nothing where nobody knows."""
        return sorted(self._roots.get(array, ()))

    @property
    def key(self) -> object:
        """The same where as much is known of all arrays."""
        orders = frozenset(self._orders.items())
        return frozenset(self._roots.items()), frozenset(self._stored_to), orders

    def forget(self, arrays: Collection[str]) -> None:
        """A kernel stores to one of these, nobody knows what.

        An output of the function is likely, or else an array of which nothing is known
        yet; else it may be any.
        """
        values = self.values
        arrays = [array for array in arrays if array in values.arrays]
        inner = [a for a in arrays if isinstance(values.arrays[a], Intermediate)]
        self._stored_to.update(inner)
        outputs = [a for a in arrays if a not in inner and a in values.steps]
        if not outputs and all(array in self._roots for array in inner):
            for array in inner:
                del self._roots[array]

    def made_of(self, arrays: Iterable[str]) -> set[str]:
        """Values that are made of what these arrays are known to hold."""
        roots = (root for a in arrays for root in self._roots.get(a, ()))
        return self.values.made_of(roots)

    def has_guesses(self, arrays: Iterable[str]) -> bool:
        """Whether any of these may hold whatever is asked."""
        return any(a in self._stored_to and a not in self._roots for a in arrays)

    def viewed(self, array: str, shape: Shape, loops: str) -> Operand | None:
        """An array as one of another shape, where its elements lie without gaps."""
        one, order = self.values.arrays[array], self.order(array, shape)
        if order is None:
            return None
        if order:
            return Operand(array, shape, loops).ordered(order)
        is_plain = not isinstance(one, Parameter) or one.strides is None
        return Operand(array, shape, loops) if is_plain or one.shape == shape else None

    def holder(
        self,
        name: str,
        arrays: Collection[str],
        guesses: bool,
        taken: Mapping[str, str] = _NOTHING,
    ) -> str | None:
        """Which of the arrays holds a value; where one is guessed, it does from now on:
        the only one that may, of those of which it is not known.

        taken: arrays that have been read as values, as several may hold either
        """
        root = self.values.root(name)
        every = [a for a in arrays if root in self._roots.get(a, ())]
        every = [a for a in every if taken.get(a, root) == root] or every
        if every or not guesses or self.is_held(name):
            return every[0] if every else None
        open_ = (a for a in arrays if a in self._stored_to and a not in self._roots)
        every = [a for a in open_ if self.fits(a, name)]
        if len(every) != 1:
            return None
        self.store(every[0], (name,))
        return every[0]

    def is_held(self, name: str) -> bool:
        """Whether any array holds a value."""
        root = self.values.root(name)
        return any(root in roots for roots in self._roots.values())

    def fits(self, array: str, name: str) -> bool:
        """Whether a value has the type and the number of elements of an array."""
        return self.values.is_alike(name, array)


def elements(shape: Shape) -> Polynomial:
    """How many a shape has."""
    found = constant(1)
    for extent in shape:
        found = found * polynomial(extent)
    return found


def _arrays(function: Function) -> Iterator[Array]:
    yield from function.parameters
    yield from function.intermediates
    yield from function.constants
