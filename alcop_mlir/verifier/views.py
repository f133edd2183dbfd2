"""Where in memory an access is: views of memrefs, as threads compute them.

A value is that of all threads alike, or a list of those of each; None is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import is_workgroup
from alcop_mlir.verifier.made_up import hashed

_BITS = 8  # of a byte
_DYNAMIC_SIZE = 4099  # elements between rows whose number of elements is not known
_SAME = (
    "memref.cast",
    "memref.assume_alignment",
    "memref.memory_space_cast",
    "memref.distinct_objects",
)
Lanes = Any


@dataclass(frozen=True)
class Root:
    """What was allocated, or given: `size` bytes of elements of `unit` bytes each.

    name: the same for the same argument of a kernel before and after a pass
    seed: a number for the name
    """

    name: tuple[Hashable, ...]
    seed: int
    unit: int
    size: int | None
    is_shared: bool
    is_private: bool


@dataclass(frozen=True)
class View:
    """Elements of `width` bytes at `offset` bytes, and so many bytes apart."""

    root: Root
    width: int
    offset: Lanes
    strides: tuple[Lanes, ...]

    def at(self, indices: Sequence[Lanes], threads: int) -> Lanes:
        """The byte of an element."""
        terms = zip(indices, self.strides, strict=True)
        return summed([(self.offset, 1), *terms], threads)


def root_view(
    name: tuple[Hashable, ...], kind: Any, is_private: bool = False
) -> View | None:
    """A view of all of a new root; None for elements that are no whole bytes."""
    width = element_width(kind.element_type)
    if width is None:
        return None
    size = width
    for extent in kind.shape:
        size *= extent
    known = size if kind.has_static_shape else None
    root = Root(name, hashed(name), width, known, is_workgroup(kind), is_private)
    strides = _strides(kind, width)
    return None if strides is None else View(root, width, 0, strides)


def viewed(
    op: Any, source: View | None, value: Callable[[Any], Lanes], threads: int
) -> View | None:
    """What the op, with `source` as its first operand, makes a view of."""
    if source is None:
        return None
    if op.name in _SAME:
        return source
    kind = op.results[0].type
    if op.name == "memref.subview":
        return _subview(op, source, value, threads)
    if op.name == "memref.view":
        width = element_width(kind.element_type)
        strides = None if width is None else _strides(kind, width)
        if width is None or strides is None:
            return None
        offset = summed([(source.offset, 1), (value(op.operands[1]), 1)], threads)
        return View(source.root, width, offset, strides)
    if op.name in ("memref.collapse_shape", "memref.expand_shape"):
        is_static = kind.has_static_shape and op.operands[0].type.has_static_shape
        is_whole = is_static and source.strides == _rows(op.operands[0].type, source)
        return replace(source, strides=_rows(kind, source)) if is_whole else None
    return None


def _rows(kind: Any, view: View) -> tuple[int, ...]:
    """Bytes between elements of a shape without gaps."""
    found, apart = list[int](), view.width
    for extent in reversed(kind.shape):
        found.insert(0, apart)
        apart *= extent
    return tuple(found)


def element_width(kind: Any) -> int | None:
    """Bytes of an element; None where it has none that are whole."""
    if isinstance(kind, ir.IndexType):
        return _BITS
    if not isinstance(kind, ir.IntegerType | ir.FloatType):
        return None
    return kind.width // _BITS if kind.width % _BITS == 0 else None


def lane(value: Lanes, thread: int) -> Any:
    """What a value is in one thread."""
    return value[thread] if type(value) is list else value


def lifted(
    compute: Callable[..., Any], operands: Sequence[Lanes], threads: int
) -> Lanes:
    """Compute for each thread, or once where all have the same operands."""
    if not any(type(one) is list for one in operands):
        return compute(*operands)
    wide = [one if type(one) is list else [one] * threads for one in operands]
    return [compute(*each) for each in zip(*wide, strict=True)]


def summed(terms: Sequence[tuple[Lanes, Lanes]], threads: int) -> Lanes:
    """The sum of pairs, each multiplied; None where one is not known."""
    known, wide = 0, list[tuple[list[Any], Any]]()
    for one, other in terms:
        if one is None or other is None:
            return None
        if type(one) is list:
            wide.append((one, other))
        elif type(other) is list:
            wide.append((other, one))
        else:
            known += one * other
    if not wide:
        return known
    total = [known] * threads
    for lanes, times in wide:
        if type(times) is list or None in lanes:
            total = lifted(_added, [total, lanes, times], threads)
        elif None in total:
            total = lifted(_added, [total, lanes, times], threads)
        else:
            total = [
                so_far + one * times for so_far, one in zip(total, lanes, strict=True)
            ]
    return total


def _added(total: int | None, one: int | None, other: int | None) -> int | None:
    if total is None or one is None or other is None:
        return None
    return total + one * other


def _strides(kind: Any, width: int) -> tuple[int, ...] | None:
    """Bytes; made up where a size or a stride is not known."""
    try:
        numbers, _ = kind.get_strides_and_offset()
    except (RuntimeError, ValueError, ir.MLIRError):
        return None
    found: list[int] = []
    apart = 1
    for number, extent in zip(reversed(numbers), reversed(kind.shape), strict=True):
        is_known = not kind.is_dynamic_stride_or_offset(number)
        stride = number if is_known else apart
        is_sized = extent != ir.ShapedType.get_dynamic_size()
        apart = max(apart, stride) * (extent if is_sized else _DYNAMIC_SIZE)
        found.insert(0, stride * width)
    return tuple(found)


def _subview(
    op: Any, source: View, value: Callable[[Any], Lanes], threads: int
) -> View | None:
    given = iter(list(op.operands)[1:])
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets, sizes, steps = (
        [next(given) if n == dynamic else n for n in op.attributes[f"static_{kind}"]]
        for kind in ("offsets", "sizes", "strides")
    )
    known = [n if isinstance(n, int) else value(n) for n in offsets]
    paces = [n if isinstance(n, int) else value(n) for n in steps]
    strides: list[Lanes] = []
    left = len(sizes) - len(
        op.results[0].type.shape
    )  # dimensions of one element that are dropped
    for size, pace, stride in zip(sizes, paces, source.strides, strict=True):
        if left and size == 1:
            left -= 1
            continue
        strides.append(summed([(stride, pace)], threads))
    return View(source.root, source.width, source.at(known, threads), tuple(strides))
