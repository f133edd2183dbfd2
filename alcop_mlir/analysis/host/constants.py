"""Constants as a manifest describes them."""

from __future__ import annotations

import hashlib

from alcop_mlir.analysis.ir.constant_arrays import ConstantArray
from alcop_mlir.manifest.arrays import Constant
from alcop_mlir.manifest.names import constant_file


def described(array: ConstantArray) -> Constant:
    """`array`, in a file of its own that is named after its contents."""
    file = constant_file(hashlib.sha256(array.data).hexdigest())
    return Constant(array.name, array.dtype, array.shape, file, 0, len(array.data))
