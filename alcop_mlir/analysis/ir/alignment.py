"""What is known about the alignment of indices and addresses.

`divisor` finds a number that an index is certainly a multiple of, or each element of a
vector, through arithmetic, loops and branches. `address_alignment` puts the divisors of
all indices of an access together with strides and offsets: the bytes that the access is
certainly aligned to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.promises import (
    ALIGNMENT,
    assumed_row_alignment,
    of_argument,
    row_alignment,
)
from alcop_mlir.bindings import ir
from alcop_mlir.target import CP_ASYNC_BYTES

# Memrefs begin at a multiple of this many bytes: the kernel ABI asks it of arguments
# that do not say otherwise, and alcop-outline-kernels gives workgroup buffers more. No
# access is wider.
BASE_ALIGNMENT = max(CP_ASYNC_BYTES)

# Divisors assumed of loop-carried values while they are being checked.
_Assumed = dict[Any, int]


def divisor(value: Any, assumed: _Assumed | None = None) -> int:
    """The greatest number found that divides `value`; 0 for the constant zero."""
    if isinstance(value, int):
        return abs(value)
    assumed = {} if assumed is None else assumed
    if value in assumed:
        return assumed[value]
    known = loops.number(value)
    if known is not None:
        return abs(known)
    op = loops.defining_op(value)
    if op is None:
        return _argument_divisor(value, assumed)
    if op.name == "scf.for":
        return _carried_divisor(op, value.result_number, assumed)
    if op.name == "scf.if":
        return _common(loops.branch_values(op, value.result_number), assumed)
    rule = _RULES.get(op.name)
    return 1 if rule is None else rule(op, assumed)


def address_alignment(memref: ir.Value, divisors: Sequence[int]) -> int:
    """Bytes that the element at an index is aligned to, given divisors of the index."""
    size = element_bytes(memref.type)
    alignment = base_alignment(memref)
    for number, known in enumerate(divisors):
        if memref.type.shape[number] != 1:  # else the index is zero
            step = stride_divisor(memref, number) * known * size
            alignment = math.gcd(alignment, step)
    return alignment


def stride_divisor(memref: ir.Value, number: int) -> int:
    """A number that surely divides the stride of dimension `number`, in elements.

    For a stride that is not static, this is a divisor of the value that the view was
    made with, or follows from what is promised of an argument.
    """
    kind = memref.type
    strides, _ = kind.get_strides_and_offset()
    if strides[number] != ir.ShapedType.get_dynamic_stride_or_offset():
        return abs(strides[number])
    if (op := loops.made_by(memref, "memref.reinterpret_cast")) is not None:
        return divisor(given(op, "strides")[number])
    if (op := loops.made_by(memref, *_SAME_STRIDES)) is not None:
        source, dimension = op.operands[0], source_dimension(op, number)
        if isinstance(source.type, ir.MemRefType) and dimension is not None:
            return math.lcm(stride_divisor(source, dimension), _assumed(op, number))
    if (op := loops.made_by(memref, *_REGROUPED)) is not None:
        return _regrouped_stride_divisor(op, number)
    if number == kind.rank - 1:
        return 1
    promised = max(1, row_alignment(memref) // element_bytes(kind))
    if not follows_shape(kind):
        return promised
    row = promised if kind.is_dynamic_dim(kind.rank - 1) else kind.shape[-1]
    return _sizes_divisor(kind.shape[number + 1 : -1]) * row


def _assumed(view: ir.Operation, number: int) -> int:
    """Divisor of a stride that an assumption about rows promises; 1 for none."""
    kind = view.results[0].type
    if number == kind.rank - 1:
        return 1
    elements = max(1, assumed_row_alignment(view) // element_bytes(kind))
    if not follows_shape(kind) or kind.is_dynamic_dim(kind.rank - 1):
        return elements
    return 1


def _regrouped_stride_divisor(view: ir.Operation, number: int) -> int:
    """Divisor of the stride of a dimension that was split off or collapsed."""
    source, result = view.operands[0], view.results[0]
    for dimension, group in enumerate(view.attributes["reassociation"]):
        members = [member.value for member in group]
        if view.name == "memref.collapse_shape" and dimension == number:
            return math.gcd(*(stride_divisor(source, member) for member in members))
        if view.name == "memref.expand_shape" and number in members:
            inner = result.type.shape[number + 1 : members[-1] + 1]
            return stride_divisor(source, dimension) * _sizes_divisor(inner)
    return 1


def _sizes_divisor(sizes: Sequence[int]) -> int:
    """A number that surely divides the product of the sizes."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return math.prod(1 if size == dynamic else size for size in sizes)


