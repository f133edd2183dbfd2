"""Numbers that differ between threads by known ones: `lane * 2 + 64 * block + size`.

A *spread* is a sum of symbols with a coefficient for each thread, plus a number for
each: what an address is computed of. It is what the register holds modulo 2**width;
where its range fits the width, it is the number itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from alcop_mlir.certificate.exact_arithmetic import bits_read, scalar_types
from alcop_mlir.certificate.linear import Linear, Symbols
from alcop_mlir.certificate.values import (
    Exact,
    Spread,
    Truth,
    Uniform,
    Value,
    masked,
    signed,
)

RESIDUE_BITS = 3  # of a symbol, that are told apart at most
Residues = Mapping[str, tuple[int, int]]  # of symbols, each modulo a power of two
_MOST = 1 << 61  # of one thread, so that no arithmetic overflows


def lifted(value: Value, width: int, threads: int) -> Spread | None:
    """Any number as a spread."""
    if isinstance(value, Spread):
        if value.width < width and not value.fits:
            return None
        return Spread(value.terms, value.constant, value.low, value.high, width)
    if isinstance(value, Exact):
        lanes = signed(value.lanes, width)
        return Spread({}, lanes, int(lanes.min()), int(lanes.max()), width)
    if isinstance(value, Uniform):
        terms = {s: np.full(threads, c) for s, c in value.term.terms.items()}
        constant = np.full(threads, value.term.constant)
        if any(abs(c) > _MOST for c in value.term.terms.values()):
            return None
        return Spread(terms, constant, value.low, value.high, width)
    return None


def plain(value: Spread | None) -> Value:
    """A spread that names no symbol as numbers; one that threads share as a term."""
    if value is None:
        return None
    terms = {s: c for s, c in value.terms.items() if c.any()}
    if not terms:
        return Exact(masked(value.constant, value.width))
    every = (*terms.values(), value.constant)
    if value.fits and all((one == one[0]).all() for one in every):
        term = Linear({s: int(c[0]) for s, c in terms.items()}, int(value.constant[0]))
        return Uniform(term, value.low, value.high)
    return Spread(terms, value.constant, value.low, value.high, value.width)


def blended(mask: np.ndarray, one: Value, other: Value) -> Value:
    """`one` in the threads of the mask, else `other`."""
    if one is other:
        return one
    if isinstance(one, Exact) and isinstance(other, Exact):
        return Exact(np.where(mask, one.lanes, other.lanes))
    if isinstance(one, Truth) or isinstance(other, Truth):
        return None
    width = min(getattr(v, "width", 64) for v in (one, other))
    a, b = lifted(one, width, len(mask)), lifted(other, width, len(mask))
    if a is None or b is None:
        return None
    zero = np.zeros(len(mask), np.int64)
    terms = {
        s: np.where(mask, a.terms.get(s, zero), b.terms.get(s, zero))
        for s in a.terms.keys() | b.terms.keys()
    }
    constant = np.where(mask, a.constant, b.constant)
    low, high = min(a.low, b.low), max(a.high, b.high)
    return plain(Spread(terms, constant, low, high, width))


def compute(
    parts: tuple[str, ...],
    values: list[Value],
    residues: Residues,
    fresh: str,
) -> Value:
    """What an integer instruction gives; None where that is unknown.

    residues: of symbols that are told apart
    fresh:    a symbol for one that is another times a third
    """
    types = scalar_types(parts)
    threads = next(
        (len(v.lanes) for v in values if isinstance(v, Exact)),
        next((len(v.constant) for v in values if isinstance(v, Spread)), 0),
    )
    if not types or any(kind == "f" for kind, _ in types) or not threads:
        return None
    kind, width = types[-1]
    wide = 2 * width if "wide" in parts else width
    read = bits_read(parts, len(values), width)
    found = [lifted(v, bits, threads) for v, bits in zip(values, read, strict=True)]
    spreads = [one for one in found if one is not None]
    if len(spreads) < len(values):
        return None
    if parts[0] == "cvt":
        return plain(_converted(spreads[0], types))
    if parts[0] in ("mul", "mad"):
        if "hi" in parts or (wide > width and not _is_whole(spreads[:2], kind)):
            return None
        product = _times(spreads[0], spreads[1], wide, fresh)
        more = spreads[2:]
        return plain(_sum(product, more[0], 1, wide) if more and product else product)
    if parts[0] == "and" and residues:
        a, b = spreads
        spreads = [_known_low(a, b, residues), _known_low(b, a, residues)]
    handler = _HANDLERS.get(parts[0])
    return None if handler is None else plain(handler(spreads, width, kind))


def difference(now: Uniform | Spread, before: Uniform | Spread) -> Linear | None:
    """What has been added, where that is the same in all threads."""
    if isinstance(now, Uniform) and isinstance(before, Uniform):
        return now.term - before.term
    if not isinstance(now, Spread) or not isinstance(before, Spread):
        return None
    found = _sum(now, before, -1, now.width)
    if found is None or now.width != before.width:
        return None
    terms = {s: c for s, c in found.terms.items() if c.any()}
    if any((c != c[0]).any() for c in (*terms.values(), found.constant)):
        return None
    return Linear({s: int(c[0]) for s, c in terms.items()}, int(found.constant[0]))


def moved(value: Spread, by: Linear, low: int, high: int) -> Spread | None:
    """The spread plus a term, with another range."""
    threads = len(value.constant)
    more = lifted(Uniform(by, low, high), value.width, threads)
    found = None if more is None else _sum(value, more, 1, value.width)
    return found and Spread(found.terms, found.constant, low, high, value.width)


def _known_low(a: Spread, mask: Spread, residues: Residues) -> Spread:
    """The spread as it is modulo the mask, where that is of low bits."""
    is_low = not mask.terms and 0 <= mask.low and mask.high < 1 << RESIDUE_BITS
    bits = mask.high.bit_length()
    return (with_residues(a, residues, bits) or a) if is_low else a


def replaced(
    value: Spread, values: Mapping[str, Linear], symbols: Symbols
) -> Spread | None:
    """The spread with terms for symbols, also inside of others."""
    found: Spread | None = Spread(
        {}, value.constant, value.low, value.high, value.width
    )
    for name, factors in value.terms.items():
        term = symbols.replaced(Linear({name: 1}), values)
        if found is None or any(abs(c) > 1 << 20 for c in term.terms.values()):
            return None
        if abs(term.constant) > 1 << 20 or np.abs(factors).max() > 1 << 40:
            return None
        more = {s: factors * c for s, c in term.terms.items()}
        constant = found.constant + factors * term.constant
        terms = {s: c.copy() for s, c in found.terms.items()}
        for s, c in more.items():
            terms[s] = terms.get(s, 0) + c
        found = Spread(terms, constant, value.low, value.high, value.width)
    return found


def _made(
    terms: Mapping[str, np.ndarray],
    constant: np.ndarray,
    low: int,
    high: int,
    width: int,
) -> Spread | None:
    made = Spread(dict(terms), constant, low, high, width)
    return None if _largest(made) > _MOST else made


def _is_whole(values: list[Spread], kind: str) -> bool:
    """Whether the numbers are those that the instruction reads."""
    return all(v.fits and (kind == "s" or v.low >= 0) for v in values)


def _sum(a: Spread, b: Spread, sign: int, width: int) -> Spread | None:
    terms = dict(a.terms)
    for s, c in b.terms.items():
        terms[s] = terms[s] + sign * c if s in terms else sign * c
    low, high = sorted((sign * b.low, sign * b.high))
    constant = a.constant + sign * b.constant
    return _made(terms, constant, a.low + low, a.high + high, width)


def _times(a: Spread, b: Spread, width: int, fresh: str = "") -> Spread | None:
    """a * b; of two symbols one, `fresh` where one of them changes."""
    if _largest(a) * _largest(b) > _MOST:
        return None
    terms: dict[str, np.ndarray] = {}
    made = 0
    for first, x in (*a.terms.items(), ("", a.constant)):
        for second, y in (*b.terms.items(), ("", b.constant)):
            name = "*".join(sorted(s for s in (first, second) if s))
            if first and second and not (_is_stable(first) and _is_stable(second)):
                name, made = fresh, made + 1
            terms[name] = terms.get(name, 0) + x * y
    if made > 1 or (made and not fresh):
        return None
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return _made(terms, terms.pop(""), min(ends), max(ends), width)


def _largest(a: Spread) -> int:
    every = (*a.terms.values(), a.constant)
    return max(max(int(one.max()), -int(one.min())) for one in every)


def _is_stable(symbol: str) -> bool:
    """Whether it is a parameter, or a number of the block: the same all the time."""
    return symbol[0] in ".%"


def open_residues(a: Spread, bits: int) -> dict[str, int]:
    """The symbols that the low bits of a spread depend on, and modulo what."""
    lowest = {s: int(np.gcd(c, 1 << bits).min()) for s, c in a.terms.items()}
    return {s: (1 << bits) // by for s, by in lowest.items() if by < 1 << bits}


def with_residues(a: Spread, residues: Residues, bits: int) -> Spread | None:
    """The spread with symbols as they are modulo what is known: for and with so many
    low bits only.
    """
    mask = (1 << bits) - 1
    known = {
        s
        for s, (_, modulus) in residues.items()
        if s in a.terms and not (a.terms[s] * modulus & mask).any()
    }
    constant = a.constant + sum(a.terms[s] * residues[s][0] for s in known)
    terms = {s: c for s, c in a.terms.items() if s not in known}
    return _made(terms, constant, a.low, a.high, a.width)


def _shifted_left(v: list[Spread], width: int, kind: str) -> Spread | None:
    a, by = v
    if by.terms or by.low < 0 or by.high >= min(width, 40):
        return None
    power = Spread({}, np.int64(1) << by.constant, 1 << by.low, 1 << by.high, width)
    return _times(power, a, width)


def _shifted_right(v: list[Spread], width: int, kind: str) -> Spread | None:
    a, by = v
    if by.terms or by.low != by.high or not 0 <= by.low < width:
        return None
    if not _is_whole([a], kind) or not _is_multiple(a, by.low, False):
        return None
    terms = {s: c >> by.low for s, c in a.terms.items()}
    return _made(terms, a.constant >> by.low, a.low >> by.low, a.high >> by.low, width)


def _extracted(v: list[Spread], width: int, kind: str) -> Spread | None:
    """Bits below those that symbols are multiples of."""
    a, place, length = v
    if place.terms or length.terms or place.low != place.high:
        return None
    bits = place.low + length.low
    is_inside = place.low >= 0 and length.low == length.high >= 0 and bits <= width
    if kind == "s" or not is_inside or not _is_multiple(a, bits, False):
        return None
    field = a.constant >> place.low & (1 << length.low) - 1
    return Spread({}, field, int(field.min()), int(field.max()), width)


def _is_multiple(a: Spread, bits: int, with_constant: bool = True) -> bool:
    """Whether all coefficients are multiples of 2**bits."""
    every = (*a.terms.values(), a.constant) if with_constant else a.terms.values()
    return bits < 60 and all(not (c & ((1 << bits) - 1)).any() for c in every)


def _bitwise(name: str) -> Callable[[list[Spread], int, str], Spread | None]:
    operation = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[
        name
    ]

    def handler(v: list[Spread], width: int, kind: str) -> Spread | None:
        """Where one has only low bits, of which those of the other are known."""
        for a, b in (v, v[::-1]):
            bits = b.high.bit_length()
            if b.low >= 0 and bits <= width and name != "and" and _is_multiple(a, bits):
                return _sum(a, b, 1, width)
            if b.terms:
                continue
            if b.high < 0 and name == "and":  # all but the low bits of the inverse
                inverse = Spread({}, ~b.constant, ~b.high, ~b.low, width)
                low = handler([a, inverse], width, kind)
                return None if low is None else _sum(a, low, -1, width)
            if b.low < 0 or bits > width:
                continue
            if _is_multiple(a, bits, False):
                return _on_low_bits(a, b, bits, width)
            is_mask = b.low == b.high == (1 << bits) - 1
            if name == "and" and is_mask and 0 <= a.low and a.high <= b.low:
                return a
        return None

    def _on_low_bits(a: Spread, b: Spread, bits: int, width: int) -> Spread | None:
        before = a.constant & ((1 << bits) - 1)
        after = operation(before, b.constant)
        if name == "and":
            return Spread({}, after, int(after.min()), int(after.max()), width)
        change = after - before
        more = Spread({}, change, int(change.min()), int(change.max()), width)
        return _sum(a, more, 1, width)

    return handler


def _converted(a: Spread, types: list[tuple[str, int]]) -> Spread | None:
    (_, to), (kind, of) = types[0], types[-1]
    if to > of and not _is_whole([a], kind):
        return None
    return Spread(a.terms, a.constant, a.low, a.high, to)


_HANDLERS: dict[str, Callable[[list[Spread], int, str], Spread | None]] = {
    "add": lambda v, width, _: _sum(v[0], v[1], 1, width),
    "sub": lambda v, width, _: _sum(v[0], v[1], -1, width),
    "shl": _shifted_left,
    "shr": _shifted_right,
    "bfe": _extracted,
    "and": _bitwise("and"),
    "or": _bitwise("or"),
    "xor": _bitwise("xor"),
}
