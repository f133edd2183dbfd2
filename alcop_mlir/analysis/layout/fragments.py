"""Which vectors are distributed to the lanes of a warp as fragments of mma.sync.

Layouts begin at the operands of each `vector.contract` and spread through loops,
branches and element-wise ops to every value that must have the same layout, and to the
rows and columns that reductions make of accumulators, or broadcasts accumulators of.
Accumulators come first: an operand computed from them is held as they are, if that is
the layout it is needed in, see `is_held_as`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.layout.fragment_layout import (
    ACCUMULATORS_LAYOUT,
    FragmentLayout,
    accumulator_layout,
    check_read,
    check_shape,
    check_write,
    is_held_as,
    operand_layout,
    transfer_dims,
)
from alcop_mlir.analysis.layout.reshapes import RESHAPES, Tie, reshaped
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import ACCUMULATORS, EIGHT_BIT_FLOATS
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen

CONTRACT = "vector.contract"
READ = "vector.transfer_read"
WRITE = "vector.transfer_write"
SLICE = "vector.extract_strided_slice"
UNPACK = "vector.bitcast"  # of bytes to the elements that they hold, along k
STEP = "vector.step"
_FMA = "vector.fma"
_FROM_NIBBLES = 2  # bytes of the elements that nibbles become
_NUMBERED = ("m", "n")  # what a vector.step can number
_MULTIPLIED, _ACCUMULATORS = slice(0, 2), slice(2, 4)  # of what a contraction needs
_KIND_OF_SUM = "#vector.kind<add>"


@frozen
class Fragments:
    """Layouts of all values that are distributed to the lanes of a warp."""

    layouts: dict[Any, FragmentLayout]

    def of(self, value: ir.Value) -> FragmentLayout | None:
        """The layout of `value`; None if it is not distributed."""
        return self.layouts.get(value)


def is_uniform(value: ir.Value) -> bool:
    """Whether all elements of the vector are one known scalar or anything at all.

    Each user makes its own fragments of such a value.
    """
    if (op := loops.made_by(value, "vector.broadcast")) is not None:
        return not isinstance(op.operands[0].type, ir.VectorType)
    if loops.splat(value) is not None:
        return True
    return loops.made_by(value, "ub.poison") is not None


def is_elementwise(op: ir.Operation) -> bool:
    """Whether each element of the only result comes from the operands' same element."""
    operation = op.operation
    is_known = operation.name.split(".")[0] in ("arith", "math")
    if not (is_known or operation.name == _FMA) or operation.regions:
        return False
    if len(operation.results) != 1 or operation.name == "arith.constant":
        return False
    vectors = [v for v in operation.operands if isinstance(v.type, ir.VectorType)]
    kinds = [value.type for value in (*vectors, operation.results[0])]
    return bool(vectors) and all(
        isinstance(kind, ir.VectorType) and kind.shape == kinds[0].shape
        for kind in kinds
    )


def find_fragments(
    contractions: list[ir.Operation], stores: Sequence[ir.Operation] = ()
) -> Fragments:
    """Layouts of all values that the contractions need distributed.

    stores: of a contraction's tile, which hold no contraction where all of it folded
            away, as that of `x - x` does: their values are distributed as accumulators

    Raises PassError where a value needs two layouts, or where an op that makes or uses
    a distributed value cannot work on fragments.
    """
    spreading = _Spreading()
    needs = [(one, _operands(one)) for one in contractions]
    for contraction, values in needs:
        for value, layout in values[_ACCUMULATORS]:
            spreading.spread(Tie(value, contraction, layout))
    for contraction, values in needs:
        for value, layout in values[_MULTIPLIED]:
            if not is_held_as(spreading.layouts.get(value), layout):
                spreading.spread(Tie(value, contraction, layout))
    for store in stores:
        value = store.operands[0]
        if value not in spreading.layouts:
            spreading.spread(Tie(value, store, ACCUMULATORS_LAYOUT))
    spreading.use_defaults()
    return Fragments(spreading.layouts)


@frozen
class _Spreading:
    """The layouts found so far, and ties by default of values that may have none."""

    layouts: dict[Any, FragmentLayout] = field(default_factory=dict)
    defaults: list[Tie] = field(default_factory=list)

    def spread(self, first: Tie) -> None:
        """Set the layout that an op needs a value in, also of all values tied to it."""
        pending = [first]
        while pending:
            tie = pending.pop()
            value, layout = tie.value, tie.layout
            known = self.layouts.get(value)
            if is_uniform(value):
                check_shape(tie.op, value.type, layout)
            elif tie.is_default:
                self.defaults.append(tie)
            elif known is None:
                check_shape(tie.op, value.type, layout)
                self.layouts[value] = layout
                pending.extend(_tied_to_origin(value, layout))
                for use in value.uses:
                    pending.extend(_tied_by_use(value, use, layout))
            elif known != layout:
                raise PassError(
                    tie.op,
                    f"needs a vector distributed as {layout}, which is distributed as "
                    f"{known}: conversions of layouts are unsupported",
                )

    def use_defaults(self) -> None:
        """Spread the layouts of values that nothing else has given one."""
        while self.defaults:
            tie = self.defaults.pop()
            if tie.value not in self.layouts:
                self.spread(replace(tie, is_default=False))


