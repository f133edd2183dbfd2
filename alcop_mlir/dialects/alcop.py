"""The `alcop` dialect: decisions of passes, and the synchronisation of a pipeline.

Its attributes have one dictionary parameter each, `#alcop.schedule<{...}>`: the
bindings parse no other named form. Others are of MLIR's own kinds, so that tools
without this dialect read them:

  alcop.pipelines = [{buffer, level, stages}]  what of a launch is pipelined
  alcop.fallback = "..."   a launch is a SIMT fallback; why, "" where nothing else fits
  alcop.schedule_source = "..."  what has decided the schedule: a `Decision`'s source
  alcop.variants = [...]   schedules of a contraction, and for which sizes each is
  alcop.other_rows         rows of whole 16 bytes are for another variant of a launch
  alcop.decisions = {...}  the schedule and the three above, on a `gpu.launch_func`
  alcop.merged             a function that is one launch, which others call
  alcop.added_parts        an op adds up the parts of a contraction, see alcop-split-k
  alcop.from_tensors       a function was on tensors: which ops are one is decided
  alcop.prepare = {...}    what of a function's arguments another one computes once
  alcop.chain = {role}     the role of an op in a chain of contractions; of the first
                           also {batch, start, scale, ...}, see alcop-tile-chains
  alcop.boxes = {columns, swizzle}  a buffer holds tiles as TMA leaves them: in boxes of
                           so many columns, swizzled by a pattern of so many bytes
  alcop.wgmma              a contraction of such tiles, of the four warps of a warpgroup
  alcop.rounded = "tf32"   what an `nvgpu.tma.create.descriptor` lets the copy engine
                           round elements to on the way
  alcop.tensor_map         a parameter of a kernel is a CUtensorMap, passed by value
  alcop.reason = "..."     why a pass left an op unchanged

Ops: the four synchronisation primitives of the ALCOP paper (arXiv 2210.16691,
figure 7) and the copy that they order. A commit group is named by the token of its
`producer_commit`, so that wait counts can be computed from any IR.

The source of a copy may be smaller than its target, or of dynamic size: it is copied to
the target's beginning in each dimension, and the rest of the target is filled with
zero; beyond the end of dimensions that `alcop.arbitrary = [0]` names, with anything.

  alcop.async_copy %source, %target          may land any time before the wait
  alcop.copy %source, %target                the same, landed when the op ends
  %group = alcop.producer_commit             ends the group of copies issued so far
  alcop.consumer_wait %group                 the group landed, visible to all threads
  alcop.producer_acquire                     the slot about to be filled is free
  alcop.consumer_release                     the reads of the oldest slot are above

A gather copies rows at addresses of their own into a tile. `rows` and `valid` are
vectors with one element per row of the target, and belong to the block as the target
does; `width` elements of a row are copied, or as many as the target's rows have:

  alcop.gather %source, %target, %rows, %valid [, %width]
      target[i, j] = valid[i] and j < width ? source[rows[i] + j] : 0
  alcop.async_gather ...                     the same, may land any time before the wait

One op is an instruction that upstream's dialects lack, wgmma with A in registers (PTX
ISA, "wgmma.mma_async"). Its registers are ordered by a `wgmma.fence` just before it,
which is part of the op, as nothing may come between them:

  %c = alcop.warpgroup_mma %c0, %a0, %a1, %a2, %a3, %b
           {shape = [64, n, k], types = ["f16", "f16"], transpose_b = 0, adds = 1}
      c, c0: structs of accumulators; a0 to a3: words of a lane; b: a descriptor; of
      `types` A's and B's, by names of PTX; adds = 0: c0 is not read

Two ops on the host give matrices that are never made: contractions read them, and
alcop-tile-to-blocks gathers their tiles from the operands. Both see later writes to
these, as views do.

  %A = alcop.im2col %x {alcop.window = #alcop.window<{...}>}
      a row per place of the window, batch outermost; in it the taps of the window, the
      last dimension innermost, and of each tap the channels: of x : N x H x W x C,
      A[(n, p, q), (r, s, c)] = x[n, p * strides[0] + r * dilations[0] - low[0],
                                     q * strides[1] + s * dilations[1] - low[1], c],
      and zero outside of x. With groups > 1, A[(n, p, q), g, (r, s, c)] has the
      channels of group g.
  %A = alcop.take %table, %indices           A[i, j] = table[indices[i], j]
      or a batch, whose tables may be its own: A[b, i, j] = table[indices[b, i], j],
      or table[b, indices[b, i], j]; or of whole matrices, table[indices[b], i, j]

Another one is a view of a memref as a matrix, whose rows may have any distances; those
who access it are given the indices of what it views by alcop-lower-rows:

  %C = alcop.rows %y       of y : N x H x W x F, C[(n, h, w), f] = y[n, h, w, f]

With `alcop.rectangles = {places = [P, Q], sides = [2, 4]}` it is a view of a matrix y
of (n, p, q) x F, whose rows are in the order of rectangles (`rectangles.py`). Rows
without a position hold zero, and what is stored in them is lost.

This file must not postpone annotations: the base classes of a dialect read them.
"""

