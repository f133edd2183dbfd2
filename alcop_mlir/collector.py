"""Python's collector of cycles, where it costs more than it frees.

It looks at everything that is alive, again and again: of a short compile that is a
tenth of the time while modules are loaded and passes hold ops, and as much again when
the process ends, whose memory the system takes back anyway.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def paused() -> Iterator[None]:
    """No collections meanwhile; afterwards as before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def stop() -> None:
    """No collections any more: for a process that ends with what it begins now.

    The first one after a pause looks at all that was made meanwhile.
    """
    gc.disable()


@cache
def skip_at_exit() -> None:
    """This process ends without a last collection.

    What nothing refers to is freed all the same, and what `with`, `weakref.finalize`
    and `atexit` promise is done: Python runs these first.
    """
    atexit.register(gc.freeze)
