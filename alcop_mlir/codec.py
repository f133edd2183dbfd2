"""Strict reading and writing of all that is stored: JSON to dataclasses and back.

A field's annotation says what a value has to fulfil, and how it is stored:

    @dataclass(frozen=True)
    class Kernel:
        name: Annotated[str, Matches(r"[a-z]+")]
        block: tuple[int, int, int]  # a list of three
        grid: tuple[Annotated[int, Range(1, 2**31 - 1)] | CeilDiv, ...]
        stages: Annotated[int, Name("slots"), Range(1, 8)] = 1

`decode(Kernel, value)` gives a `Kernel`, or a ConfigError, one line that says where:
`grid[0]: expected an integer from 1 to 2147483647 or an object, got "x"`.

Nothing is converted but a whole number where a float is expected: true is no integer,
"1" no number, NaN and infinity are no numbers. An object has the members of the
dataclass, and no others unless that is `open_ended`. Those with a default may be
missing, and `encode` leaves them out. What concerns several members is for
`__post_init__`, or for who decodes.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import repeat
from types import FunctionType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from alcop_mlir.errors import ConfigError

MAX_TEXT = 256 * 2**20  # bytes of JSON; more than that was not written by us
_LARGEST = 2**63 - 1  # where an annotation gives no other limit
_LARGEST_WORD = 2**64 - 1
_LARGEST_FLOAT = sys.float_info.max
_FIELDS = "__dataclass_fields__"
_SHOWN = 60  # characters of a value in a message

T = TypeVar("T")
_Function = Callable[[Any], Any]
_Mark = Callable[["Form"], "Form"]


def decode(kind: type[T] | Any, value: Any, what: str = "") -> T | Any:
    """The value of type `kind` that JSON's `value` stands for; `what` begins messages.

    kind: a dataclass, or any annotation that one of its fields could have
    """
    try:
        return _form(kind).read(value)
    except _Wrong as wrong:
        raise ConfigError(wrong.line(what)) from None


def encode(value: Any, kind: Any = None) -> Any:
    """`value` as JSON values; `kind` where its class does not say how."""
    return _form(kind or value.__class__).write(value)


def check(instance: Any, what: str, names: Collection[str] | None = None) -> None:
    """ConfigError where members of a dataclass are not as annotated.

    For the `__post_init__` of what users make; members are plain values or tuples, or
    dataclasses that check themselves.

    names: the members that are looked at, where the others have been; None for all
    """
    _members(instance.__class__).check(instance, what, names)


def parse(data: bytes | str, most: int = MAX_TEXT) -> Any:
    """The JSON values of a text of at most `most` bytes; ConfigError if it is none."""
    import json  # costs more than this file, and not all that decodes has a text

    if len(data) > most:
        raise ConfigError(f"JSON of {len(data)} bytes, expected {most} at most")
    try:
        text = data if isinstance(data, str) else data.decode()
        return json.loads(text, parse_constant=_refuse_constant)
    except ConfigError:
        raise
    except UnicodeDecodeError:
        raise ConfigError("no UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"no JSON: {error}") from None
    except ValueError:
        raise ConfigError("no JSON: a number has too many digits") from None
    except RecursionError:
        raise ConfigError("no JSON: nested too deep") from None


def schema_of(value: Any, what: str = "") -> int:
    """The number that is the member `schema` of an object, whatever else it has."""
    schema = decode(dict[str, Any], value, what).get("schema", MISSING)
    where = f"{what}.schema".lstrip(".")
    if schema is MISSING:
        raise ConfigError(f"{where}: missing")
    return decode(int, schema, where)


def open_ended(kind: type[T]) -> type[T]:
    """Members that the dataclass does not have are ignored, not refused."""
    setattr(kind, _OPEN, True)
    return kind


def shared(kind: type[T]) -> type[T]:
    """Equal objects are read once: for a frozen dataclass of which files have many."""
    setattr(kind, _SHARED, True)
    return kind


class Form:
    """How values of the classes `owners` look in JSON: as `kinds` of Python values.

    read: the value that a JSON value stands for, `_Wrong` if for none; write: the other
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
        self.read, self.write = read, write or _same

    def narrowed(self, expected: str, fits: _Function) -> Form:
        """This form for those of its JSON values that fit."""
        kinds, inner = self.kinds, self.read

        def read(value: Any) -> Any:
            if type(value) in kinds and fits(value):
                return inner(value)
            raise _Wrong.expecting(expected, value)

        return Form(self.owners, kinds, expected, read, self.write)


