"""How a warp holds a matrix in the fragments of mma.sync, and which memory it fits.

A matrix is cut into the pieces of mma.sync.m16n8k16 ([PTX] "Matrix Fragments for
mma.m16n8k16 with floating point type"):

  role           shape of a piece   per lane         loaded by
  a              16 (m) x 16 (k)    vector<4x2xf16>  an ldmatrix.x4
  b              16 (k) x 16 (n)    vector<4x2xf16>  an ldmatrix.x4, for two mma.sync
  accumulator    16 (m) x 8 (n)     vector<2x2xf32>  loads of two elements
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.alignment import address_alignment, divisor
from alcop_mlir.analysis.memory import is_workgroup
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.target import MMA_F16_SHAPE

LDMATRIX_BITS = 16  # of an element; [PTX] ldmatrix
LDMATRIX_ROW_BYTES = 16  # a row of 8 elements, and its alignment; [PTX] ldmatrix
_MMA_M, _MMA_N, _MMA_K = MMA_F16_SHAPE
# Extent of a piece along each dimension of its role.
_PIECE = {
    "a": {"m": _MMA_M, "k": _MMA_K},
    "b": {"k": _MMA_K, "n": 2 * _MMA_N},
    "accumulator": {"m": _MMA_M, "n": _MMA_N},
}
# What extents must be multiples of; accumulators are stored two pieces at a time.
_MULTIPLE = {"m": _MMA_M, "n": 2 * _MMA_N, "k": _MMA_K}
_MOVED_BITS = (16, 32)  # of an accumulator: a row of a lane's is one or two words


@dataclass(frozen=True)
class Layout:
    """How a warp holds a matrix.

    role: "a", "b" or "accumulator"
    dims: which dimension is which, as the vector type has them: "mk" or "km" for a,
          "kn" or "nk" for b, "mn" for accumulators
    """

    role: str
    dims: str

    def __str__(self) -> str:
        return f"{self.role} [{self.dims[0]}][{self.dims[1]}]"

    @property
    def piece(self) -> tuple[int, int]:
        """Extents of a piece, in the order of `dims`."""
        first, second = self.dims
        return _PIECE[self.role][first], _PIECE[self.role][second]

    def grid(self, kind: Any) -> dict[str, int]:
        """Pieces along each dimension of a vector type."""
        counts = zip(self.dims, kind.shape, self.piece, strict=True)
        return {dim: extent // step for dim, extent, step in counts}

    def lane_type(self, element: Any) -> Any:
        """What one lane holds of one piece."""
        return ir.VectorType.get([2 if self.role == "accumulator" else 4, 2], element)


def check_shape(op: Any, kind: Any, layout: Layout) -> None:
    """PassError at `op` unless vectors of type `kind` can be cut into pieces."""
    for dim, extent in zip(layout.dims, kind.shape, strict=True):
        if extent % _MULTIPLE[dim]:
            raise PassError(
                op,
                f"{kind} as {layout}: {dim} is {extent}, expected a multiple of "
                f"{_MULTIPLE[dim]} (mma.sync.m{_MMA_M}n{_MMA_N}k{_MMA_K})",
            )


def check_read(op: Any, layout: Layout) -> None:
    """PassError unless the vector.transfer_read can load pieces of `layout`."""
    source, first, *others = list(op.operation.operands)
    _check_transfer(op, source)
    if layout.role == "accumulator":
        _check_width(op, source.type, _MOVED_BITS)
        return
    if not is_workgroup(source.type):
        raise PassError(
            op, f"reads {layout} from {source.type}, expected workgroup memory"
        )
    _check_width(op, source.type, (LDMATRIX_BITS,))
    strides, _ = source.type.get_strides_and_offset()
    column = [first, *others][source.type.rank - 1]
    steps = [1] * (source.type.rank - 1) + [divisor(column)]
    alignment = address_alignment(source, steps)
    if strides[-1] != 1 or alignment % LDMATRIX_ROW_BYTES:
        raise PassError(
            op,
            f"reads {layout} from {source.type} at rows that are known to be aligned "
            f"to {alignment} bytes, expected {LDMATRIX_ROW_BYTES} (ldmatrix) and "
            "contiguous rows",
        )


def check_write(op: Any, layout: Layout) -> None:
    """PassError unless the vector.transfer_write can store pieces of `layout`."""
    value, target = list(op.operation.operands)[:2]
    _check_transfer(op, target)
    if layout.role != "accumulator":
        raise PassError(op, f"writes {value.type}, held as {layout}: not handled")
    _check_width(op, target.type, _MOVED_BITS)


def _check_width(op: Any, kind: Any, widths: tuple[int, ...]) -> None:
    if getattr(kind.element_type, "width", None) not in widths:
        bits = " or ".join(map(str, widths))
        raise PassError(
            op, f"transfer of {kind.element_type}, expected elements of {bits} bits"
        )


def _check_transfer(op: Any, memref: Any) -> None:
    """Between a memref and a vector of its last two dimensions, all in bounds."""
    operation = op.operation
    if not isinstance(memref.type, ir.MemRefType):
        raise PassError(op, f"transfer on {memref.type}, expected a memref")
    if any(isinstance(v.type, ir.VectorType) for v in list(operation.operands)[2:]):
        raise PassError(op, "transfer with a mask, expected none")
    affine_map = operation.attributes["permutation_map"].value
    if affine_map != ir.AffineMap.get_minor_identity(memref.type.rank, 2):
        raise PassError(op, f"transfer by {affine_map}, expected the last dimensions")
    in_bounds = operation.attributes["in_bounds"]
    if not all(attribute.value for attribute in in_bounds):
        raise PassError(op, "transfer that may leave its memref, expected in_bounds")
