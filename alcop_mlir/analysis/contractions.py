"""Which linalg ops compute a matrix product C[m, n] += A[m, k] * B[k, n], and how.

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

INPUT_TYPES = ("f16",)
OUTPUT_TYPES = ("f16", "f32")
_BODY_TYPES = ("f16", "bf16", "f32")  # an f64 sum is more than f32 accumulates
# Ops with effects that touch no memory but that of their operands or results.
_OPERANDS_ONLY = frozenset(
    "memref.alloc memref.alloca memref.copy memref.dealloc memref.load "
    "memref.store".split()
)


@dataclass(frozen=True)
class Contraction:
    """A matrix product on static 2-D memrefs.

    lhs, rhs: loops that index each operand, in the operand's order: "mk"; "kn", "nk"
    swapped:  the op's first input is B and its second A
    """

    op: Any
    m: int
    n: int
    k: int
    lhs: str
    rhs: str
    swapped: bool
    lhs_type: str
    rhs_type: str
    out_type: str

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


def classify(op: Any) -> Contraction | Rejected:
    """The product that the linalg op computes, or why it is none that is handled."""
    try:
        _check_form(op)
        _check_body(op)
        maps, sizes = _loops(op)
        return _contraction(op, maps, sizes)
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


def init_copy(contraction: Contraction) -> Any:
    """The `memref.copy` that a product marked init = "copy" starts from."""
    return next(
        op
        for op in _ops_before(contraction.op)
        if op.name == "memref.copy" and op.operands[1] == contraction.out
    )


def _check_form(op: Any) -> None:
    """Two inputs and one output, all memrefs, at the function's top level."""
    if any(isinstance(v.type, ir.RankedTensorType) for v in op.operands):
        raise _NoProduct("works on tensors, expected memrefs: bufferize first")
    attributes = op.attributes
    segments = "operandSegmentSizes"
    if segments not in attributes or list(attributes[segments]) != [2, 1]:
        raise _NoProduct("not a matrix product: expected two inputs and one output")
    if "indexing_maps" not in attributes:
        raise _NoProduct("not a matrix product")
    for value in op.operands:
        if not isinstance(value.type, ir.MemRefType):
            raise _NoProduct(f"has an operand of type {value.type}, expected a memref")
        if not isinstance(value.type.element_type, ir.FloatType):
            raise _NoProduct(f"has {value.type.element_type} elements, expected f16")


def _check_body(op: Any) -> None:
    """The body yields its output argument plus the product of its inputs."""
    (block,) = op.regions[0].blocks
    narrowest = op.operands[2].type.element_type.width
    for inner in block.operations:
        _check_body_op(inner.operation, narrowest)
    left, right, out = block.arguments
    (yielded,) = list(block.operations)[-1].operation.operands
    total = _behind_casts(yielded)
    addends = _operands_of(total, "arith.addf")
    products = [v for v in map(_behind_casts, addends) if v != out]
    if len(addends) != 2 or len(products) != 1:
        raise _NoProduct("not a matrix product: the body does not add to its output")
    factors = [_behind_casts(v) for v in _operands_of(products[0], "arith.mulf")]
    if factors not in ([left, right], [right, left]):
        raise _NoProduct(
            "not a matrix product: the body does not multiply its two inputs"
        )


def _check_body_op(op: Any, narrowest: int) -> None:
    allowed = ("arith.addf", "arith.extf", "arith.mulf", "arith.truncf", "linalg.yield")
    if op.name not in allowed:
        raise _NoProduct(f"not a matrix product: the body holds '{op.name}'")
    for result in op.results:
        if str(result.type) not in _BODY_TYPES:
            raise _NoProduct(f"computes in {result.type}, sums are kept in f32")
        if op.name == "arith.truncf" and result.type.width < narrowest:
            raise _NoProduct(f"rounds to {result.type}, narrower than the output")


def _loops(op: Any) -> tuple[list[str], dict[str, int]]:
    """Per operand the letters of the loops that index it; the size of each loop."""
    maps = [
        _dimensions(attribute.value) for attribute in op.attributes["indexing_maps"]
    ]
    letters = _letters(maps)
    sizes: dict[str, int] = {}
    for dims, value in zip(maps, op.operands, strict=True):
        for dim, size in zip(dims, value.type.shape, strict=True):
            sizes[letters[dim]] = size
    return ["".join(letters[dim] for dim in dims) for dims in maps], sizes


