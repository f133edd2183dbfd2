"""Checks diagnostics against comments in the input, as `mlir-opt --verify-diagnostics`.

// expected-error {{text}}          on this line, its message holds the text
// expected-remark@+1 {{text}}      on the next line; `@-2`, two lines above
// expected-note@above {{text}}     on the nearest line above without such a comment
// expected-warning@below {{text}}  on the nearest line below without one
// expected-error@unknown {{text}}  somewhere without a line
// expected-error-re {{of {{[0-9]+}} bytes}}  inner braces: regular expressions
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from alcop_mlir.diagnostics import Diagnostic

_EXPECTED = re.compile(
    r"expected-(error|note|remark|warning)(-re)? *"
    r"(@(?:[+-][0-9]+|above|below|unknown))? *\{\{(.*)\}\}$"
)
# What MLIR adds to every error; tests do not repeat it.
_CURRENT_OP = "see current operation: "


@dataclass(eq=False)
class Expected:
    """One such comment: what it expects, on which line (0: none), and its own line."""

    severity: str
    text: str
    is_regex: bool
    line: int
    own_line: int
    own_column: int

    def fits(self, line: int, severity: str, message: str) -> bool:
        """Whether that is expected: on this line, and its message holds the text."""
        if (self.line, self.severity) != (line, severity):
            return False
        if not self.is_regex:
            return self.text in message
        # Alternating: plain text, regular expression, plain text, ...
        parts = re.split(r"\{\{(.*?)\}\}", self.text)
        pattern = "".join(
            f"(?:{part})" if number % 2 else re.escape(part)
            for number, part in enumerate(parts)
        )
        return re.search(pattern, message) is not None


def expectations(text: str) -> list[Expected]:
    """The comments in `text`, in order."""
    found: list[Expected] = []
    waiting: list[Expected] = []  # "@below", until a line without a comment
    plain_line = 0  # the last line without one
    for number, line in enumerate(text.split("\n"), start=1):
        match = _EXPECTED.search(line.rstrip())
        if match is None:
            for expected in waiting:
                expected.line = number
            waiting.clear()
            plain_line = number
            continue
        severity, regex, designator, wanted = match.groups()
        at = {None: number, "@above": plain_line}.get(designator, 0)
        if designator is not None and designator[1] in "+-":
            at = number + int(designator[1:])
        expected = Expected(
            severity, wanted, regex is not None, at, number, match.start() + 1
        )
        found.append(expected)
        if designator == "@below":
            waiting.append(expected)
    return found


def check(
    file: str,
    text: str,
    said: Iterable[Diagnostic],
    only_expected: bool = False,
) -> list[Diagnostic]:
    """Errors: diagnostics that no comment expects, and comments that are not met.

    `only_expected`: diagnostics that no comment expects are allowed.
    """
    left = expectations(text)
    wrong: list[Diagnostic] = []
    for one in _with_notes(said):
        line = one.line if one.file == file else 0
        met = next((e for e in left if e.fits(line, one.severity, one.message)), None)
        if met is not None:
            left.remove(met)
        elif not only_expected:
            message = f"unexpected {one.severity}: {one.message}"
            wrong.append(replace(one, severity="error", message=message, notes=()))
    for e in left:
        message = f'expected {e.severity} "{e.text}" was not produced'
        wrong.append(Diagnostic("error", message, file, e.own_line, e.own_column))
    return wrong


def _with_notes(said: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    for diagnostic in said:
        yield diagnostic
        for note in diagnostic.notes:
            if not note.message.startswith(_CURRENT_OP):
                yield note