# Type checkers cannot follow what a dialect's base classes do with class statements.
# pyright: reportGeneralTypeIssues=false, reportCallIssue=false
# pyright: reportInvalidTypeForm=false

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from alcop_mlir.bindings import PROVIDER, ext, ir
from alcop_mlir.dialects.values import from_attribute, to_attribute
from alcop_mlir.errors import PassError
from alcop_mlir.rectangles import Rectangles

ADDED_PARTS = "alcop.added_parts"
ARBITRARY = "alcop.arbitrary"
BOXES = "alcop.boxes"
BY_LANE = "alcop.by_lane"
CHAIN = "alcop.chain"
DECISIONS = "alcop.decisions"
FALLBACK = "alcop.fallback"
FROM_TENSORS = "alcop.from_tensors"
MERGED = "alcop.merged"
OP_KEY = "alcop.op"
OTHER_ROWS = "alcop.other_rows"
PIPELINES = "alcop.pipelines"
PREPARE = "alcop.prepare"
REASON = "alcop.reason"
ROUNDED = "alcop.rounded"
TENSOR_MAP = "alcop.tensor_map"
SCHEDULE_SOURCE = "alcop.schedule_source"
VARIANTS = "alcop.variants"
WGMMA = "alcop.wgmma"
PIPELINE = "alcop.pipeline"
WINDOW = "alcop.window"
RECTANGLES = "alcop.rectangles"
GROUP_TYPE = "!nvgpu.device.async.token"


class Alcop(ext.Dialect, name="alcop"):
    """The dialect; `load()` makes it known to the current context."""


class ContractionAttr(Alcop.Attribute, name="contraction"):
    """Which loops index A, B, C of a contraction; by alcop-raise-contractions."""

    parameters: ir.DictAttr


class ScheduleAttr(Alcop.Attribute, name="schedule"):
    """Tile sizes and stages; written by alcop-select-schedule."""

    parameters: ir.DictAttr


class PipelineAttr(Alcop.Attribute, name="pipeline"):
    """Plan of a pipelined loop, a `StreamPlan`, which names ops by their `alcop.op`;
    written by alcop-plan-pipelines.
    """

    parameters: ir.DictAttr


class WindowAttr(Alcop.Attribute, name="window"):
    """The window of a convolution: lists with an entry per spatial dimension.

    size, strides, dilations; low, high: zeros before and after the image, or where
    negative pixels that no window sees; groups
    """

    parameters: ir.DictAttr


class _Copy(Alcop.Operation):
    source: ext.Operand[Any]
    target: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        return _is_copy(self)


class AsyncCopyOp(_Copy, name="async_copy"):
    """Fills a whole memref, any time before its group's wait; see above."""


class CopyOp(_Copy, name="copy"):
    """Fills a whole memref; `memref.copy` where source and target are of one shape."""


