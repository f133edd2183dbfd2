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
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, cached_property
from types import NoneType, UnionType
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
_SHOWN = 60  # characters of a value in a message
_LISTED = 20  # names in a message

T = TypeVar("T")


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


def check(instance: Any, what: str) -> None:
    """ConfigError where members of a dataclass are not as annotated.

    For the `__post_init__` of what users make; members are plain values or tuples.
    """
    _Members.of(instance.__class__).check(instance, what)


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


def open_ended(kind: type[T]) -> type[T]:
    """Members that the dataclass does not have are ignored, not refused."""
    setattr(kind, _OPEN, True)
    return kind


# What an annotation may say besides a type. Plain classes: making a dataclass takes a
# millisecond, and every program imports this file.


class Range:
    """A number from `least` to `most`, or above `least` where `above` is set."""

    def __init__(
        self, least: float | None = None, most: float | None = None, above: bool = False
    ):
        self.least, self.most, self.above = least, most, above

    def apply(self, form: Form) -> Form:
        """`form` for these numbers only."""
        least, most, above = self.least, self.most, self.above
        low = -math.inf if least is None else least
        high = (math.inf if float in form.kinds else _LARGEST) if most is None else most
        if most is not None:
            expected = f"from {least} to {most}"
        else:
            expected = f"above {least}" if above else f"of {least} or more"

        def fits(value: float) -> bool:
            return low <= value <= high and (value != low or not above)

        is_integer = float not in form.kinds
        return form.narrowed(f"{form.expected} {expected}", fits, instead=is_integer)


class OneOf:
    """One of these texts; `called` is for messages, where they are many."""

    def __init__(self, names: Collection[str], called: str = ""):
        listed = f"one of {', '.join(names)}"
        self.names, self.expected = names, called or listed

    def apply(self, form: Form) -> Form:
        """`form` for these texts only."""
        known = frozenset(self.names).__contains__
        return form.narrowed(self.expected, known, instead=True)


class Matches:
    """A text of the form `pattern`, as a whole."""

    def __init__(self, pattern: str):
        self.pattern = pattern

    def apply(self, form: Form) -> Form:
        """`form` for these texts only."""
        fullmatch = re.compile(self.pattern).fullmatch
        expected = f"text like {self.pattern}"
        return form.narrowed(expected, lambda value: fullmatch(value) is not None)


class Length:
    """From `least` to `most` items of a list."""

    def __init__(self, least: int, most: int):
        self.least, self.most = least, most

    def apply(self, form: Form) -> Form:
        """`form` for lists of these lengths only."""
        expected = f"{form.expected} of {self.least} to {self.most}"
        return form.narrowed(expected, lambda v: self.least <= len(v) <= self.most)


class Bounded:
    """Lists and objects in each other at most `depth` deep, with `size` values in all.

    Everything that contains itself needs it.
    """

    def __init__(self, depth: int, size: int):
        self.depth, self.size = depth, size

    def apply(self, form: Form) -> Form:
        """`form` for values of this size only."""

        def make(value: Any) -> Any:
            if self._fits(value):
                return form.read(value)
            limits = f"at most {self.size} values, nested at most {self.depth} deep"
            raise _Wrong(f"expected {limits}, got more")

        return Form(form.owners, form.kinds, form.expected, make, form.write)

    def _fits(self, value: Any) -> bool:
        pending, seen = [(value, 0)], 0
        while pending:
            part, depth = pending.pop()
            seen += 1
            kind: Any = part.__class__
            if kind in (list, dict):
                items = part.values() if kind is dict else part
                pending += [(item, depth + 1) for item in items]
                depth += 1
            if depth > self.depth or seen + len(pending) > self.size:
                return False
        return True


class Name:
    """What the member is called in JSON, where that is not the field's name."""

    def __init__(self, name: str):
        self.name = name


