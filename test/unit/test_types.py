"""What analyses and transforms take is named, and the stubs say what is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from alcop_mlir import bindings

ROOT = Path(__file__).parents[2]
MOST_ANY = 0.10


def parameters(folder: str) -> Iterator[str]:
    """The annotations of all parameters of the functions in `folder`."""
    for path in sorted((ROOT / "alcop_mlir" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for one in [*named, node.args.vararg, node.args.kwarg]:
                if one is not None and one.arg not in ("self", "cls"):
                    yield ast.unparse(one.annotation) if one.annotation else "Any"


@pytest.mark.parametrize("folder", ["analysis", "transforms"])
def test_few_parameters_are_any(folder: str) -> None:
    found = list(parameters(folder))
    untyped = [text for text in found if "Any" in text]
    assert len(found) > 500
    assert len(untyped) <= MOST_ANY * len(found)


def declared(module: str) -> Iterator[tuple[str, str | None]]:
    """Classes and their members that the stub of `module` declares."""
    stub = ROOT / "typings" / "mlir" / f"{module}.pyi"
    for node in ast.parse(stub.read_text()).body:
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        yield node.name, None
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                yield node.name, member.name
            if isinstance(member, ast.AnnAssign) and isinstance(
                member.target, ast.Name
            ):
                yield node.name, member.target.id


@pytest.mark.parametrize("module", ["ir", "passmanager"])
def test_stubs_declare_what_the_bindings_have(module: str) -> None:
    given = getattr(bindings, module)
    missing = []
    for name, member in declared(module):
        kind = getattr(given, name, None)
        if kind is None:
            missing.append(name)
        # An accessor may be of a derived class, of which the bindings hand out the
        # right one, or be answered by `__getattr__`.
        elif member not in (None, "__getattr__"):
            derived = [kind, *kind.__subclasses__()]
            if not any(member in dir(one) for one in derived):
                missing.append(f"{name}.{member}")
    assert missing == []
