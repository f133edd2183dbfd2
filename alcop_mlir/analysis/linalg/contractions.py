"""Which linalg ops are contractions C[m, n] += A[m, k] * B[k, n], and how.

A contraction may be batched, C[b, m, n]; one of A and B may be the same for the whole
batch, and C may be reduced over it. A vector times a matrix is a contraction with one
row, and so is a matrix times a vector: C[n] += A[k] * B[n, k]. All sizes are allowed,
also 0.

`classify` looks at one op and returns a `Contraction` or a `Rejected`. Loops are
identified by the operands that they index, so their order in the op does not matter.
What fills C before is found by `accumulator_init`, what the body multiplies by
`operand_transforms`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes, stride_divisor
from alcop_mlir.analysis.ir.gathered_rows import MAX_POSITIONS, gathered_rows
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.memref_layouts import (
    follows_shape,
    has_negative_strides,
    open_strides,
)
from alcop_mlir.analysis.ir.promises import row_alignment
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.size_ranges import Range, size_range
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.operand_transforms import (
    NoContraction,
    OperandTransform,
    find_operand_transforms,
)
from alcop_mlir.analysis.linalg.view import (
    LinalgView,
    Operand,
    contraction_dimensions,
    indices_of,
    linalg_view,
    why_not_in_place,
)
from alcop_mlir.analysis.linalg.zero_fill import LONGEST_STEP_BYTES, why_fill_disturbs
from alcop_mlir.bindings import ir
from alcop_mlir.element_types import (
    ELEMENT_TYPES,
    OUTPUT_TYPES,
    ROUNDED_INPUTS,
    STORED_TYPES,
)
from alcop_mlir.taps import Taps
from alcop_mlir.target import CP_ASYNC_BYTES

_WIDEST = max(CP_ASYNC_BYTES)


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
    has_narrow_copies: whether rows of A or B have a size or a distance that is known at
                    run time only, and no promise that they are aligned to 16 bytes; or
                    are gathered, and not aligned to 16 bytes
    row_bytes:      is known to divide the distances of rows of A, and of B, in bytes;
                    16 at most; of gathered rows, see `ir.gathered_rows`, those of
                    neighbouring elements
    open_strides:   of A, B and C those whose distances of rows are known at run time
                    only, do not follow from sizes, and are not promised to be aligned
    taps:           of the windows that A or B consists of; None for other matrices
    size_ranges:    by loop, the least and the largest size that all operands expect
                    (`alcop.size_range`), of those that some do; there may be none
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
    has_narrow_copies: bool = False
    row_bytes: tuple[int, int] = (_WIDEST, _WIDEST)
    open_strides: str = ""
    taps: Taps | None = None
    size_ranges: tuple[tuple[str, Range], ...] = ()

    @property
    def precision(self) -> str | None:
        """What the inputs are rounded to: "tf32", or None."""
        return ROUNDED_INPUTS.get(self.lhs_type)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of A or B, as it is multiplied."""
        return ELEMENT_TYPES[self.lhs_type].bytes

    @property
    def is_batched(self) -> bool:
        """Whether A or B has a batch."""
        return "b" in self.lhs + self.rhs

    @property
    def is_open(self) -> bool:
        """Whether some size is known at run time only."""
        return None in (self.m, self.n, self.k, self.batch)

    @property
    def has_variants(self) -> bool:
        """Whether one kernel need not do: sizes, or distances of A's or B's rows."""
        return self.is_open or bool({*self.open_strides} & {*"AB"})

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


def classify(op: ir.Operation, allow_tf32: bool = False) -> Contraction | Rejected:
    """The contraction that the linalg op is, or why it is not a supported one.

    allow_tf32: whether f32 inputs may be rounded to tf32
    """
    try:
        view = _checked(op)
        transforms = find_operand_transforms(view)
        operands = [
            *(view.inputs[transform.operand] for transform in transforms),
            *view.outputs,
        ]
        letters = _letters([operand.map for operand in operands])
        _check_others(view, transforms, letters)
        with op.operation.location:
            contraction = _contraction(view, transforms, operands, letters, allow_tf32)
    except NoContraction as no:
        return Rejected(op, str(no))
    in_place = why_not_in_place(view)
    return contraction if in_place is None else Rejected(op, in_place)


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
            one.is_memref and one.value.type.rank <= 1 for one in view.inputs[2:]
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


