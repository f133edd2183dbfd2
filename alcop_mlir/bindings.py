"""The one file that knows which MLIR Python bindings are in use, and their quirks.

Upstream's bindings (`mlir`), torch-mlir's (`torch_mlir`), and those that others build
into packages of their own carry the same modules. One of them is chosen per process:
their types do not mix. Dialect modules are loaded when first asked for (`from
alcop_mlir.bindings import arith`), as each costs 5-20 ms; that of linalg costs ten
times as much, and is loaded where its classes do not suffice (`light_dialects/`).
"""

from __future__ import annotations

import ctypes
import importlib
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from alcop_mlir import knobs
from alcop_mlir.errors import CompileError, ConfigError, MissingExtraError

_KNOB = "ALCOP_MLIR_BINDINGS"
_PROVIDERS = ("mlir", "torch_mlir")
_LIGHT = "alcop_mlir.light_dialects"
_DIALECTS = frozenset(
    "affine arith bufferization cf func gpu linalg llvm math memref nvgpu nvvm scf "
    "tensor transform vector ub".split()
)


def _choose() -> tuple[str, ModuleType, ModuleType, ModuleType]:
    wanted = knobs.bindings()
    for base in (wanted,) if wanted else _PROVIDERS:
        try:
            ir_module, passes, rewrites = (
                _part(base, name, f"the module '{base}.{name}'")
                for name in ("ir", "passmanager", "rewrite")
            )
            # Unrelated packages on PyPI are called `mlir` too.
            for module, member in ((ir_module, "Context"), (passes, "PassManager")):
                if not hasattr(module, member):
                    raise ConfigError(_lacks(base, f"'{module.__name__}.{member}'"))
        except ConfigError:
            if wanted:
                raise
            continue
        return base, ir_module, passes, rewrites
    raise MissingExtraError("compiling needs MLIR's Python bindings", "compiler")


def _part(base: str, name: str, what: str) -> ModuleType:
    """The module `name` of the bindings; ConfigError where they lack `what` it is."""
    if not all(part.isidentifier() for part in base.split(".")):
        raise ConfigError(
            f"{_KNOB} is '{base}', expected the name of a package, as "
            f"{' or '.join(_PROVIDERS)}"
        )
    try:
        return importlib.import_module(f"{base}.{name}")
    except ImportError as error:
        if error.name is not None and f"{base}.".startswith(f"{error.name}."):
            raise ConfigError(f"no package '{base}', which {_KNOB} asks for") from None
        why = "" if error.name == f"{base}.{name}" else f": {error}"
        raise ConfigError(f"{_lacks(base, what)}{why}") from None


def _lacks(base: str, what: str) -> str:
    return f"the bindings '{base}' lack {what} ({_KNOB} chooses others)"


def _prefer_light_dialects() -> None:
    """Let MLIR look there first, as it loads a module for each dialect it meets."""
    try:
        mlir = importlib.import_module(f"{PROVIDER}._mlir_libs._mlir")
    except ModuleNotFoundError:
        return  # others' bindings may have it anywhere
    places = getattr(mlir.globals, "dialect_search_modules", None)
    if places is not None and _LIGHT not in places:
        mlir.globals.dialect_search_modules = [_LIGHT, *places]


if TYPE_CHECKING:
    # Stubs of our own, in typings/: the bindings ship none.
    from mlir import ir as ir
    from mlir import passmanager as passmanager
    from mlir import rewrite as rewrite

    PROVIDER: str
else:
    PROVIDER, ir, passmanager, rewrite = _choose()
    _prefer_light_dialects()


def linalg_members() -> dict[str, Any]:
    """The classes of the dialect linalg, and what C++ answers, by name.

    ModuleNotFoundError where the bindings have them in other places.
    """
    ops = importlib.import_module(f"{PROVIDER}.dialects._linalg_ops_gen")
    answers = importlib.import_module(f"{PROVIDER}._mlir_libs._mlirDialectsLinalg")
    members = {n: m for n, m in vars(ops).items() if isinstance(m, type)} | vars(
        answers
    )
    del members["ElementwiseOp"]  # the whole module has another
    return {n: m for n, m in members.items() if not n.startswith("_")}


def whole_linalg() -> ModuleType:
    """MLIR's own module of the dialect linalg."""
    return _part(PROVIDER, "dialects.linalg", "the dialect 'linalg'")


def __getattr__(name: str) -> Any:
    """Dialect modules, loaded on first use; `ext` is the Python dialect maker."""
    if name == "linalg":
        try:
            return importlib.import_module(f"{_LIGHT}.linalg")
        except ModuleNotFoundError:
            return whole_linalg()
    if name in _DIALECTS or name == "ext":
        return _part(PROVIDER, f"dialects.{name}", f"the dialect '{name}'")
    if name == "interpreter":  # of transform scripts
        module = "dialects.transform.interpreter"
        return _part(PROVIDER, module, "the interpreter of transform scripts")
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
    Python passes gain nothing from threads. alcop-lower-to-nvvm has them meanwhile.
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
