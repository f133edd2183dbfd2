"""Reading JSON that may be damaged or hostile: members are taken by name and type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from alcop_mlir.errors import ConfigError


class Fields:
    """A JSON object whose members are taken by name and type."""

    def __init__(self, value: Any, what: str):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{what} is {short(value)}, expected an object")
        self._value, self._what = value, what

    def take(self, name: str, kind: type) -> Any:
        """Member `name`; ConfigError where it is missing or no `kind`."""
        if name not in self._value:
            raise ConfigError(f"{self._what} has no '{name}'")
        value = self._value[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ConfigError(
                f"{self._what}: '{name}' is {short(value)}, expected {kind.__name__}"
            )
        return value

    def count(self, name: str) -> int:
        """Member `name`, an integer of 0 or more."""
        value = self.take(name, int)
        if value < 0:
            raise ConfigError(f"{self._what}: '{name}' is {value}, expected 0 or more")
        return value

    def optional_count(self, name: str) -> int | None:
        """As `count`, or None where the member is null or missing."""
        return None if self._value.get(name) is None else self.count(name)

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str:
        """Member `name`, one of the texts `allowed`."""
        value = self.take(name, str)
        if value not in allowed:
            raise ConfigError(
                f"{self._what}: '{name}' is '{value}', expected one of "
                f"{', '.join(allowed)}"
            )
        return value

    def matching(self, name: str, pattern: str) -> str:
        """Member `name`, a text of the form `pattern`."""
        value = self.take(name, str)
        if re.fullmatch(pattern, value) is None:
            raise ConfigError(f"{self._what}: '{name}' is {short(value)}")
        return value


def is_count(value: Any) -> bool:
    """Whether `value` is an integer of 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def short(value: Any) -> str:
    """`value` for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
