"""Who may import whom: the table of the architecture, enforced.

Modules are named without `alcop_mlir.`; the package's own `__init__` is "alcop_mlir".
A pattern ending in `.*` means a package and all that is in it. Imports inside functions
count too; those that a rule has as `lazy` are allowed there only.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from alcop_mlir.pipelines.registry import PASSES as PASS_TABLE
from alcop_mlir.pipelines.registry import Registry

PACKAGE = Path(__file__).resolve().parents[2] / "alcop_mlir"
MOST_FILES = 30  # of one folder


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
    files = sorted((PACKAGE / "transforms").rglob("*.py"))
    defines = re.compile(r"^class \w+\(Pass\)", re.MULTILINE)
    return " ".join(
        module_name(f) for f in files if defines.search(f.read_text("utf-8"))
    )


CODEC = "codec codec_forms"

# Rooms of analysis and transforms: each with the rooms below it.
IR = "analysis.ir.*"
LINALG = f"{IR} analysis.linalg.*"
LAYOUT = f"{IR} analysis.layout.*"
ANALYSIS = (
    "bindings diagnostics target element_types schedule variants taps rectangles "
    "resources schedule_checks errors dialects.*"
)
REFERENCE = (
    f"errors {CODEC} element_types polynomials extents manifest.names reference.*"
)
# What a function computes, as data.
STEPS = f"{CODEC} extents reference.expressions reference.evaluation reference.steps"
TRANSFORMS = f"{ANALYSIS} analysis.* passes.*"
# How long kernels of fused ops take: arithmetic, without records or a search.
MODELS = "hardware tuning.fused.*"
PASSES = pass_modules()
RUNTIME = (
    f"target schedule knobs limits errors files archives {CODEC} element_types dtypes "
    f"polynomials manifest.* {STEPS} reference.influence "
    "reference.index_arrays reference.input_scales reference.positive_inputs "
    "reference.step_values runtime.*"
)
# Rooms of the emulator: each with the rooms below it.
PTX_TEXT = "errors limits runtime.emulator.arithmetic.* runtime.emulator.ptx.*"
MACHINE = f"{PTX_TEXT} runtime.emulator.machine.*"
INSTRUCTIONS = f"{MACHINE} runtime.emulator.instructions.*"
COMPILATION = (
    f"{TRANSFORMS} pipelines.* transforms.tiling.thread_points reference.* {RUNTIME} "
    "collector version compilation.*"
)

# The first pattern that fits a module decides.
RULES = {
    "errors": Rule(),
    "frozen": Rule(),
    "version": Rule(),
    "element_types": Rule(),
    "polynomials": Rule(),
    "extents": Rule(f"errors {CODEC} polynomials"),
    # What host analyses yield and launches need: without MLIR and NumPy.
    "manifest.names": Rule(),
    "manifest.*": Rule(
        f"element_types errors {CODEC} polynomials extents schedule reference.steps "
        "reference.expressions "
        "manifest.*"
    ),
    "target": Rule("errors"),
    "hardware": Rule("target"),
    "knobs": Rule("errors"),
    "limits": Rule("errors knobs"),
    "files": Rule("errors limits"),
    "archives": Rule("errors limits"),
    "codec_forms": Rule(""),
    "codec": Rule("errors codec_forms"),
    "dtypes": Rule("element_types"),
    "schedule": Rule(f"errors {CODEC} target"),
    "variants": Rule(f"errors {CODEC} schedule"),
    "collector": Rule(),
    "taps": Rule(CODEC),
    "rectangles": Rule(),
    "resources": Rule("errors target schedule taps"),
    "schedule_checks": Rule("errors target schedule taps"),
    "bindings": Rule("errors knobs"),
    "light_dialects": Rule(),
    "light_dialects.*": Rule("bindings"),
    "diagnostics": Rule("errors knobs bindings"),
    "dialects.*": Rule("bindings errors schedule rectangles dialects.*"),
    "reference.*": Rule(f"dtypes {REFERENCE}"),
    "analysis": Rule(),
    "analysis.ir.*": Rule(f"{ANALYSIS} {IR}"),
    "analysis.linalg.*": Rule(f"{ANALYSIS} {LINALG} {STEPS}"),
    "analysis.rows.*": Rule(f"{ANALYSIS} {LINALG} analysis.rows.* {MODELS}"),
    "analysis.tensors.*": Rule(f"{ANALYSIS} {LINALG} analysis.tensors.*"),
    "analysis.chains.*": Rule(
        f"{ANALYSIS} {LINALG} analysis.tensors.* analysis.chains.*"
    ),
    "analysis.layout.*": Rule(f"{ANALYSIS} {LAYOUT}"),
    "analysis.pipelining.*": Rule(
        f"{ANALYSIS} {LAYOUT} manifest.names analysis.pipelining.*"
    ),
    "analysis.host.*": Rule(
        f"{ANALYSIS} polynomials extents reference.steps manifest.* {LAYOUT} "
        "analysis.host.*"
    ),
    "analysis.reference.*": Rule(f"bindings {LINALG} {REFERENCE} analysis.reference.*"),
    # Shares nothing with the passes whose work it checks.
    "verifier.*": Rule("bindings verifier.*"),
    "passes.*": Rule("bindings dialects.* errors target analysis.ir.* passes.*"),
    "transforms": Rule(),
    "transforms.schedules.*": Rule(
        f"{TRANSFORMS} transforms.schedules.*", lazy="tuning.*", never=PASSES
    ),
    "transforms.linalg.*": Rule(f"{TRANSFORMS} transforms.linalg.*", never=PASSES),
    "transforms.tensors.*": Rule(
        f"{TRANSFORMS} transforms.linalg.* transforms.tensors.*", never=PASSES
    ),
    "transforms.chains.*": Rule(
        f"{TRANSFORMS} transforms.linalg.* transforms.tensors.* transforms.tiling.* "
        f"transforms.chains.* transforms.schedules.compiler_chooser {MODELS}",
        lazy="tuning.chain_schedule tuning.selection",
        never=PASSES,
    ),
    "transforms.pipelining.*": Rule(
        f"{TRANSFORMS} verifier.* transforms.pipelining.*", never=PASSES
    ),
    "transforms.roles.*": Rule(
        f"{TRANSFORMS} resources schedule_checks transforms.pipelining.plan_attributes "
        "transforms.roles.*",
        never=PASSES,
    ),
    "transforms.tensor_cores.*": Rule(
        f"{TRANSFORMS} transforms.tensor_cores.*", never=PASSES
    ),
    "transforms.tiling.*": Rule(
        f"{TRANSFORMS} transforms.linalg.* transforms.tiling.*", never=PASSES
    ),
    "transforms.kernels.*": Rule(f"{TRANSFORMS} transforms.*", never=PASSES),
    "pipelines.registry": Rule(
        "errors passes.* pipelines.*", lazy="transforms.*", never="pipelines.driver"
    ),
    "pipelines.checked_steps": Rule(
        "bindings diagnostics errors verifier.* pipelines.instrument"
    ),
    # The verifier is a fifth of what a compile would load, and it does without.
    "pipelines.*": Rule(
        "bindings diagnostics errors files variants dialects.* passes.* pipelines.*",
        never="pipelines.checked_steps",
    ),
    # Kernels run where there is no MLIR: nothing in runtime needs ptx to be loaded.
    "runtime.ptx": Rule(f"{RUNTIME} bindings"),
    "runtime.emulator.arithmetic.*": Rule("runtime.emulator.arithmetic.*"),
    "runtime.emulator.ptx.*": Rule(PTX_TEXT),
    "runtime.emulator.machine.*": Rule(MACHINE),
    # The three that know the machine do not know each other.
    "runtime.emulator.hazards.*": Rule(f"{MACHINE} runtime.emulator.hazards.*"),
    "runtime.emulator.observers.*": Rule(
        f"{MACHINE} files runtime.emulator.observers.*"
    ),
    "runtime.emulator.instructions.*": Rule(INSTRUCTIONS),
    "runtime.emulator.*": Rule("errors limits runtime.emulator.*"),
    "runtime.certificates": Rule(f"{RUNTIME} checker.*"),
    "runtime.*": Rule(RUNTIME, lazy="runtime.ptx"),
    # Proves what it is given as text: of the emulator it takes the parser only.
    # Shares nothing with what it checks.
    "checker.*": Rule("errors collector checker.*"),
    # Runs the checker, to answer what it asks; nothing of the prover goes into that.
    "certificate.search.answers": Rule(
        "errors certificate.certificate certificate.verdicts certificate.search.* "
        "checker.*"
    ),
    "certificate.search.*": Rule("errors certificate.search.* checker.*"),
    "certificate.*": Rule("errors runtime.emulator.ptx.* certificate.*"),
    "tuning.*": Rule(
        "schedule variants taps rectangles target hardware element_types resources "
        f"schedule_checks errors {CODEC} knobs limits files archives tuning.*"
    ),
    "compilation.certification": Rule(f"{COMPILATION} certificate.* checker.*"),
    "compilation.*": Rule(COMPILATION),
    # What tuning is handed to compile and to measure.
    "measurement.*": Rule(
        f"alcop_mlir hardware knobs tuning.* transforms.schedules.* "
        f"transforms.chains.* {COMPILATION} measurement.*"
    ),
    # What comes from torch: nothing else knows that there is one.
    "torch.*": Rule(f"alcop_mlir {COMPILATION} knobs torch.*"),
    "tools.*": Rule("*", never="torch.*"),
    "__main__": Rule("tools.every_tool"),
    # Always loaded first: light, and without MLIR.
    "alcop_mlir": Rule(
        "errors target schedule variants version",
        lazy="bindings diagnostics dialects.* passes.* pipelines.* compilation.* "
        "runtime.*",
    ),
}

# In place of `dataclasses`: for all, but what checks the work of others.
FROZEN = "frozen"
NOT_FROZEN = "frozen verifier.* certificate.* checker.* runtime.emulator.*"

# Packages that are not Python's own, and the only modules that may import them.
ONLY_IN = {
    "mlir": "bindings",
    "torch_mlir": "bindings torch.*",
    "torch": "torch.*",
    "safetensors": "torch.export",
    "sympy": "torch.numbers torch.shapes torch.symbols torch.views",
    "llvmlite": "runtime.ptx",
    "cupy": "runtime.launch runtime.measure",
    "sklearn": "tuning.learned tuning.training",
    "distributed": "measurement.pool_address",
    "dask": "measurement.pool_address",
    "numpy": "analysis.linalg.constant_values certificate.* checker.* dtypes hardware "
    "measurement.chain_simulator measurement.events measurement.simulator "
    "reference.contraction_values reference.evaluation reference.index_arrays "
    "reference.moved_values reference.op_functions reference.step_values runtime.* "
    "tuning.* torch.export tools.*",
    "rich": "tools.*",
    "shtab": "tools.completion",
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


def test_no_circle_between_rooms() -> None:
    assert not circle(arrows(room_of))


def test_no_circle_between_modules() -> None:
    assert not circle(arrows(lambda module: module))


def test_no_room_is_crowded() -> None:
    """A folder that one cannot take in at a glance is cut into rooms."""
    files = Counter(path.parent for path in sources())
    crowded = {str(room): n for room, n in files.items() if n > MOST_FILES}
    assert not crowded


def test_no_circle_between_the_folders_of_the_package() -> None:
    assert not circle(arrows(lambda module: module.partition(".")[0]))


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_the_table_of_passes_is_true() -> None:
    """Each name leads to the class of that name; each pass file is in the table."""
    classes = [Registry().find_pass(name) for name in PASS_TABLE]
    assert [found and found.name for found in classes] == list(PASS_TABLE)
    listed = {f"transforms.{place.partition(':')[0]}" for place in PASS_TABLE.values()}
    assert listed == set(PASSES.split())


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("errors", "from alcop_mlir import knobs"),
        ("schedule", "from alcop_mlir.bindings import ir"),
        ("analysis.ir.one", "from alcop_mlir.passes.build import clone"),
        ("analysis.ir.one", "import torch_mlir.ir"),
        ("analysis.ir.one", "import_module('cupy')"),
        ("analysis.ir.one", "if TYPE_CHECKING:\n    from alcop_mlir import tuning"),
        ("analysis.ir.one", "if TYPE_CHECKING:\n    pass\nelse:\n    import cupy"),
        ("analysis.ir.one", "importlib.import_module('mlir.ir')"),
        ("analysis.ir.one", "if True:\n    from alcop_mlir.tuning import space"),
        (
            "transforms.tiling.one",
            "from alcop_mlir.transforms.pipelining.multi_buffer import f",
        ),
        ("transforms.tiling.one", "from alcop_mlir.transforms import pipelining"),
        ("analysis.ir.one", "from alcop_mlir.analysis.layout import swizzle"),
        ("analysis.linalg.one", "from alcop_mlir.analysis.layout import swizzle"),
        ("transforms.linalg.one", "from alcop_mlir.transforms.tiling import raster"),
        ("verifier.one", "from alcop_mlir.analysis.ir import loops"),
        ("verifier.one", "from alcop_mlir.frozen import frozen"),
        ("compilation.compiler", "from alcop_mlir import __version__"),
        (
            "transforms.tiling.one",
            "def f():\n    import alcop_mlir.transforms.pipelining.multi_buffer",
        ),
        (
            "transforms.schedules.select_schedule",
            "from alcop_mlir.tuning import learned",
        ),
        ("passes.base", "from alcop_mlir.pipelines.registry import PASSES"),
        ("runtime.bundle", "from alcop_mlir.runtime.ptx import assemble"),
        ("runtime.bundle", "from alcop_mlir.runtime import ptx"),
        ("runtime.bundle", "import cupy"),
        ("runtime.launch", "from alcop_mlir.bindings import ir"),
        ("runtime.emulator.vm", "import scipy"),
        ("runtime.emulator.vm", "from alcop_mlir.runtime import launch"),
        (
            "runtime.emulator.ptx.one",
            "from alcop_mlir.runtime.emulator.machine.lanes import Lanes",
        ),
        (
            "runtime.emulator.arithmetic.one",
            "from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS",
        ),
        (
            "runtime.emulator.machine.one",
            "if TYPE_CHECKING:\n"
            "    from alcop_mlir.runtime.emulator.hazards.reports import Reports",
        ),
        (
            "runtime.emulator.machine.one",
            "from alcop_mlir.runtime.emulator.instructions.translator import Op",
        ),
        (
            "runtime.emulator.hazards.one",
            "from alcop_mlir.runtime.emulator.observers import counters",
        ),
        (
            "runtime.emulator.instructions.one",
            "from alcop_mlir.runtime.emulator.hazards.reports import Hazard",
        ),
        (
            "runtime.emulator.instructions.one",
            "from alcop_mlir.runtime.emulator.schedule import Runner",
        ),
        ("tuning.features", "import sklearn.tree"),
        ("tuning.search", "from alcop_mlir.runtime import measure"),
        ("tools.run", "import cupy"),
        ("tools.run", "from alcop_mlir.torch import export"),
        ("tools.run", "import torch"),
        ("runtime.launch", "import torch.utils.dlpack"),
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
        ("passes.base", "from alcop_mlir.frozen import frozen"),
        ("dialects.alcop", "from alcop_mlir.dialects.values import to_attribute"),
        (
            "passes.base",
            "if TYPE_CHECKING:\n    from typing_extensions import Self",
        ),
        ("transforms.tiling.one", "from alcop_mlir.passes.base import Pass"),
        ("transforms.tiling.one", "from alcop_mlir.passes import base, build"),
        ("transforms.tiling.one", "from alcop_mlir.transforms.linalg import matrices"),
        (
            "transforms.schedules.select_schedule",
            "def f():\n    from alcop_mlir import tuning",
        ),
        ("runtime.launch", "import cupy\nimport numpy as np"),
        ("runtime.bundle", "def f():\n    from alcop_mlir.runtime import ptx"),
        ("runtime.ptx", "import llvmlite.binding\nfrom alcop_mlir.bindings import ir"),
        ("tools.run", "from alcop_mlir.runtime.ptx import assemble\nimport rich"),
        ("alcop_mlir", "def f():\n    from alcop_mlir.bindings import ir"),
    ],
)
def test_a_right_import_is_accepted(module: str, source: str) -> None:
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


def arrows(name_of: Callable[[str], str]) -> dict[str, set[str]]:
    """Which modules import which, named by `name_of`; imports in functions count."""
    names = {module_name(path) for path in sources()}
    found: dict[str, set[str]] = {name_of(name): set() for name in names}
    for path in sources():
        module = module_name(path)
        for one in imports_of(path.read_text("utf-8")):
            if one.module.partition(".")[0] != PACKAGE.name:
                continue  # torch is not our room of that name
            imported = one.module.removeprefix(f"{PACKAGE.name}.")
            while imported not in names and "." in imported:
                imported = imported.rpartition(".")[0]
            if imported in names and name_of(imported) != name_of(module):
                found[name_of(module)].add(name_of(imported))
    return found


def room_of(module: str) -> str:
    """The folder of a module; a module in none is a room by itself."""
    is_folder = (PACKAGE / module.replace(".", "/")).is_dir()
    return module if is_folder or "." not in module else module.rpartition(".")[0]


def circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """A cycle along the arrows; empty without one."""
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])[::-1]
    return []


def sources() -> list[Path]:
    """All our modules."""
    return sorted(PACKAGE.rglob("*.py"))


def violations(path: Path) -> Iterator[str]:
    """Each import of a file that the tables do not allow, with its line."""
    for fault in violations_in(module_name(path), path.read_text("utf-8")):
        yield f"{path.relative_to(PACKAGE.parent)}:{fault}"


def violations_in(module: str, source: str) -> Iterator[str]:
    """`line: module may not import another`, for each such import in the source."""
    for found in imports_of(source):
        if not is_allowed(module, found):
            yield f"{found.line}: {module} may not import {found.module}"


@cache
def imports_of(source: str) -> list[Import]:
    """All imports of a module's text."""
    return [*imports(ast.parse(source))]


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
    if name == FROZEN:
        return not fits(module, NOT_FROZEN)
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