class _Gather(Alcop.Operation):
    source: ext.Operand[Any]
    target: ext.Operand[Any]
    rows: ext.Operand[Any]
    valid: ext.Operand[Any]
    width: ext.Operand[Any] | None = None

    def verify_invariants(self) -> bool:
        return _is_gather(self)


class GatherOp(_Gather, name="gather"):
    """Copies rows at addresses of their own, landed when the op ends; see above."""


class AsyncGatherOp(_Gather, name="async_gather"):
    """The same, any time before its group's wait."""


class Im2colOp(Alcop.Operation, name="im2col"):
    """The windows of images as a matrix that is never made; see above."""

    source: ext.Operand[Any]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _is_im2col(self)


class TakeOp(Alcop.Operation, name="take"):
    """Rows of a table as a matrix that is never made; see above."""

    table: ext.Operand[Any]
    indices: ext.Operand[Any]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _is_take(self)


class RowsOp(Alcop.Operation, name="rows"):
    """A view of a memref as a matrix with rows of any distances; see above."""

    source: ext.Operand[Any]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _is_rows(self)


class ProducerCommitOp(Alcop.Operation, name="producer_commit"):
    """Ends the commit group of the asynchronous copies issued since the last."""

    group: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _has_group_type(self, [result.type for result in self.results])


class ConsumerWaitOp(Alcop.Operation, name="consumer_wait"):
    """Waits until `group` and all older ones landed, visible to all threads."""

    group: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        return _has_group_type(self, [operand.type for operand in self.operands])


class ProducerAcquireOp(Alcop.Operation, name="producer_acquire"):
    """The slot about to be filled is free: all its readers released it."""


class ConsumerReleaseOp(Alcop.Operation, name="consumer_release"):
    """All reads of the current slot by this thread are above."""


class WarpgroupMmaOp(Alcop.Operation, name="warpgroup_mma"):
    """A wgmma of a fragment A in registers, behind a fence of its own; see above."""

    sums: ext.Operand[Any]
    first: ext.Operand[Any]
    second: ext.Operand[Any]
    third: ext.Operand[Any]
    fourth: ext.Operand[Any]
    descriptor: ext.Operand[Any]
    result: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return _is_warpgroup_mma(self)


def load() -> None:
    """Make the dialect known to the current context; again is harmless."""
    # For each of our attributes that they return, the bindings import the module of its
    # dialect by this name, and search the disk for it unless it is there.
    sys.modules.setdefault(f"{PROVIDER}.dialects.alcop", sys.modules[__name__])
    try:
        Alcop.load()
    except ext.DialectAlreadyLoadedError:
        return


def get(op: ir.Operation, attribute: type) -> dict[str, Any] | None:
    """The parameters of the `attribute` kind on `op` as Python values, or None.

    Raises PassError where an attribute of that name is of another kind, as only other
    programs write them.
    """
    attributes = op.operation.attributes
    key = _key(attribute)
    if key not in attributes:
        return None
    found = attributes[key]
    parameters = found.parameters if isinstance(found, attribute) else None
    if parameters is None or not isinstance(parameters.maybe_downcast(), ir.DictAttr):
        raise PassError(op, f"'{key}' is {found}, expected #{key}<{{...}}>")
    return from_attribute(parameters)


def key(op: ir.Operation) -> int | None:
    """The number by which the plan of a loop names `op`; None where none does."""
    attributes = op.operation.attributes
    if OP_KEY not in attributes:
        return None
    found = attributes[OP_KEY]
    if not isinstance(found, ir.IntegerAttr):
        raise PassError(op, f"'{OP_KEY}' is {found}, expected an integer")
    return found.value


def put_key(op: ir.Operation, number: int) -> None:
    """Let the plan of a loop name `op` by `number`."""
    op.operation.attributes[OP_KEY] = to_attribute(number)


def drop_key(op: ir.Operation) -> None:
    """Erase what `put_key` wrote, if it did."""
    _erase(op, OP_KEY)