def _check_others(
    view: LinalgView,
    transforms: tuple[OperandTransform, OperandTransform],
    letters: list[str],
) -> None:
    """Other inputs of operand transforms must be indexed by rows or columns only."""
    for transform, own in zip(transforms, letters, strict=False):
        loops = zip(view.inputs[transform.operand].loops, own, strict=True)
        allowed = {loop for loop, letter in loops if letter in "mn"}
        for other in (view.inputs[number] for number in transform.others):
            if not allowed.issuperset(_loops(other.map)):
                raise NoContraction(
                    f"has an operand transform that reads {other.value.type} by other "
                    "loops than the operand's rows or columns"
                )
            if other.indices:
                _check_memref(other.value)


def loop_letters(maps: Sequence[ir.AffineMap]) -> list[str] | None:
    """Per operand the letters of the loops that index it; None if not a contraction.

    Only the maps of the operands are looked at, not what an op computes.
    """
    if len(maps) != 3:
        return None
    try:
        return _letters(maps)
    except NoContraction:
        return None


def _letters(maps: Sequence[ir.AffineMap]) -> list[str]:
    """Of A, B and C, the letters "b", "m", "n", "k" of the loops that index each.

    The output has rows before columns. Of two reduction loops, the outer one in the
    first input is the batch. Raises NoContraction for other loops.
    """
    every = first, second, out = [_loops(one) for one in maps]
    if any(len(set(loops)) != len(loops) for loops in every):
        raise NoContraction("uses a loop twice in an operand, expected matrices")
    found = contraction_dimensions(maps)
    assert found is not None, maps  # three maps of loops
    batch = list(found.batch)
    if len(batch) > 1:
        raise NoContraction(f"has {len(batch)} batch loops, expected one at most")
    if len(out) == 3 and not batch:  # one input is the same for the whole batch
        batch = out[:1]
    reduced = sorted(found.k, key=first.index)
    if {*out} - {*first, *second}:
        raise NoContraction("has an output loop that no input has")
    if {*first, *second} - {*out, *reduced}:
        raise NoContraction(
            "reduces a loop of one input alone, expected a loop of both"
        )
    if len(reduced) == 2 and not batch:
        batch = [reduced.pop(0)]
    if len(reduced) != 1:
        raise NoContraction(f"reduces {len(reduced)} loops, expected one")
    rows_and_columns = [loop for loop in out if loop not in batch]
    if not 1 <= len(rows_and_columns) <= 2:
        ranks = ", ".join(str(len(loops)) for loops in every)
        raise NoContraction(f"has operands of rank {ranks}, expected matrices")
    names = "mn" if len(rows_and_columns) == 2 else "n"
    letters = dict(zip(rows_and_columns, names, strict=True))
    letters |= dict.fromkeys(batch, "b") | {reduced[0]: "k"}
    return ["".join(letters[loop] for loop in loops) for loops in every]


def _loops(affine_map: ir.AffineMap) -> list[int]:
    """The loops that are the results of a projected permutation."""
    loops = [index.loop for index in indices_of(affine_map)]
    plain = [loop for loop in loops if loop is not None]
    if len(plain) != len(loops):
        raise NoContraction(f"indexes an operand by {affine_map}, expected loops only")
    return plain


def _sizes(operands: list[Operand], letters: list[str]) -> dict[str, int | None]:
    """The size of each loop of A, B and C; 1 for a loop that there is not."""
    sizes: dict[str, int | None] = dict.fromkeys("bmnk", 1)
    sizes |= dict.fromkeys("".join(letters))
    for operand, loops in zip(operands, letters, strict=True):
        for dimension, loop in enumerate(loops):
            size = operand.static_size(dimension)
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
        _check_memref(value)
        _check_gathered(value, loops)
        if loops.endswith("b"):
            raise NoContraction("has the batch innermost, expected further out")
    out_type = str(memrefs[2].type.element_type)
    _check_types(transforms[lhs], transforms[rhs], out_type, allow_tf32)
    for transform, memref, loops in zip(transforms, memrefs, letters, strict=False):
        _check_stored(transform, memref.type.element_type, loops)
    is_computed = any(transform.is_computed for transform in transforms)
    if is_computed:
        _check_fill(view.block, transforms, _filled(memrefs, sizes["k"]))
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
        taps=taps_of(named["A"], named["B"]),
        size_ranges=tuple(
            (loop, expected)
            for loop in sizes
            if (expected := _expected(loop, memrefs, letters))
        ),
    )


