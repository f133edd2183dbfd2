"""How large the package is, and how much of it is typed: lines by room, shares of Any.

usage: python bench/bench_code.py
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "alcop_mlir"
KINDS = ("code", "docstring", "comment", "blank")
TYPED = ("analysis", "transforms")  # rooms whose parameters are counted


def main() -> None:
    """Print both tables."""
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else "."
        rooms.setdefault(room, Counter()).update(kinds(path.read_text()))
    print(f"{'room':<14}{'lines':>8}" + "".join(f"{kind:>12}" for kind in KINDS))
    for room, found in sorted(rooms.items(), key=lambda one: -one[1].total()):
        print_row(room, found)
    print_row("all", sum(rooms.values(), Counter()))
    print()
    for room in TYPED:
        given = [
            text for path in (PACKAGE / room).rglob("*.py") for text in types(path)
        ]
        plain = sum(text == "Any" for text in given)
        inside = sum("Any" in text for text in given)
        print(
            f"{room}: {len(given)} parameters, {plain / len(given):.1%} Any, "
            f"{inside / len(given):.1%} with an Any inside"
        )


def print_row(room: str, found: Counter[str]) -> None:
    numbers = "".join(f"{found[kind]:>12}" for kind in KINDS)
    print(f"{room:<14}{found.total():>8}{numbers}")


def kinds(source: str) -> list[str]:
    """Of each line, which of `KINDS` it is."""
    found = [kind_of(line.strip()) for line in source.splitlines()]
    for node in ast.walk(ast.parse(source)):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            end = text.end_lineno or text.lineno
            found[text.lineno - 1 : end] = ["docstring"] * (end - text.lineno + 1)
    return found


def kind_of(line: str) -> str:
    if not line:
        return "blank"
    return "comment" if line.startswith("#") else "code"


def types(path: Path) -> Iterator[str]:
    """The annotations of all parameters of a file's functions, but self and cls."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef):
            continue
        given = node.args
        several = [one for one in (given.vararg, given.kwarg) if one is not None]
        for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, *several]:
            if one.arg not in ("self", "cls"):
                yield ast.unparse(one.annotation) if one.annotation else "Any"


if __name__ == "__main__":
    main()
