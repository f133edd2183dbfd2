"""Which linalg ops are contractions C[m, n] += A[m, k] * B[k, n], and how.

A contraction may be batched, C[b, m, n]; one of A and B may be the same for the whole
batch, and C may be reduced over it. A vector times a matrix is a contraction with one
row, and so is a matrix times a vector: C[n] += A[k] * B[n, k]. All sizes are allowed,
also 0.

`classify` looks at one op and returns a `Contraction` or a `Rejected`. Loops are
identified by the operands that they index, so their order in the op does not matter.
What fills C before is found by `accumulator_init`.

The body multiplies an element of A by one of B, or the results of operand transforms of
them, see `operand_transforms`, and adds to its output. Operand transforms may read
scalars, and memrefs with one value for each row of A, or for each column of B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    OperandTransform,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.zero_fill import LONGEST_STEP_BYTES, why_fill_disturbs
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.element_types import (
    ELEMENT_TYPES,
    OUTPUT_TYPES,
    ROUNDED_INPUTS,
    STORED_TYPES,
)


@dataclass(frozen=True)
class Contraction:
    """A contraction on memrefs.

    m, n, k, batch: sizes; None where they are known at run time only
    lhs, rhs, out_loops: loops that index each operand, in the operand's order: "mk";
                    "kn", "nk"; "mn"; with a "b" if batched, without "m" for a vector
    swapped:        the op's first operand is B and its second A
    lhs_type, rhs_type: the types that are multiplied
    stored:         bytes of an element of A and of B in memory, if one of them has an
                    operand transform; else None
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
    stored: tuple[int, int] | None = None

    @property
    def precision(self) -> str | None:
        """What the inputs are rounded to: "tf32", or None."""
        return ROUNDED_INPUTS.get(self.lhs_type)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of A or B, as it is multiplied."""
        return ELEMENT_TYPES[self.lhs_type].bytes

    @property
    def is_computed(self) -> bool:
        """Whether A or B has an operand transform."""
        return self.stored is not None

    @property
    def out(self) -> Any:
        """The memref that is accumulated into."""
        return list(self.op.operation.operands)[-1]


def structured_ops(root: Any) -> list[Any]:
    """Linalg ops in `root`, without those inside another linalg op."""
    outside = walk(root, enter=lambda op: not op.name.startswith("linalg."))
    return [op for op in outside if op.name.startswith("linalg.")]


def classify(op: Any, allow_tf32: bool = False) -> Contraction | Rejected:
    """The contraction that the linalg op is, or why it is not a supported one.

    allow_tf32: whether f32 inputs may be rounded to tf32
    """
    try:
        _check_form(op)
        transforms = find_operand_transforms(op)
        numbers = [
            *(transform.operand for transform in transforms),
            len(op.operands) - 1,
        ]
        maps, sizes = _loops(op, numbers)
        _check_others(op, transforms, numbers)
        return _contraction(op, transforms, maps, sizes, allow_tf32)
    except NoContraction as no:
        return Rejected(op, str(no))


def _check_form(op: Any) -> None:
    """Two inputs, perhaps others of lower rank, and one output, all memrefs."""
    if any(isinstance(v.type, ir.RankedTensorType) for v in op.operands):
        raise NoContraction("works on tensors, expected memrefs: bufferize first")
    attributes = op.attributes
    segments = "operandSegmentSizes"
    if segments not in attributes or not _has_two_inputs(op, attributes[segments]):
        raise NoContraction("not a contraction: expected two inputs and one output")
    if indexing_maps(op) is None:
        raise NoContraction("not a contraction: expected an op with indexing maps")
    for value in op.operands:
        if not isinstance(value.type, ir.MemRefType):
            raise NoContraction(
                f"has an operand of type {value.type}, expected a memref"
            )
        if not isinstance(value.type.element_type, ir.FloatType | ir.IntegerType):
            raise NoContraction(
                f"has {value.type.element_type} elements, expected "
                f"{', '.join(OUTPUT_TYPES)}"
            )


def _has_two_inputs(op: Any, segments: Any) -> bool:
    """Whether there are two inputs and one output; others of rank 1 at most."""
    inputs, outputs = list(segments)
    others = list(op.operands)[2:inputs]
    return inputs >= 2 and outputs == 1 and all(_is_small(v.type) for v in others)


def _is_small(kind: Any) -> bool:
    return isinstance(kind, ir.MemRefType) and kind.rank <= 1


def _check_others(
    op: Any, transforms: tuple[OperandTransform, OperandTransform], numbers: list[int]
) -> None:
    """Other inputs of operand transforms must be indexed by rows or columns only."""
    every = indexing_maps(op)
    assert every is not None
    loops = [_dimensions(every[number]) for number in numbers]
    letters = _letters(loops)
    for transform, own in zip(transforms, loops, strict=False):
        allowed = {dim for dim in own if letters[dim] in "mn"}
        for number in transform.others:
            value = op.operands[number]
            if not set(_dimensions(every[number])) <= allowed:
                raise NoContraction(
                    f"has an operand transform that reads {value.type} by other loops "
                    "than the operand's rows or columns"
                )
            if value.type.rank:
                _check_memref(value)


def indexing_maps(op: Any) -> list[Any] | None:
    """The affine maps of a linalg op's operands; None for an op without them."""
    maps = linalg.get_indexing_maps(op)
    return None if maps is None else [attribute.value for attribute in maps]


