"""What an instruction leaves in a register: numbers, of each thread one.

PTX ISA "Integer Arithmetic Instructions", "Comparison and Selection Instructions",
"Logic and Shift Instructions".
"""

from __future__ import annotations

import operator

import numpy as np

from alcop_mlir.checker.machine.arithmetic import is_equal, signed, types_of, unsigned
from alcop_mlir.checker.ptx.instructions import Instruction

ORDER = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
TESTS = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
_LOGIC = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "not": np.logical_not,
    "mov": np.array,
}


def of_numbers(ins: Instruction, v: list[np.ndarray], own: int) -> np.ndarray | None:
    """What an instruction leaves in a register of `own` bits, of numbers one by one;
    None where nobody knows. A number is a predicate that holds where it is not 0.
    """
    parts, name, kinds = ins.parts, ins.parts[0], types_of(ins.parts)
    if parts[-1] == "pred":
        logic = _LOGIC.get(name)
        return logic and logic(*(one != 0 for one in v)).astype(np.uint64)
    if ins.moves:
        return v[0]
    if name == "selp":
        return np.where(v[2] != 0, v[0], v[1])
    if not kinds:
        return None
    if name == "setp":
        return _compared(parts, *v) if len(v) == 2 else None
    written = kinds[0][1] * (2 if "wide" in parts else 1)
    # The register's other bits are 0, or the sign.
    is_filled = name == "cvt" and written < own and "s" not in dict(kinds)
    return exact(parts, v) if written == own or is_filled else None


def _compared(parts: list[str], a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    (kind, width), name = types_of(parts)[-1], ORDER.get(parts[1], parts[1])
    if kind == "f" or name not in TESTS:
        return None
    read = signed if kind == "s" and parts[1] not in ORDER else unsigned
    return TESTS[name](read(a, width), read(b, width)).astype(np.uint64)


def exact(parts: list[str], v: list[np.ndarray]) -> np.ndarray | None:
    """The instruction in each thread, or None where it is none of these."""
    kinds = types_of(parts)
    if not kinds or any(k == "f" for k, _ in kinds):
        return None
    (kind, width), name = kinds[-1], parts[0]
    read = signed if kind == "s" else unsigned
    with np.errstate(all="ignore"):
        if name == "cvt":
            return unsigned(read(v[0], width).astype(np.uint64), kinds[0][1])
        if name in ("mul", "mad"):
            return _multiplied(parts, v, width, read)
        if name in ("shl", "shr"):
            return unsigned(_shifted(name, read(v[0], width), v[1], width), width)
        if name in ("bfe", "bfi", "lop3"):
            return _bits(name, v, width, kind == "s")
        simple = _SIMPLE.get(name)
        if simple is None:
            return None
        found = simple(*(read(one, width) for one in v))
        return None if found is None else unsigned(found.astype(np.uint64), width)


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    if (b == 0).any():
        return None
    if a.dtype != np.int64:
        return a // b
    # Without a sign also the least number has an opposite.
    found = (np.abs(a).view(np.uint64) // np.abs(b).view(np.uint64)).view(np.int64)
    return np.where((a < 0) ^ (b < 0), -found, found)


def _rest(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    found = _divided(a, b)
    return None if found is None else a - found * b


_SIMPLE = {
    "add": operator.add,
    "sub": operator.sub,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.invert,
    "neg": lambda a: -a.astype(np.int64),
    "abs": np.abs,
    "min": np.minimum,
    "max": np.maximum,
    "div": _divided,
    "rem": _rest,
    "cnot": lambda a: (a == 0).astype(np.uint64),
}


def _multiplied(parts: list[str], v: list[np.ndarray], width: int, read) -> np.ndarray:
    a, b = read(v[0], width), read(v[1], width)
    out = 2 * width if "wide" in parts else width
    if "hi" in parts:
        high = a.astype(object) * b.astype(object) >> width
        found = (high % 2**width).astype(np.uint64)
    else:
        found = (a * b).astype(np.uint64)
    if parts[0] == "mad":
        found = found + v[2].astype(np.uint64)
    return unsigned(found, out)


def _shifted(name: str, a: np.ndarray, by: np.ndarray, width: int) -> np.ndarray:
    count = np.minimum(unsigned(by, 32), np.uint64(width))
    if name == "shl":
        moved = a.astype(np.uint64) << np.minimum(count, np.uint64(63))
        return np.where(count >= width, np.uint64(0), moved)
    if a.dtype == np.int64:
        return a >> np.minimum(count, np.uint64(width - 1)).astype(np.int64)
    return np.where(count >= width, np.uint64(0), a >> np.minimum(count, np.uint64(63)))


def _bits(
    name: str, v: list[np.ndarray], width: int, has_sign: bool
) -> np.ndarray | None:
    """`bfe`, `bfi` with one place and length; `lop3` by its table."""
    if name == "lop3":
        found = np.zeros(np.broadcast(*v[:3]).shape, np.uint64)
        for row in range(8):
            if int(v[3].flat[0]) >> row & 1:
                bits = (
                    one if row >> (2 - i) & 1 else ~one for i, one in enumerate(v[:3])
                )
                a, b, c = bits
                found |= a & b & c
        return unsigned(found, width)
    if not (is_equal(v[-1]) and is_equal(v[-2])):
        return None
    place, length = int(v[-2].flat[0]) % 256, int(v[-1].flat[0]) % 256
    if place + length > width:
        return None
    mask = np.uint64(2**length - 1)
    if name == "bfe":
        field = unsigned(v[0], width) >> np.uint64(place) & mask
        if has_sign and length:
            field = signed(field, length).astype(np.uint64)
        return unsigned(field, width)
    mask <<= np.uint64(place)
    return unsigned(v[1] & ~mask | v[0] << np.uint64(place) & mask, width)