def base_alignment(memref: ir.Value) -> int:
    """Bytes that the first element of `memref` is aligned to."""
    op = loops.defining_op(memref)
    if op is not None and op.name in _VIEW_RULES:
        return _VIEW_RULES[op.name](op)
    if op is None and (said := of_argument(memref, ALIGNMENT)) is not None:
        return max(element_bytes(memref.type), math.gcd(BASE_ALIGNMENT, said.value))
    _, offset = memref.type.get_strides_and_offset()
    return math.gcd(BASE_ALIGNMENT, _static(offset) * element_bytes(memref.type))


def without_casts(memref: ir.Value) -> Any:
    """The source of casts that only drop sizes, strides or an offset from the type.

    Upstream folds accesses of views into their buffers, but not through casts.
    """
    while (op := loops.made_by(memref, "memref.cast")) is not None:
        if not isinstance(op.operands[0].type, ir.MemRefType):
            break
        memref = op.operands[0]
    return memref


def element_bytes(kind: ir.Type) -> int:
    """Bytes of one element of a memref or vector type; 1 where that is not known."""
    element = kind.element_type
    return element.width // 8 if has_whole_bytes(element) else 1


def has_whole_bytes(element: ir.Type) -> bool:
    """Whether elements of this type fill a known number of bytes."""
    return isinstance(element, ir.IntegerType | ir.FloatType) and element.width % 8 == 0


def _static(stride_or_offset: int) -> int:
    """Itself, or 1 (any number) where it is only known at run time."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return 1 if stride_or_offset == dynamic else stride_or_offset


def given(view: ir.Operation, name: str) -> list[Any]:
    """The "offsets", "sizes" or "strides" of a view: ints, or values."""
    dynamic = ir.ShapedType.get_dynamic_size()
    operands = iter(getattr(view.opview, name))
    static = view.attributes[f"static_{name}"]
    return [next(operands) if one == dynamic else one for one in static]


def source_dimension(view: ir.Operation, number: int) -> int | None:
    """The dimension of the source that dimension `number` of a view is, or None.

    Of ops of which the source has the strides, and of subviews without steps.
    """
    if view.name != "memref.subview":
        return number
    if any(step != 1 for step in view.attributes["static_strides"]):
        return None
    return kept_dimensions(view)[number]


def kept_dimensions(subview: ir.Operation) -> list[int]:
    """Per dimension of the result, that of the source: some of size one are dropped.

    Which of several is dropped is not known and does not matter: the outermost.
    """
    sizes = list(subview.attributes["static_sizes"])
    kept = list(range(len(sizes)))
    for number, size in enumerate(sizes):
        if len(kept) > subview.results[0].type.rank and size == 1:
            kept.remove(number)
    return kept


def _subview_alignment(op: ir.Operation) -> int:
    """The alignment of the source's element at the view's offsets."""
    return address_alignment(op.operands[0], list(map(divisor, given(op, "offsets"))))


def _cast_alignment(op: ir.Operation) -> int:
    return base_alignment(op.operands[0])


def _reinterpreted_alignment(op: ir.Operation) -> int:
    """The alignment of the source, and of the offset where that is static."""
    source, offset = op.operands[0], op.attributes["static_offsets"][0]
    size = element_bytes(op.results[0].type)
    if not isinstance(source.type, ir.MemRefType):
        return math.gcd(BASE_ALIGNMENT, size)
    _, begin = source.type.get_strides_and_offset()
    if begin != 0:  # the offset counts from the allocation, not from the view
        return math.gcd(BASE_ALIGNMENT, size)
    return math.gcd(base_alignment(source), _static(offset) * size)


def _rows_alignment(op: ir.Operation) -> int:
    """The alignment of all rows, which may have any of the source's distances."""
    (source,) = op.operands
    strides = [stride_divisor(source, n) for n in range(source.type.rank - 1)]
    return math.gcd(
        base_alignment(source), *(n * element_bytes(source.type) for n in strides)
    )


def _assumed_alignment(op: ir.Operation) -> int:
    """What `memref.assume_alignment` promises, or what is known if that is more."""
    promised = math.gcd(BASE_ALIGNMENT, op.attributes["alignment"].value)
    return max(promised, base_alignment(op.operands[0]))


def _view_alignment(op: ir.Operation) -> int:
    """The alignment of a buffer of bytes at a byte offset."""
    return math.gcd(base_alignment(op.operands[0]), divisor(op.operands[1]))


def _argument_divisor(argument: ir.Value, assumed: _Assumed) -> int:
    """Divisor of an induction variable or carried value; 1 for other arguments."""
    owner = argument.owner.owner
    if owner is None or owner.operation.name != "scf.for":
        return 1
    if argument.arg_number == 0:
        lower, _, step = loops.bounds(owner)
        return _common((lower, step), assumed)
    return _carried_divisor(owner, argument.arg_number - 1, assumed)