def put(op: ir.Operation, attribute: type, parameters: dict[str, Any]) -> None:
    """Write the `attribute` kind on `op`."""
    op.operation.attributes[_key(attribute)] = attribute.get(to_attribute(parameters))


def put_schedule(op: ir.Operation, parameters: dict[str, Any], source: str) -> None:
    """Write a schedule on `op`, and what has decided it, if that is known."""
    put(op, ScheduleAttr, parameters)
    if source:
        op.operation.attributes[SCHEDULE_SOURCE] = to_attribute(source)


def schedule_source(op: ir.Operation) -> str:
    """What has decided the schedule of `op`; "" where that is not known."""
    return str(get_plain(op, SCHEDULE_SOURCE) or "")


def take(op: ir.Operation, attribute: type) -> dict[str, Any] | None:
    """Like `get`, and erase the attribute: for its last reader."""
    parameters = get(op, attribute)
    drop(op, attribute)
    return parameters


def arbitrary(copy: ir.Operation) -> tuple[int, ...]:
    """The dimensions of a copy beyond whose end it may fill in anything."""
    return tuple(get_plain(copy, ARBITRARY) or ())


def set_arbitrary(copy: ir.Operation, dimensions: Iterable[int]) -> None:
    """Let `copy` fill in anything beyond the end of these dimensions."""
    numbers = list(dimensions)
    if numbers:
        copy.operation.attributes[ARBITRARY] = to_attribute(numbers)


def rectangles(rows: ir.Operation) -> Rectangles | None:
    """The order of an `alcop.rows`; None where it is that of the source."""
    given = get_plain(rows, RECTANGLES)
    if given is None:
        return None
    (p, q), (high, wide) = given["places"], given["sides"]
    return Rectangles((p, q), (high, wide))


def set_rectangles(rows: ir.Operation, order: Rectangles) -> None:
    """Let the rows of an `alcop.rows` be in this order."""
    given = {"places": order.places, "sides": order.sides}
    rows.operation.attributes[RECTANGLES] = to_attribute(given)


def put_boxes(alloc: ir.Operation, columns: int, swizzle: int) -> None:
    """Say that a buffer holds tiles as TMA leaves them; see `TensorBoxes`."""
    given = {"columns": columns, "swizzle": swizzle}
    alloc.operation.attributes[BOXES] = to_attribute(given)


def set_rounded(tensor_map: ir.Operation, element: str) -> None:
    """Let the copy engine round what it copies by a tensor map; see `TensorBoxes`."""
    tensor_map.operation.attributes[ROUNDED] = to_attribute(element)


def rounded(tensor_map: ir.Operation) -> str | None:
    """The type that the copy engine rounds to; None where it copies what there is."""
    return get_plain(tensor_map, ROUNDED)


def drop(op: ir.Operation, attribute: type) -> None:
    """Erase the attribute without reading it; much faster than `take`."""
    _erase(op, _key(attribute))


def give_reason(op: ir.Operation, reason: str) -> None:
    """Write on `op` why a pass left it unchanged; the first pass that did has it."""
    attributes = op.operation.attributes
    if REASON not in attributes:
        attributes[REASON] = to_attribute(reason)


def reason(op: ir.Operation) -> str:
    """Why a pass left `op` unchanged; "" where none said so."""
    return get_plain(op, REASON) or ""


def get_plain(op: ir.Operation, name: str) -> Any:
    """The value of the attribute `name`, which is of MLIR's own kinds, or None."""
    attributes = op.operation.attributes
    return from_attribute(attributes[name]) if name in attributes else None


def group_type() -> Any:
    """Type of a commit group's token, that of upstream's nvgpu dialect."""
    return ir.Type.parse(GROUP_TYPE)


def _erase(op: Any, name: str) -> None:
    attributes = op.operation.attributes
    if name in attributes:
        del attributes[name]


def _key(attribute: type) -> str:
    return {
        ContractionAttr: "alcop.contraction",
        ScheduleAttr: "alcop.schedule",
        PipelineAttr: PIPELINE,
        WindowAttr: WINDOW,
    }[attribute]