def loop_letters(op: Any) -> list[str] | None:
    """Per operand the letters of the loops that index it; None if not a contraction.

    Only loops are looked at, not what the op computes.
    """
    maps = indexing_maps(op) if op.name.startswith("linalg.") else None
    if maps is None or len(maps) != 3:
        return None
    try:
        return names_of_loops([_dimensions(one) for one in maps])
    except NoContraction:
        return None


def names_of_loops(dimensions: Sequence[Sequence[int]]) -> list[str] | None:
    """As `loop_letters`, for an op whose operands are indexed by these loops."""
    try:
        letters = _letters(dimensions)
    except NoContraction:
        return None
    return ["".join(letters[dim] for dim in dims) for dims in dimensions]


def _loops(op: Any, numbers: list[int]) -> tuple[list[str], dict[str, int | None]]:
    """The letters of the loops that index each of A, B and C; the size of each loop.

    numbers: operand numbers of A, B and C
    """
    every = indexing_maps(op)
    assert every is not None
    maps = [_dimensions(every[number]) for number in numbers]
    memrefs = [op.operands[number] for number in numbers]
    letters = _letters(maps)
    sizes: dict[str, int | None] = dict.fromkeys("bmnk", 1)
    sizes |= dict.fromkeys(letters.values())
    for dims, value in zip(maps, memrefs, strict=True):
        for number, dim in enumerate(dims):
            if not value.type.is_dynamic_dim(number):
                sizes[letters[dim]] = value.type.shape[number]
    return ["".join(letters[dim] for dim in dims) for dims in maps], sizes


