"""The base class of passes: a frozen dataclass whose fields are the options.

The pass manager calls the instance. The text form of the options, their help and the
documentation are derived from the fields and from the pass's module docstring, which is
its contract (what it does; IR before and after; attributes that it reads, writes and
erases; what it runs before and after).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import MISSING, field, fields
from typing import Any, ClassVar, TypeVar, get_type_hints

from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.frozen import frozen

_Self = TypeVar("_Self", bound="Configured")

# The types of options, and the expected text of each.
_EXPECTED: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    str: "text",
    tuple[int, ...]: "integers separated by commas",
}


@frozen
class Configured:
    """Base of what has a name and options: passes and named pipelines.

    The fields of a subclass are its options; option types: bool, int, str,
    tuple[int, ...].
    """

    kind: ClassVar[str] = "pass"  # for messages
    name: ClassVar[str]

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The options, in the order of the fields; ConfigError at any other field."""
        types = get_type_hints(cls)
        for f in fields(cls):
            if "help" not in f.metadata or types[f.name] not in _EXPECTED:
                raise ConfigError(
                    f"field '{f.name}' of {cls.kind} '{cls.name}' is no option, "
                    f"expected '{f.name}: TYPE = option(DEFAULT, HELP)' with a TYPE "
                    "among bool, int, str, tuple[int, ...]"
                )
        return tuple(
            Option(
                f.name.replace("_", "-"), types[f.name], f.default, f.metadata["help"]
            )
            for f in fields(cls)
        )

    @classmethod
    def find_option(cls, name: str) -> Option:
        """The option called `name` as typed; ConfigError where there is none."""
        known = {option.name: option for option in cls.options()}
        if name not in known:
            expected = (
                f"expected one of {', '.join(known)}" if known else "it takes none"
            )
            raise ConfigError(
                f"{cls.kind} '{cls.name}' has no option '{name}', {expected}"
            )
        return known[name]

    @classmethod
    def from_text(cls: type[_Self], given: Mapping[str, str]) -> _Self:
        """An instance from option texts, keyed as typed; ConfigError on a bad one."""
        values = {
            name.replace("-", "_"): cls.find_option(name).read(
                text, f"{cls.kind} '{cls.name}'"
            )
            for name, text in given.items()
        }
        return cls(**values)

    @classmethod
    def summary(cls) -> str:
        """First line of the docstring."""
        return inspect.cleandoc(cls.__doc__ or "").split("\n", 1)[0]


@frozen
class Pass(Configured):
    """Base of all passes.

    name:   what a pipeline string calls it, "alcop-..." for ours
    anchor: the op that it runs on, "func.func", "gpu.module", "builtin.module" or
            "any"; the driver refuses a pipeline that puts it elsewhere
    """

    anchor: ClassVar[str] = "any"

    def run(self, op: ir.Operation) -> None:
        """Transform `op` (an `ir.Operation`); PassError where it cannot.

        Finds ops by walking `op`, and keeps none of them: another pass may erase any.
        """
        raise NotImplementedError(f"{type(self).__name__}.run")

    def __call__(self, op: ir.Operation, handle: Any) -> None:
        """Run for the pass manager; a failure is signalled to `handle`."""
        try:
            with op.context, op.location:
                alcop.load()
                self.run(op)
        except PassError as error:
            error.location.emit_error(f"{self.name}: {error}")
            handle.signal_pass_failure()

    @classmethod
    def contract(cls) -> str:
        """The docstring of the module that defines the pass."""
        of_module = sys.modules[cls.__module__].__doc__
        return inspect.cleandoc(of_module or cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """First line of the contract."""
        return cls.contract().split("\n", 1)[0]


@frozen
class Option:
    """One option of a pass as typed in a pipeline string."""

    name: str
    type: Any
    default: Any
    help: str

    def read(self, text: str, owner: str) -> Any:
        """The value of `text`; ConfigError if it is not one of this type.

        `owner` is for the message: "pass 'alcop-...'".
        """
        if self.type is bool and text in ("true", "false", "1", "0"):
            return text in ("true", "1")
        if self.type is str:
            return text
        if self.type is int and _is_integer(text):
            return int(text)
        if self.type == tuple[int, ...] and all(map(_is_integer, text.split(","))):
            return tuple(int(part) for part in text.split(","))
        raise ConfigError(
            f"{owner}: option '{self.name}' is '{text}', expected {self.expected()}"
        )

    def expected(self) -> str:
        """What a text of this option must be, for messages and help."""
        return _EXPECTED[self.type]

    def shown_default(self) -> str:
        """The default as it would be typed."""
        if isinstance(self.default, bool):
            return "true" if self.default else "false"
        if isinstance(self.default, tuple):
            return ",".join(map(str, self.default)) or "none"
        return str(self.default) or "none"


# Help of the option `assume-noalias-args` of passes that move reads or writes.
NOALIAS = "an argument that is written overlaps no other"


def option(default: Any, help: str) -> Any:
    """A field that is an option: its default, and one line for `--help`."""
    assert default is not MISSING
    return field(default=default, metadata={"help": help})


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdigit()
