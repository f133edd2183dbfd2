"""What README.md and docs/ show can be run, and what they name is there."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from alcop_mlir.errors import MissingExtraError
from alcop_mlir.tools import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KERNEL = "func.func @f(%x: memref<4xf32>) { return }"


def snippet(page: str, begin: str) -> str:
    """The indented block of a page that starts with `begin`."""
    text = (ROOT / page).read_text()
    found = re.search(rf"^    {re.escape(begin)}\n(?:(?:    .*)?\n)*", text, re.M)
    assert found is not None, begin
    return textwrap.dedent(found[0])


def test_the_embedding_page_runs() -> None:
    """In a fresh process, in which nothing else has imported what it uses."""
    shown = snippet("docs/embedding.md", "import alcop_mlir")
    line = "with alcop_mlir.diagnostics.collect() as remarks:"
    assert f"`{line}`" in (ROOT / "docs/embedding.md").read_text()
    program = f"text = {KERNEL!r}\nimport alcop_mlir\n{line} pass\n{shown}"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_the_readme_runs() -> None:
    text = (ROOT / "README.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", text, re.S)
    arrays = {
        "A": np.ones((512, 1024), np.float16),
        "B": np.ones((1024, 512), np.float16),
        "C": np.zeros((512, 512), np.float32),
    }
    program = shown.replace("examples/", f"{ROOT}/examples/")
    exec(program, arrays)
    assert (arrays["C"] == 1024).all()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_ours_are_there(page: Path) -> None:
    names = set(re.findall(r"\balcop_mlir(?:\.[A-Za-z_]\w*)+", page.read_text()))
    missing = []
    for name in sorted(names):
        try:
            pkgutil.resolve_name(name)
        except MissingExtraError:  # they are looked for where the extra is installed
            assert name.startswith("alcop_mlir.torch")
        except (ImportError, AttributeError):
            missing.append(name)
    assert not missing


def test_the_profile_is_the_one_that_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a PTX file, so that it does not change with the compiler."""
    shown = (ROOT / "docs/emulator.md").read_text()
    ptx = ROOT / "examples/ptx/window_sum.ptx"
    launch = str(ptx.with_suffix(".json"))
    assert run.main([str(ptx), "--launch", launch, "--profile"]) == 0
    _, profile = capsys.readouterr().out.split("profile of window_sum\n")
    assert f"profile of window_sum\n{profile}```" in shown