def _has_narrow_copies(value: ir.Value) -> bool:
    is_gathered = gathered_rows(value) is not None
    return _has_open_rows(value) or (is_gathered and _row_bytes(value) < _WIDEST)


def _row_bytes(value: ir.Value) -> int:
    """What divides the distances of rows, 16 at most, in bytes.

    Their length as well, but for a known one of rows with distances of their own: the
    last chunk of a row may be a part.
    """
    kind, gathered = value.type, gathered_rows(value)
    if gathered is not None:
        return math.gcd(_WIDEST, gathered.distance * element_bytes(kind))
    length = row_alignment(value)
    if not kind.is_dynamic_dim(kind.rank - 1):
        is_apart = not follows_shape(kind)
        length = 0 if is_apart else kind.shape[-1] * element_bytes(kind)
    strides = (stride_divisor(value, number) for number in range(kind.rank - 1))
    distances = (stride * element_bytes(kind) for stride in strides)
    return math.gcd(_WIDEST, length, *distances)


def _has_open_rows(value: ir.Value) -> bool:
    is_open = value.type.is_dynamic_dim(value.type.rank - 1)
    return _has_open_strides(value) or (is_open and not _is_promised(value))


def _has_open_strides(value: ir.Value) -> bool:
    return bool(open_strides(value.type)) and not _is_promised(value)


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


def taps_of(lhs: ir.Value, rhs: ir.Value) -> Taps | None:
    """Of the windows that A or B consists of."""
    for name, value in (("A", lhs), ("B", rhs)):
        rows = gathered_rows(value)
        window = None if rows is None else rows.window
        if window is not None:
            moves = map(min, window.size, window.strides)
            return Taps(name, window.taps, math.prod(moves))
    return None


def _filled(memrefs: Sequence[ir.Value], k: int | None) -> int | None:
    """The number of neighbouring elements along K that tiles fill up: K, or a tap's."""
    runs = [one.run for one in map(gathered_rows, memrefs[:2]) if one is not None]
    return runs[0] if runs else k


def _check_fill(
    block: ir.Block, transforms: Sequence[OperandTransform], k: int | None
) -> None:
    """Where tiles may be filled up with zeros, these must add nothing."""
    step = 8 * LONGEST_STEP_BYTES // transforms[0].kind.width
    is_whole = k is not None and k % step == 0
    why = None if is_whole else why_fill_disturbs(block, transforms)
    if why is not None:
        raise NoContraction(why)


def _check_stored(transform: OperandTransform, stored: ir.Value, loops: str) -> None:
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


def _check_gathered(value: ir.Value, loops: str) -> None:
    """Of a matrix that is never made, tiles must have rows along K."""
    rows = gathered_rows(value)
    if rows is None:
        return
    if not loops.endswith("k"):
        raise NoContraction(f"reduces the rows of '{rows.op.name}', expected them kept")
    positions = 0 if rows.window is None else sum(rows.window.size)
    if positions > MAX_POSITIONS:
        raise NoContraction(
            f"has a window of {positions} positions, all dimensions together, expected "
            f"{MAX_POSITIONS} at most"
        )


def _check_memref(value: ir.Value) -> None:
    """Rows without gaps, in global memory."""
    memref = value.type
    strides, offset = memref.get_strides_and_offset()
    if has_negative_strides(memref):
        raise NoContraction(f"has an operand {memref} with a negative stride")
    if strides[-1] != 1:
        raise NoContraction(f"has the layout of {memref}, expected rows without gaps")
    if root(value) == value and offset != 0:
        raise NoContraction(
            f"has an operand {memref}, expected no offset: alcop-drop-offsets drops "
            "that of an argument"
        )
    if memref.memory_space is not None:
        raise NoContraction(f"has {memref} in a memory space of its own, expected none")