# What an annotation may say besides a type: `Name`, `Written`, or what makes another
# form of the type's.


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
        return _number(form.kinds, f"{form.expected} {limits}", low, high)

    return mark


def OneOf(names: Collection[str], called: str = "") -> _Mark:
    """One of these texts; `called` is for messages, where they are many."""
    return lambda _: _choice(names, called or f"one of {', '.join(names)}")


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
            raise _Wrong(f"expected {limits}, got more")

        return Form(form.owners, form.kinds, form.expected, read, form.write)

    return mark


def Stored(kind: Any, read: _Function, write: _Function) -> _Mark:
    """Values that are stored as those of type `kind`: `read` is given one and makes the
    value of it, `write` is given the value.
    """

    def mark(form: Form) -> Form:
        inner = _form(kind)
        return Form(
            form.owners,
            inner.kinds,
            inner.expected,
            lambda value: read(inner.read(value)),
            lambda value: inner.write(write(value)),
        )

    return mark


def Tagged(member: str, classes: Mapping[str, type]) -> _Mark:
    """Dataclasses of a union, told apart by the text that is the member `member`."""
    tags = {kind: tag for tag, kind in classes.items()}
    read_tag = _choice(classes, f"one of {', '.join(classes)}").read

    def read(value: Any) -> Any:
        if type(value) not in _OBJECTS:
            raise _Wrong.expecting("an object", value)
        try:
            if member not in value:
                raise _Wrong("missing")
            tag = read_tag(value[member])
        except _Wrong as wrong:
            raise wrong.within(f".{member}") from None
        return _members(classes[tag]).make(value, member)

    def write(value: Any) -> Any:
        return {member: tags[type(value)], **encode(value)}

    return lambda _: Form(tuple(tags), _OBJECTS, "an object", read, write)


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


class _Wrong(Exception):
    """What is wrong with a value, and where in it."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why, self.path = why, ""

    @classmethod
    def expecting(cls, expected: str, value: Any) -> _Wrong:
        """`value` is not what is expected."""
        return cls(f"expected {expected}, got {shown(value)}")

    def within(self, step: str) -> _Wrong:
        """The same, seen from the list or object around it."""
        self.path = step + self.path
        return self

    def line(self, what: str) -> str:
        """The message."""
        where = (what + self.path).lstrip(".")
        why = self.why.removeprefix(f"{where.rpartition('.')[2]}: ")  # said once
        return f"{where}: {why}" if where else why


_KNOWN: dict[Any, _Members] = {}
_OPEN = "__codec_open_ended__"
_SHARED = "__codec_shared__"
_MOST_SHARED = 4096


def _same(value: Any) -> Any:
    return value


def _refuse_constant(name: str) -> Any:
    raise ConfigError(f"no JSON: {name} is no number of it")


@cache
def _form(kind: Any) -> Form:
    """The form of a type or of an annotation."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        form = _form(arguments[0])
        for mark in arguments[1:]:
            form = mark(form) if isinstance(mark, FunctionType) else form
        return form
    if origin is Literal:
        return _choice(arguments, f"one of {', '.join(map(str, arguments))}")
    if origin is tuple and arguments[-1] is Ellipsis:
        return _items("a list", None, repeat(_form(arguments[0])))
    if origin is tuple:
        return _tuple([_form(one) for one in arguments])
    if origin in (Union, UnionType):
        return _union([_form(one) for one in arguments])
    if origin is dict:
        return _mapping(_form(arguments[1]))
    return _members(kind).form if is_dataclass(kind) else _SCALARS[kind]


def _number(kinds: Collection[type], expected: str, low: float, high: float) -> Form:
    """Numbers of these kinds, from `low` to `high`; no NaN is."""
    is_float = float in kinds

    def read(value: Any) -> Any:
        if type(value) in kinds and low <= value <= high:
            return float(value) if is_float else value
        raise _Wrong.expecting(expected, value)

    return Form((float if is_float else int,), kinds, expected, read)