def _carried_divisor(loop: ir.Operation, number: int, assumed: _Assumed) -> int:
    """The greatest divisor of the init arg that every iteration keeps."""
    argument = loops.body(loop).arguments[number + 1]
    yielded = loops.yielded(loop, number)
    kept = divisor(loops.init_args(loop)[number], assumed)
    while True:
        after = math.gcd(kept, divisor(yielded, {**assumed, argument: kept}))
        if after == kept:
            return kept
        kept = after


def _common(values: Iterable[ir.Value], assumed: _Assumed) -> int:
    return math.gcd(*(divisor(value, assumed) for value in values))


def _of_operands(op: ir.Operation, assumed: _Assumed) -> int:
    return _common(op.operands, assumed)


def _product(op: ir.Operation, assumed: _Assumed) -> int:
    return math.prod(divisor(operand, assumed) for operand in op.operands)


def _selected(op: ir.Operation, assumed: _Assumed) -> int:
    return _common(list(op.operands)[1:], assumed)


def _shifted(op: ir.Operation, assumed: _Assumed) -> int:
    amount = loops.number(op.operands[1])
    return divisor(op.operands[0], assumed) << (amount or 0)


def _quotient(op: ir.Operation, assumed: _Assumed) -> int:
    """That of the number, if what it is divided by divides it."""
    number, by = divisor(op.operands[0], assumed), loops.number(op.operands[1])
    return number // by if by and number % by == 0 else 1


def _masked(op: ir.Operation, assumed: _Assumed) -> int:
    """Low bits that are zero in one operand are zero in the result."""
    return max(_low_bit(divisor(operand, assumed)) for operand in op.operands)


def _combined(op: ir.Operation, assumed: _Assumed) -> int:
    """Low bits that are zero in both operands are zero in the result."""
    bits = [_low_bit(divisor(operand, assumed)) for operand in op.operands]
    return math.gcd(*bits)


def _low_bit(number: int) -> int:
    return number & -number


def _applied(op: ir.Operation, assumed: _Assumed) -> int:
    """Divisor of an affine.apply: dimensions come first, then symbols."""
    affine_map = op.attributes["map"].value
    known = [divisor(operand, assumed) for operand in op.operands]
    dims, symbols = known[: affine_map.n_dims], known[affine_map.n_dims :]
    return _expression_divisor(affine_map.results[0], dims, symbols)


def _expression_divisor(
    expr: ir.AffineExpr, dims: list[int], symbols: list[int]
) -> int:
    if isinstance(expr, ir.AffineConstantExpr):
        return abs(ir.AffineConstantExpr(expr).value)
    if isinstance(expr, ir.AffineDimExpr):
        return dims[ir.AffineDimExpr(expr).position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[ir.AffineSymbolExpr(expr).position]
    if isinstance(expr, ir.AffineFloorDivExpr | ir.AffineCeilDivExpr):
        return 1
    binary = ir.AffineBinaryExpr(expr)
    left = _expression_divisor(binary.lhs, dims, symbols)
    right = _expression_divisor(binary.rhs, dims, symbols)
    if isinstance(expr, ir.AffineMulExpr):
        return left * right
    return math.gcd(left, right)  # of a sum, and of a remainder


_RULES: dict[str, Callable[[Any, _Assumed], int]] = {
    "affine.apply": _applied,
    "arith.andi": _masked,
    "arith.divui": _quotient,
    "arith.muli": _product,
    "arith.ori": _combined,
    "arith.select": _selected,
    "arith.shli": _shifted,
    "arith.xori": _combined,
    **dict.fromkeys(
        "arith.addi arith.subi arith.remsi arith.remui arith.minsi arith.minui "
        "arith.maxsi arith.maxui arith.index_cast arith.index_castui "
        "vector.broadcast".split(),
        _of_operands,
    ),
}

_REGROUPED = ("memref.collapse_shape", "memref.expand_shape")
_SAME_STRIDES = (
    "memref.assume_alignment",
    "memref.cast",
    "memref.memory_space_cast",
    "memref.subview",
)
_VIEW_RULES: dict[str, Callable[[Any], int]] = {
    **dict.fromkeys(
        (*_REGROUPED, "memref.cast", "memref.memory_space_cast"), _cast_alignment
    ),
    "alcop.rows": _rows_alignment,
    "alcop.take": _cast_alignment,
    "memref.assume_alignment": _assumed_alignment,
    "memref.reinterpret_cast": _reinterpreted_alignment,
    "memref.subview": _subview_alignment,
    "memref.view": _view_alignment,
}
