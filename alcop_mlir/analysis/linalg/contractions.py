"""Which linalg ops are contractions C[m, n] += A[m, k] * B[k, n], and how.

A contraction may be batched, C[b, m, n], by several loops; A or B may be the same for
all of a batch, and C may be reduced over one. A vector times a matrix is a contraction
with one row, and so is a matrix times a vector: C[n] += A[k] * B[n, k]. All sizes are
allowed, also 0.

`classify` looks at one op and returns a `Contraction` or a `Rejected`. Loops are
identified by the operands that they index, so their order in the op does not matter.
What fills C before is found by `accumulator_init`, what the body multiplies by
`operand_transforms`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    base_alignment,
    element_bytes,
    stride_divisor,
)
from alcop_mlir.analysis.ir.gathered_rows import gathered_rows, places_of, taps_of
from alcop_mlir.analysis.ir.memref_layouts import (
    follows_shape,
    open_strides,
)
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.size_ranges import Range, size_range
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.beginnings import beginning
from alcop_mlir.analysis.linalg.contraction_checks import (
    check_fill,
    check_gathered,
    check_memref,
    check_stored,
    check_types,
    filled,
)
from alcop_mlir.analysis.linalg.contraction_letters import (
    BATCHES,
    letters_of,
    loops_of,
)
from alcop_mlir.analysis.linalg.nibbles import (
    GROUP_STEP,
    PER_BYTE,
    UnpackedOperand,
    group_of,
    unpacked,
)
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    OperandTransform,
    find_operand_transforms,
    widened_for,
)
from alcop_mlir.analysis.linalg.view import (
    LinalgView,
    Operand,
    linalg_view,
    why_not_in_place,
)
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import (
    EIGHT_BIT_FLOATS,
    ELEMENT_TYPES,
    OUTPUT_TYPES,
    ROUNDED_INPUTS,
)
from alcop_mlir.frozen import frozen
from alcop_mlir.taps import Taps
from alcop_mlir.target import CP_ASYNC_BYTES

_WIDEST = max(CP_ASYNC_BYTES)


@frozen
class Contraction:
    """A contraction on memrefs.

    m, n, k:        sizes; None where they are known at run time only
    batches:        the letters and sizes of batch loops, likewise
    lhs, rhs, out_loops: loops that index each operand, in the operand's order: "mk";
                    "kn", "nk"; "mn"; with the letters of batch loops ("b", then "c",
                    ...), without "m" for a vector
    swapped:        the op's first operand is B and its second A
    lhs_type, rhs_type: the types that are multiplied
    stored:         bytes of an element of A and of B in memory, if one of them has an
                    operand transform; else None
    has_narrow_copies: whether rows of A or B have a size or a distance that is known at
                    run time only, and no promise that they are aligned to 16 bytes; or
                    are gathered, and not aligned to 16 bytes
    row_bytes:      is known to divide the distances of rows of A, and of B, and where
                    these begin, in bytes; 16 at most; of gathered rows, see
                    `ir.gathered_rows`, those of neighbouring elements
    open_strides:   of A, B and C those whose distances of rows are known at run time
                    only, do not follow from sizes, and are not promised to be aligned
    open_beginnings: of A, B and C those with rows of known length and distance, of
                    which it is known at run time only where they begin
    taps:           of the windows that A or B consists of; None for other matrices
    places:         of windows of several taps that A consists of, along the last two
                    dimensions of an image, if there are two; None where not known
    packed:         whether A or B holds two elements in a byte
    narrow:         the types that the target does not multiply, which are widened to
                    `lhs_type` instead; none for others
    groups:         lengths along K of the groups of its elements that share what its
                    transform reads
    size_ranges:    by loop, the least and the largest size that all operands expect
                    (`alcop.size_range`), of those that some do; there may be none
    """

    op: Any
    m: int | None
    n: int | None
    k: int | None
    batches: tuple[tuple[str, int | None], ...]
    lhs: str
    rhs: str
    out_loops: str
    swapped: bool
    lhs_type: str
    rhs_type: str
    out_type: str
    stored: tuple[int, int] | None = None
    has_narrow_copies: bool = False
    row_bytes: tuple[int, int] = (_WIDEST, _WIDEST)
    open_strides: str = ""
    open_beginnings: str = ""
    taps: Taps | None = None
    places: tuple[int, int] | None = None
    size_ranges: tuple[tuple[str, Range], ...] = ()
    packed: bool = False
    groups: tuple[int, ...] = ()
    narrow: tuple[str, ...] = ()

    @property
    def precision(self) -> str | None:
        """What the inputs are rounded to: "tf32", or None."""
        return ROUNDED_INPUTS.get(self.lhs_type)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of A or B, as it is multiplied."""
        return ELEMENT_TYPES[self.lhs_type].bytes

    @property
    def batch(self) -> int | None:
        """The number of matrices that are multiplied; None where not known."""
        sizes = [size for _, size in self.batches]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if 0 in known or None not in sizes else None

    @property
    def is_batched(self) -> bool:
        """Whether A or B has a batch."""
        return bool(self.batches)

    @property
    def is_open(self) -> bool:
        """Whether some size is known at run time only."""
        return None in (self.m, self.n, self.k, self.batch)

    @property
    def has_variants(self) -> bool:
        """Whether one kernel need not do: sizes, or distances of A's or B's rows, or
        where A, B or C begins.
        """
        is_apart = bool({*self.open_strides} & {*"AB"})
        return self.is_open or is_apart or bool(self.open_beginnings)

    @property
    def is_computed(self) -> bool:
        """Whether A or B has an operand transform."""
        return self.stored is not None

    @property
    def out(self) -> Any:
        """The memref that is accumulated into."""
        return list(self.op.operation.operands)[-1]


