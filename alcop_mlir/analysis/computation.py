"""What a function computes, as a list of contractions of its arguments.

Read from the function as it was given, before any pass: the passes' own idea of it
(`contractions.py`) is what the result is checked against. Works on memrefs and tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alcop_mlir.analysis.contractions import indexing_maps
from alcop_mlir.analysis.loops import defining_op
from alcop_mlir.bindings import ir

_ZERO = "0"  # the value of an array that was filled with zero
_IGNORED = frozenset(
    "arith.constant tensor.empty tensor.dim "
    "memref.alloc memref.dealloc memref.dim".split()
)
_CASTS = frozenset("arith.extf arith.extsi arith.truncf".split())
# Loop letters: rows of C, columns of C, reduced, in all three.
_LETTERS = {"m": "mpqr", "n": "nstu", "k": "kxyz", "b": "bcde"}


@dataclass(frozen=True)
class Step:
    """`out = einsum(maps, lhs, rhs)`, plus `init` if that is not None; array names."""

    lhs: str
    rhs: str
    out: str
    maps: str
    init: str | None


@dataclass(frozen=True)
class Computation:
    """The steps of a function; `unknown` is the first op that is none, if any."""

    steps: tuple[Step, ...]
    unknown: Any | None = None


def argument_name(number: int) -> str:
    """How the argument `number`, counted from 0, is called."""
    return f"arg{number}"


def result_name(number: int, results: int) -> str:
    """How the result `number` of `results` is called."""
    return "result" if results == 1 else f"result{number}"


def computation(func: Any) -> Computation:
    """The steps of the `func.func`; none where it holds anything but contractions."""
    block = func.regions[0].blocks[0]
    reader = _Reader()
    for number, argument in enumerate(block.arguments):
        reader.values[argument] = argument_name(number)
    for op in block.operations:
        if not reader.read(op.operation):
            return Computation((), op.operation)
    return Computation(tuple(_named(reader, block)))


class _Reader:
    """Follows which value each array holds, op by op.

    A value is the name of an argument, of a step, or zero. A memref is keyed by itself
    and holds one value after another; a tensor holds one.
    """

    def __init__(self) -> None:
        self.values: dict[Any, str] = {}
        # Tensors that are a value with its dimensions in another order.
        self.transposed: dict[Any, tuple[str, list[int]]] = {}
        self.steps: list[Step] = []
        self.returned: tuple[str, ...] = ()

    def read(self, op: Any) -> bool:
        """Take in `op`; False if it is not understood."""
        if op.name in _IGNORED:
            return True
        if op.name == "linalg.fill" and _is_zero(op.operands[0]):
            self._write(op, op.operands[1], _ZERO)
            return True
        if op.name in ("memref.copy", "linalg.copy"):
            return self._copy(op)
        if op.name == "linalg.transpose":
            return self._transpose(op)
        if op.name == "func.return":
            self.returned = tuple(self.values.get(v, "?") for v in op.operands)
            return "?" not in self.returned
        return op.name.startswith("linalg.") and self._contract(op)

    def _copy(self, op: Any) -> bool:
        source, target = op.operands
        if source not in self.values or source.type.element_type != (
            target.type.element_type
        ):
            return False
        self._write(op, target, self.values[source])
        return True

    def _transpose(self, op: Any) -> bool:
        source = op.operands[0]
        if source not in self.values or not len(op.results):
            return False
        order = list(op.attributes["permutation"])
        self.transposed[op.results[0]] = self.values[source], order
        return True

    def _contract(self, op: Any) -> bool:
        found = [self._value(value) for value in op.operands]
        orders = [order for _, order in found]
        maps = None if None in [name for name, _ in found] else _einsum(op, orders)
        if maps is None or orders[-1] is not None:
            return False
        lhs, rhs, init = (name or "" for name, _ in found)
        if _ZERO in (lhs, rhs):
            return False
        step = Step(
            lhs, rhs, f"%{len(self.steps)}", maps, None if init == _ZERO else init
        )
        self.steps.append(step)
        self._write(op, op.operands[2], step.out)
        return True

    def _value(self, array: Any) -> tuple[str | None, list[int] | None]:
        """What `array` holds, if known, and the order of its dimensions if changed."""
        if array in self.transposed:
            return self.transposed[array]
        return self.values.get(array), None

    def _write(self, op: Any, target: Any, value: str) -> None:
        self.values[op.results[0] if len(op.results) else target] = value


def _named(reader: _Reader, block: Any) -> Iterator[Step]:
    """The steps, with those that end in an argument or result named after it.

    None at all where that renames what is still needed: two arrays that end with one
    value, or an argument overwritten before its last use.
    """
    ends = {
        reader.values[argument]: argument_name(number)
        for number, argument in enumerate(block.arguments)
        if reader.values[argument].startswith("%")
    }
    results = reader.returned
    for number, value in enumerate(results):
        if value in ends or not value.startswith("%"):
            return
        ends[value] = result_name(number, len(results))
    named = [_renamed(step, ends) for step in reader.steps]
    for done, step in enumerate(reader.steps):
        new = ends.get(step.out, step.out)
        later = reader.steps[done + 1 :]
        if any(new in (other.lhs, other.rhs, other.init) for other in later):
            return
    yield from named


def _renamed(step: Step, names: dict[str, str]) -> Step:
    return replace(
        step,
        lhs=names.get(step.lhs, step.lhs),
        rhs=names.get(step.rhs, step.rhs),
        out=names.get(step.out, step.out),
        init=None if step.init is None else names.get(step.init, step.init),
    )


def _einsum(op: Any, orders: Sequence[list[int] | None]) -> str | None:
    """The op as einsum letters, "mk,kn->mn"; None if it is no product of two arrays.

    orders: for each operand that is another array transposed, the permutation
    """
    given = indexing_maps(op)
    if given is None or len(op.operands) != 3:
        return None
    maps = [_dimensions(one) for one in given]
    if any(dims is None for dims in maps) or not _multiplies_and_adds(op):
        return None
    lhs, rhs, out = (
        _before(dims or (), order) for dims, order in zip(maps, orders, strict=True)
    )
    kinds: dict[str, int] = {}
    letters = {}
    for dim in sorted({*lhs, *rhs, *out}):
        kind = _kind(dim in lhs, dim in rhs, dim in out)
        place = kinds.setdefault(kind, 0)
        if place == len(_LETTERS[kind]):
            return None
        letters[dim] = _LETTERS[kind][place]
        kinds[kind] = place + 1
    texts = ["".join(letters[dim] for dim in dims) for dims in (lhs, rhs, out)]
    return f"{texts[0]},{texts[1]}->{texts[2]}"


def _before(dims: tuple[int, ...], order: list[int] | None) -> tuple[int, ...]:
    """The loops of an array's dimensions, from those of it transposed."""
    if order is None:
        return dims
    found = dict(zip(order, dims, strict=True))
    return tuple(found[place] for place in range(len(dims)))


