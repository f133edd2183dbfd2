"""Which linalg ops compute a matrix product C[m, n] += A[m, k] * B[k, n], and how.

Products may come in batches, C[b, m, n]; one of A and B may be the same for all, and C
the sum of all. A vector times a matrix is a product with one row, and so is a matrix
times a vector: C[n] += A[k] * B[n, k]. Sizes may be anything, 0 included.

`classify` looks at one op and answers with a `Contraction` or a `Rejected`; the loops
are told apart by where they occur, so their order in the op does not matter.
`find_init` looks above the op for what fills C before it. Neither changes IR.

The body must multiply its two inputs and add to its output. Casts may stand anywhere as
long as none is narrower than the output: products are accumulated in f32 whatever type
the body adds in, and rounded once, which errs in the safe direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.loops import defining_op
from alcop_mlir.analysis.memory import may_alias, root
from alcop_mlir.analysis.slices import is_pure
from alcop_mlir.bindings import ir

_FLOATS = ("f16", "bf16", "f32")
# Types of the output for each type of both inputs. f32 is rounded to tf32, on request.
OUTPUT_TYPES = {"f16": _FLOATS, "bf16": _FLOATS, "f32": _FLOATS, "i8": ("i32",)}
_BODY_TYPES = (*_FLOATS, "i32")  # an f64 sum is more than f32 accumulates
_CASTS = ("arith.extf", "arith.extsi", "arith.truncf")
# Ops with effects that touch no memory but that of their operands or results.
_OPERANDS_ONLY = frozenset(
    "memref.alloc memref.alloca memref.copy memref.dealloc memref.load "
    "memref.store".split()
)


@dataclass(frozen=True)
class Contraction:
    """A matrix product on memrefs.

    m, n, k, batch: sizes; None where they are known at run time only
    lhs, rhs, out:  loops that index each operand, in the operand's order: "mk"; "kn",
                    "nk"; "mn"; with a "b" where it has a batch, without "m" a vector
    swapped:        the op's first input is B and its second A
    """

    op: Any
    m: int | None
    n: int | None
    k: int | None
    batch: int | None
    lhs: str
    rhs: str
    out_loops: str
    swapped: bool
    lhs_type: str
    rhs_type: str
    out_type: str

    @property
    def precision(self) -> str | None:
        """What the inputs are rounded to: "tf32", or None."""
        return "tf32" if self.lhs_type == "f32" else None

    @property
    def element_bytes(self) -> int:
        """Of an element of the inputs."""
        return int(self.lhs_type.lstrip("bfi")) // 8

    @property
    def out(self) -> Any:
        """The memref that the product is added to."""
        return self.op.operation.operands[2]


@dataclass(frozen=True)
class Rejected:
    """Why `op` is not a product that the passes handle."""

    op: Any
    reason: str


@dataclass(frozen=True)
class Init:
    """What C holds before the product.

    kind:   "zero" (`writer` fills it with zero), "copy" (`writer` copies another array
            into it) or "read" (what the caller left there)
    writer: the op that writes it, None for "read"
    """

    kind: str
    writer: Any


class _NoProduct(Exception):
    """Carries the reason from the place that found it to `classify`."""


def structured_ops(root: Any) -> Iterator[Any]:
    """Linalg ops in `root`, without those inside another linalg op."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if not op.name.startswith("linalg."):
            return ir.WalkResult.ADVANCE
        found.append(op)
        return ir.WalkResult.SKIP

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(found)


def classify(op: Any, allow_tf32: bool = False) -> Contraction | Rejected:
    """The product that the linalg op computes, or why it is none that is handled.

    allow_tf32: whether f32 inputs may be rounded to tf32
    """
    try:
        _check_form(op)
        _check_body(op)
        maps, sizes = _loops(op)
        return _contraction(op, maps, sizes, allow_tf32)
    except _NoProduct as no:
        return Rejected(op, str(no))