class Stored:
    """Values that are stored as those of type `kind`: `read` is given one and makes the
    value of it, `write` is given the value.
    """

    def __init__(
        self, kind: Any, read: Callable[[Any], Any], write: Callable[..., Any]
    ):
        self.kind, self.read, self.write = kind, read, write

    def form(self, owner: Any) -> Form:
        """The form of `owner`."""
        inner = _form(self.kind)
        return Form(
            (owner,),
            inner.kinds,
            inner.expected,
            lambda value: self.read(inner.read(value)),
            lambda value: inner.write(self.write(value)),
        )


class Tagged:
    """Dataclasses of a union, told apart by the text that is the member `member`."""

    def __init__(self, member: str, classes: Mapping[str, type]):
        self.member, self.classes = member, classes
        self.tags = {kind: tag for tag, kind in classes.items()}
        self.tag = OneOf(tuple(classes)).apply(_form(str))

    def form(self, _: Any) -> Form:
        """The form of the union."""
        owners = tuple(self.tags)
        return Form(owners, frozenset((dict,)), "an object", self._read, self._write)

    def _read(self, value: Any) -> Any:
        if self.member not in value:
            raise _Wrong("missing").within(f".{self.member}")
        try:
            tag = self.tag.read(value[self.member])
        except _Wrong as wrong:
            raise wrong.within(f".{self.member}") from None
        return _Members.of(self.classes[tag]).make(value, self.member)

    def _write(self, value: Any) -> Any:
        return {self.member: self.tags[type(value)], **encode(value)}


class Written:
    """The member is written even where it has its default."""


class Form:
    """How values of the classes `owners` look in JSON: as `kinds` of Python values.

    fits: whether a value of such a kind is accepted
    read: the value that a JSON value stands for; write: the other way
    """

    def __init__(
        self,
        owners: tuple[Any, ...],
        kinds: frozenset[type],
        expected: str,
        make: Callable[[Any], Any] | None = None,
        write: Callable[[Any], Any] | None = None,
        fits: Callable[[Any], bool] | None = None,
    ):
        self.owners, self.kinds, self.expected = owners, kinds, expected
        self.make, self.fits = make, fits
        self.write: Callable[[Any], Any] = write or _same
        self.read = self._reader()

    def narrowed(
        self, expected: str, fits: Callable[[Any], bool], instead: bool = False
    ) -> Form:
        """This form for some of its values; `instead`: its own `fits` is implied."""
        before = self.fits

        def both(value: Any) -> bool:
            return (before is None or before(value)) and fits(value)

        every = fits if instead else both
        return Form(self.owners, self.kinds, expected, self.make, self.write, every)

    def _reader(self) -> Callable[[Any], Any]:
        """A closure: called for every value of a file, it has to be fast."""
        kinds, fits, make, expected = self.kinds, self.fits, self.make, self.expected

        def read(value: Any) -> Any:
            if type(value) in kinds and (fits is None or fits(value)):
                return value if make is None else make(value)
            raise _Wrong(f"expected {expected}, got {shown(value)}")

        return read


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

    def within(self, step: str) -> _Wrong:
        """The same, seen from the list or object around it."""
        self.path = step + self.path
        return self

    def line(self, what: str) -> str:
        """The message."""
        where = (what + self.path).lstrip(".")
        why = self.why.removeprefix(f"{where.rpartition('.')[2]}: ")  # said once
        return f"{where}: {why}" if where else why


_OPEN = "__codec_open_ended__"


def _same(value: Any) -> Any:
    return value


def _refuse_constant(name: str) -> Any:
    raise ConfigError(f"no JSON: {name} is no number of it")