def _choice(values: Collection[Any], expected: str) -> Form:
    """One of these values, which are of one type."""
    known = frozenset(values)
    kind: Any = next(iter(values)).__class__

    def read(value: Any) -> Any:
        if type(value) is kind and value in known:
            return value
        raise _Wrong.expecting(expected, value)

    return Form((kind,), (kind,), expected, read)


def _read_text(value: Any) -> str:
    # Not half of a surrogate pair, which no file name and no terminal takes.
    if type(value) is str and (value.isascii() or not _SURROGATE.search(value)):
        return value
    raise _Wrong.expecting("text", value)


_SURROGATE = re.compile("[\ud800-\udfff]")
_LISTS = frozenset((list, tuple))
_OBJECTS = frozenset((dict,))
_SCALARS: dict[Any, Form] = {
    bool: _choice((True, False), "true or false"),
    int: _number((int,), "an integer", -_LARGEST_WORD, _LARGEST_WORD),
    float: _number((float, int), "a number", -_LARGEST_FLOAT, _LARGEST_FLOAT),
    str: Form((str,), (str,), "text", _read_text),
    NoneType: _choice((None,), "null"),
    Any: Form((), (), "anything", _same),
}


def _tuple(forms: list[Form]) -> Form:
    alike = {form.expected for form in forms}
    each = f", each {alike.pop()}" if len(alike) == 1 else ""
    return _items(f"a list of {len(forms)}{each}", len(forms), forms)


def _items(expected: str, count: int | None, forms: Iterable[Form]) -> Form:
    """A list of `count` items, of any number for None, each of its form."""

    def read(values: Any) -> tuple[Any, ...]:
        if type(values) not in _LISTS or count not in (None, len(values)):
            raise _Wrong.expecting(expected, values)
        made: list[Any] = []
        try:
            for form, value in zip(forms, values, strict=False):
                made.append(form.read(value))
        except _Wrong as wrong:
            raise wrong.within(f"[{len(made)}]") from None
        return tuple(made)

    def write(values: Any) -> list[Any]:
        return [form.write(one) for form, one in zip(forms, values, strict=False)]

    return Form((tuple,), _LISTS, expected, read, write)


def _mapping(form: Form) -> Form:
    def read(values: Any) -> dict[str, Any]:
        if type(values) not in _OBJECTS:
            raise _Wrong.expecting("an object", values)
        made: dict[str, Any] = {}
        for name, value in values.items():
            try:
                made[_read_text(name)] = form.read(value)
            except _Wrong as wrong:
                raise wrong.within(f"[{shown(name)}]") from None
        return made

    def write(values: Any) -> dict[str, Any]:
        return {name: form.write(value) for name, value in values.items()}

    return Form((dict,), _OBJECTS, "an object", read, write)


def _union(forms: list[Form]) -> Form:
    """The first form that has the kind of the value; objects by their first member."""
    writers = {owner: form.write for form in forms for owner in form.owners}
    chosen = {kind: form for form in reversed(forms) for kind in form.kinds}
    objects = [form for form in forms if dict in form.kinds]
    if len(objects) > 1:
        chosen[dict] = _first_members(objects)
    ordered = [kind for form in forms for kind in form.kinds]
    expected = " or ".join(dict.fromkeys(chosen[kind].expected for kind in ordered))
    reads = {kind: form.read for kind, form in chosen.items()}

    def read(value: Any) -> Any:
        if value.__class__ in reads:
            return reads[value.__class__](value)
        raise _Wrong.expecting(expected, value)

    def write(value: Any) -> Any:
        return writers[type(value)](value)

    return Form(tuple(writers), reads, expected, read, write)


def _first_members(forms: list[Form]) -> Form:
    """Dataclasses told apart by their first member, which has no default."""

    @cache
    def by_name() -> dict[str, Form]:
        owners = [form.owners[0] for form in forms]
        firsts = [_members(owner).list[0].name for owner in owners]
        return dict(zip(firsts, forms, strict=True))

    def read(value: Any) -> Any:
        for name, form in by_name().items():
            if name in value:
                return form.read(value)
        names = " or ".join(f'"{name}"' for name in by_name())
        raise _Wrong(f"expected an object with {names}, got {shown(value)}")

    return Form((), _OBJECTS, "an object", read)


