"""The PTX of a module's parts as one text: the one that the whole module gives."""

from __future__ import annotations

import re
from collections.abc import Sequence

# LLVM numbers labels and local memory by the function's place in the module.
_NUMBERED = re.compile(r"(\$L__BB|__local_depot)(\d+)")
_FUNCTION = "\t// .globl\t"
_DECLARATION = ".extern .shared "


def join(texts: Sequence[str]) -> str:
    """One text of the PTX of parts, of a kernel each where there are several.

    Parts that use shared memory declare the same, and nothing else beside kernels. It
    is declared once, just ahead of the first of their kernels.
    """
    whole = texts[0]
    kernels = [text[text.index(_FUNCTION) :] for text in texts[1:]]
    for number, text in enumerate(kernels, 1):
        whole += _NUMBERED.sub(
            lambda match, before=number: f"{match[1]}{int(match[2]) + before}",
            _without_declarations(text) if _DECLARATION in whole else text,
        )
    return whole


def _without_declarations(text: str) -> str:
    head, found, rest = text.partition("\n.visible ")
    lines = head.splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(_DECLARATION)]
    return "".join(kept).rstrip("\n") + found + rest
