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

import sys
from collections.abc import Iterable
from typing import Any

from alcop_mlir.bindings import PROVIDER, ext, ir
from alcop_mlir.dialects import invariants
from alcop_mlir.dialects.invariants import GROUP_TYPE, RECTANGLES
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
        return invariants.is_copy(self)


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
        return invariants.is_gather(self)


class GatherOp(_Gather, name="gather"):
    """Copies rows at addresses of their own, landed when the op ends; see above."""


class AsyncGatherOp(_Gather, name="async_gather"):
    """The same, any time before its group's wait."""


class Im2colOp(Alcop.Operation, name="im2col"):
    """The windows of images as a matrix that is never made; see above."""

    source: ext.Operand[Any]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return invariants.is_im2col(self, get(self, WindowAttr) or {})


class TakeOp(Alcop.Operation, name="take"):
    """Rows of a table as a matrix that is never made; see above."""

    table: ext.Operand[Any]
    indices: ext.Operand[Any]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return invariants.is_take(self)


class RowsOp(Alcop.Operation, name="rows"):
    """A view of a memref as a matrix with rows of any distances; see above."""

    source: ext.Operand[Any]
    matrix: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return invariants.is_rows(self)


class ProducerCommitOp(Alcop.Operation, name="producer_commit"):
    """Ends the commit group of the asynchronous copies issued since the last."""

    group: ext.Result[Any]

    def verify_invariants(self) -> bool:
        return invariants.has_group_type(self, [result.type for result in self.results])


class ConsumerWaitOp(Alcop.Operation, name="consumer_wait"):
    """Waits until `group` and all older ones landed, visible to all threads."""

    group: ext.Operand[Any]

    def verify_invariants(self) -> bool:
        return invariants.has_group_type(
            self, [operand.type for operand in self.operands]
        )


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
        return invariants.is_warpgroup_mma(self)


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
    attributes = rows.operation.attributes
    if RECTANGLES not in attributes:
        return None
    return invariants.rectangles_of(attributes[RECTANGLES])


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
