"""Python values to MLIR attributes and back.

bool, int (as i64), float (as f64), str, lists and dictionaries of these. Attributes of
other kinds are returned unchanged.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir


def to_attribute(value: object) -> Any:
    """The attribute for `value`; an attribute is returned unchanged."""
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, dict):
        return ir.DictAttr.get({k: to_attribute(v) for k, v in value.items()})
    if isinstance(value, list | tuple):
        return ir.ArrayAttr.get([to_attribute(v) for v in value])
    raise TypeError(f"no attribute for {value!r}")


_WITH_VALUE = (ir.StringAttr, ir.IntegerAttr, ir.BoolAttr, ir.FloatAttr)


def from_attribute(attribute: Any) -> Any:
    """The Python value of `attribute`, or the attribute where it has none."""
    attribute = attribute.maybe_downcast()
    if isinstance(attribute, _WITH_VALUE):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [from_attribute(item) for item in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {named.name: from_attribute(named.attr) for named in attribute}
    return attribute