def _members(kind: Any) -> _Members:
    return _KNOWN.get(kind) or _Members(kind)


class _Member:
    """A field of a dataclass, and how it is stored."""

    def __init__(self, field: Field[Any], kind: Any):
        marks = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
        names = [mark.name for mark in marks if isinstance(mark, Name)]
        self.attribute, self.name = field.name, names[0] if names else field.name
        self.form, self.default = _form(kind), field.default
        self.factory = field.default_factory
        default = field.default if self.factory is MISSING else self.factory()
        self.left_out = MISSING if Written in marks else default


class _Members:
    """The fields of a dataclass."""

    def __init__(self, kind: Any):
        _KNOWN[kind] = self  # before its members, which may be of this kind themselves
        make = _remembered(self.make) if hasattr(kind, _SHARED) else self.make
        self.form = Form((kind,), _OBJECTS, "an object", make, self._write)
        self._kind = kind
        self._is_open = hasattr(kind, _OPEN)
        self._finish: _Function = getattr(kind, "__post_init__", _same)
        kinds = get_type_hints(kind, include_extras=True)
        self.list = [_Member(field, kinds[field.name]) for field in fields(kind)]
        self._readers = {one.name: (one.attribute, one.form.read) for one in self.list}
        self._defaults = {
            one.attribute: one.default
            for one in self.list
            if one.default is not MISSING
        }
        self._factories = [
            (one.attribute, one.factory)
            for one in self.list
            if one.factory is not MISSING
        ]

    def check(self, instance: Any, what: str, names: Collection[str] | None) -> None:
        """As the function `check`."""
        for name, (attribute, read) in self._readers.items():
            if names is not None and attribute not in names:
                continue
            member = getattr(instance, attribute)
            if hasattr(member, _FIELDS):  # as `is_dataclass`, which costs more
                continue
            try:
                read(member)
            except _Wrong as wrong:
                raise ConfigError(wrong.within(f".{name}").line(what)) from None

    def make(self, value: Any, tag: str = "") -> Any:
        """The instance for an object, whose member `tag` is not the dataclass's."""
        if type(value) not in _OBJECTS:
            raise _Wrong.expecting("an object", value)
        readers, name = self._readers, ""
        given: dict[str, Any] = {}
        try:
            for name, one in value.items():
                if name in readers:
                    attribute, read = readers[name]
                    given[attribute] = read(one)
                elif name != tag and not self._is_open:
                    raise self._unknown(name)
        except _Wrong as wrong:
            raise wrong.within(f".{name}" if name in readers else "") from None
        for attribute, factory in self._factories:
            given.setdefault(attribute, factory())
        given = {**self._defaults, **given}
        if len(given) < len(self.list):
            missing = (one.name for one in self.list if one.attribute not in given)
            raise _Wrong("missing").within(f".{next(missing)}")
        # As `__init__` does, but a frozen one calls a function for each member.
        made: Any = object.__new__(self._kind)
        made.__dict__.update(given)
        try:
            self._finish(made)
        except ConfigError as error:
            raise _Wrong(str(error)) from None
        return made

    def _unknown(self, name: Any) -> _Wrong:
        known = ", ".join(self._readers)
        return _Wrong(f"unknown {shown(name)}, expected one of {known}")

    def _write(self, value: Any) -> dict[str, Any]:
        members: dict[str, Any] = value.__dict__
        return {
            one.name: one.form.write(members[one.attribute])
            for one in self.list
            if members[one.attribute] != one.left_out
        }


def _remembered(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`make` of flat objects, once for equal ones."""
    known: dict[Any, Any] = {}

    def again(value: Any) -> Any:
        if type(value) not in _OBJECTS:
            return make(value)
        key = (*value.items(), *map(type, value.values()))  # 1 is not true
        try:
            found = known.get(key)
        except TypeError:  # a list is among them
            return make(value)
        if found is None:
            if len(known) >= _MOST_SHARED:
                known.clear()
            found = known[key] = make(value)
        return found

    return again
