"""What a function should compute, as data: steps that each compute one array.

Arrays have names: that of a parameter of the function, or of a step's `out`. A name has
one value: steps that read a parameter come before the step whose `out` is that name.
`maps` says which loops index each operand, as einsum does: "mk,kn->mn"; "." is index 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, TypeVar

from alcop_mlir import extents
from alcop_mlir.codec import Tagged
from alcop_mlir.codec_forms import Matches, OneOf, Range, shown
from alcop_mlir.element_types import ROUNDED_INPUTS
from alcop_mlir.errors import ConfigError
from alcop_mlir.extents import Extent
from alcop_mlir.frozen import frozen
from alcop_mlir.reference import expressions
from alcop_mlir.reference.expressions import Expression, StoredConstant

PRECISIONS = tuple(ROUNDED_INPUTS.values())
COMBINES = (
    "arith.addf arith.mulf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf "
    "arith.addi arith.maxsi arith.minsi arith.andi arith.ori"
).split()
_TYPES = (*expressions.FLOATS, *expressions.INTEGERS)
_Count = Annotated[int, Range(0)]
Size = _Count | str  # a number, or the name of a size known when arrays are given
_Dtype = Annotated[str, OneOf(_TYPES)]
_Maps = Annotated[str, Matches(r"[A-Za-z.]*(,[A-Za-z.]*)*->[A-Za-z]*")]


class _Step:
    """What all steps have."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that the step uses, in the order of its fields."""
        given = [getattr(self, field, None) for field in _READ_FIELDS]
        several = [one for one in given if isinstance(one, tuple)]
        single = [one for one in given if isinstance(one, str)]
        return (*(name for names in several for name in names), *single)


@frozen
class Einsum(_Step):
    """`out = einsum(maps, lhs, rhs)`, plus the array named `init` if there is one.

    precision: what the kernel rounds lhs and rhs to before it multiplies, if it does
    dtype:     of `out`
    `sums`:    the accumulator type, which is rounded to it; tensor cores support f32
               and i32 only
    """

    lhs: str
    rhs: str
    out: str
    maps: _Maps
    init: str | None = None
    precision: Annotated[str, OneOf(PRECISIONS)] | None = None
    dtype: _Dtype = "f32"
    sums: _Dtype = "f32"


@frozen
class Map(_Step):
    """`out = expression(inputs)` for each element of an array of `shape`."""

    inputs: tuple[str, ...]
    maps: _Maps
    out: str
    expression: Expression
    shape: tuple[Extent, ...]


@frozen
class Reduction(_Step):
    """`out` is `expression(inputs)` combined over the loops that do not index it.

    combine: the combining op; it starts from the array `init` if there is one
    dtype:   the type that it computes in
    """

    inputs: tuple[str, ...]
    maps: _Maps
    out: str
    expression: Expression
    combine: Annotated[str, OneOf(COMBINES)]
    dtype: _Dtype
    init: str | None = None


@frozen
class Fold(_Step):
    """`out` is what is left of some numbers after loops that do not index it.

    As where the largest element is found, and its index. In each iteration, outer loops
    first, all of the numbers are computed anew, from elements and the numbers before.

    starts:      arrays of the numbers before all loops, indexed as `out` is
    order:       the loops that do not index `out`, outer ones first
    expressions: each number anew; arguments are elements of the inputs and, numbered
                 after these, the numbers before
    result:      which of the numbers `out` is
    """

    inputs: tuple[str, ...]
    starts: tuple[str, ...]
    maps: _Maps
    order: Annotated[str, Matches(r"[A-Za-z]*")]
    out: str
    expressions: tuple[Expression, ...]
    result: _Count


@frozen
class Iota(_Step):
    """`out` has the numbers 0, 1, 2, ..., as many as its size."""

    out: str
    size: Extent


@frozen
class Concat(_Step):
    """`out` has the inputs one after the other along a dimension."""

    inputs: tuple[str, ...]
    out: str
    dimension: _Count