def find_init(contraction: Contraction) -> Init:
    """What fills C: the nearest op above in the same block that writes it.

    Ops in between must be known to leave C alone, and, for a copy, not to write its
    source: else the init is "read" and everything stays where it is.
    """
    passed: list[Any] = []
    for op in _ops_before(contraction.op):
        if op.name == "linalg.fill" and op.operands[1] == contraction.out:
            zero = _is_zero(op.operands[0])
            return Init("zero", op) if zero else Init("read", None)
        if op.name == "memref.copy" and op.operands[1] == contraction.out:
            return _init_from_copy(op, passed)
        if not _reaches_only_operands(op) or _touches(op, contraction.out):
            break
        passed.append(op)
    return Init("read", None)


def _check_form(op: Any) -> None:
    """Two inputs and one output, all memrefs, at the function's top level."""
    if any(isinstance(v.type, ir.RankedTensorType) for v in op.operands):
        raise _NoProduct("works on tensors, expected memrefs: bufferize first")
    attributes = op.attributes
    segments = "operandSegmentSizes"
    if segments not in attributes or list(attributes[segments]) != [2, 1]:
        raise _NoProduct("not a matrix product: expected two inputs and one output")
    if indexing_maps(op) is None:
        raise _NoProduct("not a matrix product")
    for value in op.operands:
        if not isinstance(value.type, ir.MemRefType):
            raise _NoProduct(f"has an operand of type {value.type}, expected a memref")
        if not isinstance(value.type.element_type, ir.FloatType | ir.IntegerType):
            raise _NoProduct(
                f"has {value.type.element_type} elements, expected "
                f"{', '.join(OUTPUT_TYPES)}"
            )


def _check_body(op: Any) -> None:
    """The body yields its output argument plus the product of its inputs."""
    (block,) = op.regions[0].blocks
    narrowest = op.operands[2].type.element_type.width
    for inner in block.operations:
        _check_body_op(inner.operation, narrowest)
    left, right, out = block.arguments
    (yielded,) = list(block.operations)[-1].operation.operands
    total = _behind_casts(yielded)
    addends = _operands_of(total, "arith.addf", "arith.addi")
    products = [v for v in map(_behind_casts, addends) if v != out]
    if len(addends) != 2 or len(products) != 1:
        raise _NoProduct("not a matrix product: the body does not add to its output")
    multiplied = _operands_of(products[0], "arith.mulf", "arith.muli")
    factors = [_behind_casts(v) for v in multiplied]
    if factors not in ([left, right], [right, left]):
        raise _NoProduct(
            "not a matrix product: the body does not multiply its two inputs"
        )


def _check_body_op(op: Any, narrowest: int) -> None:
    sums = ("arith.addf", "arith.addi", "arith.mulf", "arith.muli", "linalg.yield")
    if op.name not in (*_CASTS, *sums):
        raise _NoProduct(f"not a matrix product: the body holds '{op.name}'")
    for result in op.results:
        if str(result.type) not in _BODY_TYPES:
            raise _NoProduct(
                f"computes in {result.type}, sums are kept in f32, or i32 of integers"
            )
        if op.name == "arith.truncf" and result.type.width < narrowest:
            raise _NoProduct(f"rounds to {result.type}, narrower than the output")


def indexing_maps(op: Any) -> list[Any] | None:
    """The affine maps of a linalg op's operands; None where they are not told.

    MLIR keeps those of ops that have only one choice in an attribute of its own.
    """
    for name in ("indexing_maps", "linalg.memoized_indexing_maps"):
        if name in op.attributes:
            return [attribute.value for attribute in op.attributes[name]]
    return None


def loop_letters(op: Any) -> list[str] | None:
    """Per operand the letters of the loops that index it; None for no product.

    By the loops alone, whatever the op computes.
    """
    maps = indexing_maps(op) if op.name.startswith("linalg.") else None
    if maps is None or len(maps) != 3:
        return None
    try:
        dimensions = [_dimensions(one) for one in maps]
        letters = _letters(dimensions)
    except _NoProduct:
        return None
    return ["".join(letters[dim] for dim in dims) for dims in dimensions]


