"""Sizes as torch names them: expressions of what a call gives, in one form.

    FloorDiv(s0 - 3, 2) + 1    ->    Quotient(s0 + 1, 2) - 1

Equal sizes are equal expressions then: polynomials with integers of *atoms*, which are
symbols, quotients, and what else torch computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import sympy
from torch.utils._sympy import functions as torch_sympy

_FOR_EVER = 2**62  # the end of a slice without one is 2**63 - 1
_QUOTIENTS = (torch_sympy.FloorDiv, torch_sympy.CleanDiv)
_WHOLE = (torch_sympy.TruncToInt, torch_sympy.FloorToInt)
_REMAINDERS = (torch_sympy.Mod, torch_sympy.PythonMod)


class Quotient(sympy.Function):
    """floor(value / by): a size that is not negative, by a positive number."""

    nargs = 2
    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, *arguments: Any) -> Any:
        """The number where both are known, else nothing."""
        value, by = arguments
        return value // by if value.is_Integer and by.is_Integer else None


def expression(size: Any) -> Any:
    """What torch calls a size; the number where it is known."""
    return sympy.sympify(getattr(getattr(size, "node", None), "expr", size))


@cache
def canonical(size: Any) -> Any:
    """The one form of an expression of sizes."""
    if not size.args:
        return size
    parts = [canonical(part) for part in size.args]
    if isinstance(size, _QUOTIENTS):
        return quotient(*parts)
    if isinstance(size, _REMAINDERS) and len(parts) == 2:
        return sympy.expand(parts[0] - parts[1] * quotient(*parts))
    if isinstance(size, torch_sympy.ToFloat):
        return parts[0]
    if isinstance(size, _WHOLE):  # of what is not negative: sizes times numbers
        above, below = sympy.fraction(sympy.together(sympy.nsimplify(parts[0])))
        return quotient(sympy.expand(above), below)
    made = size.func(*parts)
    return sympy.expand(made) if made.is_Add or made.is_Mul or made.is_Pow else made


def quotient(value: Any, by: Any) -> Any:
    """floor(value / by), both in canonical form."""
    if not by.is_Integer or by <= 0:
        above, below = sympy.fraction(sympy.cancel(value / by))
        is_whole = below == 1
        return sympy.expand(above) if is_whole else torch_sympy.FloorDiv(value, by)
    whole = rest = sympy.Integer(0)
    for term, number in value.as_coefficients_dict().items():
        if not number.is_Integer:
            return torch_sympy.FloorDiv(value, by)
        whole += number // by * term
        rest += number % by * term
    if rest.is_number:  # less than the divisor
        return sympy.expand(whole + rest // by)
    alone, number = rest.as_independent(*atoms(rest), as_Add=True)[::-1]
    if isinstance(alone, Quotient):  # of a quotient: of its value
        inner, first = alone.args
        return sympy.expand(whole + quotient(inner + number * first, first * by))
    return sympy.expand(whole + Quotient(rest, by))


def atoms(size: Any) -> Iterator[Any]:
    """What a canonical expression is a polynomial in; an atom may come repeatedly."""
    if size.is_Add or size.is_Mul or (size.is_Pow and size.exp.is_Integer):
        for part in size.args:
            yield from atoms(part)
    elif not size.is_number:
        yield size


def number(size: Any, known: Mapping[Any, int]) -> int:
    """The value of an expression in a call that has these values of symbols."""
    return int(size.xreplace({one: sympy.Integer(n) for one, n in known.items()}))


def is_at_most(one: Any, other: Any, least: Mapping[Any, int]) -> bool:
    """Whether `one` <= `other` is proven. least: of symbols, else 0."""
    if other.is_number and other >= _FOR_EVER:
        return True
    return _is_never_negative(sympy.expand(other - one), least)


def _is_never_negative(room: Any, least: Mapping[Any, int]) -> bool:
    quotients: list[Any] = [one for one in atoms(room) if isinstance(one, Quotient)]
    if not quotients:
        return _is_sum_of_sizes(room, least)
    # The outermost one first: another's value may have it.
    atom: Any = max(quotients, key=lambda one: one.count_ops())
    factor = room.coeff(atom)
    if sympy.degree(room, atom) != 1 or not factor.is_number:
        return False
    value, by = atom.args
    bounds = [value / by] if factor < 0 else [0, (value - by + 1) / by]
    return any(
        _is_never_negative(sympy.expand(room.subs(atom, bound)), least)
        for bound in bounds
    )


def _is_sum_of_sizes(room: Any, least: Mapping[Any, int]) -> bool:
    """Whether no term is subtracted, of what symbols are more than their least."""
    above = {one: one + least.get(one, 0) for one in room.free_symbols}
    room = sympy.expand(room.subs(above, simultaneous=True))
    if not all(atom.is_Symbol for atom in atoms(room)):
        return False
    return all(factor >= 0 for factor in room.as_coefficients_dict().values())
