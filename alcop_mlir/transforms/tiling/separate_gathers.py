"""Take reads of tables out of the bodies of contractions, as ops that copy rows.

Before:  linalg.generic ins(%indices, %B) outs(%C) {         // loops m, n, k
         ^bb0(%index: i32, %b: f16, %c: f32):
           %k = linalg.index 2 : index
           %row = arith.index_cast %index : i32 to index
           %a = memref.load %table[%row, %k] ... }
After:   %rows = memref.alloc() : memref<40x64xf16>
         linalg.generic ins(%indices) outs(%rows) { memref.load ... }   // loops m, k
         linalg.generic ins(%B, %rows) outs(%C) { ... }      // loops m, n, k

One index of the load may be computed of an element of an input; others are loops.
Only where tensor cores compute what is left: other ops are left unchanged, and read
the table in each iteration.

Runs before alcop-raise-gathers, which lets the contraction read the table itself where
it can. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.linalg.contractions import classify, structured_ops
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass, option


@frozen
class SeparateGathers(Pass):
    name = "alcop-separate-gathers"
    anchor = "func.func"

    allow_tf32: bool = option(False, "contractions of f32, with inputs rounded to tf32")

    def run(self, op: ir.Operation) -> None:
        for reader in structured_ops(op):
            read = _table_read(reader)
            if read is not None:
                with reader.location, ir.InsertionPoint(reader):
                    self._separate(read)

    def _separate(self, read: _TableRead) -> None:
        rows, copy = _copied(read)
        made = _reader(read, rows)
        if isinstance(classify(made, self.allow_tf32), Rejected):
            for op in (made, copy, rows.owner):
                op.operation.erase()
        else:
            read.view.op.erase()


@frozen
class _TableRead:
    """An op whose body reads one element of a table.

    indices: the input that the number of a row is computed of
    loops:   that the element depends on
    ops:     that compute the indices of the load, in the body
    """

    view: LinalgView
    load: Any
    indices: Operand
    loops: tuple[int, ...]
    ops: tuple[Any, ...]


def _table_read(op: ir.Operation) -> _TableRead | None:
    view = linalg_view(op)
    if view is None or not view.is_generic or not view.reductions:
        return None
    body = [one.operation for one in view.block.operations]
    loads = [one for one in body if one.name == "memref.load"]
    if len(loads) != 1 or len(view.outputs) != 1:
        return None
    (load,) = loads
    places = list(load.operands)[1:]
    numbers = [place for place in places if made_by(place, "linalg.index") is None]
    counters = [made_by(place, "linalg.index") for place in places]
    ops, arguments = backward_slice(numbers, view.block)
    indices = [one for one in view.inputs if one.argument in arguments]
    if len(numbers) != 1 or len(indices) != 1 or len(arguments) != 1:
        return None
    known = [one for one in counters if one is not None]
    own = [one.attributes["dim"].value for one in known]
    outer = [loop for loop in indices[0].loops if loop is not None]
    loops = tuple(dict.fromkeys((*outer, *own)))
    every = [*ops, *known]
    users = {use.owner.operation for one in every for use in one.results[0].uses}
    if None in indices[0].loops or not all(map(is_pure, ops)):
        return None
    if users - {*ops, load} or not _is_read_once(indices[0], ops):
        return None
    return _TableRead(view, load, indices[0], loops, tuple(every))


def _is_read_once(indices: Operand, ops: list[Any]) -> bool:
    """Whether nothing but these ops uses an element of the indices."""
    return all(use.owner.operation in ops for use in indices.argument.uses)


def _copied(read: _TableRead) -> tuple[Any, Any]:
    """The buffer of the rows, and the op that copies them."""
    view, rank = read.view, len(read.loops)
    sizes = [view.static_size(loop) for loop in read.loops]
    given = [
        build.dim(*view.sizes[loop])
        for loop, size in zip(read.loops, sizes, strict=True)
        if size is None
    ]
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [dynamic if size is None else size for size in sizes]
    rows = build.alloc(ir.MemRefType.get(shape, read.load.results[0].type), given)
    places = {loop: place for place, loop in enumerate(read.loops)}
    maps = [
        build.loop_map(rank, [places[loop] for loop in loops if loop is not None])
        for loops in (read.indices.loops, read.loops)
    ]
    copy = build.generic([read.indices.value], rows, maps)
    (block,) = copy.regions[0].blocks
    mapping: dict[Any, Any] = {read.indices.argument: block.arguments[0]}
    with ir.InsertionPoint(block):
        for op in read.ops:
            if op.name == "linalg.index":
                place = places[op.attributes["dim"].value]
                mapping[op.results[0]] = linalg.IndexOp(place).result
            else:
                edit.clone(op, mapping)
        edit.clone(read.load, mapping)
        linalg.YieldOp([mapping[read.load.results[0]]])
    return rows, copy


def _reader(read: _TableRead, rows: ir.Value) -> Any:
    """The op with rows for the indices."""
    view = read.view
    (out,) = view.outputs
    inputs = [one for one in view.inputs if one is not read.indices]
    maps = [ir.AffineMapAttr.get(one.map) for one in (*inputs, out)]
    maps.insert(-1, build.loop_map(view.rank, read.loops))
    made = build.generic([*(one.value for one in inputs), rows], out.value, maps)
    (block,) = made.regions[0].blocks
    *elements, row, total = block.arguments
    mapping: dict[Any, Any] = {out.argument: total, read.load.results[0]: row}
    for one, element in zip(inputs, elements, strict=True):
        mapping[one.argument] = element
    for op in read.ops:  # which are not copied
        mapping[op.results[0]] = row
    with ir.InsertionPoint(block):
        linalg.YieldOp(edit.inline(view.block, mapping))
    for name, attribute in edit.attributes(view.op).items():
        if name.startswith("alcop."):
            made.attributes[name] = attribute
    return made
