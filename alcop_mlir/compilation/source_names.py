"""What the arguments of a function are called where it was written.

MLIR keeps no names of values, but where each argument stands: the name is there.
"""

from __future__ import annotations

import re
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.compilation.inputs import Input

_PLAIN = re.compile(r"[\w.]+")  # also those of a model's weights, as "layers.0.bias"
_NAME = re.compile(rb"%([A-Za-z_]\w*)\s*:")


def source_names(func: ir.Operation, source: Input) -> list[str]:
    """The name of each argument of `func`, a function of `source`; "" if not known."""
    return [_name(one.location, source) for one in func.regions[0].blocks[0].arguments]


def _name(location: Any, source: Input) -> str:
    if isinstance(location, ir.NameLoc):
        return location.name_str if _PLAIN.fullmatch(location.name_str) else ""
    if not isinstance(location, ir.FileLineColLoc) or location.filename != source.place:
        return ""
    lines = source.text.split(b"\n", location.start_line)
    line = lines[location.start_line - 1] if len(lines) >= location.start_line else b""
    found = _NAME.match(line, location.start_col - 1)
    return found[1].decode() if found else ""
