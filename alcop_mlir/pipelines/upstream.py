"""The passes that MLIR itself registers: finding one by name, and adding it safely.

The bindings cannot list the registered passes; some mistakes they print to stderr, at
others they abort the process. So each name is tried once on a pass manager of its own.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alcop_mlir.bindings import passmanager
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.pipelines.pipeline_text import Element

_RESTRICTED = re.compile(r"restricted to '([\w.]+)'")
_NO_OPTION = re.compile(r"no such option (\S+)")
_BAD_VALUE = re.compile(r"for the --(\S+) option: (.*)")
_MODULE = "builtin.module"


@frozen
class Upstream:
    """A registered name: the op that it must run on ("any": no matter), its options."""

    anchor: str
    options: tuple[str, ...]


@functools.cache
def find(name: str) -> Upstream | None:
    """The registered pass or pipeline of that name. Needs a current context."""
    try:
        shown = _added(_MODULE, name)
    except ValueError as error:
        restricted = _RESTRICTED.search(str(error))
        return Upstream(restricted[1], ()) if restricted else None
    if not re.match(rf"{_MODULE}\({re.escape(name)}[{{)]", shown):
        # A named pipeline shows as its passes. It aborts the process on another op.
        return Upstream(_MODULE, ())
    options = tuple(re.findall(r"[{ ]([\w-]+)=", shown))
    try:
        _added("func.func", name)
    except ValueError as error:
        if _RESTRICTED.search(str(error)):
            return Upstream(_MODULE, options)
    return Upstream("any", options)


def add(manager: Any, element: Element) -> None:
    """Append a pass that `find` knows to `manager`; ConfigError on a bad option."""
    if element.braced is None:
        manager.add(element.text)
        return
    element.options()  # points at the column where they are not well formed
    with _stderr_into() as printed:
        try:
            manager.add(element.text)
        except ValueError as error:
            raise _option_error(element, f"{error}\n{printed()}") from None


@functools.cache
def names() -> tuple[str, ...]:
    """Names of the registered passes and pipelines, for lists and suggestions.

    As of LLVM 24 (made from the strings in the library, each asked for); `find` knows
    others too if they are registered.
    """
    listed = Path(__file__).with_name("upstream_passes.txt").read_text("ascii")
    return tuple(listed.split())


def _added(anchor: str, name: str) -> str:
    manager = passmanager.PassManager(anchor)
    manager.add(name)
    return str(manager)


def _option_error(element: Element, message: str) -> ConfigError:
    unknown, bad = _NO_OPTION.search(message), _BAD_VALUE.search(message)
    name = unknown[1] if unknown else bad[1] if bad else ""
    option = next((o for o in element.options() if o.key == name), None)
    if option is None:
        first = next(filter(None, map(str.strip, message.splitlines())), "bad options")
        return element.error(f"pass '{element.name}': {first}")
    if bad:
        return element.error(
            f"pass '{element.name}': option '{name}': {bad[2].strip().rstrip('!')}",
            option.value_at,
        )
    known = find(element.name)
    # Options that are lists are not shown by MLIR, so none here means nothing.
    expected = ", ".join(known.options) if known else ""
    hint = f", expected one of {expected}" if expected else ""
    return element.error(
        f"pass '{element.name}' has no option '{name}'{hint}", option.at
    )


@contextmanager
def _stderr_into() -> Iterator[Any]:
    """Redirect stderr of C++; the function yielded returns it, else it is printed."""
    sys.stderr.flush()
    saved = os.dup(2)
    asked = False
    with tempfile.TemporaryFile() as sink:

        def printed() -> str:
            nonlocal asked
            asked = True
            sink.seek(0)
            return sink.read().decode(errors="replace")

        os.dup2(sink.fileno(), 2)
        try:
            yield printed
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            if not asked:
                sink.seek(0)
                sys.stderr.write(sink.read().decode(errors="replace"))
