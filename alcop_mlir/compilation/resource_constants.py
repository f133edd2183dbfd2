"""Constants whose bytes a module keeps as resources become constants of its code.

    arith.constant dense_resource<weight> : tensor<64x64xf32>      // torch-mlir's
    arith.constant dense<"0x..."> : tensor<64x64xf32>

MLIR's bindings give the bytes of the latter only, which references, folding and bundles
ask for. Bytes of resources are read from the module as MLIR prints it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.errors import ConfigError

_RESOURCE = re.compile(r'^\s+("[^"]*"|[\w$.-]+): "0x([0-9A-F]*)",?$', re.MULTILINE)
_NAME = re.compile(r'dense_resource<("[^"]*"|[^>]*)>')
# By the bytes of an element, the format of numbers of its size.
_WORDS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
_HEADER = 4  # bytes that say how the others are aligned


def inline_resources(module: ir.Module) -> None:
    """Change the constants of `module`; those of other types than arrays have stay.

    Raises ConfigError at a constant whose bytes are missing, or too many or few.
    """
    found = list(_constants(module))
    if not found:
        return
    text = module.operation.get_asm()
    _, _, section = text.rpartition("{-#")
    known = {name: bytes.fromhex(data) for name, data in _RESOURCE.findall(section)}
    for op, key, attribute in found:
        with op.context, op.location:
            op.attributes[key] = _dense(op, attribute, known)


def _constants(module: ir.Module) -> Iterator[tuple[Any, str, Any]]:
    """The ops with such a constant, the name of their attribute, and the constant."""
    for op in walk(module):
        for name in op.attributes:
            attribute = _resource(op.attributes[name])
            if attribute is not None and _dtype(attribute) in ELEMENT_TYPES:
                yield op, name, attribute


def _resource(attribute: ir.Attribute) -> Any | None:
    """The attribute, if it is of the kind; the bindings leave it without a class."""
    if type(attribute) is not ir.Attribute or not _NAME.match(str(attribute)):
        return None
    return ir.DenseResourceElementsAttr(attribute)


def _dtype(attribute: Any) -> str:
    return str(ir.ShapedType(attribute.type).element_type)


def _dense(op: Any, attribute: Any, known: Mapping[str, bytes]) -> Any:
    kind = ir.ShapedType(attribute.type)
    match = _NAME.match(str(attribute))
    name = match[1] if match else ""
    if name not in known:
        raise _error(op, f"the bytes of {attribute} are not in the module")
    data = known[name][_HEADER:]
    count, dtype = math.prod(kind.shape), _dtype(attribute)
    if dtype == "i1" and len(data) == -(-count // 8) < count:  # bits, the first lowest
        data = bytes(data[number // 8] >> number % 8 & 1 for number in range(count))
    size = ELEMENT_TYPES[dtype].bytes
    if len(data) != count * size:
        raise _error(op, f"{name} has {len(data)} bytes, {kind} needs {count * size}")
    if not count:
        return ir.Attribute.parse(f"dense<> : {kind}")
    if dtype == "i1":
        return ir.DenseElementsAttr.get(memoryview(data).cast("?", kind.shape))
    words = memoryview(data).cast(_WORDS[size], kind.shape)
    return ir.DenseElementsAttr.get(words, type=attribute.type)


def _error(op: Any, why: str) -> ConfigError:
    place = diagnostics.at(op.location, "error", "").place()
    return ConfigError(f"{place}: {why}")