def structured_ops(root: ir.Operation | ir.Module) -> list[Any]:
    """Linalg ops in `root`, without those inside another linalg op."""
    outside = walk(root, enter=lambda op: not op.name.startswith("linalg."))
    return [op for op in outside if op.name.startswith("linalg.")]


def classify(
    op: ir.Operation,
    allow_tf32: bool = False,
    multiplied: Collection[str] = EIGHT_BIT_FLOATS,
) -> Contraction | Rejected:
    """The contraction that the linalg op is, or why it is not a supported one.

    allow_tf32: whether f32 inputs may be rounded to tf32
    multiplied: `Target.multiplied`; what is one with all types is one on any target
    """
    try:
        view = _checked(op)
        narrow = find_operand_transforms(view)
        transforms = widened_for(narrow, multiplied)
        operands = [
            *(_operand(view, transform) for transform in transforms),
            *view.outputs,
        ]
        letters = letters_of([operand.map for operand in operands])
        _check_others(view, transforms, operands, letters)
        with op.operation.location:
            contraction = _contraction(view, transforms, operands, letters, allow_tf32)
        if transforms != narrow:
            kinds = dict.fromkeys(str(one.kind) for one in narrow)
            contraction = replace(contraction, narrow=tuple(kinds))
    except NoContraction as no:
        return Rejected(op, str(no))
    in_place = why_not_in_place(view)
    return contraction if in_place is None else Rejected(op, in_place)


def as_in_memory(contraction: Contraction) -> Contraction:
    """The contraction with the types that memory holds, where these are `narrow`:
    wgmma multiplies what mma.sync of the target does not.
    """
    if not contraction.narrow:
        return contraction
    found = classify(contraction.op)
    assert isinstance(found, Contraction), found
    return found


