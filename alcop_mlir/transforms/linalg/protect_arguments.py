"""Mark the tensor arguments of functions as not writable.

Before:  func.func @f(%A: tensor<64x32xf16>, %C: tensor<64x64xf32>)
After:   func.func @f(%A: tensor<64x32xf16> {bufferization.writable = false},
                      %C: tensor<64x64xf32> {bufferization.writable = false})

Tensors are values: the caller does not expect C to change. By default, bufferization
computes a result in the buffer of the argument that it starts from. Upstream has the
attribute, but no pass option that sets it. An argument that has the attribute already
keeps it.

Runs before one-shot-bufferize, the last reader of `bufferization.writable`.
"""

from __future__ import annotations

from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass

WRITABLE = "bufferization.writable"


@frozen
class ProtectArguments(Pass):
    name = "alcop-protect-arguments"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        kind = ir.FunctionType(op.attributes["function_type"].value)
        given = op.attributes["arg_attrs"] if "arg_attrs" in op.attributes else None
        known = [{} for _ in kind.inputs]
        if given is not None:
            known = [{a.name: a.attr for a in one} for one in given]
        for attributes, argument in zip(known, kind.inputs, strict=True):
            if isinstance(argument, ir.RankedTensorType):
                attributes.setdefault(WRITABLE, ir.BoolAttr.get(False))
        if any(known):
            dictionaries = [ir.DictAttr.get(attributes) for attributes in known]
            op.attributes["arg_attrs"] = ir.ArrayAttr.get(dictionaries)
