"""lit: every .mlir file under test/, and every .py file there that has RUN lines.

Run by `make test`; for one folder or file: `.venv/bin/lit -v test/transforms`.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent  # the environment that lit itself is installed in

sys.path[:0] = [str(ROOT / "test"), str(ROOT / "test" / "scripts")]
from devices import has_gpu, has_ptxas  # noqa: E402
from lit_format import MarkedTests  # noqa: E402


def tool(name, installed_as=None):
    """Substitute the environment's own program for the bare word `name`."""
    path = BIN / (installed_as or name)
    if not path.exists():
        lit_config.fatal(f"no {path.name} beside {sys.executable}: run `make test`")
    # Not as part of a longer word, option or path, nor as a name in a pipeline string.
    pattern = rf"(?<![\w./(,='{{-]){re.escape(name)}(?![\w./-])"
    config.substitutions.append((pattern, str(path)))


config.name = "alcop_mlir"
config.test_format = MarkedTests(execute_external=False)
config.suffixes = [".mlir", ".py"]
config.test_source_root = str(ROOT)
config.test_exec_root = str(ROOT / "build" / "lit")
# Folders that hold no tests; `fixtures` and `peers` are what tests read.
config.excludes = ["fixtures", "peers", "__pycache__", ".venv", ".git", "build", "dist"]
config.maxIndividualTestTime = lit_config.maxIndividualTestTime or 60  # seconds

config.substitutions.append(("%PYTHON", sys.executable))
for program in ("alcop-opt", "alcop-compile", "alcop-run", "alcop-tune", "filecheck"):
    tool(program)
tool("FileCheck", installed_as="filecheck")

# The user's own records must not decide what tests see.
config.environment["ALCOP_CACHE_DIR"] = str(ROOT / "build" / "lit" / "cache")
for variable in ("ALCOP_MLIR_BINDINGS", "ALCOP_PTXAS", "CUDA_VISIBLE_DEVICES"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]

if has_ptxas():
    config.available_features.add("ptxas")
if has_gpu():
    config.available_features.add("gpu")
