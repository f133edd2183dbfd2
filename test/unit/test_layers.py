"""Who may import whom: the table of the architecture, enforced.

Modules are named without `alcop_mlir.`; the package's own `__init__` is "alcop_mlir".
A pattern ending in `.*` means a package and all that is in it. Imports inside functions
count too; only `lazy` ones have to stand there.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "alcop_mlir"


@dataclass(frozen=True)
class Rule:
    """What a module may import of ours; `lazy` in functions only, `never` nowhere."""

    may: str = ""
    lazy: str = ""
    never: str = ""


def module_name(path: Path) -> str:
    """`transforms.base` for that file; `transforms` for the package's `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts) or "alcop_mlir"


def pass_modules() -> str:
    """The modules that define a pass: a class derived from `Pass`."""
    files = sorted((PACKAGE / "transforms").glob("*.py"))
    defines = re.compile(r"^class \w+\(Pass\)", re.MULTILINE)
    return " ".join(
        module_name(f) for f in files if defines.search(f.read_text("utf-8"))
    )


# What a function ought to compute, as data, its values, and sizes of its arrays.
REFERENCE = "steps expressions evaluation polynomials"
ANALYSIS = (
    f"dialects.* bindings diagnostics target schedule resources errors {REFERENCE}"
)
TRANSFORMS = f"analysis.* {ANALYSIS} transforms.*"
# What runs passes, and the passes: no pass, and nothing that helps one, imports them.
RUNNERS = (
    "transforms.pipelines transforms.driver transforms.running transforms.upstream "
    "transforms.instrument transforms.pipeline_text"
)
PASSES = f"{RUNNERS} {pass_modules()}"
RUNTIME = f"target schedule knobs errors files fields {REFERENCE} runtime.*"
COMPILER = f"{TRANSFORMS} {RUNTIME} inputs decisions description __version__"

# The first pattern that fits a module decides.
RULES = {
    "errors": Rule(),
    "target": Rule("errors"),
    "knobs": Rule("errors"),
    "files": Rule("errors"),
    "fields": Rule("errors"),
    "polynomials": Rule(),
    "expressions": Rule("errors fields"),
    "evaluation": Rule("errors expressions"),
    "steps": Rule("errors fields expressions"),
    "schedule": Rule("errors target schedule"),
    "resources": Rule("errors target schedule"),
    "bindings": Rule("errors knobs"),
    "diagnostics": Rule("errors knobs bindings"),
    "inputs": Rule("errors files bindings diagnostics"),
    "dialects.*": Rule("bindings errors schedule dialects.*"),
    "analysis.*": Rule(f"{ANALYSIS} analysis.*"),
    "transforms": Rule(),
    "transforms.pipelines": Rule(TRANSFORMS),
    "transforms.driver": Rule(f"{TRANSFORMS} files"),
    "transforms.running": Rule(f"{TRANSFORMS} files"),
    "transforms.upstream": Rule("bindings errors transforms.pipeline_text"),
    "transforms.select_schedule": Rule(TRANSFORMS, lazy="tuning.*", never=PASSES),
    "transforms.*": Rule(TRANSFORMS, never=PASSES),
    # Kernels run where there is no MLIR: nothing in runtime needs ptx to be loaded.
    "runtime.ptx": Rule(f"{RUNTIME} bindings"),
    "runtime.emulator.*": Rule("errors files runtime.emulator.*"),
    "runtime.*": Rule(RUNTIME, lazy="runtime.ptx"),
    "tuning.*": Rule("schedule target resources errors knobs files tuning.*"),
    "compiler": Rule(COMPILER),
    "decisions": Rule(COMPILER),
    "description": Rule(COMPILER),
    "tools.*": Rule("*"),
    # Loaded first by whoever loads anything: light, and without MLIR.
    "alcop_mlir": Rule(
        "errors target schedule",
        lazy="bindings diagnostics inputs compiler decisions dialects.* analysis.* "
        "transforms.* runtime.* tuning.*",
    ),
}

# Packages that are not Python's own, and the only modules that may import them.
ONLY_IN = {
    "mlir": "bindings",
    "torch_mlir": "bindings",
    "llvmlite": "runtime.ptx",
    "cupy": "runtime.launch runtime.measure",
    "sklearn": "tuning.learned tuning.training",
    "numpy": "evaluation runtime.* tuning.* tools.*",
    "rich": "tools.*",
    "matplotlib": "tools.tune_report",
}


@dataclass(frozen=True)
class Import:
    """One imported module, its line, and whether a function imports it when called."""

    module: str
    line: int
    in_function: bool


def test_every_import_is_allowed() -> None:
    found = [line for path in sources() for line in violations(path)]
    assert not found, "\n".join(["against RULES and ONLY_IN:", *found])


