"""Passes that a user defined in a Python file of their own."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from alcop_mlir.errors import ConfigError
from alcop_mlir.passes.base import Pass
from alcop_mlir.pipelines.registry import Registry


def load(file: str, registry: Registry) -> None:
    """Run `file` and register the `Pass` subclasses that it defines by their names.

    Raises ConfigError where the file cannot be run, or defines no pass.
    """
    module = _run(file)
    defined = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Pass)
        and value.__module__ == module.__name__
        and hasattr(value, "name")
    ]
    if not defined:
        raise ConfigError(f"'{file}' defines no subclass of Pass that has a name")
    registry.add(defined)


def _run(file: str) -> ModuleType:
    name = f"alcop_user_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"cannot load '{file}': expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # passes find their docstring through it
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code: it may raise anything
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        raise ConfigError(
            f"cannot load '{file}', line {line}: {type(error).__name__}: {error}"
        ) from error
    return module