@frozen
class Reshape(_Step):
    """`out` has the elements of `source` in the same order."""

    source: str
    out: str
    shape: tuple[Extent, ...]


@frozen
class Slice(_Step):
    """`out` is a part of `source`: per dimension an offset, a size and a stride."""

    source: str
    out: str
    offsets: tuple[Extent, ...]
    sizes: tuple[Extent, ...]
    strides: tuple[_Count, ...]


@frozen
class Insert(_Step):
    """`out` is `target` with `source` instead of the elements of a `Slice`."""

    source: str
    target: str
    out: str
    offsets: tuple[Extent, ...]
    sizes: tuple[Extent, ...]
    strides: tuple[_Count, ...]


@frozen
class WindowViews(_Step):
    """`out` is `source` with two dimensions instead of `dimension`.

    The index of that is `position * stride + tap * dilation + first`, as in
    convolutions; without taps there is one dimension, of positions.
    """

    source: str
    out: str
    dimension: _Count
    positions: Extent
    stride: int
    taps: Extent | None
    dilation: int
    first: int = 0


@frozen
class ScatteredViews(WindowViews):
    """The other way round: `out` has for each position and tap what is moved there.

    Its element is that of index `(position - tap * dilation - first) / stride`, and
    zero where `source` has no such element.
    """


@frozen
class Pad(_Step):
    """`out` is `source` with equal elements around it: per dimension, how many."""

    source: str
    out: str
    low: tuple[Extent, ...]
    high: tuple[Extent, ...]
    value: StoredConstant


@frozen
class Gather(_Step):
    """`out` has elements of `source` at indices that are computed.

    inputs:  arrays that indices are computed from
    maps:    the loops of each input and of `out`
    indices: one per dimension of `source`; arguments are elements of the inputs and,
             numbered after these, the loops of `out`
    shape:   of `out`
    """

    source: str
    inputs: tuple[str, ...]
    maps: _Maps
    out: str
    indices: tuple[Expression, ...]
    shape: tuple[Extent, ...]


Step = Annotated[
    Einsum
    | Map
    | Reduction
    | Fold
    | Iota
    | Concat
    | Reshape
    | Slice
    | Insert
    | WindowViews
    | ScatteredViews
    | Pad
    | Gather,
    Tagged(
        "op",
        {
            "contraction": Einsum,
            "map": Map,
            "reduction": Reduction,
            "fold": Fold,
            "iota": Iota,
            "concat": Concat,
            "reshape": Reshape,
            "slice": Slice,
            "insert": Insert,
            "windows": WindowViews,
            "scattered": ScatteredViews,
            "pad": Pad,
            "gather": Gather,
        },
    ),
]
_StepT = TypeVar("_StepT", bound=Step)
_REPEATED = re.compile(r"([A-Za-z]).*\1")  # a loop that occurs twice
_READ_FIELDS = ("inputs", "lhs", "rhs", "source", "target", "init", "starts")
_EXTENT_FIELDS = (
    "shape",
    "offsets",
    "sizes",
    "low",
    "high",
    "size",
    "positions",
    "taps",
)


def operand_maps(
    step: Einsum | Map | Reduction | Fold | Gather,
) -> tuple[list[str], str]:
    """The loops of each operand, and of `out`."""
    operands, out = step.maps.split("->")
    is_empty = isinstance(step, Map | Gather) and not step.inputs
    return ([] if is_empty else operands.split(",")), out


def renamed(step: _StepT, names: Mapping[str, str]) -> _StepT:
    """`step` with some arrays renamed."""
    changes: dict[str, Any] = {"out": names.get(step.out, step.out)}
    for field in fields(step):
        given = getattr(step, field.name)
        if field.name in _READ_FIELDS and given is not None:
            is_one = isinstance(given, str)
            new = [names.get(name, name) for name in ([given] if is_one else given)]
            changes[field.name] = new[0] if is_one else tuple(new)
    return replace(step, **changes)


