"""How much of a function's results one element of an array may change.

A NaN or an infinity in A reaches a row of the result of a matmul, one in B a column,
and both what is computed from these. A bound, from shapes alone: of each dimension of
each array, the largest share of its indices that the element may reach.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import takewhile

from alcop_mlir.reference.expressions import Argument, arguments
from alcop_mlir.reference.index_arrays import origins
from alcop_mlir.reference.steps import (
    Concat,
    Einsum,
    Fold,
    Gather,
    Insert,
    Map,
    Pad,
    Reduction,
    Reshape,
    Slice,
    Step,
    WindowViews,
    operand_maps,
)

_Shape = tuple[int, ...]
_Shares = tuple[float, ...]  # one per dimension


def reach(
    steps: Iterable[Step],
    shapes: Mapping[str, _Shape],
    name: str,
    results: Iterable[str],
) -> float:
    """The largest share of one of `results` that an element of `name` may change.

    shapes: of the arrays that steps read and of those that they make
    Arrays of indices that nothing computes are those that `index_arrays.draw` makes.
    """
    steps = tuple(steps)
    drawn = {*shapes} - {step.out for step in steps}
    drawn |= {out for out, name in origins(steps).items() if name in drawn}
    reached = {name: tuple(1 / max(1, size) for size in shapes[name])}
    for step in steps:
        found = list(_reached(step, reached, shapes, drawn))
        reached.pop(step.out, None)
        if found:
            # Two ways reach at most the rows of both, and the columns of both.
            ways = zip(*found, strict=True)
            reached[step.out] = tuple(min(1.0, sum(way)) for way in ways)
    return max((math.prod(reached.get(one, (0.0,))) for one in results), default=0.0)


def _reached(
    step: Step,
    reached: Mapping[str, _Shares],
    shapes: Mapping[str, _Shape],
    drawn: Collection[str],
) -> Iterator[_Shares]:
    """What the step's result has of each of its operands that are reached."""
    match step:
        case Einsum() | Map() | Reduction() | Fold():
            operands, out = operand_maps(step)
            reads = (step.lhs, step.rhs) if isinstance(step, Einsum) else step.inputs
            for read, own in zip(reads, operands, strict=True):
                if read in reached:
                    share = dict(zip(own, reached[read], strict=True))
                    yield tuple(share.get(loop, 1.0) for loop in out)
            starts = step.starts if isinstance(step, Fold) else ()
            if isinstance(step, Einsum | Reduction) and step.init is not None:
                starts = (step.init,)
            yield from (reached[start] for start in starts if start in reached)
        case Concat():
            for name in step.inputs:
                if name in reached:
                    yield _within(reached[name], shapes[name], shapes[step.out])
        case Reshape():
            if step.source in reached:
                yield _reshaped(
                    reached[step.source], shapes[step.source], shapes[step.out]
                )
        case Slice():
            if step.source in reached:
                yield reached[step.source]
        case Insert():
            yield from (reached[n] for n in (step.target, step.source) if n in reached)
        case WindowViews():
            if step.source in reached:
                shares, axis = reached[step.source], step.dimension
                own = shares[axis] * shapes[step.source][axis]
                positions, taps = shapes[step.out][axis], ()
                if step.taps is not None:
                    own, taps = own * shapes[step.out][axis + 1], (1.0,)
                own = min(1.0, own / max(1, positions))
                yield (*shares[:axis], own, *taps, *shares[axis + 1 :])
        case Pad():
            if step.source in reached:
                before, after = shapes[step.source], shapes[step.out]
                yield _within(reached[step.source], before, after)
        case Gather():
            if step.source in reached:
                yield _gathered(step, reached[step.source], shapes, drawn)
            yield from ((1.0,) * len(step.shape) for n in step.inputs if n in reached)


def _within(shares: _Shares, before: _Shape, after: _Shape) -> _Shares:
    """Shares of a part, as those of the whole that it is in."""
    sizes = zip(before, after, strict=True)
    return tuple(
        map(operator.mul, shares, (part / max(1, all_) for part, all_ in sizes))
    )


def _gathered(
    step: Gather,
    shares: _Shares,
    shapes: Mapping[str, _Shape],
    drawn: Collection[str],
) -> _Shares:
    """An element is read as often as the indices name it."""
    own, out = operand_maps(step)
    found = dict.fromkeys(out, 1.0)
    extents = zip(step.indices, shares, shapes[step.source], strict=True)
    for index, share, extent in extents:
        used = arguments(index)
        if isinstance(index, Argument) and index.number >= len(own):
            loop = out[index.number - len(own)]
            found[loop] = min(found[loop], share)
        elif max(used, default=-1) < len(own) and len(used) == 1:
            (number,) = used
            if step.inputs[number] not in drawn:
                continue
            indices = math.prod(shapes[step.inputs[number]])
            times = math.ceil(share * extent) * -(-indices // max(1, extent))
            for loop in own[number].replace(".", ""):
                size = shapes[step.out][out.index(loop)]
                found[loop] = min(found[loop], times / max(1, size))
    return tuple(found[loop] for loop in out)


def _reshaped(shares: _Shares, before: _Shape, after: _Shape) -> _Shares:
    """Dimensions before and after those that are changed keep their shares."""
    first = _same(before, after)
    last = _same(before[first:][::-1], after[first:][::-1])
    end = len(shares) - last
    elements = math.prod(before[first:end]) * math.prod(shares[first:end])
    middle = after[first : len(after) - last]
    changed = tuple(min(1.0, elements / max(1, size)) for size in middle)
    return (*shares[:first], *changed, *shares[end:])


def _same(one: _Shape, other: _Shape) -> int:
    """How many sizes at the beginning are the same."""
    pairs = zip(one, other, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