@cache
def _form(kind: Any) -> Form:
    """The form of a type or of an annotation."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _annotated(*get_args(kind))
    if origin is Literal:
        return _literal(get_args(kind))
    if origin is tuple:
        return _tuple(get_args(kind))
    if origin in (Union, UnionType):
        return _union([_form(one) for one in get_args(kind)])
    if origin is dict:
        return _mapping(get_args(kind)[1])
    if is_dataclass(kind):
        return _Members.of(kind).form
    return _SCALARS[kind]


def _literal(values: tuple[Any, ...]) -> Form:
    """One of these texts, or one of these integers."""
    listed = f"one of {', '.join(map(str, values))}"
    form = _form(values[0].__class__)
    return form.narrowed(listed, frozenset(values).__contains__, instead=True)


def _annotated(kind: Any, *marks: Any) -> Form:
    makers = [mark for mark in marks if isinstance(mark, Stored | Tagged)]
    form = makers[0].form(kind) if makers else _form(kind)
    for mark in marks:
        if isinstance(mark, Range | OneOf | Matches | Length | Bounded):
            form = mark.apply(form)
    return form


def _is_text(value: str) -> bool:
    """Not half of a surrogate pair, which no file name and no terminal takes."""
    return value.isascii() or not re.search("[\ud800-\udfff]", value)


def _is_word(value: int) -> bool:
    return -_LARGEST_WORD <= value <= _LARGEST_WORD


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float64 holds
        return False


class _AnyKind(frozenset[type]):
    """All types."""

    def __contains__(self, _: object) -> bool:
        return True


_LISTS = frozenset((list, tuple))
_SCALARS: dict[Any, Form] = {
    bool: Form((bool,), frozenset((bool,)), "true or false"),
    int: Form((int,), frozenset((int,)), "an integer", fits=_is_word),
    float: Form((float,), frozenset((float, int)), "a number", float, fits=_is_finite),
    str: Form((str,), frozenset((str,)), "text", fits=_is_text),
    NoneType: Form((NoneType,), frozenset((NoneType,)), "null"),
    Any: Form((), _AnyKind(), "anything"),
}


def _tuple(items: tuple[Any, ...]) -> Form:
    if len(items) == 2 and items[1] is Ellipsis:
        return _list_of(_form(items[0]))
    forms = [_form(item) for item in items]
    reads = [form.read for form in forms]

    def make(values: Any) -> tuple[Any, ...]:
        try:
            pairs = zip(reads, values, strict=True)
            return tuple([read(value) for read, value in pairs])
        except _Wrong:  # once more, to say which
            return tuple([_item(form, n, values[n]) for n, form in enumerate(forms)])

    def write(values: Any) -> list[Any]:
        return [form.write(one) for form, one in zip(forms, values, strict=True)]

    alike = {form.expected for form in forms}
    each = f", each {alike.pop()}" if len(alike) == 1 else ""
    return Form(
        (tuple,),
        _LISTS,
        f"a list of {len(forms)}{each}",
        make,
        write,
        lambda values: len(values) == len(forms),
    )


def _list_of(form: Form) -> Form:
    read = form.read

    def make(values: Any) -> tuple[Any, ...]:
        try:
            return tuple([read(value) for value in values])
        except _Wrong:  # once more, to say which
            return tuple([_item(form, n, value) for n, value in enumerate(values)])

    def write(values: Any) -> list[Any]:
        return [form.write(value) for value in values]

    return Form((tuple,), _LISTS, "a list", make, write)


def _item(form: Form, number: int, value: Any) -> Any:
    try:
        return form.read(value)
    except _Wrong as wrong:
        raise wrong.within(f"[{number}]") from None


def _mapping(kind: Any) -> Form:
    text, form = _SCALARS[str], _form(kind)

    def make(values: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in values.items():
            try:
                made[text.read(name)] = form.read(value)
            except _Wrong as wrong:
                raise wrong.within(f"[{shown(name)}]") from None
        return made

    def write(values: Any) -> dict[str, Any]:
        return {name: form.write(value) for name, value in values.items()}

    return Form((dict,), frozenset((dict,)), "an object", make, write)


def _union(forms: list[Form]) -> Form:
    """The first form that has the kind of the value; objects by their first member."""
    writers = {owner: form.write for form in forms for owner in form.owners}
    readers: dict[type, Form] = {}
    for form in forms:
        readers |= {kind: form for kind in form.kinds if kind not in readers}
    objects = [form for form in forms if dict in form.kinds]
    if len(objects) > 1:
        readers[dict] = _first_members(objects)
    reads = {kind: form.read for kind, form in readers.items()}
    union = Form(
        tuple(writers),
        frozenset(readers),
        " or ".join(dict.fromkeys(form.expected for form in readers.values())),
        write=lambda value: writers[type(value)](value),
    )
    refuse = union.read

    def read(value: Any) -> Any:
        return reads.get(value.__class__, refuse)(value)

    union.read = read
    return union


def _first_members(forms: list[Form]) -> Form:
    """Dataclasses told apart by their first member, which has no default."""

    @cache
    def by_name() -> dict[str, Form]:
        owners = [form.owners[0] for form in forms]
        firsts = [_Members.of(owner).list[0].name for owner in owners]
        return dict(zip(firsts, forms, strict=True))

    def make(value: Any) -> Any:
        for name, form in by_name().items():
            if name in value:
                return form.read(value)
        names = " or ".join(f'"{name}"' for name in by_name())
        raise _Wrong(f"expected an object with {names}, got {shown(value)}")

    return Form((), frozenset((dict,)), "an object", make)


class _Member:
    """A field of a dataclass, and how it is stored."""

    def __init__(self, field: Field[Any], kind: Any):
        marks = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
        names = [mark.name for mark in marks if isinstance(mark, Name)]
        factory = field.default_factory
        default = field.default if factory is MISSING else factory()
        self.attribute, self.name = field.name, names[0] if names else field.name
        self.form = _form(kind)
        self.default = MISSING if Written in marks else default
        self.is_needed = default is MISSING


class _Members:
    """The fields of a dataclass; looked at when first used: it may contain itself."""

    def __init__(self, kind: Any):
        self._kind = kind
        self._is_open = hasattr(kind, _OPEN)
        self.form = Form(
            (kind,), frozenset((dict,)), "an object", self.make, self._write
        )

    @staticmethod
    @cache
    def of(kind: Any) -> _Members:
        """Those of `kind`."""
        return _Members(kind)

    @cached_property
    def list(self) -> tuple[_Member, ...]:
        """In the order of the dataclass."""
        kinds = get_type_hints(self._kind, include_extras=True)
        return tuple(_Member(field, kinds[field.name]) for field in fields(self._kind))

    def check(self, instance: Any, what: str) -> None:
        """As the function `check`."""
        for name, (attribute, read) in self._readers.items():
            try:
                read(getattr(instance, attribute))
            except _Wrong as wrong:
                raise ConfigError(wrong.within(f".{name}").line(what)) from None

    @cached_property
    def _readers(self) -> dict[str, tuple[str, Callable[[Any], Any]]]:
        return {one.name: (one.attribute, one.form.read) for one in self.list}

    @cached_property
    def _needed(self) -> tuple[tuple[str, str], ...]:
        return tuple((one.attribute, one.name) for one in self.list if one.is_needed)

    def make(self, value: Any, tag: str = "") -> Any:
        """The instance for an object, whose member `tag` is not the dataclass's."""
        readers, given, name = self._readers, dict[str, Any](), ""
        try:
            for name, one in value.items():
                if name in readers:
                    attribute, read = readers[name]
                    given[attribute] = read(one)
                elif name != tag and not self._is_open:
                    raise self._unknown(name)
        except _Wrong as wrong:
            raise wrong.within(f".{name}" if name in readers else "") from None
        for attribute, name in self._needed:
            if attribute not in given:
                raise _Wrong("missing").within(f".{name}")
        try:
            return self._kind(**given)
        except ConfigError as error:
            raise _Wrong(str(error)) from None

    def _unknown(self, name: Any) -> _Wrong:
        known = ", ".join(self._readers)
        return _Wrong(f"unknown {shown(name)}, expected one of {known}")

    def _write(self, value: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for member in self.list:
            one = getattr(value, member.attribute)
            if member.default is MISSING or one != member.default:
                made[member.name] = member.form.write(one)
        return made
