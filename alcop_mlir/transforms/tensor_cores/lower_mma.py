"""Lower vectors of a warp to fragments, distributed to its lanes, and mma.sync.

Before:  %a = vector.transfer_read %tile[%m, %k] : vector<64x16xf16>
         %s = vector.contract %a, %b, %acc : vector<64x64xf32>
         vector.transfer_write %s, %C[%m, %n]
After:   %a0 = nvgpu.ldmatrix %tile[%m + lane ..., %k + ...] -> vector<4x2xf16>, ...
         %s0 = nvgpu.mma.sync(%a0, %b0, %acc0) -> vector<2x2xf32>, ...
         gpu.shuffle within quads, then vector.store of 16 bytes of one row

Ops that carry such a vector (scf.for, scf.if, element-wise ops) carry its fragments
instead; rounding to tf32 becomes cvt.rna. Rows of accumulators, which vector.step,
vector.multi_reduction and transfers make and vector.broadcast takes, and columns are
distributed too: a lane has the elements of the rows (columns) of its accumulators, and
lanes that share a row reduce it by gpu.shuffle. A sum with `alcop.by_lane` is of what
each lane holds, until somebody reads the row's. Accumulators of 16 bits are operands of
further contractions as they are held. Vectors that no contraction needs are left
unchanged. A contraction that mma.sync does not support (it supports f16, bf16 and tf32
into f32, s8 into i32), or a vector that is used in an unsupported way, is an error:
unchanged, as code of one thread, it would be right, but hopelessly slow. Memory may
hold elements of another size than those that element-wise ops make of them to be
multiplied. Buffers of bytes become views of bytes and of pairs, as ldmatrix transposes
pairs only.

Contractions marked `alcop.wgmma` read their tiles from memory as TMA leaves them: they
become wgmma with descriptors of these, those in a row with one sum one group of them.

Where rows of the output are not aligned, or begin within sectors, the warp stores them
through shared memory, in place of tiles that are not used any more, in runs of a row.
Such a buffer is marked `alcop.overlaid`, which alcop-outline-kernels reads.

Runs after alcop-expand-pipelines, which works on whole vectors, and before
alcop-swizzle-shared, which permutes each access. Reads `alcop.boxes` and `alcop.wgmma`,
reads and erases `alcop.by_lane`;
ops that are built again keep their attributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.ir.kernels import ThreadBlock, enclosing
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.fragment_layout import (
    ACCUMULATORS_LAYOUT,
    FragmentLayout,
    is_held_as,
    is_same_along_k,
    transfer_dims,
)
from alcop_mlir.analysis.layout.fragments import (
    CONTRACT,
    READ,
    SLICE,
    STEP,
    UNPACK,
    WRITE,
    Fragments,
    contraction_layouts,
    find_fragments,
    is_elementwise,
    multiplied,
    slice_offset,
)
from alcop_mlir.analysis.layout.reshapes import REDUCE, RESHAPES, reshaped
from alcop_mlir.analysis.layout.warpgroups import reads_memory
from alcop_mlir.bindings import ir, scf, ub, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tensor_cores.bounds import Bounds, bounds, guarded
from alcop_mlir.transforms.tensor_cores.boxed_stores import box_of, store_box
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    AccumulatorSource,
    Pieces,
    load_accumulators,
    pieces,
)
from alcop_mlir.transforms.tensor_cores.fragment_arithmetic import (
    convert,
    halves,
    multiply,
    operand_of,
)
from alcop_mlir.transforms.tensor_cores.fragment_loads import (
    LaneOffsets,
    load_along,
    load_operand,
)
from alcop_mlir.transforms.tensor_cores.fragment_rows import (
    across_lanes,
    load_rows,
    numbers,
    piece_places,
    reshape,
    store_rows,
)
from alcop_mlir.transforms.tensor_cores.fragment_stores import store_accumulators
from alcop_mlir.transforms.tensor_cores.lane_totals import LaneTotals, lane_totals_of
from alcop_mlir.transforms.tensor_cores.own_numbers import separate_numbers
from alcop_mlir.transforms.tensor_cores.staged_stores import Stages
from alcop_mlir.transforms.tensor_cores.warpgroup_products import (
    SUMS,
    Products,
    is_of_warpgroup,
    is_read_by_warpgroup,
    is_zero,
)


@frozen
class LowerMma(Pass):
    name = "alcop-lower-mma"

    def run(self, op: ir.Operation) -> None:
        for block, found in _by_thread_block(op).items():
            contractions = [one for one in found if one.name == CONTRACT]
            stores = [one for one in found if one.name == WRITE]
            threads = _threads(block, found[0])
            separate_numbers(block.body)
            fragments = find_fragments(contractions, stores)
            lowering = _Lowering(
                fragments,
                threads,
                lane_totals_of(block.body, fragments, threads),
                LaneOffsets(threads, block.body),
                Stages(threads, block.body),
                Products(threads, block.body),
                stores,
            )
            lowering.block(block.body)
            lowering.erase_replaced()
        for left in walk(op):
            if alcop.BY_LANE in left.attributes:
                del left.attributes[alcop.BY_LANE]


def _by_thread_block(root: ir.Operation) -> dict[ThreadBlock, list[Any]]:
    """The contractions of each kernel, and the stores of contractions' tiles."""
    found: dict[ThreadBlock, list[Any]] = {}
    for op in walk(root, CONTRACT, WRITE):
        block = enclosing(op)
        if block is None:
            continue
        if op.name == CONTRACT or _stores_tile(op, block):
            found.setdefault(block, []).append(op)
    return found