def with_sizes(step: _StepT, sizes: Mapping[str, int]) -> _StepT:
    """`step` with numbers for the sizes named there."""
    changes: dict[str, Any] = {}
    for field in _EXTENT_FIELDS:
        given = getattr(step, field, None)
        if isinstance(given, tuple):
            changes[field] = extents.known(given, sizes)
        elif given is not None:
            (changes[field],) = extents.known((given,), sizes)
    return replace(step, **changes)


def _extents(step: Step) -> Iterator[Extent]:
    """All that sizes may tell."""
    for field in _EXTENT_FIELDS:
        given = getattr(step, field, ())
        if isinstance(given, tuple):
            yield from given
        elif given is not None:
            yield given


def known(shape: Iterable[Size], sizes: Mapping[str, int]) -> tuple[Size, ...]:
    """`shape` with numbers for the sizes named there."""
    return tuple(sizes.get(n, n) if isinstance(n, str) else n for n in shape)


def check(steps: Iterable[Step], arrays: Iterable[str], sizes: Collection[str]) -> None:
    """ConfigError where what one step says does not fit the rest of it, or of them.

    arrays, sizes: names of the function's parameters, and of their sizes
    """
    given = set(arrays)
    for step in steps:
        if isinstance(step, Einsum | Map | Reduction | Fold | Gather):
            _check_maps(step)
        if isinstance(step, Slice | Insert):
            _check_ranks(step)
        for name in step.reads:
            if name not in given:
                raise ConfigError(f"reference: unknown array {shown(name)}")
        if isinstance(step, Pad) and len(step.low) != len(step.high):
            raise ConfigError("reference: 'low' and 'high' of different ranks")
        for size in (name for one in _extents(step) for name in extents.names(one)):
            if size not in sizes:
                raise ConfigError(f"reference: unknown size {shown(size)}")
        given.add(step.out)


def _check_maps(step: Einsum | Map | Reduction | Fold | Gather) -> None:
    operands, out = operand_maps(step)
    inputs = 2 if isinstance(step, Einsum) else len(step.inputs)
    if len(operands) != inputs or any(map(_REPEATED.search, (*operands, out))):
        raise ConfigError(f"reference: 'maps' is {shown(step.maps)}")
    read = {loop for one in operands for loop in one} - {"."}
    if isinstance(step, Map | Gather):
        if not read <= set(out) or len(step.shape) != len(out):
            kind = "map" if isinstance(step, Map) else "gather"
            raise ConfigError(f"reference: 'maps' is {shown(step.maps)} in a {kind}")
    elif not set(out) <= read:
        raise ConfigError(f"reference: {shown(step.maps)} has a loop of 'out' only")
    if isinstance(step, Einsum):
        return
    given, computed = inputs, ()
    match step:
        case Gather():
            given, computed = inputs + len(out), step.indices
        case Fold():
            given, computed = inputs + len(step.starts), step.expressions
            _check_fold(step, read - set(out))
        case _:
            computed = (step.expression,)
    for expression in computed:
        expressions.check(expression)
        used = expressions.arguments(expression)
        if used and max(used) >= given:
            raise ConfigError(f"reference: argument {max(used)} of {given} inputs")


def _check_fold(step: Fold, folded: set[str]) -> None:
    if sorted(step.order) != sorted(folded):
        raise ConfigError(f"reference: 'order' is {shown(step.order)} in a fold")
    if not step.result < len(step.expressions) == len(step.starts):
        raise ConfigError("reference: 'expressions' and 'starts' of a fold do not fit")


def _check_ranks(step: Slice | Insert) -> None:
    if len({len(step.offsets), len(step.sizes), len(step.strides)}) != 1:
        raise ConfigError("reference: offsets, sizes and strides of different ranks")