def test_every_module_has_a_rule() -> None:
    without = [name for name in map(module_name, sources()) if rule_of(name) is None]
    assert not without


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("errors", "from alcop_mlir import knobs"),
        ("schedule", "from alcop_mlir.bindings import ir"),
        ("analysis.copies", "from alcop_mlir.transforms.build import clone"),
        ("analysis.copies", "import torch_mlir.ir"),
        ("analysis.copies", "import_module('cupy')"),
        ("analysis.copies", "if TYPE_CHECKING:\n    from alcop_mlir import tuning"),
        ("analysis.copies", "if TYPE_CHECKING:\n    pass\nelse:\n    import cupy"),
        ("analysis.copies", "importlib.import_module('mlir.ir')"),
        ("analysis.copies", "if True:\n    from alcop_mlir.tuning import space"),
        ("transforms.one", "from alcop_mlir.transforms.multi_buffer import f"),
        ("transforms.one", "from alcop_mlir.transforms import multi_buffer"),
        ("transforms.one", "def f():\n    import alcop_mlir.transforms.multi_buffer"),
        ("transforms.select_schedule", "from alcop_mlir.tuning import learned"),
        ("transforms.base", "from alcop_mlir.transforms.pipelines import PASSES"),
        ("runtime.bundle", "from alcop_mlir.runtime.ptx import assemble"),
        ("runtime.bundle", "from alcop_mlir.runtime import ptx"),
        ("runtime.bundle", "import cupy"),
        ("runtime.launch", "from alcop_mlir.bindings import ir"),
        ("runtime.emulator.vm", "import scipy"),
        ("runtime.emulator.vm", "from alcop_mlir.runtime import launch"),
        ("tuning.features", "import sklearn.tree"),
        ("tuning.search", "from alcop_mlir.runtime import measure"),
        ("tools.run", "import cupy"),
        ("alcop_mlir", "from alcop_mlir.bindings import ir"),
        ("alcop_mlir", "class A:\n    from alcop_mlir import bindings"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert len(list(violations_in(module, source))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("knobs", "import os\nfrom pathlib import Path"),
        ("dialects.alcop", "from alcop_mlir.dialects.values import to_attribute"),
        (
            "transforms.base",
            "if TYPE_CHECKING:\n    from typing_extensions import Self",
        ),
        ("transforms.one", "from alcop_mlir.transforms.base import Pass"),
        ("transforms.one", "from alcop_mlir.transforms import base, build"),
        ("transforms.pipelines", "from alcop_mlir.transforms import multi_buffer"),
        ("transforms.select_schedule", "def f():\n    from alcop_mlir import tuning"),
        ("runtime.launch", "import cupy\nimport numpy as np"),
        ("runtime.bundle", "def f():\n    from alcop_mlir.runtime import ptx"),
        ("runtime.ptx", "import llvmlite.binding\nfrom alcop_mlir.bindings import ir"),
        ("tools.run", "from alcop_mlir.runtime.ptx import assemble\nimport rich"),
        ("alcop_mlir", "def f():\n    from alcop_mlir.bindings import ir"),
    ],
)
def test_a_right_import_is_left_alone(module: str, source: str) -> None:
    assert list(violations_in(module, source)) == []


def test_runtime_needs_only_numpy() -> None:
    """All of runtime but ptx loads where nothing but NumPy is installed."""
    names = [name for name in map(module_name, sources()) if fits(name, "runtime.*")]
    program = f"""
import importlib, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(ONLY_IN) - {"numpy"}}:
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
for name in {sorted(set(names) - {"runtime.ptx"})}:
    importlib.import_module(f"alcop_mlir.{{name}}")
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def sources() -> list[Path]:
    """All our modules."""
    return sorted(PACKAGE.rglob("*.py"))


def violations(path: Path) -> Iterator[str]:
    """Each import of a file that the tables do not allow, with its place."""
    for fault in violations_in(module_name(path), path.read_text("utf-8")):
        yield f"{path.relative_to(PACKAGE.parent)}:{fault}"


def violations_in(module: str, source: str) -> Iterator[str]:
    """`line: module may not import another`, for each such import in the source."""
    for found in imports(ast.parse(source)):
        if not is_allowed(module, found):
            yield f"{found.line}: {module} may not import {found.module}"


def imports(node: ast.AST, in_function: bool = False) -> Iterator[Import]:
    """All imports below `node`, also those by `import_module("name")`."""
    for child in ast.iter_child_nodes(node):
        for module in imported(child):
            yield Import(module, getattr(child, "lineno", 0), in_function)
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from imports_for_types(child.body)
                yield from imports(ast.Module(child.orelse, []), in_function)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from imports(child, in_function=True)
            case _:
                yield from imports(child, in_function)


def imports_for_types(body: list[ast.stmt]) -> Iterator[Import]:
    """Imports that only a type checker sees: the rules hold for our own modules."""
    for found in imports(ast.Module(body, []), in_function=True):
        if found.module.partition(".")[0] == PACKAGE.name:
            yield found


def imported(node: ast.AST) -> list[str]:
    """The modules that this one statement or call imports."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom(level=0, module=str(module)):
            if (PACKAGE.parent / module.replace(".", "/")).is_dir():
                return [f"{module}.{alias.name}" for alias in node.names]
            return [module]
        case ast.ImportFrom():
            return [f".{node.module or ''}"]  # relative: fits no rule
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__")
            | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            return [module]
    return []


def is_allowed(module: str, found: Import) -> bool:
    """Do the tables allow this import?"""
    top = found.module.partition(".")[0]
    if top != PACKAGE.name:
        return top in sys.stdlib_module_names or fits(module, ONLY_IN.get(top, ""))
    rule = rule_of(module) or Rule()
    name = found.module.removeprefix(f"{top}.")
    if fits(name, rule.never):
        return False
    return found.in_function if fits(name, rule.lazy) else fits(name, rule.may)


def rule_of(module: str) -> Rule | None:
    """The first rule whose pattern fits."""
    return next((rule for key, rule in RULES.items() if fits(module, key)), None)


def fits(module: str, patterns: str) -> bool:
    """Does one of the patterns name the module, or a package that it is in?"""
    return any(
        pattern in ("*", module)
        or (pattern.endswith(".*") and f"{module}.".startswith(pattern[:-1]))
        for pattern in patterns.split()
    )
