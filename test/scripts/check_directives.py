"""Fail on test lines that look like checks and never run.

usage: check_directives.py FILE|FOLDER ...

Reads the .mlir files, and the .py files with RUN lines, under the folders given.
Dead is a directive that is misspelt, has no colon, or has a prefix or suffix that
FileCheck does not look for; a prefix that is asked for and has no directive; a RUN line
that lit does not see; and `expected-error` and its like where nothing verifies them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

COMMENT = {".mlir": "//", ".py": "#"}
SUFFIX = re.compile(r"DAG|COUNT-\d+|NOT|EMPTY|NEXT|SAME|LABEL")
PREFIX_OPTION = re.compile(r"--?check-prefix(?:es)?[= ]([\w,-]+)")
# The first word of a comment, what follows it, and the colon if it has one.
WORD = re.compile(r"([A-Za-z][\w-]*)(\{LITERAL\})?(\s*:)?")
EXPECTED = re.compile(r"expected-([a-z]+)(?:-re)?\s*(?:@[\w+-]+)?\s*(\{\{)?")
SEVERITIES = {"error", "warning", "remark", "note"}
PROSE = {"COM", "NOTE", "REQUIRES", "UNSUPPORTED", "XFAIL"}


def main(arguments: list[str]) -> int:
    """Print each dead line as `file:line: reason: text`; 1 if there is one."""
    dead = 0
    for path in tests_among(map(Path, arguments)):
        for number, line, reason in dead_lines(path.read_text("utf-8"), path.suffix):
            print(f"{path}:{number}: {reason}: {line.strip()}")
            dead += 1
    return 1 if dead else 0


def tests_among(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that lit would run; a file that is named is taken as it is."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        if not path.exists():
            sys.exit(f"error: no such file or folder: {path}")
        for file in sorted(path.rglob("*")):
            if "fixtures" not in file.parts and is_lit_test(file):
                yield file


def is_lit_test(file: Path) -> bool:
    """As lit.cfg.py has it: every .mlir file, and Python files with RUN lines."""
    if file.suffix == ".py":
        return re.search(r"^# RUN:", file.read_text("utf-8"), re.MULTILINE) is not None
    return file.suffix in COMMENT


def dead_lines(text: str, suffix: str) -> Iterator[tuple[int, str, str]]:
    """(line number, line, reason) for each dead line of a test."""
    marker = COMMENT[suffix]
    commands = run_commands(text, marker)
    prefixes = prefixes_of(commands)
    verifies = any("verify-diagnostics" in command for command in commands)
    found: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        comment = comment_of(line, marker)
        word = WORD.match(comment)
        reason = dead_expectation(comment, verifies)
        if word:
            found.add(directive_prefix(word[1], prefixes) or "")
            reason = reason or dead_word(word, prefixes)
        if reason:
            yield number, line, reason
    for prefix in sorted(prefixes - found):
        yield 1, text.split("\n", 1)[0], f"no directive for the prefix {prefix}"


def run_commands(text: str, marker: str) -> list[str]:
    r"""The commands of the RUN lines; a `\` at the end goes on in the next."""
    lines = re.findall(rf"{re.escape(marker)}\s*RUN:(.*)", text)
    return re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()


def prefixes_of(commands: Iterable[str]) -> set[str]:
    """The prefixes that the FileChecks of all commands look for."""
    prefixes: set[str] = set()
    for command in commands:
        for call in re.findall(r"\bfilecheck\b[^|;&]*", command, re.IGNORECASE):
            named = PREFIX_OPTION.findall(call)
            prefixes.update(p for names in named or ["CHECK"] for p in names.split(","))
    return prefixes


def comment_of(line: str, marker: str) -> str:
    """The comment of a line, without its marker; empty where there is none."""
    found = re.search(rf"(?:^|\s){marker}+\s*(.*)", line)
    return found[1] if found else ""


def directive_prefix(word: str, prefixes: Iterable[str]) -> str | None:
    """The prefix of `CHECK` or `CHECK-NEXT`; None for any other word."""
    for prefix in prefixes:
        suffix = word.removeprefix(f"{prefix}-")
        if word == prefix or (suffix != word and SUFFIX.fullmatch(suffix)):
            return prefix
    return None


def dead_word(match: re.Match[str], prefixes: set[str]) -> str | None:
    """Why the first word of a comment is a check that never runs; None if it is not."""
    word, colon = match[1], match[3]
    if directive_prefix(word, prefixes):
        return None if colon == ":" else "no colon right after the directive"
    if any(word.startswith(f"{prefix}-") for prefix in prefixes):
        return "FileCheck knows no such suffix"
    stem, _, suffix = word.partition("-")
    if SUFFIX.fullmatch(suffix) and stem.isupper():
        return f"no RUN line looks for {stem}"
    if word == "RUN":
        return None if colon == ":" else "RUN without its colon"
    if colon is None or word in PROSE:
        return None
    # Words in capitals with a colon are directives in all but name.
    if word.isupper() and len(word) >= 3:
        return f"no RUN line looks for {word}"
    if word.upper() in prefixes | {"CHECK", "RUN"}:
        return "directives are in capitals"
    return None


def dead_expectation(comment: str, verifies: bool) -> str | None:
    """Why an `expected-...` comment is not looked at; None if it is, or is none."""
    match = EXPECTED.match(comment)
    if match is None:
        return None
    if match[1] not in SEVERITIES:
        return f"no such diagnostic: expected-{match[1]}"
    if match[2] is None:
        return "no {{message}}"
    return None if verifies else "no RUN line has --verify-diagnostics"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
