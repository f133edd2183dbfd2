"""Compute copies of constants at compile time.

Before:  %w = memref.get_global @weights : memref<16x32x3x3xf16>
         %t = memref.alloc() : memref<3x3x32x16xf16>
         linalg.transpose ins(%w) outs(%t) permutation = [2, 3, 1, 0]
         ...                                            // reads %t
After:   memref.global "private" constant @copied_0 : memref<3x3x32x16xf16> = ...
         %t = memref.get_global @copied_0 : memref<3x3x32x16xf16>

Of filters and matrices that are stored in another order, filled up with zeros, or taken
in parts: by ops of the user's, or by alcop-raise-convolutions. A copy may be of another
copy, in several ops, and of a part. What else is computed of a constant is left
unchanged, and so is what may be written later.

Runs after alcop-raise-convolutions, before ops are merged and fused. Kernels read what
is left, as any constant. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from alcop_mlir.analysis.ir.constant_arrays import global_array
from alcop_mlir.analysis.ir.symbols import by_name
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.constant_copies import ConstantCopy, find_constant_copy
from alcop_mlir.analysis.linalg.constant_values import (
    Array,
    constant_bits,
    elements_attribute,
)
from alcop_mlir.bindings import ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass


@frozen
class FoldConstants(Pass):
    name = "alcop-fold-constants"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        arrays = {
            name: global_array(one)
            for name, one in by_name(op, "memref.global").items()
        }
        known: dict[Any, Array] = {
            name: constant_bits(one) for name, one in arrays.items() if one
        }
        if not known:
            return
        names = _free_names(op)
        for alloc in walk(op, "memref.alloc"):
            found = find_constant_copy(alloc, known)
            if found is not None:
                name = next(names)
                _declare(op, name, found)
                _replace(found, name)
                known[name] = found.bits
        edit.erase_unused(walk(op, "memref.get_global"))


def _free_names(module: ir.Operation) -> Iterator[str]:
    """Names for constants that no symbol of the module has."""
    used = {
        one.attributes["sym_name"].value
        for one in module.regions[0].blocks[0].operations
        if "sym_name" in one.attributes
    }
    return (name for n in count() if (name := f"copied_{n}") not in used)


def _declare(module: ir.Operation, name: str, found: ConstantCopy) -> None:
    """A global that holds what is copied, at the beginning of the module."""
    block, kind = module.regions[0].blocks[0], found.buffer.type
    with found.buffer.owner.location, ir.InsertionPoint.at_block_begin(block):
        memref.GlobalOp(
            name,
            ir.TypeAttr.get(kind),
            sym_visibility=ir.StringAttr.get("private"),
            initial_value=elements_attribute(found.bits, kind),
            constant=True,
        )


def _replace(found: ConstantCopy, name: str) -> None:
    """Read the global instead of the buffer, which nothing writes any more."""
    buffer = found.buffer
    for writer in found.writers:
        writer.erase()
    edit.erase_deallocs(buffer)
    alloc = buffer.owner
    with alloc.location, ir.InsertionPoint(alloc):
        buffer.replace_all_uses_with(memref.get_global(buffer.type, name))
    alloc.erase()