def _packed_layout(op: ir.Operation, layout: FragmentLayout) -> FragmentLayout:
    """The layout of bytes that hold two elements each of an operand."""
    source, result = (one.type.element_type for one in (op.operands[0], op.results[0]))
    fits = layout.bytes == _FROM_NIBBLES and layout.is_operand and layout.is_along_k
    if not fits or (str(source), str(result)) != ("i8", "i4"):
        raise PassError(
            op,
            f"makes {layout} of {source} as {result}, expected i4 of i8, along k of an "
            "operand of 16 bits",
        )
    return replace(layout, packed=True)


def _operands(op: ir.Operation) -> list[tuple[Any, FragmentLayout]]:
    """Operands and result of the contraction, with the layouts that it needs."""
    lhs, rhs = multiplied(op)
    accumulator = op.operation.operands[2]
    a, b, accumulators = contraction_layouts(op, stored_bytes(lhs), stored_bytes(rhs))
    return [
        (lhs, a),
        (rhs, b),
        (accumulator, accumulators),
        (op.operation.results[0], accumulators),
    ]


def multiplied(op: ir.Operation) -> tuple[Any, Any]:
    """What mma.sync multiplies of a contraction: its first two operands.

    Of two types of floats of eight bits these are widened to f32, as a vector.contract
    takes one type only: then what was widened.
    """
    lhs, rhs = list(op.operation.operands)[:2]
    wide = [loops.made_by(value, "arith.extf") for value in (lhs, rhs)]
    narrow = [one.operands[0] for one in wide if one is not None]
    kinds = {str(value.type.element_type) for value in narrow}
    is_f32 = isinstance(lhs.type.element_type, ir.F32Type)
    if len(narrow) == 2 and is_f32 and kinds <= {*EIGHT_BIT_FLOATS}:
        lhs, rhs = narrow
    return lhs, rhs


def stored_bytes(value: ir.Value) -> set[int]:
    """Bytes of an element in memory, for the reads that `value` is computed from."""
    found: set[int] = set()
    seen: set[Any] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if value in seen or is_uniform(value):
            continue
        seen.add(value)
        read = loops.made_by(value, READ)
        if read is None:
            pending.extend(other for other, _ in _origins(value) or ())
        elif None not in transfer_dims(read):
            found.add(element_bytes(read.operands[0].type))
    return found


def contraction_layouts(
    op: ir.Operation, lhs_stored: Collection[int] = (), rhs_stored: Collection[int] = ()
) -> tuple[FragmentLayout, FragmentLayout, FragmentLayout]:
    """The layouts that the contraction needs for its operands and accumulators.

    lhs_stored, rhs_stored: see `stored_bytes`; they decide which lane an element is
    distributed to, not the number of pieces
    """
    dims = contraction_dims(op)
    values = (*multiplied(op), op.operation.operands[2])
    lhs, rhs, out = (value.type.element_type for value in values)
    is_one_kind = lhs == rhs or {str(lhs), str(rhs)} <= {*EIGHT_BIT_FLOATS}
    if not is_one_kind or ACCUMULATORS.get(str(lhs)) != str(out):
        expected = ", ".join(f"{t} into {s}" for t, s in ACCUMULATORS.items())
        raise PassError(
            op, f"contraction of {lhs} and {rhs} into {out}, expected {expected}"
        )
    a = operand_layout("a", dims[0], lhs, lhs_stored)
    b = operand_layout("b", dims[1], rhs, rhs_stored)
    return a, b, accumulator_layout(a, b)


def contraction_dims(op: ir.Operation) -> tuple[str, str]:
    """Dimensions of the operands as "mk"/"km" and "kn"/"nk"."""
    operation = op.operation
    if str(operation.attributes["kind"]) != _KIND_OF_SUM:
        raise PassError(
            op,
            f"contraction by {operation.attributes['kind']}, expected {_KIND_OF_SUM}",
        )
    maps = [
        [ir.AffineDimExpr(result).position for result in attribute.value.results]
        for attribute in operation.attributes["indexing_maps"]
    ]
    lhs, rhs, out = map(set, maps)
    names = {
        **dict.fromkeys(lhs & out - rhs, "m"),
        **dict.fromkeys(rhs & out - lhs, "n"),
        **dict.fromkeys(lhs & rhs - out, "k"),
    }
    spelled = ["".join(names.get(dim, "?") for dim in dims) for dims in maps]
    known = spelled[0] in ("mk", "km") and spelled[1] in ("kn", "nk")
    if not known or spelled[2] != "mn":
        raise PassError(
            op,
            f"contraction over {', '.join(spelled)}: expected mk or km, kn or nk, mn",
        )
    return spelled[0], spelled[1]


