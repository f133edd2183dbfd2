"""`frozen` makes of a class what `dataclasses.dataclass(frozen=True)` does."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from alcop_mlir.frozen import frozen

# A module's text, with the class `A` in it, and calls that make instances.
CLASSES = {
    "none": ("class A: pass", "()"),
    "two": ("class A:\n    a: int\n    b: str = 'b'", "(1)", "(1, 'b')", "(2, b='c')"),
    "one": ("class A:\n    a: float", "(1.0)", "(nan)", "()", "(1, 2)"),
    "made": (
        "class A:\n    a: list[int] = field(default_factory=list)",
        "()",
        "([1])",
    ),
    "variables": ("class A:\n    n: ClassVar[int] = 3\n    a: int = 0", "()", "(3)"),
    "named": (
        "class A:\n    a: int = 1\n    _: KW_ONLY\n    b: int\n    c: int = 2",
        "(b=1)",
        "(1, 2)",
        "(3, b=2, c=4)",
    ),
    "not given": (
        "class A:\n    a: int = 1\n    b: int = field(init=False, default=7)\n"
        "    c: list[int] = field(init=False, default_factory=list)",
        "()",
        "(1, 7)",
    ),
    "not seen": (
        "class A:\n    a: int\n"
        "    b: int = field(default=2, repr=False, compare=False)\n"
        "    c: int = field(default=3, hash=False)",
        "(1)",
        "(1, 3)",
        "(1, 2, 4)",
    ),
    "checked": (
        "class A:\n    a: int\n    def __post_init__(self):\n"
        "        if self.a < 0: raise ValueError(self.a)",
        "(1)",
        "(-1)",
    ),
    "with its own": (
        "class A:\n    a: int\n    def __repr__(self): return 'mine'\n"
        "    def __eq__(self, other): return True",
        "(1)",
        "(2)",
    ),
    "with its own hash": (
        "class A:\n    a: int\n    def __hash__(self): return 5\n"
        "    def __init__(self, a, b): object.__setattr__(self, 'a', a + b)",
        "(1, 2)",
    ),
    "derived": (
        "@made\nclass B:\n    a: int\n    b: int = 2\n"
        "@made\nclass A(B):\n    b: int = 4\n    c: int = 3",
        "(1)",
        "(1, 2, 3)",
        "()",
    ),
    "derived and plain": ("@made\nclass B:\n    a: int\nclass A(B): pass", "(1)"),
    "of itself": ("class A:\n    a: object\n    b: object = None", "([])", "(A(1))"),
}
WRONG = {
    "order": "class A:\n    a: int = 1\n    b: int",
    "shared": "class A:\n    a: list = []",
    "setter": "class A:\n    a: int\n    def __setattr__(self, name, value): pass",
    "from what may change": "@dataclass\nclass B:\n    a: int\n@made\nclass A(B): pass",
}


def module(name: str, text: str, made: Any) -> types.ModuleType:
    """A module in which classes are made by `made`."""
    found = types.ModuleType(name)
    sys.modules[name] = found
    found.__dict__["made"] = made
    heads = (
        "from __future__ import annotations",
        "from dataclasses import KW_ONLY, dataclass, field",
        "from math import nan",
        "from typing import ClassVar",
    )
    exec("\n".join((*heads, "" if "@made" in text else "@made", text)), found.__dict__)
    return found


def stated(of: types.ModuleType, calls: list[str], eq: bool) -> str:
    """What can be seen of the class `A` and of what is made by calls of it."""
    instances = []
    seen: list[Any] = []
    for call in calls:
        made = outcome(lambda call=call: eval("A" + call, of.__dict__))
        (seen if isinstance(made, tuple) else instances).append(made)
    for one in instances:
        seen += [repr(one), vars(one), dataclasses.asdict(one), vars(copy.copy(one))]
        seen.append(vars(pickle.loads(pickle.dumps(one))))
        seen += [[one == other for other in instances], one != 1]
        seen.append(outcome(lambda one=one: hash(one) if eq else is_by_place(one)))
        for name in ("a", "n", "other"):
            seen.append(outcome(lambda one=one, name=name: setattr(one, name, 9)))
            seen.append(outcome(lambda one=one, name=name: delattr(one, name)))
        seen.append(outcome(lambda one=one: dataclasses.replace(one)))
    signature = str(inspect.signature(of.A))
    shown = [
        (f.name, f.type, f.default, f.default_factory, f.init, f.repr, f.compare)
        for f in dataclasses.fields(of.A)
    ]
    params = str(of.A.__dataclass_params__)
    match = of.A.__match_args__
    return repr((seen, signature, shown, params, match, of.A.__init__.__qualname__))


def is_by_place(one: Any) -> bool:
    """Whether it is hashed as any object is, or as its class says."""
    return hash(one) in (object.__hash__(one), 5)


def outcome(work: Callable[[], Any]) -> Any:
    """What it gives, or what it says."""
    try:
        return work()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("eq", [True, False])
def test_it_is_a_frozen_dataclass(name: str, eq: bool) -> None:
    text, *calls = CLASSES[name]
    theirs = module("frozen_case", text, dataclasses.dataclass(frozen=True, eq=eq))
    expected = stated(theirs, calls, eq)
    ours = module("frozen_case", text, frozen if eq else frozen(eq=False))
    assert stated(ours, calls, eq) == expected


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused(name: str) -> None:
    for made in (dataclasses.dataclass(frozen=True), frozen):
        with pytest.raises((TypeError, ValueError)):
            module("frozen_case", WRONG[name], made)


def test_others_may_derive_from_it() -> None:
    """As passes of users do."""

    @frozen
    class Base:
        a: int = 1

    @dataclasses.dataclass(frozen=True)
    class Theirs(Base):
        b: int = 2

    @frozen
    class Ours(Theirs):
        c: int = 3

    assert repr(Theirs(4)).endswith("Theirs(a=4, b=2)")
    assert dataclasses.replace(Ours(), b=5) == Ours(1, 5, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ours().a = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_an_argument_only_is_refused() -> None:
    text = "import dataclasses\n@made\nclass A:\n    a: dataclasses.InitVar[int]"
    with pytest.raises(TypeError, match="field 'a' is an InitVar, expected none"):
        module("frozen_case", text, frozen)


def test_a_circle_ends() -> None:
    @frozen
    class Ring:
        parts: list[Any]

    parts: list[Any] = []
    parts.append(Ring(parts))
    assert repr(parts[0]).endswith("Ring(parts=[...])")
