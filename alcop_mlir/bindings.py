"""The one file that knows which MLIR Python bindings are in use, and their quirks.

Upstream's bindings (`mlir`) and torch-mlir's (`torch_mlir`) carry the same modules.
One of them is chosen per process: their types do not mix. Dialect modules are loaded
when first asked for (`from alcop_mlir.bindings import arith`), as each costs 5-20 ms.
"""

from __future__ import annotations

import importlib
import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

from alcop_mlir import knobs
from alcop_mlir.errors import ConfigError, MissingExtraError

_PROVIDERS = ("mlir", "torch_mlir")
_DIALECTS = frozenset(
    "affine arith bufferization cf func gpu linalg llvm math memref nvgpu nvvm scf "
    "tensor transform vector ub".split()
)


def _choose() -> tuple[str, ModuleType, ModuleType, ModuleType]:
    wanted = knobs.bindings()
    if wanted is not None and wanted not in _PROVIDERS:
        raise ConfigError(
            f"ALCOP_MLIR_BINDINGS is '{wanted}', expected one of "
            f"{', '.join(_PROVIDERS)}"
        )
    for base in (wanted,) if wanted else _PROVIDERS:
        try:
            ir_module = importlib.import_module(f"{base}.ir")
            passes = importlib.import_module(f"{base}.passmanager")
            rewrites = importlib.import_module(f"{base}.rewrite")
        except ImportError:
            continue
        # Unrelated packages on PyPI are called `mlir` too.
        if hasattr(ir_module, "Context") and hasattr(passes, "PassManager"):
            return base, ir_module, passes, rewrites
    asked = f", and ALCOP_MLIR_BINDINGS asks for '{wanted}'" if wanted else ""
    raise MissingExtraError(
        f"compiling needs MLIR's Python bindings{asked}", "compiler"
    )


if TYPE_CHECKING:
    # Stubs of our own, in typings/: the bindings ship none.
    from mlir import ir as ir
    from mlir import passmanager as passmanager
    from mlir import rewrite as rewrite

    PROVIDER: str
else:
    PROVIDER, ir, passmanager, rewrite = _choose()


def __getattr__(name: str) -> Any:
    """Dialect modules, loaded on first use; `ext` is the Python dialect maker."""
    if name in _DIALECTS or name == "ext":
        return importlib.import_module(f"{PROVIDER}.dialects.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def available_dialects() -> list[str]:
    """The dialects that the current context knows, sorted, those in Python included.

    The bindings do not list them; the parser does where it misses one.
    """
    try:
        ir.Module.parse("alcop_none.none")
    except ir.MLIRError as error:
        (found,) = error.error_diagnostics
        # "Available dialects: a, b (*), c (* corresponding to loaded but ...); ..."
        listed = found.notes[0].message.partition(": ")[2].replace(" (*)", "")
        return sorted(re.split(r" *[(;]", listed)[0].split(", "))
    raise AssertionError("'alcop_none.none' was parsed")


def make_context(allow_unregistered: bool = False) -> Any:
    """A context in which printing from inside a pass is safe.

    Printing with module scope aborts the process in a multithreaded context, and
    Python passes gain nothing from threads.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = allow_unregistered
    return context
