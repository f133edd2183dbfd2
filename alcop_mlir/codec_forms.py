"""How values look in JSON, and what a field's annotation may ask of them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable
from types import NoneType
from typing import (
    Any,
)

_Function = Callable[[Any], Any]
_Mark = Callable[["Form"], "Form"]
_LARGEST = 2**63 - 1  # where an annotation gives no other limit
_LARGEST_WORD = 2**64 - 1
_LARGEST_FLOAT = sys.float_info.max
_SHOWN = 60  # characters of a value in a message


class Form:
    """How values of the classes `owners` look in JSON: as `kinds` of Python values.

    read: the value that a JSON value stands for, `Wrong` if for none; write: the other
    way. Called for every value of a file, it has to be fast: closures, one call each.
    """

    def __init__(
        self,
        owners: tuple[Any, ...],
        kinds: Collection[type],
        expected: str,
        read: _Function,
        write: _Function | None = None,
    ):
        self.owners, self.kinds, self.expected = owners, frozenset(kinds), expected
        self.read, self.write = read, write or as_it_is

    def narrowed(self, expected: str, fits: _Function) -> Form:
        """This form for those of its JSON values that fit."""
        kinds, inner = self.kinds, self.read

        def read(value: Any) -> Any:
            if type(value) in kinds and fits(value):
                return inner(value)
            raise Wrong.expecting(expected, value)

        return Form(self.owners, kinds, expected, read, self.write)


class Name:
    """What the member is called in JSON, where that is not the field's name."""

    def __init__(self, name: str):
        self.name = name


Written = object()  # the member is written even where it has its default


def Range(
    least: float | None = None, most: float | None = None, above: bool = False
) -> _Mark:
    """A number from `least` to `most`, or above `least` where `above` is set."""

    def mark(form: Form) -> Form:
        is_float = float in form.kinds
        low = -math.inf if least is None else least
        low = math.nextafter(low, math.inf) if above else low
        high = (_LARGEST_FLOAT if is_float else _LARGEST) if most is None else most
        if most is not None:
            limits = f"from {least} to {most}"
        else:
            limits = f"above {least}" if above else f"of {least} or more"
        return number(form.kinds, f"{form.expected} {limits}", low, high)

    return mark


def OneOf(names: Collection[str], called: str = "") -> _Mark:
    """One of these texts; `called` is for messages, where they are many."""
    return lambda _: choice(names, called or f"one of {', '.join(names)}")


def Matches(pattern: str) -> _Mark:
    """A text of the form `pattern`, as a whole."""
    return lambda form: form.narrowed(
        f"text like {pattern}", re.compile(pattern).fullmatch
    )


def Length(least: int, most: int) -> _Mark:
    """From `least` to `most` items of a list."""
    return lambda form: form.narrowed(
        f"{form.expected} of {least} to {most}", lambda v: least <= len(v) <= most
    )


def Bounded(depth: int, size: int) -> _Mark:
    """Lists and objects in each other at most `depth` deep, with `size` values in all.

    Everything that contains itself needs it.
    """

    def fits(value: Any) -> bool:
        pending, seen = [(value, 0)], 0
        while pending:
            part, around = pending.pop()
            seen += 1
            kind: Any = part.__class__
            if kind in (list, dict):
                items = part.values() if kind is dict else part
                pending += [(item, around + 1) for item in items]
                around += 1
            if around > depth or seen + len(pending) > size:
                return False
        return True

    def mark(form: Form) -> Form:
        def read(value: Any) -> Any:
            if fits(value):
                return form.read(value)
            limits = f"at most {size} values, nested at most {depth} deep"
            raise Wrong(f"expected {limits}, got more")

        return Form(form.owners, form.kinds, form.expected, read, form.write)

    return mark


def shown(value: Any) -> str:
    """`value` for a message: as JSON, cut where it is long."""
    if value.__class__ in _LISTS:
        return _listed(value)
    if isinstance(value, dict):
        return "an object" if value else "{}"
    if isinstance(value, int) and abs(value) > _LARGEST_WORD:
        return f"an integer of {value.bit_length()} bits"  # str may refuse it
    if isinstance(value, bool | NoneType):
        return {True: "true", False: "false", None: "null"}[value]
    text = repr(value[:_SHOWN]) if isinstance(value, str) else repr(value)
    if isinstance(value, str):
        text = f'"{text[1:-1]}"'
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _listed(values: Collection[Any]) -> str:
    is_short = len(values) <= 4 and not any(
        isinstance(value, list | tuple | dict) for value in values
    )
    if not is_short:
        return f"a list of {len(values)}"
    return f"[{', '.join(map(shown, values))}]"