def _dimensions(affine_map: Any) -> list[int]:
    """Numbers of the loops that are the results of a projected permutation."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in affine_map.results):
        raise NoContraction(f"indexes an operand by {affine_map}, expected loops only")
    return [ir.AffineDimExpr(e).position for e in affine_map.results]


def _letters(maps: Sequence[Sequence[int]]) -> dict[int, str]:
    """Loop number to "b", "m", "n" or "k"; raises NoContraction for other loops.

    The output has rows before columns. Of two reduction loops, the outer one in the
    first input is the batch.
    """
    first, second, out = maps
    if any(len(set(dims)) != len(dims) for dims in maps):
        raise NoContraction("uses a loop twice in an operand, expected matrices")
    batch = [dim for dim in out if dim in first and dim in second]
    if len(batch) > 1:
        raise NoContraction(f"has {len(batch)} batch loops, expected one at most")
    if len(out) == 3 and not batch:  # one input is the same for the whole batch
        batch = [out[0]]
    reduced = [dim for dim in first if dim in second and dim not in out]
    if {*out} - {*first, *second}:
        raise NoContraction("has an output loop that no input has")
    if {*first, *second} - {*out, *reduced}:
        raise NoContraction(
            "reduces a loop of one input alone, expected a loop of both"
        )
    if len(reduced) == 2 and not batch:
        batch = reduced[:1]
        reduced = reduced[1:]
    if len(reduced) != 1:
        raise NoContraction(f"reduces {len(reduced)} loops, expected one")
    rows_and_columns = [dim for dim in out if dim not in batch]
    if not 1 <= len(rows_and_columns) <= 2:
        ranks = ", ".join(str(len(dims)) for dims in maps)
        raise NoContraction(f"has operands of rank {ranks}, expected matrices")
    names = "mn" if len(rows_and_columns) == 2 else "n"
    letters = dict(zip(rows_and_columns, names, strict=True))
    return letters | dict.fromkeys(batch, "b") | {reduced[0]: "k"}


def _contraction(
    op: Any,
    transforms: tuple[OperandTransform, OperandTransform],
    maps: list[str],
    sizes: dict[str, int | None],
    allow_tf32: bool,
) -> Contraction:
    """The contraction, if its types, sizes and layouts are supported."""
    memrefs = [op.operands[transform.operand] for transform in transforms]
    memrefs.append(list(op.operands)[-1])
    swapped = "n" in maps[0]
    lhs, rhs = (1, 0) if swapped else (0, 1)
    if "n" in maps[lhs] or "m" in maps[rhs]:
        raise NoContraction("has a row or column loop in both inputs, expected in one")
    for loops, value in zip(maps, memrefs, strict=True):
        _check_memref(value)
        if loops.endswith("b"):
            raise NoContraction("has the batch innermost, expected further out")
    out_type = str(memrefs[2].type.element_type)
    _check_types(transforms[lhs], transforms[rhs], out_type, allow_tf32)
    for transform, memref, loops in zip(transforms, memrefs, maps, strict=False):
        _check_stored(transform, memref.type.element_type, loops)
    _check_fill(op, transforms, sizes["k"])
    parent = op.parent.operation.name
    if parent != "func.func":
        raise NoContraction(
            f"is inside '{parent}', expected at the function's top level"
        )
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
        lhs_type=str(transforms[lhs].kind),
        rhs_type=str(transforms[rhs].kind),
        out_type=out_type,
        stored=_stored(transforms, memrefs, swapped),
    )


def _check_fill(
    op: Any, transforms: tuple[OperandTransform, OperandTransform], k: int | None
) -> None:
    """Where tiles may be filled up with zeros, these must add nothing."""
    step = 8 * LONGEST_STEP_BYTES // transforms[0].kind.width
    if k is not None and k % step == 0:
        return
    if not any(transform.is_computed for transform in transforms):
        return
    why = why_fill_disturbs(op.regions[0].blocks[0], transforms)
    if why is not None:
        raise NoContraction(why)


def _stored(
    transforms: tuple[OperandTransform, OperandTransform],
    memrefs: list[Any],
    swapped: bool,
) -> tuple[int, int] | None:
    """Bytes of elements of A and of B; None if there is no operand transform."""
    if not any(transform.is_computed for transform in transforms):
        return None
    first, second = (element_bytes(memref.type) for memref in memrefs[:2])
    return (second, first) if swapped else (first, second)


def _check_stored(transform: OperandTransform, stored: Any, loops: str) -> None:
    """The type in memory of an operand that has an operand transform."""
    if not transform.is_computed or stored == transform.kind:
        return
    if str(stored) not in STORED_TYPES:
        raise NoContraction(
            f"has an operand transform of {stored}, expected {', '.join(STORED_TYPES)}"
        )
    if transform.kind.width == 8 and not loops.endswith("k"):
        raise NoContraction(
            f"has an operand transform of {stored} to {transform.kind} stored across "
            "K, expected along K"
        )


def _check_types(
    left: OperandTransform, right: OperandTransform, out: str, allow_tf32: bool
) -> None:
    lhs, rhs = str(left.kind), str(right.kind)
    if lhs != rhs:
        raise NoContraction(f"multiplies {lhs} by {rhs}, expected inputs of one type")
    is_computed = left.is_computed or right.is_computed
    what = f"multiplies {lhs}" if is_computed else f"has {lhs} inputs"
    if lhs not in OUTPUT_TYPES:
        raise NoContraction(f"{what}, expected {', '.join(OUTPUT_TYPES)}")
    if lhs == "f32" and not allow_tf32:
        raise NoContraction(
            f"{what}, which tensor cores round to tf32 (10 bits of mantissa): done "
            "with the option 'allow-tf32' only"
        )
    if out not in OUTPUT_TYPES[lhs]:
        raise NoContraction(
            f"{what} and has {out} output, expected output of "
            f"{' or '.join(OUTPUT_TYPES[lhs])}"
        )


def _check_memref(value: Any) -> None:
    """Rows without gaps, in global memory."""
    memref = value.type
    strides, offset = memref.get_strides_and_offset()
    if strides[-1] != 1:
        raise NoContraction(f"has the layout of {memref}, expected rows without gaps")
    if root(value) == value and offset != 0:
        raise NoContraction(
            f"has an operand {memref}, expected no offset: alcop-drop-offsets drops "
            "that of an argument"
        )
    if memref.memory_space is not None:
        raise NoContraction(f"has {memref} in a memory space of its own, expected none")