def _checked(op: ir.Operation) -> LinalgView:
    """The op, if it has two inputs, perhaps small others, and an output: memrefs."""
    if any(isinstance(v.type, ir.RankedTensorType) for v in op.operands):
        raise NoContraction("works on tensors, expected memrefs: bufferize first")
    view = linalg_view(op)
    if (
        view is None
        or len(view.inputs) < 2
        or len(view.outputs) != 1
        or not all(
            one.is_memref and (one.value.type.rank <= 1 or group_of(one) is not None)
            for one in view.inputs[2:]
        )
    ):
        raise NoContraction("not a contraction: expected two inputs and one output")
    for operand in view.operands:
        kind = operand.value.type
        if not operand.is_memref:
            raise NoContraction(f"has an operand of type {kind}, expected a memref")
        if not isinstance(kind.element_type, ir.FloatType | ir.IntegerType):
            raise NoContraction(
                f"has {kind.element_type} elements, expected {', '.join(OUTPUT_TYPES)}"
            )
    return view


def _operand(view: LinalgView, transform: OperandTransform) -> Operand:
    """A or B, with the loops of its elements where it holds two in a byte."""
    operand = view.inputs[transform.operand]
    return operand if transform.nibble is None else unpacked(operand)


def _check_others(
    view: LinalgView,
    transforms: tuple[OperandTransform, OperandTransform],
    operands: list[Operand],
    letters: list[str],
) -> None:
    """Other inputs of operand transforms must be indexed by rows or columns only.

    Or by groups along K, of a packed operand.
    """
    for transform, operand, own in zip(transforms, operands, letters, strict=False):
        loops = dict(zip(own, operand.loops, strict=True))
        allowed = {loops[letter] for letter in own if letter in "mn"}
        for other in (view.inputs[number] for number in transform.others):
            group = group_of(other)
            if group is not None:
                _check_group(other, group, transform, loops)
            elif not allowed.issuperset(loops_of(other.map)):
                raise NoContraction(
                    f"has an operand transform that reads {other.value.type} by other "
                    "loops than the operand's rows or columns"
                )
            if other.indices:
                check_memref(other.value)


def _check_group(
    other: Operand,
    group: tuple[int, int],
    transform: OperandTransform,
    loops: dict[str, int | None],
) -> None:
    loop, length = group
    is_one = transform.nibble is not None and loop == loops["k"]
    if not is_one or other.loops[1] != loops.get("n") or length % GROUP_STEP:
        raise NoContraction(
            f"has an operand transform that reads {other.value.type} by other loops "
            f"than groups of a multiple of {GROUP_STEP} along K and columns"
        )


def _sizes(operands: list[Operand], letters: list[str]) -> dict[str, int | None]:
    """The size of each loop of A, B and C; 1 if there are no rows or columns."""
    sizes: dict[str, int | None] = dict.fromkeys("mnk", 1)
    sizes |= dict.fromkeys("".join(letters))
    for operand, loops in zip(operands, letters, strict=True):
        for dimension, loop in enumerate(loops):
            size = operand.static_size(dimension)
            if size is not None and isinstance(operand, UnpackedOperand):
                size *= PER_BYTE if loop == "k" else 1
            sizes[loop] = sizes[loop] if size is None else size
    return sizes


