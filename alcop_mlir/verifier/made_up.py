"""Numbers that stand for values: what these were computed from, and by which ops.

Two values that are computed alike have the same number, others other ones, as far as
64 bits tell. An integer has one of a few, so that it can be an index.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

from alcop_mlir.bindings import ir

_FEW = 7
_PART, _PARTS = 1, 2  # begin tuples: a part of a value, or a value of parts


def hashed(name: Hashable) -> int:
    """The same number for the same name, in all runs."""
    digest = blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def split(value: Any, count: int) -> list[Any]:
    """The parts of a value, a vector or several bytes."""
    if type(value) is tuple and value[0] == _PARTS and len(value) == count + 1:
        return list(value[1:])
    return [None if value is None else (_PART, value, n) for n in range(count)]


def joined(parts: list[Any]) -> Any:
    """The value that has these parts."""
    if None in parts:
        return None
    first = parts[0]
    if type(first) is tuple and first[0] == _PART:
        if parts == [(_PART, first[1], n) for n in range(len(parts))]:
            return first[1]
    return (_PARTS, *parts)


def attributes(op: Any) -> str:
    """The attributes of an op, but ours."""
    names = sorted(name for name in op.attributes if not str(name).startswith("alcop"))
    return str([(name, str(op.attributes[name])) for name in names])


def constant_value(op: Any) -> Any:
    """What an arith.constant is."""
    attribute, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.VectorType) and isinstance(attribute, ir.DenseElementsAttr):
        if attribute.is_splat:
            return (_PARTS, *[_number(attribute.get_splat_value())] * kind.shape[0])
    return _number(attribute)


def _number(attribute: Any) -> Any:
    is_integer = isinstance(attribute, ir.IntegerAttr)
    return attribute.value if is_integer else hashed(str(attribute))


def fewer(kind: Any) -> int:
    """Of how many numbers one stands for a value of this type; 0 for any."""
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    if not isinstance(element, ir.IntegerType | ir.IndexType):
        return 0
    return 2 if str(element) == "i1" else _FEW


def stand_in(few: int, *parts: Hashable) -> int:
    """What stands for a value that is made of `parts`."""
    number = hash(parts)
    return number % few if few else number


def element(value: Any, kind: Any) -> Any:
    """A single value, which may be a part of another: an integer is a number still."""
    if type(value) is not tuple or not isinstance(kind, ir.IntegerType | ir.IndexType):
        return value
    return stand_in(fewer(kind), value)


def zero(kind: Any) -> Any:
    """As the constant 0 of an element type is."""
    return 0 if not isinstance(kind, ir.FloatType) else hashed(f"0.000000e+00 : {kind}")