def _stores_tile(op: ir.Operation, block: ThreadBlock) -> bool:
    is_tiled = alcop.get(block.op, alcop.ScheduleAttr) is not None
    return is_tiled and op.operands[0].type.rank == len(ACCUMULATORS_LAYOUT.dims)


def _threads(block: ThreadBlock, op: ir.Operation) -> int:
    if block.threads is None or block.threads % WARP_SIZE:
        raise PassError(
            op,
            f"contraction in a thread block of {block}, expected a multiple of "
            f"{WARP_SIZE} threads along x",
        )
    return block.threads


@dataclass
class _Lowering:
    """Rewrites a kernel from top to bottom; what is replaced stays until the end.

    totals:       of rows, of which each lane holds a part of its own
    lane_offsets: of the loads of operands
    stages:       buffers for stores through shared memory
    stores:       of contractions' tiles; their values may be uniform
    lowered:      fragments of the values replaced so far
    of_rows:      of totals that lanes hold parts of, those of rows that somebody reads
    replaced:     ops to erase, each after the ops that make its operands
    by_wgmma:     contractions of warpgroups
    """

    fragments: Fragments
    threads: int
    totals: LaneTotals
    lane_offsets: LaneOffsets
    stages: Stages
    by_wgmma: Products
    stores: list[ir.Operation]
    lowered: dict[Any, tuple[Any, ...]] = field(default_factory=dict)
    of_rows: dict[Any, tuple[Any, ...]] = field(default_factory=dict)
    replaced: list[Any] = field(default_factory=list)

    def block(self, block: ir.Block) -> None:
        """Rewrite all ops of a block, in order."""
        for op in list(block.operations):
            operation = op.operation
            if operation.name == "scf.yield":
                continue  # rewritten with the op that it ends
            if self._concerns(operation):
                with operation.location, ir.InsertionPoint(operation):
                    self._rewrite(operation)
                continue
            for region in operation.regions:
                for inner in region.blocks:
                    self.block(inner)

    def erase_replaced(self) -> None:
        """Users first: erasing an op that has uses goes unnoticed, then crashes."""
        for op in reversed(self.replaced):
            op.erase()

    def _concerns(self, op: ir.Operation) -> bool:
        values = [*op.operands, *op.results]
        return op in self.stores or any(
            self.fragments.of(value) is not None for value in values
        )

    def _rewrite(self, op: ir.Operation) -> None:
        self.replaced.append(op)
        rules = {
            "scf.for": self._for,
            "scf.if": self._if,
            READ: self._read,
            WRITE: self._write,
            CONTRACT: self._contract,
            SLICE: self._slice,
            UNPACK: self._unpack,
            STEP: self._number,
            **dict.fromkeys(RESHAPES, self._reshape),
        }
        assert op.name in rules or is_elementwise(op), op.name
        rules.get(op.name, self._elementwise)(op)

    def _for(self, op: ir.Operation) -> None:
        results = list(op.results)
        init_args = self._flat(loops.init_args(op), results)
        loop = scf.ForOp(*loops.bounds(op), init_args)
        edit.keep_attributes(op, loop)
        induction, *carried = list(loops.body(op).arguments)
        induction.replace_all_uses_with(loop.induction_variable)
        with ir.InsertionPoint.at_block_begin(loop.body):
            self._learn(carried, list(loop.inner_iter_args))
        self._learn(results, list(loop.results))
        self._move(loops.body(op), loop.body, results)

    def _if(self, op: ir.Operation) -> None:
        results = list(op.results)
        kinds = [kind for result in results for kind in self._kinds(result)]
        branch = scf.IfOp(op.operands[0], kinds, has_else=True)
        edit.keep_attributes(op, branch)
        self._learn(results, list(branch.results))
        for old, new in zip(op.regions, branch.regions, strict=True):
            self._move(old.blocks[0], new.blocks[0], results)

    def _move(self, old: ir.Block, new: ir.Block, results: list[Any]) -> None:
        """Move and rewrite the ops of a block; yield the fragments of `results`."""
        edit.move_ops(old, new)
        self.block(new)
        end = list(new.operations)[-1].operation
        self.replaced.append(end)
        with end.location, ir.InsertionPoint(end):
            scf.YieldOp(self._flat(end.operands, results))

    def _read(self, op: ir.Operation) -> None:
        result = op.results[0]
        if is_read_by_warpgroup(result):
            return
        layout = self._layout(result)
        source, *rest = list(op.operands)
        indices, kind = rest[: source.type.rank], result.type
        if not layout.is_operand or is_same_along_k(op, layout):
            loads = {"accumulator": load_accumulators, "a": load_along, "b": load_along}
            load = loads.get(layout.role, load_rows)
            with guarded(op, _bounds(op, source, padding=rest[source.type.rank])):
                dims = layout.rows_and_columns(transfer_dims(op))
                first = AccumulatorSource(source, indices, dims)
                loaded = load(first, layout, kind, self.threads)
        else:
            loaded = load_operand(source, indices, layout, kind, self.lane_offsets)
        self.lowered[result] = loaded.values

    def _write(self, op: ir.Operation) -> None:
        value, target, *indices = list(op.operands)
        layout = self.fragments.of(value) or ACCUMULATORS_LAYOUT
        fragments = self._pieces(value, layout)
        limits = _bounds(op, target)
        if layout.role != "accumulator":
            store_rows(fragments, limits, indices, self.threads)
            return
        if box_of(target) is not None:
            store_box(op, fragments, target)
            return
        with guarded(op, limits):
            store_accumulators(op, fragments, target, indices, self.stages)

    def _contract(self, op: ir.Operation) -> None:
        if is_of_warpgroup(op):
            self._warpgroup(op)
            return
        values = (*multiplied(op), op.operands[2])
        operands = zip(values, contraction_layouts(op), strict=True)
        a, b, initial = (self._pieces(value, layout) for value, layout in operands)
        accumulators = list(initial.values)
        rows, columns = a.counts["m"], 2 * b.counts["n"]
        for k in range(a.counts["k"]):
            across = [
                half for n in range(b.counts["n"]) for half in halves(b.at(k=k, n=n))
            ]
            for m in range(rows):
                # Back and forth, so that neighbouring mma.sync share an operand.
                along = range(columns) if m % 2 == 0 else reversed(range(columns))
                for n in along:
                    number = m * columns + n
                    accumulators[number] = multiply(
                        a.at(m=m, k=k), across[n], accumulators[number]
                    )
        self.lowered[op.results[0]] = tuple(accumulators)

    def _warpgroup(self, op: ir.Operation) -> None:
        before, result = op.operands[SUMS], op.results[0]
        held = None
        if not (self.by_wgmma.has(before) or is_zero(before)):
            held = self._pieces(before, self._layout(result)).values
        a = None
        if not reads_memory(op, 0):
            left = multiplied(op)[0]
            a = self._pieces(left, self._layout(left))
        made = self.by_wgmma.lower(op, held, a)
        if made is not None:
            self.lowered[result] = made

    def _slice(self, op: ir.Operation) -> None:
        """Take some rows and columns of pieces."""
        source, result = op.operands[0], op.results[0]
        layout = self._layout(result)
        whole = self._pieces(source, layout)
        offsets = dict(zip(layout.dims, slice_offset(op, layout), strict=True))
        self.lowered[result] = tuple(
            whole.at(**{dim: offsets[dim] + n for dim, n in place.items()})
            for place in piece_places(layout, result.type)
        )

    def _unpack(self, op: ir.Operation) -> None:
        """Leave the bytes as they are: the conversions that follow take them apart."""
        source, result = op.operands[0], op.results[0]
        self.lowered[result] = self._pieces(source, self._layout(source)).values

    def _reshape(self, op: ir.Operation) -> None:
        """Reduce, broadcast, reshape or transpose: between accumulators and rows."""
        result = op.results[0]
        layout = self._layout(result)
        ties = {tie.value: tie.layout for tie in reshaped(op, result, layout)}
        held = [
            self._taken(op, value, self.fragments.of(value) or ties[value])
            for value in op.operands
        ]
        by_lane = result in self.totals.values and op.name == REDUCE
        self._hold(result, reshape(op, held, layout, by_lane).values)

    def _number(self, op: ir.Operation) -> None:
        result = op.results[0]
        made = numbers(self._layout(result), result.type, self.threads)
        self.lowered[result] = made.values

    def _elementwise(self, op: ir.Operation) -> None:
        result = op.results[0]
        if is_read_by_warpgroup(result):
            return
        layout = self._layout(result)
        operands = [
            self._taken(op, value, layout).values
            if isinstance(value.type, ir.VectorType)
            else None
            for value in op.operands
        ]
        made = []
        for number, kind in enumerate(self._kinds(result)):
            taken = [
                value if fragments is None else fragments[number]
                for value, fragments in zip(op.operands, operands, strict=True)
            ]
            converted = convert(op, taken[0])
            if converted is None:
                converted = edit.like(op, [kind], taken).results[0]
            made.append(converted)
        self._hold(result, tuple(made))

    def _layout(self, value: ir.Value) -> FragmentLayout:
        layout = self.fragments.of(value)
        assert layout is not None, value
        return layout

    def _kinds(self, value: ir.Value) -> list[Any]:
        """Types of the values that replace `value`."""
        layout = self.fragments.of(value)
        if layout is None:
            return [value.type]
        count = math.prod(layout.grid(value.type).values())
        return [layout.lane_type(value.type.element_type)] * count

    def _hold(self, value: ir.Value, made: tuple[Any, ...]) -> None:
        """Note a value's fragments; of a lane's own sum those of the row's, too."""
        self.lowered[value] = made
        if value in self.totals.values and self.totals.is_read(value):
            held = pieces(self._layout(value), value.type, made)
            self.of_rows[value] = across_lanes(held, value.type).values

    def _taken(
        self, op: ir.Operation, value: ir.Value, layout: FragmentLayout
    ) -> Pieces:
        """The fragments of an operand, as the op takes it."""
        if self.totals.is_taken(op, value):
            return self._own(value, layout)
        return self._pieces(value, layout)

    def _own(self, value: ir.Value, layout: FragmentLayout) -> Pieces:
        """What a lane adds to of a row's sum."""
        if value in self.totals.values:
            return pieces(layout, value.type, self.lowered[value])
        return self.totals.own(value, self._pieces(value, layout))

    def _pieces(self, value: ir.Value, layout: FragmentLayout) -> Pieces:
        """The fragments of a vector; built here for a uniform one."""
        held = self.fragments.of(value)
        if held is not None and layout.is_operand and is_held_as(held, layout):
            return operand_of(pieces(held, value.type, self.lowered[value]), layout)
        if value in self.lowered:
            found = self.of_rows.get(value, self.lowered[value])
            return pieces(layout, value.type, found)
        piece = _uniform(value, layout.lane_type(value.type.element_type))
        count = math.prod(layout.grid(value.type).values())
        return pieces(layout, value.type, [piece] * count)

    def _flat(self, values: Sequence[ir.Value], results: Sequence[Any]) -> list[Any]:
        """`values`, which become `results`, with fragments instead of vectors."""
        flat: list[Any] = []
        for value, result in zip(values, results, strict=True):
            layout = self.fragments.of(result)
            if layout is None:
                flat.append(value)
            else:
                is_own = result in self.totals.values
                held = self._own if is_own else self._pieces
                flat.extend(held(value, layout).values)
        return flat

    def _learn(self, old: Sequence[Any], new: list[Any]) -> None:
        """Replace each old value by the next of the new ones, or by its fragments."""
        taken = iter(new)
        for value in old:
            if self.fragments.of(value) is None:
                value.replace_all_uses_with(next(taken))
            else:
                count = len(self._kinds(value))
                self._hold(value, tuple(next(taken) for _ in range(count)))


def _bounds(
    op: ir.Operation, buffer: ir.Value, padding: ir.Value | None = None
) -> Bounds:
    """The bounds of a transfer from or to `buffer`."""
    inside = [attribute.value for attribute in op.attributes["in_bounds"]]
    return bounds(buffer, transfer_dims(op), inside, padding)


def _uniform(value: ir.Value, kind: ir.Type) -> Any:
    """A fragment of a vector that is the same in every element."""
    op = value.owner
    if op.name == "vector.broadcast":
        return vector.broadcast(kind, op.operands[0])
    if op.name == "ub.poison":
        return ub.poison(kind)
    scalar = op.attributes["value"].get_splat_value()
    return build.splat(kind, scalar)