def _kind(in_lhs: bool, in_rhs: bool, in_out: bool) -> str:
    if not in_out:
        return "k"
    if in_lhs and in_rhs:
        return "b"
    return "m" if in_lhs else "n"


def _dimensions(affine_map: Any) -> tuple[int, ...] | None:
    """The loops that a projected permutation picks; None for another map."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in affine_map.results):
        return None
    return tuple(ir.AffineDimExpr(e).position for e in affine_map.results)


def _multiplies_and_adds(op: Any) -> bool:
    """Whether the body is `yield out + lhs * rhs`, in any order, casts apart."""
    (block,) = op.regions[0].blocks
    if len(block.arguments) != 3:
        return False
    lhs, rhs, out = block.arguments
    (total,) = list(block.operations)[-1].operation.operands
    terms = _operands(total, "arith.addf", "arith.addi")
    products = [term for term in terms if term != out]
    if len(terms) != 2 or len(products) != 1:
        return False
    factors = _operands(products[0], "arith.mulf", "arith.muli")
    return len(factors) == 2 and lhs in factors and rhs in factors


def _operands(value: Any, *names: str) -> Sequence[Any]:
    """Operands of the op called so that defines `value`, all behind casts."""
    owner = defining_op(_behind_casts(value))
    if owner is None or owner.operation.name not in names:
        return ()
    return [_behind_casts(operand) for operand in owner.operation.operands]


def _behind_casts(value: Any) -> Any:
    owner = defining_op(value)
    while owner is not None and owner.operation.name in _CASTS:
        value = owner.operation.operands[0]
        owner = defining_op(value)
    return value


def _is_zero(value: Any) -> bool:
    owner = defining_op(value)
    if owner is None or owner.operation.name != "arith.constant":
        return False
    attribute = owner.operation.attributes["value"]
    return isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and (
        attribute.value == 0
    )
