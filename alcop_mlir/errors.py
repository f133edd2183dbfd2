"""The few kinds of failure that a user can meet.

Every message is lower-case, says what was given, what was expected and what to do,
and fits one line where it can. The command-line tools print it after `error: ` and
exit with status 1; no traceback is shown for any of these.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from typing import Any


class AlcopError(Exception):
    """Base of everything that alcop_mlir raises for a user to read."""


class ConfigError(AlcopError, ValueError):
    """A wrong option, target, schedule, file or bundle: found before any work."""


class NoContractionError(ConfigError):
    """A file has no contraction that can be tuned."""


class MissingExtraError(ConfigError):
    """Something is asked for that needs an optional dependency; says what to install.

    what: "compiling needs ...", as the message begins
    extras: the groups of pyproject.toml of which one has to be installed
    """

    def __init__(self, what: str, *extras: str):
        super().__init__(f"{what}: {install_command(*extras)}")


class PassError(AlcopError):
    """A pass cannot fulfil its contract on `op`; reported at the op's location.

    `op` is an MLIR operation (typed `Any`: this module imports no bindings); `location`
    is that of an argument or result of it, where that is meant.
    """

    def __init__(self, op: Any, why: str, location: Any = None):
        super().__init__(why)
        self.op, self._location = op, location

    @property
    def location(self) -> Any:
        """Where it is reported."""
        return self.op.operation.location if self._location is None else self._location


class CompileError(AlcopError):
    """Compiling IR to PTX or to a cubin failed: LLVM, ptxas, a target's limit."""


class LaunchError(AlcopError):
    """A kernel cannot run on what a call gives: arrays, sizes, device, stream."""


class EmulationError(AlcopError):
    """PTX that the emulator cannot run, or a fault in it: out of bounds, ..."""


class CertificateError(AlcopError):
    """A certificate that does not hold for its PTX, or is none."""


class NotBoundedError(CertificateError):
    """An access to global memory is not shown to be inside of an array, by a check that
    has accepted all else.
    """


class NotPlacedError(CertificateError):
    """What is wrong about its results: they are not shown to be what is stated."""


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """ConfigError with the `known` names of such a kind, where `name` is none."""
    if name not in known:
        expected = ", ".join(known)
        raise ConfigError(f"unknown {kind} '{name}', expected one of {expected}")


def optional(module: str, what: str, *extras: str) -> Any:
    """A module of an optional dependency, imported; MissingExtraError without it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(what, *extras) from None


def install_command(*extras: str) -> str:
    """What installs one of the extras."""
    choices = (f"'alcop-mlir[{extra}]'" for extra in extras)
    return f"pip install {' or '.join(choices)}"
