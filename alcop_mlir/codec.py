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

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import repeat
from types import FunctionType, UnionType
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

from alcop_mlir.codec_forms import (
    OBJECTS,
    SCALARS,
    Form,
    Name,
    Written,
    Wrong,
    as_it_is,
    choice,
    items,
    mapping,
    shown,
    tuple_of,
)
from alcop_mlir.errors import ConfigError

MAX_TEXT = 256 * 2**20  # bytes of JSON; more than that was not written by us
_FIELDS = "__dataclass_fields__"

T = TypeVar("T")
_Function = Callable[[Any], Any]
_Mark = Callable[["Form"], "Form"]


def decode(kind: type[T] | Any, value: Any, what: str = "") -> T | Any:
    """The value of type `kind` that JSON's `value` stands for; `what` begins messages.

    kind: a dataclass, or any annotation that one of its fields could have
    """
    try:
        return _form(kind).read(value)
    except Wrong as wrong:
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


# What an annotation may say besides a type: `Name`, `Written`, or what makes another
# form of the type's.


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
    read_tag = choice(classes, f"one of {', '.join(classes)}").read

    def read(value: Any) -> Any:
        if type(value) not in OBJECTS:
            raise Wrong.expecting("an object", value)
        try:
            if member not in value:
                raise Wrong("missing")
            tag = read_tag(value[member])
        except Wrong as wrong:
            raise wrong.within(f".{member}") from None
        return _members(classes[tag]).make(value, member)

    def write(value: Any) -> Any:
        return {member: tags[type(value)], **encode(value)}

    return lambda _: Form(tuple(tags), OBJECTS, "an object", read, write)


_KNOWN: dict[Any, _Members] = {}
_OPEN = "__codec_open_ended__"
_SHARED = "__codec_shared__"
_MOST_SHARED = 4096


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
        return choice(arguments, f"one of {', '.join(map(str, arguments))}")
    if origin is tuple and arguments[-1] is Ellipsis:
        return items("a list", None, repeat(_form(arguments[0])))
    if origin is tuple:
        return tuple_of([_form(one) for one in arguments])
    if origin in (Union, UnionType):
        return _union([_form(one) for one in arguments])
    if origin is dict:
        return mapping(_form(arguments[1]))
    return _members(kind).form if is_dataclass(kind) else SCALARS[kind]


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
        raise Wrong.expecting(expected, value)

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
        raise Wrong(f"expected an object with {names}, got {shown(value)}")

    return Form((), OBJECTS, "an object", read)


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
        self.form = Form((kind,), OBJECTS, "an object", make, self._write)
        self._kind = kind
        self._is_open = hasattr(kind, _OPEN)
        self._finish: _Function = getattr(kind, "__post_init__", as_it_is)
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
            except Wrong as wrong:
                raise ConfigError(wrong.within(f".{name}").line(what)) from None

    def make(self, value: Any, tag: str = "") -> Any:
        """The instance for an object, whose member `tag` is not the dataclass's."""
        if type(value) not in OBJECTS:
            raise Wrong.expecting("an object", value)
        readers, name = self._readers, ""
        given: dict[str, Any] = {}
        try:
            for name, one in value.items():
                if name in readers:
                    attribute, read = readers[name]
                    given[attribute] = read(one)
                elif name != tag and not self._is_open:
                    raise self._unknown(name)
        except Wrong as wrong:
            raise wrong.within(f".{name}" if name in readers else "") from None
        for attribute, factory in self._factories:
            given.setdefault(attribute, factory())
        given = {**self._defaults, **given}
        if len(given) < len(self.list):
            missing = (one.name for one in self.list if one.attribute not in given)
            raise Wrong("missing").within(f".{next(missing)}")
        # As `__init__` does, but a frozen one calls a function for each member.
        made: Any = object.__new__(self._kind)
        made.__dict__.update(given)
        try:
            self._finish(made)
        except ConfigError as error:
            raise Wrong(str(error)) from None
        return made

    def _unknown(self, name: Any) -> Wrong:
        known = ", ".join(self._readers)
        return Wrong(f"unknown {shown(name)}, expected one of {known}")

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
        if type(value) not in OBJECTS:
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