def _contraction(
    view: LinalgView,
    transforms: tuple[OperandTransform, OperandTransform],
    operands: list[Operand],
    letters: list[str],
    allow_tf32: bool,
) -> Contraction:
    """The contraction, if its types, sizes and layouts are supported.

    operands, letters: of the first input, the second, and the output
    """
    op, sizes = view.op, _sizes(operands, letters)
    memrefs = [operand.value for operand in operands]
    swapped = "n" in letters[0]
    lhs, rhs = (1, 0) if swapped else (0, 1)
    named = {"A": memrefs[lhs], "B": memrefs[rhs], "C": memrefs[2]}
    if "n" in letters[lhs] or "m" in letters[rhs]:
        raise NoContraction("has a row or column loop in both inputs, expected in one")
    for loops, value in zip(letters, memrefs, strict=True):
        check_memref(value)
        check_gathered(value, loops)
        if loops and loops[-1] in BATCHES:
            raise NoContraction("has the batch innermost, expected further out")
    out_type = str(memrefs[2].type.element_type)
    check_types(transforms[lhs], transforms[rhs], out_type, allow_tf32)
    for transform, memref, loops in zip(transforms, memrefs, letters, strict=False):
        check_stored(transform, memref.type.element_type, loops)
    is_computed = any(transform.is_computed for transform in transforms)
    if is_computed:
        check_fill(view.block, transforms, filled(memrefs, sizes["k"]))
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
        batches=tuple((loop, sizes[loop]) for loop in BATCHES if loop in sizes),
        lhs=letters[lhs],
        rhs=letters[rhs],
        out_loops=letters[2],
        swapped=swapped,
        lhs_type=str(transforms[lhs].kind),
        rhs_type=str(transforms[rhs].kind),
        out_type=out_type,
        stored=(
            (element_bytes(memrefs[lhs].type), element_bytes(memrefs[rhs].type))
            if is_computed
            else None
        ),
        has_narrow_copies=any(map(_has_narrow_copies, memrefs[:2])),
        row_bytes=(_row_bytes(named["A"]), _row_bytes(named["B"])),
        open_strides="".join(name for name in named if _has_open_strides(named[name])),
        open_beginnings="".join(n for n in named if _has_open_beginning(named[n])),
        taps=taps_of(named["A"], named["B"]),
        places=places_of(named["A"]),
        packed=any(transform.nibble is not None for transform in transforms),
        groups=tuple(group[1] for group in map(group_of, view.inputs) if group),
        size_ranges=tuple(
            (loop, expected)
            for loop in sizes
            if (expected := _expected(loop, memrefs, letters))
        ),
    )


def _has_narrow_copies(value: ir.Value) -> bool:
    is_gathered = gathered_rows(value) is not None
    is_open = _has_open_rows(value) or _has_open_beginning(value)
    return is_open or (is_gathered and _row_bytes(value) < _WIDEST)


def _row_bytes(value: ir.Value) -> int:
    """What divides the distances of rows and where they begin, 16 at most, in bytes.

    Their length as well, but for a known one of rows with distances of their own: the
    last chunk of a row may be a part.
    """
    kind, gathered = value.type, gathered_rows(value)
    if gathered is not None:
        begin = base_alignment(gathered.source)
        return math.gcd(begin, gathered.distance * element_bytes(kind))
    length = row_alignment(value)
    if not kind.is_dynamic_dim(kind.rank - 1):
        is_apart = not follows_shape(kind)
        length = 0 if is_apart else kind.shape[-1] * element_bytes(kind)
    strides = (stride_divisor(value, number) for number in range(kind.rank - 1))
    distances = (stride * element_bytes(kind) for stride in strides)
    return math.gcd(base_alignment(value), length, *distances)


def _has_open_rows(value: ir.Value) -> bool:
    is_open = value.type.is_dynamic_dim(value.type.rank - 1)
    return _has_open_strides(value) or (is_open and not _is_promised(value))


def _has_open_strides(value: ir.Value) -> bool:
    return bool(open_strides(value.type)) and not _is_promised(value)


def _has_open_beginning(value: ir.Value) -> bool:
    return not _has_open_rows(value) and not beginning(value, _WIDEST).is_known


def _is_promised(value: ir.Value) -> bool:
    """Whether rows are known to be aligned by what the user says."""
    return row_alignment(value) % _WIDEST == 0


def _expected(
    loop: str, memrefs: Sequence[ir.Value], letters: Sequence[str]
) -> Range | None:
    """The sizes of a loop that all operands expect; None where none does."""
    given = [
        size_range(value, loops.index(loop))
        for value, loops in zip(memrefs, letters, strict=True)
        if loop in loops
    ]
    known = [one for one in given if one is not None]
    if not known:
        return None
    return max(low for low, _ in known), min(high for _, high in known)
