"""The one file that knows which MLIR Python bindings are in use, and their quirks.

Upstream's bindings (`mlir`) and torch-mlir's (`torch_mlir`) carry the same modules.
One of them is chosen per process: their types do not mix. Dialect modules are loaded
when first asked for (`from alcop_mlir.bindings import arith`), as each costs 5-20 ms.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from alcop_mlir import knobs
from alcop_mlir.errors import CompileError, ConfigError, MissingExtraError

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


def make_context(allow_unregistered: bool = False) -> Any:
    """A context in which printing from inside a pass is safe.

    Printing with module scope aborts the process in a multithreaded context, and
    Python passes gain nothing from threads.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = allow_unregistered
    return context


def translate_to_llvm_ir(op: Any) -> str:
    """LLVM IR of a module that holds llvm and nvvm ops only.

    By the C function behind `llvm.translate_module_to_llvmir`, where it is found: that
    one never frees the text, some 30 KB for a kernel.
    """
    translate = _translation()
    if translate is None:
        llvm = importlib.import_module(f"{PROVIDER}.dialects.llvm")
        return llvm.translate_module_to_llvmir(op.operation)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = f"{PROVIDER}.ir.Operation._CAPIPtr"
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    text = translate(get_pointer(op.operation._CAPIPtr, name.encode()))
    if text is None:
        raise CompileError("MLIR cannot translate the kernels to LLVM IR")
    try:
        return ctypes.string_at(text).decode()
    finally:
        free(text)


@cache
def _translation() -> Any | None:
    """MLIR's C function from a module to a `char *`, which the caller has to free."""
    folder = Path(ir.__file__).parent / "_mlir_libs"
    for path in sorted(folder.glob("lib*CAPI*")):
        translate = getattr(
            ctypes.CDLL(str(path)), "mlirTranslateModuleToLLVMIRToString", None
        )
        if translate is not None:
            translate.argtypes = [ctypes.c_void_p]  # a struct of one pointer
            translate.restype = ctypes.c_void_p
            return translate
    return None
