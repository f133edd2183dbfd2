"""How an operand of a contraction is computed from weights of four bits, two in a byte.

`find_unpacking` follows a tensor backwards: through reshapes, transposes and
element-wise ops, each of its elements is a number computed from elements of other
tensors, at indices that are digits of the loops. Where two halves of each byte are
interleaved by a `tensor.concat`, it is a nibble of the packed tensor:

  low = p & 15 ; high = (p >> 4) & 15 ; w = collapse(concat(low, high)) * scale

Which half, and how the bits are read (0 to 15, -8 to 7, less a number), is found by
computing both parts of all 256 bytes. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.linalg.scalar_code import values_at
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_PER_BYTE = 2
_CODES = 16
_DEEPEST = 64  # ops from packed weights to the contraction, more than any frontend has
_BYTES = tuple(range(-128, 128))
_INTEGERS = ("i8", "i16", "i32", "i64")


@frozen
class Digit:
    """The number `loop floordiv step mod extent`."""

    loop: int
    step: int
    extent: int


Index = tuple[Digit, ...]  # of one dimension: digits, the highest first; () is 0


@frozen
class Element:
    """An element of a tensor."""

    tensor: Any
    index: tuple[Index, ...]


@frozen
class Nibble:
    """A nibble of an element of a packed tensor; `low` is the digit that chooses it.

    values: of the 16 codes
    kind:   the type of the values
    """

    byte: Element
    low: Digit
    values: tuple[int, ...]
    kind: Any

    @property
    def signed(self) -> bool:
        """Whether codes from 8 on are 16 less, apart from the offset."""
        return self.values[_CODES // 2] < self.values[0]

    @property
    def offset(self) -> int | None:
        """What is added to each code; None where values are in no such order."""
        wrap = _CODES if self.signed else 0
        codes = [code - (wrap if code >= _CODES // 2 else 0) for code in range(_CODES)]
        offsets = {value - code for value, code in zip(self.values, codes, strict=True)}
        return offsets.pop() if len(offsets) == 1 else None


@frozen
class Computed:
    """What the body of an element-wise op yields for these values of its arguments."""

    block: Any
    operands: tuple[Any, ...]  # Element, Nibble, Computed


Value = Element | Nibble | Computed


def find_unpacking(tensor: ir.Value, loops: Sequence[tuple[int, int]]) -> Value | None:
    """How the element at these loops is computed; None where no nibble is in it.

    loops: along each dimension, with its extent
    """
    index = tuple(_digits(Digit(loop, 1, extent)) for loop, extent in loops)
    found = _value(tensor, index, {}, _DEEPEST)
    return found if _nibbles(found) else None


def elements_of(value: Value) -> Iterator[Element | Nibble]:
    """The elements and nibbles that it is computed from."""
    if isinstance(value, Computed):
        for operand in value.operands:
            yield from elements_of(operand)
    else:
        yield value


def _nibbles(value: Value) -> bool:
    return any(isinstance(one, Nibble) for one in elements_of(value))


def _digits(digit: Digit) -> Index:
    return (digit,) if digit.extent > 1 else ()


def _value(
    tensor: ir.Value, index: tuple[Index, ...], seen: dict[Element, Value], deep: int
) -> Value:
    """What the element is, through views; through other ops where nibbles are below.

    seen: what was found before: networks read a tensor more than once
    deep: how many ops are followed
    """
    here = Element(tensor, index)
    if here not in seen:
        seen[here] = _followed(here, seen, deep)
    return seen[here]


def _followed(here: Element, seen: dict[Element, Value], deep: int) -> Value:
    tensor, index = here.tensor, here.index
    op = defining_op(tensor)
    if op is None or not deep or not tensor.type.has_static_shape:
        return here
    if op.name in ("tensor.collapse_shape", "tensor.expand_shape"):
        source = _reshaped(op, index)
        return (
            here if source is None else _value(op.operands[0], source, seen, deep - 1)
        )
    if op.name == "tensor.concat":
        return _interleaved(op, index) or here
    view = linalg_view(op)
    if view is None or not _is_elementwise(view):
        return here
    return _computed(view, index, seen, deep - 1) or here


def _reshaped(op: ir.Operation, index: tuple[Index, ...]) -> tuple[Index, ...] | None:
    """The index into the source of a reshape; None where digits do not fit."""
    source = op.operands[0].type
    if not source.has_static_shape:
        return None
    groups = groups_of(op)
    if op.name == "tensor.expand_shape":
        return tuple(_joined(index[one] for one in group) for group in groups)
    found: list[Index] = []
    for digits, group in zip(index, groups, strict=True):
        parts = _split(digits, [source.shape[one] for one in group])
        if parts is None:
            return None
        found += parts
    return tuple(found)


def _joined(parts: Iterable[Index]) -> Index:
    """The digits of a number that counts through several dimensions."""
    found: list[Digit] = []
    for digit in (one for part in parts for one in part):
        last = found[-1] if found else None
        if last and (last.loop, last.step) == (digit.loop, digit.step * digit.extent):
            found[-1] = Digit(digit.loop, digit.step, last.extent * digit.extent)
        else:
            found.append(digit)
    return tuple(found)


def _split(digits: Index, extents: Sequence[int]) -> list[Index] | None:
    """The digits of each of several dimensions that a number counts through."""
    left, found = list(digits), list[Index]()
    for extent in reversed(extents):
        taken: list[Digit] = []
        while extent > 1:
            if not left:
                return None
            last = left.pop()
            common = math.gcd(last.extent, extent)
            if common < min(last.extent, extent):
                return None
            taken.insert(0, Digit(last.loop, last.step, common))
            if last.extent > common:
                rest = last.extent // common
                left.append(Digit(last.loop, last.step * common, rest))
            extent //= common
        found.insert(0, _joined([tuple(taken)]))
    return None if left else found


def _is_elementwise(view: LinalgView) -> bool:
    """On tensors: each element of the output from elements at plain indices."""
    if len(view.outputs) != 1 or view.reductions or view.block is None:
        return False
    (output,) = view.outputs
    if not output.is_permutation or (output.argument is not None and output.is_read):
        return False
    if not all(one.is_tensor or not one.is_read for one in view.inputs):
        return False
    indices = [index for one in view.inputs for index in one.indices]
    plain = all(one.loop is not None or one.constant == 0 for one in indices)
    *body, _ = (op.operation for op in view.block.operations)
    return plain and all(is_pure(op) and not op.regions for op in body)


def _computed(
    view: LinalgView, index: tuple[Index, ...], seen: dict[Element, Value], deep: int
) -> Value | None:
    """What the op computes of nibbles; None where it reads none."""
    along = dict(zip(view.outputs[0].loops, index, strict=True))
    values = [
        _value(one.value, tuple(along.get(loop, ()) for loop in one.loops), seen, deep)
        for one in view.inputs
    ]
    made = Computed(view.block, tuple(values))
    if _is_move(view):
        return values[0]
    elements = set(elements_of(made))
    if len(elements) == 1 and isinstance(only := elements.pop(), Nibble):
        return _recoded(made, only) or made
    return made if _nibbles(made) else None


def _is_move(view: LinalgView) -> bool:
    """Whether it yields its first input, as a transpose does."""
    (yielded,) = view.block.operations[-1].operation.operands
    return len(view.inputs) == 1 and yielded == view.inputs[0].argument


def _interleaved(op: ir.Operation, index: tuple[Index, ...]) -> Nibble | None:
    """The nibble that two tensors side by side hold, of the same bytes."""
    number = op.attributes["dim"].value
    digits = index[number]
    parts = list(op.operands)
    if len(digits) != 1 or len(parts) != _PER_BYTE:
        return None
    if any(one.type.shape[number] != 1 for one in parts):
        return None
    where = (*index[:number], (), *index[number + 1 :])
    tables = [_table(one, where) for one in parts]
    if tables[0] is None or tables[1] is None or tables[0][0] != tables[1][0]:
        return None
    byte, low, high = tables[0][0], tables[0][1], tables[1][1]
    values = low[_BYTES.index(0) :][:_CODES]
    pairs = zip(_BYTES, low, high, strict=True)
    if any(
        (one, other) != (values[b & 15], values[b >> 4 & 15]) for b, one, other in pairs
    ):
        return None
    return Nibble(byte, digits[0], values, parts[0].type.element_type)


def _table(tensor: ir.Value, index: tuple[Index, ...]) -> Any:
    """The byte that an element is computed from alone, and its value for each byte."""
    op = defining_op(tensor)
    if op is not None and op.name in ("tensor.collapse_shape", "tensor.expand_shape"):
        source = _reshaped(op, index)
        return None if source is None else _table(op.operands[0], source)
    view = None if op is None else linalg_view(op)
    if view is not None and _is_elementwise(view) and len(view.inputs) == 1:
        along = dict(zip(view.outputs[0].loops, index, strict=True))
        (one,) = view.inputs
        below = _table(one.value, tuple(along.get(loop, ()) for loop in one.loops))
        values = None if below is None else _evaluated(view.block, [below[1]])
        return None if below is None or values is None else (below[0], values)
    if str(tensor.type.element_type) != "i8":
        return None
    return Element(tensor, index), _BYTES


def _recoded(value: Computed, nibble: Nibble) -> Nibble | None:
    """Integers that are computed of a nibble alone, as one with other values."""
    kind = _yielded(value.block).type
    if str(kind) not in _INTEGERS:
        return None
    found = _of_codes(value)
    if found is None:
        return None
    return Nibble(nibble.byte, nibble.low, found, kind)


def _of_codes(value: Value) -> tuple[int, ...] | None:
    """The value for each code, of what is computed from one nibble."""
    if isinstance(value, Nibble):
        return value.values
    assert isinstance(value, Computed), value
    return _evaluated(value.block, [_of_codes(one) for one in value.operands])


def _evaluated(
    block: ir.Block, given: Sequence[tuple[int, ...] | None]
) -> tuple[int, ...] | None:
    """What the body yields for each of these integers; None where that is unknown."""
    known = [one for one in given if one is not None]
    found = (
        values_at(block, _yielded(block), known) if len(known) == len(given) else None
    )
    if found is None or not all(map(math.isfinite, found)):
        return None
    return tuple(int(one) for one in found)


def _yielded(block: ir.Block) -> Any:
    return block.operations[-1].operation.operands[0]
