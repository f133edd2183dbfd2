"""ALCOP_MLIR_BINDINGS: any package that holds MLIR's bindings, and what it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from alcop_mlir.bindings import PROVIDER, linalg_members, whole_linalg

PARTS = ("ir", "passmanager", "rewrite")


def run(folder: Path, bindings: str) -> subprocess.CompletedProcess[str]:
    """alcop-opt with these bindings; packages in `folder` can be imported."""
    variables = {"ALCOP_MLIR_BINDINGS": bindings, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "alcop_mlir.tools.opt", "--alcop-compile"],
        input="module {}",
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )


def package(folder: Path, name: str, *, without: str = "") -> None:
    """Bindings of that name, which are those of the test, without one module."""
    place = folder.joinpath(*name.split("."))
    (place / "dialects").mkdir(parents=True)
    found = __import__(f"{PROVIDER}.dialects", fromlist=["__path__"]).__path__
    dialects = [
        f"dialects.{file.stem}"
        for file in Path(found[0]).iterdir()
        if not file.stem.startswith("_")
    ]
    for part in (*PARTS, *dialects, "dialects.transform.interpreter"):
        if part != without:
            folder = place.joinpath(*part.split("."))
            is_package = part == "dialects.transform"
            file = folder / "__init__.py" if is_package else folder.with_suffix(".py")
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"from {PROVIDER}.{part} import *\n")


def test_any_dotted_package_may_provide_them(tmp_path: Path) -> None:
    package(tmp_path, "my.company.mlir")
    done = run(tmp_path, "my.company.mlir")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("module")


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("rewrite", "the bindings 'our.mlir' lack the module 'our.mlir.rewrite'"),
        ("dialects.nvgpu", "the bindings 'our.mlir' lack the dialect 'nvgpu'"),
    ],
)
def test_what_a_package_lacks_is_named(
    tmp_path: Path, without: str, message: str
) -> None:
    package(tmp_path, "our.mlir", without=without)
    done = run(tmp_path, "our.mlir")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.such", "no package 'no.such'"),
        ("a-b", "expected the name of a package, as mlir or torch_mlir"),
        ("json", "the bindings 'json' lack the module 'json.ir'"),
    ],
)
def test_what_is_no_package_of_bindings(
    tmp_path: Path, name: str, message: str
) -> None:
    done = run(tmp_path, name)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "ALCOP_MLIR_BINDINGS" in done.stderr
    assert done.stderr.count("\n") == 1


def test_another_package_of_that_name_is_not_taken(tmp_path: Path) -> None:
    """On PyPI an unrelated one is called `mlir`."""
    (tmp_path / "ours").mkdir()
    for part in PARTS:
        (tmp_path / "ours" / f"{part}.py").touch()
    done = run(tmp_path, "ours")
    assert "the bindings 'ours' lack 'ours.ir.Context'" in done.stderr


LINALG = f"""
import sys
from alcop_mlir.bindings import PROVIDER, ir, linalg, make_context
slow = f"{{PROVIDER}}.dialects.linalg.opdsl"
text = '''func.func @f(%A: memref<4x4xf32>, %B: memref<4x4xf32>) {{
  linalg.copy ins(%A : memref<4x4xf32>) outs(%B : memref<4x4xf32>)
  return
}}'''
with make_context(), ir.Location.unknown():
    module = ir.Module.parse(text)
    (block,) = module.body.operations[0].regions[0].blocks
    copy = block.operations[0]
    assert isinstance(copy, linalg.CopyOp) and copy.inputs[0] == block.arguments[0]
    assert len(linalg.get_indexing_maps(copy)) == 2
    print(slow in sys.modules)
    with ir.InsertionPoint.at_block_terminator(block):
        linalg.exp(copy.inputs[0], outs=[copy.outputs[0]])
    print(slow in sys.modules, block.operations[1].name, module.operation.verify())
    from {PROVIDER}.dialects import linalg as theirs
    print(linalg.exp is theirs.exp, theirs.CopyOp is linalg.CopyOp)
"""


def test_only_who_makes_named_ops_of_linalg_waits_for_them() -> None:
    """MLIR loads a dialect's module when Python sees an op of it."""
    command = [sys.executable, "-c", LINALG]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["False", "True linalg.exp True", "True True"]


def test_the_light_linalg_has_what_the_whole_has() -> None:
    """Of each name the same, but for functions of the generated classes."""
    light = linalg_members()
    whole = vars(whole_linalg())
    assert light
    assert {
        name for name, member in light.items() if whole[name] is not member
    } == set()
