"""Names for the sizes of a function's arguments that are known at run time only.

Dimensions that one loop of an op indexes have one size, and get one name: the loop's
letter in the first contraction that has it ("M", "N", "K"; "B" for a batch, "B2" for
its second loop), else a name of argument and dimension ("arg0_1"). Read from the
function as it was given, on memrefs or tensors. A size that is constant in one of them
is a number in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import constant, made_by
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES, loop_letters
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view, static_size
from alcop_mlir.bindings import ir

_Dimension = tuple[Any, int]  # of a value
_MADE_WITH_SIZES = frozenset("memref.alloc tensor.empty".split())


def named_sizes(
    func: ir.Operation, names: Mapping[Any, str]
) -> dict[tuple[str, int], int | str]:
    """The size of each dimension of the named values: a number or a name.

    names: of arguments, and of values that the function returns
    """
    static = {
        (name, number): extent
        for value, name in names.items()
        for number, extent in enumerate(getattr(value.type, "shape", ()))
        if not value.type.is_dynamic_dim(number)
    }
    dynamic = [
        (value, name, number)
        for value, name in names.items()
        for number in range(len(getattr(value.type, "shape", ())))
        if (name, number) not in static
    ]
    return static | (_named(func, dynamic, set(names.values())) if dynamic else {})


def _named(
    func: ir.Operation, dynamic: Sequence[tuple[Any, str, int]], taken: set[str]
) -> dict[tuple[str, int], int | str]:
    """Of dimensions of values with these names; `taken` are no names of sizes."""
    classes = _Classes()
    letters: dict[_Dimension, str] = {}
    for op in func.regions[0].blocks[0].operations:
        view = linalg_view(op)
        for one, other in _equal(op.operation, view):
            classes.join(one, other)
        for dimension, letter in _lettered(view) if view is not None else ():
            letters.setdefault(dimension, letter)
    sizes: dict[_Dimension, int | str] = {}
    for dimension, letter in letters.items():
        head = classes.head(dimension)
        if head not in sizes and letter not in taken:
            sizes[head] = letter
            taken.add(letter)
    for dimension in classes.dimensions():
        extent = static_size(*dimension)
        if extent is not None:
            sizes[classes.head(dimension)] = extent
    return {
        (name, number): sizes.setdefault(
            classes.head((value, number)), f"{name}_{number}"
        )
        for value, name, number in dynamic
    }


class _Classes:
    """Classes of dimensions that have one size."""

    def __init__(self) -> None:
        self._above: dict[_Dimension, _Dimension] = {}

    def head(self, one: _Dimension) -> _Dimension:
        """The dimension that represents its class."""
        self._above.setdefault(one, one)
        while self._above[one] != one:
            one = self._above[one]
        return one

    def join(self, one: _Dimension, other: _Dimension) -> None:
        """Merge two classes."""
        self._above[self.head(other)] = self.head(one)

    def dimensions(self) -> list[_Dimension]:
        """All dimensions that are in a class."""
        return list(self._above)


def _equal(
    op: ir.Operation, view: LinalgView | None
) -> Iterator[tuple[_Dimension, _Dimension]]:
    """Pairs of dimensions that have one size because of `op`."""
    if op.name in _MADE_WITH_SIZES:
        yield from _made_of(op)
    elif op.name == "tensor.gather":
        yield from _gathered(op)
    elif op.name == "tensor.insert_slice":
        for number in range(op.results[0].type.rank):
            yield (op.operands[1], number), (op.results[0], number)
    elif op.name == "tensor.pad":
        yield from _not_padded(op)
    if view is None:
        return
    loops: dict[int, _Dimension] = {}
    for operand in view.operands:
        for number, loop in enumerate(operand.loops):
            if loop is not None:
                dimension = operand.value, number
                yield loops.setdefault(loop, dimension), dimension
    for result, output in zip(op.results, view.outputs, strict=False):
        for number in range(result.type.rank):
            yield (output.value, number), (result, number)


def _gathered(op: ir.Operation) -> Iterator[tuple[_Dimension, _Dimension]]:
    """An element of the result for each of the indices."""
    indices, (result,) = op.operands[1], op.results
    for number in range(indices.type.rank - 1):
        yield (indices, number), (result, number)


def _not_padded(op: ir.Operation) -> Iterator[tuple[_Dimension, _Dimension]]:
    """Dimensions without anything before or after them."""
    source, (result,) = op.operands[0], op.results
    low, high = (op.attributes[f"static_{side}"] for side in ("low", "high"))
    for number, sizes in enumerate(zip(low, high, strict=True)):
        if sizes == (0, 0):
            yield (source, number), (result, number)


def _made_of(op: ir.Operation) -> Iterator[tuple[_Dimension, _Dimension]]:
    """Dimensions allocated with the size of another value's dimension."""
    (result,) = op.results
    dynamic = [n for n in range(result.type.rank) if result.type.is_dynamic_dim(n)]
    for number, size in zip(dynamic, op.operands, strict=False):
        dim = made_by(size, "memref.dim", "tensor.dim")
        known = None if dim is None else constant(dim.operands[1])
        if dim is not None and known is not None:
            yield (dim.operands[0], known), (result, number)


def _lettered(view: LinalgView) -> Iterator[tuple[_Dimension, str]]:
    """Dimensions of a contraction's operands, with the letter of the loop."""
    names = loop_letters(view.maps) or ()
    for operand, letters in zip(view.operands, names, strict=False):
        for number, letter in enumerate(letters):
            yield (operand.value, number), _name(letter)


def _name(letter: str) -> str:
    number = BATCHES.find(letter) + 1
    return f"B{number}" if number > 1 else letter.upper()