def _dimensions(affine_map: Any) -> list[int]:
    """Loop numbers that a projected permutation picks."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in affine_map.results):
        raise _NoProduct(f"indexes an operand by {affine_map}, expected loops only")
    return [ir.AffineDimExpr(e).position for e in affine_map.results]


def _letters(maps: Sequence[Sequence[int]]) -> dict[int, str]:
    """Loop number to "m", "n" or "k"; refuses other sets of loops."""
    first, second, out = maps
    batch = set(first) & set(second) & set(out)
    if batch:
        raise _NoProduct(f"has {len(batch)} batch loop(s), expected none")
    reduced = (set(first) | set(second)) - set(out)
    if len(reduced) != 1:
        raise _NoProduct(f"reduces {len(reduced)} loops, expected one")
    ranks = [len(dims) for dims in maps]
    if ranks != [2, 2, 2] or any(len(set(dims)) != 2 for dims in maps):
        raise _NoProduct(
            f"has operands of rank {', '.join(map(str, ranks))}, expected matrices"
        )
    return {out[0]: "m", out[1]: "n", reduced.pop(): "k"}


def _contraction(op: Any, maps: list[str], sizes: dict[str, int]) -> Contraction:
    """The product, once its types, sizes and layouts are such as are handled."""
    swapped = "n" in maps[0]
    lhs, rhs = (1, 0) if swapped else (0, 1)
    # No batch loop, one reduced loop and three matrices leave only these.
    assert (set(maps[lhs]), set(maps[rhs])) == (set("mk"), set("kn"))
    for value in op.operands:
        _check_array(value)
    types = [str(value.type.element_type) for value in op.operands]
    for role, number, expected in (
        ("left operand", lhs, INPUT_TYPES),
        ("right operand", rhs, INPUT_TYPES),
        ("output", 2, OUTPUT_TYPES),
    ):
        if types[number] not in expected:
            raise _NoProduct(
                f"has {types[number]} in its {role}, expected {' or '.join(expected)}"
            )
    if maps[lhs] != "mk":
        raise _NoProduct("has a transposed left operand, expected rows along m")
    parent = op.parent.operation.name
    if parent != "func.func":
        raise _NoProduct(f"stands in '{parent}', expected at the function's top level")
    return Contraction(
        op=op,
        m=sizes["m"],
        n=sizes["n"],
        k=sizes["k"],
        lhs=maps[lhs],
        rhs=maps[rhs],
        swapped=swapped,
        lhs_type=types[lhs],
        rhs_type=types[rhs],
        out_type=types[2],
    )


def _check_array(value: Any) -> None:
    """Static, not empty, row-major without gaps, in global memory."""
    memref = value.type
    if not memref.has_static_shape:
        raise _NoProduct(f"has dynamic sizes in {memref}, expected static ones")
    if 0 in memref.shape:
        raise _NoProduct(f"has an empty operand {memref}")
    contiguous = ir.MemRefType.get(memref.shape, memref.element_type)
    if memref.get_strides_and_offset() != contiguous.get_strides_and_offset():
        raise _NoProduct(f"has the layout of {memref}, expected rows without gaps")
    if memref.memory_space is not None:
        raise _NoProduct(f"has {memref} in a memory space of its own, expected none")


def _init_from_copy(copy: Any, passed: list[Any]) -> Init:
    source, target = copy.operands
    contiguous = ir.MemRefType.get(source.type.shape, source.type.element_type)
    disturbed = any(_touches(op, source) for op in passed)
    if disturbed or source.type != contiguous or root(source) == root(target):
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
    while _defined_by(value) in ("arith.extf", "arith.truncf"):
        value = value.owner.operation.operands[0]
    return value


def _operands_of(value: Any, name: str) -> list[Any]:
    """Operands of the op called `name` that defines `value`; none if another does."""
    return list(value.owner.operation.operands) if _defined_by(value) == name else []


def _defined_by(value: Any) -> str | None:
    owner = defining_op(value)
    return None if owner is None else owner.operation.name


def _is_zero(value: Any) -> bool:
    if _defined_by(value) != "arith.constant":
        return False
    attribute = value.owner.operation.attributes["value"]
    return isinstance(attribute, ir.FloatAttr) and attribute.value == 0.0
