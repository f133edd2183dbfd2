"""What an instruction leaves in a register: numbers, of each thread one.

PTX ISA "Integer Arithmetic Instructions", "Logic and Shift Instructions".
"""

from __future__ import annotations

import operator

import numpy as np

from alcop_mlir.checker.machine.arithmetic import is_equal, signed, types_of, unsigned


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
