"""Checks that promises about aliases hold: `check_promises(op)`.

For the IR after alcop-version-loops, which makes two versions of a loop; the first has
the promise `alcop.noalias = true`, and runs only where a condition holds:

    scf.if %apart { scf.for ... {alcop.noalias = true} }
    else          { scf.for ... {alcop.noalias = false} }

The condition is computed for addresses at which an argument that the loop writes
overlaps another that it accesses: by all bytes, or by the first or the last element. It
must be false at each. Sizes that are not known take small values. A promise without a
second version is a user's, and believed. Shares no code with the passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from math import prod
from typing import Any, NamedTuple

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import READ, accessed, inside, root
from alcop_mlir.verifier.values import is_computable, rule_of
from alcop_mlir.verifier.violations import Violation

_PROMISE, _FUNCTIONS = "alcop.noalias", ("func.func", "gpu.func")
_BASE, _FAR = (
    1 << 40,
    1 << 30,
)  # bytes: an address, a distance at which nothing overlaps
_SIZES = (3, 1)  # of dimensions that are not known, in turn
_POINTER = "memref.extract_aligned_pointer_as_index"
_METADATA = "memref.extract_strided_metadata"


class _Layout(NamedTuple):
    """Of a memref in elements of so many bytes."""

    element: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def extent(self) -> tuple[int, int]:
        """The first byte, and that after the last one, from the aligned pointer."""
        pairs = zip(self.sizes, self.strides, strict=True)
        steps = [(size - 1) * stride for size, stride in pairs]
        low = self.offset + sum(min(0, step) for step in steps)
        high = self.offset + sum(max(0, step) for step in steps) + 1
        return low * self.element, high * self.element


class _Given(NamedTuple):
    """How arguments lie, and where."""

    layouts: Mapping[Any, _Layout]
    addresses: Mapping[Any, int]

    def metadata(self, memref: Any) -> list[int | None]:
        """Base, offset, sizes and strides."""
        if memref not in self.layouts:
            return [None] * (2 + 2 * memref.type.rank)
        _, offset, sizes, strides = self.layouts[memref]
        return [None, offset, *sizes, *strides]


_Step = Callable[[list[int | None], _Given], int | None]


def check_promises(op: ir.Operation) -> list[Violation]:
    """What is wrong with the versions of the loops in `op`; nothing is changed."""
    return [
        wrong
        for loop in inside(op.operation)
        if _promised(loop) is True
        for wrong in _check(loop)
    ]


def _promised(loop: Any) -> bool | None:
    if loop.name != "scf.for" or _PROMISE not in loop.attributes:
        return None
    return bool(loop.attributes[_PROMISE].value)


def _check(loop: Any) -> Iterator[Violation]:
    conditions = list(_conditions(loop))
    if not conditions:
        return
    program = _Program(conditions)
    arguments, written = _touched(loop)
    for unknown in _SIZES:
        layouts = {argument: _layout(argument, unknown) for argument in arguments}
        for one, other in permutations(arguments, 2):
            if one in written and any(
                program.hold(_Given(layouts, addresses))
                for addresses in _overlapping(one, other, layouts)
            ):
                number = other.arg_number
                why = f"is promised that argument {one.arg_number}, which it writes, "
                why += f"does not overlap argument {number}; its condition allows it"
                yield Violation(loop, why)
                return


def _conditions(loop: Any) -> Iterator[Any]:
    """Conditions of the ops around that choose between `loop` and another version."""
    place = loop
    while place.parent is not None and place.name not in _FUNCTIONS:
        branch = place.parent.operation
        if branch.name == "scf.if" and len(branch.regions[1].blocks):
            then, otherwise = ([*region.blocks[0]] for region in branch.regions)
            is_first = any(one.operation == place for one in then)
            others = [inner for one in otherwise for inner in _all(one.operation)]
            if is_first and any(_promised(inner) is False for inner in others):
                yield branch.operands[0]
        place = branch


def _all(op: Any) -> list[Any]:
    return [op, *inside(op)]


def _touched(loop: Any) -> tuple[list[Any], set[Any]]:
    """The function's arguments that `loop` accesses and may alias; those it writes."""
    found: dict[Any, None] = {}
    written: set[Any] = set()
    for op in inside(loop):
        for memref, kind in accessed(op) or ():
            whole = root(memref)
            if _may_alias(whole):
                found[whole] = None
                if kind != READ:
                    written.add(whole)
    return list(found), written


def _may_alias(memref: Any) -> bool:
    """Whether `memref` is an argument in global memory, of which nothing is said."""
    owner = memref.owner
    if not isinstance(owner, ir.Block) or memref.type.memory_space is not None:
        return False
    function = owner.owner.operation
    if function.name not in _FUNCTIONS:
        return False
    if "arg_attrs" not in function.attributes:
        return True
    said = function.attributes["arg_attrs"]
    number = memref.arg_number
    return number >= len(said) or "llvm.noalias" not in str(said[number])


def _layout(memref: Any, unknown: int) -> _Layout:
    kind = memref.type
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes = tuple(unknown if size == dynamic else size for size in kind.shape)
    whole = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    strides, offset = kind.get_strides_and_offset()
    free = ir.ShapedType.get_dynamic_stride_or_offset()
    return _Layout(
        _bytes(kind.element_type),
        unknown if offset == free else offset,
        sizes,
        tuple(
            one if given == free else given
            for given, one in zip(strides, whole, strict=True)
        ),
    )


def _bytes(element: ir.Type) -> int:
    """As they lie in memory: a power of two."""
    bits = getattr(element, "width", 64)
    return 1 << max(0, (bits - 1).bit_length() - 3)


def _overlapping(
    one: Any, other: Any, layouts: Mapping[Any, _Layout]
) -> Iterator[dict[Any, int]]:
    """Addresses of all arguments: those two overlap, others are far away."""
    apart = {memref: _BASE + n * _FAR for n, memref in enumerate(layouts, 2)}
    (low, high), (start, stop) = (layouts[x].extent() for x in (one, other))
    first, last = low, high - layouts[one].element
    for begin in (first, last, first - (stop - start) + layouts[other].element):
        yield {**apart, one: _BASE, other: _BASE + begin - start}


class _Program:
    """What computes some values of where arguments are; read once, run often."""

    def __init__(self, values: list[Any]):
        self._steps: list[_Step] = []
        self._places: dict[Any, int] = {}
        self._wanted = [self._place(value) for value in values]

    def hold(self, given: _Given) -> bool:
        """Whether all values are true."""
        numbers: list[int | None] = []
        for step in self._steps:
            numbers.append(step(numbers, given))
        return all(numbers[place] for place in self._wanted)

    def _place(self, value: Any) -> int:
        if value not in self._places:
            step = self._step(value)
            self._places[value] = len(self._steps)
            self._steps.append(step)
        return self._places[value]

    def _step(self, value: Any) -> _Step:
        if isinstance(value.owner, ir.Block):
            return lambda *_: None
        op = value.owner.operation
        if is_computable(op):
            rule, places = rule_of(op), [self._place(one) for one in op.operands]
            return lambda numbers, _: rule(*[numbers[place] for place in places])
        if op.name not in (_POINTER, _METADATA):
            return lambda *_: None
        memref, number = root(op.operands[0]), list(op.results).index(value)
        if op.name == _POINTER:
            return lambda _, given: given.addresses.get(memref)
        return lambda _, given: given.metadata(memref)[number]