class Wrong(Exception):
    """What is wrong with a value, and where in it."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why, self.path = why, ""

    @classmethod
    def expecting(cls, expected: str, value: Any) -> Wrong:
        """`value` is not what is expected."""
        return cls(f"expected {expected}, got {shown(value)}")

    def within(self, step: str) -> Wrong:
        """The same, seen from the list or object around it."""
        self.path = step + self.path
        return self

    def line(self, what: str) -> str:
        """The message."""
        where = (what + self.path).lstrip(".")
        why = self.why.removeprefix(f"{where.rpartition('.')[2]}: ")  # said once
        return f"{where}: {why}" if where else why


def as_it_is(value: Any) -> Any:
    return value


def number(kinds: Collection[type], expected: str, low: float, high: float) -> Form:
    """Numbers of these kinds, from `low` to `high`; no NaN is."""
    is_float = float in kinds

    def read(value: Any) -> Any:
        if type(value) in kinds and low <= value <= high:
            return float(value) if is_float else value
        raise Wrong.expecting(expected, value)

    return Form((float if is_float else int,), kinds, expected, read)


def choice(values: Collection[Any], expected: str) -> Form:
    """One of these values, which are of one type."""
    known = frozenset(values)
    kind: Any = next(iter(values)).__class__

    def read(value: Any) -> Any:
        if type(value) is kind and value in known:
            return value
        raise Wrong.expecting(expected, value)

    return Form((kind,), (kind,), expected, read)


def read_text(value: Any) -> str:
    # Not half of a surrogate pair, which no file name and no terminal takes.
    if type(value) is str and (value.isascii() or not _SURROGATE.search(value)):
        return value
    raise Wrong.expecting("text", value)


_SURROGATE = re.compile("[\ud800-\udfff]")
_LISTS = frozenset((list, tuple))


OBJECTS = frozenset((dict,))


def tuple_of(forms: list[Form]) -> Form:
    alike = {form.expected for form in forms}
    each = f", each {alike.pop()}" if len(alike) == 1 else ""
    return items(f"a list of {len(forms)}{each}", len(forms), forms)


def items(expected: str, count: int | None, forms: Iterable[Form]) -> Form:
    """A list of `count` items, of any number for None, each of its form."""

    def read(values: Any) -> tuple[Any, ...]:
        if type(values) not in _LISTS or count not in (None, len(values)):
            raise Wrong.expecting(expected, values)
        made: list[Any] = []
        try:
            for form, value in zip(forms, values, strict=False):
                made.append(form.read(value))
        except Wrong as wrong:
            raise wrong.within(f"[{len(made)}]") from None
        return tuple(made)

    def write(values: Any) -> list[Any]:
        return [form.write(one) for form, one in zip(forms, values, strict=False)]

    return Form((tuple,), _LISTS, expected, read, write)


def mapping(form: Form) -> Form:
    def read(values: Any) -> dict[str, Any]:
        if type(values) not in OBJECTS:
            raise Wrong.expecting("an object", values)
        made: dict[str, Any] = {}
        for name, value in values.items():
            try:
                made[read_text(name)] = form.read(value)
            except Wrong as wrong:
                raise wrong.within(f"[{shown(name)}]") from None
        return made

    def write(values: Any) -> dict[str, Any]:
        return {name: form.write(value) for name, value in values.items()}

    return Form((dict,), OBJECTS, "an object", read, write)


SCALARS: dict[Any, Form] = {
    bool: choice((True, False), "true or false"),
    int: number((int,), "an integer", -_LARGEST_WORD, _LARGEST_WORD),
    float: number((float, int), "a number", -_LARGEST_FLOAT, _LARGEST_FLOAT),
    str: Form((str,), (str,), "text", read_text),
    NoneType: choice((None,), "null"),
    Any: Form((), (), "anything", as_it_is),
}
