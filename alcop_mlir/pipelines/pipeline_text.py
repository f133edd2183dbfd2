"""The text form of pipelines: `builtin.module(func.func(cse, my-pass{depth=3}))`.

    pipeline ::= anchor "(" element ("," element)* ")"
    element  ::= pipeline | name | name "{" option* "}"
    option   ::= key | key "=" value

A value is a word, or is quoted ('...', "...") or braced ({...}), as in mlir-opt.
Nothing here knows which passes exist. Every error is a ConfigError with the column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen

_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_KEY = re.compile(r"[A-Za-z_][\w.\-]*")
_OPENERS = {"{": "}", "[": "]", "(": ")"}


@frozen
class OptionText:
    """One `key=value` as typed; `at` and `value_at` are offsets into the whole text."""

    key: str
    value: str
    at: int
    value_at: int


@frozen
class Element:
    """A pass or pipeline (`children` is None), or an anchor op with what runs on it.

    `source` is the text that it was read from and `at` its offset there, for messages.
    """

    name: str
    braced: str | None = None
    children: tuple[Element, ...] | None = None
    source: str = field(default="", repr=False, compare=False)
    at: int = field(default=0, repr=False, compare=False)
    braced_at: int = field(default=0, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The element as a pipeline string."""
        if self.children is not None:
            return f"{self.name}({','.join(child.text for child in self.children)})"
        return self.name if self.braced is None else f"{self.name}{{{self.braced}}}"

    def options(self) -> tuple[OptionText, ...]:
        """The options between the braces; ConfigError where they are ill formed."""
        end = self.braced_at + len(self.braced or "")
        return _Reader(self.source).options(self.braced_at, end)

    def error(self, message: str, at: int | None = None) -> ConfigError:
        """An error that points at this element, or at the offset `at`."""
        return error_at(self.source, self.at if at is None else at, message)


def parse_pipeline(text: str) -> Element:
    """The one anchor of a whole pipeline, such as `builtin.module(...)`.

    Raises ConfigError where the text is not well formed or has no anchor.
    """
    elements = parse_elements(text)
    if len(elements) != 1 or elements[0].children is None:
        at = elements[0].at if elements else 0
        raise error_at(
            text,
            at,
            "a pipeline starts with the op that it runs on, "
            f"write 'builtin.module({text.strip()})'",
        )
    return elements[0]


def parse_elements(text: str) -> tuple[Element, ...]:
    """Elements separated by commas, without an anchor around them; may be none."""
    reader = _Reader(text)
    elements = reader.elements()
    if reader.at != len(text):
        raise error_at(text, reader.at, "expected ',' or the end of the pipeline")
    return elements


def nest(anchor: str, children: Sequence[Element]) -> Element:
    """An anchor around `children` that was not read from a text."""
    text = f"{anchor}({','.join(child.text for child in children)})"
    return Element(anchor, children=tuple(children), source=text)


def with_options(name: str, **options: object) -> str:
    """`name{key=value ...}` from Python values; those that are "" or None are left out.

    Underscores in a key become dashes, sequences become commas, booleans true or false.
    """
    texts = {
        key.replace("_", "-"): _value_text(value)
        for key, value in options.items()
        if value is not None and value != ""
    }
    joined = " ".join(f"{key}={value}" for key, value in texts.items())
    return f"{name}{{{joined}}}" if joined else name


def error_at(text: str, at: int, message: str) -> ConfigError:
    """An error that shows the line of `text` that holds offset `at`, and a caret."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    shown = text[start : end if end >= 0 else len(text)].replace("\t", " ")
    line, column = text.count("\n", 0, at) + 1, at - start
    caret = " " * column + "^"
    return ConfigError(f"pipeline:{line}:{column + 1}: {message}\n{shown}\n{caret}")


_MAX_DEPTH = 100  # of ops in each other


class _Reader:
    """Reads a text from `at` on."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.depth = 0

    def elements(self, closer: str = "") -> tuple[Element, ...]:
        found: list[Element] = []
        self._skip_spaces()
        while not found or self._take(","):
            self._skip_spaces()
            if not found and self.text[self.at : self.at + 1] == closer:
                return ()  # nothing in the parentheses, or in the text
            found.append(self._element())
            self._skip_spaces()
        return tuple(found)

    def options(self, start: int, end: int) -> tuple[OptionText, ...]:
        found = []
        self.at = start
        while True:
            while self.at < end and self.text[self.at].isspace():
                self.at += 1
            if self.at >= end:
                return tuple(found)
            found.append(self._option(end))

    def _element(self) -> Element:
        start = self.at
        name = _NAME.match(self.text, start)
        if name is None:
            raise self._error("expected the name of a pass or op", start)
        self.at = name.end()
        self._skip_spaces()
        if self._take("("):
            opened = self.at - 1
            if self.depth == _MAX_DEPTH:
                raise self._error(f"nested more than {_MAX_DEPTH} deep", start)
            self.depth += 1
            children = self.elements(closer=")")
            self.depth -= 1
            if not self._take(")"):
                raise self._unclosed(opened, ")")
            return Element(name.group(), None, children, self.text, start)
        if self._take("{"):
            opened = self.at
            self.at = self._matching(opened - 1)
            braced = self.text[opened : self.at]
            self.at += 1
            return Element(name.group(), braced, None, self.text, start, opened)
        return Element(name.group(), None, None, self.text, start)

    def _option(self, end: int) -> OptionText:
        start = self.at
        key = _KEY.match(self.text, start, end)
        if key is None:
            raise self._error("expected the name of an option", start)
        self.at = key.end()
        if self.at >= end or self.text[self.at] != "=":
            return OptionText(key.group(), "true", start, start)
        self.at += 1
        value_at = self.at
        while self.at < end and not self.text[self.at].isspace():
            self._skip_group_or_character(end)
        value = self.text[value_at : self.at]
        return OptionText(key.group(), _unquoted(value), start, value_at)

    def _skip_group_or_character(self, end: int) -> None:
        character = self.text[self.at]
        if character in "'\"":
            closing = self.text.find(character, self.at + 1, end)
            if closing < 0:
                raise self._unclosed(self.at, character)
            self.at = closing
        elif character in _OPENERS:
            self.at = self._matching(self.at)
        self.at += 1

    def _matching(self, opened: int) -> int:
        """Offset of what closes the bracket at `opened`, quotes skipped."""
        expected = [_OPENERS[self.text[opened]]]
        at = opened + 1
        while at < len(self.text):
            character = self.text[at]
            if character == expected[-1]:
                expected.pop()
                if not expected:
                    return at
            elif character in "'\"":
                at = self.text.find(character, at + 1)
                if at < 0:
                    break
            elif character in _OPENERS:
                expected.append(_OPENERS[character])
            at += 1
        raise self._unclosed(opened, _OPENERS[self.text[opened]])

    def _skip_spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _take(self, character: str) -> bool:
        if self.text[self.at : self.at + 1] != character:
            return False
        self.at += 1
        return True

    def _unclosed(self, opened: int, closer: str) -> ConfigError:
        if self.text[opened] == "(" and self.at < len(self.text):
            return self._error(f"expected ',' or '{closer}'", self.at)
        return self._error(f"'{self.text[opened]}' is never closed", opened)

    def _error(self, message: str, at: int) -> ConfigError:
        return error_at(self.text, at, message)


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] + value[-1] in ("''", '""', "{}"):
        return value[1:-1]
    return value


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    text = str(value)
    return f"'{text}'" if re.search(r"[\s{}()\[\]\"]", text) else text
