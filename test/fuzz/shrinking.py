"""Makes a failing case simpler while it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, TypeVar

_T = TypeVar("_T")


def shrunk(case: _T, fails: Callable[[_T], bool], attempts: int = 400) -> _T:
    """A simpler case that fails too; `fails` may raise where there is no such case."""
    simpler_one: _T | None = case
    while simpler_one is not None:
        case, simpler_one = simpler_one, None
        for other in simpler(case):
            attempts -= 1
            if attempts < 0:
                break
            if _fails(other, fails):
                simpler_one = other
                break
    return case


def _fails(case: _T, fails: Callable[[_T], bool]) -> bool:
    try:
        return fails(case)
    except Exception:  # fields that do not go together
        return False


def simpler(value: Any) -> Iterator[Any]:
    """Values that are simpler in one place: of a dataclass, a tuple or a number."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            now = getattr(value, field.name)
            if field.default is not MISSING and field.default != now:
                yield replace(value, **{field.name: field.default})
            for option in simpler(now):
                yield replace(value, **{field.name: option})
    elif isinstance(value, tuple):
        if len(value) > 1:
            for place in range(len(value)):
                yield value[:place] + value[place + 1 :]
        for place, one in enumerate(value):
            for option in simpler(one):
                yield (*value[:place], option, *value[place + 1 :])
    elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
        yield from (1, value // 2, value - 1)
