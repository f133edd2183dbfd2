"""The dialect linalg, without the functions that make its named ops.

MLIR's own module makes these from a language of their own, which takes 0.1 s. Whoever
asks for one, or for anything else that is not here, gets it from that module.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import linalg_members, whole_linalg

globals().update(linalg_members())


def __getattr__(name: str) -> Any:
    return getattr(whole_linalg(), name)