def _loops(op: Any) -> tuple[list[str], dict[str, int | None]]:
    """Per operand the letters of the loops that index it; the size of each loop."""
    maps = [_dimensions(one) for one in indexing_maps(op) or ()]
    letters = _letters(maps)
    sizes: dict[str, int | None] = dict.fromkeys("bmnk", 1)
    sizes |= dict.fromkeys(letters.values())
    for dims, value in zip(maps, op.operands, strict=True):
        for number, dim in enumerate(dims):
            if not value.type.is_dynamic_dim(number):
                sizes[letters[dim]] = value.type.shape[number]
    return ["".join(letters[dim] for dim in dims) for dims in maps], sizes


def _dimensions(affine_map: Any) -> list[int]:
    """Loop numbers that a projected permutation picks."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in affine_map.results):
        raise _NoProduct(f"indexes an operand by {affine_map}, expected loops only")
    return [ir.AffineDimExpr(e).position for e in affine_map.results]


def _letters(maps: Sequence[Sequence[int]]) -> dict[int, str]:
    """Loop number to "b", "m", "n" or "k"; refuses other sets of loops.

    Rows and columns are told by the output's order: rows first. Of two loops that are
    summed over, the one further out in the first input is the batch.
    """
    first, second, out = maps
    if any(len(set(dims)) != len(dims) for dims in maps):
        raise _NoProduct("uses a loop twice in an operand, expected matrices")
    batch = [dim for dim in out if dim in first and dim in second]
    if len(batch) > 1:
        raise _NoProduct(f"has {len(batch)} batch loops, expected one at most")
    if len(out) == 3 and not batch:  # one input is the same for the whole batch
        batch = [out[0]]
    reduced = [dim for dim in first if dim in second and dim not in out]
    if {*out} - {*first, *second}:
        raise _NoProduct("has an output loop that no input has")
    if {*first, *second} - {*out, *reduced}:
        raise _NoProduct("sums over a loop of one input alone, expected of both")
    if len(reduced) == 2 and not batch:
        batch = reduced[:1]
        reduced = reduced[1:]
    if len(reduced) != 1:
        raise _NoProduct(f"reduces {len(reduced)} loops, expected one")
    rows_and_columns = [dim for dim in out if dim not in batch]
    if not 1 <= len(rows_and_columns) <= 2:
        ranks = ", ".join(str(len(dims)) for dims in maps)
        raise _NoProduct(f"has operands of rank {ranks}, expected matrices")
    names = "mn" if len(rows_and_columns) == 2 else "n"
    letters = dict(zip(rows_and_columns, names, strict=True))
    return letters | dict.fromkeys(batch, "b") | {reduced[0]: "k"}


def _contraction(
    op: Any, maps: list[str], sizes: dict[str, int | None], allow_tf32: bool
) -> Contraction:
    """The product, once its types, sizes and layouts are such as are handled."""
    swapped = "n" in maps[0]
    lhs, rhs = (1, 0) if swapped else (0, 1)
    if "n" in maps[lhs] or "m" in maps[rhs]:
        raise _NoProduct("has a row or column loop in both inputs, expected in one")
    for loops, value in zip(maps, op.operands, strict=True):
        _check_array(value)
        if loops.endswith("b"):
            raise _NoProduct("has the batch innermost, expected further out")
        if "m" not in loops and loops in ("k", "bk", "n", "bn"):
            _check_vector(value)
    types = [str(value.type.element_type) for value in op.operands]
    _check_types(types[lhs], types[rhs], types[2], allow_tf32)
    parent = op.parent.operation.name
    if parent != "func.func":
        raise _NoProduct(f"stands in '{parent}', expected at the function's top level")
    return Contraction(
        op=op,
        m=sizes["m"],
        n=sizes["n"],
        k=sizes["k"],
        batch=sizes["b"],
        lhs=maps[lhs],
        rhs=maps[rhs],
        out_loops=maps[2],
        swapped=swapped,
        lhs_type=types[lhs],
        rhs_type=types[rhs],
        out_type=types[2],
    )


def _check_types(lhs: str, rhs: str, out: str, allow_tf32: bool) -> None:
    if lhs != rhs:
        raise _NoProduct(f"multiplies {lhs} by {rhs}, expected inputs of one type")
    if lhs not in OUTPUT_TYPES:
        raise _NoProduct(f"has {lhs} inputs, expected {', '.join(OUTPUT_TYPES)}")
    if lhs == "f32" and not allow_tf32:
        raise _NoProduct(
            "has f32 inputs, which tensor cores round to tf32 (10 bits of mantissa): "
            "done with the option 'allow-tf32' only"
        )
    if out not in OUTPUT_TYPES[lhs]:
        raise _NoProduct(
            f"has {lhs} inputs and {out} output, expected output of "
            f"{' or '.join(OUTPUT_TYPES[lhs])}"
        )


def _check_array(value: Any) -> None:
    """Rows without gaps, one after the other at a known distance, in global memory."""
    memref = value.type
    strides, offset = memref.get_strides_and_offset()
    dynamic = memref.is_dynamic_stride_or_offset
    if strides[-1] != 1 or (
        any(map(dynamic, strides)) and not _follows_its_shape(memref)
    ):
        raise _NoProduct(
            f"has the layout of {memref}, expected rows without gaps, a constant "
            "number of elements apart"
        )
    if root(value) == value and offset != 0:
        raise _NoProduct(f"has an array {memref}, expected one without an offset")
    if memref.memory_space is not None:
        raise _NoProduct(f"has {memref} in a memory space of its own, expected none")


def _check_vector(value: Any) -> None:
    if not _follows_its_shape(value.type):
        raise _NoProduct(f"has a vector {value.type}, expected one without an offset")


def _follows_its_shape(kind: Any) -> bool:
    """Whether rows follow each other without gaps, from the first element on."""
    return kind == ir.MemRefType.get(kind.shape, kind.element_type)


def _init_from_copy(copy: Any, passed: list[Any]) -> Init:
    source, target = copy.operands
    disturbed = any(_touches(op, source) for op in passed)
    if disturbed or not _follows_its_shape(source.type) or root(source) == root(target):
        return Init("read", None)
    return Init("copy", copy)


def _reaches_only_operands(op: Any) -> bool:
    """Whether `op` is known to touch no memory but that of its own operands."""
    if op.name.startswith("linalg."):
        return all(
            is_pure(inner) or inner.operation.name.startswith("linalg.")
            for block in op.regions[0].blocks
            for inner in block.operations
        )
    return op.name in _OPERANDS_ONLY or is_pure(op)


def _touches(op: Any, array: Any) -> bool:
    """Whether `op` may read or write `array`; a view does neither."""
    return not is_pure(op) and any(
        may_alias(root(value), root(array), noalias_arguments=False)
        for value in op.operands
        if isinstance(value.type, ir.MemRefType)
    )


def _ops_before(op: Any) -> Iterator[Any]:
    """Ops above `op` in its block, the nearest first."""
    above = []
    for other in op.block.operations:
        if other.operation == op.operation:
            break
        above.append(other.operation)
    return reversed(above)


def _behind_casts(value: Any) -> Any:
    while _defined_by(value) in _CASTS:
        value = value.owner.operation.operands[0]
    return value


def _operands_of(value: Any, *names: str) -> list[Any]:
    """Operands of the op called so that defines `value`; none if another does."""
    return list(value.owner.operation.operands) if _defined_by(value) in names else []


def _defined_by(value: Any) -> str | None:
    owner = defining_op(value)
    return None if owner is None else owner.operation.name


def _is_zero(value: Any) -> bool:
    if _defined_by(value) != "arith.constant":
        return False
    attribute = value.owner.operation.attributes["value"]
    return isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and (
        attribute.value == 0
    )