def slice_offset(op: ir.Operation, layout: FragmentLayout) -> tuple[int, ...]:
    """The first piece in a slice, along each dimension.

    Raises PassError where the slice cuts pieces.
    """
    offsets, steps = (
        [number.value for number in op.operation.attributes[name]]
        for name in ("offsets", "strides")
    )
    offsets += [0] * (len(layout.dims) - len(offsets))  # all of the last dimensions
    places = [divmod(*pair) for pair in zip(offsets, layout.piece, strict=True)]
    if any(rest for _, rest in places) or any(step != 1 for step in steps):
        raise PassError(
            op,
            f"takes a slice at {offsets} of {layout}, expected whole pieces of "
            f"{' x '.join(map(str, layout.piece))}",
        )
    return tuple(place for place, _ in places)


def _tied_to_origin(value: ir.Value, layout: FragmentLayout) -> Iterator[Tie]:
    """What has a layout for that of `value`, as what makes it ties them."""
    op, tied = loops.defining_op(value), _origins(value)
    if tied is not None:
        yield from (Tie(other, by, layout) for other, by in tied)
    elif op is None:
        raise PassError(
            value.owner.owner,
            f"{value.type} as {layout} is an argument, expected a local value",
        )
    elif op.name == READ:
        check_read(op, layout)
    elif op.name == SLICE:
        slice_offset(op, layout)
        yield Tie(op.operands[0], op, layout)
    elif op.name == UNPACK:
        yield Tie(op.operands[0], op, _packed_layout(op, layout))
    elif op.name in RESHAPES and not layout.is_operand:
        yield from reshaped(op, value, layout)
    elif op.name == STEP and layout.dims in _NUMBERED:
        pass
    elif op.name != CONTRACT:
        raise PassError(op, f"'{op.name}' cannot make the fragments of {layout}")


def _origins(value: ir.Value) -> Iterable[tuple[Any, Any]] | None:
    """What loops, branches and element-wise ops compute `value` from, by element.

    Each with the op that ties them; None where something else makes the value.
    """
    op = loops.defining_op(value)
    if op is None:
        loop = value.owner.owner
        if loop is None or not loops.is_loop(loop):
            return None
        return _carried_by(loop, value.arg_number - 1)
    if op.name == "scf.for":
        return _carried_by(op, value.result_number)
    if op.name == "scf.if":
        return _chosen_by(op, value.result_number)
    return [(other, op) for other in _vectors(op)] if is_elementwise(op) else None


def _tied_by_use(
    value: ir.Value, use: ir.OpOperand, layout: FragmentLayout
) -> Iterator[Tie]:
    """Those that an op that uses the value ties to it."""
    op, number = use.owner.operation, use.operand_number
    if op.name == CONTRACT or (op.name == UNPACK and layout.packed):
        return  # the contraction itself asks for layouts
    if op.name == WRITE:
        check_write(op, layout)
    elif op.name == SLICE:
        slice_offset(op, layout)
        yield Tie(op.results[0], op, layout)
    elif op.name in RESHAPES and not layout.is_operand:
        yield from reshaped(op, value, layout)
    elif (tied := _joined(op, number)) is not None:
        yield from (Tie(other, by, layout) for other, by in tied)
    else:
        raise PassError(op, f"'{op.name}' cannot use the fragments of {layout}")


def _joined(op: ir.Operation, number: int) -> list[tuple[Any, Any]] | None:
    """What loops, branches and element-wise ops make of their operand `number`, and
    what else they make that of; None for other ops.
    """
    if op.name == "scf.for":
        return _carried_by(op, number - len(loops.bounds(op)))
    if op.name == "scf.yield" and op.parent.name == "scf.for":
        return _carried_by(op.parent, number)
    if op.name == "scf.yield" and op.parent.name == "scf.if":
        return _chosen_by(op.parent, number)
    if is_elementwise(op):
        return [(other, op) for other in (*_vectors(op), op.results[0])]
    return None


def _carried_by(loop: ir.Operation, number: int) -> list[tuple[Any, Any]]:
    values = (
        loops.init_args(loop)[number],
        loops.body(loop).arguments[number + 1],
        loops.yielded(loop, number),
        loop.results[number],
    )
    return [(value, loop) for value in values]


def _chosen_by(branch: ir.Operation, number: int) -> list[tuple[Any, Any]]:
    values = (*loops.branch_values(branch, number), branch.results[number])
    return [(value, branch) for value in values]


def _vectors(op: ir.Operation) -> list[Any]:
    return [v for v in op.operands if isinstance(v.type, ir.VectorType)]
