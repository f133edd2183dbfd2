"""Constants that are stored beside the code: their types and their bytes.

What one is called follows from what it holds: equal constants have one name, whether a
reference or a kernel reads them.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.symbols import by_name
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ARRAY_TYPES, element_bytes
from alcop_mlir.frozen import frozen

# A smaller one is text in the PTX of the kernels that read it.
_LEAST_BYTES = 65
# How MLIR prints more than 100 elements; of bf16 the bindings give no bytes.
_HEX = re.compile(r'dense<"0x([0-9A-F]+)">')


@frozen
class ConstantArray:
    """A constant of several elements; `data` is its elements in C order, little-endian.

    name: equal constants have the same one
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes


def constant_array(attribute: Any) -> ConstantArray | None:
    """The constant that an elements attribute holds.

    None where all elements are equal, or the bindings do not give their bytes.
    """
    is_dense = isinstance(attribute, ir.DenseElementsAttr)
    if not is_dense or attribute.is_splat:
        return None
    kind = ir.ShapedType(attribute.type)
    dtype, shape = str(kind.element_type), tuple(kind.shape)
    data = _data(attribute, dtype)
    if data is None or len(data) != element_bytes(dtype) * math.prod(shape):
        return None
    described = f"{dtype} {shape}".encode()
    name = f"const_{hashlib.sha256(described + data).hexdigest()[:16]}"
    return ConstantArray(name, dtype, shape, data)


def stored_global(op: Any) -> ConstantArray | None:
    """The constant of a `memref.global` that kernels take as an argument; else None."""
    found = global_array(op)
    return found if found and len(found.data) >= _LEAST_BYTES else None


def global_array(op: Any) -> ConstantArray | None:
    """The constant that a `memref.global` holds; None where that is not known."""
    kind = ir.TypeAttr(op.attributes["type"]).value
    value = op.attributes["initial_value"] if "initial_value" in op.attributes else None
    with op.context, op.location:
        is_plain = kind.memory_space is None and follows_shape(kind)
    if "constant" not in op.attributes or value is None or not is_plain:
        return None
    return constant_array(value)


def is_global(memref: Any) -> bool:
    """Whether a memref is a global, or part of one."""
    return made_by(root(memref), "memref.get_global") is not None


def globals_read(func: Any) -> dict[str, ConstantArray]:
    """The stored globals that a `func.func` reads, by the names of their symbols."""
    names = {get.attributes["name"].value for get in walk(func, "memref.get_global")}
    if not names or func.operation.parent is None:
        return {}
    known = by_name(func.operation.parent, "memref.global").items()
    found = {name: stored_global(op) for name, op in known if name in names}
    return {name: array for name, array in found.items() if array is not None}


def _data(attribute: Any, dtype: str) -> bytes | None:
    if dtype == "bf16":
        text = _HEX.match(str(attribute))
        return bytes.fromhex(text[1]) if text else None
    # All systems that have the bindings are little-endian.
    return memoryview(attribute).tobytes() if dtype in ARRAY_TYPES else None