def _is_copy(op: ir.Operation) -> bool:
    """Whether both operands are memrefs, and the first fits into the second."""
    if len(op.operands) != 2:
        return _invalid(op, f"expects 2 operands, got {len(op.operands)}")
    source, target = (operand.type for operand in op.operands)
    if not all(isinstance(kind, ir.MemRefType) for kind in (source, target)):
        return _invalid(op, f"expects two memrefs, got {source} and {target}")
    if source.element_type != target.element_type or not _fits(source, target):
        return _invalid(
            op,
            "expects source and target of one element type, and the source of the "
            f"target's rank and nowhere larger, got {source} and {target}",
        )
    return True


def _fits(source: ir.Type, target: ir.Type) -> bool:
    """Whether no size of `source` is known to be larger than that of `target`."""
    return source.rank == target.rank and all(
        source.is_dynamic_dim(number) or source.shape[number] <= target.shape[number]
        for number in range(source.rank)
        if not target.is_dynamic_dim(number)
    )


def _is_gather(op: ir.Operation) -> bool:
    """Whether its operands are a memref, a tile, and vectors of the tile's rows."""
    types = [operand.type for operand in op.operands]
    if len(types) not in (4, 5):
        return _invalid(op, f"expects 4 or 5 operands, got {len(types)}")
    source, target, rows, valid = types[:4]
    if not all(isinstance(kind, ir.MemRefType) for kind in (source, target)) or (
        (source.rank, target.rank) != (1, 2)
        or source.element_type != target.element_type
        or not target.has_static_shape
    ):
        return _invalid(
            op,
            "expects a source of one dimension and a target of two known ones, of one "
            f"element type, got {source} and {target}",
        )
    for kind, element in ((rows, "index"), (valid, "i1")):
        expected = ir.Type.parse(f"vector<{target.shape[0]}x{element}>")
        if kind != expected:
            return _invalid(op, f"expects {expected} for {target}, got {kind}")
    if len(types) == 5 and not isinstance(types[4], ir.IndexType):
        return _invalid(op, f"expects a width of type index, got {types[4]}")
    return True


# Each with the least that it may hold; None for any number.
_WINDOW_LISTS = {"size": 1, "strides": 1, "dilations": 1, "low": None, "high": None}


