"""IR builders that several passes use; all build at the current insertion point.

Arithmetic on indices takes values and ints: an int becomes a constant, and where it is
neutral no op is built. Values are not negative, so that divisions are unsigned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.extents import extent
from alcop_mlir.bindings import (
    affine,
    arith,
    cf,
    gpu,
    ir,
    linalg,
    llvm,
    memref,
    scf,
    ub,
    vector,
)
from alcop_mlir.target import WARP_SIZE

SIZES_DIFFER = "sizes of memrefs do not fit together"
WORKGROUP = "#gpu.address_space<workgroup>"
_WORD = 32  # bits that lanes exchange at once

# -- constants and types ---------------------------------------------------------------


def index(value: int) -> Any:
    """An index constant."""
    return arith.constant(ir.IndexType.get(), value)


def value(size: ir.Value | int) -> Any:
    """`size` as an index value: a constant for an int, else itself."""
    return index(size) if isinstance(size, int) else size


def integer(bits: int) -> Any:
    """The integer type of so many bits, without a sign."""
    return ir.IntegerType.get_signless(bits)


def i32(value: int) -> Any:
    """A constant of 32 bits."""
    return arith.constant(integer(32), value)


def true() -> Any:
    """The constant true, of one bit."""
    return arith.constant(integer(1), 1)


def false() -> Any:
    """The constant false, of one bit."""
    return arith.constant(integer(1), 0)


def numbers(values: Iterable[int]) -> Any:
    """An attribute of numbers, of 32 bits each."""
    made: Any = ir  # upstream's stubs lack the class
    return made.DenseI32ArrayAttr.get(list(values))


def splat(kind: ir.Type, element: ir.Attribute) -> Any:
    """A constant vector of type `kind`, of equal elements."""
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, element))


def zero(kind: ir.Type) -> Any:
    """Zero of a type of integers, floats, or vectors of these."""
    is_vector = isinstance(kind, ir.VectorType)
    element = kind.element_type if is_vector else kind
    if isinstance(element, ir.FloatType):
        number = ir.FloatAttr.get(element, 0.0)
    else:
        number = ir.IntegerAttr.get(element, 0)
    return splat(kind, number) if is_vector else arith.constant(kind, number)


def nothing(kinds: Sequence[ir.Type]) -> list[Any]:
    """Values that stand where there are none, and which nothing uses: zeros.

    Poison is for types that have none only. Upstream's canonicalize makes one condition
    of two by `arith.andi`: poison where the first is false, and LLVM may then do
    anything.
    """
    return [zero(kind) if _has_zero(kind) else ub.poison(kind) for kind in kinds]


def _has_zero(kind: ir.Type) -> bool:
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return isinstance(element, (ir.IntegerType, ir.IndexType, ir.FloatType))


def memref_like(
    kind: ir.Type,
    shape: Sequence[int] | None = None,
    element: ir.Type | None = None,
    layout: ir.Attribute | None = None,
) -> Any:
    """The memref type `kind` with these changes, contiguous unless it has a layout."""
    return ir.MemRefType.get(
        kind.shape if shape is None else shape,
        kind.element_type if element is None else element,
        layout=layout,
        memory_space=kind.memory_space,
    )


def workgroup_memref(shape: Sequence[int], element: ir.Type) -> Any:
    """A memref type in workgroup memory."""
    space = ir.Attribute.parse(WORKGROUP)
    return ir.MemRefType.get(shape, element, memory_space=space)


# -- arithmetic on indices -------------------------------------------------------------


def add(left: ir.Value | int, right: ir.Value | int) -> Any:
    """`left + right`."""
    return arith.addi(value(left), value(right))


def sub(left: ir.Value | int, right: ir.Value | int) -> Any:
    """`left - right`."""
    return arith.subi(value(left), value(right))


def plus(value: ir.Value, addend: int) -> Any:
    """`value + addend` by affine.apply: upstream merges it with the offsets of views.

    Constants are then added last, so that LLVM puts them into the instructions'
    addresses.
    """
    if not addend:
        return value
    total = ir.AffineExpr.get_symbol(0) + addend
    return affine.apply(ir.AffineMap.get(0, 1, [total]), [value])


def mul(left: ir.Value | int, right: ir.Value | int) -> Any:
    """`left * right`."""
    return left if _is_one(right) else arith.muli(value(left), value(right))


def div(left: ir.Value | int, right: ir.Value | int) -> Any:
    """`left / right`, rounded down."""
    return left if _is_one(right) else arith.divui(value(left), value(right))


def rem(left: ir.Value | int, right: ir.Value | int) -> Any:
    """The remainder of `left / right`."""
    return index(0) if _is_one(right) else arith.remui(value(left), value(right))


def _is_one(number: ir.Value | int) -> bool:
    return isinstance(number, int) and number == 1


def ceil_div(left: ir.Value, right: int) -> Any:
    """`left / right`, rounded up."""
    return arith.ceildivui(left, index(right))


def least(left: ir.Value | int, right: ir.Value | int) -> Any:
    """The smaller of the two, signed."""
    return arith.minsi(value(left), value(right))


def most(left: ir.Value | int, right: ir.Value | int) -> Any:
    """The larger of the two, signed."""
    return arith.maxsi(value(left), value(right))


def less(left: ir.Value | int, right: ir.Value | int) -> Any:
    """`left < right`, signed: loop bounds may be negative."""
    return arith.cmpi(arith.CmpIPredicate.slt, value(left), value(right))


def select(condition: ir.Value, one: ir.Value | int, other: ir.Value | int) -> Any:
    """`one` where the condition holds, else `other`."""
    return arith.select(condition, value(one), value(other))


def both(one: ir.Value | None, other: ir.Value) -> Any:
    """Whether both conditions hold; None is one that always does."""
    return other if one is None else arith.andi(one, other)


def coordinates(number: ir.Value, sizes: Sequence[ir.Value | int]) -> list[Any]:
    """The indices of element `number` of a space of these sizes, in row-major order."""
    found = []
    for size in reversed(sizes[1:]):
        found.append(rem(number, size))
        number = div(number, size)
    return [*([number] if sizes else []), *reversed(found)]


def cyclic_next(slot: ir.Value, slots: int) -> Any:
    """The slot after `slot` of `slots`, by compare and select: no division."""
    following = add(slot, 1)
    wraps = arith.cmpi(arith.CmpIPredicate.eq, following, index(slots))
    return select(wraps, 0, following)


def opaque(value: ir.Value) -> Any:
    """An index, as a value of which LLVM does not know how it was made.

    By a move in inline assembly, which ptxas removes: LLVM neither computes it again
    where it is used, nor keeps other values to compute it of.
    """
    moved = opaque_word(arith.index_cast(integer(64), value))
    return arith.index_cast(ir.IndexType.get(), moved)


def opaque_word(value: ir.Value) -> Any:
    """The same of 32 or 64 bits."""
    bits = value.type.width
    register = {32: "r", 64: "l"}[bits]
    move, kinds = f"mov.b{bits} $0, $1;", f"={register},{register}"
    return llvm.inline_asm(value.type, [value], move, kinds)


def unrealized(kind: ir.Type, value: ir.Value) -> Any:
    """A value as another type, which a later conversion makes the same."""
    cast = "builtin.unrealized_conversion_cast"
    return ir.Operation.create(cast, [kind], [value]).results[0]


# -- kernels ---------------------------------------------------------------------------


def launch(blocks: Sequence[ir.Value], threads: int, cluster: int = 1) -> Any:
    """A `gpu.launch` of so many threads along x, with an empty body.

    cluster: blocks along x of a cluster; its body then has the numbers of the cluster
        and of its sizes as further arguments
    """
    ones = [index(1), index(1)]
    if cluster == 1:
        return gpu.LaunchOp(tuple(blocks), (index(threads), *ones))
    # The builder of the bindings has no clusters.
    operands = [*blocks, index(threads), *ones, index(cluster), *ones]
    # Besides tokens before them, bytes of shared memory and an async object behind.
    segments = numbers([0, *[1] * len(operands), 0, 0])
    made = ir.Operation.create(
        "gpu.launch",
        operands=operands,
        attributes={"operandSegmentSizes": segments},
        regions=1,
    )
    kinds = [ir.IndexType.get()] * 2 * len(operands)
    made.regions[0].blocks.append(*kinds, arg_locs=[made.location] * len(kinds))
    return made.opview


# -- memory and lanes ------------------------------------------------------------------


def dim(buffer: ir.Value, number: int) -> Any:
    """The size of a dimension, as a `memref.dim`."""
    return memref.dim(buffer, index(number))


def size(buffer: ir.Value, number: int) -> Any:
    """The size of a dimension: a value that exists already where there is one."""
    known = extent(buffer, number)
    return dim(buffer, number) if known is None else value(known)


def dynamic_sizes(buffer: ir.Value) -> list[Any]:
    """The sizes that the type of `buffer` leaves open."""
    kind = buffer.type
    return [dim(buffer, n) for n in range(kind.rank) if kind.is_dynamic_dim(n)]


def alloc(kind: ir.Type, sizes: Sequence[ir.Value] = ()) -> Any:
    """An allocation; `sizes` are those that its type leaves open."""
    return memref.alloc(kind, sizes, [])


def copied(buffer: ir.Value) -> Any:
    """A new buffer with the contents of `buffer`."""
    kind = buffer.type
    plain = ir.MemRefType.get(kind.shape, kind.element_type)
    copy = alloc(plain, dynamic_sizes(buffer))
    memref.copy(buffer, copy)
    return copy


def reinterpreted(
    kind: ir.Type,
    buffer: ir.Value,
    sizes: Sequence[ir.Value] = (),
    strides: Sequence[ir.Value] = (),
) -> Any:
    """All of `buffer` as `kind`; sizes and strides are those that it leaves open."""
    static_strides, offset = kind.get_strides_and_offset()
    return memref.reinterpret_cast(
        kind,
        buffer,
        offsets=[],
        sizes=sizes,
        strides=strides,
        static_offsets=[offset],
        static_sizes=kind.shape,
        static_strides=static_strides,
    )


def dense_part(buffer: ir.Value, shape: Sequence[int], offset: Any) -> Any:
    """Elements of a buffer that follow each other, from an offset on, as a memref."""
    strides = [math.prod(shape[number + 1 :]) for number in range(len(shape))]
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(dynamic, strides)
    return memref.reinterpret_cast(
        memref_like(buffer.type, shape, layout=layout),
        buffer,
        offsets=[value(offset)],
        sizes=[],
        strides=[],
        static_offsets=[dynamic],
        static_sizes=list(shape),
        static_strides=strides,
    )


def load(source: ir.Value, at: Sequence[ir.Value], count: int = 1) -> Any:
    """An element, or a vector of `count` neighbours, aligned to its size."""
    if count == 1:
        return memref.load(source, at)
    kind = ir.VectorType.get([count], source.type.element_type)
    return vector.load(kind, source, at, alignment=count * element_bytes(kind))


def store(value: ir.Value, target: ir.Value, at: Sequence[ir.Value]) -> None:
    """Store an element, or a vector of neighbours, aligned to its size."""
    kind = value.type
    if not isinstance(kind, ir.VectorType):
        memref.store(value, target, at)
        return
    alignment = kind.shape[0] * element_bytes(kind)
    vector.store(value, target, at, alignment=alignment)


def vector_of(elements: Sequence[ir.Value]) -> Any:
    """The vector of these elements."""
    kind = ir.VectorType.get([len(elements)], elements[0].type)
    return vector.from_elements(kind, elements)


def each_element(value: ir.Value, made: Callable[[ir.Value], Any]) -> Any:
    """What is `made` of a number, or of each element of a vector; of the same type."""
    kind = value.type
    if not isinstance(kind, ir.VectorType):
        return made(value)
    count = math.prod(kind.shape)
    flat = vector.shape_cast(ir.VectorType.get([count], kind.element_type), value)
    elements = [made(vector.extract(flat, [], [n])) for n in range(count)]
    return vector.shape_cast(kind, vector.from_elements(flat.type, elements))


def warp_number(thread: ir.Value) -> Any:
    """The number of a thread's warp, i32, in a form that ptxas sees to be one of all
    lanes: what is computed of it is in registers that a warp has once.

    By a shuffle from the first lane: all lanes have to be there.
    """
    word = arith.index_castui(integer(32), div(thread, WARP_SIZE))
    return gpu.shuffle(word, i32(0), i32(WARP_SIZE), gpu.ShuffleMode.IDX)[0]


def shuffle(value: ir.Value, distance: int) -> Any:
    """The value of the lane whose number differs in the bits of `distance`."""
    kind, mode = value.type, gpu.ShuffleMode.XOR
    if kind.width < _WORD:
        return from_word(kind, shuffle(to_word(value), distance))
    return gpu.shuffle(value, i32(distance), i32(WARP_SIZE), mode)[0]


def to_word(value: ir.Value) -> Any:
    """A float or an integer of less than 32 bits as 32 bits."""
    small = integer(value.type.width)
    bits = value if value.type == small else arith.bitcast(small, value)
    return arith.extui(integer(_WORD), bits)


def from_word(kind: ir.Type, word: ir.Value) -> Any:
    """The value of type `kind` that `to_word` made 32 bits of."""
    small = integer(kind.width)
    bits = arith.trunci(small, word)
    return bits if kind == small else arith.bitcast(kind, bits)


def assert_at_most(one: ir.Value | int, other: ir.Value | int) -> None:
    """Assert on the host, of sizes, that `one <= other`: the launcher checks it."""
    holds = arith.cmpi(arith.CmpIPredicate.sle, value(one), value(other))
    cf.AssertOp(holds, SIZES_DIFFER)


def assert_equal(one: ir.Value | int, other: ir.Value | int) -> None:
    """Assert on the host that two sizes are the same: the launcher checks it."""
    holds = arith.cmpi(arith.CmpIPredicate.eq, value(one), value(other))
    cf.AssertOp(holds, SIZES_DIFFER)


# -- linalg ----------------------------------------------------------------------------


def loop_map(rank: int, loops: Iterable[int | None]) -> Any:
    """The map from `rank` loops to these; to the index 0 for None."""
    results = [
        ir.AffineExpr.get_constant(0) if loop is None else ir.AffineExpr.get_dim(loop)
        for loop in loops
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))


def generic(
    inputs: Sequence[ir.Value],
    output: ir.Value,
    maps: Sequence[Any],
    block: ir.Block | None = None,
) -> Any:
    """A linalg.generic with one output, a memref or tensor, whose body has no op yet.

    maps:  of the inputs and the output, which tell that loops are reductions
    block: of another op, to be the body: it is moved, and gets the arguments besides
           those that it has
    """
    results = maps[-1].value.results
    kept = {one.position for one in results if isinstance(one, ir.AffineDimExpr)}
    kinds = [
        "parallel" if loop in kept else "reduction"
        for loop in range(maps[-1].value.n_dims)
    ]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    made = [output.type] if isinstance(output.type, ir.RankedTensorType) else []
    op = linalg.GenericOp(
        made, inputs, [output], ir.ArrayAttr.get(maps), ir.ArrayAttr.get(iterators)
    )
    types = [getattr(v.type, "element_type", v.type) for v in (*inputs, output)]
    here = ir.Location.current
    if block is None:
        op.regions[0].blocks.append(*types, arg_locs=[here] * len(types))
    else:
        block.append_to(op.regions[0])
        for kind in types:
            block.add_argument(kind, here)
    return op.operation


# -- control flow --------------------------------------------------------------------


def for_loop(
    bounds: Iterable[ir.Value | int],
    init_args: Sequence[Any],
    body: Callable[[Any, list[Any]], Iterable[Any] | None],
) -> Any:
    """An `scf.for`; `body(induction, carried)` builds it and returns what it yields."""
    loop = scf.ForOp(*map(value, bounds), list(init_args))
    with ir.InsertionPoint(loop.body):
        yielded = body(loop.induction_variable, list(loop.inner_iter_args))
        scf.YieldOp(list(yielded or ()))
    return loop


def branch(
    condition: ir.Value,
    then: Callable[[], Iterable[Any] | None],
    otherwise: Callable[[], Iterable[Any] | None] | None = None,
    kinds: Sequence[ir.Type] = (),
) -> list[Any]:
    """The results of an `scf.if`; its parts build it and return what they yield."""
    choice = scf.IfOp(condition, list(kinds), has_else=otherwise is not None)
    for region, make in zip(choice.regions, (then, otherwise), strict=True):
        if make is not None:
            with ir.InsertionPoint(region.blocks[0]):
                scf.YieldOp(list(make() or ()))
    return list(choice.results)