def _is_im2col(op: ir.Operation) -> bool:
    """Whether its window fits its source and result."""
    source, matrix = op.operands[0].type, op.results[0].type
    if not all(isinstance(kind, ir.MemRefType) for kind in (source, matrix)):
        return _invalid(op, f"expects two memrefs, got {source} and {matrix}")
    window = get(op, WindowAttr) or {}
    missing = [name for name in (*_WINDOW_LISTS, "groups") if name not in window]
    if missing:
        return _invalid(op, f"expects a window with {', '.join(missing)}")
    for name, least in _WINDOW_LISTS.items():
        is_small = least is not None and min(window[name], default=least) < least
        if len(window[name]) != source.rank - 2 or is_small:
            bound = "" if least is None else f"of at least {least} "
            return _invalid(
                op,
                f"expects {source.rank - 2} {name} {bound}for {source}, "
                f"got {window[name]}",
            )
    groups = window["groups"]
    channels = source.shape[source.rank - 1]
    if source.is_dynamic_dim(source.rank - 1) or groups < 1 or channels % groups:
        return _invalid(op, f"expects groups that divide {channels}, got {groups}")
    rank = 2 if groups == 1 else 3
    taps = math.prod(window["size"])
    expected = [*([groups] if groups > 1 else []), taps * channels // groups]
    if matrix.rank != rank or matrix.shape[1:] != expected:
        return _invalid(op, f"expects rows of {expected} elements, got {matrix}")
    if source.element_type != matrix.element_type:
        return _invalid(op, f"expects {source.element_type} elements, got {matrix}")
    return True


# Ranks of table, indices and what is taken.
_TAKEN = ((2, 1, 2), (2, 2, 3), (3, 2, 3), (3, 1, 3))


def _is_take(op: ir.Operation) -> bool:
    """Whether its result has a row of the table for each index."""
    table, indices, matrix = *(one.type for one in op.operands), op.results[0].type
    kinds = (table, indices, matrix)
    if not all(isinstance(kind, ir.MemRefType) for kind in kinds) or (
        (table.rank, indices.rank, matrix.rank) not in _TAKEN
        or table.element_type != matrix.element_type
        or indices.shape != matrix.shape[: indices.rank]
        or table.shape[indices.rank - matrix.rank :] != matrix.shape[indices.rank :]
    ):
        return _invalid(
            op,
            "expects a table and indices, and a matrix, or a batch of them, with a row "
            "or a matrix of the table for each index, "
            f"got {table}, {indices} and {matrix}",
        )
    return True


def _is_rows(op: ir.Operation) -> bool:
    """Whether the matrix has the elements of the source, of known shapes."""
    source, matrix = op.operands[0].type, op.results[0].type
    is_fit = all(
        isinstance(kind, ir.MemRefType) and kind.rank > 1 for kind in (source, matrix)
    )
    rows = _count(source.shape[:-1]) if is_fit else 0
    if RECTANGLES in op.attributes:
        is_known = is_fit and source.has_static_shape
        if not is_known or not _is_rectangles(get_plain(op, RECTANGLES), source, rows):
            return _invalid(
                op,
                "expects rectangles = {places = [P, Q], sides = [high, wide]} and a "
                f"matrix of whole images, got {op.attributes[RECTANGLES]} and {source}",
            )
        order = rectangles(op)
        rows = rows if order is None else order.numbers(rows)
    if (
        not is_fit
        or source.element_type != matrix.element_type
        or list(matrix.shape) != [rows, source.shape[-1]]
        or source.get_strides_and_offset()[0][-1] != 1
    ):
        return _invalid(
            op,
            "expects a memref without gaps in its rows, and a matrix of these rows, "
            f"got {source} and {matrix}",
        )
    return True


def _count(sizes: Sequence[int]) -> int:
    """The product of sizes as a type has it."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return dynamic if dynamic in sizes else math.prod(sizes)


def _is_rectangles(given: Any, source: ir.Type, rows: int) -> bool:
    """Whether rectangles have the members that they need, and fit the source."""
    if not isinstance(given, dict) or {*given} != {"places", "sides"}:
        return False
    numbers = [one for pair in given.values() for one in pair]
    is_whole = [len(pair) for pair in given.values()] == [2, 2] and min(numbers) > 0
    return is_whole and source.rank == 2 and rows % math.prod(given["places"]) == 0


_MMA_MEMBERS = ("shape", "types", "transpose_b", "adds")


def _is_warpgroup_mma(op: ir.Operation) -> bool:
    """Whether registers and attributes are those of a wgmma."""
    missing = [one for one in _MMA_MEMBERS if one not in op.attributes]
    if missing:
        return _invalid(op, f"expects the attribute '{missing[0]}'")
    sums, *words, descriptor = (str(one.type) for one in op.operands)
    if str(op.results[0].type) != sums or not sums.startswith("!llvm.struct"):
        return _invalid(op, f"expects a struct of accumulators twice, got {sums}")
    if {*words} != {"i32"} or descriptor != "i64":
        got = ", ".join([*words, descriptor])
        return _invalid(op, f"expects four words and a descriptor, got {got}")
    return True


def _has_group_type(op: ir.Operation, types: list[Any]) -> bool:
    if [str(t) for t in types] == [GROUP_TYPE]:
        return True
    got = ", ".join(str(t) for t in types) or "none"
    return _invalid(op, f"expects one {GROUP_TYPE}, got {got}")


def _invalid(op: ir.Operation, why: str) -> bool:
    op.operation.location.emit_error(f"'{op.operation.name}' op {why}")
    return False
